"""Networks of the sciences, each in a few lines, by its published form and in a small size."""

import math

import torch
from torch import nn
from torch.nn import functional as F

NODES, EDGES, WIDTH = 48, 160, 64


def dense(*widths, act=nn.SiLU):
    layers = []
    for a, b in zip(widths[:-1], widths[1:]):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


def graph():
    return torch.randn(NODES, 16), torch.randint(0, NODES, (2, EDGES))


class SpectralConvolution(nn.Module):
    """A product with complex weights on the lowest frequencies (Li et al., arXiv 2010.08895), with real matrices for the
    transform: what `torch.fft` is in a file differs from exporter to exporter."""

    def __init__(self, width, side, modes):
        super().__init__()
        k, n = torch.arange(modes)[:, None], torch.arange(side)[None]
        angle = 2 * math.pi * k * n / side
        self.register_buffer("cos", angle.cos())
        self.register_buffer("sin", angle.sin())
        self.real, self.imaginary = (nn.Parameter(torch.randn(modes, width, width) / width) for _ in range(2))
        self.side = side

    def forward(self, x):
        a, b = x @ self.cos.T, -(x @ self.sin.T)
        a, b = a.permute(2, 0, 1), b.permute(2, 0, 1)
        c, d = a @ self.real - b @ self.imaginary, a @ self.imaginary + b @ self.real
        return (c.permute(1, 2, 0) @ self.cos - d.permute(1, 2, 0) @ self.sin) / self.side


class FourierOperator(nn.Module):
    def __init__(self, side=64, width=32):
        super().__init__()
        self.first, self.last = nn.Conv1d(2, width, 1), dense(width, 64, 1, act=nn.GELU)
        self.spectral = nn.ModuleList([SpectralConvolution(width, side, 12) for _ in range(3)])
        self.point = nn.ModuleList([nn.Conv1d(width, width, 1) for _ in range(3)])

    def forward(self, x):
        x = self.first(x)
        for spectral, point in zip(self.spectral, self.point):
            x = F.gelu(spectral(x) + point(x))
        return self.last(x.transpose(1, 2))


class FourierOperator2d(nn.Module):
    """The same in two dimensions with torch.fft and an einsum over the channels."""

    def __init__(self, width=16, modes=6):
        super().__init__()
        self.modes, self.first, self.last = modes, nn.Conv2d(1, width, 1), nn.Conv2d(width, 1, 1)
        self.real, self.imaginary = (nn.Parameter(torch.randn(width, width, modes, modes) / width) for _ in range(2))
        self.point = nn.Conv2d(width, width, 1)

    def forward(self, x):
        x = self.first(x)
        f = torch.view_as_real(torch.fft.rfft2(x))
        a, b = f[:, :, :self.modes, :self.modes, 0], f[:, :, :self.modes, :self.modes, 1]
        mix = lambda s, w: torch.einsum("bixy,ioxy->boxy", s, w)
        c, d = mix(a, self.real) - mix(b, self.imaginary), mix(a, self.imaginary) + mix(b, self.real)
        n, side = x.shape[-1], self.modes
        low = torch.stack([c, d], -1)
        low = F.pad(low, (0, 0, 0, n // 2 + 1 - side, 0, n - side))
        y = torch.fft.irfft2(torch.view_as_complex(low.contiguous()), s=(n, n))
        return self.last(F.gelu(y + self.point(x)))


class DeepONet(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch, self.trunk = dense(100, 128, 128, 64, act=nn.Tanh), dense(2, 128, 128, 64, act=nn.Tanh)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, u, y):
        return self.branch(u) @ self.trunk(y).T + self.bias


class GraphConvolution(nn.Module):
    """Kipf and Welling, arXiv 1609.02907, with edges as two rows of numbers."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(16, WIDTH), nn.Linear(WIDTH, WIDTH)])
        self.out = nn.Linear(WIDTH, 1)

    def forward(self, x, edges):
        degree = torch.ones(x.shape[0]).index_add(0, edges[1], torch.ones(edges.shape[1]))
        weight = (degree[edges[0]] * degree[edges[1]]).rsqrt()[:, None]
        for layer in self.layers:
            h = layer(x)
            x = F.relu((h / degree[:, None]).index_add(0, edges[1], h[edges[0]] * weight))
        return self.out(x.mean(0))


class GraphAttention(nn.Module):
    """Velickovic et al., arXiv 1710.10903, on a dense adjacency."""

    def __init__(self, heads=4):
        super().__init__()
        self.project, self.heads = nn.Linear(16, WIDTH, bias=False), heads
        self.left, self.right = (nn.Parameter(torch.randn(heads, WIDTH // heads)) for _ in range(2))

    def forward(self, x, adjacency):
        h = self.project(x).view(x.shape[0], self.heads, -1)
        scores = F.leaky_relu((h * self.left).sum(-1).T[:, :, None] + (h * self.right).sum(-1).T[:, None, :], 0.2)
        weights = scores.masked_fill(adjacency == 0, float("-inf")).softmax(-1)
        return F.elu((weights @ h.transpose(0, 1)).transpose(0, 1).reshape(x.shape[0], -1))


def sums(rows, index, count):
    """The sum of the rows of each number."""
    return torch.zeros(count, rows.shape[1]).scatter_add(0, index[:, None].expand_as(rows), rows)


class MessagePassing(nn.Module):
    """Gilmer et al., arXiv 1704.01212: messages of edges, a gated cell at the nodes."""

    def __init__(self):
        super().__init__()
        self.embed, self.message, self.update = nn.Linear(16, WIDTH), dense(2 * WIDTH + 4, WIDTH, WIDTH), nn.GRUCell(WIDTH, WIDTH)
        self.out = dense(WIDTH, 32, 1)

    def forward(self, x, edges, features):
        x = self.embed(x)
        for _ in range(2):
            m = self.message(torch.cat([x[edges[0]], x[edges[1]], features], -1))
            x = self.update(sums(m, edges[1], NODES), x)
        return self.out(x).sum(0)


class SchNet(nn.Module):
    """Continuous filters of distances (Schuett et al., J. Chem. Phys. 148, 241722)."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, WIDTH)
        self.register_buffer("centres", torch.linspace(0, 5, 25))
        self.filters = nn.ModuleList([dense(25, WIDTH, WIDTH, act=nn.Softplus) for _ in range(2)])
        self.before, self.after = (nn.ModuleList([nn.Linear(WIDTH, WIDTH) for _ in range(2)]) for _ in range(2))
        self.out = dense(WIDTH, 32, 1, act=nn.Softplus)

    def forward(self, z, positions, edges):
        x = self.embed(z)
        distance = (positions[edges[0]] - positions[edges[1]]).norm(dim=-1)
        spread = torch.exp(-10 * (distance[:, None] - self.centres) ** 2)
        cut = 0.5 * (torch.cos(distance * math.pi / 5) + 1) * (distance < 5)
        for filters, before, after in zip(self.filters, self.before, self.after):
            m = before(x)[edges[0]] * filters(spread) * cut[:, None]
            x = x + after(sums(m, edges[1], NODES))
        return self.out(x).sum()


class Equivariant(nn.Module):
    """E(n)-equivariant layers (Satorras et al., arXiv 2102.09844) on all pairs."""

    def __init__(self):
        super().__init__()
        self.edge, self.node, self.place = dense(33, WIDTH, WIDTH), dense(WIDTH + 16, WIDTH, 16), dense(WIDTH, WIDTH, 1)

    def forward(self, h, x):
        n = h.shape[0]
        offset = x[:, None] - x[None]
        square = (offset ** 2).sum(-1, keepdim=True)
        m = self.edge(torch.cat([h[:, None].expand(n, n, 16), h[None].expand(n, n, 16), square], -1))
        return h + self.node(torch.cat([h, m.sum(1)], -1)), x + (offset * torch.tanh(self.place(m))).mean(1)


class StateSpace(nn.Module):
    """Diagonal states (Gu et al., arXiv 2206.11893) as a convolution over the whole length, by a Toeplitz product."""

    def __init__(self, length=64, width=32, states=16):
        super().__init__()
        self.length = length
        self.decay, self.frequency = nn.Parameter(torch.rand(width, states)), nn.Parameter(torch.rand(width, states) * 3)
        self.weight, self.skip, self.out = nn.Parameter(torch.randn(width, states)), nn.Parameter(torch.randn(width)), nn.Linear(width, width)
        steps = torch.arange(length)
        self.register_buffer("steps", steps.float())
        self.register_buffer("lag", (steps[:, None] - steps[None]).clamp(min=0))
        self.register_buffer("past", (steps[:, None] >= steps[None]).float())

    def forward(self, x):
        t = self.steps[:, None, None]
        kernel = (self.weight * torch.exp(-self.decay.exp() * 0.1 * t) * torch.cos(self.frequency * t)).sum(-1)
        toeplitz = kernel[self.lag] * self.past[:, :, None]
        y = torch.einsum("tsc,bsc->btc", toeplitz, x) + x * self.skip
        return self.out(F.gelu(y))


class Field(nn.Module):
    """A neural field with sines (Sitzmann et al., arXiv 2006.09661)."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 128), nn.Linear(128, 128), nn.Linear(128, 128)])
        self.out = nn.Linear(128, 3)

    def forward(self, x):
        for layer in self.layers:
            x = torch.sin(30 * layer(x))
        return self.out(x)


class Radiance(nn.Module):
    """Frequencies of places, a dense network, and the sum along rays (Mildenhall et al., arXiv 2003.08934)."""

    def __init__(self):
        super().__init__()
        self.net = dense(3 + 36, 128, 128, 4, act=nn.ReLU)

    def forward(self, points):
        angles = points[..., None] * 2 ** torch.arange(6)
        code = torch.cat([points, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)
        colour, density = self.net(code).split([3, 1], -1)
        alpha = 1 - torch.exp(-F.relu(density) * 0.1)
        through = torch.exp(torch.cumsum(torch.log(1 - alpha + 1e-6), 1))
        return (alpha * through * torch.sigmoid(colour)).sum(1)


class Coupling(nn.Module):
    """Affine couplings (Dinh et al., arXiv 1605.08803) with the logarithm of the volume."""

    def __init__(self, width=8):
        super().__init__()
        self.nets = nn.ModuleList([dense(width // 2, 64, 64, width, act=nn.ReLU) for _ in range(4)])

    def forward(self, x):
        a, b = x.chunk(2, -1)
        volume = 0
        for net in self.nets:
            scale, shift = net(a).chunk(2, -1)
            scale = torch.tanh(scale)
            a, b = b * torch.exp(scale) + shift, a
            volume = volume + scale.sum(-1)
        z = torch.cat([a, b], -1)
        return z, volume - 0.5 * (z ** 2).sum(-1)


class VolumeUNet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        block = lambda a, b: nn.Sequential(nn.Conv3d(a, b, 3, padding=1), nn.InstanceNorm3d(b, affine=True), nn.LeakyReLU(0.01))
        self.a, self.b, self.c = block(1, width), block(width, 2 * width), block(3 * width, width)
        self.up, self.out = nn.ConvTranspose3d(2 * width, 2 * width, 2, 2), nn.Conv3d(width, 2, 1)

    def forward(self, x):
        a = self.a(x)
        return self.out(self.c(torch.cat([a, self.up(self.b(F.max_pool3d(a, 2)))], 1)))


class PointNet(nn.Module):
    """Qi et al., arXiv 1612.00593, with the network that turns the cloud."""

    def __init__(self):
        super().__init__()
        shared = lambda *w: nn.Sequential(*[m for a, b in zip(w[:-1], w[1:]) for m in (nn.Conv1d(a, b, 1), nn.BatchNorm1d(b), nn.ReLU())])
        self.turn, self.turned = shared(3, 32, 64), nn.Linear(64, 9)
        self.points, self.out = shared(3, 64, 128), dense(128, 64, 10, act=nn.ReLU)

    def forward(self, x):
        matrix = self.turned(self.turn(x).amax(-1)).view(-1, 3, 3) + torch.eye(3)
        return self.out(self.points(matrix @ x).amax(-1))


class EdgeConvolution(nn.Module):
    """Neighbors by distance, found in the network (Wang et al., arXiv 1801.07829)."""

    def __init__(self, neighbours=8):
        super().__init__()
        self.k, self.net, self.out = neighbours, dense(6, 64, 64, act=nn.ReLU), nn.Linear(64, 10)

    def forward(self, x):
        nearest = torch.cdist(x, x).topk(self.k, largest=False)[1]
        rows = torch.arange(x.shape[0])[:, None, None]
        neighbours = x[rows, nearest]
        centre = x[:, :, None].expand_as(neighbours)
        return self.out(self.net(torch.cat([centre, neighbours - centre], -1)).amax(2).amax(1))


class Splines(nn.Module):
    """A Kolmogorov-Arnold layer: cubic B-splines of each input by Cox and de Boor's recursion (Liu et al., arXiv 2404.19756)."""

    def __init__(self, a, b, cells=5, order=3):
        super().__init__()
        self.order, step = order, 2 / cells
        self.register_buffer("knots", torch.arange(-order, cells + order + 1) * step - 1)
        self.base, self.coefficients = nn.Linear(a, b), nn.Parameter(torch.randn(b, a * (cells + order)) * 0.1)

    def forward(self, x):
        t, y = self.knots, x[..., None]
        bases = ((y >= t[:-1]) & (y < t[1:])).to(x.dtype)
        for k in range(1, self.order + 1):
            bases = ((y - t[:-k - 1]) / (t[k:-1] - t[:-k - 1]) * bases[..., :-1] + (t[k + 1:] - y) / (t[k + 1:] - t[1:-k]) * bases[..., 1:])
        return self.base(F.silu(x)) + F.linear(bases.flatten(-2), self.coefficients)


class Perceiver(nn.Module):
    """Latents that look at a long input (Jaegle et al., arXiv 2103.03206)."""

    def __init__(self):
        super().__init__()
        self.latents = nn.Parameter(torch.randn(1, 16, WIDTH))
        self.cross, self.own = (nn.MultiheadAttention(WIDTH, 4, batch_first=True) for _ in range(2))
        self.norm, self.embed, self.out = nn.LayerNorm(WIDTH), nn.Linear(4, WIDTH), nn.Linear(WIDTH, 3)

    def forward(self, x):
        x, z = self.embed(x), self.latents.expand(x.shape[0], -1, -1)
        z = z + self.cross(z, x, x, need_weights=False)[0]
        z = z + self.own(self.norm(z), z, z, need_weights=False)[0]
        return self.out(z.mean(1))


class Residue(nn.Module):
    """A physics-informed network: the solution and its derivative along x, worked out by hand for tanh."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(2, 64), nn.Linear(64, 64), nn.Linear(64, 1)

    def forward(self, x):
        u = torch.tanh(self.a(x))
        du = (1 - u ** 2) * self.a.weight[:, 0]
        v = torch.tanh(self.b(u))
        dv = (1 - v ** 2) * (du @ self.b.weight.T)
        return self.c(v), dv @ self.c.weight.T


class NeuralEquation(nn.Module):
    """dx/dt = f(x), four steps of Runge and Kutta's fourth order (Chen et al., arXiv 1806.07366)."""

    def __init__(self):
        super().__init__()
        self.f = dense(16, 64, 16, act=nn.Tanh)

    def forward(self, x):
        h = 0.25
        for _ in range(4):
            a = self.f(x)
            b = self.f(x + h / 2 * a)
            c = self.f(x + h / 2 * b)
            x = x + h / 6 * (a + 2 * b + 2 * c + self.f(x + h * c))
        return x


class ConvolutionalLstm(nn.Module):
    """Shi et al., arXiv 1506.04214, over four pictures."""

    def __init__(self, width=16):
        super().__init__()
        self.width, self.gates, self.out = width, nn.Conv2d(1 + width, 4 * width, 3, padding=1), nn.Conv2d(width, 1, 1)

    def forward(self, x):
        h = c = x.new_zeros(x.shape[0], self.width, x.shape[3], x.shape[4])
        for step in range(x.shape[1]):
            i, f, o, g = self.gates(torch.cat([x[:, step], h], 1)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.out(h)


class Warping(nn.Module):
    """A picture moved by a field that a network gives (Jaderberg et al., arXiv 1506.02025)."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(1, 16, 3, 2, 1), nn.ReLU(), nn.Conv2d(16, 16, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 6))

    def forward(self, x):
        y = torch.linspace(-1, 1, x.shape[-1])
        rows, columns = torch.meshgrid(y, y, indexing="ij")
        places = torch.stack([columns, rows, torch.ones_like(rows)], -1).view(1, -1, 3)
        grid = (places @ self.net(x).view(-1, 2, 3).transpose(1, 2)).view(-1, x.shape[-2], x.shape[-1], 2)
        return F.grid_sample(x, grid, align_corners=True)


class Mixture(nn.Module):
    """A mixture density network (Bishop 1994)."""

    def __init__(self):
        super().__init__()
        self.net = dense(8, 64, 64, 3 * 5, act=nn.Tanh)

    def forward(self, x, y):
        logits, mean, logarithm = self.net(x).chunk(3, -1)
        terms = F.log_softmax(logits, -1) - 0.5 * ((y - mean) / logarithm.exp()) ** 2 - logarithm - 0.5 * math.log(2 * math.pi)
        return torch.logsumexp(terms, -1)


def adjacency():
    """Of one node in five, and of itself: a softmax over nothing has no value."""
    return ((torch.rand(NODES, NODES) < 0.2) | torch.eye(NODES, dtype=torch.bool)).float()


def no_loops():
    """Edges between different nodes: a distance of zero has no derivative."""
    first = torch.randint(0, NODES, (EDGES,))
    return torch.stack([first, (first + torch.randint(1, NODES, (EDGES,))) % NODES])


TABLE = {
    "fourier_operator": lambda: (FourierOperator(), (torch.randn(2, 2, 64),)),
    "fourier_operator_2d": lambda: (FourierOperator2d(), (torch.randn(1, 1, 32, 32),)),
    "deeponet": lambda: (DeepONet(), (torch.randn(8, 100), torch.rand(256, 2))),
    "graph_convolution": lambda: (GraphConvolution(), graph()),
    "graph_attention": lambda: (GraphAttention(), (torch.randn(NODES, 16), adjacency())),
    "message_passing": lambda: (MessagePassing(), graph() + (torch.randn(EDGES, 4),)),
    "schnet": lambda: (SchNet(), (torch.randint(0, 20, (NODES,)), 4 * torch.rand(NODES, 3), no_loops())),
    "equivariant": lambda: (Equivariant(), (torch.randn(24, 16), torch.randn(24, 3))),
    "state_space": lambda: (StateSpace(), (torch.randn(2, 64, 32),)),
    "neural_field": lambda: (Field(), (torch.rand(1024, 2) * 2 - 1,)),
    "radiance_field": lambda: (Radiance(), (torch.rand(16, 24, 3),)),
    "normalising_flow": lambda: (Coupling(), (torch.randn(256, 8),)),
    "volume_unet": lambda: (VolumeUNet(), (torch.randn(1, 1, 16, 32, 32),)),
    "pointnet": lambda: (PointNet(), (torch.randn(2, 3, 256),)),
    "edge_convolution": lambda: (EdgeConvolution(), (torch.randn(1, 96, 3),)),
    "kolmogorov_arnold": lambda: (nn.Sequential(Splines(8, 32), Splines(32, 4)), (torch.rand(64, 8) * 1.8 - 0.9,)),
    "perceiver": lambda: (Perceiver(), (torch.randn(1, 256, 4),)),
    "physics_informed": lambda: (Residue(), (torch.rand(512, 2),)),
    "neural_equation": lambda: (NeuralEquation(), (torch.randn(64, 16),)),
    "convolutional_lstm": lambda: (ConvolutionalLstm(), (torch.rand(1, 4, 1, 32, 32),)),
    "spatial_transformer": lambda: (Warping(), (torch.rand(1, 1, 32, 32),)),
    "mixture_density": lambda: (Mixture(), (torch.randn(64, 8), torch.randn(64, 1))),
}
