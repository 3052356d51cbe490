#!/usr/bin/env python3
"""Times the files of export_models.py in Superstep, ONNX Runtime and OpenVINO, interleaved on the same processors.

    time_models.py FOLDER --json models.json                all files, on 1 and 2 threads, in f32
    time_models.py FOLDER --only bert,unet --threads 1      some of them
    time_models.py FOLDER --json models.json --for 280      goes on with what the JSON file has not, ends after so many seconds

A file is opened by every engine in a process of its own; then rounds of each take turns in an order drawn anew, and the
median of a round's means is an engine's time. The results are held against PyTorch's: the largest difference as a share of
the largest result. Memory is what the process grew by at most from before the file was opened until after the first run.
A file that an engine refuses has its reason in place of a time. Several calls add to one JSON file; page.py makes a page of it.
"""
import argparse
import datetime
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

import numpy

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
import environment
import file_peer
import page

ROUNDS, ROUND_SECONDS = 7, 0.025


class Forked:
    """A peer of file_peer.py in a child of this process, which has its library already: opening it takes no import."""

    def __init__(self, engine, path, threads, arrays):
        (child_in, write), (read, child_out) = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                serve(engine, path, threads, arrays, os.fdopen(child_in), os.fdopen(child_out, "w"))
            finally:
                os._exit(0)
        os.close(child_in), os.close(child_out)
        self.lines, self.out = os.fdopen(read), os.fdopen(write, "w")
        self.ready = json.loads(self.lines.readline() or '{"failure": "ended without a word"}')

    def ask(self, **words):
        self.out.write(json.dumps(words) + "\n")
        self.out.flush()
        return json.loads(self.lines.readline())

    def close(self):
        if "failure" not in self.ready:  # a child beside it holds the pipe too: its end is not seen
            self.out.write("{}\n")
        self.out.close()
        self.lines.close()
        os.waitpid(self.pid, 0)


def serve(engine, path, threads, arrays, lines, out):
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    def say(**words):
        out.write(json.dumps(words) + "\n")
        out.flush()
    before = file_peer.resident("VmRSS")
    try:
        model = file_peer.ENGINES[engine](path, 1, threads, "f32", {})
        for i, (name, kind, _) in enumerate(model.inputs()):
            model.load(name, arrays["input%d" % i].astype(file_peer.NUMPY[kind]))
        model.step()
        memory = file_peer.resident("VmHWM") - before
        say(contender=model.name, memory=memory, error=disagreement(model.results().values(), arrays))
    except Exception as error:
        return say(failure=" ".join(str(error).split())[:300])
    for line in lines:
        words = json.loads(line)
        if not words:
            return
        begin = time.perf_counter()
        for _ in range(words["steps"]):
            model.step()
        say(seconds=(time.perf_counter() - begin) / words["steps"])


class Ours:
    """superstep_contender, the process of its own that it is."""

    def __init__(self, build, path, threads, arrays):
        self.process = subprocess.Popen([str(build / "bench" / "superstep_contender"), "--model", str(path), "--mode", "infer",
                                         "--batch", "0", "--threads", str(threads)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        if kind != "ready":
            self.ready = {"failure": rest[:300] or "ended without a word"}
            return
        self.ready = json.loads(rest)
        try:
            self.exchange(arrays)
        except RuntimeError as error:
            self.ready = {"failure": str(error)}

    def say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        if kind in ("", "error"):
            raise RuntimeError("%s: %s" % (line, rest or "ended without a word"))
        return rest

    def exchange(self, arrays):
        """Gives the inputs, and takes the results of one run."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "array")
            for i, port in enumerate(self.say("inputs").split()):
                name, kind, _ = port.rsplit(":", 2)
                arrays["input%d" % i].astype(file_peer.NUMPY[kind]).tofile(path)
                self.say("load %s %s" % (name, path))
            self.say("run 1")
            self.ready["memory"] = int(self.say("memory"))
            results = []
            for port in self.say("outputs").split():
                name, kind, extents = port.rsplit(":", 2)
                self.say("save %s %s" % (name, path))
                shape = [] if extents == "scalar" else [int(e) for e in extents.split(",")]
                results.append(numpy.fromfile(path, file_peer.NUMPY[kind]).reshape(shape))
        self.ready["error"] = disagreement(results, arrays)

    def ask(self, steps):
        return {"seconds": float(self.say("run 1 %d" % steps).split()[0])}

    def close(self):
        if self.process.poll() is None and "failure" not in self.ready:  # children of ours hold its input open: it sees no end
            self.say("quit")
        self.process.kill()
        self.process.wait()


def disagreement(results, arrays):
    """The largest difference from PyTorch's results as a share of the largest one."""
    worst, results = 0.0, list(results)
    if len(results) != sum(name.startswith("output") for name in arrays):
        raise RuntimeError("gives %d results" % len(results))
    for i, result in enumerate(results):
        expected = arrays["output%d" % i]
        if expected.shape != result.shape:
            raise RuntimeError("result %d is %s, not %s" % (i, result.shape, expected.shape))
        expected, result = expected.astype("f8"), result.astype("f8")
        finite = numpy.isfinite(expected)
        if not (finite == numpy.isfinite(result)).all():
            return None
        if finite.any():
            worst = max(worst, float(numpy.abs(expected - result)[finite].max() / max(numpy.abs(expected[finite]).max(), 1e-6)))
    return worst


def contest(contenders):
    """Seconds per run of each, by rounds that take turns."""
    order = random.Random(1)
    steps = {}
    for name, contender in contenders.items():
        contender.ask(steps=2)
        one = min(contender.ask(steps=1)["seconds"] for _ in range(3))
        steps[name] = max(1, min(1000, int(ROUND_SECONDS / max(one, 1e-6))))
    samples = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name in order.sample(sorted(contenders), len(contenders)):
            samples[name].append(contenders[name].ask(steps=steps[name])["seconds"])
    return {name: {"seconds": statistics.median(times), "least": min(times)} for name, times in samples.items()}


def measure(path, threads, arrays, build, engines):
    """What each engine did with a file on so many threads."""
    opened = {}
    for name in engines:
        opened[name] = Ours(build, path, threads, arrays) if name == "superstep" else Forked(name, path, threads, arrays)
    found = {name: {key: value for key, value in contender.ready.items() if key in ("failure", "memory", "error", "contender")}
             for name, contender in opened.items()}
    ready = {name: contender for name, contender in opened.items() if "failure" not in contender.ready}
    try:
        for name, times in contest(ready).items():
            found[name].update(times)
    finally:
        for contender in opened.values():
            contender.close()
    return found


def line(name, exporter, threads, found):
    def told(engine):
        one = found.get(engine, {})
        return "%10.1f" % (1e6 * one["seconds"]) if "seconds" in one else "%10s" % "refused"
    ratio = page.ratio_of(found)
    return "%-26s %-6s %d  %s  %s" % (name, exporter, threads, "  ".join(told(e) for e in page.ENGINES),
                                      "%.2f" % ratio if ratio else found.get("superstep", {}).get("failure", "")[:90])


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    parser.add_argument("--only", default="", help="texts, one of which is in the name")
    parser.add_argument("--exporter", default="dynamo,traced")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--engines", default="superstep,onnxruntime,openvino")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--for", dest="seconds", type=float, help="begin no further file after so many, and leave out those that the JSON file has")
    return parser.parse_args()


def key(row):
    return row["name"], row["exporter"], row["threads"]


def rounded(value):
    """Four digits are more than a time has."""
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return float("%.4g" % value) if isinstance(value, float) else value


def kept(path):
    return json.loads(path.read_text())["rows"] if path.exists() else []


def keep(path, rows):
    """Adds to what the file has, a line a row: one that was measured again replaces the one before."""
    fresh = {key(row) for row in rows}
    rows = [row for row in kept(path) if key(row) not in fresh] + [rounded(row) for row in rows]
    head = {"schema": "superstep-models/1", "machine": environment.processor_name(),
            "created": datetime.datetime.now().astimezone().isoformat(timespec="minutes")}
    path.write_text(json.dumps(head)[:-1] + ', "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")


def wanted(arguments):
    """(model, exporter, path, threads) of all that is to be measured."""
    texts = [text for text in arguments.only.split(",") if text]
    done = {key(row) for row in kept(arguments.json)} if arguments.seconds and arguments.json else ()
    for model in json.loads((arguments.folder / "index.json").read_text())["models"]:
        if texts and not any(text in model["name"] for text in texts):
            continue
        for exporter, file in model["files"].items():
            if "file" not in file or exporter not in arguments.exporter.split(","):
                continue
            for threads in map(int, arguments.threads.split(",")):
                if (model["name"], exporter, threads) not in done:
                    yield model, exporter, arguments.folder / file["file"], threads


def main():
    arguments = parse()
    engines = arguments.engines.split(",")
    for name in set(engines) & set(file_peer.ENGINES):
        __import__(name)
    rows, begin = [], time.time()
    print("%-26s %-6s %s  %s" % ("", "", "t", "  ".join("%10s" % e for e in page.ENGINES)))
    for model, exporter, path, threads in wanted(arguments):
        if arguments.seconds and time.time() - begin > arguments.seconds:
            print("ends here: call it again to go on")
            break
        arrays, load = dict(numpy.load(arguments.folder / (model["name"] + ".npz"))), os.getloadavg()[0]
        found = measure(path, threads, arrays, arguments.build, engines)
        for one in found.values():  # a page tells of no folder
            if "failure" in one:
                one["failure"] = one["failure"].replace(str(arguments.folder) + os.sep, "")
        rows.append({"name": model["name"], "family": model["family"], "exporter": exporter, "threads": threads,
                     "load": round(load, 2), "engines": found})
        print(line(model["name"], exporter, threads, found), flush=True)
        if arguments.json:
            keep(arguments.json, rows)
    print(page.summary_line(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
