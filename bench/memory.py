#!/usr/bin/env python3
"""Peak resident memory of training: Superstep beside PyTorch, each in a process of its own that makes a few steps.

"step" is Superstep compiled and stepped on data that lie in memory, as PyTorch is; "run" is a whole `superstep train` with
its data, validation and, with --out, checkpoints and the exported model. PyTorch's is the least of its set-ups. "ready" is
the time from the start of the process to the plan. "less" says whether step and run stay below PyTorch.

With --half the step is planned once more to stay below half of PyTorch's peak, by --memory-limit of `superstep train`, which
bounds the plan: half of the peak less what the process takes beside its plan, some 30 to 50 MB. Shown are what that plan
takes, what is resident, how much slower a step is (by the fastest of --steps steps), and whether it stays below; "none":
there is no plan that small. The exit status is 1 where a row is not below PyTorch.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
SIZES = {"braggnn": 512, "mlp": 512, "cifar10-cnn": 64, "ptychonn-64": 8, "cookienetae": 8, "image-autoencoder": 8, "pca-compress-128": 64,
         "sobel-800": 4, "uno": 64, "unet-64": 8, "unet-256": 2, "resnet50": 2,
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


def step(arguments, model, batch, limit=0):
    """The step's plan, peak resident bytes, seconds until it was ready and of its fastest run; None where no plan is as
    small as `limit`."""
    contender = arguments.build / "bench" / "superstep_contender"
    command = [contender, "--model", model, "--mode", "train", "--batch", batch, "--threads", arguments.threads]
    begun = time.monotonic()
    process = subprocess.Popen([str(part) for part in command + (["--memory-limit", limit] if limit else [])],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = process.stdout.readline()
    ready_seconds = time.monotonic() - begun
    if not first.startswith("ready "):
        process.kill()
        process.communicate()
        if limit and "the smallest plan takes" in first:
            return None
        raise SystemExit("failed: %s\n%s" % (" ".join(map(str, command)), first))
    process.stdin.write("run %d\nquit\n" % arguments.steps)
    process.stdin.close()
    times = [float(word) for word in process.stdout.readline().split()[1:]]
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return {"peak": 1024 * usage.ru_maxrss, "ready": ready_seconds, "fastest": min(times),
            "plan": json.loads(first[len("ready "):])["plan_bytes"]}


def run_bytes(arguments, model, batch, folder):
    command = [arguments.build / "superstep", "train", model, "--batch", batch, "--steps", arguments.steps, "--samples", 3 * batch,
               "--threads", arguments.threads, "--quiet"]
    command += ["--out", folder / ("%s-%d" % (model, batch))] if arguments.out else ["--no-out"]
    return peak_bytes(command)


def torch_bytes(arguments, model, batch):
    """The least over PyTorch's set-ups; None where it is not installed."""
    if not shutil.which(arguments.python):
        return None
    if subprocess.run([arguments.python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode != 0:
        return None
    command = [arguments.python, HERE / "peers" / "torch_step.py", "--model", model, "--batch", batch,
               "--threads", arguments.threads, "--steps", arguments.steps]
    return min(peak_bytes(command + ["--optimizer", optimizer, "--layout", layout])
               for optimizer in ("single", "foreach") for layout in ("contiguous", "channels_last"))


def megabytes(count):
    return "-" if count is None else "%.0f MB" % (count * 1e-6)


def half_columns(arguments, model, batch, free, peer):
    """Limit, plan, resident and slowdown of the step below half of PyTorch's peak, and whether it stays there."""
    if peer is None:
        return ["-"] * 5
    half = peer // 2
    limited = step(arguments, model, batch, max(1, half - (free["peak"] - free["plan"])))
    if limited is None:
        return [megabytes(half), "none", "-", "-", "no"]
    return [megabytes(half), megabytes(limited["plan"]), megabytes(limited["peak"]),
            "%.2f" % (limited["fastest"] / free["fastest"]), "yes" if limited["peak"] <= half else "no"]


def python_of_peers():
    """That of tools/setup-peers, else the distribution's."""
    own = HERE.parent / "build" / "peers" / "venv" / "bin" / "python"
    return str(own) if own.exists() else "/usr/bin/python3"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent / "build")
    parser.add_argument("--models", default="all", help="names, or name:batch")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2)
    parser.add_argument("--out", action="store_true", help="the run writes its folder too")
    parser.add_argument("--half", action="store_true", help="also below half of PyTorch's peak")
    parser.add_argument("--python", default=python_of_peers(), help="the interpreter that has PyTorch")
    arguments = parser.parse_args()
    names = list(SIZES) if arguments.models == "all" else arguments.models.split(",")
    header = ["ready", "step", "run", "PyTorch", "ratio", "less"]
    header += ["half", "plan", "resident", "slower", "below"] if arguments.half else []
    print("%-18s %5s" % ("model", "batch") + "".join(" %8s" % title for title in header))
    all_less = True
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            model, _, batch = name.partition(":")
            batch = int(batch or SIZES[model])
            free, peer = step(arguments, model, batch), torch_bytes(arguments, model, batch)
            run = None if model in NO_DATA else run_bytes(arguments, model, batch, pathlib.Path(folder))
            most = max(free["peak"], run or 0)
            less = peer is None or most <= peer
            all_less = all_less and less
            cells = ["%.3f s" % free["ready"], megabytes(free["peak"]), megabytes(run), megabytes(peer),
                     "-" if peer is None else "%.2f" % (peer / most), "-" if peer is None else "yes" if less else "no"]
            if arguments.half:
                cells += half_columns(arguments, model, batch, free, peer)
            print("%-18s %5d" % (model, batch) + "".join(" %8s" % cell for cell in cells), flush=True)
    return 0 if all_less else 1


if __name__ == "__main__":
    sys.exit(main())
