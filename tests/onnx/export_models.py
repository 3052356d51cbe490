"""Exports models from PyTorch with inputs and PyTorch's own outputs, as cases of ONNX's backend suite:
NAME/model.onnx, NAME/test_data_set_0/input_K.pb and output_K.pb.

  export_models.py FOLDER           the small models that are kept in tests/onnx/models (under 100 kB each)
  export_models.py --full FOLDER    the same architectures at their published sizes

Weights are random from a fixed seed; batch normalisation has statistics of random data. Needs PyTorch and
torchvision 0.14 or later (Debian: python3-torch, python3-torchvision).
"""
import argparse
import inspect
import os
from functools import partial

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models.efficientnet import EfficientNet, MBConvConfig, efficientnet_b0
from torchvision.models.mobilenetv3 import InvertedResidualConfig, MobileNetV3, mobilenet_v3_large
from torchvision.models.resnet import Bottleneck, conv1x1, resnet50


class Mlp(nn.Module):
    def __init__(self, widths):
        super().__init__()
        layers = []
        for a, b in zip(widths[:-2], widths[1:-1]):
            layers += [nn.Linear(a, b), nn.LayerNorm(b), nn.GELU(), nn.Dropout(0.1)]
        self.layers = nn.Sequential(*layers, nn.Linear(widths[-2], widths[-1]))

    def forward(self, x):
        return F.log_softmax(self.layers(x), dim=-1)


class NonLocal(nn.Module):
    """Attention over the places of a patch, as BraggNN has it (Liu et al., IUCrJ 9, 2022)."""

    def __init__(self, channels):
        super().__init__()
        half = max(1, channels // 2)
        self.theta, self.phi, self.g = (nn.Conv2d(channels, half, 1) for _ in range(3))
        self.out = nn.Conv2d(half, channels, 1)

    def forward(self, x):
        n, _, h, w = x.shape
        theta = self.theta(x).view(n, -1, h * w).permute(0, 2, 1)
        phi = self.phi(x).view(n, -1, h * w)
        g = self.g(x).view(n, -1, h * w).permute(0, 2, 1)
        y = torch.matmul(F.softmax(torch.matmul(theta, phi), dim=-1), g)
        return self.out(y.permute(0, 2, 1).reshape(n, -1, h, w)) + x


class BraggNN(nn.Module):
    def __init__(self, scale, patch=11):
        super().__init__()
        c1, c2, c3 = (max(2, c // scale) for c in (64, 32, 8))
        self.conv = nn.Conv2d(1, c1, 3)
        self.attention = NonLocal(c1)
        self.features = nn.Sequential(nn.LeakyReLU(0.01), nn.Conv2d(c1, c2, 3), nn.LeakyReLU(0.01),
                                      nn.Conv2d(c2, c3, 3), nn.LeakyReLU(0.01))
        widths = [c3 * (patch - 6) ** 2, 64 // scale, 32 // scale, 16 // scale, 8]
        dense = []
        for a, b in zip(widths[:-1], widths[1:]):
            dense += [nn.Linear(a, b), nn.LeakyReLU(0.01)]
        self.dense = nn.Sequential(*dense, nn.Linear(8, 2))

    def forward(self, x):
        x = self.features(self.attention(self.conv(x)))
        return self.dense(x.flatten(1))


def double_conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(inplace=True),
                         nn.Conv2d(b, b, 3, padding=1), nn.InstanceNorm2d(b, affine=True), nn.ReLU(inplace=True))


class UNet(nn.Module):
    """One step up by a transposed convolution, the other ones by interpolation."""

    def __init__(self, width, depth=2):
        super().__init__()
        widths = [width * 2 ** i for i in range(depth + 1)]
        self.down = nn.ModuleList(double_conv(a, b) for a, b in zip([1] + widths[:-1], widths))
        self.up = nn.ConvTranspose2d(widths[-1], widths[-2], 2, stride=2)
        self.across = nn.ModuleList(nn.Conv2d(2 * w, w, 1) for w in widths[-3::-1])
        self.join = nn.ModuleList(double_conv(2 * w, w) for w in widths[-2::-1])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else F.max_pool2d(x, 2))
            skips.append(x)
        for i, block in enumerate(self.join):
            skip = skips[-2 - i]
            if i == 0:
                x = self.up(x)
            else:
                x = F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
                x = self.across[i - 1](x)
            x = block(torch.cat([skip, x], dim=1))
        return torch.sigmoid(self.head(x))


class Lstm(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(2 * hidden, hidden, batch_first=True)
        self.head = nn.Linear(hidden, 3)

    def forward(self, x):
        y, _ = self.lstm(x)
        y, last = self.gru(y)
        return self.head(y), last[-1]


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, -1).permute(0, 2, 1, 3)

    def forward(self, x, mask):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / (q.size(-1) ** 0.5) + mask
        y = torch.matmul(F.softmax(scores, dim=-1), v).permute(0, 2, 1, 3).contiguous()
        x = self.norm1(x + self.out(y.view(x.size())))
        return self.norm2(x + self.narrow(F.gelu(self.wide(x))))


class Bert(nn.Module):
    def __init__(self, words, width, heads, layers, longest):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(longest, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(layers))
        self.pooler = nn.Linear(width, width)

    def forward(self, ids, mask):
        places = torch.arange(ids.size(1), device=ids.device).unsqueeze(0)
        x = self.norm(self.words(ids) + self.places(places))
        additive = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, additive)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Attention(nn.Module):
    """PyTorch's own attention, time first, and the rest of an encoder layer around it."""

    def __init__(self, width, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        y, weights = self.attention(x, x, x)
        x = self.norm1(x + y)
        return self.norm2(x + self.narrow(F.relu(self.wide(x)))), weights


class SmallResNet(nn.Module):
    """The stem, bottlenecks with and without a shortcut convolution, and the head of a ResNet-50."""

    def __init__(self, width):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False), nn.BatchNorm2d(width),
                                  nn.ReLU(inplace=True), nn.MaxPool2d(3, stride=2, padding=1))
        blocks, channels = [], width
        for stage, planes in enumerate((width, 2 * width)):
            stride = 1 + stage
            shortcut = nn.Sequential(conv1x1(channels, 4 * planes, stride), nn.BatchNorm2d(4 * planes))
            blocks += [Bottleneck(channels, planes, stride, shortcut), Bottleneck(4 * planes, planes)]
            channels = 4 * planes
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(channels, 10)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.blocks(self.stem(x)), 1)
        return self.head(torch.flatten(x, 1))


def small_mobilenet():
    config = partial(InvertedResidualConfig, width_mult=1.0)
    rows = [config(8, 3, 8, 8, True, "RE", 2, 1), config(8, 3, 24, 8, False, "RE", 2, 1),
            config(8, 5, 24, 16, True, "HS", 1, 1), config(16, 5, 32, 16, True, "HS", 1, 1)]
    return MobileNetV3(rows, last_channel=32, num_classes=10)


def small_efficientnet():
    config = partial(MBConvConfig, width_mult=1.0, depth_mult=1.0)
    rows = [config(1, 3, 1, 8, 8, 1), config(4, 3, 2, 8, 8, 2), config(4, 5, 2, 8, 16, 1)]
    return EfficientNet(rows, dropout=0.2, num_classes=10)


def pictures(size, channels=3, batch=2):
    return (torch.rand(batch, channels, size, size),)


def words(count, length, batch=2):
    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[0, length // 2:] = 0
    return torch.randint(0, count, (batch, length)), mask


# name: (model, inputs, operator set, names of inputs, axes that the file leaves open)
def small_models():
    batch = {0: "batch"}
    return {
        "mlp": (Mlp([8, 16, 16, 4]), (torch.randn(3, 8),), 13, ["x"], {"x": batch}),
        "braggnn": (BraggNN(8), pictures(11, 1), 14, ["patch"], {"patch": batch}),
        "unet": (UNet(4), pictures(16, 1), 15, ["image"], {"image": {0: "batch", 2: "height", 3: "width"}}),
        "lstm": (Lstm(5, 6), (torch.randn(2, 7, 5),), 16, ["x"], {"x": {0: "batch", 1: "time"}}),
        "bert": (Bert(50, 16, 2, 2, 12), words(50, 9), 17, ["ids", "mask"],
                 {"ids": {0: "batch", 1: "time"}, "mask": {0: "batch", 1: "time"}}),
        "attention": (Attention(32, 4), (torch.randn(2, 40, 32),), 14, ["x"], {}),
        "resnet": (SmallResNet(4), pictures(32), 13, ["image"], {"image": batch}),
        "mobilenet_v3": (small_mobilenet(), pictures(32), 15, ["image"], {}),
        "efficientnet": (small_efficientnet(), pictures(32), 17, ["image"], {"image": batch}),
    }


def full_models():
    return {
        "mlp": (Mlp([784, 512, 512, 10]), (torch.randn(8, 784),), 13, ["x"], {}),
        "braggnn": (BraggNN(1), pictures(11, 1, 8), 14, ["patch"], {}),
        "unet": (UNet(64, 4), pictures(128, 1, 1), 15, ["image"], {}),
        "lstm": (Lstm(64, 256), (torch.randn(2, 50, 64),), 16, ["x"], {}),
        "bert": (Bert(30522, 768, 12, 12, 512), words(30522, 128, 1), 17, ["ids", "mask"], {}),
        "attention": (Attention(512, 8), (torch.randn(64, 8, 512),), 14, ["x"], {}),
        "resnet50": (resnet50(), pictures(224, 3, 1), 13, ["image"], {}),
        "mobilenet_v3_large": (mobilenet_v3_large(), pictures(224, 3, 1), 15, ["image"], {}),
        "efficientnet_b0": (efficientnet_b0(), pictures(224, 3, 1), 17, ["image"], {}),
    }


def varint(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(out) + bytes([number])


def field(number, data):
    return varint(number << 3 | 2) + varint(len(data)) + data


# TensorProto: dims = 1, data_type = 2, name = 8, raw_data = 9 (onnx.proto).
def tensor_proto(name, tensor):
    kinds = {torch.float32: 1, torch.int64: 7}
    dims = b"".join(varint(1 << 3) + varint(extent) for extent in tensor.shape)
    data = tensor.contiguous().numpy().tobytes()
    return dims + varint(2 << 3) + varint(kinds[tensor.dtype]) + field(8, name.encode()) + field(9, data)


def prepare(model, inputs):
    """Statistics and scales that are not the initial ones, so that a mix-up of them shows."""
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm, nn.InstanceNorm2d)):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.uniform_(module.bias, -0.5, 0.5)
    model.train()
    with torch.no_grad():
        for _ in range(20):
            model(*inputs)
    return model.eval()


def export(folder, name, model, inputs, opset, names, dynamic):
    case = os.path.join(folder, name)
    os.makedirs(os.path.join(case, "test_data_set_0"), exist_ok=True)
    model = prepare(model, inputs)
    by_tracing = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    torch.onnx.export(model, inputs, os.path.join(case, "model.onnx"), opset_version=opset, input_names=names,
                      dynamic_axes=dynamic, **by_tracing)
    with torch.no_grad():
        outputs = model(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, tensor in enumerate(tensors):
            with open(os.path.join(case, "test_data_set_0", f"{kind}_{i}.pb"), "wb") as file:
                file.write(tensor_proto(f"{kind}_{i}", tensor))
    print(f"{name}: operator set {opset}, {os.path.getsize(os.path.join(case, 'model.onnx'))} bytes")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--full", action="store_true", help="the architectures at their published sizes")
    parser.add_argument("--only", help="one of them, by name")
    arguments = parser.parse_args()
    torch.manual_seed(7)
    models = full_models() if arguments.full else small_models()
    for name, row in models.items():
        if arguments.only in (None, name):
            export(arguments.folder, name, *row)


if __name__ == "__main__":
    main()
