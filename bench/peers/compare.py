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
import tempfile

import environment

HERE = pathlib.Path(__file__).resolve().parent
FAMILIES = ["pytorch", "onnxruntime", "openvino", "jax"]
HOPELESS = 8  # times as slow as the fastest of the precision: not timed further


class Peer:
    """A running contender, spoken to line by line. It prepares itself while others do; wait() is for that to end."""

    def __init__(self, name, command, family="", precision="f32"):
        self.name, self.family, self.precision = name, family, precision
        self.samples, self.ready, self.reason = [], None, None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def wait(self):
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        if kind == "ready":
            self.ready = json.loads(rest)
        else:
            self.process.wait()
            self.reason = "%s %s" % (kind or "ended without a word", rest)

    def pin(self, processors):
        """All threads there are now to these processors: what a contender starts later inherits it."""
        for thread in pathlib.Path("/proc/%d/task" % self.process.pid).iterdir():
            try:
                os.sched_setaffinity(int(thread.name), processors)
            except ProcessLookupError:
                pass

    def ask(self, line):
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # there is no answer then
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        if not kind:
            raise RuntimeError("%s: ended at '%s', status %s" % (self.name, line, self.process.wait()))
        if kind == "error":
            raise RuntimeError("%s: '%s' was answered by '%s %s'" % (self.name, line, kind, rest))
        return rest

    def ports(self, which):
        """Name, type and extents of inputs or outputs; none where the contender does not tell."""
        try:
            found = [port.rsplit(":", 2) for port in self.ask(which).split()]
        except RuntimeError:
            return []
        return [(name, kind, [] if extents == "scalar" else [int(e) for e in extents.split(",")]) for name, kind, extents in found]

    def prepare(self, seconds):
        """Warms up, and settles how many steps a round has: enough for the round to take `seconds`."""
        self.ask("warm %g" % seconds)
        one = max(statistics.median(map(float, self.ask("run 3").split())), 1e-7)
        self.steps = max(1, int(2e-4 / one))  # a sample lasts at least 0.2 ms: the clock does not count
        self.count = max(3, min(1000, int(seconds / (one * self.steps))))

    def round(self):
        self.samples += map(float, self.ask("run %d %d" % (self.count, self.steps)).split())

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.read()
        self.process.wait()


def parse(words=None):
    """Of the command line, or of the words given."""
    parser = argparse.ArgumentParser(description=__doc__)
    numbers = lambda text: [int(n) for n in text.split(",")]
    names = lambda text: text.split(",")
    parser.add_argument("--model", default="braggnn")
    parser.add_argument("--mode", default="train", choices=["infer", "train"])
    parser.add_argument("--batch", type=numbers, default=[1, 64, 512], metavar="N,N,...")
    parser.add_argument("--threads", type=numbers, default=[1, 2], metavar="N,N,...")
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build", help="build folder")
    parser.add_argument("--onnx", help="the model as an ONNX file; of training the whole step, {batch} is filled in. Beside it "
                        "NAME.onnxruntime.onnx and NAME.openvino.xml, where there are any, are the model on bytes")
    parser.add_argument("--graph", help="the model alone as an ONNX file, for JAX, which makes a training step of it")
    parser.add_argument("--peers", type=names, default=FAMILIES, metavar="NAME,NAME,...", help=", ".join(FAMILIES))
    parser.add_argument("--precisions", type=names, default=["f32"], metavar="NAME,NAME,...", help="f32, bf16, int8")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.4, help="of each round of each peer")
    parser.add_argument("--in-turn", action="store_true", help="contenders prepare themselves one after another: large ones together "
                        "take more memory than each does in the end, and disturb a search for the fastest set-up")
    parser.add_argument("--compile", action="store_true", help="let PyTorch try its compilers (slow)")
    parser.add_argument("--search", default="600", help="seconds after which PyTorch tries no further set-up")
    parser.add_argument("--remember", help="file that keeps which of PyTorch's set-ups was fastest")
    parser.add_argument("--plugin", help="the library of a PJRT plug-in that JAX computes on, as ours does with --on pjrt:PATH")
    parser.add_argument("--contender", action="append", default=[], metavar="NAME=COMMAND",
                        help="another program that speaks the protocol; {batch} and {threads} are filled in")
    parser.add_argument("--json", type=pathlib.Path, help="file for every sample")
    return parser.parse_args(words)


def python_of(arguments):
    """The interpreter of tools/setup-peers, else the distribution's."""
    own = arguments.build / "peers" / "venv" / "bin" / "python"
    return str(own) if own.exists() else "/usr/bin/python3"


def model_file(arguments, family, precision, batch):
    """What a peer that reads files gets; None where there is none."""
    if not arguments.onnx:
        return None
    path = pathlib.Path(arguments.onnx.format(batch=batch))
    if precision == "int8":
        path = path.with_suffix(".onnxruntime.onnx" if family == "onnxruntime" else ".openvino.xml")
    return path if path.exists() else None


def of_torch(arguments, precision, batch, common):
    command = [python_of(arguments), HERE / "torch_peer.py", "--model", arguments.model, "--mode", arguments.mode, *common,
               "--precision", precision, "--search", arguments.search]
    return command + (["--compile"] if arguments.compile else []) + (["--remember", arguments.remember] if arguments.remember else [])


def of_onnxruntime(arguments, precision, batch, common):
    settings = ["session.set_denormal_as_zero=1", "session.force_spinning_stop=1",
                "session.intra_op.allow_spinning=%d" % ("1" not in common[-1:])]
    return [arguments.build / "bench" / "onnxruntime_peer", model_file(arguments, "onnxruntime", precision, batch), *common,
            "--precision", precision] + [word for setting in settings for word in ("--set", setting)]


def of_openvino(arguments, precision, batch, common):
    return [python_of(arguments), HERE / "file_peer.py", "--engine", "openvino",
            model_file(arguments, "openvino", precision, batch), *common, "--precision", precision]


def of_jax(arguments, precision, batch, common):
    command = [python_of(arguments), HERE / "jax_peer.py", arguments.graph, "--model", arguments.model, "--mode", arguments.mode, *common,
               "--precision", precision]
    return command + (["--plugin", arguments.plugin] if arguments.plugin else [])


MAKERS = {"pytorch": of_torch, "onnxruntime": of_onnxruntime, "openvino": of_openvino, "jax": of_jax}


def can_be_there(arguments, family, precision, batch):
    """Is this a peer that could serve at all? What is not installed says so itself."""
    training = arguments.mode == "train"
    if family == "onnxruntime":
        return precision in ("f32", "int8") and model_file(arguments, family, precision, batch) is not None
    if family == "openvino":
        return not training and model_file(arguments, family, precision, batch) is not None
    if family == "jax":
        return precision in ("f32", "bf16") and bool(arguments.graph)
    return precision in ("f32", "bf16")


def commands(arguments, batch, threads):
    """Name, command, family and precision of every contender that could be there."""
    common = ["--batch", str(batch), "--threads", str(threads)]
    found = []
    for precision in arguments.precisions:
        for family in arguments.peers:
            if can_be_there(arguments, family, precision, batch):
                command = MAKERS[family](arguments, precision, batch, common)
                found.append(("%s %s" % (family, precision), [str(word) for word in command], family, precision))
    for text in arguments.contender:
        name, _, command = text.partition("=")
        words = shlex.split(command.format(batch=batch, threads=threads))
        precision = words[words.index("--precision") + 1] if "--precision" in words else "f32"
        found.append((name, words, name, precision))
    return found


def start(entries, in_turn=False):
    """All contenders, each when it is ready, or what it says in place of that."""
    peers = []
    for name, command, *kind in entries:
        try:
            peers.append(Peer(name, command, *kind))
        except OSError as error:
            print("%s: cannot be started: %s" % (name, error), file=sys.stderr)
            continue
        if in_turn:
            peers[-1].wait()
    for peer in peers:
        if not in_turn:
            peer.wait()
        if peer.ready is None:
            print("%s: %s" % (peer.name, peer.reason), file=sys.stderr)
    return [peer for peer in peers if peer.ready]


def feed(arguments, peers, folder):
    """The same inputs to all that take them (inputs.py)."""
    import inputs
    file = os.path.join(folder, "input")
    for peer in peers:
        for name, kind, extents in peer.ports("inputs"):
            if extents:
                inputs.array(arguments.model, name, kind, extents).tofile(file)
                peer.ask("load %s %s" % (name, file))


def results(peer, folder):
    """All results of a step in one row, in f64; none where the contender does not tell."""
    import numpy
    file, rows = os.path.join(folder, "output"), []
    peer.ask("run 1")
    for name, kind, _ in peer.ports("outputs"):
        peer.ask("save %s %s" % (name, file))
        rows.append(numpy.fromfile(file, "float32" if kind == "f32" else kind.replace("i", "int")).astype("f8"))
    return numpy.concatenate(rows) if rows else None


def agreement(peers, folder):
    """How far results are from others', root mean square over that of the others: a peer's in a narrower precision from the same
    peer's in f32, every other that reads the model's file from ours."""
    import numpy
    rows = {peer: results(peer, folder) for peer in peers}
    found = {}
    for peer, row in rows.items():
        own = [other for other in peers if other.family == peer.family and other.precision == "f32" and other is not peer]
        ours = [other for other in peers if other.family == "Superstep" and other.precision == "f32" and peer.family != "pytorch"]
        for other in (own or ours)[:1]:
            if row is not None and rows[other] is not None and row.shape == rows[other].shape and other is not peer:
                found[peer] = float(numpy.sqrt(((row - rows[other]) ** 2).mean() / max((rows[other] ** 2).mean(), 1e-30)))
    return found


def those_that(act, peers):
    """Calls `act` with each and leaves out, and says so, the peers that ended: one that the system had no memory for, say. Without
    ours there is nothing to compare."""
    there = []
    for peer in peers:
        try:
            act(peer)
            there.append(peer)
        except RuntimeError as error:
            if peer.family == "Superstep":
                raise
            print(error, file=sys.stderr)
            peer.close()
    return there


def those_with_a_chance(peers):
    """Leaves out, and says so, the peers that three steps show to be far behind the fastest of their precision: they would take
    most of the time."""
    second = {}
    def three_steps(peer):
        second[peer] = min(map(float, peer.ask("run 3").split()))
    peers = those_that(three_steps, peers)
    def limit(peer):
        return HOPELESS * min(second[other] for other in peers if other.precision == peer.precision) + 0.05
    hopeless = [peer for peer in peers if second[peer] > limit(peer) and peer.family != "Superstep"]
    for peer in peers:
        if peer in hopeless:
            print("%s: %.3g s a step, not timed further" % (peer.name, second[peer]), file=sys.stderr)
            peer.close()
    return [peer for peer in peers if peer not in hopeless]


def contest(arguments, batch, threads):
    """All peers at one batch and thread count, round after round in an order drawn anew each time."""
    peers = start(commands(arguments, batch, threads), arguments.in_turn)
    order, processors = random.Random(1), sorted(os.sched_getaffinity(0))[-threads:]
    with tempfile.TemporaryDirectory() as folder:
        try:
            feed(arguments, peers, folder)
        except ImportError:
            print("no numpy: every contender draws inputs of its own", file=sys.stderr)
        for peer in peers:
            peer.pin(processors)
        peers = those_with_a_chance(peers)
        peers = those_that(lambda peer: peer.prepare(arguments.seconds), peers)
        for _ in range(arguments.rounds):
            there = those_that(Peer.round, order.sample(peers, len(peers)))
            peers = [peer for peer in peers if peer in there]
        differs = agreement(peers, folder) if arguments.mode == "infer" else {}
    for peer in peers:
        peer.close()
        peer.differs = differs.get(peer)
    return peers


def row(peer, batch, threads):
    low, middle = min(peer.samples), statistics.median(peer.samples)
    return "%6d %8d  %-24s %14.1f %14.1f %16.2f %9s   %s" % (
        batch, threads, peer.ready["contender"], 1e6 * low, 1e6 * middle, 1e6 * middle / batch,
        "" if peer.differs is None else "%.1e" % peer.differs,
        " ".join("%s=%s" % kv for kv in peer.ready.get("settings", {}).items()))


def record(peer, batch, threads):
    return {"contender": peer.ready["contender"], "family": peer.family, "precision": peer.precision, "batch": batch,
            "threads": threads, "ready": peer.ready, "steps_per_sample": peer.steps, "differs": peer.differs,
            "metrics": {"step_time": {"how": "measured", "unit": "s", "value": statistics.median(peer.samples),
                                      "statistic": "median", "min": min(peer.samples),
                                      "max": max(peer.samples), "samples": peer.samples}}}


def main():
    arguments = parse()
    results, load_before = [], os.getloadavg()
    print("%s, %s, %s" % (arguments.model, arguments.mode, environment.processor_name()))
    print("%6s %8s  %-24s %14s %14s %16s %9s   %s" % ("batch", "threads", "contender", "min us", "median us",
                                                    "us per sample", "differs", "settings"))
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
