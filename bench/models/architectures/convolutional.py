"""Convolutional networks in the manner of published picture networks, and of images that are turned into images."""

import torch
from torch import nn
from torch.nn import functional as F


def picture(side, channels=3):
    return (torch.rand(1, channels, side, side),)


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


def convmixer(width=96, depth=4):
    block = lambda: nn.Sequential(
        Residual(nn.Sequential(nn.Conv2d(width, width, 5, groups=width, padding=2), nn.GELU(), nn.BatchNorm2d(width))),
        nn.Conv2d(width, width, 1), nn.GELU(), nn.BatchNorm2d(width))
    return nn.Sequential(nn.Conv2d(3, width, 4, stride=4), nn.GELU(), nn.BatchNorm2d(width), *[block() for _ in range(depth)],
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 100)), picture(64)


class RepVgg(nn.Module):
    """Three branches that a file may hold apart."""

    def __init__(self, a, b, stride):
        super().__init__()
        self.wide = nn.Sequential(nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b))
        self.narrow = nn.Sequential(nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b))
        self.same = nn.BatchNorm2d(a) if a == b and stride == 1 else None

    def forward(self, x):
        y = self.wide(x) + self.narrow(x)
        return F.relu(y if self.same is None else y + self.same(x))


def repvgg():
    widths = [(3, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), (128, 128, 1)]
    return nn.Sequential(*[RepVgg(*w) for w in widths], nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)), picture(96)


class Ghost(nn.Module):
    """Half of the channels by a convolution, the other half by cheap ones from these."""

    def __init__(self, a, b):
        super().__init__()
        half = b // 2
        self.primary = nn.Sequential(nn.Conv2d(a, half, 1, bias=False), nn.BatchNorm2d(half), nn.ReLU())
        self.cheap = nn.Sequential(nn.Conv2d(half, half, 3, padding=1, groups=half, bias=False), nn.BatchNorm2d(half), nn.ReLU())

    def forward(self, x):
        y = self.primary(x)
        return torch.cat([y, self.cheap(y)], 1)


def ghostnet():
    return nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), Ghost(16, 32), nn.MaxPool2d(2), Ghost(32, 64), Ghost(64, 64), nn.MaxPool2d(2),
                         Ghost(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)), picture(96)


class Excitation(nn.Module):
    """Channels weighted by the hard sigmoid of what a network says of their means, written as Clip(x + 3, 0, 6) / 6."""

    def __init__(self, width):
        super().__init__()
        self.squeeze, self.expand = nn.Conv2d(width, width // 4, 1), nn.Conv2d(width // 4, width, 1)

    def forward(self, x):
        s = self.expand(F.relu(self.squeeze(x.mean((2, 3), keepdim=True))))
        return x * (F.relu6(s + 3) / 6)


def senet_relu6():
    block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), nn.BatchNorm2d(b), nn.ReLU6(), Excitation(b),
                                       nn.Conv2d(b, b, 3, padding=1, groups=b, bias=False), nn.BatchNorm2d(b), nn.ReLU6())
    return nn.Sequential(block(3, 32), block(32, 64), block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(128, 100)), picture(96)


class FrozenAffine(nn.Module):
    """A normalization that was frozen to a product and a sum, as detectors have it."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("scale", torch.rand(1, width, 1, 1) + 0.5)
        self.register_buffer("shift", torch.rand(1, width, 1, 1))

    def forward(self, x):
        return x * self.scale + self.shift


def frozen_norm_net():
    block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, 2, 1, bias=False), FrozenAffine(b), nn.ReLU(),
                                       nn.Conv2d(b, b, 1, bias=False), FrozenAffine(b), nn.ReLU())
    return nn.Sequential(block(3, 32), block(32, 64), block(64, 128), nn.Flatten(), nn.Linear(128 * 64, 10)), picture(64)


def preactivation_net():
    """Normalization and rectifier before each convolution: nothing in front of them to be merged with."""
    block = lambda w: Residual(nn.Sequential(nn.BatchNorm2d(w), nn.ReLU(), nn.Conv2d(w, w, 3, padding=1, bias=False),
                                             nn.BatchNorm2d(w), nn.ReLU(), nn.Conv2d(w, w, 3, padding=1, bias=False)))
    return nn.Sequential(nn.Conv2d(3, 48, 3, 2, 1), block(48), block(48), nn.AvgPool2d(2), block(48), nn.BatchNorm2d(48), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(48, 10)), picture(64)


def double(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU(),
                         nn.Conv2d(b, b, 3, padding=1, bias=False), nn.BatchNorm2d(b), nn.ReLU())


class UNet(nn.Module):
    def __init__(self, width=16, interpolate=False):
        super().__init__()
        w = [width, 2 * width, 4 * width]
        self.down = nn.ModuleList([double(1, w[0]), double(w[0], w[1]), double(w[1], w[2])])
        self.up = nn.ModuleList([nn.Sequential(nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
                                               nn.Conv2d(b, a, 1)) if interpolate else nn.ConvTranspose2d(b, a, 2, 2)
                                 for a, b in ((w[1], w[2]), (w[0], w[1]))])
        self.join = nn.ModuleList([double(2 * w[1], w[1]), double(2 * w[0], w[0])])
        self.out = nn.Conv2d(w[0], 1, 1)

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](F.max_pool2d(a, 2))
        c = self.down[2](F.max_pool2d(b, 2))
        b = self.join[0](torch.cat([b, self.up[0](c)], 1))
        return torch.sigmoid(self.out(self.join[1](torch.cat([a, self.up[1](b)], 1))))


class GatedUNet(UNet):
    """Skips weighted by a gate (Oktay et al., arXiv 1804.03999)."""

    def __init__(self):
        super().__init__()
        self.gate = nn.ModuleList([nn.Sequential(nn.Conv2d(2 * w, 8, 1), nn.ReLU(), nn.Conv2d(8, 1, 1), nn.Sigmoid()) for w in (32, 16)])

    def forward(self, x):
        a = self.down[0](x)
        b = self.down[1](F.max_pool2d(a, 2))
        up = self.up[0](self.down[2](F.max_pool2d(b, 2)))
        b = self.join[0](torch.cat([b * self.gate[0](torch.cat([b, up], 1)), up], 1))
        up = self.up[1](b)
        return self.out(self.join[1](torch.cat([a * self.gate[1](torch.cat([a, up], 1)), up], 1)))


class Diffusion(nn.Module):
    """The noise of an image at a time, which goes into each block as a shift of its channels."""

    def __init__(self, width=32):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(32, 64), nn.SiLU(), nn.Linear(64, 2 * width))
        self.first, self.last = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.norms = nn.ModuleList([nn.GroupNorm(8, width) for _ in range(3)])
        self.convolutions = nn.ModuleList([nn.Conv2d(width, width, 3, padding=1) for _ in range(3)])
        self.qkv, self.out = nn.Conv2d(width, 3 * width, 1), nn.Conv2d(width, width, 1)

    def forward(self, x, t):
        frequencies = torch.exp(torch.arange(16) * -0.6)
        angles = t[:, None] * frequencies[None]
        shifts = self.time(torch.cat([angles.sin(), angles.cos()], 1)).chunk(2, 1)
        x = self.first(x)
        for norm, convolution, shift in zip(self.norms, self.convolutions, (*shifts, None)):
            h = F.silu(norm(x))
            x = x + convolution(h if shift is None else h + shift[:, :, None, None])
        n, c, h, w = x.shape
        q, k, v = self.qkv(x).reshape(n, 3, c, h * w).unbind(1)
        weights = torch.softmax(torch.einsum("ncs,nct->nst", q, k) * c ** -0.5, -1)
        return self.last(x + self.out(torch.einsum("nst,nct->ncs", weights, v).reshape(n, c, h, w)))


class SuperResolution(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 48, 5, padding=2), nn.PReLU(48), nn.Conv2d(48, 24, 3, padding=1), nn.PReLU(24),
                                 nn.Conv2d(24, 9, 3, padding=1), nn.PixelShuffle(3))

    def forward(self, x):
        return self.net(x).clamp(0, 1)


class Autoencoder(nn.Module):
    """A variational one at its mean."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, 16, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(16, 32, 4, 2, 1), nn.LeakyReLU(0.2),
                                    nn.Flatten(), nn.Linear(32 * 49, 32))
        self.open = nn.Linear(16, 32 * 49)
        self.decode = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(16, 1, 4, 2, 1))

    def forward(self, x):
        mean, logarithm = self.encode(x).chunk(2, 1)
        z = mean + torch.exp(0.5 * logarithm)
        return torch.sigmoid(self.decode(self.open(z).view(-1, 32, 7, 7))), mean, logarithm


TABLE = {
    "convmixer": convmixer,
    "repvgg": repvgg,
    "ghostnet": ghostnet,
    "senet_relu6": senet_relu6,
    "frozen_norm_net": frozen_norm_net,
    "preactivation_net": preactivation_net,
    "unet": lambda: (UNet(), picture(64, 1)),
    "unet_bilinear": lambda: (UNet(interpolate=True), picture(64, 1)),
    "unet_gated": lambda: (GatedUNet(), picture(64, 1)),
    "diffusion_unet": lambda: (Diffusion(), (torch.rand(1, 3, 16, 16), torch.rand(1))),
    "super_resolution": lambda: (SuperResolution(), picture(48, 1)),
    "variational_autoencoder": lambda: (Autoencoder(), picture(28, 1)),
}
