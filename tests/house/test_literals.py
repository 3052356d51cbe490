"""Bare numbers and misplaced tests are found, and what is explained or in its place is not."""

import pathlib
import tempfile
import unittest

import literals


def numbers(text):
    return [number for _, number in literals.bare_numbers(text.split("\n"))]


class Numbers(unittest.TestCase):
    def test_bare_ones_are_found(self):
        self.assertEqual(numbers("double a = 0.44;\nint b = 4'096;\nfloat c = 1.5e-3f;"), ["0.44", "4'096", "1.5e-3"])
        self.assertEqual(numbers("f(587, x2, 2.5);"), ["587", "2.5"])

    def test_what_says_itself_is_not(self):
        self.assertEqual(numbers("a = 0.5 * b + 1.0 - 64; c = 1e6 * 100; d = \"587\"; e = x1000y; #include <a99.h>"), [])
        self.assertEqual(numbers("#define A 587"), [])

    def test_a_comment_explains_its_paragraph(self):
        self.assertEqual(numbers("// Why.\na = 587;\nb = 0.44;"), [])
        self.assertEqual(numbers("a = 587;  // Why."), [])
        self.assertEqual(numbers("// Why.\na = 587;\n\nb = 0.44;"), ["0.44"])
        self.assertEqual(numbers("a = 587;\n// Too late."), ["587"])

    def test_files_are_named(self):
        with tempfile.TemporaryDirectory() as folder:
            for room, text in (("machine/ipu", "int a = 587;\n"), ("op", "int a = 587;\n")):
                path = pathlib.Path(folder) / "src" / "superstep" / room
                path.mkdir(parents=True)
                (path / "a.cpp").write_text(text)
            (line,) = literals.unexplained(folder)
            self.assertIn("machine/ipu/a.cpp:1: 587", line)


class Places(unittest.TestCase):
    def test_tests_are_where_they_are_looked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in ("run/test_a.cpp", "run/a_test.cpp", "run/deep/test_b.cpp", "docs/example_c.cpp", "run/example_d.cpp"):
                path = pathlib.Path(folder) / "tests" / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text("// x\nTEST(A, B) {}\n")
            (pathlib.Path(folder) / "tests" / "run" / "support.cpp").write_text("int a;\n")
            lines = literals.misplaced_tests(folder)
            self.assertEqual([line.split(":")[0] for line in lines],
                             ["tests/run/a_test.cpp", "tests/run/deep/test_b.cpp", "tests/run/example_d.cpp"])


if __name__ == "__main__":
    unittest.main()
