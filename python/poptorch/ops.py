"""The names of PopTorch's module `poptorch.ops`."""

from ._operations.blocks import BeginBlock, Block, BlockFunction, removeBlocks
from ._operations.control import cond, dynamic_slice, dynamic_update, for_loop
from ._operations.ctc import ctc_beam_search_decoder
from ._operations.custom import custom_op
from ._operations.hints import (Attribute, MultiConv, NameScope, nop, recomputationCheckpoint, serializedMatMul, set_available_memory,
                     set_overlap_for_input, set_overlap_for_output)
from ._operations.host_ops import CPU, fps, nearest
from ._operations.losses import identity_loss
from ._operations.print_tensor import ipu_print_tensor

__all__ = ["Attribute", "BeginBlock", "Block", "BlockFunction", "CPU", "MultiConv", "NameScope", "cond", "ctc_beam_search_decoder",
           "custom_op", "dynamic_slice", "dynamic_update", "for_loop", "fps", "identity_loss", "ipu_print_tensor", "nearest",
           "nop", "recomputationCheckpoint", "removeBlocks", "serializedMatMul", "set_available_memory",
           "set_overlap_for_input", "set_overlap_for_output"]
