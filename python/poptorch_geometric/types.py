"""Graphs as arguments and results of models: which tensors they hold, and the same graph around others."""

import copy

import torch
from poptorch import ICustomArgParser, registerCustomArgParser
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.data.data import BaseData

__all__ = ["PyGArgsParser", "registerCustomArgParsers"]


class PyGArgsParser(ICustomArgParser):
    """Takes a Data object apart by its tensors in order of sorted names, a HeteroData one store after the other."""

    @staticmethod
    def _places(struct):
        """(store, name) of each tensor."""
        if isinstance(struct, HeteroData):
            return [(store, name) for store in (struct._global_store, *struct.node_stores, *struct.edge_stores)
                    for name, value in store.items() if isinstance(value, torch.Tensor)]
        if isinstance(struct, Data):
            return [(struct._store, name) for name in sorted(struct.keys())
                    if isinstance(struct[name], torch.Tensor)]
        raise ValueError(f"Unsupported data type: {type(struct)}. Arguments of models are Data or HeteroData.")

    def yieldTensors(self, struct):
        """Yields the tensors of a graph or a batch of graphs."""
        for store, name in self._places(struct):
            yield store[name]

    def reconstruct(self, original_structure, tensor_iterator):
        """A graph like the original around the next tensors.

        A batch keeps the original's number of graphs, nodes and edges, also where tensors of several mini-batches were
        joined; it can no longer be taken apart into its graphs.
        """
        made = copy.copy(original_structure)
        for store, name in self._places(made):
            store[name] = next(tensor_iterator)
        if isinstance(original_structure, Batch):
            _keep_numbers(made, original_structure)
        return made


def _keep_numbers(made, original):
    for name in ("_slice_dict", "_inc_dict"):
        made.__dict__.pop(name, None)
    if isinstance(made, HeteroData):
        # HeteroData would keep the class as an attribute of the graph.
        object.__setattr__(made, "__class__", _with_numbers(type(made)))
    made["num_nodes"], made["num_edges"] = original.num_nodes, original.num_edges


_numbered = {}


def _with_numbers(base):
    """A subclass of a class of heterogeneous batches whose numbers of nodes and edges are those that were stored."""
    if getattr(base, "_keeps_numbers", False):
        return base
    if base not in _numbered:
        def stored(name):
            def read(self):
                kept = self._global_store.get(name)
                return kept if kept is not None else getattr(super(made, self), name)
            return property(read)

        made = type(base.__name__, (base,), {"_keeps_numbers": True, "num_nodes": stored("num_nodes"),
                                             "num_edges": stored("num_edges"), "__reduce__": _reduce})
        _numbered[base] = made
    return _numbered[base]


def _reduce(self):
    return _empty, (), self.__dict__.copy()


def _empty():
    """A batch to be filled by unpickling."""
    made = Batch(_base_cls=HeteroData)
    object.__setattr__(made, "__class__", _with_numbers(type(made)))
    return made


def registerCustomArgParsers():
    """Lets graphs be arguments and results of models; done when the package is imported."""
    registerCustomArgParser(BaseData, PyGArgsParser())


registerCustomArgParsers()
