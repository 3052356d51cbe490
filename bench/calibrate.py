#!/usr/bin/env python3
"""Fits the open constants of stacks (machines/*.toml, [stacks.NAME]) over measured rows, and says what the fit is worth.

    bench/calibrate.py ROWS.csv                 constants as in the files and as fitted; errors of all rows, of every workload and of
                                                every machine that was left out of the fit
    bench/calibrate.py ROWS.csv --check 0.1     ... and fails where a file's constant is off the fitted one by more than a tenth

ROWS.csv has the columns of published rows (docs/machines.md); only rows of throughput on machines that run kernel by kernel count.
The data are not part of the project: the public tables of NVIDIA's DeepLearningExamples (ResNet-50, BERT on V100 and A100) were
taken. Constants are shared by all rows of a stack; there is none of a row, a workload or a machine.
"""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def fitted(text):
    """(stack, constant) -> value in the files, fitted value, from the printed table."""
    number = r"(\d[\d.e+-]*)"
    line = re.compile(rf"^\s*\|?\s*([a-z-]+)\s+\|?\s*([a-z_]+)\s+\|?\s*{number}\s+\|?\s*{number}\s+\|?\s*{number} to {number}")
    found = {}
    for one in text.splitlines():
        if match := line.match(one):
            found[match[1], match[2]] = float(match[3]), float(match[4])
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--check", type=float, metavar="SHARE")
    parser.add_argument("--program", default=str(ROOT / "build/superstep"))
    arguments = parser.parse_args()
    done = subprocess.run([arguments.program, "validate", str(arguments.rows), "--fit", str(arguments.rounds)],
                          stdout=subprocess.PIPE, text=True)
    print(done.stdout, end="")
    if done.returncode or arguments.check is None:
        return done.returncode
    constants = fitted(done.stdout)
    off = [f"{stack} {name}: {file:g} in the file, {fit:g} fitted" for (stack, name), (file, fit) in constants.items()
           if abs(file - fit) > arguments.check * max(file, fit)]
    print("\n".join(off) if off else f"{len(constants)} constants of the files are what the rows say")
    return 1 if off or not constants else 0


if __name__ == "__main__":
    sys.exit(main())
