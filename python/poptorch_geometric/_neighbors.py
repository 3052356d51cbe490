"""Sampling of neighborhoods in plain torch, where PyTorch Geometric has neither pyg-lib nor torch-sparse for it.

Uniform, without replacement, of directed edges: from each node of a step up to so many of the edges that end in it, all
where the number is -1. Nodes are numbered in the order in which they are found, those asked for first; random numbers are
torch's.
"""

import torch
import torch_geometric.typing as has
from torch_geometric.data import Data, HeteroData
from torch_geometric.sampler import HeteroSamplerOutput, SamplerOutput

_SOLE = ""


def missing():
    """Whether PyTorch Geometric cannot sample itself."""
    return not (has.WITH_PYG_LIB or getattr(has, "WITH_TORCH_SPARSE", False))


def sampler(data, num_neighbors, **settings):
    """A sampler for torch_geometric.loader.NeighborLoader. ImportError for settings that only those libraries have."""
    usual = {"replace": False, "directed": True, "disjoint": False, "subgraph_type": "directional", "time_attr": None,
             "input_time": None}
    for name, value in usual.items():
        given = settings.get(name, value)
        if getattr(given, "value", given) != value:
            raise ImportError(f"{name}={given} needs pyg-lib: neighborhoods are sampled here with {name}={value} only.")
    if not isinstance(data, (Data, HeteroData)):
        raise ImportError("Graphs in stores of their own need pyg-lib: give a Data or HeteroData.")
    return UniformSampler(data, num_neighbors)


class _Edges:
    """The edges of one type by the node that they end in."""

    def __init__(self, edge_index, targets):
        source, target = edge_index
        self.order = target.argsort(stable=True)
        self.source = source[self.order]
        self.begin = torch.cat([target.new_zeros(1), target.bincount(minlength=targets).cumsum(0)])

    def draw(self, nodes, count):
        """(place in nodes, sources, numbers of edges) of up to `count` edges that end in each node."""
        begin, degrees = self.begin[nodes], self.begin[nodes + 1] - self.begin[nodes]
        owner = torch.repeat_interleave(torch.arange(len(nodes)), degrees)
        rank = torch.arange(len(owner)) - (degrees.cumsum(0) - degrees)[owner]
        place = begin[owner] + rank
        if count >= 0:
            # Sorted by owner and a random number: the first `count` of each owner stay, in the order of the edges.
            shuffled = (owner + torch.rand(len(owner), dtype=torch.float64)).argsort()
            kept = shuffled[rank < count].sort().values
            owner, place = owner[kept], place[kept]
        return owner, self.source[place], self.order[place]


class _Found:
    """Nodes of one type in the order in which they were found."""

    def __init__(self, count):
        self._place = torch.full((count,), -1, dtype=torch.long)
        self.nodes = torch.zeros(0, dtype=torch.long)

    def add(self, nodes):
        """Adds those that are new; returns the places of all."""
        fresh = nodes[self._place[nodes] < 0]
        if len(fresh):
            # The first appearance of each, in order.
            unique, inverse = fresh.unique(return_inverse=True)
            first = torch.full((len(unique),), len(fresh)).scatter_reduce_(0, inverse, torch.arange(len(fresh)), "amin")
            fresh = fresh[first.sort().values]
            self._place[fresh] = torch.arange(len(self.nodes), len(self.nodes) + len(fresh))
            self.nodes = torch.cat([self.nodes, fresh])
        return self._place[nodes]


class UniformSampler:
    """Samples `num_neighbors` (one number for each step; a dict of such lists by edge type) around nodes of a graph."""

    disjoint = False
    is_temporal = False
    edge_permutation = None

    def __init__(self, data, num_neighbors):
        self._hetero = isinstance(data, HeteroData)
        if self._hetero:
            self._counts = {kind: data[kind].num_nodes for kind in data.node_types}
            edges = {kind: data[kind].edge_index for kind in data.edge_types}
        else:
            self._counts = {_SOLE: data.num_nodes}
            edges = {(_SOLE, _SOLE, _SOLE): data.edge_index}
        self._edges = {kind: _Edges(index, self._counts[kind[2]]) for kind, index in edges.items()}
        steps = num_neighbors if isinstance(num_neighbors, dict) else dict.fromkeys(edges, num_neighbors)
        absent = [kind for kind in edges if kind not in steps]
        if absent:
            raise ValueError(f"num_neighbors says nothing of edges of type {absent[0]}.")
        self._steps = {kind: list(steps[kind]) for kind in edges}

    def sample_from_nodes(self, inputs, **_):
        """PyTorch Geometric's sample around the nodes of `inputs`."""
        seed_kind = inputs.input_type if self._hetero else _SOLE
        found = {kind: _Found(count) for kind, count in self._counts.items()}
        found[seed_kind].add(inputs.node)
        rows, columns, numbers = ({kind: [] for kind in self._edges} for _ in range(3))
        done = dict.fromkeys(found, 0)
        for step in range(max(len(steps) for steps in self._steps.values())):
            edge_of = {kind: (done[kind], len(nodes.nodes)) for kind, nodes in found.items()}
            done = {kind: end for kind, (_, end) in edge_of.items()}
            for kind, edges in self._edges.items():
                begin, end = edge_of[kind[2]]
                if step < len(self._steps[kind]) and begin < end:
                    owner, sources, places = edges.draw(found[kind[2]].nodes[begin:end], self._steps[kind][step])
                    rows[kind].append(found[kind[0]].add(sources))
                    columns[kind].append(owner + begin)
                    numbers[kind].append(places)
        return self._output(found, rows, columns, numbers, (inputs.input_id, inputs.time))

    def _output(self, found, rows, columns, numbers, metadata):
        joined = [{kind: torch.cat(parts) if parts else torch.zeros(0, dtype=torch.long) for kind, parts in made.items()}
                  for made in (rows, columns, numbers)]
        nodes = {kind: made.nodes for kind, made in found.items()}
        if self._hetero:
            return HeteroSamplerOutput(nodes, *joined, None, metadata=metadata)
        sole = (_SOLE, _SOLE, _SOLE)
        return SamplerOutput(nodes[_SOLE], *(made[sole] for made in joined), None, metadata=metadata)
