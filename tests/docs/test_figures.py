"""The page of figures: what a run of bench/run.py becomes, and what is refused."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import figures
import peer_tables


def result(contender, seconds, threads=1, batch=8, **more):
    return {"contender": contender, "threads": threads, "batch": batch, "metrics": {"step_time": {"value": seconds}},
            "ready": {"flops": 1e9}} | more


OURS = {"family": "Superstep"}
FAST = {"family": "openvino"}


def run(**others):
    return {"schema": "superstep-result/1", "command": "bench", "date": "2031-02-03", "machine": "4 processors: Some 9000",
            "call": "python3 bench/run.py --models mlp --json /here/alone.json", "peak": {"f32_fma": 200e9, "bf16_dot": 400e9},
            "contests": [{"model": "mlp", "mode": "infer", "load": 0.25, "results": [
                result("Superstep", 10e-3, **OURS), result("Superstep int8", 12.34e-6, precision="int8", differs=0.0123, **OURS),
                result("PyTorch 9", 90e-3, family="pytorch"), result("OpenVINO 7", 25e-3, **FAST),
                result("OpenVINO 7 int8", 6.17e-6, precision="int8", differs=0.05, **FAST),
                result("Superstep", 4e-3, threads=2, **OURS), result("OpenVINO 7", 2e-3, threads=2, **FAST),
                result("Superstep", 1e-3, threads=4, **OURS)]}]} | others


record = {"title": "A table", "entered": "2031-01-01", "machine": "here", "command": "`x`", "columns": ["a", "b"],
          "rows": [["1", "2"]]}


class Figures(unittest.TestCase):
    def test_a_run_becomes_rows(self):
        made = figures.records_of_run(run())
        for one in made.values():
            self.assertEqual(figures.problems(one), [])
        # The floor: 1e9 operations at 200e9 a second and thread are 5 ms, half of our 10. A loss stands out.
        self.assertEqual(made[figures.PEERS]["rows"], [
            ["mlp", "infer", "8", "1", "5,000", "10,000", "25,000", "-", "90,000", "-", "2.50", "50 %"],
            ["mlp", "infer", "8", "2", "2,500", "4,000", "2,000", "-", "-", "-", "**0.50**", "62 %"],
            ["mlp", "infer", "8", "4", "1,250", "1,000", "-", "-", "-", "-", "-", "125 %"]])
        # The best peer in int8 is held against ours in int8, never against ours in f32.
        self.assertEqual(made[figures.NARROW]["rows"], [
            ["mlp", "infer", "8", "1", "int8", "12.3", "OpenVINO 7 int8", "6.2", "**0.50**", "810.37", "1.2e-02", "5.0e-02"]])

    def test_means_are_of_ratios(self):
        lines = list(peer_tables.means(run()["contests"]))
        self.assertEqual(lines, [
            "f32, inference at the larger batch, 1 thread: geometric mean of 1 ratios 2.50, least 2.50 (mlp), 0 below 1",
            "f32, inference at the larger batch, 2 threads: geometric mean of 1 ratios 0.50, least 0.50 (mlp), 1 below 1",
            "int8, inference at the larger batch, 1 thread: geometric mean of 1 ratios 0.50, least 0.50 (mlp), 1 below 1"])

    def test_the_page_says_when_where_and_how(self):
        text = " ".join(figures.page([figures.records_of_run(run())[figures.PEERS]]).split())
        for part in ("- measured on 2031-02-03", "- machine: 4 processors: Some 9000",
                     "- command: `python3 bench/run.py --models mlp`", "200 GFLOP/s in f32, 400 GFLOP/s in bf16",
                     "OpenVINO 7, PyTorch 9", "before the rows: 0.2 to 0.2", "| mlp | infer | 8 | 1 | 5,000 | 10,000 | 25,000 |"):
            self.assertIn(part, text)
        self.assertIn("- entered on 2031-01-01", figures.page([record]))

    def test_what_says_too_little_is_refused(self):
        for member in ("date", "machine", "call", "peak", "contests"):
            without = run()
            del without[member]
            with self.assertRaisesRegex(ValueError, member):
                figures.records_of_run(without)
        with self.assertRaises(ValueError):
            figures.records_of_run(run(command="conv"))

    def test_records_are_whole(self):
        self.assertEqual(figures.problems(record), [])
        for member in ("title", "machine", "command", "entered"):
            self.assertTrue(figures.problems({k: v for k, v in record.items() if k != member}), member)
        self.assertTrue(figures.problems(record | {"rows": [["1"]]}))
        self.assertTrue(figures.problems(record | {"colour": "red"}))

    def test_pages_show_tables_between_marks(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "10-x.json").write_text(json.dumps(record | {"about": ["See [it](../bench/x.md)."]}))
            text = "before\n<!-- 10-x.json: written by bench/figures.py -->\nold\n<!-- end -->\nafter\n"
            made = figures.with_tables(text, pathlib.Path("README.md"), folder)
            for part in ("before\n<!-- 10-x", "| 1 | 2 |", "[it](bench/x.md)", "<!-- end -->\nafter\n"):
                self.assertIn(part, made)
            self.assertNotIn("old", made)
            self.assertEqual(figures.with_tables(made, pathlib.Path("README.md"), folder), made)
            self.assertIn("[it](../bench/x.md)", figures.with_tables(text, pathlib.Path("docs/speed.md"), folder))
            self.assertEqual(figures.with_tables("no marks", pathlib.Path("README.md"), folder), "no marks")


if __name__ == "__main__":
    unittest.main()
