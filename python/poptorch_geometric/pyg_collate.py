"""PyTorch Geometric's collater, without the data set that it takes as first argument since 2.4."""

from torch_geometric.loader.dataloader import Collater as _Collater


class Collater(_Collater):
    """Graphs to a batch; `follow_batch` and `exclude_keys` as in PyTorch Geometric."""

    def __init__(self, follow_batch=None, exclude_keys=None):
        super().__init__(None, follow_batch or [], exclude_keys or [])
