#!/usr/bin/env python3
"""Writes a Cluster-GCN as an ONNX file, and a graph cut into clusters to train it on.

    cluster_gcn.py FOLDER [--parts 64] [--part-size 256] [--samples 320] [--seed 1]

Needs the packages numpy and onnx. W.-L. Chiang et al., Cluster-GCN (KDD 2019, arXiv:1905.07953): a graph too large for one
step is cut into parts with few edges between them; a step sees the nodes of some parts and the edges among them. A layer is
relu((A' + diag(A')) X W + b) with A' = (D + I)^-1 (A + I), their equations 10 and 11.

Into FOLDER go
    cluster-gcn.onnx   x [nodes, 64], edge_index [2, edges], edge_weight [edges] -> scores [nodes, 10], extents left open
    clusters.npz       samples of two parts each; the first four fifths of other parts than the rest
    whole.npz          the whole graph as one sample
"""
import argparse
import pathlib

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FEATURES, WIDTH, CLASSES, LAYERS = 64, 128, 10, 3
DIAGONAL = 1.0  # what a node's own weight counts more


def make_graph(nodes, random):
    """Communities of 128 nodes, each of one class; most edges stay inside. Features alone say little of the class."""
    community = np.arange(nodes) // 128
    label = (community * 7 + 3) % CLASSES
    degree = 10
    source = np.repeat(np.arange(nodes), degree // 2)
    inside = random.random(len(source)) < 0.8
    target = np.where(inside, community[source] * 128 + random.integers(0, 128, len(source)),
                      random.integers(0, nodes, len(source)))
    target %= nodes
    keep = source != target
    edges = np.unique(np.sort(np.stack([source[keep], target[keep]]), axis=0), axis=1)
    centres = random.normal(size=(CLASSES, FEATURES)) * 0.25
    x = (centres[label] + random.normal(size=(nodes, FEATURES))).astype(np.float32)
    order = random.permutation(nodes)  # numbers say nothing of communities
    place = np.argsort(order)
    return x[order], label[order].astype(np.int64), place[edges]


def cut(nodes, edges, size, random):
    """Parts of `size` nodes each, grown from a node by the one that has most neighbours inside."""
    neighbours = [[] for _ in range(nodes)]
    for a, b in edges.T:
        neighbours[a].append(b)
        neighbours[b].append(a)
    part = np.full(nodes, -1)
    free = list(random.permutation(nodes))
    number = 0
    while free:
        gain, chosen = {}, 0
        while chosen < size and free:
            if gain:
                node = max(gain, key=gain.get)
                del gain[node]
            else:
                node = free.pop()
                if part[node] >= 0:
                    continue
            part[node] = number
            chosen += 1
            for other in neighbours[node]:
                if part[other] < 0:
                    gain[other] = gain.get(other, 0) + 1
        free = [node for node in free if part[node] < 0]
        number += 1
    return part


def subgraph(chosen, edges, nodes):
    """Edges among the chosen nodes, both ways and from each to itself, with the weights of A' + diag(A')."""
    place = np.full(nodes, -1)
    place[chosen] = np.arange(len(chosen))
    inside = place[edges]
    inside = inside[:, (inside >= 0).all(axis=0)]
    own = np.arange(len(chosen))
    source, target = np.concatenate([inside[0], inside[1], own]), np.concatenate([inside[1], inside[0], own])
    degree = np.bincount(target, minlength=len(chosen))  # with the edge to itself: D + I
    weight = 1.0 / degree[target]
    weight[-len(chosen):] *= 1 + DIAGONAL
    return np.stack([source, target]).astype(np.int64), weight.astype(np.float32)


def padded(edge_index, weight, room):
    """Edges of no weight up to a fixed number."""
    more = room - len(weight)
    return np.pad(edge_index, ((0, 0), (0, more))), np.pad(weight, (0, more))


def samples_of(part_numbers, count, part, x, label, edges, random):
    made = []
    for _ in range(count):
        two = random.choice(part_numbers, 2, replace=False)
        chosen = np.flatnonzero(np.isin(part, two))
        made.append((x[chosen], *subgraph(chosen, edges, len(x)), label[chosen]))
    return made


def layer(nodes, initial, name, x, inputs, outputs, random, last):
    weight = (random.normal(size=(inputs, outputs)) * np.sqrt(2.0 / inputs)).astype(np.float32)
    initial += [numpy_helper.from_array(weight, f"{name}.weight"),
                numpy_helper.from_array(np.zeros(outputs, np.float32), f"{name}.bias")]
    nodes += [helper.make_node("Gather", [x, "sender"], [f"{name}.heard"], axis=0),
              helper.make_node("Mul", [f"{name}.heard", "weight_column"], [f"{name}.weighted"]),
              helper.make_node("Shape", [x], [f"{name}.shape"]),
              helper.make_node("ConstantOfShape", [f"{name}.shape"], [f"{name}.zeros"]),
              helper.make_node("ScatterND", [f"{name}.zeros", "receiver_column", f"{name}.weighted"],
                               [f"{name}.sum"], reduction="add"),
              helper.make_node("MatMul", [f"{name}.sum", f"{name}.weight"], [f"{name}.product"]),
              helper.make_node("Add", [f"{name}.product", f"{name}.bias"], ["scores" if last else f"{name}.mixed"])]
    if last:
        return "scores"
    nodes.append(helper.make_node("Relu", [f"{name}.mixed"], [f"{name}.out"]))
    return f"{name}.out"


def model(random):
    nodes = [helper.make_node("Gather", ["edge_index", "zero"], ["sender"], axis=0),
             helper.make_node("Gather", ["edge_index", "one"], ["receiver"], axis=0),
             helper.make_node("Unsqueeze", ["receiver", "axis1"], ["receiver_column"]),
             helper.make_node("Unsqueeze", ["edge_weight", "axis1"], ["weight_column"])]
    initial = [numpy_helper.from_array(np.array(0, np.int64), "zero"), numpy_helper.from_array(np.array(1, np.int64), "one"),
               numpy_helper.from_array(np.array([1], np.int64), "axis1")]
    widths, x = [FEATURES] + [WIDTH] * (LAYERS - 1) + [CLASSES], "x"
    for i in range(LAYERS):
        x = layer(nodes, initial, f"layer{i + 1}", x, widths[i], widths[i + 1], random, i == LAYERS - 1)
    graph = helper.make_graph(
        nodes, "cluster-gcn",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["nodes", FEATURES]),
         helper.make_tensor_value_info("edge_index", TensorProto.INT64, [2, "edges"]),
         helper.make_tensor_value_info("edge_weight", TensorProto.FLOAT, ["edges"])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["nodes", CLASSES])], initial)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(made)
    return made


def by_features_alone(x, label, known):
    """The floor: the class whose mean features are nearest."""
    centres = np.stack([x[known & (label == c)].mean(axis=0) for c in range(CLASSES)])
    nearest = ((x[~known, None] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)
    return (nearest == label[~known]).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--parts", type=int, default=64)
    parser.add_argument("--part-size", type=int, default=256)
    parser.add_argument("--samples", type=int, default=320)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    random = np.random.default_rng(asked.seed)
    nodes = asked.parts * asked.part_size
    x, label, edges = make_graph(nodes, random)
    part = cut(nodes, edges, asked.part_size, random)
    numbers = random.permutation(asked.parts)
    first_held = asked.parts * 4 // 5
    training = asked.samples * 4 // 5
    made = (samples_of(numbers[:first_held], training, part, x, label, edges, random) +
            samples_of(numbers[first_held:], asked.samples - training, part, x, label, edges, random))
    room = max(len(weight) for _, _, weight, _ in made)
    asked.folder.mkdir(parents=True, exist_ok=True)
    packed = [padded(edge_index, weight, room) for _, edge_index, weight, _ in made]
    np.savez(asked.folder / "clusters.npz", x=np.stack([each[0] for each in made]),
             edge_index=np.stack([each[0] for each in packed]), edge_weight=np.stack([each[1] for each in packed]),
             target=np.stack([each[3] for each in made]))
    edge_index, weight = subgraph(np.arange(nodes), edges, nodes)
    np.savez(asked.folder / "whole.npz", x=x, edge_index=edge_index, edge_weight=weight, target=label)
    onnx.save(model(random), asked.folder / "cluster-gcn.onnx")
    crossing = (part[edges[0]] != part[edges[1]]).mean()
    known = np.isin(part, numbers[:first_held])
    print(f"{nodes:,} nodes, {edges.shape[1]:,} edges; {crossing:.0%} of them between parts")
    print(f"a sample: {2 * asked.part_size} nodes, {room:,} edges")
    print(f"by features alone: {by_features_alone(x, label, known):.3f} of the nodes of held-out parts")


if __name__ == "__main__":
    main()
