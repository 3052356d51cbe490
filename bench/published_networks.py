#!/usr/bin/env python3
"""Counts what networks of other tasks ask of a machine, as network_sums.py does: detectors, segmenters, speech.

    bench/published_networks.py >> machines/rates/networks.csv

They are built from the papers that describe them, on torch's meta device; of each the part is counted that a
training's forward pass has. Needs torch, torchvision and timm.
"""

import csv
import sys

import timm
import torch
import torchvision
from network_sums import COLUMNS, Sums
from torch import nn


def conv(inputs, outputs, window=3, stride=1, dimensions=2, padding=None, norm=True):
    of = {2: (nn.Conv2d, nn.BatchNorm2d), 3: (nn.Conv3d, nn.InstanceNorm3d), 1: (nn.Conv1d, nn.BatchNorm1d)}
    convolution, normalization = of[dimensions]
    padding = window // 2 if padding is None else padding
    layers = [convolution(inputs, outputs, window, stride, padding, bias=not norm)]
    return nn.Sequential(*layers, *([normalization(outputs)] if norm else []), nn.ReLU())


class SingleShot(nn.Module):
    """SSD at 300x300 (W. Liu et al., arXiv 1512.02325) over a ResNet to its fourth stage, which keeps its stride."""

    def __init__(self, backbone, channels, classes=81):
        super().__init__()
        net = getattr(torchvision.models, backbone)(weights=None)
        block = net.layer3[0]
        for layer in (block.conv1, block.conv2, block.downsample[0]):
            layer.stride = (1, 1)
        self.stem = nn.Sequential(net.conv1, net.bn1, net.relu, net.maxpool, net.layer1, net.layer2, net.layer3)
        middles, steps = [256, 256, 128, 128, 128], [(2, 1), (2, 1), (2, 1), (1, 0), (1, 0)]
        self.extra = nn.ModuleList(
            nn.Sequential(conv(a, middle, 1), conv(middle, b, 3, stride, padding=padding))
            for a, b, middle, (stride, padding) in zip(channels, channels[1:], middles, steps)
        )
        anchors = [4, 6, 6, 6, 4, 4]
        self.heads = nn.ModuleList(
            nn.ModuleList([nn.Conv2d(c, 4 * a, 3, padding=1), nn.Conv2d(c, classes * a, 3, padding=1)])
            for c, a in zip(channels, anchors)
        )

    def forward(self, x):
        x = self.stem(x)
        for i, heads in enumerate(self.heads):
            for head in heads:
                head(x)
            if i < len(self.extra):
                x = self.extra[i](x)


class MaskRCNN(nn.Module):
    """K. He et al., arXiv 1703.06870, with feature pyramids; 512 boxes and 128 masks per picture in training."""

    def __init__(self):
        super().__init__()
        self.net = torchvision.models.detection.maskrcnn_resnet50_fpn(weights=None, weights_backbone=None)

    def forward(self, x):
        features = list(self.net.backbone(x).values())
        self.net.rpn.head(features)
        heads = self.net.roi_heads
        heads.box_predictor(heads.box_head(x.new_empty(512, 256, 7, 7)))
        heads.mask_predictor(heads.mask_head(x.new_empty(128, 256, 14, 14)))


class UNet(nn.Module):
    """O. Ronneberger et al., arXiv 1505.04597, padded; in two or three dimensions."""

    def __init__(self, widths, inputs, classes, dimensions=2, norm=False):
        super().__init__()
        of = {2: (nn.MaxPool2d, nn.ConvTranspose2d), 3: (nn.MaxPool3d, nn.ConvTranspose3d)}
        pool, up = of[dimensions]

        def pair(a, b):
            return nn.Sequential(
                conv(a, b, dimensions=dimensions, norm=norm), conv(b, b, dimensions=dimensions, norm=norm)
            )

        self.down = nn.ModuleList(pair(a, b) for a, b in zip([inputs, *widths], widths))
        self.pool = pool(2)
        self.up = nn.ModuleList(up(b, a, 2, 2) for a, b in zip(widths, widths[1:]))
        self.join = nn.ModuleList(pair(2 * a, a) for a in widths[:-1])
        self.head = {2: nn.Conv2d, 3: nn.Conv3d}[dimensions](widths[0], classes, 1)

    def forward(self, x):
        kept = []
        for level, pair in enumerate(self.down):
            x = pair(x if level == 0 else self.pool(x))
            kept.append(x)
        for level in reversed(range(len(self.up))):
            x = self.join[level](torch.cat([kept[level], self.up[level](x)], 1))
        return self.head(x)


class WideSqueeze(nn.Module):
    """EfficientNet-B0 whose squeezes are a quarter of a block's wide channels."""

    def __init__(self):
        super().__init__()
        self.net = timm.create_model("efficientnet_b0")
        for block in self.net.modules():
            if type(block).__name__ == "SqueezeExcite":
                wide = block.conv_reduce.in_channels
                block.conv_reduce = nn.Conv2d(wide, wide // 4, 1)
                block.conv_expand = nn.Conv2d(wide // 4, wide, 1)

    def forward(self, x):
        return self.net(x)


def counted(model, shape):
    counter = Sums()
    with torch.no_grad(), counter:
        model.eval()(torch.empty(*shape))
    parameters = list(model.parameters())
    return counter.sums | {"parameters": sum(p.numel() for p in parameters), "tensors": len(parameters)}


def transducer():
    """A recurrent transducer (A. Graves, arXiv 1211.3711) as MLPerf has it: an utterance of LibriSpeech's training
    part has 12.3 s, frames of 30 ms, two layers, every second frame three more; 48 word pieces."""
    frames, pieces, width, hidden, vocabulary = 410, 48, 1024, 512, 1024
    layers = [(frames, 240, width), (frames, width, width)]
    layers += [(frames // 2, inputs, width) for inputs in (2 * width, width, width)]
    layers += [(pieces, hidden, hidden), (pieces, hidden, hidden)]
    sums = dict.fromkeys([*COLUMNS, "parameters", "tensors"], 0)
    for steps, inputs, outputs in layers:
        weights = 4 * outputs * (inputs + outputs)
        sums["macs"] += steps * weights
        sums["product_elements"] += steps * (inputs + 5 * outputs)
        sums["other_elements"] += steps * 10 * outputs
        sums["parameters"] += weights + 8 * outputs
        sums["tensors"] += 4
        sums["kernels"] += steps + 4  # a layer's steps follow each other
    joint = frames // 2 * pieces
    sums["macs"] += joint * hidden * vocabulary + frames // 2 * width * hidden + pieces * hidden * hidden
    sums["product_elements"] += joint * (hidden + vocabulary)
    sums["other_elements"] += joint * (3 * hidden + 4 * vocabulary)
    sums["parameters"] += hidden * vocabulary + width * hidden + hidden * hidden + vocabulary * hidden
    sums["tensors"] += 8
    sums["kernels"] += 30
    sums["padded"] = sums["macs"]
    return sums


def networks():
    yield "ssd300-resnet34", 300, counted(SingleShot("resnet34", [256, 512, 512, 256, 256, 256]), (1, 3, 300, 300))
    yield "ssd300-resnet50", 300, counted(SingleShot("resnet50", [1024, 512, 512, 256, 256, 256]), (1, 3, 300, 300))
    yield "mask-rcnn-r50", 1024, counted(MaskRCNN(), (1, 3, 800, 1344))
    yield "unet-medical-512", 512, counted(UNet([64, 128, 256, 512, 1024], 1, 2), (1, 1, 512, 512))
    yield "dle/unet-3d-brats", 128, counted(UNet([32, 64, 128, 256, 320], 4, 4, 3, True), (1, 4, 128, 128, 128))
    yield "dle/se-resnext101-32x4d", 224, counted(timm.create_model("seresnext101_32x4d"), (1, 3, 224, 224))
    yield "dle/widese-b0", 224, counted(WideSqueeze(), (1, 3, 224, 224))
    yield "rnnt-librispeech", 1, transducer()


def main():
    out = csv.writer(sys.stdout, lineterminator="\n")
    with torch.device("meta"):
        for name, size, sums in networks():
            values = [sums[c] for c in (*COLUMNS, "parameters", "tensors")]
            out.writerow([name, size] + [f"{value:.4g}" for value in values])


if __name__ == "__main__":
    main()
