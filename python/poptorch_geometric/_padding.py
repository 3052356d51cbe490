"""Graphs of padding: nodes and edges of a fixed value, of the same attributes as a real graph."""

import copy

import torch
from torch_geometric.data import HeteroData


def shares(amount, pieces):
    """`amount` in `pieces` parts that differ by no more than one, larger ones first."""
    return [amount // pieces + (part < amount % pieces) for part in range(pieces)]


def shares_of_edges(amount, nodes):
    """Edges among padding graphs with these numbers of nodes: evenly among those that have a node to join.

    None where there are edges and no graph has a node.
    """
    with_nodes = [place for place, count in enumerate(nodes) if count]
    result = [0] * len(nodes)
    if amount and not with_nodes:
        return None
    for place, share in zip(with_nodes, shares(amount, len(with_nodes)) if with_nodes else []):
        result[place] = share
    return result


def _filled(value, dimension, extent, filling):
    shape = list(value.shape)
    shape[dimension] = extent
    return value.new_full(shape, filling)


def _of_store(store, original, nodes, edges, options):
    """Fills the tensors of a store of nodes or edges; other values stay those of the original."""
    for name, value in list(store.items()):
        if name == "num_nodes":
            store[name] = nodes
        elif not isinstance(value, torch.Tensor):
            continue
        elif name == "edge_index":
            # The first node of the graph joined to itself.
            store[name] = value.new_zeros((2, edges))
        elif nodes is not None and original.is_node_attr(name):
            store[name] = _filled(value, original._parent().__cat_dim__(name, value, original), nodes,
                                  options.node_pad_value)
        elif edges is not None and original.is_edge_attr(name):
            store[name] = _filled(value, original._parent().__cat_dim__(name, value, original), edges,
                                  options.edge_pad_value)


def _of_graph(name, value, options):
    """An attribute of the whole graph."""
    if isinstance(value, torch.Tensor):
        return torch.full_like(value, options.graph_pad_value)
    return options.pad_graph_defaults.get(name, value)


def graph(data, nodes, edges, options, labels_of_nodes):
    """A graph of padding like `data`, with so many nodes and edges (numbers).

    `labels_of_nodes`: whether `y` has a row for each node, or one for the graph; None: as its extent says.
    """
    made = copy.copy(data)
    for name, value in data.to_dict().items():
        of_graph = not (data.is_node_attr(name) or data.is_edge_attr(name)) and name not in ("edge_index", "num_nodes")
        if name == "y" and labels_of_nodes is not None:
            of_graph = not labels_of_nodes
        if of_graph:
            made[name] = _of_graph(name, value, options)
        elif name == "num_nodes":
            made.num_nodes = nodes
        elif name == "edge_index":
            made[name] = value.new_zeros((2, edges))
        elif isinstance(value, torch.Tensor):
            of_nodes = data.is_node_attr(name) or (name == "y" and labels_of_nodes)
            made[name] = _filled(value, data.__cat_dim__(name, value), nodes if of_nodes else edges,
                                 options.node_pad_value if of_nodes else options.edge_pad_value)
    return made


def hetero_graph(data, nodes, edges, options):
    """A heterogeneous graph of padding like `data`, with so many nodes and edges (dicts by type)."""
    made = copy.copy(data)
    for kind, store in data.node_items():
        _of_store(made[kind], store, nodes[kind], None, options)
    for kind, store in data.edge_items():
        _of_store(made[kind], store, None, edges[kind], options)
    for name, value in data._global_store.items():
        made[name] = _of_graph(name, value, options)
    return made


def among(data, graphs, nodes, edges):
    """[(nodes, edges)] for each graph of padding, dicts by type where the data is heterogeneous.

    RuntimeError where edges have to be padded and no node is left for them to join.
    """
    if not isinstance(data, HeteroData):
        by_graph = shares(nodes, graphs)
        return list(zip(by_graph, _edges_or_refuse(edges, by_graph, "")))
    nodes_by = {kind: shares(count, graphs) for kind, count in nodes.items()}
    edges_by = {}
    for kind, count in edges.items():
        both = [min(pair) for pair in zip(nodes_by[kind[0]], nodes_by[kind[2]])]
        edges_by[kind] = _edges_or_refuse(count, both, f" of type {kind}")
    return [({kind: by[place] for kind, by in nodes_by.items()}, {kind: by[place] for kind, by in edges_by.items()})
            for place in range(graphs)]


def _edges_or_refuse(amount, nodes, kind):
    found = shares_of_edges(amount, nodes)
    if found is None:
        raise RuntimeError(f"{amount} edges{kind} of padding have no node to join: the real graphs take all nodes. Increase "
                           "num_nodes by one at least, or trim nodes.")
    return found
