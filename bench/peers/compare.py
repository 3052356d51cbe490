#!/usr/bin/env python3
"""Times the peers that are installed, interleaved, for every batch and thread count (README.md)."""

import argparse
import datetime
import json
import os
import pathlib
import random
import shlex
import statistics
import subprocess
import sys

import environment

HERE = pathlib.Path(__file__).resolve().parent


class Peer:
    """A running contender, spoken to line by line."""

    def __init__(self, name, command):
        self.name, self.samples, self.ready = name, [], None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        if kind == "ready":
            self.ready = json.loads(rest)
        else:
            self.process.wait()
            self.reason = "%s %s" % (kind or "ended without a word", rest)

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        if kind in ("", "error"):
            raise RuntimeError("%s: '%s' was answered by '%s %s'" % (self.name, line, kind, rest))
        return rest

    def prepare(self, seconds):
        """Warms up, and settles how many steps a round has: enough for the round to take `seconds`."""
        self.ask("warm %g" % seconds)
        one = max(statistics.median(map(float, self.ask("run 3").split())), 1e-7)
        self.steps = max(1, int(2e-4 / one))  # a sample lasts at least 0.2 ms: the clock does not count
        self.count = max(3, min(1000, int(seconds / (one * self.steps))))

    def round(self):
        self.samples += map(float, self.ask("run %d %d" % (self.count, self.steps)).split())

    def close(self):
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.wait()


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = lambda text: [int(n) for n in text.split(",")]
    parser.add_argument("--model", default="braggnn")
    parser.add_argument("--mode", default="train", choices=["infer", "train"])
    parser.add_argument("--batch", type=numbers, default=[1, 64, 512], metavar="N,N,...")
    parser.add_argument("--threads", type=numbers, default=[1, 2], metavar="N,N,...")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build", help="build folder")
    parser.add_argument("--onnx", help="the model as an ONNX file, for ONNX Runtime; of training the whole step, "
                        "{batch} is filled in")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="of each round of each peer")
    parser.add_argument("--compile", action="store_true", help="let PyTorch try torch.compile (slow)")
    parser.add_argument("--contender", action="append", default=[], metavar="NAME=COMMAND",
                        help="another program that speaks the protocol; {batch} and {threads} are filled in")
    parser.add_argument("--json", type=pathlib.Path, help="file for every sample")
    return parser.parse_args()


def commands(arguments, batch, threads):
    """Name and command of every peer that could be there."""
    settings = ["--model", arguments.model, "--mode", arguments.mode, "--batch", str(batch),
                "--threads", str(threads)] + (["--compile"] if arguments.compile else [])
    script = str(HERE / "torch_peer.py")
    found = [("PyTorch (packaged)", ["/usr/bin/python3", script] + settings)]
    newer = arguments.build / "peers" / "venv" / "bin" / "python"
    if newer.exists():
        found.append(("PyTorch (newer)", [str(newer), script] + settings))
    onnx = arguments.onnx and arguments.onnx.format(batch=batch)
    if onnx and pathlib.Path(onnx).exists():
        found.append(("ONNX Runtime", [str(arguments.build / "bench" / "onnxruntime_peer"), onnx,
                                       "--batch", str(batch), "--threads", str(threads)]))
    for text in arguments.contender:
        name, _, command = text.partition("=")
        found.append((name, shlex.split(command.format(batch=batch, threads=threads))))
    return found


def start(name, command):
    try:
        peer = Peer(name, command)
    except OSError as error:
        print("%s: cannot be started: %s" % (name, error), file=sys.stderr)
        return None
    if peer.ready is None:
        print("%s: %s" % (name, peer.reason), file=sys.stderr)
        return None
    return peer


def contest(arguments, batch, threads):
    """All peers at one batch and thread count, round after round in an order drawn anew each time."""
    peers = [peer for peer in (start(*entry) for entry in commands(arguments, batch, threads)) if peer]
    order = random.Random(1)
    for peer in peers:
        peer.prepare(arguments.seconds)
    for _ in range(arguments.rounds):
        for peer in order.sample(peers, len(peers)):
            peer.round()
    for peer in peers:
        peer.close()
    return peers


def row(peer, batch, threads):
    low, middle = min(peer.samples), statistics.median(peer.samples)
    return "%6d %8d  %-24s %14.1f %14.1f %16.2f   %s" % (
        batch, threads, peer.ready["contender"], 1e6 * low, 1e6 * middle, 1e6 * middle / batch,
        " ".join("%s=%s" % kv for kv in peer.ready.get("settings", {}).items()))


def record(peer, batch, threads):
    return {"contender": peer.ready["contender"], "batch": batch, "threads": threads, "ready": peer.ready,
            "steps_per_sample": peer.steps,
            "metrics": {"step_time": {"how": "measured", "unit": "s", "value": statistics.median(peer.samples),
                                      "statistic": "median", "min": min(peer.samples),
                                      "max": max(peer.samples), "samples": peer.samples}}}


def main():
    arguments = parse()
    results, load_before = [], os.getloadavg()
    print("%s, %s, %s" % (arguments.model, arguments.mode, environment.processor_name()))
    print("%6s %8s  %-24s %14s %14s %16s   %s" % ("batch", "threads", "contender", "min us", "median us",
                                                "us a sample", "settings"))
    for threads in arguments.threads:
        for batch in arguments.batch:
            for peer in contest(arguments, batch, threads):
                print(row(peer, batch, threads), flush=True)
                results.append(record(peer, batch, threads))
    if arguments.json:
        arguments.json.write_text(json.dumps({
            "schema": "superstep-result/1", "command": "peers", "created": datetime.datetime.now().astimezone().isoformat(),
            "workload": {"name": arguments.model, "mode": arguments.mode}, "results": results,
            "environment": {"host": {"cpu": environment.processor_name(), "load_before": load_before,
                                     "load_after": os.getloadavg()}}}, indent=1) + "\n")
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
