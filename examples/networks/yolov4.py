#!/usr/bin/env python3
"""Writes YOLOv4 with random weights as an ONNX file.

    yolov4.py FILE.onnx [--size 608] [--classes 80] [--width 1] [--seed 1]

Needs the packages numpy and onnx. A. Bochkovskiy, C.-Y. Wang, H.-Y. M. Liao, YOLOv4 (arXiv:2004.10934): a cross-stage partial
Darknet of 53 convolutions with Mish, pooling over windows of 5, 9 and 13, paths from deep to shallow and back, three heads.

    image [batch, 3, size, size], between 0 and 1 -> boxes [batch, n, 4], scores [batch, n, classes]

A box is its centre and its size as shares of the image; n = 3 (size / 8)^2 (1 + 1/4 + 1/16). With 80 classes it has the
64,429,405 numbers of the file that its authors publish, statistics of normalisations included.
"""
import argparse
import pathlib

import numpy as np
from onnx import helper

from network_file import Network

ANCHORS = {8: [(12, 16), (19, 36), (40, 28)], 16: [(36, 75), (76, 55), (72, 146)], 32: [(142, 110), (192, 243), (459, 401)]}  # pixels
STRETCH = {8: 1.2, 16: 1.1, 32: 1.05}  # of offsets, so that a centre reaches the edge of its cell
# Of weights at the end of a residual block and of a head: twenty blocks on end add up, and sizes of boxes are exponentials.
BLOCK_GAIN, HEAD_GAIN = 0.3, 0.1
STAGES = [(64, 1), (128, 2), (256, 8), (512, 8), (1024, 4)]  # channels, residual blocks


class Yolo(Network):
    def __init__(self, size, classes, width, seed):
        super().__init__("yolov4", seed)
        self.size, self.classes, self.width = size, classes, width
        self.channels, self.count = {}, 0

    def wide(self, channels):
        return max(1, round(channels * self.width))

    def plain(self, x, channels, kernel, stride, bias, gain=1):
        """A convolution and its name; `channels` as they are."""
        self.count += 1
        name, own = f"conv{self.count}", self.channels[x]
        inputs = [x, self.drawn(f"{name}.weight", (channels, own, kernel, kernel), own * kernel * kernel, gain)]
        if bias:
            inputs.append(self.weight(f"{name}.bias", self.random.uniform(-0.1, 0.1, channels)))
        y = self.node("Conv", inputs, name, kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[kernel // 2] * 4)
        self.channels[y] = channels
        return y

    def conv(self, x, channels, kernel, activation, stride=1, gain=1):
        y = self.plain(x, self.wide(channels), kernel, stride, False, gain)
        norm = self.batch_norm(y, f"{y}.norm", self.channels[y])
        if activation == "mish":
            z = self.node("Mul", [norm, self.node("Tanh", [self.node("Softplus", [norm], f"{y}.softplus")], f"{y}.tanh")], f"{y}.mish")
        else:
            z = self.node("LeakyRelu", [norm], f"{y}.leaky", alpha=0.1)
        self.channels[z] = self.channels[y]
        return z

    def concat(self, parts):
        y = self.node("Concat", parts, "+".join(parts), axis=1)
        self.channels[y] = sum(self.channels[part] for part in parts)
        return y

    def add(self, a, b):
        y = self.node("Add", [a, b], f"{b}.sum")
        self.channels[y] = self.channels[a]
        return y

    def stage(self, x, channels, blocks):
        """Half as many pixels a side; one path past the residual blocks. The first stage keeps its width in both."""
        own = channels if blocks == 1 else channels // 2
        x = self.conv(x, channels, 3, "mish", stride=2)
        past, y = self.conv(x, own, 1, "mish"), self.conv(x, own, 1, "mish")
        for _ in range(blocks):
            inner = self.conv(y, own // 2 if blocks == 1 else own, 1, "mish")
            y = self.add(y, self.conv(inner, own, 3, "mish", gain=BLOCK_GAIN))
        return self.conv(self.concat([self.conv(y, own, 1, "mish"), past]), channels, 1, "mish")

    def alternating(self, x, channels, convolutions):
        for i in range(convolutions):
            x = self.conv(x, channels * (1 + i % 2), 3 if i % 2 else 1, "leaky")
        return x

    def pooled(self, x):
        pools = [self.node("MaxPool", [x], f"pool{side}", kernel_shape=[side, side], pads=[side // 2] * 4) for side in (13, 9, 5)]
        for pool in pools:
            self.channels[pool] = self.channels[x]
        return self.concat(pools + [x])

    def upwards(self, deep, shallow, channels):
        up = self.conv(deep, channels, 1, "leaky")
        scales = self.constant(f"{up}.scales", np.array([1, 1, 2, 2], np.float32))
        large = self.node("Resize", [up, "", scales], f"{up}.large", mode="nearest", coordinate_transformation_mode="asymmetric",
                          nearest_mode="floor")
        self.channels[large] = self.channels[up]
        return self.alternating(self.concat([self.conv(shallow, channels, 1, "leaky"), large]), channels, 5)

    def head(self, x, channels, stride):
        """Of every cell three boxes: where, how large, whether there is something, and what."""
        fields, cells = 5 + self.classes, self.size // stride
        said = self.plain(self.conv(x, channels, 3, "leaky"), 3 * fields, 1, 1, True, HEAD_GAIN)
        name = f"head{stride}"
        split = self.node("Reshape", [said, self.constant(f"{name}.shape", np.array([0, 3, fields, cells * cells]))], f"{name}.split")
        rows = self.node("Transpose", [split], f"{name}.rows", perm=[0, 1, 3, 2])
        flat = self.node("Reshape", [rows, self.constant(f"{name}.flat_shape", np.array([0, 3 * cells * cells, fields]))], f"{name}.flat")
        sizes = self.constant(f"{name}.sizes", np.array([2, 2, 1, self.classes]))
        self.nodes.append(helper.make_node("Split", [flat, sizes], [f"{name}.{part}" for part in ("where", "large", "there", "what")],
                                           name=f"{name}.parts", axis=2))
        return self.boxes(name, stride, cells), self.node(
            "Mul", [self.node("Sigmoid", [f"{name}.there"], f"{name}.chance"), self.node("Sigmoid", [f"{name}.what"], f"{name}.class")],
            f"{name}.scores")

    def boxes(self, name, stride, cells):
        y, x = np.mgrid[:cells, :cells]
        corner = np.stack([x, y], axis=-1).reshape(1, cells * cells, 2)
        shift = np.tile(corner - (STRETCH[stride] - 1) / 2, (3, 1, 1)).reshape(1, 3 * cells * cells, 2) / cells
        anchors = np.repeat(np.array(ANCHORS[stride]) / self.size, cells * cells, axis=0)[None]
        stretch = self.constant(f"{name}.stretch", np.array(STRETCH[stride] / cells, np.float32))
        offset = self.node("Mul", [self.node("Sigmoid", [f"{name}.where"], f"{name}.offset"), stretch], f"{name}.stretched")
        centre = self.node("Add", [offset, self.constant(f"{name}.corner", shift.astype(np.float32))], f"{name}.centre")
        grown = self.node("Mul", [self.node("Exp", [f"{name}.large"], f"{name}.growth"),
                                  self.constant(f"{name}.anchors", anchors.astype(np.float32))], f"{name}.grown")
        return self.node("Concat", [centre, grown], f"{name}.boxes", axis=2)

    def build(self):
        x = self.input("image", [3, self.size, self.size])
        self.channels[x] = 3
        x, stages = self.conv(x, 32, 3, "mish"), []
        for channels, blocks in STAGES:
            x = self.stage(x, channels, blocks)
            stages.append(x)
        p5 = self.alternating(self.pooled(self.alternating(x, 512, 3)), 512, 3)
        p4 = self.upwards(p5, stages[3], 256)
        p3 = self.upwards(p4, stages[2], 128)
        heads = [self.head(p3, 256, 8)]
        n4 = self.alternating(self.concat([self.conv(p3, 256, 3, "leaky", stride=2), p4]), 256, 5)
        heads.append(self.head(n4, 512, 16))
        n5 = self.alternating(self.concat([self.conv(n4, 512, 3, "leaky", stride=2), p5]), 512, 5)
        heads.append(self.head(n5, 1024, 32))
        count = sum(3 * (self.size // stride) ** 2 for stride in ANCHORS)
        self.output("boxes", self.node("Concat", [boxes for boxes, _ in heads], "all.boxes", axis=1), [count, 4])
        self.output("scores", self.node("Concat", [scores for _, scores in heads], "all.scores", axis=1), [count, self.classes])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=pathlib.Path)
    parser.add_argument("--size", type=int, default=608, help="pixels a side, a multiple of 32")
    parser.add_argument("--classes", type=int, default=80)
    parser.add_argument("--width", type=float, default=1, help="of all layers, beside the published one")
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    if asked.size < 32 or asked.size % 32:
        parser.error(f"--size {asked.size}: it is halved five times: take a multiple of 32")
    network = Yolo(asked.size, asked.classes, asked.width, asked.seed)
    network.build()
    network.save(asked.file)


if __name__ == "__main__":
    main()
