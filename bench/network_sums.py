#!/usr/bin/env python3
"""Counts what networks of pictures ask of a machine: machines/rates/networks.csv.

    bench/network_sums.py [NAME[@SIZE] ...] > networks.csv      all of timm and torchvision without names

Networks are built on torch's meta device, so nothing is downloaded and nothing runs; every operator that their
forward pass calls is counted by its shapes. Needs torch, torchvision and timm.
"""

import csv
import math
import sys
import warnings

import timm
import torch
import torchvision
from torch.utils._python_dispatch import TorchDispatchMode

# Operators that launch nothing.
VIEWS = {
    "view", "_unsafe_view", "reshape", "permute", "transpose", "t", "unsqueeze", "squeeze", "expand", "slice",
    "select", "split", "split_with_sizes", "unbind", "detach", "alias", "as_strided", "_reshape_alias", "chunk",
    "lift_fresh", "movedim", "narrow", "diagonal", "view_as_real", "sym_size", "unsafe_split", "empty", "new_empty",
    "numel", "expand_as",
}  # fmt: skip
COLUMNS = [
    "kernels", "macs", "padded", "grouped", "attention", "product_elements", "grouped_elements", "other_elements",
]  # fmt: skip
WIDTH = 64  # channels that libraries round up to


def rounded(value):
    return math.ceil(value / WIDTH) * WIDTH


def tensors_in(args):
    for arg in args:
        if isinstance(arg, torch.Tensor):
            yield arg
        elif isinstance(arg, (tuple, list)):
            yield from (item for item in arg if isinstance(item, torch.Tensor))


class Sums(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.sums = dict.fromkeys(COLUMNS, 0)

    def add(self, **more):
        for name, value in more.items():
            self.sums[name] += value

    def convolution(self, args, out):
        data, weights, groups = args[0], args[1], args[8]
        window = weights[0].numel()
        moved = data.numel() + out.numel()
        if groups > 1:
            return self.add(grouped=out.numel() * window, grouped_elements=moved)
        positions = out.numel() // weights.shape[0]
        padded = positions * rounded(weights.shape[0]) * rounded(window)
        self.add(macs=out.numel() * window, padded=padded, product_elements=moved)

    def product(self, a, b, out, batched):
        macs = a.numel() * b.shape[-1]
        if batched:
            return self.add(attention=macs, product_elements=a.numel() + b.numel() + out.numel())
        padded = a.shape[0] * rounded(a.shape[1]) * rounded(b.shape[1])
        self.add(macs=macs, padded=padded, product_elements=a.numel() + out.numel())

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        name = function.__name__.split(".")[0]
        outs = list(tensors_in([result] if isinstance(result, torch.Tensor) else result or []))
        if name in VIEWS or not outs:
            return result
        out = outs[0]
        self.add(kernels=1)
        if name == "convolution":
            self.convolution(args, out)
        elif name in ("mm", "bmm"):
            self.product(args[0], args[1], out, name == "bmm")
        elif name in ("addmm", "baddbmm"):
            self.product(args[1], args[2], out, name == "baddbmm")
        elif "scaled_dot_product" in name:
            query, key = args[0], args[1]
            self.add(attention=2 * query.numel() * key.shape[-2], product_elements=2 * (query.numel() + key.numel()))
        else:
            read = sum(t.numel() for t in tensors_in(args) if t.dim() >= 3 or t.shape[:1] == out.shape[:1])
            self.add(other_elements=read + out.numel())
        return result


def build(name, size):
    family, _, model = name.partition("/")
    if family == "torchvision":
        return getattr(torchvision.models, model)(weights=None)
    try:
        return timm.create_model(model, **({"img_size": size} if size else {}))
    except TypeError:
        return timm.create_model(model)


def row_of(name, size):
    with torch.device("meta"):
        model = build(name, size).eval()
        size = size or (getattr(model, "default_cfg", None) or {}).get("input_size", (3, 224, 224))[-1]
        counter = Sums()
        with torch.no_grad(), counter:
            model(torch.empty(1, 3, size, size))
    parameters = list(model.parameters())
    values = [counter.sums[c] for c in COLUMNS] + [sum(p.numel() for p in parameters), len(parameters)]
    return [name, size] + [f"{value:.4g}" for value in values]


def main():
    warnings.filterwarnings("ignore")
    names = sys.argv[1:] or [f"torchvision/{n}" for n in torchvision.models.list_models(module=torchvision.models)]
    names += [] if sys.argv[1:] else [f"timm/{n}" for n in timm.list_models()]
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["name", "size", *COLUMNS, "parameters", "tensors"])
    for asked in names:
        name, _, size = asked.partition("@")
        try:
            out.writerow(row_of(name, int(size or 0)))
        except Exception as error:  # networks of other inputs: said, and left out
            print(f"{asked}: {type(error).__name__}: {error}"[:160], file=sys.stderr)


if __name__ == "__main__":
    main()
