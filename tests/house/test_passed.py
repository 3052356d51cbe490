"""A check is not run again on what has passed it, and is on everything else (tools/passed.py)."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

tool = pathlib.Path(__file__).resolve().parents[2] / "tools" / "passed.py"


class Passed(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.folder = pathlib.Path(kept.name)
        self.files = [self.folder / name for name in ("a.h", "b.h")]
        self.rules = self.folder / "rules"
        for file in [*self.files, self.rules]:
            file.write_text("as it was\n")

    def ask(self, *options, files=None, words=("1.0",)):
        done = subprocess.run([sys.executable, tool, *options, self.folder / "list" / "known", self.rules, *words], check=True,
                              input="".join(f"{file}\n" for file in files or self.files), capture_output=True, text=True)
        return done.stdout.split()

    def names(self, *positions):
        return [str(self.files[i]) for i in positions]

    def test_everything_is_looked_at_first(self):
        self.assertEqual(self.ask(), self.names(0, 1))

    def test_what_has_passed_is_not_looked_at_again(self):
        self.ask("--add")
        self.assertEqual(self.ask(), [])

    def test_what_changed_is(self):
        self.ask("--add")
        self.files[1].write_text("as it is\n")
        self.assertEqual(self.ask(), self.names(1))

    def test_what_others_had_is(self):
        self.ask("--add", files=self.files[:1])
        self.assertEqual(self.ask(), self.names(1))

    def test_other_rules_look_at_everything(self):
        self.ask("--add")
        self.assertEqual(self.ask(words=("1.1",)), self.names(0, 1))
        self.rules.write_text("others\n")
        self.assertEqual(self.ask(), self.names(0, 1))


if __name__ == "__main__":
    unittest.main()
