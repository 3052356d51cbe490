"""The page of figures: what a run of bench/run.py becomes, and what is refused."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench"))
import figures


def result(contender, seconds, threads=1, batch=8):
    return {"contender": contender, "threads": threads, "batch": batch, "metrics": {"step_time": {"value": seconds}},
            "ready": {"flops": 1e9}}


def run(**others):
    return {"schema": "superstep-result/1", "command": "bench", "date": "2031-02-03", "machine": "4 processors: Some 9000",
            "call": "python3 bench/run.py --models mlp", "peak": {"f32_fma": 200e9, "bf16_dot": 400e9},
            "contests": [{"model": "mlp", "mode": "infer",
                          "results": [result("Superstep", 10e-3), result("Superstep int8", 12.34e-6), result("Slow", 90e-3),
                                      result("Fast", 25e-3), result("Superstep", 4e-3, threads=2)]}]} | others


record = {"title": "A table", "entered": "2031-01-01", "machine": "here", "command": "`x`", "columns": ["a", "b"],
          "rows": [["1", "2"]]}


class Figures(unittest.TestCase):
    def test_a_run_becomes_rows(self):
        made = figures.record_of_run(run())
        self.assertEqual(figures.problems(made), [])
        # The floor: 1e9 operations at 200e9 a second and thread are 5 ms, half of our 10.
        self.assertEqual(made["rows"], [
            ["mlp", "infer", "8", "1", "10,000", "Fast", "25,000", "2.50", "50 %", "-", "12.3"],
            ["mlp", "infer", "8", "2", "4,000", "no peer found", "-", "-", "62 %", "-", "-"]])

    def test_the_page_says_when_where_and_how(self):
        text = " ".join(figures.page([figures.record_of_run(run())]).split())
        for part in ("- measured on 2031-02-03", "- machine: 4 processors: Some 9000",
                     "- command: `python3 bench/run.py --models mlp`", "200 GFLOP/s in f32, 400 GFLOP/s in bf16",
                     "| mlp | infer | 8 | 1 | 10,000 | Fast |"):
            self.assertIn(part, text)
        self.assertIn("- entered on 2031-01-01", figures.page([record]))

    def test_what_says_too_little_is_refused(self):
        for member in ("date", "machine", "call", "peak", "contests"):
            without = run()
            del without[member]
            with self.assertRaisesRegex(ValueError, member):
                figures.record_of_run(without)
        with self.assertRaises(ValueError):
            figures.record_of_run(run(command="conv"))

    def test_records_are_whole(self):
        self.assertEqual(figures.problems(record), [])
        for member in ("title", "machine", "command", "entered"):
            self.assertTrue(figures.problems({k: v for k, v in record.items() if k != member}), member)
        self.assertTrue(figures.problems(record | {"rows": [["1"]]}))
        self.assertTrue(figures.problems(record | {"colour": "red"}))

    def test_rows_of_the_readme_are_those_of_a_record(self):
        row = ["mlp", "train", "64"]
        text = "| model | mode |\n| mlp | train | 64 |\nnothing\n| seed | f32 |\n"
        self.assertEqual(figures.strangers(text, [{"rows": [row]}]), [])
        self.assertEqual(figures.strangers(text.replace("64", "65"), [{"rows": [row]}]), ["mlp | train | 65"])


if __name__ == "__main__":
    unittest.main()
