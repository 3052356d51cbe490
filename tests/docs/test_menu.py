"""The menu of the documentation names every page once, and messages that a page explains are those of the program."""

import pathlib
import re
import unittest

root = pathlib.Path(__file__).resolve().parents[2]
docs = root / "docs"
made = {"index.md", "contributing.md", "reference-python.md"}  # by tools/site


def pages_of(menu):
    """Names of pages in the part of the settings that is the menu."""
    return re.findall(r"[\w/-]+\.md", menu[menu.index("\nnav:"):])


def explained(page):
    """Messages that are headings."""
    return re.findall(r"^### `(.+)`$", page, re.MULTILINE)


def plain(source):
    """Literals that stand behind each other are one."""
    return re.sub(r'"\s*\n\s*"', "", source)


class Menu(unittest.TestCase):
    def test_it_has_every_page_once(self):
        named = pages_of((docs / "site" / "mkdocs.yml").read_text())
        self.assertEqual(len(named), len(set(named)))
        there = {str(page.relative_to(docs)) for page in docs.rglob("*.md")} | made
        self.assertEqual(sorted(there - set(named)), [], "pages that the menu lacks")
        self.assertEqual(sorted(set(named) - there), [], "pages that are not there")

    def test_a_page_that_is_missing_is_seen(self):
        self.assertEqual(pages_of("a.md\nnav:\n  - b.md\n  - c: [d/e-f.md]\n"), ["b.md", "d/e-f.md"])


class Troubleshooting(unittest.TestCase):
    def test_its_messages_are_the_programs(self):
        messages = explained((docs / "troubleshooting.md").read_text())
        self.assertGreater(len(messages), 8)
        sources = [plain(file.read_text()) for file in (root / "src" / "superstep").rglob("*.cpp")]
        for message in messages:
            self.assertTrue(any(message in source for source in sources), message)

    def test_literals_in_pieces_are_found(self):
        self.assertIn("one message", plain('"one "\n    "message"'))


if __name__ == "__main__":
    unittest.main()
