"""The batch algebra: which rows of the inputs each micro-batch sees, and how outputs of micro-batches are joined.

With D device iterations, accumulation A, R replicas and groups of G replicas with the same input, the first extent of every
input is a multiple of n = D A (R / G). Micro-batch k takes rows [k b, (k + 1) b), b = extent / n, k = (d A + a)(R / G) + g.
"""

import torch

from .. import enums
from .._errors import Error
from .._structures import tensors_in, with_tensors


class Batching:
    """The factors of one model, and where each micro-batch's rows are."""

    def __init__(self, options):
        self.iterations = options.device_iterations
        self.accumulation = options.Training.gradient_accumulation
        self.replicas = options.replication_factor
        self.group_size = options.input_group_size
        self._orthogonal = options.input_cgt == enums.CommGroupType.Orthogonal
        for name in ("iterations", "accumulation", "replicas"):
            if getattr(self, name) < 1:
                raise Error(f"Device iterations, gradient accumulation and the replication factor are at least 1: "
                            f"{name} is {getattr(self, name)}")

    @property
    def groups(self):
        """Groups of replicas with inputs of their own."""
        return self.replicas // self.group_size

    @property
    def parts(self):
        """Micro-batches that the inputs are divided into."""
        return self.iterations * self.accumulation * self.groups

    def part(self, iteration, step, replica):
        """Number of the part of the inputs that this replica reads."""
        group = replica % self.groups if self._orthogonal else replica // self.group_size
        return (iteration * self.accumulation + step) * self.groups + group

    def check_outputs(self, mode, period):
        """Error where EveryN would keep nothing."""
        steps = self.iterations * self.accumulation
        if mode == enums.OutputMode.EveryN and period > steps:
            raise Error(f"OutputMode.EveryN with a period of {period} keeps nothing of {steps} micro-batches "
                        f"({self.iterations} device iterations x gradient accumulation {self.accumulation})")

    def check(self, arguments):
        """AssertionError where a tensor does not divide; Error for one without elements."""
        for index, tensor in enumerate(arguments.tensors()):
            if tensor.numel() == 0:
                raise Error(f"Zero-sized tensors are unsupported (Got shape {list(tensor.shape)})")
            extent = tensor.shape[0] if tensor.dim() else 1
            assert extent % self.parts == 0, (
                f"Input {index} of shape {list(tensor.shape)} has {extent} rows, which is not a multiple of {self.parts} = {self.iterations} device "
                f"iterations x {self.groups} replica groups (replication factor {self.replicas} / input group size "
                f"{self.group_size}) x gradient accumulation {self.accumulation}")

    def micro_batch(self, arguments, iteration, step, replica):
        """The arguments of one micro-batch: views of rows; a scalar is given whole."""
        parts, part = self.parts, self.part(iteration, step, replica)
        if parts == 1:
            return arguments
        return arguments.mapped(lambda tensor: _rows(tensor, parts, part))


def _rows(tensor, parts, part):
    if tensor.dim() == 0:
        return tensor
    rows = tensor.shape[0] // parts
    return tensor.narrow(0, part * rows, rows)


class Collector:
    """Keeps what the output mode wants of the micro-batches' results, which come in order of execution.

    Results of one tensor are joined along dimension 0: all (All), every Nth of each replica (EveryN), the last of each
    replica (Final), the sum over the micro-batches of each replica (Sum).
    """

    def __init__(self, mode, period, batching):
        self._mode, self._period, self._batching = mode, period, batching
        self._kept = []
        self._sums = {}
        self._structure = None
        self.seen = 0

    @property
    def multiplier(self):
        """How many micro-batches' extents the result has."""
        steps = self._batching.iterations * self._batching.accumulation
        if self._mode == enums.OutputMode.All:
            return steps * self._batching.replicas
        if self._mode == enums.OutputMode.EveryN:
            return steps // self._period * self._batching.replicas
        return self._batching.replicas

    def add(self, result, iteration, step, replica):
        """Takes the result of one micro-batch (any structure)."""
        self._structure = result
        number = iteration * self._batching.accumulation + step
        last = self._batching.iterations * self._batching.accumulation - 1
        if self._mode == enums.OutputMode.Sum:
            self._add_to_sum(result, replica)
        elif self._mode == enums.OutputMode.All or (self._mode == enums.OutputMode.Final and number == last) or (
                self._mode == enums.OutputMode.EveryN and (number + 1) % self._period == 0):
            self._kept.append([_own(tensor) for tensor in tensors_in(result)])

    def _add_to_sum(self, result, replica):
        tensors = [tensor.detach() for tensor in tensors_in(result)]
        if replica not in self._sums:
            self._sums[replica] = [tensor.clone() for tensor in tensors]
            return
        self._sums[replica] = [total + tensor for total, tensor in zip(self._sums[replica], tensors)]

    def result(self):
        """The joined structure: own memory, no gradients, integers of 32 bits, floats of at most 32 bits."""
        kept = [self._sums[replica] for replica in sorted(self._sums)] if self._sums else self._kept
        if not kept:
            return self._structure
        joined = [_joined([tensors[index] for tensors in kept]) for index in range(len(kept[0]))]
        return with_tensors(self._structure, iter(joined))


def _own(tensor):
    return tensor.detach().clone()


def _joined(tensors):
    if len(tensors) == 1:
        joined = tensors[0]
    else:
        joined = torch.cat([tensor.unsqueeze(0) if tensor.dim() == 0 else tensor for tensor in tensors])
    if joined.dtype == torch.int64:
        return joined.int()
    return joined.float() if joined.dtype == torch.float64 else joined


class _Refused:
    """Stands for `backward` of a result."""

    def __call__(self, *args, **kwargs):
        raise Error("backward() cannot be called explicitly on outputs of a PopTorch model. If you're using a trainingModel, "
                    "the backwards pass is performed automatically when invoking the model. If you're using an "
                    "inferenceModel, you should use a trainingModel instead.")


_REFUSED = _Refused()


def refuse_backward(result):
    """Makes `backward()` on each tensor of a result an Error."""
    for tensor in tensors_in(result):
        tensor.backward = _REFUSED
    return result
