"""What instances do together: average gradients, wait for one another, run a function in some of them.

torch is imported where it is needed: `import popdist` alone is quick, and a parent that only starts instances needs none.
"""

import atexit
import zlib

from ._environment import getInstanceIndex, getNumInstances


def init():
    """Connects the instances; called by itself where it is needed. Without effect in a single process."""
    if getNumInstances() == 1:
        return
    import torch.distributed
    if not torch.distributed.is_initialized():
        # Address, port, rank and size are in the environment that poprun set.
        torch.distributed.init_process_group("gloo", rank=getInstanceIndex(), world_size=getNumInstances())
        atexit.register(_leave)


def _leave():
    """Ends the connection before the interpreter does: its threads, if they still run then, abort the process."""
    import torch.distributed
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def barrier():
    """Waits until all instances are here."""
    if getNumInstances() > 1:
        import torch.distributed
        init()
        torch.distributed.barrier()


def average(gradients, mean=True):
    """Gradients reduced over all instances; in a single process those that were given.

    Args:
        gradients: {name: tensor}, the same names and shapes in all instances, already reduced over the instance's own
            micro-batches and replicas.
        mean: True: the mean of the instances'; False: their sum.

    Returns a new dict in the same order. RuntimeError where the instances do not have the same names and shapes.
    """
    count = getNumInstances()
    if count == 1:
        return gradients
    import torch.distributed
    init()
    _check_alike(gradients)
    reduced = {}
    for dtype in dict.fromkeys(value.dtype for value in gradients.values()):
        names = sorted(name for name, value in gradients.items() if value.dtype == dtype)
        # Half precision is summed in float32: the sum of instances may exceed its range before the mean does not.
        flat = torch.cat([gradients[name].detach().float().reshape(-1) for name in names])
        torch.distributed.all_reduce(flat)
        if mean:
            flat /= count
        parts = flat.to(dtype).split([gradients[name].numel() for name in names])
        reduced |= {name: part.view(gradients[name].shape) for name, part in zip(names, parts)}
    return {name: reduced[name] for name in gradients}


def _check_alike(gradients):
    """A sum over tensors of different sizes would hang or be wrong: the instances compare what they have first."""
    import torch.distributed
    mine = sorted((name, tuple(value.shape), str(value.dtype)) for name, value in gradients.items())
    sums = [torch.zeros(1, dtype=torch.int64) for _ in range(getNumInstances())]
    torch.distributed.all_gather(sums, torch.tensor([zlib.crc32(repr(mine).encode())]))
    if len({value.item() for value in sums}) == 1:
        return
    others = [None] * getNumInstances()
    torch.distributed.all_gather_object(others, mine)
    for instance, theirs in enumerate(others):
        if theirs != mine:
            different = sorted({name for name, *_ in set(mine) ^ set(theirs)})
            raise RuntimeError(f"Instances {getInstanceIndex()} and {instance} train different parameters, such as "
                               f"{different[0]}: all must build the same model.")


def execute_on_instances(instances, function, *args, **kwargs):
    """Runs a function in the instances of a set of numbers; the others wait until it is done there.

    Returns its result, None in the others. An exception in one of them is a RuntimeError in those that wait.
    """
    instances = set(instances)
    strange = [number for number in instances if not 0 <= number < getNumInstances()]
    if strange:
        raise ValueError(f"There is no instance {strange[0]}: instances are numbered 0 to {getNumInstances() - 1}.")
    result, failed = None, None
    if getInstanceIndex() in instances:
        try:
            result = function(*args, **kwargs)
        except BaseException as error:  # noqa: BLE001 - told to the others, then raised
            failed = error
    _tell_failures(failed)
    return result


def _tell_failures(failed):
    if getNumInstances() > 1:
        import torch.distributed
        init()
        said = [None] * getNumInstances()
        torch.distributed.all_gather_object(said, None if failed is None else f"{type(failed).__name__}: {failed}")
        first = next((number for number, text in enumerate(said) if text is not None), None)
        if failed is None and first is not None:
            raise RuntimeError(f"The function failed in instance {first}: {said[first]}")
    if failed is not None:
        raise failed
