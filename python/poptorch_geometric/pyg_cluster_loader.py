"""The loader of clusters of a graph in batches of fixed size, for torch alone."""

import torch.utils.data
from torch_geometric.loader import ClusterLoader

from .collate import FixedSizeCollater
from .pyg_dataloader import OverSizeStrategy, trims

__all__ = ["FixedSizeClusterLoader"]


class FixedSizeClusterLoader(torch.utils.data.DataLoader):
    """Clusters in batches of fixed size, for torch alone: arguments as those of `cluster_loader`'s."""

    def __init__(self, cluster_data, fixed_size_options, batch_size=1,
                 over_size_strategy=OverSizeStrategy.TrimNodesAndEdges, add_pad_masks=True, **kwargs):
        name = type(self).__name__
        assert fixed_size_options.num_graphs == 2, (
            f"num_graphs of the fixed size options is {fixed_size_options.num_graphs}: clusters become one graph, and with that "
            f"of padding {name} has 2.")
        unsupported = sorted({"collate_fn", "batch_sampler", "shuffle", "exclude_keys"} & set(kwargs))
        assert not unsupported, f"{name} does not take {', '.join(unsupported)}."
        self.cluster_data = cluster_data
        self._clusters = batch_size
        self.cluster_collater = ClusterLoader(cluster_data, batch_size=batch_size)._collate
        self.fixed_size_collater = FixedSizeCollater(fixed_size_options, add_pad_masks, **trims(over_size_strategy))
        super().__init__(dataset=range(len(cluster_data)), batch_size=batch_size, collate_fn=self._create_collater(),
                         **kwargs)

    def _collate(self, batch):
        return self.fixed_size_collater([self.cluster_collater(batch)])

    def _create_collater(self):
        return self._collate
