"""Interfaces by which a model is told how to leave padding out, and the one that leaves nothing out.

A loader that pads brings a `Masker`; a model calls it before losses and pooling, and runs unpadded with `NoMasker`.
"""

import abc
from collections.abc import Callable

import torch

__all__ = ["DecoratedLayer", "Entries", "Layer", "LayerMasker", "Mask", "Masker", "NoMasker", "PreLayerMasker"]

# Names for annotations, as scripts use them.
Entries = torch.Tensor | tuple[torch.Tensor, ...]
Mask = torch.Tensor | None
Layer = Callable[[torch.Tensor], torch.Tensor]
DecoratedLayer = Callable[[torch.Tensor], torch.Tensor]


class Masker(abc.ABC):
    """Takes entries of nodes, edges or graphs (a tensor or a tuple of them) and a mask of the real ones."""

    @abc.abstractmethod
    def node_masker(self, node_entries, mask=None):
        """Entries without those of padded nodes."""

    @abc.abstractmethod
    def edge_masker(self, edge_entries, mask=None):
        """Entries without those of padded edges."""

    @abc.abstractmethod
    def graph_masker(self, graph_entries, mask=None):
        """Entries without those of padded graphs."""


class NoMasker(Masker):
    """Leaves everything as it is."""

    def node_masker(self, node_entries, mask=None):
        """The entries."""
        return node_entries

    def edge_masker(self, edge_entries, mask=None):
        """The entries."""
        return edge_entries

    def graph_masker(self, graph_entries, mask=None):
        """The entries."""
        return graph_entries


class LayerMasker(abc.ABC):
    """Makes layers that mask their inputs, by a `Masker`. A masked layer takes the layer's inputs and `mask`."""

    def __init__(self, masker):
        super().__init__()
        self.masker = masker

    @abc.abstractmethod
    def node_masker(self, layer):
        """The layer, applied to unpadded nodes."""
        return self._before(layer, self.masker.node_masker)

    @abc.abstractmethod
    def edge_masker(self, layer):
        """The layer, applied to unpadded edges."""
        return self._before(layer, self.masker.edge_masker)

    @abc.abstractmethod
    def graph_masker(self, layer):
        """The layer, applied to unpadded graphs."""
        return self._before(layer, self.masker.graph_masker)

    @staticmethod
    def _before(layer, masker):
        def masked_layer(*args, mask=None):
            return layer(*masker(args, mask=mask))

        return masked_layer


class PreLayerMasker(LayerMasker):
    """Masks the inputs and nothing else."""

    def node_masker(self, layer):
        """The layer, applied to unpadded nodes."""
        return super().node_masker(layer)

    def edge_masker(self, layer):
        """The layer, applied to unpadded edges."""
        return super().edge_masker(layer)

    def graph_masker(self, layer):
        """The layer, applied to unpadded graphs."""
        return super().graph_masker(layer)
