"""Loaders of graphs for executors: batches of a whole call."""

import poptorch
from poptorch._dataloader import DataLoader as _Loader

from . import pyg_dataloader
from .collate import CombinedBatchingCollater
from .pyg_dataloader import FixedSizeStrategy, OverSizeStrategy

__all__ = ["CustomFixedSizeDataLoader", "DataLoader", "FixedSizeDataLoader", "FixedSizeStrategy", "OverSizeStrategy"]


class DataLoader(pyg_dataloader.DataLoader, _Loader):
    """Batches of `batch_size` graphs, joined to the size of a call; all must have as many nodes and edges for that.

    Args:
        dataset, batch_size, shuffle, follow_batch, exclude_keys: as in PyTorch Geometric.
        options: of the executor (default options).
        kwargs: for poptorch.DataLoader.
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, follow_batch=None, exclude_keys=None, options=None, **kwargs):
        self._graphs = batch_size
        super().__init__(dataset, batch_size, shuffle, follow_batch, exclude_keys,
                         options=poptorch.Options() if options is None else options, **kwargs)

    def _create_collater(self, **collater_args):
        return CombinedBatchingCollater(super()._create_collater(**collater_args), self._graphs)


class FixedSizeDataLoader(pyg_dataloader.FixedSizeDataLoader, _Loader):
    """Batches whose tensors have the same extents each time: real graphs and padding (`collate.FixedSizeCollater`).

    Args:
        dataset: graphs, Data or HeteroData.
        batch_size: graphs of a mini-batch, one of padding included: it equals num_graphs of the sizes (AssertionError).
        shuffle: each epoch in another order.
        fixed_size_options: the sizes; from the largest graphs of the data set where not given.
        fixed_size_strategy: batch_size - 1 graphs in each batch, or as many as fit.
        over_size_strategy: what becomes of graphs that do not fit.
        add_pad_masks: adds graphs_mask, nodes_mask, edges_mask.
        follow_batch, exclude_keys: as in PyTorch Geometric.
        options: of the executor (default options).
        kwargs: for poptorch.DataLoader.
    """

    def __init__(self, dataset, batch_size=2, shuffle=False, fixed_size_options=None,
                 fixed_size_strategy=FixedSizeStrategy.PadToMax, over_size_strategy=OverSizeStrategy.Error,
                 add_pad_masks=True, follow_batch=None, exclude_keys=None, options=None, **kwargs):
        super().__init__(dataset, batch_size, shuffle, fixed_size_options, fixed_size_strategy, over_size_strategy,
                         add_pad_masks, follow_batch, exclude_keys,
                         options=poptorch.Options() if options is None else options, **kwargs)

    def _create_collater(self, **collater_args):
        # Batches of a sampler come one by one and are joined by the loader.
        size = None if self.batch_sampler is not None else self.padded_batch_size - 1
        return CombinedBatchingCollater(super()._create_collater(**collater_args), size)


_TRIMS = {(False, False): OverSizeStrategy.Error, (True, False): OverSizeStrategy.TrimNodes,
          (False, True): OverSizeStrategy.TrimEdges, (True, True): OverSizeStrategy.TrimNodesAndEdges}


class CustomFixedSizeDataLoader(FixedSizeDataLoader):
    """The name and arguments that `FixedSizeDataLoader` with PadToMax had until version 3.2.

    Args: its own, and
        collater_args: {"add_masks_to_batch", "trim_nodes", "trim_edges": bool}, all False where not given; another name
            is an AssertionError.
    """

    def __init__(self, dataset, batch_size=2, fixed_size_options=None, batch_sampler=None, shuffle=False, follow_batch=None,
                 exclude_keys=None, collater_args=None, options=None, **kwargs):
        given = dict(collater_args or {})
        masks = given.pop("add_masks_to_batch", False)
        trims = bool(given.pop("trim_nodes", False)), bool(given.pop("trim_edges", False))
        assert not given, f"collater_args takes no {', '.join(sorted(given))}: give it to the loader itself."
        super().__init__(dataset, batch_size, shuffle, fixed_size_options, over_size_strategy=_TRIMS[trims],
                         add_pad_masks=masks, follow_batch=follow_batch, exclude_keys=exclude_keys, options=options,
                         batch_sampler=batch_sampler, **kwargs)
