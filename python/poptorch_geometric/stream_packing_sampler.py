"""Batches of as many graphs as fit, in their order."""

from torch.utils.data import RandomSampler, Sampler, SequentialSampler

__all__ = ["StreamPackingSampler"]


class StreamPackingSampler(Sampler):
    """Adds graphs to a batch one after the other until the next would not fit, then begins another batch.

    Room for padding is kept: after a graph is added, at least as many nodes and edges are left as graphs.

    Args:
        data_source: the data set.
        max_num_graphs, max_num_nodes, max_num_edges: limits of a batch; None: the largest graph's times max_num_graphs.
        base_sampler: the order of the graphs, with a length (as in the data set).
        allow_skip_data: leave out graphs that do not fit an empty batch; else they are a RuntimeError.

    Raises ValueError for limits that no graph could meet.
    """

    def __init__(self, data_source, max_num_graphs, max_num_nodes=None, max_num_edges=None, base_sampler=None,
                 allow_skip_data=False):
        if base_sampler is not None and len(base_sampler) == 0:
            raise ValueError(f"The base sampler {base_sampler} is empty.")
        if max_num_graphs is None or max_num_graphs < 1:
            raise ValueError(f"max_num_graphs is {max_num_graphs}: at least 1.")
        for name, limit in (("max_num_nodes", max_num_nodes), ("max_num_edges", max_num_edges)):
            if limit is not None and limit < max_num_graphs:
                raise ValueError(f"{name} is {limit}: at least max_num_graphs, {max_num_graphs}.")
        self.data_source = data_source
        self.max_num_graphs = max_num_graphs
        self.max_num_nodes = max_num_nodes if max_num_nodes is not None else self._largest("num_nodes")
        self.max_num_edges = max_num_edges if max_num_edges is not None else self._largest("num_edges")
        self.base_sampler = base_sampler if base_sampler is not None else SequentialSampler(data_source)
        self.allow_skip_data = allow_skip_data
        self._length = None

    def _largest(self, name):
        return max(getattr(data, name) for data in self.data_source) * self.max_num_graphs

    def _fits(self, graphs, nodes, edges):
        """Whether a batch of these sums is within the limits, with room for the padding."""
        graphs_left = self.max_num_graphs - graphs
        return (graphs_left >= 0 and self.max_num_nodes - nodes >= graphs_left
                and self.max_num_edges - edges >= graphs_left)

    def __iter__(self):
        batch, nodes, edges = [], 0, 0
        for index in self.base_sampler:
            data = self.data_source[index]
            more = data.num_nodes, data.num_edges
            if batch and not self._fits(len(batch) + 1, nodes + more[0], edges + more[1]):
                yield batch
                batch, nodes, edges = [], 0, 0
            if not batch and not self._fits(1, *more):
                self._refuse(index, *more)
                continue
            batch.append(index)
            nodes, edges = nodes + more[0], edges + more[1]
        if batch:
            yield batch

    def _refuse(self, index, nodes, edges):
        if not self.allow_skip_data:
            raise RuntimeError(
                f"The graph {index} has {nodes} nodes and {edges} edges and does not fit a batch of {self.max_num_nodes} nodes "
                f"and {self.max_num_edges} edges for {self.max_num_graphs} graphs: increase them, or leave such graphs out "
                "(allow_skip_data, OverSizeStrategy.Skip).")

    def __len__(self):
        """How many batches there are. NotImplementedError for a random order, of which each has another number."""
        if isinstance(self.base_sampler, RandomSampler):
            raise NotImplementedError("The number of batches of a StreamPackingSampler over a RandomSampler changes with the "
                                      "order that is drawn.")
        if self._length is None:
            self._length = sum(1 for _ in self)
        return self._length
