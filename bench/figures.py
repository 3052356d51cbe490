#!/usr/bin/env python3
"""Writes docs/figures.md, the one page of measured figures, from the records in bench/figures/.

    python3 bench/figures.py                        the page anew from the records
    python3 bench/figures.py --add build/bench.json a run of bench/run.py --json becomes the record of peers, then the page
    python3 bench/figures.py --check                ends with 1 where the page is not what the records say

A record is a JSON file: {"title", "date", "machine", "command", "about", "columns", "rows", "notes"}. `date` is the day on
which it was measured; where nobody wrote that down, "entered" is the day on which the figures came into the tree. `about`
stands above the table, `notes` below it: lists of paragraphs. What has no table has no columns. The records' files are in
the page's order by name. `make figures` measures every model beside its peers and does --add.
"""

import argparse
import json
import pathlib
import re
import sys
import textwrap

HERE = pathlib.Path(__file__).resolve().parent
RECORDS = HERE / "figures"
PAGE = HERE.parent / "docs" / "figures.md"
README = HERE.parent / "README.md"
PEERS = "10-peers.json"
MEMBERS = {"title", "date", "entered", "machine", "command", "about", "columns", "rows", "notes"}

HEAD = """<!-- made by bench/figures.py from bench/figures/: change a record there, not this page -->
# Figures

Everything that was measured and stands in these pages for a reader to hold against another machine, with its date, its
machine and its command. Where nobody wrote down the day of a measurement, the day on which it came into the tree is given.
How things work is in the pages of [design](design.md). `make figures` measures the first table anew on the machine at hand.
"""

COLUMNS = ["model", "mode", "batch", "threads", "f32", "best peer", "its time", "ratio", "of the floor", "bf16", "int8"]


def problems(record):
    """What is wrong with a record, a line each."""
    found = ["has no " + name for name in ("title", "machine", "command") if not record.get(name)]
    found += ["says neither date nor entered"] if not (record.get("date") or record.get("entered")) else []
    found += ["has an unknown member '%s'" % name for name in sorted(set(record) - MEMBERS)]
    width = len(record.get("columns", []))
    found += ["row %d has %d cells, not %d" % (i, len(row), width)
              for i, row in enumerate(record.get("rows", []), 1) if len(row) != width]
    return found


def section(record):
    """A record as Markdown."""
    when = "measured on %s" % record["date"] if record.get("date") else "entered on %s" % record["entered"]
    facts = ["- %s" % when, "- machine: %s" % record["machine"], "- command: %s" % record["command"]]
    parts = ["## " + record["title"], "\n".join(textwrap.fill(line, 124, subsequent_indent="  ") for line in facts)]
    wrapped = lambda name: [textwrap.fill(text, 124) for text in record.get(name, [])]
    parts += wrapped("about")
    if record.get("columns"):
        line = lambda cells: "| " + " | ".join(cells) + " |"
        parts.append("\n".join([line(record["columns"]), "|---" * len(record["columns"]) + "|", *map(line, record["rows"])]))
    return "\n\n".join(parts + wrapped("notes")) + "\n"


def page(records):
    return "\n".join([HEAD] + [section(record) for record in records])


def number(seconds):
    """Microseconds as the tables have them: 10.2, 1,627."""
    us = 1e6 * seconds
    return "%.1f" % us if us < 1000 else "{:,.0f}".format(us)


def peer_rows(contests, peak):
    """The rows of the table of peers: ours, the best peer, the share of the floor, ours in bf16 and int8."""
    for contest in contests:
        results = contest["results"]
        for threads, batch in sorted({(r["threads"], r["batch"]) for r in results}, key=lambda pair: (pair[0], pair[1])):
            here = {r["contender"]: r for r in results if (r["threads"], r["batch"]) == (threads, batch)}
            time = lambda name: here[name]["metrics"]["step_time"]["value"]
            peers = [name for name in here if not name.startswith("Superstep")]
            best = min(peers, key=time) if peers else None
            ours = time("Superstep")
            floor = here["Superstep"]["ready"]["flops"] / (peak["f32_fma"] * threads)
            reduced = [number(time("Superstep " + name)) if "Superstep " + name in here else "-" for name in ("bf16", "int8")]
            yield [contest["model"], contest["mode"], str(batch), str(threads), number(ours),
                   best or "no peer found", number(time(best)) if best else "-",
                   "%.2f" % (time(best) / ours) if best else "-", "%.0f %%" % (100 * floor / ours), *reduced]


def record_of_run(run):
    """The record that a result of bench/run.py --json becomes. Raises ValueError where it says too little."""
    missing = [name for name in ("date", "machine", "call", "peak", "contests") if name not in run]
    if run.get("command") != "bench" or missing:
        raise ValueError("is no result of bench/run.py --json" + (": it has no " + ", ".join(missing) if missing else ""))
    peak = ", ".join("%.0f GFLOP/s in %s" % (1e-9 * value, name.split("_")[0]) for name, value in run["peak"].items())
    return {"title": "Beside its peers", "date": run["date"], "machine": run["machine"], "command": "`%s`" % run["call"],
            "about": ["Medians of interleaved rounds, microseconds a step; training is forward, loss, backward and Adam. Ratio: the "
                      "best peer's time over ours in f32. Of the floor: the share of the multiply-add peak measured in the same run "
                      "(%s a thread) that the step's own operations reach; Winograd's algorithm takes fewer "
                      "multiplications than are counted, so that shares above 100 %% are its." % peak],
            "columns": COLUMNS, "rows": list(peer_rows(run["contests"], run["peak"]))}


def read_records(folder):
    """The records in order of their files' names; raises ValueError naming a file that is none."""
    records = []
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text())
        wrong = problems(record)
        if wrong:
            raise ValueError("%s: %s" % (path.name, "; ".join(wrong)))
        records.append(record)
    return records


def strangers(readme, records):
    """Rows of the README's table of peers that are not rows of the record."""
    known = {tuple(row) for record in records for row in record.get("rows", [])}
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|"))
            for line in readme.split("\n") if re.match(r"\| \S+ \| (train|infer) \|", line)]
    return [" | ".join(row) for row in rows if row not in known]


def check(records):
    lines = ["README.md: the row '%s' is in no record" % row for row in strangers(README.read_text(), records)]
    if not PAGE.exists() or PAGE.read_text() != page(records):
        lines.append("docs/figures.md is not what bench/figures/ says: run python3 bench/figures.py")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--add", type=pathlib.Path, metavar="FILE", help="a result of bench/run.py --json")
    parser.add_argument("--check", action="store_true", help="write nothing; 1 where the page is another")
    arguments = parser.parse_args()
    try:
        if arguments.add:
            record = record_of_run(json.loads(arguments.add.read_text()))
            (RECORDS / PEERS).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        records = read_records(RECORDS)
    except (OSError, ValueError, KeyError) as error:
        print("figures: %s%s" % ("%s: " % arguments.add if arguments.add else "", error), file=sys.stderr)
        return 1
    if arguments.check:
        lines = check(records)
        print("\n".join(lines) or "docs/figures.md is what its %d records say" % len(records))
        return 1 if lines else 0
    PAGE.write_text(page(records))
    print("%s: %d records" % (PAGE.name, len(records)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
