"""The models that Superstep is compared on, in PyTorch: the layers of its own workloads of the same names."""

import math

import torch
from torch import nn
from torch.nn import functional as F

import molecules

# Whether attention is PyTorch's own fused operator; torch_setups.py tries both.
FUSED_ATTENTION = False


class NonLocal(nn.Module):
    """Attention over the positions of a picture, without a scale factor, added to its input."""

    def __init__(self, channels):
        super().__init__()
        inner = channels // 2
        self.theta = nn.Conv2d(channels, inner, 1)
        self.phi = nn.Conv2d(channels, inner, 1)
        self.g = nn.Conv2d(channels, inner, 1)
        self.out = nn.Conv2d(inner, channels, 1)

    def forward(self, x):
        theta, phi, g = (part(x).flatten(2).transpose(1, 2) for part in (self.theta, self.phi, self.g))
        if FUSED_ATTENTION:
            mixed = F.scaled_dot_product_attention(theta, phi, g, scale=1.0)
        else:
            mixed = torch.bmm(F.softmax(torch.bmm(theta, phi.transpose(1, 2)), dim=-1), g)
        mixed = mixed.transpose(1, 2).reshape(x.shape[0], -1, x.shape[2], x.shape[3])
        return x + self.out(mixed)


def dense(sizes, activation, last):
    layers = []
    for i, (wide, narrow) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(wide, narrow))
        if last or i + 2 < len(sizes):
            layers.append(activation())
    return layers


class BraggNN(nn.Module):
    """Z. Liu et al., IUCrJ 9(1), 104-113 (2022): 33,172 parameters for patches of 11 x 11."""

    def __init__(self, patch=11):
        super().__init__()
        leaky = lambda: nn.LeakyReLU(0.01)
        side = patch - 6
        self.stem = nn.Conv2d(1, 64, 3)
        self.attention = NonLocal(64)
        self.body = nn.Sequential(leaky(), nn.Conv2d(64, 32, 3), leaky(), nn.Conv2d(32, 8, 3), leaky())
        self.head = nn.Sequential(*dense([8 * side * side, 16, 8, 4, 2], leaky, True), nn.Linear(2, 2))

    def forward(self, x):
        return self.head(self.body(self.attention(self.stem(x))).flatten(1))


class Mlp(nn.Module):
    """16-64-64-64-1 with ReLU: 9,473 parameters."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*dense([16, 64, 64, 64, 1], nn.ReLU, False))

    def forward(self, x):
        return self.layers(x)


class CifarCnn(nn.Module):
    """The printed CIFAR-10 classifier: 642,570 parameters."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Dropout(0.25),
            nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Conv2d(64, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
            nn.Dropout(0.25))
        self.head = nn.Sequential(nn.Linear(32 * 6 * 6, 512), nn.ReLU(), nn.Dropout(0.5), nn.Linear(512, 10))

    def forward(self, x):
        return self.head(self.features(x).flatten(1))


class PtychoNN(nn.Module):
    """M. Cherukara et al., Appl. Phys. Lett. 117, 044103 (2020): one encoder, a decoder for amplitude and one for phase."""

    def __init__(self):
        super().__init__()
        conv = lambda i, o: [nn.Conv2d(i, o, 3, padding=1), nn.ReLU()]
        down = lambda i, o: conv(i, o) + conv(o, o) + [nn.MaxPool2d(2)]
        up = lambda i, o: conv(i, o) + conv(o, o) + [nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)]
        decoder = lambda: nn.Sequential(*up(128, 128), *up(128, 64), *up(64, 64), nn.Conv2d(64, 1, 3, padding=1))
        self.encoder = nn.Sequential(*down(1, 32), *down(32, 64), *down(64, 128))
        self.amplitude, self.phase = decoder(), decoder()

    def forward(self, x):
        code = self.encoder(x)
        return torch.sigmoid(self.amplitude(code)), torch.tanh(self.phase(code)) * math.pi


class PtychoNN128(nn.Module):
    """A. Babu et al., Nat. Commun. 14, 7059 (2023): one encoder of four levels and a decoder for the phase."""

    def __init__(self):
        super().__init__()
        conv = lambda i, o: [nn.Conv2d(i, o, 3, padding=1), nn.ReLU()]
        down = lambda i, o: conv(i, o) + conv(o, o) + [nn.MaxPool2d(2)]
        up = lambda i, o: conv(i, o) + conv(o, o) + [nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False)]
        self.layers = nn.Sequential(*down(1, 16), *down(16, 32), *down(32, 64), *down(64, 128), *up(128, 128), *up(128, 64),
                                    *up(64, 32), *up(32, 16), nn.Conv2d(16, 1, 3, padding=1))

    def forward(self, x):
        return torch.tanh(self.layers(x)) * math.pi


class CookieNetAE(nn.Module):
    """Front. Phys. 10, 957509 (2022): electrons of 128 angles and 128 energies to their density."""

    def __init__(self):
        super().__init__()
        conv = lambda i, o: [nn.Conv2d(i, o, 3, padding=1), nn.ReLU()]
        up = lambda i, o: [nn.ConvTranspose2d(i, o, 2, 2), nn.ReLU()]
        pool = [nn.MaxPool2d(2)]
        self.layers = nn.Sequential(*conv(1, 16), *pool, *conv(16, 32), *pool, *conv(32, 64), *pool, *conv(64, 128), *up(128, 128),
                                    *up(128, 64), *up(64, 32), nn.ConvTranspose2d(32, 16, 3, padding=1), nn.ReLU(), *conv(16, 1))

    def forward(self, x):
        return self.layers(x)


class PcaCompress(nn.Module):
    """Frames to their shares of 64 components, and back."""

    def __init__(self, side=128, components=64):
        super().__init__()
        self.basis, self.mean = nn.Parameter(torch.empty(side * side, components)), nn.Parameter(torch.empty(side * side))

    def forward(self, x):
        code = (x.flatten(1) - self.mean) @ self.basis
        return code, (code @ self.basis.T + self.mean).view_as(x)


class Sobel(nn.Module):
    """Both gradients of a frame and their magnitude."""

    def __init__(self):
        super().__init__()
        self.taps = nn.Conv2d(1, 2, 3, padding=1, bias=False)

    def forward(self, x):
        gx, gy = self.taps(x).split(1, 1)
        return gx, gy, torch.sqrt(gx * gx + gy * gy + 1e-12)


class ResidualBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.layers = nn.Sequential(conv_norm(channels, channels, 3, activation=nn.ReLU), conv_norm(channels, channels, 3))

    def forward(self, x):
        return x + self.layers(x)


class ImageAutoencoder(nn.Module):
    """A. Nasari et al., PEARC '22, section 3.4: residual blocks around one bottleneck of 8 bits a value."""

    def __init__(self, width=64, bottleneck=16):
        super().__init__()
        conv = lambda i, o, stride=1: nn.Conv2d(i, o, 3, stride, 1)
        up = lambda i, o: nn.ConvTranspose2d(i, o, 4, 2, 1)
        blocks = lambda channels, count: [ResidualBlock(channels) for _ in range(count)]
        self.encoder = nn.Sequential(conv(1, width), *blocks(width, 3), conv(width, 2 * width, 2), *blocks(2 * width, 3),
                                     conv(2 * width, 4 * width, 2), *blocks(4 * width, 2), conv(4 * width, bottleneck))
        self.decoder = nn.Sequential(conv(bottleneck, 4 * width), *blocks(4 * width, 2), up(4 * width, 2 * width), *blocks(2 * width, 3),
                                     up(2 * width, width), *blocks(width, 3), conv(width, 1), nn.Sigmoid())

    def forward(self, x):
        code = self.encoder(x)
        scale = code.abs().amax((1, 2, 3), keepdim=True).clamp(min=1e-6) / 127
        code = code + (torch.round(code / scale) * scale - code).detach()
        return self.decoder(code), code


class AutophaseNN(nn.Module):
    """Y. Yao et al., npj Comput. Mater. 8, 124 (2022), of patterns of 32 voxels per side: amplitude and phase of a crystal."""

    def __init__(self, width=32, size=32):
        super().__init__()
        conv = lambda i, o: [nn.Conv3d(i, o, 3, padding=1), nn.LeakyReLU(0.01), nn.BatchNorm3d(o)]
        down = lambda i, o: conv(i, o) + conv(o, o) + [nn.MaxPool3d(2)]
        up = lambda i, o: conv(i, o) + conv(o, o) + [nn.Upsample(scale_factor=2, mode="trilinear", align_corners=True)]
        decoder = lambda: nn.Sequential(*up(8 * width, 4 * width), *up(4 * width, 2 * width), *up(2 * width, width),
                                        nn.Conv3d(width, 1, 3, padding=1))
        self.encoder = nn.Sequential(*down(1, width), *down(width, 2 * width), *down(2 * width, 4 * width), *down(4 * width, 8 * width))
        self.amplitude, self.phase = decoder(), decoder()

    def forward(self, x):
        code = self.encoder(x)
        return torch.sigmoid(self.amplitude(code)), torch.tanh(self.phase(code)) * math.pi


def diffraction_loss(outputs, pattern):
    """The distance of the pattern that a crystal would have from the measured one: what AutophaseNN learns by."""
    amplitude, phase = outputs
    before = amplitude.shape[-1] // 2
    crystal = F.pad(torch.polar(torch.where(amplitude > 0.1, amplitude, 0.0), phase), [before] * 6)
    far = torch.fft.fftshift(torch.fft.fftn(crystal, dim=(2, 3, 4)), dim=(2, 3, 4)).abs()
    return F.l1_loss(far / (far.amax((1, 2, 3, 4), keepdim=True) + 1e-6), pattern)


class Conductivity(nn.Module):
    """The small form for processors: seven convolutions, each halved, and three dense layers."""

    def __init__(self):
        super().__init__()
        widths = [1, 16, 32, 64, 96, 128, 192, 256]
        self.blocks = nn.Sequential(*[layer for i, o in zip(widths, widths[1:])
                                      for layer in (conv_norm(i, o, 3, activation=nn.ReLU), nn.MaxPool2d(2))])
        self.block8, self.block9, self.block10 = nn.Linear(1024, 512), nn.Linear(513, 64), nn.Linear(64, 1)

    def forward(self, image, sigma):
        x = F.relu(self.block8(self.blocks(image).flatten(1)))
        x = F.relu(self.block9(torch.cat([x, torch.log10(sigma.clamp(min=1e-6)) / 64], 1)))
        return self.block10(x) * sigma


LOG_KELVIN = 0.33  # of the logarithm of a temperature: what the network's unit is


class Polymers(nn.Module):
    """ANL-23/15 (2022): packs of repeat units as graphs to glass transition temperatures. Index -1 (padding) is not timed."""

    def __init__(self, width, with_bonds, layers=4, atoms=256, polymers=24):
        super().__init__()
        self.atoms, self.polymers, self.with_bonds = atoms, polymers, with_bonds
        sizes = [36] + [width] * layers
        pairs = list(zip(sizes, sizes[1:]))
        self.norms = nn.ModuleList([nn.BatchNorm1d(o) for _, o in pairs])
        self.own = nn.ModuleList([nn.Linear(i, o, bias=not with_bonds) for i, o in pairs])
        if with_bonds:
            self.at_target, self.at_source = (nn.ModuleList([nn.Linear(i, o, bias=False) for i, o in pairs]) for _ in range(2))
            self.bonds = nn.ModuleList([nn.Linear(6, o) for _, o in pairs])
        self.hidden, self.out = nn.Linear(width, 64), nn.Linear(64, 1)

    @staticmethod
    def sums(values, index, count):
        return values.new_zeros(count, values.shape[1]).index_add_(0, index, values)

    def convolved(self, h, source, target):
        own = torch.arange(h.shape[0])
        source, target = torch.cat([source, own]), torch.cat([target, own])
        root = self.sums(torch.ones(len(target), 1), target, len(h)).rsqrt()
        weight = root[source] * root[target]
        for layer, norm in zip(self.own, self.norms):
            h = F.relu(norm(layer(self.sums(h[source] * weight, target, len(h)))))
        return h

    def messages(self, h, source, target, bonds):
        for own, at_target, at_source, bond, norm in zip(self.own, self.at_target, self.at_source, self.bonds, self.norms):
            said = F.relu(at_target(h)[target] + at_source(h)[source] + bond(bonds))
            h = F.relu(norm(own(h) + self.sums(said, target, len(h))))
        return h

    def forward(self, x, edge_index, *rest):
        packs = x.shape[0]
        first = torch.arange(packs).view(-1, 1)
        source, target = ((edge_index[:, i] + first * self.atoms).flatten() for i in range(2))
        polymer = (rest[-1] + first * self.polymers).flatten()
        rows = x.flatten(0, 1)
        h = self.messages(rows, source, target, rest[0].flatten(0, 1)) if self.with_bonds else self.convolved(rows, source, target)
        hidden = F.relu(self.hidden(self.sums(h, polymer, packs * self.polymers)))
        kelvin = torch.exp(self.out(hidden) * LOG_KELVIN).view(packs, self.polymers)
        if self.training:
            return kelvin
        slope = ((hidden > 0) * (self.out.weight * LOG_KELVIN)) @ self.hidden.weight
        return kelvin, (slope[polymer] * h).sum(1).view(packs, self.atoms)


def loss_of_logarithms(kelvin, targets):
    """A square within one unit of the logarithm, a line beyond, weighted."""
    measured, weight = targets
    distance = (torch.log(kelvin) - torch.log(measured.clamp(min=1))).abs() / LOG_KELVIN
    inside = distance.clamp(max=1)
    return (weight * (inside * inside * 0.5 + (distance - inside))).mean()


def conv_norm(i, o, kernel, stride=1, groups=1, activation=None, epsilon=1e-5, momentum=0.1):
    layers = [nn.Conv2d(i, o, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(o, epsilon, momentum)]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class UNet(nn.Module):
    """M. Buda, A. Saha, M. Mazurowski, Comput. Biol. Med. 109 (2019)."""

    def __init__(self, width, levels):
        super().__init__()
        block = lambda i, o: nn.Sequential(conv_norm(i, o, 3, activation=nn.ReLU), conv_norm(o, o, 3, activation=nn.ReLU))
        widths = [width << level for level in range(levels + 1)]
        self.down = nn.ModuleList([block(i, o) for i, o in zip([3] + widths, widths)])
        self.up = nn.ModuleList([nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths[:-1])])
        self.block = nn.ModuleList([block(2 * w, w) for w in reversed(widths[:-1])])
        self.head = nn.Conv2d(width, 1, 1)

    def forward(self, x):
        skips = []
        for block in self.down[:-1]:
            skips.append(block(x))
            x = F.max_pool2d(skips[-1], 2)
        x = self.down[-1](x)
        for up, block in zip(self.up, self.block):
            x = block(torch.cat([up(x), skips.pop()], 1))
        return torch.sigmoid(self.head(x))


class Uno(nn.Module):
    """CANDLE Pilot1/Uno with one drug: 16,224,001 parameters."""

    def __init__(self, width=1000):
        super().__init__()
        tower = lambda i, n: nn.Sequential(*[l for k in range(n) for l in (nn.Linear(i if k == 0 else width, width), nn.ReLU(), nn.Dropout(0.1))])
        self.cell, self.drug, self.joint = tower(942, 3), tower(5270, 3), tower(2 * width, 5)
        self.out = nn.Linear(width, 1)

    def forward(self, cell, drug):
        return self.out(self.joint(torch.cat([self.cell(cell), self.drug(drug)], 1)))


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride):
        super().__init__()
        self.body = nn.Sequential(conv_norm(i, width, 1, activation=nn.ReLU), conv_norm(width, width, 3, stride, activation=nn.ReLU),
                                  conv_norm(width, 4 * width, 1))
        self.shortcut = conv_norm(i, 4 * width, 1, stride) if stride != 1 or i != 4 * width else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.shortcut(x))


class ResNet50(nn.Module):
    """K. He et al., CVPR 2016, with the stride in the 3x3 convolution: 25,557,032 parameters."""

    def __init__(self):
        super().__init__()
        layers, i = [conv_norm(3, 64, 7, 2, activation=nn.ReLU), nn.MaxPool2d(3, 2, 1)], 64
        for stage, depth in enumerate((3, 4, 6, 3)):
            for k in range(depth):
                layers.append(Bottleneck(i, 64 << stage, 2 if k == 0 and stage > 0 else 1))
                i = 256 << stage
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(2048, 1000)

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class Excite(nn.Module):
    def __init__(self, channels, squeezed, activation, gate):
        super().__init__()
        self.reduce, self.expand = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.activation, self.gate = activation(), gate()

    def forward(self, x):
        return x * self.gate(self.expand(self.activation(self.reduce(x.mean((2, 3), keepdim=True)))))


class Inverted(nn.Module):
    """An inverted bottleneck, as MobileNetV3 and EfficientNet have it."""

    def __init__(self, i, expanded, o, kernel, stride, activation, excite, **norm):
        super().__init__()
        layers = [conv_norm(i, expanded, 1, activation=activation, **norm)] if expanded != i else []
        layers.append(conv_norm(expanded, expanded, kernel, stride, expanded, activation, **norm))
        layers += [excite] if excite else []
        self.body = nn.Sequential(*layers, conv_norm(expanded, o, 1, **norm))
        self.residual = stride == 1 and i == o

    def forward(self, x):
        return x + self.body(x) if self.residual else self.body(x)


class MobileNetV3Small(nn.Module):
    """A. Howard et al., ICCV 2019: 2,542,856 parameters."""

    ROWS = [(3, 16, 16, 8, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 24, 1, 2), (5, 240, 40, 64, 1, 1),
            (5, 240, 40, 64, 1, 1), (5, 120, 48, 32, 1, 1), (5, 144, 48, 40, 1, 1), (5, 288, 96, 72, 1, 2),
            (5, 576, 96, 144, 1, 1), (5, 576, 96, 144, 1, 1)]

    def __init__(self):
        super().__init__()
        norm = {"epsilon": 1e-3, "momentum": 0.01}
        layers, i = [conv_norm(3, 16, 3, 2, activation=nn.Hardswish, **norm)], 16
        for kernel, expanded, o, squeezed, swish, stride in self.ROWS:
            excite = Excite(expanded, squeezed, nn.ReLU, nn.Hardsigmoid) if squeezed else None
            layers.append(Inverted(i, expanded, o, kernel, stride, nn.Hardswish if swish else nn.ReLU, excite, **norm))
            i = o
        self.features = nn.Sequential(*layers, conv_norm(96, 576, 1, activation=nn.Hardswish, **norm))
        self.head = nn.Sequential(nn.Linear(576, 1024), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(1024, 1000))

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class EfficientNetB0(nn.Module):
    """M. Tan, Q. Le, ICML 2019: 5,288,548 parameters."""

    STAGES = [(1, 16, 1, 3, 1), (6, 24, 2, 3, 2), (6, 40, 2, 5, 2), (6, 80, 3, 3, 2), (6, 112, 3, 5, 1), (6, 192, 4, 5, 2), (6, 320, 1, 3, 1)]

    def __init__(self):
        super().__init__()
        layers, i = [conv_norm(3, 32, 3, 2, activation=nn.SiLU)], 32
        for expansion, o, repeats, kernel, stride in self.STAGES:
            for k in range(repeats):
                excite = Excite(i * expansion, i // 4, nn.SiLU, nn.Sigmoid)
                layers.append(Inverted(i, i * expansion, o, kernel, stride if k == 0 else 1, nn.SiLU, excite))
                i = o
        self.features = nn.Sequential(*layers, conv_norm(320, 1280, 1, activation=nn.SiLU))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, x):
        return self.head(self.features(x).mean((2, 3)))


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = nn.LayerNorm(width, 1e-12), nn.LayerNorm(width, 1e-12)
        self.inner, self.outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x, hidden):
        n, t, d = x.shape
        split = lambda y: y.view(n, t, self.heads, d // self.heads).transpose(1, 2)
        query, key, value = split(self.query(x)), split(self.key(x)), split(self.value(x))
        if FUSED_ATTENTION:
            mixed = F.scaled_dot_product_attention(query, key, value, hidden.to(query.dtype), 0.1 if self.training else 0.0)
        else:
            scores = query * (d // self.heads) ** -0.5 @ key.transpose(2, 3) + hidden
            mixed = F.dropout(F.softmax(scores, -1), 0.1, self.training) @ value
        mixed = mixed.transpose(1, 2).reshape(n, t, d)
        x = self.norm1(x + F.dropout(self.out(mixed), 0.1, self.training))
        return self.norm2(x + F.dropout(self.outer(F.gelu(self.inner(x))), 0.1, self.training))


class Bert(nn.Module):
    """J. Devlin et al., arXiv 1810.04805, with the table of embeddings as the last layer."""

    def __init__(self, layers, width, heads, length, vocabulary):
        super().__init__()
        self.word, self.position = nn.Embedding(vocabulary, width), nn.Parameter(torch.zeros(512, width))
        self.norm, self.length = nn.LayerNorm(width, 1e-12), length
        self.layers = nn.ModuleList([EncoderLayer(width, heads) for _ in range(layers)])

    def forward(self, ids, mask):
        hidden = ((1 - mask.float()) * -10000).view(mask.shape[0], 1, 1, -1)
        x = F.dropout(self.norm(self.word(ids) + self.position[:self.length]), 0.1, self.training)
        for layer in self.layers:
            x = layer(x, hidden)
        return F.linear(x, self.word.weight)


class BertAnswers(nn.Module):
    """The same with kinds of tokens, and two scores per token in the place of words: of being an answer's first and last."""

    def __init__(self, layers, width, heads, length, vocabulary):
        super().__init__()
        self.bert = Bert(layers, width, heads, length, vocabulary)
        self.kind, self.answer = nn.Embedding(2, width), nn.Linear(width, 2)

    def forward(self, ids, mask, kinds):
        bert = self.bert
        hidden = ((1 - mask.float()) * -10000).view(mask.shape[0], 1, 1, -1)
        x = F.dropout(bert.norm(bert.word(ids) + bert.position[:bert.length] + self.kind(kinds)), 0.1, self.training)
        for layer in bert.layers:
            x = layer(x, hidden)
        return self.answer(x).unbind(-1)


class Lstm(nn.Module):
    """LSTM layers over a sequence, and a dense layer on the last state where there is one."""

    def __init__(self, inputs, units, layers, dense):
        super().__init__()
        self.lstm = nn.LSTM(inputs, units, layers, batch_first=True)
        self.head = nn.Linear(units, 1) if dense else None

    def forward(self, x):
        last = self.lstm(x)[0][:, -1]
        return self.head(last) if self.head else last


class Entry:
    """A model with what its training step needs: `sample`, the shape of an input or a list of inputs."""

    def __init__(self, make, parameters, sample, target, loss, optimizer, rate):
        self.make, self.parameters, self.sample, self.target = make, parameters, sample, target
        self.loss, self.optimizer, self.rate = loss, optimizer, rate

    @staticmethod
    def tensor(kind, batch, generator):
        if isinstance(kind, Tokens):
            shape = (batch,) + kind.length
            return torch.randint(0, kind.below, shape, generator=generator) if kind.below else torch.ones(shape, dtype=torch.long)
        return torch.rand((batch,) + kind, generator=generator)

    def inputs(self, batch, generator):
        return tuple(self.tensor(kind, batch, generator) for kind in (self.sample if isinstance(self.sample, list) else [self.sample]))

    def targets(self, batch, generator):
        if self.target == "class":
            return torch.randint(0, 10, (batch,), generator=generator)
        if isinstance(self.target, list):
            return [self.tensor(kind, batch, generator) for kind in self.target]
        return self.tensor(self.target, batch, generator)


class Tokens:
    """Whole numbers below `below`, or ones where that is zero; `length` may be a shape."""

    def __init__(self, length, below):
        self.length, self.below = length if isinstance(length, tuple) else (length,), below


def both_l1(outputs, targets):
    return F.l1_loss(outputs[0], targets[0]) + F.l1_loss(outputs[1], targets[1])


def dice(output, target):
    return 1 - (2 * (output * target).sum() + 1) / (output.sum() + target.sum() + 1)


def tokens_loss(output, labels):
    return F.cross_entropy(output.view(-1, output.shape[-1]), labels.view(-1)) / 0.15


def picture(make, parameters):
    return Entry(make, parameters, (3, 224, 224), "class", F.cross_entropy, "adam", 1e-3)


def language(layers, width, heads, length, vocabulary, parameters):
    return Entry(lambda: Bert(layers, width, heads, length, vocabulary), parameters, [Tokens(length, vocabulary), Tokens(length, 0)],
                 Tokens(length, vocabulary), tokens_loss, "adam", 1e-3)


def answers_loss(outputs, targets):
    return sum(F.cross_entropy(scores, places.squeeze(1)) for scores, places in zip(outputs, targets)) / 2


def answers(length):
    return Entry(lambda: BertAnswers(12, 768, 12, length, 30522), 108893186, [Tokens(length, 30522), Tokens(length, 0), Tokens(length, 2)],
                 [Tokens(1, length), Tokens(1, length)], answers_loss, "adam", 1e-4)


def polymers(width, parameters, bonds):
    inputs = [(256, 36), Tokens((2, 576), 10), *bonds, Tokens(256, 10)]
    return Entry(lambda: Polymers(width, bool(bonds)), parameters, inputs, [(24,), (24,)], loss_of_logarithms, "adam", 3e-3)


def recurrent(steps, inputs, units):
    return Entry(lambda: Lstm(inputs, units, 1, False), 4 * units * (inputs + units + 2), (steps, inputs), (units,), F.mse_loss, "adam", 1e-3)


MODELS = {
    "braggnn": Entry(BraggNN, 33172, (1, 11, 11), (2,), F.mse_loss, "adam", 3e-4),
    "mlp": Entry(Mlp, 9473, (16,), (1,), F.mse_loss, "adam", 1e-3),
    "cifar10-cnn": Entry(CifarCnn, 642570, (3, 32, 32), "class", F.cross_entropy, "adam", 1e-3),
    "ptychonn-64": Entry(PtychoNN, 1247074, (1, 64, 64), [(1, 64, 64), (1, 64, 64)], both_l1, "adam", 1e-3),
    "ptychonn-128": Entry(PtychoNN128, 733921, (1, 128, 128), (1, 128, 128), F.l1_loss, "adam", 5e-4),
    "cookienetae": Entry(CookieNetAE, 208641, (1, 128, 128), (1, 128, 128), F.mse_loss, "adam", 2.4e-3),
    "image-autoencoder": Entry(ImageAutoencoder, 8038929, (1, 28, 28), (1, 28, 28), lambda y, t: F.mse_loss(y[0], t), "adam", 1e-3),
    "pca-compress-128": Entry(PcaCompress, 1064960, (128, 128), (128, 128), lambda y, t: F.mse_loss(y[1], t), "adam", 1e-6),
    "sobel-800": Entry(Sobel, 18, (1, 800, 800), [(1, 800, 800), (1, 800, 800)],
                       lambda y, t: F.mse_loss(y[0], t[0]) + F.mse_loss(y[1], t[1]), "adam", 1e-2),
    "autophasenn": Entry(AutophaseNN, 7003106, (1, 32, 32, 32), (1, 32, 32, 32), diffraction_loss, "adam", 1e-3),
    "conductivity": Entry(Conductivity, 1411953, [(1, 256, 256), (1,)], (1,), F.mse_loss, "adam", 1e-3),
    "polymer-gcn": polymers(128, 63617, []),
    "polymer-mpnn": polymers(96, 103041, [(576, 6)]),
    "gin": Entry(molecules.Gin, 89158, [(256, 36), Tokens((2, 576), 10), (576, 6), Tokens(256, 10)], [(16,), (16,)],
                 molecules.loss_of_odds, "adam", 3e-3),
    "yieldgnn": Entry(molecules.YieldGnn, 331286, [(256, 36), Tokens((2, 560), 10), (560, 6), Tokens(256, 5), (5, 280)], [(5,), (5,)],
                      molecules.loss_of_yields, "adam", 3e-3),
    "schnet": Entry(molecules.Schnet, 63233, [Tokens(96, 10), (96, 3), Tokens((2, 2640), 10), Tokens(96, 10)],
                    [(10,), (10,), (96, 3), (96, 3)], molecules.loss_of_clusters, "adam", 1e-3),
    "deepmd": Entry(lambda: molecules.Deepmd([8, 16, 32], 8, [64, 64, 64]), 25665,
                    [(32, 3), Tokens(32, 10), (3, 3), Tokens((32, 100), 10), (32, 100, 3)],
                    [(1,), (1,), (32, 3), (1,), (3, 3), (1,)], molecules.loss_of_frames, "adam", 1e-3),
    "mcmc": Entry(lambda: nn.Sequential(*dense([22, 40, 40, 1], nn.Tanh, False)), 2601, (22,), (1,), F.mse_loss, "adam", 1e-3),
    "uno": Entry(Uno, 16224001, [(942,), (5270,)], (1,), F.mse_loss, "adam", 1e-4),
    "unet-64": Entry(lambda: UNet(16, 2), 117361, (3, 64, 64), (1, 64, 64), dice, "adam", 1e-3),
    "unet-256": Entry(lambda: UNet(32, 4), 7763041, (3, 256, 256), (1, 256, 256), dice, "adam", 1e-3),
    "resnet50": picture(ResNet50, 25557032),
    "mobilenet-v3-small": picture(MobileNetV3Small, 2542856),
    "efficientnet-b0": picture(EfficientNetB0, 5288548),
    "bert-small": language(4, 256, 4, 64, 1024, 3552768),
    "distilbert": language(6, 768, 12, 128, 30522, 66362880),
    "bert-base-128": answers(128),
    "bert-base-384": answers(384),
    "lstm": Entry(lambda: Lstm(32, 128, 2, True), 215169, (50, 32), (1,), F.mse_loss, "adam", 1e-3),
    "rnn-k1": recurrent(50, 256, 256),
    "rnn-k2": recurrent(25, 512, 512),
    "rnn-k3": recurrent(25, 512, 512),
    "rnn-k4": recurrent(50, 512, 512),
}

# Those that have attention.
ATTENDS = {"braggnn", "bert-small", "distilbert", "bert-base-128", "bert-base-384"}

# With dropout no two trainings are alike.
DROPS_OUT = {"cifar10-cnn", "gin", "yieldgnn", "uno", "mobilenet-v3-small", "efficientnet-b0", "bert-small", "distilbert",
             "bert-base-128", "bert-base-384"}


def initialize(model):
    """Xavier-uniform weights, zero biases."""
    for module in model.modules():
        own = list(module.parameters(recurse=False))
        if not own or isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.LayerNorm)):
            continue
        for parameter in own:
            if parameter.dim() > 1:
                nn.init.xavier_uniform_(parameter)
            else:
                nn.init.zeros_(parameter)


def make(name, seed):
    """The model with its initial weights, checked against its published number of parameters."""
    torch.manual_seed(seed)
    model = MODELS[name].make()
    initialize(model)
    count = sum(p.numel() for p in model.parameters())
    if count != MODELS[name].parameters:
        raise RuntimeError("%s has %d parameters, not %d" % (name, count, MODELS[name].parameters))
    return model
