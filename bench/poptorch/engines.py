"""Processor time of a training call by each engine of the `poptorch` package, in turns, and their ratio.

    python bench/poptorch/engines.py [--rounds 7] [--json FILE]

One thread each (what is compared is work, not scheduling), processor time, which other programs on the machine disturb less than
the clock. Each row: a model with its loss, one micro-batch a call, SGD with momentum; the median of all rounds, and the interval that
holds their middle half. Needs torch, superstep, onnx and onnxscript.
"""
import argparse
import json
import os
import statistics
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("SUPERSTEP_THREADS", "1")

import torch

import poptorch

functional = torch.nn.functional


class WithLoss(torch.nn.Module):
    """A module whose forward takes labels and gives scores and their cross entropy."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x, labels):
        scores = self.net(x)
        return scores, functional.cross_entropy(scores, labels)


def digits():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 10, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(10, 20, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
                         nn.Linear(320, 256), nn.ReLU(), nn.Dropout(0.5), nn.Linear(256, 10))


def residual():
    import torchvision
    return torchvision.models.resnet18(num_classes=10)


class Encoder(torch.nn.Module):
    """Two layers of a transformer over tokens, the first position's scores."""

    def __init__(self, width=128):
        super().__init__()
        self.words, self.places = torch.nn.Embedding(1000, width), torch.nn.Parameter(0.02 * torch.randn(128, width))
        layer = torch.nn.TransformerEncoderLayer(width, 2, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = torch.nn.Linear(width, 10)

    def forward(self, tokens):
        return self.head(self.layers(self.words(tokens) + self.places)[:, 0])


ROWS = {"digits, batch 8": (digits, lambda: torch.randn(8, 1, 28, 28), False),
        "digits, batch 8, half": (digits, lambda: torch.randn(8, 1, 28, 28), True),
        "encoder, 4 x 128 tokens": (Encoder, lambda: torch.randint(0, 1000, (4, 128)), False),
        "resnet18, 4 x 64 x 64": (residual, lambda: torch.randn(4, 3, 64, 64), False)}


def executor(make, x, half, engine):
    """A compiled training call of one engine, and the seconds that compiling took."""
    os.environ["SUPERSTEP_POPTORCH_ENGINE"] = engine
    torch.manual_seed(1)
    model = WithLoss(make())
    model = model.half() if half else model
    options = poptorch.Options().randomSeed(1)
    made = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9))
    labels = torch.randint(0, 10, (x.shape[0],))
    start = time.perf_counter()
    made(x, labels)
    return (lambda: made(x, labels)), time.perf_counter() - start


def call_time(call):
    """Processor seconds of a call: as many calls as take a tenth of a second."""
    start, calls = time.process_time(), 0
    while time.process_time() - start < 0.1 or calls < 3:
        call()
        calls += 1
    return (time.process_time() - start) / calls


def measured(make, inputs, half, rounds):
    x = inputs().half() if half else inputs()
    engines = {name: executor(make, x, half, name) for name in ("eager", "superstep")}
    times = {name: [] for name in engines}
    for turn in range(rounds):
        for name in sorted(engines, reverse=turn % 2 == 1):
            times[name].append(call_time(engines[name][0]))
    ratios = sorted(a / b for a, b in zip(times["eager"], times["superstep"]))
    quarter = len(ratios) // 4
    return {"eager_ms": 1e3 * statistics.median(times["eager"]), "superstep_ms": 1e3 * statistics.median(times["superstep"]),
            "ratio": statistics.median(ratios), "low": ratios[quarter], "high": ratios[-1 - quarter],
            "compile_s": engines["superstep"][1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", metavar="FILE", help="write the rows")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    print(f"{'model':26} {'PyTorch ms':>10} {'Superstep ms':>12}  PyTorch / Superstep (middle half)   compile s")
    for name, (make, inputs, half) in ROWS.items():
        try:
            row = found[name] = measured(make, inputs, half, chosen.rounds)
        except ImportError as error:
            print(f"{name:26} left out: {error}")
            continue
        except poptorch.Error as error:
            print(f"{name:26} not captured: {error}")
            continue
        print(f"{name:26} {row['eager_ms']:10.3f} {row['superstep_ms']:12.3f}  {row['ratio']:6.2f} ({row['low']:.2f} to {row['high']:.2f})"
              f"{row['compile_s']:24.1f}")
    if chosen.json:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(found, file, indent=1)


if __name__ == "__main__":
    sys.exit(main())
