#!/usr/bin/env python3
"""Writes docs/figures.md, the one page of measured figures, from the records in bench/figures/.

    python3 bench/figures.py                        the page anew from the records
    python3 bench/figures.py --add build/bench.json a run of bench/run.py --json becomes the records of peers, then the page
    python3 bench/figures.py --check                ends with 1 where the page is not what the records say

A record is a JSON file: {"title", "date", "machine", "command", "about", "columns", "rows", "notes"}. `date` is the day on
which it was measured; where nobody wrote that down, "entered" is the day on which the figures came into the tree. `about`
stands above the table, `notes` below it: lists of paragraphs. What has no table has no columns. The records' files are in
the page's order by name. docs/speed.md shows tables of records too, between marks that name the record's file.
`make figures` measures every model beside its peers and does --add.
"""

import argparse
import json
import pathlib
import re
import sys
import textwrap

import peer_tables

HERE = pathlib.Path(__file__).resolve().parent
RECORDS = HERE / "figures"
PAGE = HERE.parent / "docs" / "figures.md"
SHOWING = [HERE.parent / "docs" / "speed.md"]  # pages that show some of the tables
PEERS, NARROW = "10-peers.json", "11-peers-narrow.json"
MEMBERS = {"title", "date", "entered", "machine", "command", "about", "columns", "rows", "notes"}

HEAD = """<!-- made by bench/figures.py from bench/figures/: change a record there, not this page -->
# Figures

Everything that was measured and stands in these pages for a reader to hold against another machine, with its date, its
machine and its command. Where nobody wrote down the day of a measurement, the day on which it came into the tree is given.
How things work is in the pages of [design](design.md). `make figures` measures the first table anew on the machine at hand.
"""

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


ABOUT = ("Medians of interleaved rounds, microseconds per step, every contender on the same processors; training is forward, loss, "
         "backward and Adam. Floor: the step's own operations at the multiply-add peak measured in the same run (%s a thread). Ratio: the best "
         "peer's time over ours; where it is below 1, that peer is ahead. Of the floor: the floor over our time; Winograd's algorithm takes "
         "fewer multiplications than are counted, so that shares above 100 %% are its. Peers: %s, set up as well as we know how "
         "([bench/peers/README.md](../bench/peers/README.md)); load of the machine before the rows: %s.")
ABOUT_NARROW = ("The same run: ours in bf16 and int8, the fastest peer in the same type, f32 over it: how many times as fast as our own f32. "
                "Differs: root mean square of the difference from the same program's results in f32, as a share of theirs; models with their "
                "first, random weights. Peers' int8 is by their own tools (NNCF; ONNX Runtime's static quantization).")


def without_file(call):
    """Where the result was written is of that machine alone."""
    return re.sub(r" --json \S+", "", call)


def records_of_run(run):
    """The records, by the names of their files, that a result of bench/run.py --json becomes. Raises ValueError where it says
    too little."""
    missing = [name for name in ("date", "machine", "call", "peak", "contests") if name not in run]
    if run.get("command") != "bench" or missing:
        raise ValueError("is no result of bench/run.py --json" + (": it has no " + ", ".join(missing) if missing else ""))
    contests = run["contests"]
    peak = ", ".join("%.0f GFLOP/s in %s" % (1e-9 * value, name.split("_")[0]) for name, value in run["peak"].items())
    loads = [contest["load"] for contest in contests if "load" in contest]
    load = "%.1f to %.1f" % (min(loads), max(loads)) if loads else "not known"
    peers = ", ".join(peer_tables.versions(contests)) or "none"
    head = {"date": run["date"], "machine": run["machine"], "command": "`%s`" % without_file(run["call"])}
    f32 = {"title": "Beside its peers", **head, "about": [ABOUT % (peak, peers, load)], "columns": peer_tables.COLUMNS,
           "rows": list(peer_tables.rows(contests, run["peak"])), "notes": ["; ".join(peer_tables.means(contests)) + "."]}
    narrow = {"title": "Beside its peers in narrower types", **head, "about": [ABOUT_NARROW], "columns": peer_tables.NARROW_COLUMNS,
              "rows": list(peer_tables.narrow_rows(contests))}
    return {PEERS: f32, NARROW: narrow}


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


def table_of(record):
    """A record's table as pages have it that show it too, with a line of what is in it."""
    line = lambda cells: "| " + " | ".join(cells) + " |"
    table = [line(record["columns"]), "|---" * len(record["columns"]) + "|", *map(line, record["rows"])]
    facts = "Measured on %s, %s." % (record["date"], record["machine"]) if record.get("date") else ""
    texts = record.get("about", []) + record.get("notes", [])
    wrapped = [textwrap.fill(text.replace("../bench", "bench"), 124) for text in [facts] + texts if text]
    return "\n\n".join(wrapped[:2] + ["\n".join(table)] + wrapped[2:])


MARK = re.compile(r"(<!-- (\S+\.json): written by bench/figures.py -->\n).*?(<!-- end -->)", re.DOTALL)


def with_tables(text, page, folder=RECORDS):
    """A page with what its records say between its marks."""
    up = "../bench" if page.parent.name == "docs" else "bench"
    def filled(found):
        record = json.loads((folder / found[2]).read_text())
        return found[1] + table_of(record).replace("](bench", "](" + up) + "\n" + found[3]
    return MARK.sub(filled, text)


def check(records):
    lines = ["%s: a table is not what bench/figures/ says: run python3 bench/figures.py" % page.name
             for page in SHOWING if with_tables(page.read_text(), page) != page.read_text()]
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
            for name, record in records_of_run(json.loads(arguments.add.read_text())).items():
                (RECORDS / name).write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n")
        records = read_records(RECORDS)
    except (OSError, ValueError, KeyError) as error:
        print("figures: %s%s" % ("%s: " % arguments.add if arguments.add else "", error), file=sys.stderr)
        return 1
    if arguments.check:
        lines = check(records)
        print("\n".join(lines) or "docs/figures.md is what its %d records say" % len(records))
        return 1 if lines else 0
    PAGE.write_text(page(records))
    for shown in SHOWING:
        shown.write_text(with_tables(shown.read_text(), shown))
    print("%s: %d records" % (PAGE.name, len(records)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
