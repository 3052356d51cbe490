#!/usr/bin/env python3
"""Peak resident memory of training: Superstep beside PyTorch, each in a process of its own that makes a few steps.

"step" is Superstep compiled and stepped on data that lie in memory, as PyTorch is; "run" is a whole `superstep train` with
its data, validation and, with --out, checkpoints and the exported model. PyTorch's is the least of its set-ups. The time
is that of compiling, cold.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SIZES = {"braggnn": 512, "mlp": 512, "cifar10-cnn": 64, "ptychonn-64": 8, "uno": 64, "unet-64": 8, "unet-256": 2, "resnet50": 2,
         "efficientnet-b0": 2, "mobilenet-v3-small": 8, "bert-small": 8, "distilbert": 2, "lstm": 64, "rnn-k1": 64,
         "rnn-k2": 64, "rnn-k3": 64, "rnn-k4": 64}
NO_DATA = {"rnn-k1", "rnn-k2", "rnn-k3", "rnn-k4"}  # random data: throughput alone, no run


def peak_bytes(command, standard_input=""):
    """Of a process that runs to its end, with what it wrote to its standard output."""
    process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(standard_input)
    process.stdin.close()
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit("failed: %s\n%s" % (" ".join(map(str, command)), text))
    return 1024 * usage.ru_maxrss


def step_bytes(arguments, model, batch):
    contender = arguments.build / "bench" / "superstep_contender"
    return peak_bytes([contender, "--model", model, "--mode", "train", "--batch", batch, "--threads", arguments.threads],
                      "run %d\nquit\n" % arguments.steps)


def run_bytes(arguments, model, batch, folder):
    """Peak bytes of a run, and the seconds that it took to compile its step."""
    result = folder / "result.json"
    command = [arguments.build / "superstep", "train", model, "--batch", batch, "--steps", arguments.steps, "--samples", 3 * batch,
               "--threads", arguments.threads, "--quiet", "--json", result]
    if arguments.out:
        command += ["--out", folder / model]
    peak = peak_bytes(command)
    return peak, json.load(open(result))["metrics"]["compile_time"]["value"]


def torch_bytes(arguments, model, batch):
    """The least over PyTorch's set-ups; None where it is not installed."""
    if subprocess.run([arguments.python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode != 0:
        return None
    command = [arguments.python, HERE / "peers" / "torch_step.py", "--model", model, "--batch", batch,
               "--threads", arguments.threads, "--steps", arguments.steps]
    return min(peak_bytes(command + ["--optimizer", optimizer, "--layout", layout])
               for optimizer in ("single", "foreach") for layout in ("contiguous", "channels_last"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--models", default="all", help="names, or name:batch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--out", action="store_true", help="the run writes its folder too")
    parser.add_argument("--python", default="/usr/bin/python3", help="the interpreter that has PyTorch")
    arguments = parser.parse_args()
    names = list(SIZES) if arguments.models == "all" else arguments.models.split(",")
    print("%-18s %5s %9s %9s %9s %9s %7s" % ("model", "batch", "compile", "step", "run", "PyTorch", "ratio"))
    megabytes = lambda count: "-" if count is None else "%.0f MB" % (count * 1e-6)
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            model, _, batch = name.partition(":")
            batch = int(batch or SIZES[model])
            step, peer = step_bytes(arguments, model, batch), torch_bytes(arguments, model, batch)
            run, seconds = (None, None) if model in NO_DATA else run_bytes(arguments, model, batch, pathlib.Path(folder))
            print("%-18s %5d %9s %9s %9s %9s %7s" % (
                model, batch, "-" if seconds is None else "%.3f s" % seconds, megabytes(step), megabytes(run), megabytes(peer),
                "-" if peer is None else "%.2f" % (peer / max(step, run or 0))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
