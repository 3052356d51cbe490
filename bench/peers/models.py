"""The models that Superstep is compared on, in PyTorch: the layers of its own workloads of the same names."""

import torch
from torch import nn
from torch.nn import functional as F


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
        theta = self.theta(x).flatten(2).transpose(1, 2)
        phi = self.phi(x).flatten(2)
        g = self.g(x).flatten(2).transpose(1, 2)
        mixed = torch.bmm(F.softmax(torch.bmm(theta, phi), dim=-1), g)
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


class Entry:
    """A model with what its training step needs."""

    def __init__(self, make, parameters, sample, target, loss, optimizer, rate):
        self.make, self.parameters, self.sample, self.target = make, parameters, sample, target
        self.loss, self.optimizer, self.rate = loss, optimizer, rate

    def inputs(self, batch, generator):
        return torch.rand((batch,) + self.sample, generator=generator)

    def targets(self, batch, generator):
        if self.target == "class":
            return torch.randint(0, 10, (batch,), generator=generator)
        return torch.rand((batch,) + self.target, generator=generator)


MODELS = {
    "braggnn": Entry(BraggNN, 33172, (1, 11, 11), (2,), F.mse_loss, "adam", 3e-4),
    "mlp": Entry(Mlp, 9473, (16,), (1,), F.mse_loss, "adam", 1e-3),
    "cifar10-cnn": Entry(CifarCnn, 642570, (3, 32, 32), "class", F.cross_entropy, "sgd", 0.016),
}


def initialize(model):
    """Xavier-uniform weights, zero biases."""
    for parameter in model.parameters():
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
