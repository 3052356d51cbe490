"""Graphs by distance with a fixed number of edges: where fewer are found, -1 stands in both places of an edge.

PyTorch has no use for an edge of -1 (it is an error, or the last node): leave them out before messages are passed. PyTorch
Geometric's own functions, which run here without pyg-lib too (`_operators`), give the edges alone.
"""

from .knn import knn
from .knn_graph import knn_graph
from .knn_interpolate import knn_interpolate
from .radius import radius, radius_graph

__all__ = ["knn", "knn_graph", "knn_interpolate", "radius", "radius_graph"]
