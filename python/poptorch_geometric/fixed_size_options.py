"""The sizes that batches of graphs are padded to, and the values of the padding."""

import itertools

from torch_geometric.data import HeteroData

__all__ = ["FixedSizeOptions"]


def _largest(counts):
    """The largest of each of several counts, which are numbers or dicts of numbers."""
    counts = list(counts)
    if not counts:
        raise ValueError("There is no sample to take sizes from: give num_nodes and num_edges.")
    if not isinstance(counts[0], dict):
        return max(counts)
    return {kind: max(count.get(kind, 0) for count in counts) for kind in dict.fromkeys(itertools.chain(*counts))}


def _each(count, function):
    return {kind: function(value) for kind, value in count.items()} if isinstance(count, dict) else function(count)


def nodes_of(data):
    """Nodes of a graph, of a heterogeneous one as a dict by type."""
    if isinstance(data, HeteroData):
        return {kind: data[kind].num_nodes for kind in data.node_types}
    return data.num_nodes


def edges_of(data):
    """Edges of a graph, of a heterogeneous one as a dict by type."""
    if isinstance(data, HeteroData):
        return {kind: data[kind].num_edges for kind in data.edge_types}
    return data.num_edges


class FixedSizeOptions:
    """What every batch is padded to.

    Args:
        num_nodes, num_edges: of a whole batch, padding included; numbers, or dicts by type for heterogeneous graphs. At
            least one of each is kept for the padding. num_edges None: every node joined to every other, n (n - 1).
        num_graphs: of a batch, graphs of padding included: at least 2, else ValueError.
        node_pad_value, edge_pad_value, graph_pad_value: what attributes of padding are filled with (0).
        pad_graph_defaults: {name: value} for attributes of padding graphs that are no tensors; those of the first graph
            of a batch where a name is missing.
    """

    def __init__(self, num_nodes, num_edges=None, num_graphs=2, node_pad_value=None, edge_pad_value=None,
                 graph_pad_value=None, pad_graph_defaults=None):
        if num_graphs < 2:
            raise ValueError(f"num_graphs is {num_graphs}: a batch has at least 2 graphs, a real one and one of padding.")
        self.num_nodes = num_nodes
        if not num_edges:
            every = sum(num_nodes.values()) if isinstance(num_nodes, dict) else num_nodes
            num_edges = every * (every - 1)
        self.num_edges = num_edges
        self.num_graphs = num_graphs
        self.node_pad_value = 0.0 if node_pad_value is None else node_pad_value
        self.edge_pad_value = 0.0 if edge_pad_value is None else edge_pad_value
        self.graph_pad_value = 0.0 if graph_pad_value is None else graph_pad_value
        self.pad_graph_defaults = {} if pad_graph_defaults is None else pad_graph_defaults

    def is_hetero(self):
        """Whether numbers of nodes and edges are given by type."""
        return isinstance(self.num_nodes, dict) and isinstance(self.num_edges, dict)

    def to_hetero(self, node_types, edge_types):
        """Gives every type the number that there is for all; returns the object."""
        if not isinstance(self.num_nodes, dict):
            self.num_nodes = dict.fromkeys(node_types, self.num_nodes)
        if not isinstance(self.num_edges, dict):
            self.num_edges = dict.fromkeys(edge_types, self.num_edges)
        return self

    @property
    def total_num_nodes(self):
        """Nodes of all types together."""
        return sum(self.num_nodes.values()) if self.is_hetero() else self.num_nodes

    @property
    def total_num_edges(self):
        """Edges of all types together."""
        return sum(self.num_edges.values()) if self.is_hetero() else self.num_edges

    @classmethod
    def from_dataset(cls, dataset, batch_size, sample_limit=None, progress_bar=None):
        """Sizes that any `batch_size` - 1 graphs of the data set fit in: the largest graph's times that, plus 1.

        sample_limit: look at so many graphs only (all); progress_bar is recorded by name only, nothing is shown.
        """
        nodes, edges = [], []
        for index in range(min(len(dataset), sample_limit or len(dataset))):
            graph = dataset[index]
            nodes.append(nodes_of(graph))
            edges.append(edges_of(graph))
        return cls(*(_each(_largest(counts), lambda most: int(most) * (batch_size - 1) + 1) for counts in (nodes, edges)),
                   batch_size)

    @classmethod
    def from_loader(cls, loader, sample_limit=1000):
        """Sizes of the largest of `sample_limit` batches of a loader, plus 1: larger batches may come later.

        A loader with fewer batches is gone through again, for what it draws at random.
        """
        nodes, edges, graphs, seen = [], [], [1], 0
        while seen < sample_limit:
            before = seen
            for batch in itertools.islice(loader, sample_limit - seen):
                nodes.append(nodes_of(batch))
                edges.append(edges_of(batch))
                graphs.append(getattr(batch, "num_graphs", None) or 1)
                seen += 1
            if seen == before:
                break
        return cls(_each(_largest(nodes), lambda most: most + 1), _each(_largest(edges), lambda most: most + 1),
                   max(graphs) + 1)

    def __repr__(self):
        return (f"{type(self).__name__}(num_nodes={self.num_nodes} (At least one node reserved for padding), "
                f"num_edges={self.num_edges} (At least one edge reserved for padding), num_graphs={self.num_graphs} "
                f"(At least one graph reserved for padding), node_pad_value={self.node_pad_value}, "
                f"edge_pad_value={self.edge_pad_value}, graph_pad_value={self.graph_pad_value}, "
                f"pad_graph_defaults={self.pad_graph_defaults})")
