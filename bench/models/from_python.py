#!/usr/bin/env python3
"""Takes every architecture of the list through superstep.torch: compiled and called beside PyTorch, and trained for some steps.

    from_python.py --json FILE              all: superstep.torch.compile, and superstep.torch.train_step with SGD
    from_python.py --only unet,bert         those with one of these texts in their names
    from_python.py --no-training            serving alone

`error` is the largest difference from PyTorch's outputs as a share of the largest, over all outputs; of training `loss` is the
largest relative difference of STEPS losses, `parameters` the length of the difference of all parameters as a share of their length,
both beside PyTorch in f32. What cannot be converted is told with its operator and its place in the module. Needs the package
`superstep` and what export_models.py needs.
"""
import argparse
import copy
import json
import os
import pathlib
import random
import sys
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import torch

import export_models
import superstep
import superstep.torch
from architectures import entries

STEPS, RATE = 3, 1e-2


def without_dropout(module):
    for part in module.modules():
        if isinstance(part, torch.nn.modules.dropout._DropoutNd):
            part.p = 0.0
        for name in ("dropout", "dropout_p", "attention_dropout", "dropout_prob"):
            if isinstance(getattr(part, name, None), float):
                setattr(part, name, 0.0)


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


def train(module, inputs):
    """Both from the same parameters, on the same batch, towards random targets of the first output."""
    module = copy.deepcopy(module)
    without_dropout(module)
    with torch.no_grad():
        output = export_models.tensors(module.train()(*inputs))[0]
    if not output.is_floating_point():
        return {"failure": "its first output is no number with a fraction"}
    target = torch.randn(output.shape, generator=torch.Generator().manual_seed(7))
    ours, theirs = copy.deepcopy(module), copy.deepcopy(module)
    before = {n: p.detach().clone() for n, p in theirs.named_parameters()}
    optimizer = torch.optim.SGD(theirs.parameters(), lr=RATE)
    step = superstep.torch.train_step(ours, "mse", torch.optim.SGD(ours.parameters(), lr=RATE), inputs, threads=1)
    apart = 0.0
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(export_models.tensors(theirs(*inputs))[0], target)
        loss.backward()
        optimizer.step()
        apart = max(apart, abs(step(*inputs, target) - float(loss)) / max(abs(float(loss)), 1e-12))
    step.write_back()
    named = dict(ours.named_parameters())
    length = sum(float((p.detach() ** 2).sum()) for p in theirs.parameters()) ** 0.5
    moved = sum(float(((p.detach() - before[n]) ** 2).sum()) for n, p in theirs.named_parameters()) ** 0.5
    wrong = sum(float(((named[n].detach() - p.detach()) ** 2).sum()) for n, p in theirs.named_parameters()) ** 0.5
    return {"loss": apart, "parameters": wrong / max(length, 1e-30), "moves": wrong / max(moved, 1e-30)}


def attempt(work, *arguments):
    try:
        return work(*arguments)
    except Exception as error:
        return {"failure": f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"}


def row_of(name, builder, training):
    random.seed(1)
    try:
        module, inputs = export_models.build(builder)
    except Exception as error:
        return {"name": name, "failure": "PyTorch does not build it: " + " ".join(str(error).split())[:200]}
    row = {"name": name, "serving": attempt(serve, module, inputs)}
    if training:
        row["training"] = attempt(train, module, inputs)
    return row


def told(part):
    if part is None:
        return ""
    if "failure" in part:
        return part["failure"][:150]
    return " ".join(f"{name} {value:.1e}" for name, value in part.items() if name != "seconds")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--no-training", action="store_true")
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)
    texts, rows = [text for text in arguments.only.split(",") if text], []
    for name, _, builder in entries():
        if texts and not any(text in name for text in texts):
            continue
        rows.append(row_of(name, builder, not arguments.no_training))
        print(f"{name:<24} {told(rows[-1].get('serving', rows[-1]))} | {told(rows[-1].get('training'))}", flush=True)
        if arguments.json:
            arguments.json.write_text(json.dumps({"torch": torch.__version__, "superstep": superstep.__version__, "steps": STEPS,
                                                  "rows": rows}, indent=1) + "\n")
    served = [row for row in rows if "error" in row.get("serving", {})]
    trained = [row for row in rows if "loss" in row.get("training", {})]
    print(f"{len(rows)} architectures: {len(served)} served, {sum(r['serving']['error'] < 1e-3 for r in served)} of them within 1e-3; "
          f"{len(trained)} trained, {sum(r['training']['loss'] < 1e-3 for r in trained)} of them within 1e-3")


if __name__ == "__main__":
    main()
