"""Graphs in files, for people to read: what was found once stays."""
import json

import numpy as np

from draw import NAMES, TYPES, Graph


def plain(value):
    if isinstance(value, np.generic):
        value = value.item()
    return repr(value) if isinstance(value, float) and not np.isfinite(value) else value


def array_to(array):
    return {"type": NAMES[array.dtype], "shape": list(array.shape), "elements": [plain(v) for v in array.reshape(-1)]}


def array_from(held):
    numpy = TYPES[held["type"]][0]
    return np.array([float(v) if isinstance(v, str) else v for v in held["elements"]], numpy).reshape(held["shape"])


def write(path, graph, why):
    held = {"why": why, "opset": graph.opset,
            "nodes": [{"op": op, "inputs": i, "outputs": o, "attributes": {k: v for k, v in a.items() if v is not None}, "domain": d}
                      for op, i, o, a, d in graph.nodes],
            "inputs": {name: array_to(array) for name, array in graph.inputs.items()},
            "constants": {name: array_to(array) for name, array in graph.constants.items()},
            "defaults": {name: array_to(array) for name, array in graph.defaults.items()}, "listed": graph.listed,
            "outputs": graph.outputs}
    path.write_text(json.dumps(held) + "\n")


def read(path):
    held = json.loads(path.read_text())
    graph = Graph(held["opset"])
    graph.nodes = [(n["op"], n["inputs"], n["outputs"], n["attributes"], n["domain"]) for n in held["nodes"]]
    graph.inputs = {name: array_from(array) for name, array in held["inputs"].items()}
    graph.constants = {name: array_from(array) for name, array in held["constants"].items()}
    graph.defaults = {name: array_from(array) for name, array in held["defaults"].items()}
    graph.outputs, graph.listed = held["outputs"], held["listed"]
    return graph
