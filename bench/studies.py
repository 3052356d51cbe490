#!/usr/bin/env python3
"""Writes the table of studies in docs/studies.md from what the program says of them.

    python3 bench/studies.py build/superstep            the table anew
    python3 bench/studies.py build/superstep --check    ends with 1 where the page is not what the program says

The table stands between two marks: a study a row, with how many of its cells are published, predicted, measured here and
executed on the machine model.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs" / "studies.md"
BEGIN, END = "<!-- studies: made by bench/studies.py -->", "<!-- end of studies -->"


def studies(program):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "list.json"
        subprocess.run([program, "study", "list", "--quiet", "--json", str(file)], check=True)
        return json.loads(file.read_text())["config"]["studies"]


def table(listed):
    count = lambda number: str(number) if number else "-"
    lines = ["| of | study | cells | published | predicted | measured here | executed | not published in numbers |",
             "|---|---|---|---|---|---|---|---|"]
    for each in listed:
        place = "%s, %s" % (each["paper"], each["place"])
        counts = [count(each[name]) for name in ("cells", "published", "predicted", "measured", "executed")]
        lines.append("| %s | `%s` | %s | %s |" % (place, each["name"], " | ".join(counts), each["unpublished"] or "-"))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    text = PAGE.read_text()
    begin, end = text.index(BEGIN), text.index(END)
    new = text[:begin] + BEGIN + "\n" + table(studies(arguments.program)) + "\n" + text[end:]
    if arguments.check:
        if new != text:
            sys.exit("docs/studies.md is not what the program says: python3 bench/studies.py PROGRAM")
        return
    PAGE.write_text(new)


main()
