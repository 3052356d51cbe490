#!/usr/bin/env python3
"""Trains models of the list for some steps in Superstep and in PyTorch: whether both do the same, and how long a step takes.

    train_models.py FOLDER --json bench/models/training.json       all: exports into FOLDER, three optimisers, one thread
    train_models.py FOLDER --only unet,bert --no-compile           some of them, without torch.compile
    train_models.py FOLDER --json FILE --for 280                   goes on with what FILE has not, ends after so many seconds

Each model is exported as it is trained (docs/your-own-model.md), dropout off, with a fixed batch. Both sides start from the
same weights and get the same data in the same order. Parameters that the file's graph does not show to be weights (a factor in
front of a cosine) are named by --train; the row says which. After STEPS steps the losses of all steps and all parameters are held
against the same steps of PyTorch in f64: `loss` is the largest relative difference of a loss, `parameters` the length of the
difference of all parameters as a share of their length, `moves` as a share of the length of what they moved by. PyTorch in f32 is held against f64 too: what no
implementation in f32 does better than. Then steps are timed, Superstep and the set-ups of PyTorch (eager with the optimiser's
loops one by one, foreach and fused; torch.compile) taking turns; PyTorch counts with its fastest one.
"""
import argparse
import copy
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "peers"))
sys.path.insert(0, str(HERE))

STEPS, ROUNDS, ROUND_SECONDS = 5, 7, 0.1

# Name, loss, and samples that are added to each of the list's (1: the batch that it has).
MODELS = [("resnet18", "cross_entropy", 4), ("squeezenet1_1", "cross_entropy", 4), ("convmixer", "cross_entropy", 8),
          ("senet_relu6", "cross_entropy", 4), ("preactivation_net", "cross_entropy", 8), ("unet", "mse", 4),
          ("unet_gated", "mse", 4), ("super_resolution", "mse", 8), ("poolformer", "cross_entropy", 8),
          ("attention_library", "mse", 4), ("mlp_mixer", "mse", 4), ("gmlp", "mse", 4), ("encoder_layer", "mse", 4),
          ("bert", "mse", 4), ("gpt2", "mse", 4), ("llama", "mse", 4), ("vit_transformers", "mse", 4),
          ("fourier_operator", "mse", 4), ("neural_field", "mse", 1), ("pointnet", "cross_entropy", 8),
          ("state_space", "mse", 4), ("kolmogorov_arnold", "mse", 1), ("convolutional_lstm", "mse", 4), ("gru", "mse", 4),
          ("lstm", "mse", 4), ("causal_convolutions", "mse", 4), ("wavenet", "mse", 4), ("n_beats", "mse", 8)]

# As superstep train takes it; what PyTorch calls it, with its own constants; the learning rate.
OPTIMIZERS = {"sgd": ("sgd:momentum=0.9", "SGD", {"momentum": 0.9}, 1e-2),
              "adam": ("adam", "Adam", {}, 1e-3),
              "adamw": ("adamw:weight_decay=0.01", "AdamW", {"weight_decay": 0.01}, 1e-3)}


def arguments_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    parser.add_argument("--only", default="", help="texts, one of which is in the name")
    parser.add_argument("--optimizers", default=",".join(OPTIMIZERS))
    parser.add_argument("--exporter", default="dynamo", choices=["dynamo", "traced"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--timed", default="adam", help="the optimizer whose steps are timed; none: agreement alone")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out: it takes a minute a model")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--for", dest="seconds", type=float, help="begin no further model after so many, and leave out those that the JSON file has")
    return parser.parse_args()


ARGUMENTS = arguments_of()
import environment
environment.prepare(ARGUMENTS.threads)
import numpy
import torch
import export_models
import page
import time_models
import training_steps
from architectures import entries


# ---- the model and its data

def more(array, times, generator):
    """`times` as many samples: floats anew with the same spread, whole numbers of the same range."""
    shape = (array.shape[0] * times,) + tuple(array.shape[1:])
    if array.is_floating_point():
        return torch.randn(shape, generator=generator) * array.std().clamp(min=0.1) + array.mean()
    if array.unique().numel() <= 2:  # a mask
        return array.repeat((times,) + (1,) * (array.dim() - 1))
    return torch.randint(int(array.min()), int(array.max()) + 1, shape, generator=generator)


def task_of(name, loss, times):
    """The module in training mode, its inputs and targets."""
    builder = next(build for entry, _, build in entries() if entry == name)
    module, inputs = export_models.build(builder)
    training_steps.without_dropout(module)
    module.train()
    generator = torch.Generator().manual_seed(7)
    if times > 1:
        inputs = tuple(more(x, times, generator) for x in inputs)
    with torch.no_grad():
        output = export_models.tensors(copy.deepcopy(module)(*inputs))[0]
    target = torch.randint(0, output.shape[1], output.shape[:1], generator=generator) if loss == "cross_entropy" \
        else torch.randn(output.shape, generator=generator)
    return module, inputs, target


# ---- PyTorch

def optimizer_of(kind, flags=None):
    """Makes the optimizer of these parameters."""
    _, name, constants, rate = OPTIMIZERS[kind]
    return lambda parameters: getattr(torch.optim, name)(parameters, lr=rate, **constants, **(flags or {}))


def stepper(module, inputs, target, loss, kind, flags=None, compiled=False):
    forward = torch.compile(module, dynamic=False) if compiled else module
    return training_steps.stepper(module, inputs, target, loss, optimizer_of(kind, flags)(module.parameters()), forward)


def steps_in_torch(module, inputs, target, loss, kind, double):
    return training_steps.in_torch(module, inputs, target, loss, optimizer_of(kind, {"foreach": False}), STEPS, double)


# ---- Superstep

class Trainer(time_models.Ours):
    """superstep_contender on a training step."""

    def __init__(self, build, path, optimizer, loss, threads, output, added=()):
        terms = "%s:%s" % (loss, output) if output else loss
        words = [word for name in added for word in ("--train", name)]
        self.process = subprocess.Popen([str(build / "bench" / "superstep_contender"), "--model", str(path), "--mode", "train",
                                         "--batch", "0", "--threads", str(threads), "--optimizer", optimizer, "--loss", terms, *words],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        kind, _, rest = self.process.stdout.readline().strip().partition(" ")
        self.ready = json.loads(rest) if kind == "ready" else {"failure": rest[:300] or "ended without a word"}

    def give(self, arrays, target, rate):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "array")
            for port in self.say("inputs").split():
                if ":" not in port:
                    continue
                name, kind, _ = port.rsplit(":", 2)
                array = numpy.float32(rate) if name == "learning_rate" else arrays[name] if name in arrays else target
                numpy.asarray(array).astype(time_models.file_peer.NUMPY[kind]).tofile(path)
                self.say("load %s %s" % (name, path))

    def untrained(self, names):
        """Those of the parameters that are no states here: what a file's graph does not show to be weights."""
        states = {port.rsplit(":", 2)[0] for port in self.say("outputs").split() if ":" in port}
        return [name for name in names if name not in states]

    def take(self, wanted):
        """Outputs and states, by name."""
        found = {}
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "array")
            for port in self.say("outputs").split():
                if ":" not in port:
                    continue
                name, kind, extents = port.rsplit(":", 2)
                if name not in wanted:
                    continue
                self.say("save %s %s" % (name, path))
                shape = [] if extents == "scalar" else [int(e) for e in extents.split(",") if e]
                found[name] = numpy.fromfile(path, time_models.file_peer.NUMPY[kind]).reshape(shape)
        return found

    def steps(self, names):
        losses = []
        for _ in range(STEPS):
            self.say("run 1")
            losses.append(float(self.take(["loss"])["loss"]))
        return losses, {n: a.astype("f8") for n, a in self.take(names).items()}


# ---- agreement

def compare(trainer, task, loss, kind, before):
    module, inputs, target = task
    exact_losses, exact = steps_in_torch(module, inputs, target, loss, kind, True)
    peer_losses, peer = steps_in_torch(module, inputs, target, loss, kind, False)
    losses, found = trainer.steps(list(exact))
    missing = sorted(set(exact) - set(found))
    if missing:
        return {"failure": "not trained: " + ", ".join(missing)[:200]}
    peer_differences = training_steps.differences(peer_losses, peer, exact_losses, exact, before)
    return {**training_steps.differences(losses, found, exact_losses, exact, before), **{"peer_" + key: d for key, d in peer_differences.items()}}


# ---- time

class Step:
    """A step of PyTorch in this process, asked as a contender is."""

    def __init__(self, step):
        self.step = step

    def ask(self, steps):
        begin = time.perf_counter()
        for _ in range(steps):
            self.step()
        return {"seconds": (time.perf_counter() - begin) / steps}


def setups(task, loss, kind):
    module, inputs, target = task
    flags = {"eager, one by one": {"foreach": False}, "eager, foreach": {"foreach": True}, "eager, fused": {"fused": True}}
    found = {name: Step(stepper(copy.deepcopy(module), inputs, target, loss, kind, f)) for name, f in flags.items()}
    if ARGUMENTS.no_compile:
        return found
    try:
        compiled = Step(stepper(copy.deepcopy(module), inputs, target, loss, kind, {"fused": True}, True))
        compiled.ask(2)
        found["compile, fused"] = compiled
    except Exception as error:
        print("  torch.compile: " + " ".join(str(error).split())[:120], flush=True)
    return found


def contest(trainer, task, loss, kind):
    time_models.ROUNDS, time_models.ROUND_SECONDS = ROUNDS, ROUND_SECONDS
    times = time_models.contest({"Superstep": trainer, **setups(task, loss, kind)})
    return {name: found["seconds"] for name, found in times.items()}


# ---- all of it

def exported(name, task, folder):
    path = folder / ("%s.train.%s.onnx" % (name, ARGUMENTS.exporter))
    module, inputs, _ = task
    export_models.export(copy.deepcopy(module), inputs, path, ARGUMENTS.exporter == "dynamo", True)
    import onnx
    graph = onnx.load(str(path), load_external_data=False).graph
    names = {i.name for i in graph.initializer}
    return path, graph.output[0].name if len(graph.output) > 1 else "", [n for n, _ in module.named_parameters() if n in names]


def opened(path, kind, loss, output, parameters, row):
    """The trainer of a file; parameters that are not trained by themselves are named to it, as a user does (`--train NAME`)."""
    def start(added):
        return Trainer(ARGUMENTS.build, path, OPTIMIZERS[kind][0], loss, ARGUMENTS.threads, output, added)
    trainer = start(())
    added = [] if "failure" in trainer.ready else trainer.untrained(parameters)
    if added:
        trainer.close()
        row["added"] = added
        trainer = start(added)
    return trainer


def row_of(name, loss, times):
    row = {"name": name, "loss": loss, "threads": ARGUMENTS.threads, "load": round(os.getloadavg()[0], 2), "timed": ARGUMENTS.timed, "optimizers": {}}
    try:
        task = task_of(name, loss, times)
        row["batch"] = task[1][0].shape[0]
        path, output, parameters = exported(name, task, ARGUMENTS.folder)
    except Exception as error:
        return dict(row, failure="export: " + " ".join(str(error).split())[:300])
    before = training_steps.parameters_of(task[0])
    for kind in ARGUMENTS.optimizers.split(","):
        trainer = opened(path, kind, loss, output, parameters, row)
        try:
            if "failure" in trainer.ready:
                row["optimizers"][kind] = {"failure": trainer.ready["failure"].replace(str(ARGUMENTS.folder) + os.sep, "")}
                continue
            trainer.give({"input%d" % i: x.numpy() for i, x in enumerate(task[1])}, task[2].numpy(), OPTIMIZERS[kind][3])
            row["optimizers"][kind] = compare(trainer, task, loss, kind, before)
            if kind == ARGUMENTS.timed:
                row["seconds"] = contest(trainer, task, loss, kind)
        except Exception as error:
            row["optimizers"].setdefault(kind, {"failure": " ".join(str(error).split())[:300]})
        finally:
            trainer.close()
    return row


def told(row):
    if "failure" in row:
        return "%-22s %s" % (row["name"], row["failure"][:120])
    parts = ["%s %s" % (kind, found["failure"][:90] if "failure" in found else "%s (%s)" % (
        page.told_difference(found, ""), page.told_difference(found, "peer_")))
        for kind, found in row["optimizers"].items()]
    ratio = page.training_gain(row)
    times = " ".join("%s %.0f us" % (name, 1e6 * s) for name, s in row.get("seconds", {}).items())
    return "%-22s %s%s" % (row["name"], "; ".join(parts), "  %.2f (%s)" % (ratio, times) if ratio else "")


def keep(path, rows):
    fresh = {(row["name"], row["threads"]) for row in rows}
    rows = [row for row in time_models.kept(path) if (row["name"], row["threads"]) not in fresh] + [time_models.rounded(row) for row in rows]
    head = {"schema": "superstep-model-training/1", "machine": environment.processor_name(), "torch": torch.__version__,
            "created": time.strftime("%Y-%m-%dT%H:%M%z"), "steps": STEPS}
    path.write_text(json.dumps(head)[:-1] + ', "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")


def main():
    warnings.filterwarnings("ignore")
    torch.set_num_threads(ARGUMENTS.threads)
    torch.backends.mha.set_fastpath_enabled(False)
    ARGUMENTS.folder.mkdir(parents=True, exist_ok=True)
    texts, rows, begin = [text for text in ARGUMENTS.only.split(",") if text], [], time.time()
    done = time_models.kept(ARGUMENTS.json) if ARGUMENTS.seconds and ARGUMENTS.json else []
    done = {row["name"] for row in done if row["threads"] == ARGUMENTS.threads}
    for name, loss, times in MODELS:
        if (texts and not any(text in name for text in texts)) or name in done:
            continue
        if ARGUMENTS.seconds and time.time() - begin > ARGUMENTS.seconds:
            print("ends here: call it again to go on")
            break
        random.seed(1)
        rows.append(row_of(name, loss, times))
        print(told(rows[-1]), flush=True)
        if ARGUMENTS.json:
            keep(ARGUMENTS.json, rows)
    ratios = [r for r in map(page.training_gain, rows) if r]
    if ratios:
        print("%d models, geometric mean of PyTorch's fastest set-up over Superstep %.2f" % (len(ratios), statistics.geometric_mean(ratios)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
