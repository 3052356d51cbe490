"""`torch.ops.poptorch`: the operators that scripts call by that name, without effect on values."""

import torch

from . import hints

_registered = torch.library.Library("poptorch", "DEF")


def _define(schema, function):
    name = schema.split("(")[0]
    _registered.define(schema)
    _registered.impl(name, function, "CompositeExplicitAutograd")


def _define_composite(schema, function):
    name = schema.split("(")[0]
    _registered.define(schema)
    _registered.impl(name, function, "CompositeImplicitAutograd")


_TYPES = {"FLOAT": torch.float32, "FLOAT16": torch.float16, "INT32": torch.int32, "INT64": torch.int64, "BOOL": torch.bool,
          "float": torch.float32, "half": torch.float16}


def _cast(tensor, dtype):
    if dtype not in _TYPES:
        raise ValueError(f"internal_cast knows {', '.join(_TYPES)}, not {dtype}")
    return tensor.to(_TYPES[dtype])


_define("push_name_scope(str name) -> ()", hints.push_name_scope)
_define("pop_name_scope() -> ()", hints.pop_name_scope)
_define_composite("internal_cast(Tensor tensor, str dtype) -> Tensor", _cast)
_define_composite("recomputation_checkpoint(Tensor tensor) -> Tensor", hints.recomputationCheckpoint)
_define_composite("nop(Tensor tensor) -> Tensor", hints.nop)
