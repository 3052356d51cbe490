#!/usr/bin/env python3
"""Measures this machine and writes the report of it: what `make bench` runs, in less than twenty minutes.

Every part is a `superstep` command with a limit of time. A part that reaches its limit is asked to stop, as by
Ctrl-C, and keeps the rows that it has; Ctrl-C here ends the measuring and reports what is there. The table of
peers comes last and is printed.
"""

import argparse
import pathlib
import shutil
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent

# (name, arguments of superstep, limit in s). What finds no room in the time is left out of the report.
PARTS = [
    ("products", "bench gemm --precision f32,bf16,int8 --seconds 1", 100),
    ("rectifiers", "bench relu --precision f32,bf16 --seconds 0.5", 75),
    ("recurrent", "bench lstm --seconds 1", 60),
    ("convolutions", "bench conv --seconds 1", 150),
    ("product sizes", "bench gemm --sweep --mode infer --precision f32,bf16 --seconds 0.5", 75),
    ("BraggNN", "bench braggnn --batch 64,512,2048 --precision f32,bf16 --seconds 1", 90),
    ("BraggNN served", "bench braggnn --mode infer --batch 1 --seconds 1 --load single,offline,poisson", 30),
    ("scaling", "scale braggnn --mode weak --ranks 1,2 --steps 100", 60),
    ("all-reduce", "bench all-reduce --ranks 2 --sizes 4K..64M", 60),
]
PEERS_LIMIT = 360
GRACE = 30  # s for a part to stop after it was asked
ALL = 1140  # s for everything, whatever the parts take to stop; what begins later is left out


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("report"), help="folder of the page")
    parser.add_argument("--published", type=pathlib.Path, help="published rows to set beside ours, in CSV")
    parser.add_argument("--only", help="names of parts, separated by commas")
    parser.add_argument("--scale", type=float, default=1, help="of all limits: 0.1 for a look")
    parser.add_argument("--no-peers", action="store_true", help="leave out the table of peers")
    parser.add_argument("--models", default="braggnn,mlp", help="of the table of peers")
    return parser.parse_args()


def clock(seconds):
    return "%d:%02d" % (seconds // 60, seconds % 60)


class Bar:
    """One line on standard error: how far, how long at most still."""

    def __init__(self, limits):
        self.limits, self.begun, self.done, self.live = limits, time.monotonic(), 0, sys.stderr.isatty()

    def show(self, name, spent):
        left = sum(self.limits[self.done:]) - min(spent, self.limits[self.done])
        full = int(24 * (self.done + min(1, spent / self.limits[self.done])) / len(self.limits))
        return "[%s%s] %d/%d %s, at most %s left" % ("#" * full, "." * (24 - full), self.done + 1, len(self.limits), name, clock(left))

    def draw(self, name, spent, end=False):
        if self.live:
            print("\r\033[K" + self.show(name, spent), end="\n" if end else "", file=sys.stderr, flush=True)
        elif spent == 0:
            print(self.show(name, spent), file=sys.stderr, flush=True)


def run_part(bar, name, command, limit, **options):
    """Runs a command to its end or its limit; returns its exit status, None where it had to be killed."""
    begun, asked = time.monotonic(), False
    child = subprocess.Popen(command, **options)
    try:
        while child.poll() is None:
            spent = time.monotonic() - begun
            bar.draw(name, spent)
            if spent > limit and not asked:
                child.send_signal(signal.SIGINT)
                asked = True
            if spent > limit + GRACE:
                child.kill()
                return None
            time.sleep(0.2)
    except KeyboardInterrupt:  # the child had it from the terminal too, and saves what it has
        try:
            child.wait(timeout=GRACE)
        except subprocess.TimeoutExpired:
            child.kill()
        raise
    bar.draw(name, time.monotonic() - begun, end=True)
    return child.returncode


def measure(arguments, folder):
    chosen = [part for part in PARTS if not arguments.only or part[0] in arguments.only.split(",")]
    if not shutil.which("mpirun"):
        chosen = [part for part in chosen if part[0] not in ("scaling", "all-reduce")]
    peers = not arguments.no_peers and not arguments.only
    limits = [limit * arguments.scale for _, _, limit in chosen] + ([PEERS_LIMIT * arguments.scale] if peers else [])
    print("at most %s" % clock(sum(limits)), file=sys.stderr)
    bar, files = Bar(limits), []
    deadline = time.monotonic() + min(ALL, sum(limits) + GRACE)
    room = lambda limit: max(0, min(limit, deadline - GRACE - time.monotonic()))
    try:
        for (name, words, _), limit in zip(chosen, limits):
            file = folder / (name.replace(" ", "-") + ".json")
            file.unlink(missing_ok=True)
            files.append((name, file))
            if room(limit):
                run_part(bar, name, [arguments.build / "superstep", *words.split(), "--quiet", "--json", file], room(limit),
                         stdout=subprocess.DEVNULL, stderr=open(folder / "errors.txt", "a"))
            bar.done += 1
        if peers and room(limits[-1]):
            run_part(bar, "peers", [sys.executable, HERE / "run.py", "--build", arguments.build, "--models", arguments.models,
                                    "--rounds", "3", "--seconds", "0.2",
                                    "--json", arguments.build / "bench.json"], room(limits[-1]))
    except KeyboardInterrupt:
        print("\nstopped: the report has what was measured", file=sys.stderr)
    return files


def main():
    arguments = parse()
    folder = arguments.build / "report"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "errors.txt").unlink(missing_ok=True)
    begun = time.monotonic()
    files = measure(arguments, folder)
    there = [str(file) for _, file in files if file.exists()]
    for name, file in files:
        if not file.exists():
            print("%s: no row in the time given, or not here: %s says why" % (name, folder / "errors.txt"), file=sys.stderr)
    if not there:
        print("nothing was measured", file=sys.stderr)
        return 1
    report = [arguments.build / "superstep", "report", "--quiet", "--results", ",".join(there), "--out", arguments.out]
    if arguments.published:
        report += ["--published", arguments.published]
    subprocess.run(report, check=True)
    print("measured in %s; the report is %s" % (clock(time.monotonic() - begun), arguments.out / "index.html"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
