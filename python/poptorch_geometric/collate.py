"""Graphs to batches of fixed size, and batches to the combined batch of a call."""

from enum import Enum

import torch
from torch_geometric.data import HeteroData

from . import _padding, _trimming, types
from .fixed_size_options import FixedSizeOptions, edges_of, nodes_of
from .pyg_collate import Collater

__all__ = ["CombinedBatchingCollater", "FixedSizeCollater", "FixedSizeOptions", "make_exclude_keys"]


def make_exclude_keys(include_keys, data):
    """Names of the data's attributes that are not in `include_keys`."""
    return tuple(set(data.keys()) - set(include_keys))


def _sum(counts):
    """The sum of numbers, or of dicts of numbers by type."""
    if not isinstance(counts[0], dict):
        return sum(counts)
    return {kind: sum(count.get(kind, 0) for count in counts) for kind in counts[0]}


def _missing(fixed, real):
    """What is missing to the fixed size; negative where there is too much."""
    if not isinstance(real, dict):
        return fixed - real
    for kind in real:
        assert kind in fixed, (f"The data has the type {kind}, of which the fixed size options say nothing: they have "
                               f"{', '.join(map(str, fixed))}.")
    return {kind: fixed[kind] - count for kind, count in real.items()}


def _items(count):
    return count.items() if isinstance(count, dict) else [("", count)]


def _any_negative(count):
    return any(value < 0 for _, value in _items(count))


class FixedSizeCollater(Collater):
    """Makes a batch of `fixed_size_options`' numbers of graphs, nodes and edges out of a list of graphs.

    Missing graphs are graphs of padding, which share the missing nodes and edges evenly (first ones one more); edges of
    padding join the first node of their graph to itself. Attributes of padding have the values of the options. Which
    attributes belong to nodes, edges or graphs is judged by their extents, as PyTorch Geometric does; `y` has a row for
    each node in all graphs, or one row in all.

    Args:
        fixed_size_options: sizes and values.
        add_masks_to_batch: adds `graphs_mask`, `nodes_mask` and `edges_mask`, true where an element is real (of
            heterogeneous batches the latter two in each type).
        trim_nodes, trim_edges: elements that are too many are taken out at random, where one stays in each graph; one
            node is then kept for each graph of padding.
        follow_batch, exclude_keys: as in PyTorch Geometric.

    Raises RuntimeError where a batch does not fit and may not be trimmed, TypeError for what is no list.
    """

    class LabelsType(Enum):
        """Whether `y` has a row for each graph or for each node."""

        GRAPH_LVL = 0
        NODE_LVL = 1

    def __init__(self, fixed_size_options, add_masks_to_batch=False, trim_nodes=False, trim_edges=False,
                 follow_batch=None, exclude_keys=None):
        super().__init__(follow_batch, exclude_keys)
        self.opts = fixed_size_options
        self.add_masks_to_batch = add_masks_to_batch
        self.trim_nodes = trim_nodes
        self.trim_edges = trim_edges
        self.labels_type = None

    def __call__(self, data_list):
        if not isinstance(data_list, list):
            raise TypeError(f"Expected list, got {type(data_list).__name__}.")
        first = data_list[0]
        if isinstance(first, HeteroData) and not self.opts.is_hetero():
            self.opts.to_hetero(first.node_types, first.edge_types)
        self._look_at_labels(data_list)
        padding = self.opts.num_graphs - len(data_list)
        if padding < 0:
            raise RuntimeError(f"{len(data_list)} graphs were given for a batch of {self.opts.num_graphs}, one of which is "
                               "kept for padding: increase num_graphs.")
        data_list = self._trimmed(data_list, padding)
        real = _sum([nodes_of(data) for data in data_list]), _sum([edges_of(data) for data in data_list])
        nodes, edges = _missing(self.opts.num_nodes, real[0]), _missing(self.opts.num_edges, real[1])
        self._refuse_too_many(nodes, "nodes", len(data_list))
        self._refuse_too_many(edges, "edges", len(data_list))
        if not padding and any(value for count in (nodes, edges) for _, value in _items(count)):
            raise RuntimeError(f"The {len(data_list)} graphs fill all {self.opts.num_graphs} of the batch and leave none to "
                               f"pad nodes and edges in (missing: {nodes} and {edges}): increase num_graphs.")
        batch = super().__call__(data_list + self._padding_graphs(data_list[0], padding, nodes, edges))
        if self.add_masks_to_batch:
            self._add_masks(batch, len(data_list), *real)
        return batch

    def _look_at_labels(self, data_list):
        if isinstance(data_list[0], HeteroData) or getattr(data_list[0], "y", None) is None:
            return
        extents = [(data.y.shape[0] if data.y.dim() else 1, data.num_nodes) for data in data_list]
        of_nodes = all(rows == nodes for rows, nodes in extents)
        of_graphs = all(rows == 1 for rows, _ in extents)
        assert of_nodes or of_graphs, ("The attribute y must have one row for each node in all graphs, or one row in all: "
                                       f"it has {extents[0][0]} and the graph {extents[0][1]} nodes.")
        # Graphs of one node each look both ways: what was seen before decides, else the graph.
        if of_nodes != of_graphs:
            self.labels_type = self.LabelsType.NODE_LVL if of_nodes else self.LabelsType.GRAPH_LVL

    # -- size ---------------------------------------------------------------------------------------------------------

    def _trimmed(self, data_list, padding):
        missing = _missing(self.opts.num_nodes, _sum([nodes_of(data) for data in data_list]))
        if self.trim_nodes and any(count < padding for _, count in _items(missing)):
            data_list = _trimming.nodes(data_list, self._nodes_beside_padding(len(data_list), padding))
        if self.trim_edges and _any_negative(_missing(self.opts.num_edges, _sum([edges_of(data) for data in data_list]))):
            data_list = self._prune_edges(data_list)
        return data_list

    def _nodes_beside_padding(self, graphs, padding):
        """Nodes of real graphs after trimming: each graph of padding keeps one for its edges, where there are enough."""
        def beside(limit):
            return limit - padding if limit - padding >= graphs else limit

        fixed = self.opts.num_nodes
        return {kind: beside(limit) for kind, limit in fixed.items()} if isinstance(fixed, dict) else beside(fixed)

    def _prune_nodes(self, data_list):
        return _trimming.nodes(data_list, self.opts.num_nodes)

    def _prune_edges(self, data_list):
        return _trimming.edges(data_list, self.opts.num_edges)

    def _refuse_too_many(self, missing, what, graphs):
        fixed = self.opts.num_nodes if what == "nodes" else self.opts.num_edges
        for kind, count in _items(missing):
            if count < 0:
                of_kind = f"{kind} {what}" if kind else what
                limit = fixed[kind] if kind else fixed
                raise RuntimeError(
                    f"The fixed sizes given don't allocate enough space for the number of {of_kind}: {graphs} graphs have "
                    f"{limit - count} {what} and the limit is {limit}. Increase num_{what}, or set trim_{what} to leave some out.")

    # -- padding ------------------------------------------------------------------------------------------------------

    def _padding_graphs(self, data, graphs, nodes, edges):
        if not graphs:
            return []
        made = []
        for of_nodes, of_edges in _padding.among(data, graphs, nodes, edges):
            if isinstance(data, HeteroData):
                made.append(_padding.hetero_graph(data, of_nodes, of_edges, self.opts))
            else:
                labels = None if self.labels_type is None else self.labels_type is self.LabelsType.NODE_LVL
                made.append(_padding.graph(data, of_nodes, of_edges, self.opts, labels))
        return made

    def _add_masks(self, batch, graphs, nodes, edges):
        batch.graphs_mask = torch.arange(self.opts.num_graphs) < graphs
        if not isinstance(nodes, dict):
            batch.nodes_mask = torch.arange(self.opts.num_nodes) < nodes
            batch.edges_mask = torch.arange(self.opts.num_edges) < edges
            return
        for kind, count in nodes.items():
            batch[kind].nodes_mask = torch.arange(self.opts.num_nodes[kind]) < count
        for kind, count in edges.items():
            batch[kind].edges_mask = torch.arange(self.opts.num_edges[kind]) < count


class CombinedBatchingCollater:
    """Makes the batch of a whole call: mini-batches by another collater, joined tensor by tensor along dimension 0.

    `edge_index` too: its dimension 0 is 2 for each mini-batch, which the executor takes apart again. Attributes that are
    no tensors are those of the first mini-batch.

    Args:
        collater: makes a mini-batch of a list of graphs.
        mini_batch_size: graphs of a mini-batch; None: all that are given make one.
    """

    def __init__(self, collater, mini_batch_size=None):
        self.mini_batch_size = mini_batch_size
        self.collater = collater
        self.parser = types.PyGArgsParser()

    def __call__(self, batch):
        size = self.mini_batch_size if self.mini_batch_size is not None else len(batch)
        assert len(batch) % size == 0, f"Invalid batch size: {len(batch)} graphs make no whole mini-batches of {size}."
        batches = [self.collater(batch[begin:begin + size]) for begin in range(0, len(batch), size)]
        columns = zip(*(self.parser.yieldTensors(made) for made in batches))
        return self.parser.reconstruct(batches[0], (torch.cat(column) for column in columns))
