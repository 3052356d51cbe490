#!/usr/bin/env python3
"""How much sooner a step of ours ends on more threads: the same step on one thread and on others, in turn.

    bench/scaling.py                                  every model of run.py, training and inference, one thread and two
    bench/scaling.py --models braggnn,unet-64 --threads 1,2,4 --modes train --json scaling.json

Each number of threads is a contender of its own (peers/README.md), a round of this one, a round of that one. Figures of
processors that others use meanwhile say nothing of threads: the load before each row stands beside it.
"""

import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile
import time

import run

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "peers"))
import compare


def parse(words=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = lambda text: text.split(",")
    parser.add_argument("--build", type=pathlib.Path, default=run.HERE.parent / "build")
    parser.add_argument("--models", type=names, default=list(run.BATCHES), metavar="NAME,NAME,...")
    parser.add_argument("--modes", type=names, default=["train", "infer"], metavar="NAME,...", help="train, infer")
    parser.add_argument("--precisions", type=names, default=["f32", "bf16"], metavar="NAME,...", help="f32, bf16, int8")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2], metavar="N,N,...",
                        help="what the first takes is held against the others")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.15, help="of each round of each number of threads")
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no further row is begun")
    parser.add_argument("--json", type=pathlib.Path, help="file for the rows, written anew after each; those that it has stay and "
                        "are not measured again")
    return parser.parse_args(words)


def contenders(arguments, model, mode, precision):
    command = "%s %s --mode %s --precision %s --batch {batch} --threads {threads}" % (
        arguments.build / "bench" / "superstep_contender", " ".join(run.of_model(model)), mode, precision)
    settings = compare.parse(["--model", model, "--mode", mode, "--contender", "Superstep=" + command])
    settings.peers = []
    batch = run.BATCHES.get(model, 8)
    return batch, compare.start([entry for count in arguments.threads for entry in compare.commands(settings, batch, count)])


def measured(arguments, model, mode, precision):
    """The row of a model: what a median step takes on each number of threads, in seconds. None where it cannot be had."""
    load = os.getloadavg()[0]
    batch, peers = contenders(arguments, model, mode, precision)
    if len(peers) < len(arguments.threads):
        return None
    with tempfile.TemporaryDirectory() as folder:
        try:
            compare.feed(argparse.Namespace(model=model), peers, folder)
        except ImportError:
            print("no numpy: inputs are drawn by the contender", file=sys.stderr)
    for peer in peers:
        peer.prepare(arguments.seconds)
    for _ in range(arguments.rounds):
        for peer in peers:
            peer.round()
    for peer in peers:
        peer.close()
    return {"model": model, "mode": mode, "precision": precision, "batch": batch, "threads": arguments.threads,
            "seconds": [statistics.median(peer.samples) for peer in peers], "load": load}


def line(row):
    first = row["seconds"][0]
    return "%-20s %-6s %-5s %5d  %s  %s" % (
        row["model"], row["mode"], row["precision"], row["batch"], " ".join("%10.1f" % (1e6 * s) for s in row["seconds"]),
        " ".join("%.2f" % (first / s) for s in row["seconds"][1:]))


def key(row):
    return [row[name] for name in ("model", "mode", "precision", "threads")]


def main():
    arguments = parse()
    rows = json.loads(arguments.json.read_text()) if arguments.json and arguments.json.exists() else []
    there, end = [key(row) for row in rows], time.monotonic() + 60 * arguments.minutes
    print("%-20s %-6s %-5s %5s  %s  times as fast" % ("model", "mode", "type", "batch", " ".join(
        "%2d thr. us" % count for count in arguments.threads)))
    for mode in arguments.modes:
        for model in arguments.models:
            for precision in arguments.precisions:
                if [model, mode, precision, arguments.threads] in there:
                    continue
                if time.monotonic() > end:
                    print("time is up: the table has what was measured", file=sys.stderr)
                    return 0
                row = measured(arguments, model, mode, precision)
                if not row:
                    continue
                print(line(row), flush=True)
                rows.append(row)
                if arguments.json:
                    arguments.json.write_text(json.dumps(rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
