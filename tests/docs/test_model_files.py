"""The page of model files beside other engines: what its figures are made of, and that it is the one of the results."""

import json
import pathlib
import sys
import unittest

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "bench" / "models"))
import page


def row(ours, runtime, vino, name="a", threads=1):
    engines = {"superstep": ours, "onnxruntime": runtime, "openvino": vino}
    return {"name": name, "family": "vision", "exporter": "traced", "threads": threads, "load": 1.0, "engines": engines}


def took(seconds, memory=None, error=None):
    return {"seconds": seconds, "memory": memory, "error": error}


refused = {"failure": "has <none> | of it"}


class ModelFiles(unittest.TestCase):
    def test_the_best_peer_counts(self):
        self.assertEqual(page.ratio_of(row(took(2.0), took(3.0), took(1.0))["engines"]), 0.5)
        self.assertEqual(page.ratio_of(row(took(2.0), took(3.0), refused)["engines"]), 1.5)
        self.assertIsNone(page.ratio_of(row(refused, took(3.0), refused)["engines"]))
        self.assertIsNone(page.ratio_of(row(took(2.0), refused, refused)["engines"]))

    def test_means_are_geometric_and_refusals_are_counted(self):
        rows = [row(took(1.0, 20), took(4.0, 10), took(5.0)), row(took(4.0), took(1.0), took(9.0)), row(refused, took(1.0), took(1.0))]
        found = page.summary(rows)
        self.assertAlmostEqual(found["mean"], 1)
        self.assertEqual((found["files"], found["measured"], found["wins"], found["refused"]), (3, 2, 1, 1))
        self.assertEqual((found["worst"], found["memory"]), (0.25, 2))

    def test_losses_are_bold_and_reasons_told(self):
        text = page.text({"machine": "m", "created": "2031-02-03", "rows": [
            row(took(1e-3, 20, 1e-7), took(5e-4, 10), took(2e-3)), row(refused, took(1e-3), took(1e-3), "b")]})
        self.assertIn("| a.traced | 1 | 1000 | 500 | 2000 | **0.50** | 1e-07 | 2.00 |", text)
        self.assertIn("| b.traced | Superstep | has &lt;none> / of it |", text)

    def test_training_steps_are_told_with_the_fastest_peer(self):
        found = {"loss": 1e-7, "parameters": 2e-6, "moves": 1e-3, "peer_loss": 3e-7, "peer_parameters": 4e-6, "peer_moves": 2e-3}
        rows = [{"name": "a", "batch": 4, "threads": 1, "load": 2.0, "timed": "adam", "optimizers": {"sgd": found, "adam": found},
                 "seconds": {"Superstep": 1e-3, "eager": 3e-3, "compile": 2e-3}},
                {"name": "b", "batch": 4, "threads": 1, "load": 1.0, "timed": "adam", "optimizers": {"sgd": {"failure": "no <loss>"}}}]
        data = {"machine": "m", "created": "2031-02-03", "steps": 5, "torch": "9", "rows": rows}
        text = "\n".join(page.training_text(data))
        self.assertIn("| a | 4 | adam | 1e-07, 2e-06, 1e-03 | 3e-07, 4e-06, 2e-03 | 1000 | 2000 | compile | 2.00 |", text)
        self.assertIn("| a | 4 | sgd | 1e-07, 2e-06, 1e-03 | 3e-07, 4e-06, 2e-03 | - | - | - | - |", text)
        self.assertIn("| b | 4 | sgd | no &lt;loss> |", text)
        self.assertIn("Geometric mean of the gain of 1 models: 2.00; worst 2.00.", text)
        self.assertIn("counts (compile; eager)", text)
        self.assertNotIn("--train", text)

    def test_parameters_that_had_to_be_named_are_told(self):
        found = {"loss": 1e-7, "parameters": 2e-6, "moves": 1e-3, "peer_loss": 3e-7, "peer_parameters": 4e-6, "peer_moves": 2e-3}
        rows = [{"name": "a", "batch": 4, "threads": 1, "load": 2.0, "timed": "adam", "optimizers": {"sgd": found}, "added": ["decay", "skip"],
                 "seconds": {"Superstep": 1e-3, "eager": 3e-3}}]
        text = "\n".join(page.training_text({"machine": "m", "created": "2031-02-03", "steps": 5, "torch": "9", "rows": rows}))
        self.assertIn("| a* | 4 | sgd |", text)
        self.assertIn("a `decay`, `skip`.", text)
        self.assertIn("torch.compile was left out", text)

    def test_what_python_takes_is_counted_and_the_rest_named(self):
        fine = {"loss": 1e-6, "parameters": 1e-7, "moves": 1.0, "peer_loss": 1e-9, "peer_parameters": 1e-9}
        far = fine | {"loss": 3e-4, "peer_loss": 1e-4}
        rows = [{"name": "a", "serving": {"error": 1e-6, "seconds": 1}, "training": fine},
                {"name": "b", "serving": {"error": 2e-3}, "training": far}, {"name": "c", "serving": {"failure": "no <op>"},
                                                                            "training": far | {"peer_loss": 1e-6}}]
        self.assertEqual([page.is_served(row) for row in rows], [True, False, False])
        self.assertEqual([page.is_trained(row) for row in rows], [True, True, False])
        text = "\n".join(page.python_text({"torch": "9", "steps": 3, "rows": rows}))
        self.assertIn("| b | serving | error 2e-03 |", text)
        self.assertIn("| c | serving | no &lt;op> |", text)
        self.assertNotIn("| a |", text)
        self.assertNotIn("| b | training", text)

    def test_the_section_of_python_is_of_its_results(self):
        found = json.loads((root / "bench" / "models" / "python.json").read_text())
        self.assertIn("\n".join(page.python_text(found)), (root / "docs" / "python.md").read_text())

    def test_the_page_is_of_the_results(self):
        results = json.loads((root / "bench" / "models" / "results.json").read_text())
        training = root / "bench" / "models" / "training.json"
        found = json.loads(training.read_text()) if training.exists() else None
        self.assertEqual((root / "docs" / "model-files.md").read_text(), page.text(results, found))
        self.assertGreaterEqual(len({row["name"] for row in results["rows"]}), 60)


if __name__ == "__main__":
    unittest.main()
