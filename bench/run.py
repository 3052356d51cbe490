#!/usr/bin/env python3
"""The table of `make bench`: Superstep beside the peers that are installed, as ratios and as shares of the floor.

Contenders are interleaved in one process tree (peers/README.md); the floor of a row is its floating-point
operations over the multiply-add peak that was measured just before, times the threads.
"""

import argparse
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import generation
import peer_tables

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
import environment

# Every model with the batch at which it trains here, and is served beside batch 1.
BATCHES = {"braggnn": 64, "mlp": 64, "cifar10-cnn": 64, "ptychonn-64": 8, "ptychonn-128": 4, "cookienetae": 8, "image-autoencoder": 8, "pca-compress-128": 64,
           "sobel-800": 4, "autophasenn": 2, "conductivity": 4, "polymer-gcn": 8, "polymer-mpnn": 8, "gin": 8, "yieldgnn": 2, "schnet": 1, "deepmd": 4, "mcmc": 500, "uno": 8, "unet-64": 8, "unet-256": 2,
           "resnet50": 4, "efficientnet-b0": 8, "mobilenet-v3-small": 8, "bert-small": 8, "distilbert": 2, "bert-base-128": 4,
           "bert-base-384": 2, "lstm": 8,
           "rnn-k1": 8, "rnn-k2": 8, "rnn-k3": 8, "rnn-k4": 8}

# Workloads of ours that the table has in several forms.
WORKLOADS = {"bert-base-128": "bert-base-squad", "bert-base-384": "bert-base-squad"}

# Options of ours, where what is compared is not a workload's default form (peers/models.py has the same).
OPTIONS = {"autophasenn": ["size=32"], "schnet": ["width=64", "blocks=3"],
           "deepmd": ["embedding=8,16,32", "axis=8", "fitting=64,64,64"],
           "bert-base-128": ["length=128"],
           # Blocks that begin as identities have scales of zero: a peer's quantiser folds their whole branches away.
           "resnet50": ["zero-last=no"]}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--models", default="braggnn,mlp,cifar10-cnn",
                        help="names of peers/models.py, or 'all'; large models take minutes each")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--train-batch", metavar="N,N,...", help="default: the model's, see BATCHES")
    parser.add_argument("--infer-batch", metavar="N,N,...", help="default: 1 and the model's")
    parser.add_argument("--modes", default="train,infer", help="one of them leaves the other out")
    parser.add_argument("--precisions", default="f32,bf16,int8",
                        help="int8 for inference alone; bf16 where the processor multiplies in it, or where it is the only one")
    parser.add_argument("--peers", default="pytorch,onnxruntime,openvino,jax")
    parser.add_argument("--rounds", default="5")
    parser.add_argument("--seconds", default="0.3", help="of each round of each contender")
    parser.add_argument("--minutes", type=float, default=1e9, help="after which no further row is begun")
    parser.add_argument("--search", default="120", help="seconds for a row after which PyTorch tries no further set-up; what was "
                        "fastest is kept in BUILD/peers/pytorch.json and taken the next time")
    parser.add_argument("--no-compile", action="store_true", help="leave out PyTorch's compilers (a minute for each set-up)")
    parser.add_argument("--contender", action="append", default=[], metavar="NAME=COMMAND",
                        help="another peer of inference; {onnx}, {batch} and {threads} are filled in")
    parser.add_argument("--no-generation", action="store_true", help="leave out how fast data are made")
    parser.add_argument("--json", type=pathlib.Path, help="file for every sample, written anew after each row")
    parser.add_argument("--resume", action="store_true", help="go on with what the file of --json has: its rows and its peak stay")
    return parser.parse_args()


def measure_peak(build):
    """FLOP/s of one thread in f32 multiply-adds, and in bf16 dot products where there are any."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([build / "bench" / "peak", "--threads", "1", "--json", file.name], check=True, stdout=subprocess.DEVNULL)
        metrics = json.load(open(file.name))[0]["metrics"]
    return {name: metrics[name]["value"] for name in ("f32_fma", "bf16_dot") if name in metrics}


def rows_of(arguments):
    """Model, mode, batch and threads of every row, those of one thread first."""
    models = list(BATCHES) if arguments.models == "all" else arguments.models.split(",")
    for threads in arguments.threads.split(","):
        for model in models:
            usual = str(BATCHES.get(model, 8))
            for mode in arguments.modes.split(","):
                given = arguments.train_batch if mode == "train" else arguments.infer_batch
                for batch in (given or (usual if mode == "train" else "1," + usual)).split(","):
                    yield model, mode, batch, threads


def of_model(model):
    """What tells our contender which model."""
    return ["--model", WORKLOADS.get(model, model)] + [word for option in OPTIONS.get(model, []) for word in ("--set", option)]


# What peers/quantize.py makes of a model's file for each: the model on bytes, for ours the samples.
ON_BYTES = {"onnxruntime": ".onnxruntime.onnx", "openvino": ".openvino.xml", "superstep": ".samples.npz"}


class Files:
    """The models as ONNX files, on bytes too, and their training steps: made once in a folder that stays."""

    def __init__(self, arguments):
        self.contender = arguments.build / "bench" / "superstep_contender"
        self.python = arguments.build / "peers" / "venv" / "bin" / "python"
        self.folder = arguments.build / "peers" / "models"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.peers = arguments.peers.split(",")
        self.fresh = set()

    def model(self, name):
        """The file of a model; what was made of another one of this name is removed."""
        path, new = self.folder / (name + ".onnx"), self.folder / "new.onnx"
        if path not in self.fresh:
            subprocess.run([self.contender, *of_model(name), "--export", new], check=True)
            if path.exists() and path.read_bytes() != new.read_bytes():
                for suffix in ON_BYTES.values():
                    path.with_suffix(suffix).unlink(missing_ok=True)
            new.replace(path)
            self.fresh.add(path)
        return path

    def on_bytes(self, path):
        """The model as the peers that were asked for have it in int8, and what ours calibrates itself on; a peer that cannot goes
        without."""
        for engine, suffix in ON_BYTES.items():
            wanted = engine == "superstep" or engine in self.peers
            if wanted and self.python.exists() and not path.with_suffix(suffix).exists():
                subprocess.run([self.python, HERE / "peers" / "quantize.py", "--engine", engine, path, path.with_suffix(suffix)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def step(self, name, batch):
        """The training step; one that ONNX cannot hold is named, and goes without that peer."""
        path = self.folder / ("%s-step-%s.onnx" % (name, batch))
        if path not in self.fresh:
            path.unlink(missing_ok=True)
            subprocess.run([self.contender, *of_model(name), "--batch", batch, "--export-step", path])
            self.fresh.add(path)
        return path


def precisions_of(arguments, mode, peak):
    wanted = arguments.precisions.split(",")
    return [name for name in wanted
            if not (name == "int8" and mode == "train") and not (name == "bf16" and len(wanted) > 1 and "bf16_dot" not in peak)]


# Bytes of a model's file from which on its contenders prepare themselves one after another, and train one precision after another:
# ONNX Runtime takes 18 times as much to train BERT-base (435 MB), PyTorch 12 while it searches. Chosen.
LARGE = 200 << 20


def contest(arguments, files, peak, row):
    """The results of a row's contenders."""
    model, mode, batch, threads = row
    precisions = precisions_of(arguments, mode, peak)
    onnx = files.model(model)
    if mode == "infer" and "int8" in precisions:
        files.on_bytes(onnx)
    apart = mode == "train" and onnx.stat().st_size >= LARGE
    groups = [[precision] for precision in precisions] if apart else [precisions]
    return [result for group in groups for result in contest_in(arguments, files, row, onnx, group)]


def contest_in(arguments, files, row, onnx, precisions):
    """The same in some of the precisions, round after round."""
    model, mode, batch, threads = row
    out = files.folder / "row.json"
    command = [sys.executable if not files.python.exists() else files.python, HERE / "peers" / "compare.py", "--model", model,
               "--mode", mode, "--graph", onnx, "--onnx", onnx if mode == "infer" else files.step(model, batch), "--batch", batch,
               "--threads", threads, "--build", arguments.build, "--rounds", arguments.rounds, "--seconds", arguments.seconds,
               "--precisions", ",".join(precisions), "--peers", arguments.peers, "--search", arguments.search,
               "--remember", files.folder.parent / "pytorch.json", "--json", out]
    command += [] if arguments.no_compile else ["--compile"]
    command += ["--in-turn"] if onnx.stat().st_size >= LARGE else []
    samples = onnx.with_suffix(ON_BYTES["superstep"])
    for precision in precisions:
        calibrated = " --calibrate %s" % samples if precision == "int8" and samples.exists() else ""
        command += ["--contender", "Superstep=%s %s --mode %s --precision %s --batch {batch} --threads {threads}%s"
                    % (files.contender, " ".join(of_model(model)), mode, precision, calibrated)]
    if mode == "infer":
        for text in arguments.contender:
            command += ["--contender", text.replace("{onnx}", str(onnx))]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return json.load(open(out))["results"]


def machine():
    """This machine in words, for a record of figures."""
    return "%d processors: %s" % (len(os.sched_getaffinity(0)), environment.processor_name() or "of an unknown name")


def show(header, table):
    widths = [max(len(row[i]) for row in [header] + table) for i in range(len(header))]
    for row in [header, ["-" * width for width in widths]] + table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def keep(arguments, peak, kept, **more):
    """The file of every sample so far."""
    if arguments.json:
        text = json.dumps({"schema": "superstep-result/1", "command": "bench", "date": datetime.date.today().isoformat(),
                           "machine": machine(), "call": " ".join(["python3 bench/run.py"] + sys.argv[1:]), "peak": peak,
                           "contests": kept, **more})
        arguments.json.write_text(text + "\n")


def resumed(arguments):
    """The peak and the rows that an earlier call left, for --resume."""
    if not (arguments.resume and arguments.json and arguments.json.exists()):
        return None, []
    record = json.load(open(arguments.json))
    if record["machine"] != machine():
        sys.exit("run.py: %s is of another machine (%s): give another file" % (arguments.json, record["machine"]))
    return record["peak"], record["contests"]


def measure(arguments, peak, kept):
    """Rows into `kept` until all are there or time is up; whether every one that was begun was measured."""
    files, failed, end = Files(arguments), False, time.monotonic() + 60 * arguments.minutes
    there = {tuple(contest.get("row", ())) for contest in kept}
    for row in rows_of(arguments):
        if row in there:
            continue
        if time.monotonic() > end:
            print("time is up: the table has what was measured", file=sys.stderr)
            break
        try:
            load = os.getloadavg()[0]
            results = contest(arguments, files, peak, row)
        except subprocess.CalledProcessError as error:  # what was measured before is kept
            failed = True
            print("%s, %s, batch %s, threads %s: not measured, exit status %d" % (*row, error.returncode), file=sys.stderr)
            continue
        kept.append({"model": row[0], "mode": row[1], "row": row, "load": load, "results": results})
        keep(arguments, peak, kept)
        print("measured %s, %s, batch %s, threads %s" % row, file=sys.stderr)
    return not failed


def main():
    arguments = parse()
    peak, kept = resumed(arguments)
    peak = peak or measure_peak(arguments.build)
    print("peak of a thread: " + ", ".join("%s %.0f GFLOP/s" % (k, v * 1e-9) for k, v in peak.items()))
    whole, stopped = False, False
    try:
        whole = measure(arguments, peak, kept)
    except KeyboardInterrupt:
        stopped = True
        print("stopped: the table has what was measured", file=sys.stderr)
    show(peer_tables.COLUMNS, list(peer_tables.rows(kept, peak)))
    narrow = list(peer_tables.narrow_rows(kept))
    if narrow:
        show(peer_tables.NARROW_COLUMNS, narrow)
    print("\n".join(peer_tables.means(kept)))
    print("times in microseconds; ratio: time of the best peer over ours; medians of interleaved rounds. Training is forward, loss, backward, Adam.")
    threads = [int(n) for n in arguments.threads.split(",")]
    keep(arguments, peak, kept, **({} if arguments.no_generation or stopped else generation.report(arguments.build, threads=threads)))
    return 0 if whole or stopped else 1


if __name__ == "__main__":
    sys.exit(main())
