"""The loader of sampled neighborhoods of a graph in batches of fixed size."""

import poptorch
import torch.utils.data
from poptorch._dataloader import DataLoader as _Loader
from torch_geometric.loader import NeighborLoader
from torch_geometric.loader.utils import get_input_nodes

from . import _neighbors
from .collate import CombinedBatchingCollater, FixedSizeCollater
from .fixed_size_options import FixedSizeOptions
from .pyg_dataloader import OverSizeStrategy, trims

__all__ = ["FixedSizeNeighborLoader", "PyGFixedSizeNeighborLoader"]

# Attributes of a sampled batch that are neither of nodes nor of edges and are set again after padding.
_OF_SAMPLE = ("batch_size", "input_id")

def _count(nodes):
    return int(nodes.sum()) if nodes.dtype == torch.bool else nodes.numel()


class PyGFixedSizeNeighborLoader(torch.utils.data.DataLoader):
    """Neighborhoods in batches of fixed size, for torch alone. `of_neighbors`: more arguments of NeighborLoader."""

    def __init__(self, data, num_neighbors, input_nodes=None, batch_size=1,
                 over_size_strategy=OverSizeStrategy.TrimNodesAndEdges, fixed_size_options=None, add_pad_masks=True,
                 follow_batch=None, exclude_keys=None, of_neighbors=None, **kwargs):
        of_neighbors = {name: value for name, value in (of_neighbors or {}).items() if value is not None}
        if _neighbors.missing() and "neighbor_sampler" not in of_neighbors:
            of_neighbors["neighbor_sampler"] = _neighbors.sampler(data, num_neighbors, **of_neighbors)
        self.neighbour_loader = NeighborLoader(data, num_neighbors, input_nodes=input_nodes, batch_size=batch_size,
                                               **of_neighbors)
        self.input_type, nodes = get_input_nodes(data, input_nodes)[:2]
        count = data[self.input_type].num_nodes if nodes is None and self.input_type else (
            data.num_nodes if nodes is None else _count(torch.as_tensor(nodes)))
        if fixed_size_options is None:
            fixed_size_options = FixedSizeOptions.from_loader(self.neighbour_loader)
        self.fixed_size_options = fixed_size_options
        self._seeds = batch_size
        self.fixed_size_collater = FixedSizeCollater(fixed_size_options, add_pad_masks, follow_batch=follow_batch,
                                                     exclude_keys=exclude_keys, **trims(over_size_strategy))
        super().__init__(dataset=range(count), batch_size=batch_size, collate_fn=self._create_collater(), **kwargs)

    def _create_collater(self):
        return self._collate

    def nativeCollate(self, index):
        """PyTorch Geometric's batch of the neighborhoods of these nodes."""
        return self.neighbour_loader(index)

    def fixedSizeCollate(self, data):
        """A batch of PyTorch Geometric, padded; what describes the sample is kept as it was."""
        store = data[self.input_type] if self.input_type else data._store
        kept = {name: store.pop(name) for name in _OF_SAMPLE if name in store}
        made = self.fixed_size_collater([data])
        store = made[self.input_type] if self.input_type else made
        for name, value in kept.items():
            setattr(store, name, value)
        return made

    def _collate(self, index):
        return self.fixedSizeCollate(self.nativeCollate(index))


class FixedSizeNeighborLoader(PyGFixedSizeNeighborLoader, _Loader):
    """Samples neighborhoods as PyTorch Geometric's NeighborLoader does, then pads them.

    Where neither pyg-lib nor torch-sparse is installed they are sampled in plain torch: uniformly, without replacement;
    other ways (replace, disjoint, temporal, other subgraphs) are an ImportError then.

    Args:
        data ... neighbor_sampler: as NeighborLoader's; filter_per_worker has no effect.
        batch_size: nodes whose neighborhoods make a mini-batch.
        over_size_strategy: what becomes of nodes and edges that are too many (taken out at random).
        fixed_size_options: the sizes; from 1,000 batches of the loader where not given, which later ones may exceed.
        add_pad_masks: adds graphs_mask, nodes_mask, edges_mask.
        follow_batch, exclude_keys: as in PyTorch Geometric.
        options: of the executor (default options).
        kwargs: for poptorch.DataLoader.
    """

    def __init__(self, data, num_neighbors, input_nodes=None, input_time=None, subgraph_type="directional", replace=False,
                 directed=True, disjoint=False, temporal_strategy="uniform", time_attr=None, transform=None,
                 transform_sampler_output=None, is_sorted=False, filter_per_worker=True, batch_size=1, neighbor_sampler=None,
                 over_size_strategy=OverSizeStrategy.TrimNodesAndEdges, fixed_size_options=None, add_pad_masks=True,
                 follow_batch=None, exclude_keys=None, options=None, **kwargs):
        of_neighbors = {"input_time": input_time, "subgraph_type": subgraph_type, "replace": replace, "directed": directed,
                        "disjoint": disjoint, "temporal_strategy": temporal_strategy, "time_attr": time_attr,
                        "transform": transform, "transform_sampler_output": transform_sampler_output,
                        "is_sorted": is_sorted, "neighbor_sampler": neighbor_sampler}
        super().__init__(data, num_neighbors, input_nodes, batch_size, over_size_strategy, fixed_size_options,
                         add_pad_masks, follow_batch, exclude_keys, of_neighbors,
                         options=poptorch.Options() if options is None else options, **kwargs)

    def _create_collater(self):
        return CombinedBatchingCollater(super()._create_collater(), self._seeds)
