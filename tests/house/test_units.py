"""Files that are joined into units keep their names apart, and one whose names cannot be told apart stays out."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

UNITS = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "units.py"


def source(own, uses=""):
    return '#include <string>\n\nnamespace n {\nnamespace {\n\n%s\n\n}  // namespace\n\n%s\n}  // namespace n\n' % (own, uses)


class Units(unittest.TestCase):
    def joined(self, lines=1500, **texts):
        """The units of the files, as sets of their names, and the text of the first one."""
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for name, text in texts.items():
                paths.append(pathlib.Path(folder) / (name + ".cpp"))
                paths[-1].write_text(text)
            made = subprocess.run([sys.executable, UNITS, str(lines), folder + "/units", *map(str, paths)],
                                  check=True, capture_output=True, text=True).stdout
            units = {}
            for line in made.splitlines():
                unit, path = line.split("|")
                units.setdefault(unit, set()).add(pathlib.Path(path).stem)
            text = pathlib.Path(next(iter(units))).read_text() if units else ""
            return list(units.values()), text

    def test_a_name_of_two_files_gets_two_names(self):
        units, text = self.joined(a=source("int twice(int x) { return 2 * x; }", "int f() { return twice(1); }"),
                                  b=source("int twice(int x) { return x + x; }", "int g() { return twice(2); }"))
        self.assertEqual(units, [{"a", "b"}])
        self.assertEqual(text.count("#define twice twice_"), 2)
        self.assertLess(text.index("#include <string>"), text.index("#define"))
        self.assertEqual(text.count("#include <string>"), 1)

    def test_names_that_meet_nothing_stay(self):
        units, text = self.joined(a=source("int once(int x) { return x; }"), b=source("int twice(int x) { return x + x; }"))
        self.assertEqual(units, [{"a", "b"}])
        self.assertNotIn("#define", text)

    def test_a_name_that_is_also_a_member_keeps_its_file_out(self):
        own = "int size(int x) { return x; }"
        self.assertEqual(self.joined(a=source(own), b=source(own, "int g(const std::string& s) { return size(s.size()); }"))[0], [])

    def test_a_name_that_is_found_by_its_arguments_keeps_its_file_out(self):
        own = "void to_json(int) {}"
        self.assertEqual(self.joined(a=source(own), b=source(own))[0], [])

    def test_macros_and_long_files_are_alone(self):
        self.assertEqual(self.joined(a=source("int a = 1;"), b="#define X 1\n")[0], [])
        self.assertEqual(self.joined(lines=15, a=source("int a = 1;"), b=source("int b = 1;"))[0], [])

    def test_a_header_that_only_some_machines_have_is_included_by_its_file_alone(self):
        own = "#if __x86_64__\n#include <immintrin.h>\n#endif\n" + source("int b = 1;")
        self.assertEqual(self.joined(a=source("int a = 1;"), b=own)[0], [])
        inside = source("int b = 1;").replace("#include <string>\n", "#include <string>\n#if __x86_64__\n#endif\n")
        self.assertEqual(self.joined(a=source("int a = 1;"), b=inside)[0], [{"a", "b"}])


if __name__ == "__main__":
    unittest.main()
