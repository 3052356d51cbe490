"""Names of PopTorch's private module `_utils` that scripts use."""

from ._structures import _parsers as custom_arg_parsers
from ._structures import tensors_in as flattenTensorStructure


def reconstructTensorStructure(structure, tensors, filter_fn=None):
    """The structure around these tensors."""
    from ._structures import with_tensors
    return with_tensors(structure, iter(tensors))


__all__ = ["custom_arg_parsers", "flattenTensorStructure", "reconstructTensorStructure"]
