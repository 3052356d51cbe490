"""Networks of molecules and atoms in PyTorch, as plainly as their papers write them: models.py has their entries.

Forces are the gradient of the energy, which autograd differentiates once more in a training step.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


ENERGY_UNIT = 0.1  # eV, that schnet's last layer counts in


def sums(values, index, count):
    return values.new_zeros((count,) + values.shape[1:]).index_add_(0, index, values)


def flattened(index, rows):
    """Indices within a pack [packs, ...] as indices of all packs' rows."""
    first = torch.arange(index.shape[0], device=index.device).view(-1, *[1] * (index.dim() - 1))
    return (index + first * rows).flatten()


class Gin(nn.Module):
    """K. Xu et al., arXiv 1810.00826, with bonds in its messages (W. Hu et al., arXiv 1905.12265)."""

    def __init__(self, width=64, layers=5, atoms=256, molecules=16, dropout=0.1):
        super().__init__()
        self.count, self.molecules, self.dropout = atoms, molecules, dropout
        self.atoms = nn.Linear(36, width)
        self.bonds = nn.ModuleList([nn.Linear(6, width, bias=False) for _ in range(layers)])
        self.epsilon = nn.ParameterList([nn.Parameter(torch.zeros(1)) for _ in range(layers)])
        self.inner = nn.ModuleList([nn.Sequential(nn.Linear(width, 2 * width), nn.BatchNorm1d(2 * width), nn.ReLU(),
                                                  nn.Linear(2 * width, width), nn.BatchNorm1d(width)) for _ in range(layers)])
        self.odds = nn.Linear(width, 1)

    def forward(self, x, edge_index, edge_attr, batch):
        packs = x.shape[0]
        source, target = flattened(edge_index[:, 0], self.count), flattened(edge_index[:, 1], self.count)
        molecule = flattened(batch, self.molecules)
        bonds = edge_attr.flatten(0, 1)
        h = self.atoms(x.flatten(0, 1))
        for i, inner in enumerate(self.inner):
            said = F.relu(h[source] + self.bonds[i](bonds))
            h = inner((1 + self.epsilon[i]) * h + sums(said, target, len(h)))
            if i + 1 < len(self.inner):
                h = F.relu(h)
            h = F.dropout(h, self.dropout, self.training)
        share = 1 / sums(torch.ones(len(h), 1), molecule, packs * self.molecules).clamp(min=1)
        odds = self.odds(sums(h, molecule, packs * self.molecules) * share).view(packs, self.molecules)
        if self.training:
            return odds
        return odds, ((h * share[molecule]) @ self.odds.weight.view(-1)).view(packs, self.count)


def loss_of_odds(odds, targets):
    return (targets[1] * (F.softplus(odds) - targets[0] * odds)).mean()


class YieldGnn(nn.Module):
    """M. Saebi et al., Chem. Sci. 14, 4997 (2023): a Weisfeiler-Lehman network of depth 2, attention between the atoms of a
    reaction, a line in descriptors. a_ij = a_ji: each pair of atoms is scored once."""

    def __init__(self, width=200, atoms=256, reactions=5, descriptors=280, dropout=0.04):
        super().__init__()
        self.count, self.reactions, self.dropout = atoms, reactions, dropout
        self.register_buffer("mean", torch.zeros(descriptors))
        self.register_buffer("inverse", torch.ones(descriptors))
        self.atoms = nn.Linear(36, width)
        self.neighbours, self.bonds = nn.Linear(width, width, bias=False), nn.Linear(6, width)
        self.own, self.mix = nn.Linear(width, width, bias=False), nn.Linear(width, width)
        self.local_own, self.local_neighbours = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.local_bonds = nn.Linear(6, width, bias=False)
        self.pair, self.attention = nn.Linear(width, width), nn.Linear(width, 1)
        self.score_global, self.score_local, self.score = nn.Linear(width, width, bias=False), nn.Linear(width, width), nn.Linear(width, 1)
        self.chem, self.both = nn.Linear(descriptors, 1), nn.Linear(2, 1)

    def local(self, x, source, target, bonds):
        h = F.relu(self.atoms(x))
        said = sums(F.relu(self.neighbours(h)[source] + self.bonds(bonds)), target, len(h))
        h = F.relu(self.own(h) + self.mix(said))
        heard = sums(self.local_neighbours(h)[source] * self.local_bonds(bonds), target, len(h))
        return F.dropout(self.local_own(h), self.dropout, self.training) * F.dropout(heard, self.dropout, self.training)

    def attended(self, local, reaction):
        """What every atom hears of all atoms of its reaction."""
        packs = reaction.shape[0]
        same = (reaction.unsqueeze(1) == reaction.unsqueeze(2)).triu()
        pack, first, second = same.nonzero(as_tuple=True)
        first, second = pack * self.count + first, pack * self.count + second
        own = self.pair(local)  # half of the bias comes with each atom
        score = torch.sigmoid(self.attention(F.relu(own[first] + own[second])))
        there = sums(local[second] * score, first, packs * self.count)
        return there + sums(local[first] * score * (first != second).unsqueeze(1), second, packs * self.count)

    def forward(self, x, edge_index, edge_attr, batch, descriptors):
        packs = x.shape[0]
        source, target = flattened(edge_index[:, 0], self.count), flattened(edge_index[:, 1], self.count)
        reaction = flattened(batch, self.reactions)
        local = self.local(x.flatten(0, 1), source, target, edge_attr.flatten(0, 1))
        score = self.score(F.relu(self.score_global(self.attended(local, batch)) + self.score_local(local))).abs()
        share = 1 / sums(torch.ones(len(score), 1), reaction, packs * self.reactions).clamp(min=1)
        graph = sums(score, reaction, packs * self.reactions) * share
        chem = self.chem((descriptors.flatten(0, 1) - self.mean) * self.inverse).abs()
        found = 100 * self.both(torch.cat([chem, graph], 1)).view(packs, self.reactions)
        if self.training:
            return found
        return found, (100 * score * share[reaction] * self.both.weight[0, 1]).view(packs, self.count)


def loss_of_yields(found, targets):
    return (targets[1] * ((found - targets[0]) / 100) ** 2).mean()


def shifted_softplus(x):
    return F.softplus(x) - math.log(2)


class Schnet(nn.Module):
    """K. Schuett et al., J. Chem. Phys. 148, 241722 (2018)."""

    def __init__(self, width=64, blocks=3, gaussians=25, cutoff=6.0, atoms=96, clusters=10):
        super().__init__()
        self.count, self.clusters, self.cutoff = atoms, clusters, cutoff
        self.spacing = cutoff / (gaussians - 1)
        self.register_buffer("centres", torch.arange(gaussians) * self.spacing)
        self.embedding = nn.Embedding(100, width)
        self.filter1 = nn.ModuleList([nn.Linear(gaussians, width) for _ in range(blocks)])
        self.filter2 = nn.ModuleList([nn.Linear(width, width) for _ in range(blocks)])
        self.own = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(blocks)])
        self.mix = nn.ModuleList([nn.Linear(width, width) for _ in range(blocks)])
        self.last = nn.ModuleList([nn.Linear(width, width) for _ in range(blocks)])
        self.hidden, self.out = nn.Linear(width, width // 2), nn.Linear(width // 2, 1)

    def energies(self, z, pos, source, target):
        apart = pos[source] - pos[target]
        distance = (apart * apart).sum(1, keepdim=True).clamp(min=1e-6).sqrt()
        gaussians = torch.exp(-0.5 * ((distance - self.centres) / self.spacing) ** 2)
        weight = (torch.cos(distance * (math.pi / self.cutoff)) + 1) * 0.5
        x = self.embedding(z)
        for first, second, own, mix, last in zip(self.filter1, self.filter2, self.own, self.mix, self.last):
            filters = second(shifted_softplus(first(gaussians))) * weight
            x = x + last(shifted_softplus(mix(sums(own(x)[source] * filters, target, len(x)))))
        return ENERGY_UNIT * self.out(shifted_softplus(self.hidden(x)))

    def forward(self, z, pos, edge_index, batch):
        packs = z.shape[0]
        source, target = flattened(edge_index[:, 0], self.count), flattened(edge_index[:, 1], self.count)
        with torch.enable_grad():
            at = pos.detach().flatten(0, 1).requires_grad_()
            of_atoms = self.energies(z.flatten(), at, source, target)
            forces = -torch.autograd.grad(of_atoms.sum(), at, create_graph=self.training)[0]
        energy = sums(of_atoms, flattened(batch, self.clusters), packs * self.clusters)
        return energy.view(packs, self.clusters), forces.view(pos.shape)


def loss_of_clusters(outputs, targets):
    missed, astray = (outputs[0] - targets[0]) / ENERGY_UNIT, outputs[1] - targets[2]
    return (targets[1] * missed * missed).mean() + (targets[3] * astray * astray).mean()


class Embedded(nn.Module):
    """Dense layers with tanh; where the width doubles or stays, what came in is added."""

    def __init__(self, widths):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(i, o) for i, o in zip([1] + widths, widths)])

    def forward(self, x):
        for layer in self.layers:
            made = torch.tanh(layer(x))
            before, width = x.shape[-1], made.shape[-1]
            x = x + made if width == before else torch.cat([x, x], -1) + made if width == 2 * before else made
        return x


class Fitted(nn.Module):
    """Dense layers with tanh, residual with a learned step on equal widths, and a line."""

    def __init__(self, inputs, widths):
        super().__init__()
        pairs = list(zip([inputs] + widths, widths))
        self.layers = nn.ModuleList([nn.Linear(i, o) for i, o in pairs])
        self.steps = nn.ParameterList([nn.Parameter(torch.full((o,), 0.1)) for i, o in pairs if i == o])
        self.energy = nn.Linear(widths[-1], 1)

    def forward(self, x):
        steps = iter(self.steps)
        for layer in self.layers:
            made = torch.tanh(layer(x))
            x = x + made * next(steps) if made.shape[-1] == x.shape[-1] else made
        return self.energy(x)


class Deepmd(nn.Module):
    """L. Zhang et al., NeurIPS 2018: se_e2_a of one element. Index -1 (padding) is not timed."""

    def __init__(self, embedding, axis, fitting, atoms=32, near=100, cutoff=6.0, smooth=0.5):
        super().__init__()
        self.count, self.near, self.axis, self.cutoff, self.smooth = atoms, near, axis, cutoff, smooth
        self.embedded = Embedded(embedding)
        self.fitted = Fitted(embedding[-1] * axis, fitting)

    def energies(self, vectors):
        distance = (vectors * vectors).sum(-1, keepdim=True).clamp(min=1e-4).sqrt()
        x = ((distance - self.smooth) / (self.cutoff - self.smooth)).clamp(0, 1)
        weight = (x * x * x * (x * (-6 * x + 15) - 10) + 1) / distance
        rows = torch.cat([weight, vectors * (weight / distance)], -1).flatten(0, 1)
        factor = rows.transpose(1, 2) @ self.embedded(rows[..., :1]) / self.near
        return self.fitted((factor.transpose(1, 2) @ factor[..., :self.axis]).flatten(1))

    def forward(self, coord, kind, box, neighbours, images):
        frames = coord.shape[0]
        there = flattened(neighbours, self.count)
        with torch.enable_grad():
            shifts = (images.flatten(1, 2) @ box).view(images.shape)
            vectors = coord.flatten(0, 1)[there].view(images.shape) + shifts - coord.unsqueeze(2)
            vectors = vectors.detach().requires_grad_()
            of_atoms = self.energies(vectors)
            gradient = torch.autograd.grad(of_atoms.sum(), vectors, create_graph=self.training)[0]
        pushed = sums(gradient.flatten(0, 2), there, frames * self.count).view(coord.shape)
        virial = -gradient.flatten(1, 2).transpose(1, 2) @ vectors.flatten(1, 2)
        return of_atoms.view(frames, self.count).sum(1, keepdim=True), gradient.sum(2) - pushed, virial


def loss_of_frames(outputs, targets):
    def term(found, target, weight):
        return (((found - target) ** 2).flatten(1).sum(1, keepdim=True) * weight).mean()
    return sum(term(outputs[i], targets[2 * i], targets[2 * i + 1]) for i in range(3))
