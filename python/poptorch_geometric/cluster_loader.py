"""The loader of clusters of a graph in batches of fixed size, for executors."""

import poptorch
from poptorch._dataloader import DataLoader as _Loader

from . import pyg_cluster_loader
from .collate import CombinedBatchingCollater
from .pyg_dataloader import OverSizeStrategy

__all__ = ["FixedSizeClusterLoader"]


class FixedSizeClusterLoader(pyg_cluster_loader.FixedSizeClusterLoader, _Loader):
    """Clusters of a large graph, `batch_size` of them as one graph, padded to a fixed size.

    Args:
        cluster_data: torch_geometric.loader.ClusterData (which needs pyg-lib or torch-sparse).
        fixed_size_options: the sizes; num_graphs must be 2 (AssertionError).
        batch_size: clusters of a mini-batch.
        over_size_strategy: what becomes of nodes and edges that are too many (taken out at random).
        add_pad_masks: adds graphs_mask, nodes_mask, edges_mask.
        options: of the executor (default options).
        kwargs: for poptorch.DataLoader; not collate_fn, batch_sampler, shuffle, exclude_keys (AssertionError).
    """

    def __init__(self, cluster_data, fixed_size_options, batch_size=1,
                 over_size_strategy=OverSizeStrategy.TrimNodesAndEdges, add_pad_masks=True, options=None, **kwargs):
        super().__init__(cluster_data, fixed_size_options, batch_size, over_size_strategy, add_pad_masks,
                         options=poptorch.Options() if options is None else options, **kwargs)

    def _create_collater(self):
        return CombinedBatchingCollater(super()._create_collater(), self._clusters)
