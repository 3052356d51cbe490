#!/usr/bin/env python3
"""Builds the architectures of the list from their configurations with random weights (nothing is fetched) and exports each
by both exporters of PyTorch.

    export_models.py FOLDER                            all: FOLDER/NAME.dynamo.onnx, FOLDER/NAME.traced.onnx
    export_models.py FOLDER --only resnet18,fourier    those with one of these texts in their names
    export_models.py FOLDER --training                 as they are trained: see docs/your-own-model.md
    export_models.py FOLDER --for 280                  goes on with what the folder has not, ends after so many seconds

Beside each file lies NAME.npz: the inputs, and what the module gives in PyTorch. FOLDER/index.json says of every file whether
it was written, and if not what the exporter said. Needs torch, torchvision, transformers, onnx, onnxscript.
"""
import argparse
import json
import os
import pathlib
import random
import sys
import time
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from architectures import entries

EXPORTERS = {"dynamo": True, "traced": False}


def settle_normalisations(module):
    """Running statistics and affine parts as of a trained network: with fresh ones exporters leave normalizations out."""
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.running_mean is not None:
            part.running_mean.uniform_(-0.1, 0.1)
            part.running_var.uniform_(0.8, 1.2)
            with torch.no_grad():
                part.weight.uniform_(0.8, 1.2)
                part.bias.uniform_(-0.1, 0.1)


def fill_zeros(module):
    """Heads that begin as zeros would make every result right."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() > 1 and not parameter.any():
                parameter.normal_(0, 0.05)


def build(builder):
    random.seed(1)
    numpy.random.seed(1)
    torch.manual_seed(1)
    module, inputs = builder()
    settle_normalisations(module)
    fill_zeros(module)
    return module.eval(), inputs


def tensors(value):
    """The tensors of a result, which may be nested."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for part in value for t in tensors(part)] if isinstance(value, (list, tuple)) else []


def export(module, inputs, path, dynamo, training):
    names = ["input%d" % i for i in range(len(inputs))]
    options = {}
    if training:
        options = dict(training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False) if not dynamo else dict(optimize=False)
        module.train()
    if dynamo:
        options["external_data"] = False
    torch.onnx.export(module, inputs, str(path), dynamo=dynamo, input_names=names, verbose=False, **options)
    module.eval()


def write(name, builder, folder, training):
    """What became of the files of one architecture."""
    found = {"name": name, "files": {}}
    try:
        module, inputs = build(builder)
        with torch.no_grad():
            outputs = tensors(module(*inputs))
    except Exception as error:
        return dict(found, failure=" ".join(str(error).split())[:300])
    found["parameters"] = sum(p.numel() for p in module.parameters())
    arrays = {"input%d" % i: v.numpy() for i, v in enumerate(inputs)}
    numpy.savez(folder / (name + ".npz"), **arrays, **{"output%d" % i: v.numpy() for i, v in enumerate(outputs)})
    for exporter, dynamo in EXPORTERS.items():
        path, begin = folder / ("%s.%s.onnx" % (name, exporter)), time.time()
        try:
            with torch.no_grad() if not training else torch.enable_grad():
                export(module, inputs, path, dynamo, training)
            found["files"][exporter] = {"file": path.name, "bytes": path.stat().st_size, "seconds": round(time.time() - begin, 2)}
        except Exception as error:
            path.unlink(missing_ok=True)
            found["files"][exporter] = {"failure": " ".join(str(error).split())[:300]}
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default="", help="texts, one of which is in the name")
    parser.add_argument("--training", action="store_true")
    parser.add_argument("--for", dest="seconds", type=float, help="begin no further network after so many, and leave out those that the folder has")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    torch.backends.mha.set_fastpath_enabled(False)  # an operator of its own, that the exporter by tracing refuses
    arguments.folder.mkdir(parents=True, exist_ok=True)
    texts = [text for text in arguments.only.split(",") if text]
    index = arguments.folder / "index.json"
    before = {e["name"]: e for e in json.loads(index.read_text())["models"]} if index.exists() else {}
    begin, done = time.time(), set(before) if arguments.seconds else ()
    for name, family, builder in entries():
        if (texts and not any(text in name for text in texts)) or name in done:
            continue
        if arguments.seconds and time.time() - begin > arguments.seconds:
            print("ends here: call it again to go on")
            break
        before[name] = dict(write(name, builder, arguments.folder, arguments.training), family=family)
        said = before[name].get("failure") or ", ".join(
            "%s %s" % (e, "%.1f s" % f["seconds"] if "file" in f else "refused: " + f["failure"][:100]) for e, f in before[name]["files"].items())
        print("%-28s %s" % (name, said), flush=True)
        order = [n for n, _, _ in entries() if n in before]
        index.write_text(json.dumps({"torch": torch.__version__, "models": [before[n] for n in order]}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
