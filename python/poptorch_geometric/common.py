"""The classes of batches that PyTorch Geometric makes of graphs."""

from torch_geometric.data import Batch, Data, HeteroData

DataBatch = type(Batch(_base_cls=Data))
HeteroDataBatch = type(Batch(_base_cls=HeteroData))
