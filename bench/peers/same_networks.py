#!/usr/bin/env python3
"""Does PyTorch compute the same networks of molecules and atoms as we? Weights are drawn, written into the file that `superstep
onnx export` makes and into the network of molecules.py or models.py, and both answer the same random packs of graphs; the file by
ONNX Runtime. Prints the largest difference of each result as a share of its largest number, and ends with 1 where one is above 1e-5.

    bench/peers/same_networks.py build/superstep [NAME ...]
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import models

MOST = 1e-5  # sums of some thousand numbers in f32, in other orders
PACKS = 2
WRONG = np.float32(1.01 if os.environ.get("SUPERSTEP_WRONG_WEIGHT") else 1)  # of every weight: a control that must fail

# Options that make ours the peer's form (run.py has the same).
OPTIONS = {"schnet": ["width=64", "blocks=3"], "deepmd": ["embedding=8,16,32", "axis=8", "fitting=64,64,64"]}

# Names in the file by patterns, and what they are in PyTorch; {0} counts from 1 there and from 0 here.
NAMES = {
    "yieldgnn": [(r"layer1\.(\w+)\.(\w+)", "{0}.{1}"), (r"local\.(\w+)\.(\w+)", "local_{0}.{1}"), (r"yield\.(\w+)", "both.{0}"),
                 (r"score\.(local|global)\.(\w+)", "score_{0}.{1}"), (r"(atoms|pair|attention|score|chem)\.(\w+)", "{0}.{1}")],
    "gin": [(r"layer(\d)\.bonds", "bonds.{0}.weight"), (r"layer(\d)\.epsilon", "epsilon.{0}"),
            (r"layer(\d)\.in\.(weight|bias)", "inner.{0}.0.{1}"), (r"layer(\d)\.in\.norm\.(\w+)", "inner.{0}.1.{1}"),
            (r"layer(\d)\.out\.(weight|bias)", "inner.{0}.3.{1}"), (r"layer(\d)\.out\.norm\.(\w+)", "inner.{0}.4.{1}"),
            (r"(atoms|odds)\.(\w+)", "{0}.{1}")],
    "polymer-gcn": [(r"conv(\d)\.(weight|bias)", "own.{0}.{1}"), (r"conv(\d)\.norm\.(\w+)", "norms.{0}.{1}"),
                    (r"(hidden|out)\.(\w+)", "{0}.{1}")],
    "polymer-mpnn": [(r"step(\d)\.own", "own.{0}.weight"), (r"step(\d)\.to", "at_target.{0}.weight"),
                     (r"step(\d)\.from", "at_source.{0}.weight"), (r"step(\d)\.bond", "bonds.{0}.weight"),
                     (r"step(\d)\.bias", "bonds.{0}.bias"), (r"step(\d)\.norm\.(\w+)", "norms.{0}.{1}"),
                     (r"(hidden|out)\.(\w+)", "{0}.{1}")],
    "schnet": [(r"block(\d)\.(filter\d|mix)\.(\w+)", "{1}.{0}.{2}"), (r"block(\d)\.in\.(\w+)", "own.{0}.{1}"),
               (r"block(\d)\.out\.(\w+)", "last.{0}.{1}"), (r"(embedding|hidden|out)\.(\w+)", "{0}.{1}")],
    "deepmd": [(r"Cu\.embed(\d)\.(\w+)", "embedded.layers.{0}.{1}"), (r"Cu\.fit(\d)\.(weight|bias)", "fitted.layers.{0}.{1}"),
               (r"Cu\.fit(\d)\.step", "fitted.steps.{0}"), (r"Cu\.energy\.(\w+)", "fitted.energy.{0}")],
}


def theirs(network, name):
    """What an initializer is called in PyTorch; None where it has no such number."""
    for pattern, form in NAMES[network]:
        found = re.fullmatch(pattern, name)
        if not found:
            continue
        groups = list(found.groups())
        if groups and groups[0].isdigit():
            # The first layer's step does not exist: its widths differ.
            groups[0] = str(int(groups[0]) - (2 if form == "fitted.steps.{0}" else 1))
        return form.format(*groups)
    return None


def drawn(name, shape, random):
    if name.endswith("running_var"):
        return random.uniform(0.5, 2, shape)
    if name.endswith("norm.weight"):
        return random.uniform(0.5, 1.5, shape)
    if name == "out.weight":
        return random.normal(0, 0.01, shape)  # polymers' answer is an exponential
    scale = 1 / np.sqrt(shape[1]) if len(shape) > 1 and shape[0] != 100 else 0.3
    return random.normal(0, scale, shape)


def with_drawn_weights(file, network, model):
    """The file's model with new weights, which the PyTorch model has, too."""
    random, state = np.random.default_rng(1), {}
    found = onnx.load(file)
    for tensor in found.graph.initializer:
        if tensor.name.startswith("descriptors."):  # counted in the data, in millionths
            values = random.integers(500_000, 2_000_000, tuple(tensor.dims))
            tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
            getattr(model, {"mean": "mean", "inverse_deviation": "inverse"}[tensor.name.split(".")[1]])[:] = torch.from_numpy(values / 1e6)
        name = theirs(network, tensor.name)
        if name is None:
            continue
        values = drawn(tensor.name, tuple(tensor.dims), random).astype("f4")
        tensor.CopyFrom(numpy_helper.from_array(values, tensor.name))
        state[name] = torch.from_numpy(values * WRONG)
    missing = model.load_state_dict(state, strict=False)
    left = [name for name in missing.missing_keys if name in dict(model.named_parameters())]
    if left or missing.unexpected_keys:
        raise SystemExit("%s: not in the file: %s; not in PyTorch: %s" % (network, left, missing.unexpected_keys))
    return found


def packs_of_graphs(network, inputs, random):
    """Whole packs: consecutive atoms are a graph, and edges join atoms of one."""
    extents = {each.name: [d.dim_value or PACKS for d in each.type.tensor_type.shape.dim] for each in inputs}
    rows, graphs = extents["batch"][1], {"yieldgnn": 5, "gin": 16, "schnet": 10}.get(network, 24)
    batch = np.sort(np.tile(np.arange(rows) * graphs // rows, (PACKS, 1)), 1)
    edges = np.zeros(extents["edge_index"], "i8")
    for pack in range(PACKS):
        for edge in range(edges.shape[2]):
            source = random.integers(rows)
            choice = np.flatnonzero((batch[pack] == batch[pack, source]) & (np.arange(rows) != source))
            edges[pack, :, edge] = source, random.choice(choice)
    values = {"edge_index": edges, "batch": batch, "z": random.integers(1, 9, extents.get("z", [1]))}
    if "pos" in extents:  # a molecule's atoms within some A of each other
        values["pos"] = random.uniform(0, 3.4, extents["pos"]).astype("f4")
    return {name: values.get(name, random.normal(0, 1, shape).astype("f4")) for name, shape in extents.items()}


def frames_of_copper(random):
    """32 atoms in a box, each with 100 neighbors at distances that differ."""
    atoms, near = 32, 100
    coord = random.uniform(0, 7.2, (PACKS, atoms, 3)).astype("f4")
    neighbours = (np.arange(atoms)[None, :, None] + 1 + random.integers(0, atoms - 1, (PACKS, atoms, near))) % atoms
    return {"coord": coord, "type": np.zeros((PACKS, atoms), "i8"), "box": np.tile(7.2 * np.eye(3, dtype="f4"), (PACKS, 1, 1)),
            "neighbours": neighbours, "images": random.integers(0, 2, (PACKS, atoms, near, 3)).astype("f4")}


def compare(program, network, folder):
    file = pathlib.Path(folder) / (network + ".onnx")
    options = [word for option in OPTIONS.get(network, []) for word in ("--set", option)]
    subprocess.run([program, "onnx", "export", network, *options, "--out", file], check=True, stdout=subprocess.DEVNULL)
    model = models.make(network, 1).eval()
    session = onnxruntime.InferenceSession(with_drawn_weights(file, network, model).SerializeToString())
    graph_inputs = onnx.load(file).graph.input
    random = np.random.default_rng(2)
    inputs = frames_of_copper(random) if network == "deepmd" else packs_of_graphs(network, graph_inputs, random)
    inputs = {each.name: inputs[each.name] for each in graph_inputs}
    ours = session.run(None, inputs)
    with torch.no_grad():
        found = model(*(torch.from_numpy(np.ascontiguousarray(array)) for array in inputs.values()))
    worst = 0
    for name, own, other in zip([each.name for each in session.get_outputs()], ours, found):
        apart = float(np.abs(own - other.numpy()).max() / np.abs(own).max())
        worst = max(worst, apart)
        print("%-13s %-13s largest number %9.3g, apart by %.1e of it" % (network, name, np.abs(own).max(), apart))
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("networks", nargs="*", default=list(NAMES))
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        worst = [compare(arguments.program, network, folder) for network in arguments.networks]
    return 0 if max(worst) <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
