#!/usr/bin/env python3
"""The table of `make bench`: Superstep beside the peers that are installed, as ratios and as shares of the floor.

Contenders are interleaved in one process tree (peers/README.md); the floor of a row is its floating-point
operations over the multiply-add peak that was measured just before, times the threads.
"""

import argparse
import datetime
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import generation

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "peers"))
import environment
import figures

# Every model with the batch at which it trains here, and is served beside batch 1.
BATCHES = {"braggnn": 64, "mlp": 64, "cifar10-cnn": 64, "ptychonn-64": 8, "ptychonn-128": 4, "cookienetae": 8, "image-autoencoder": 8, "pca-compress-128": 64,
           "sobel-800": 4, "autophasenn": 2, "conductivity": 4, "polymer-gcn": 8, "polymer-mpnn": 8, "uno": 8, "unet-64": 8, "unet-256": 2,
           "resnet50": 4, "efficientnet-b0": 8, "mobilenet-v3-small": 8, "bert-small": 8, "distilbert": 2, "lstm": 8,
           "rnn-k1": 8, "rnn-k2": 8, "rnn-k3": 8, "rnn-k4": 8}

# Options of ours, where what is compared is not a workload's default form (peers/models.py has the same).
OPTIONS = {"autophasenn": ["size=32"]}


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--models", default="braggnn,mlp,cifar10-cnn",
                        help="names of peers/models.py, or 'all'; large models take minutes each")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--train-batch", metavar="N,N,...", help="default: the model's, see BATCHES")
    parser.add_argument("--infer-batch", metavar="N,N,...", help="default: 1 and the model's")
    parser.add_argument("--modes", default="train,infer", help="one of them leaves the other out")
    parser.add_argument("--precisions", default="f32,bf16,int8", help="int8 for inference alone")
    parser.add_argument("--rounds", default="5")
    parser.add_argument("--seconds", default="0.3", help="of each round of each contender")
    parser.add_argument("--compile", action="store_true", help="let PyTorch try torch.compile (minutes a model)")
    parser.add_argument("--contender", action="append", default=[], metavar="NAME=COMMAND",
                        help="another peer of inference; {onnx}, {batch} and {threads} are filled in")
    parser.add_argument("--no-generation", action="store_true", help="leave out how fast data are made")
    parser.add_argument("--json", type=pathlib.Path, help="file for every sample")
    return parser.parse_args()


def measure_peak(build):
    """FLOP/s of one thread in f32 multiply-adds, and in bf16 dot products where there are any."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([build / "bench" / "peak", "--threads", "1", "--json", file.name], check=True, stdout=subprocess.DEVNULL)
        metrics = json.load(open(file.name))[0]["metrics"]
    return {name: metrics[name]["value"] for name in ("f32_fma", "bf16_dot") if name in metrics}


def batches_of(arguments, model, mode):
    """The batches to measure, as text."""
    given = arguments.train_batch if mode == "train" else arguments.infer_batch
    usual = str(BATCHES.get(model, 8))
    return given or (usual if mode == "train" else "1," + usual)


def of_model(model):
    """What tells our contender which model."""
    return ["--model", model] + [word for option in OPTIONS.get(model, []) for word in ("--set", option)]


def export(contender, model, mode, batches, folder):
    """The file, or the pattern of files, that ONNX Runtime gets: the model, or the training step at each batch."""
    if mode == "infer":
        subprocess.run([contender, *of_model(model), "--export", folder / (model + ".onnx")], check=True)
        return folder / (model + ".onnx")
    for batch in batches.split(","):  # a step that ONNX cannot hold is named, and goes without that peer
        subprocess.run([contender, *of_model(model), "--batch", batch,
                        "--export-step", folder / ("%s-step-%s.onnx" % (model, batch))])
    return folder / (model + "-step-{batch}.onnx")


def contest(arguments, model, mode, folder):
    contender = arguments.build / "bench" / "superstep_contender"
    batches = batches_of(arguments, model, mode)
    onnx = export(contender, model, mode, batches, folder)
    out = folder / ("%s-%s.json" % (model, mode))
    command = [sys.executable, HERE / "peers" / "compare.py", "--model", model, "--mode", mode, "--onnx", onnx,
               "--batch", batches,
               "--threads", arguments.threads, "--build", arguments.build, "--rounds", arguments.rounds,
               "--seconds", arguments.seconds, "--json", out]
    if arguments.compile:
        command.append("--compile")
    for precision in arguments.precisions.split(","):
        if precision == "int8" and mode == "train":
            continue
        command += ["--contender", "Superstep=%s %s --mode %s --precision %s --batch {batch} --threads {threads}"
                    % (contender, " ".join(of_model(model)), mode, precision)]
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


def geometric_means(table):
    """A line a mode, kind of batch and thread count: the mean of the ratios over the models, and the least of them."""
    ratios = {}
    for model, mode, batch, threads, _, _, _, ratio, *_ in table:
        if ratio != "-":
            size = "batch 1" if batch == "1" else "larger batches"
            ratios.setdefault((mode, size, threads), []).append((float(ratio), model))
    for (mode, size, threads), values in ratios.items():
        mean = math.exp(statistics.mean(math.log(ratio) for ratio, _ in values))
        yield "%s, %s, %s thread%s: geometric mean of %d ratios %.2f, least %.2f (%s)" % (
            mode, size, threads, "" if threads == "1" else "s", len(values), mean, *min(values))


def main():
    arguments = parse()
    peak = measure_peak(arguments.build)
    print("peak of a thread: " + ", ".join("%s %.0f GFLOP/s" % (k, v * 1e-9) for k, v in peak.items()))
    kept = []
    stopped = failed = False
    with tempfile.TemporaryDirectory() as folder:
        try:
            for model in BATCHES if arguments.models == "all" else arguments.models.split(","):
                for mode in arguments.modes.split(","):
                    try:
                        results = contest(arguments, model, mode, pathlib.Path(folder))
                    except subprocess.CalledProcessError as error:  # what was measured before is kept
                        failed = True
                        print("%s, %s: not measured, exit status %d" % (model, mode, error.returncode), file=sys.stderr)
                        continue
                    kept.append({"model": model, "mode": mode, "results": results})
                    print("measured %s, %s" % (model, mode), file=sys.stderr)
        except KeyboardInterrupt:
            stopped = True
            print("stopped: the table has what was measured", file=sys.stderr)
    table = list(figures.peer_rows(kept, peak))
    show(figures.COLUMNS, table)
    print("\n".join(geometric_means(table)))
    print("times in microseconds; ratio: time of the best peer over ours; medians of interleaved rounds. Training is forward, loss, backward, Adam.")
    made = {} if arguments.no_generation or stopped else generation.report(arguments.build, threads=[int(n) for n in arguments.threads.split(",")])
    if arguments.json:
        arguments.json.write_text(json.dumps({"schema": "superstep-result/1", "command": "bench", "date": datetime.date.today().isoformat(),
                                              "machine": machine(), "call": " ".join(["python3 bench/run.py"] + sys.argv[1:]), "peak": peak, "contests": kept, **made}) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
