"""Nodes and edges taken out at random, so that graphs fit a batch of fixed size."""

import torch
from torch_geometric.data import HeteroData


def kept(counts, limit):
    """For each graph a mask of the elements that stay, so that `limit` stay of all; None where all fit.

    Which go is drawn at random; one of each graph that has any always stays.
    """
    total = sum(counts)
    if total <= limit:
        return None
    removable = torch.ones(total, dtype=torch.bool)
    begin = 0
    for count in counts:
        if count:
            removable[begin + torch.randint(count, (1,))] = False
        begin += count
    places = removable.nonzero().flatten()
    staying = torch.ones(total, dtype=torch.bool)
    staying[places[torch.randperm(len(places))[:total - limit]]] = False
    return staying.split(counts)


def _refuse_empty(limit, counts, what):
    graphs = sum(count > 0 for count in counts)
    if limit < graphs:
        raise RuntimeError(f"Trimming to {limit} {what} would leave some of {graphs} graphs without any.")


def nodes(graphs, limit):
    """The graphs with `limit` nodes together at most (a dict by type for heterogeneous ones)."""
    if isinstance(graphs[0], HeteroData):
        return _by_type(graphs, limit, graphs[0].node_types, "nodes", lambda data, masks: data.subgraph(masks))
    counts = [data.num_nodes for data in graphs]
    _refuse_empty(limit, counts, "nodes")
    masks = kept(counts, limit)
    return graphs if masks is None else [data.subgraph(mask) for data, mask in zip(graphs, masks)]


def edges(graphs, limit):
    """The graphs with `limit` edges together at most (a dict by type for heterogeneous ones)."""
    if isinstance(graphs[0], HeteroData):
        return _by_type(graphs, limit, graphs[0].edge_types, "edges", lambda data, masks: data.edge_subgraph(masks))
    counts = [data.num_edges for data in graphs]
    _refuse_empty(limit, counts, "edges")
    masks = kept(counts, limit)
    return graphs if masks is None else [data.edge_subgraph(mask) for data, mask in zip(graphs, masks)]


def _by_type(graphs, limit, kinds, what, take):
    masks = {}
    for kind in kinds:
        counts = [data[kind].num_nodes if what == "nodes" else data[kind].num_edges for data in graphs]
        _refuse_empty(limit[kind], counts, f"{what} of type {kind}")
        masks[kind] = kept(counts, limit[kind])
    if all(mask is None for mask in masks.values()):
        return graphs
    return [take(data, {kind: mask[place] for kind, mask in masks.items() if mask is not None})
            for place, data in enumerate(graphs)]
