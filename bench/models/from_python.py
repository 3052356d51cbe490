#!/usr/bin/env python3
"""Takes every architecture of the list through superstep.torch: compiled and called beside PyTorch, and trained for some steps.

    from_python.py --json bench/models/python.json      all: superstep.torch.compile, and superstep.torch.train_step with SGD
    from_python.py --only unet,bert                     those with one of these texts in their names
    from_python.py --no-training                        serving alone

With --json rows that the file has (of the same versions) are not made again: a run that was stopped goes on. `--again` makes
those chosen anew. Each row is made in a process that may crash.

Serving: `error` is the largest difference from PyTorch's outputs as a share of the largest, over all outputs. Training: the
losses of STEPS steps and all parameters after them, both from PyTorch's parameters, dropout off, on one batch, towards random
targets of the first output, against the same steps of PyTorch in f64 (training_steps.py says what `loss`, `parameters` and
`moves` are); `peer_...` is the same of PyTorch in f32. Where a module does not run in f64 it is held against PyTorch in f32. What
cannot be converted is told with its operator and its place in the module. Needs the package `superstep` and what
export_models.py needs.
"""
import argparse
import copy
import json
import os
import pathlib
import sys
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch

import export_models
import page
import superstep
import superstep.torch
import training_steps
from architectures import entries

STEPS, RATE = 3, 1e-2


def error_of(found, expected):
    """Of all outputs, as a share of the largest element of each."""
    worst = 0.0
    for a, b in zip(export_models.tensors(found), export_models.tensors(expected), strict=True):
        if a.shape != b.shape:
            raise ValueError(f"shapes {tuple(a.shape)} and {tuple(b.shape)}")
        a, b = a.double(), b.double()
        worst = max(worst, float((a - b).abs().max() / b.abs().max().clamp(min=1e-12)) if b.numel() else 0.0)
    return worst


def serve(module, inputs):
    begin = time.time()
    compiled = superstep.torch.compile(module, inputs, threads=1)
    with torch.no_grad():
        expected = module(*inputs)
    return {"error": error_of(compiled(*inputs), expected), "seconds": round(time.time() - begin, 1)}


def optimizer_of(parameters):
    return torch.optim.SGD(parameters, lr=RATE)


def exact_steps(module, inputs, target):
    """In f64 where the module runs in it, else nothing."""
    try:
        return training_steps.in_torch(module, inputs, target, "mse", optimizer_of, STEPS, True)
    except Exception:
        return None


def train(module, inputs):
    begin = time.time()
    module = copy.deepcopy(module)
    training_steps.without_dropout(module)
    try:
        with torch.no_grad():
            output = export_models.tensors(copy.deepcopy(module).train()(*inputs))[0]
    except Exception as error:
        return {"failure": f"PyTorch does not train it on this batch: {' '.join(str(error).split())[:200]}"}
    if not output.is_floating_point():
        return {"failure": "its first output has no fractions: there is no squared error of it"}
    module.train()
    target = torch.randn(output.shape, generator=torch.Generator().manual_seed(7))
    before = training_steps.parameters_of(module)
    step = superstep.torch.train_step(copy.deepcopy(module), "mse", optimizer_of(module.parameters()), inputs, threads=1)
    peer = training_steps.in_torch(module, inputs, target, "mse", optimizer_of, STEPS, False)
    try:
        losses = [step(*inputs, target) for _ in range(STEPS)]
    except superstep.Diverged as error:
        return {"failure": f"{error.message}; PyTorch's losses: {', '.join(f'{loss:.3g}' for loss in peer[0])}"}
    step.write_back()
    found = training_steps.parameters_of(step.module)
    exact = exact_steps(module, inputs, target)
    row = training_steps.differences(losses, found, *(exact or peer), before)
    if exact:
        theirs = training_steps.differences(*peer, *exact, before)
        row |= {"peer_" + name: value for name, value in theirs.items()}
    return {**row, "seconds": round(time.time() - begin, 1)}


def attempt(work, *arguments):
    try:
        return work(*arguments)
    except Exception as error:
        return {"failure": f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"}


def row_of(name, family, builder, training):
    row = {"name": name, "family": family}
    try:
        module, inputs = export_models.build(builder)
    except Exception as error:
        return row | {"failure": "PyTorch does not build it: " + " ".join(str(error).split())[:200]}
    row["serving"] = attempt(serve, module, inputs)
    if training:
        row["training"] = attempt(train, module, inputs)
    return row


def told(part):
    if part is None:
        return ""
    if "failure" in part:
        return part["failure"][:150]
    return " ".join(f"{name} {value:.1e}" for name, value in part.items() if name != "seconds")


def make_row(entry, training):
    """In a child, which may crash."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        with open(theirs, "w") as pipe:
            pipe.write(json.dumps(row_of(*entry, training)))
        os._exit(0)
    os.close(theirs)
    with open(ours) as pipe:
        text = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return json.loads(text) if status == 0 else {"name": entry[0], "family": entry[1], "failure": f"the process ended with {status}"}


def kept(path):
    """Rows of earlier runs of the same versions."""
    if not path or not path.exists():
        return {}
    data = json.loads(path.read_text())
    same = data["torch"] == torch.__version__ and data["superstep"] == superstep.__version__
    return {row["name"]: row for row in data["rows"]} if same else {}


def keep(path, rows):
    head = {"schema": "superstep-from-python/1", "torch": torch.__version__, "superstep": superstep.__version__, "steps": STEPS,
            "created": time.strftime("%Y-%m-%dT%H:%M%z")}
    order = [name for name, _, _ in entries() if name in rows]
    lines = ",\n".join(json.dumps(rows[name]) for name in order)
    path.write_text(json.dumps(head)[:-1] + ', "rows": [\n' + lines + "\n]}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--no-training", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    texts, rows = [text for text in arguments.only.split(",") if text], kept(arguments.json)
    for entry in entries():
        name = entry[0]
        if (texts and not any(text in name for text in texts)) or (name in rows and not arguments.again):
            continue
        rows[name] = make_row(entry, not arguments.no_training)
        print(f"{name:<24} {rows[name].get('failure', told(rows[name].get('serving')))} | {told(rows[name].get('training'))}", flush=True)
        if arguments.json:
            keep(arguments.json, rows)
    print("\n".join(page.python_text({"torch": torch.__version__, "steps": STEPS, "rows": list(rows.values())})))


if __name__ == "__main__":
    main()
