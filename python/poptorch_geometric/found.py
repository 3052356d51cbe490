"""PyTorch Geometric's functions of near points, where the library that it takes them from (pyg-lib) is not installed."""

import importlib
import inspect
import logging

from . import ops
from ._near import found

__all__ = ["install", "knn", "knn_graph", "radius", "radius_graph"]


def knn(x, y, k, batch_x=None, batch_y=None, cosine=False, num_workers=1, batch_size=None):
    """[2, pairs]: each point of `y` and its k nearest in `x` of the same example."""
    return found(ops.knn(x, y, k, batch_x, batch_y, cosine))


def knn_graph(x, k, batch=None, loop=False, flow="source_to_target", cosine=False, num_workers=1, batch_size=None):
    """[2, edges]: edges from the k nearest points of the same example."""
    return found(ops.knn_graph(x, k, batch, loop, flow, cosine))


def radius(x, y, r, batch_x=None, batch_y=None, max_num_neighbors=32, num_workers=1, batch_size=None):
    """[2, pairs]: each point of `y` and those of `x` within `r`, the nearest of more than max_num_neighbors."""
    return found(ops.radius(x, y, r, batch_x, batch_y, max_num_neighbors))


def radius_graph(x, r, batch=None, loop=False, max_num_neighbors=32, flow="source_to_target", num_workers=1,
                 batch_size=None):
    """[2, edges]: edges from the points within `r`, the nearest of more than max_num_neighbors."""
    return found(ops.radius_graph(x, r, batch, loop, max_num_neighbors, flow))


_FUNCTIONS = {made.__name__: made for made in (knn, knn_graph, radius, radius_graph)}
# Modules that took the functions by name when they were imported.
_USERS = ("torch_geometric.nn", "torch_geometric.nn.pool", "torch_geometric.nn.conv.edge_conv",
          "torch_geometric.nn.conv.gravnet_conv", "torch_geometric.nn.conv.x_conv", "torch_geometric.nn.models.schnet",
          "torch_geometric.nn.models.dimenet", "torch_geometric.nn.models.visnet",
          "torch_geometric.nn.unpool.knn_interpolate", "torch_geometric.transforms.radius_graph",
          "torch_geometric.transforms.knn_graph")


def _there(name):
    """Whether PyTorch Geometric can compute the function itself."""
    import torch_geometric.typing as has
    flag = {"knn": "WITH_KNN", "knn_graph": "WITH_KNN", "radius": "WITH_RADIUS", "radius_graph": "WITH_RADIUS"}[name]
    return getattr(has, flag, False) or getattr(has, "WITH_TORCH_CLUSTER", False)


def install():
    """Puts these functions in the place of PyTorch Geometric's where those would raise ImportError."""
    lacking = {name: made for name, made in _FUNCTIONS.items() if not _there(name)}
    for module_name in _USERS if lacking else ():
        try:
            module = importlib.import_module(module_name)
        except ImportError:
            continue
        for name, made in lacking.items():
            if inspect.isfunction(getattr(module, name, None)):
                setattr(module, name, made)
    if lacking:
        logging.getLogger("poptorch::python").info("pyg-lib is not installed: %s are computed in plain torch.",
                                                    ", ".join(lacking))
