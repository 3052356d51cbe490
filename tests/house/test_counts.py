"""What is counted is found where it is, and a ceiling neither rises nor stays above what is there."""

import pathlib
import tempfile
import unittest

import counts

PAGE = """# Operators
```
operator   opset  element types
-------------------------------
Conv       1      floating
Relu       6      floating
superstep.Adam  1  floating
```
"""


class Counts(unittest.TestCase):
    def setUp(self):
        kept = tempfile.TemporaryDirectory()
        self.addCleanup(kept.cleanup)
        self.root = pathlib.Path(kept.name)
        self.write("docs/operators.md", PAGE)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def source(self, path, text):
        self.write("src/superstep/" + path, text)

    def test_names_of_operators_are_found_but_where_they_are_at_home(self):
        self.source("target/a.cpp", 'if (node.op == "Conv" || is(node, "superstep.Adam")) {}  // "Relu"\nf("Convoy", "Conv ");\n')
        self.source("op/b.cpp", 'name = "Conv";\n')
        self.source("onnx/c.cpp", 'name = "Conv";\n')
        self.assertEqual(counts.operator_literals(self.root), ["target/a.cpp:1: Conv", "target/a.cpp:1: superstep.Adam"])

    def test_british_words_are_found_in_pages_and_sentences(self):
        self.write("docs/page.md", "The optimiser of neighbouring centres, and `centre=no`.\nNoise of a promise.\n")
        self.source("a.cpp", 'throw Error("is not normalised", "neighbours");  // neighbours of ours\n')
        self.assertEqual(counts.british_words(self.root), ["docs/page.md:1: optimiser", "docs/page.md:1: neighbouring",
                                                            "docs/page.md:1: centres", "a.cpp:1: normalised"])

    def test_rates_with_an_article_are_found(self):
        self.write("docs/page.md", "It makes 300 samples a second of what a second holds, once a step.\nImages per second.\n")
        self.source("a.cpp", 'add_option("--batch", "samples a call");  // samples a step\n')
        self.assertEqual(counts.rates_with_an_article(self.root), ["docs/page.md:1: samples a second", "docs/page.md:1: once a step",
                                                                    "a.cpp:1: samples a call"])

    def test_ceilings_only_fall(self):
        self.source("target/a.cpp", 'f("Conv");\n')
        ceilings = {"operator_literals": 1, "british_words": 0, "rates_with_an_article": 0}
        self.assertEqual(counts.findings(self.root, ceilings), [])
        self.assertIn("more than the 0", counts.findings(self.root, ceilings | {"operator_literals": 0})[0])
        self.assertIn("write 1 there", counts.findings(self.root, ceilings | {"operator_literals": 2})[0])


if __name__ == "__main__":
    unittest.main()
