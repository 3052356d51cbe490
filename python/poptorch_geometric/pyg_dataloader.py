"""Loaders of batches of fixed size for torch alone, and what those for executors share with them."""

from enum import Enum

import torch.utils.data
from torch.utils.data import RandomSampler, SequentialSampler
from torch_geometric.data import HeteroData

from .collate import FixedSizeCollater
from .fixed_size_options import FixedSizeOptions
from .pyg_collate import Collater
from .stream_packing_sampler import StreamPackingSampler

__all__ = ["DataLoader", "FixedSizeDataLoader", "FixedSizeStrategy", "OverSizeStrategy"]


class FixedSizeStrategy(Enum):
    """PadToMax: the same number of real graphs in each batch. StreamPack: as many as fit."""

    PadToMax = 0
    StreamPack = 1


class OverSizeStrategy(Enum):
    """What becomes of graphs that do not fit: an error, left out, or nodes, edges or both of them taken out at random."""

    Error = 0
    Skip = 1
    TrimNodes = 2
    TrimEdges = 3
    TrimNodesAndEdges = 4


def trims(over_size_strategy):
    """The collater's arguments for a strategy."""
    both = OverSizeStrategy.TrimNodesAndEdges
    return {"trim_nodes": over_size_strategy in (OverSizeStrategy.TrimNodes, both),
            "trim_edges": over_size_strategy in (OverSizeStrategy.TrimEdges, both)}


class DataLoader(torch.utils.data.DataLoader):
    """Batches of graphs, as PyTorch Geometric's loader gives them."""

    def __init__(self, dataset, batch_size=1, shuffle=False, follow_batch=None, exclude_keys=None, **kwargs):
        kwargs.pop("collate_fn", None)
        self.follow_batch = follow_batch
        self.exclude_keys = exclude_keys
        collater = self._create_collater(follow_batch=follow_batch, exclude_keys=exclude_keys)
        super().__init__(dataset=dataset, batch_size=batch_size, shuffle=shuffle, collate_fn=collater, **kwargs)

    def _create_collater(self, **collater_args):
        return Collater(**collater_args)


class FixedSizeDataLoader(torch.utils.data.DataLoader):
    """Batches of graphs of fixed size, for torch alone: arguments as those of `dataloader.FixedSizeDataLoader`."""

    def __init__(self, dataset, batch_size=2, shuffle=False, fixed_size_options=None,
                 fixed_size_strategy=FixedSizeStrategy.PadToMax, over_size_strategy=OverSizeStrategy.Error,
                 add_pad_masks=True, follow_batch=None, exclude_keys=None, **kwargs):
        assert "collate_fn" not in kwargs, (f"{type(self).__name__} has a collate_fn of its own: pad in a transform after "
                                            "yours (torch_geometric.transforms.Pad), with torch's DataLoader.")
        options = self._sizes(dataset, batch_size, fixed_size_options)
        batch_sampler = kwargs.pop("batch_sampler", None)
        if fixed_size_strategy is FixedSizeStrategy.StreamPack:
            if batch_sampler is not None:
                raise ValueError("FixedSizeStrategy.StreamPack chooses the batches itself: give no batch_sampler.")
            batch_sampler = _packing(dataset, batch_size, shuffle, options, over_size_strategy)
        elif fixed_size_strategy is not FixedSizeStrategy.PadToMax:
            raise NotImplementedError(f"{fixed_size_strategy} is no strategy of {type(self).__name__}.")
        self.fixed_size_options = options
        self.padded_batch_size = batch_size
        self.batch_sampler = batch_sampler
        collater = self._create_collater(fixed_size_options=options, add_masks_to_batch=add_pad_masks,
                                         follow_batch=follow_batch, exclude_keys=exclude_keys, **trims(over_size_strategy))
        sampling = {"batch_size": batch_size - 1, "shuffle": shuffle} if batch_sampler is None else {
            "batch_sampler": batch_sampler}
        super().__init__(dataset=dataset, collate_fn=collater, **sampling, **kwargs)

    @staticmethod
    def _sizes(dataset, batch_size, options):
        if options is None:
            options = FixedSizeOptions.from_dataset(dataset, batch_size)
        if isinstance(dataset[0], HeteroData) and not options.is_hetero():
            options.to_hetero(dataset[0].node_types, dataset[0].edge_types)
        assert batch_size == options.num_graphs, (f"batch_size is {batch_size} and num_graphs of the fixed size options "
                                                  f"{options.num_graphs}: both count all graphs of a batch.")
        return options

    def _create_collater(self, **collater_args):
        return FixedSizeCollater(**collater_args)


def _packing(dataset, batch_size, shuffle, options, over_size_strategy):
    order = RandomSampler(dataset) if shuffle else SequentialSampler(dataset)
    # A graph, a node and an edge are kept for padding.
    return StreamPackingSampler(dataset, batch_size - 1, options.total_num_nodes - 1, options.total_num_edges - 1, order,
                                over_size_strategy is OverSizeStrategy.Skip)
