"""Graphs by distance with a fixed number of edges: where fewer are found, -1 stands in both places of an edge.

PyTorch has no use for an edge of -1 (it is an error, or the last node): leave them out before messages are passed. In the
place of PyTorch Geometric's own functions, where its library is missing, stand those of `poptorch_geometric.found`, which
give the edges alone.
"""

from .knn import knn
from .knn_graph import knn_graph
from .knn_interpolate import knn_interpolate
from .radius import radius, radius_graph

__all__ = ["knn", "knn_graph", "knn_interpolate", "radius", "radius_graph"]
