#!/usr/bin/env python3
"""Writes a Conformer with random weights as an ONNX file: frames of sound in, scores of word pieces out.

    conformer.py FILE.onnx [--size S|M|L] [--frames 512] [--vocabulary 1024] [--layers N] [--width N] [--seed 1]

Needs the packages numpy and onnx. A. Gulati et al., Conformer (Interspeech 2020, arXiv:2005.08100): two convolutions that leave a
quarter of the frames, then blocks of half a feed-forward layer, attention with relative positions (Z. Dai et al., ACL 2019), a
convolution over 31 frames with a gate, and the other half. Where the paper has a recurrent decoder this one scores every frame by
a linear layer, as connectionist temporal classification takes it.

    features [batch, frames, 80] -> log_probabilities [batch, frames / 4 - 1, vocabulary]
"""
import argparse
import pathlib

import numpy as np

from network_file import Network

SIZES = {"S": (144, 16, 4), "M": (256, 16, 4), "L": (512, 17, 8)}  # width, layers, heads
FEATURES, KERNEL = 80, 31


def positions(steps, width):
    """Sines and cosines of distances from steps - 1 down to 1 - steps, [2 steps - 1, width]."""
    distance = np.arange(steps - 1, -steps, -1.0)[:, None]
    rate = np.exp(-np.log(1e4) * np.arange(0, width, 2) / width)
    table = np.zeros((2 * steps - 1, width), np.float32)
    table[:, 0::2] = np.sin(distance * rate)
    table[:, 1::2] = np.cos(distance * rate)
    return table


class Conformer(Network):
    def __init__(self, frames, width, layers, heads, vocabulary, seed):
        super().__init__("conformer", seed)
        self.frames, self.width, self.layers, self.heads, self.vocabulary = frames, width, layers, heads, vocabulary
        # A window of three frames is put on every second one, twice.
        self.steps = ((frames - 1) // 2 - 1) // 2

    def conv1d(self, x, name, inputs, outputs, kernel, groups=1):
        """Of [batch, channels, steps]."""
        weight = self.drawn(f"{name}.weight", (outputs, inputs // groups, kernel), inputs // groups * kernel)
        bias = self.weight(f"{name}.bias", self.random.uniform(-0.1, 0.1, outputs))
        return self.node("Conv", [x, weight, bias], name, kernel_shape=[kernel], pads=[kernel // 2] * 2, group=groups)

    def reshaped(self, x, name, shape):
        return self.node("Reshape", [x, self.constant(f"{name}.shape", np.array(shape, np.int64))], name)

    def subsampled(self, x):
        """[batch, frames, 80] -> [batch, steps, width]."""
        x, channels, left = self.node("Unsqueeze", [x, self.constant("axis1", np.array([1]))], "picture"), 1, FEATURES
        for i in (1, 2):
            name = f"subsampling{i}"
            weight = self.drawn(f"{name}.weight", (self.width, channels, 3, 3), 9 * channels)
            bias = self.weight(f"{name}.bias", self.random.uniform(-0.1, 0.1, self.width))
            x = self.node("Relu", [self.node("Conv", [x, weight, bias], name, kernel_shape=[3, 3], strides=[2, 2])], f"{name}.relu")
            channels, left = self.width, (left - 1) // 2
        x = self.node("Transpose", [x], "subsampling.turned", perm=[0, 2, 1, 3])
        x = self.reshaped(x, "subsampling.rows", [0, self.steps, self.width * left])
        return self.linear(x, "subsampling.out", self.width * left, self.width)

    def feed_forward(self, x, name):
        """x and half of what the layer says of it."""
        y = self.layer_norm(x, f"{name}.norm", self.width)
        y = self.swish(self.linear(y, f"{name}.in", self.width, 4 * self.width), f"{name}.swish")
        y = self.linear(y, f"{name}.out", 4 * self.width, self.width)
        return self.node("Add", [x, self.node("Mul", [y, "half"], f"{name}.half")], f"{name}.sum")

    def in_heads(self, x, name, rows):
        """[batch, rows, width] -> [batch, heads, rows, width / heads]."""
        x = self.reshaped(x, f"{name}.split", [0, rows, self.heads, self.width // self.heads])
        return self.node("Transpose", [x], f"{name}.heads", perm=[0, 2, 1, 3])

    def against(self, query, name, bias, keys, scores):
        """(query + bias) keys^T; keys in heads and turned already."""
        own = self.weight(f"{name}.{bias}", self.random.uniform(-0.1, 0.1, self.width))
        moved = self.node("Add", [query, own], f"{name}.{bias}.query")
        return self.node("MatMul", [self.in_heads(moved, f"{name}.{bias}", self.steps), keys], scores)

    def by_distance(self, scores, name):
        """Scores of distances [.., steps, 2 steps - 1] as scores of places [.., steps, steps]: row i begins i places earlier. A
        column of zeros in front, and rows that are cut where they were not joined, move each row by one more."""
        steps = self.steps
        padded = self.node("Pad", [scores, self.constant(f"{name}.pads", np.array([0, 0, 0, 1, 0, 0, 0, 0]))], f"{name}.padded")
        turned = self.reshaped(padded, f"{name}.turned", [0, self.heads, 2 * steps, steps])
        ends = [self.constant(f"{name}.{what}", np.array([value])) for what, value in (("start", 1), ("end", 2 * steps), ("axis", 2))]
        cut = self.node("Slice", [turned, *ends], f"{name}.cut")
        back = self.reshaped(cut, f"{name}.back", [0, self.heads, steps, 2 * steps - 1])
        ends = [self.constant(f"{name}.{what}", np.array([value])) for what, value in (("first", 0), ("last", steps), ("axis3", 3))]
        return self.node("Slice", [back, *ends], f"{name}.places")

    def attention(self, x, name):
        norm = self.layer_norm(x, f"{name}.norm", self.width)
        query, key, value = (self.linear(norm, f"{name}.{part}", self.width, self.width) for part in ("query", "key", "value"))
        key, value = (self.in_heads(rows, f"{name}.{part}", self.steps) for rows, part in ((key, "key"), (value, "value")))
        far = self.linear("distances", f"{name}.position", self.width, self.width, bias=False)
        far = self.in_heads(far, f"{name}.position", 2 * self.steps - 1)
        keys = self.node("Transpose", [key], f"{name}.keys", perm=[0, 1, 3, 2])
        places = self.node("Transpose", [far], f"{name}.places", perm=[0, 1, 3, 2])
        content = self.against(query, name, "content", keys, f"{name}.by_content")
        distance = self.by_distance(self.against(query, name, "distance", places, f"{name}.by_distance"), f"{name}.shift")
        scores = self.node("Mul", [self.node("Add", [content, distance], f"{name}.scores"), "scale"], f"{name}.scaled")
        mixed = self.node("MatMul", [self.node("Softmax", [scores], f"{name}.softmax", axis=-1), value], f"{name}.mixed")
        turned = self.node("Transpose", [mixed], f"{name}.joined", perm=[0, 2, 1, 3])
        joined = self.reshaped(turned, f"{name}.rows", [0, self.steps, self.width])
        return self.node("Add", [x, self.linear(joined, f"{name}.out", self.width, self.width)], f"{name}.sum")

    def convolution(self, x, name):
        y = self.node("Transpose", [self.layer_norm(x, f"{name}.norm", self.width)], f"{name}.channels", perm=[0, 2, 1])
        y = self.conv1d(y, f"{name}.in", self.width, 2 * self.width, 1)
        ends = [[self.constant(f"{name}.{part}.{what}", np.array([value])) for what, value in (("start", start), ("end", start + self.width),
                                                                                              ("axis", 1))]
                for part, start in (("open", 0), ("gate", self.width))]
        opened, gate = (self.node("Slice", [y, *limits], f"{name}.{part}") for part, limits in zip(("open", "gate"), ends))
        y = self.node("Mul", [opened, self.node("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.gated")
        y = self.batch_norm(self.conv1d(y, f"{name}.depth", self.width, self.width, KERNEL, self.width), f"{name}.batch_norm", self.width)
        y = self.conv1d(self.swish(y, f"{name}.swish"), f"{name}.out", self.width, self.width, 1)
        return self.node("Add", [x, self.node("Transpose", [y], f"{name}.turned", perm=[0, 2, 1])], f"{name}.sum")

    def build(self):
        x = self.input("features", [self.frames, FEATURES])
        self.constant("half", np.array(0.5, np.float32))
        self.constant("scale", np.array((self.width // self.heads) ** -0.5, np.float32))
        self.constant("distances", positions(self.steps, self.width)[None])
        x = self.subsampled(x)
        for i in range(1, self.layers + 1):
            x = self.feed_forward(x, f"block{i}.first")
            x = self.attention(x, f"block{i}.attention")
            x = self.convolution(x, f"block{i}.convolution")
            x = self.layer_norm(self.feed_forward(x, f"block{i}.second"), f"block{i}.norm", self.width)
        scores = self.linear(x, "scores", self.width, self.vocabulary)
        self.output("log_probabilities", self.node("LogSoftmax", [scores], "log", axis=-1), [self.steps, self.vocabulary])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--size", choices=list(SIZES), default="S")
    parser.add_argument("--frames", type=int, default=512, help="of ten milliseconds each, as a rule")
    parser.add_argument("--vocabulary", type=int, default=1024)
    parser.add_argument("--layers", type=int, help="instead of those of the size")
    parser.add_argument("--width", type=int, help="instead of that of the size; a multiple of twice the heads")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    width, layers, heads = SIZES[asked.size]
    width, layers = asked.width or width, asked.layers or layers
    if asked.frames < 11 or width % (2 * heads):
        parser.error(f"{asked.frames} frames of width {width}: at least 11 frames, and a width that {2 * heads} divides")
    network = Conformer(asked.frames, width, layers, heads, asked.vocabulary, asked.seed)
    network.build()
    network.save(asked.file)


if __name__ == "__main__":
    main()
