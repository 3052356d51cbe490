"""A stand-in for `horovod.torch`, between instances of poprun: the calls that scripts make around their training.

    import popdist                      # then, where horovod is not installed,
    import horovod.torch as hvd         # is this module

Tensors are those of the host. What is not here (`DistributedOptimizer`, since executors average their own gradients) is an
AttributeError that says so.
"""

import torch
import torch.distributed

from . import _environment, _together


class _Operation:
    """How values of instances are joined."""

    def __init__(self, name, reduction):
        self.name, self.reduction = name, reduction

    def __repr__(self):
        return self.name


Average = _Operation("Average", torch.distributed.ReduceOp.SUM)
Sum = _Operation("Sum", torch.distributed.ReduceOp.SUM)
Min = _Operation("Min", torch.distributed.ReduceOp.MIN)
Max = _Operation("Max", torch.distributed.ReduceOp.MAX)


def init():
    """Connects the instances."""
    _together.init()


def shutdown():
    """Ends the connection."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def is_initialized():
    """Whether the instances are connected, or there is but one."""
    return size() == 1 or torch.distributed.is_initialized()


def size():
    """How many instances there are."""
    return _environment.getNumInstances()


def rank():
    """This instance's number."""
    return _environment.getInstanceIndex()


def local_size():
    """How many instances run on this computer."""
    return size()


def local_rank():
    """This instance's number among those of this computer."""
    return rank()


def allreduce(tensor, average=None, name=None, op=None):
    """The mean (`op=Average`, the default), sum, minimum or maximum of the instances' tensors, as a new tensor."""
    if average is not None and op is not None:
        raise ValueError("allreduce takes average or op, not both.")
    operation = op if op is not None else Average if average in (None, True) else Sum
    result = tensor.detach().clone()
    if size() > 1:
        _together.init()
        torch.distributed.all_reduce(result, op=operation.reduction)
    if operation is Average and size() > 1:
        result = result / size() if result.is_floating_point() else result // size()
    return result


def grouped_allreduce(tensors, average=None, name=None, op=None):
    """`allreduce` of each tensor of a list; of numbers too, as tensors."""
    return [allreduce(torch.as_tensor(tensor), average, name, op) for tensor in tensors]


def allgather(tensor, name=None):
    """The instances' tensors joined along dimension 0, which may differ; a scalar counts as one row."""
    tensor = tensor.detach().reshape(1) if tensor.dim() == 0 else tensor.detach()
    if size() == 1:
        return tensor.clone()
    _together.init()
    parts = [None] * size()
    torch.distributed.all_gather_object(parts, tensor)
    return torch.cat(parts)


def broadcast(tensor, root_rank, name=None):
    """The tensor of one instance, as a new tensor."""
    result = tensor.detach().clone()
    if size() > 1:
        _together.init()
        torch.distributed.broadcast(result, src=root_rank)
    return result


def broadcast_(tensor, root_rank, name=None):
    """The tensor of one instance, in place."""
    with torch.no_grad():
        tensor.copy_(broadcast(tensor, root_rank))
    return tensor


def broadcast_parameters(params, root_rank):
    """Sets all tensors of a state dict, or of a list of (name, tensor), to those of one instance."""
    pairs = params.items() if hasattr(params, "items") else params
    for _, tensor in sorted(pairs, key=lambda pair: pair[0]):
        if isinstance(tensor, torch.Tensor):
            broadcast_(tensor, root_rank)


def broadcast_object(obj, root_rank=0, name=None):
    """One instance's object."""
    if size() == 1:
        return obj
    _together.init()
    held = [obj]
    torch.distributed.broadcast_object_list(held, src=root_rank)
    return held[0]


def barrier():
    """Waits until all instances are here."""
    _together.barrier()


def __getattr__(name):
    raise AttributeError(f"horovod.torch.{name} is not in the stand-in of popdist, which has init, size, rank, allreduce, "
                         "grouped_allreduce, allgather, broadcast, broadcast_parameters: install horovod for it.")
