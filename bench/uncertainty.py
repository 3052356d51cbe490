#!/usr/bin/env python3
"""Where the model uncertainties of docs/machines.md come from: the factor within which 80 % of predictions lie.

    bench/uncertainty.py --executed                         programs executed over planned (bench/figures/76-executed.json), around
                                                            their median
    bench/uncertainty.py --operators GC200.csv GC2.csv      operators of two IPUs: each one's errors, those of the ratio of the two
                                                            machines on operators that both have, and how the errors correlate
    bench/uncertainty.py --precisions ROWS.csv              one workload and machine in two precisions: errors of the ratio

Errors are of logarithms. The files have the columns of published rows and of operators (docs/machines.md); none of the papers' rows
belongs in them. They are predicted by `superstep validate FILE --verbose`.
"""

import argparse
import csv
import itertools
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HELD = 0.8  # as intervals


def quantile(values, share):
    """As the program's: between the two nearest."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def say(what, errors):
    if not errors:
        sys.exit(f"uncertainty.py: {what}: the files have no such rows that are predicted")
    print(f"{what}: 80 % of {len(errors)} within {quantile([abs(e) for e in errors], HELD):.3f}")


def predictions(program, path):
    """name: (published, predicted) of the rows that are covered."""
    done = subprocess.run([program, "validate", path, "--verbose"], stdout=subprocess.PIPE, text=True)
    if done.returncode:  # which has said why
        sys.exit(done.returncode)
    line = re.compile(r"^(\S+)\s+\S+\s+([\d.]+(?:e[+-]?\d+)?)\s+([\d.]+(?:e[+-]?\d+)?)\s+\S+\s+[+-][\d.]+ %")
    return {m[1]: (float(m[2]), float(m[3])) for m in map(line.match, done.stdout.splitlines()) if m}


def error(pair):
    return math.log(pair[1] / pair[0])


def executed():
    record = json.loads((ROOT / "bench/figures/76-executed.json").read_text())
    column = record["columns"].index("over predicted")
    ratios = [math.log(float(row[column])) for row in record["rows"]]
    middle = statistics.median(ratios)
    say(f"programs executed over planned, around their median of {math.exp(middle):.2f}", [r - middle for r in ratios])


def operators(program, paths):
    first, second = (predictions(program, path) for path in paths)
    for path, rows in zip(paths, (first, second)):
        say(path.name, [error(pair) for pair in rows.values()])
    common = sorted(first.keys() & second.keys())
    a, b = [error(first[name]) for name in common], [error(second[name]) for name in common]
    say("their ratio, of operators that both have", [x - y for x, y in zip(a, b)])
    print(f"errors of the two correlate by {statistics.correlation(a, b):.2f}")


def precisions(program, path):
    found = predictions(program, path)
    alike = ("source", "workload", "mode", "machine", "units", "framework", "metric", "unit")
    with open(path, newline="") as file:
        rows = [row for row in csv.DictReader(line for line in file if not line.startswith("#"))
                if row["id"] in found and row["metric"] == "throughput"]
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in alike), []).append(row)
    errors = []
    for group in groups.values():
        for one, other in itertools.combinations(group, 2):
            if one["precision"] != other["precision"] and one["global_batch"] == other["global_batch"]:
                errors.append(error(found[one["id"]]) - error(found[other["id"]]))
    say("ratios of two precisions, equal batches", errors)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--executed", action="store_true")
    parser.add_argument("--operators", nargs=2, type=pathlib.Path, metavar="CSV")
    parser.add_argument("--precisions", type=pathlib.Path, metavar="CSV")
    parser.add_argument("--program", default=str(ROOT / "build/superstep"))
    a = parser.parse_args()
    if not (a.executed or a.operators or a.precisions):
        parser.error("say what of: --executed, --operators, --precisions")
    if a.executed:
        executed()
    if a.operators:
        operators(a.program, a.operators)
    if a.precisions:
        precisions(a.program, a.precisions)


if __name__ == "__main__":
    sys.exit(main())
