"""Cycles and latencies of runs, by the machine's model."""

import torch

from ._errors import Error

_NO_MODEL = ("The machine's model is not attached to this executor: {0} cannot be told. The page docs/poptorch.md says which "
             "numbers are modelled")


class Timing:
    """What is known of the time of the last run."""

    def __init__(self, options):
        self._options = options
        self._ran = False

    def compiled(self, arguments, batching):
        """The model was compiled anew: nothing has run."""
        self._ran = False

    def ran(self, arguments, result, batching, options):
        """A run is over."""
        self._ran = True

    def synthetic(self, arguments):
        """The arguments of a run: made up where `enableSyntheticData` says so, else as they are."""
        if not self._options._Popart.options.get("syntheticDataMode", 0):
            return arguments
        return arguments.mapped(_made_up)

    def cycles(self):
        """Cycles of the last run. Error: nothing ran, or the machine's model is missing."""
        if not self._ran:
            raise Error("Please run the model at least once before obtaining cycle count.")
        raise Error(_NO_MODEL.format("cycleCount"))

    def counters(self):
        """Times of the last run by input and output; empty lists before one. Error: the machine's model is missing."""
        if not self._ran:
            return {name: [[]] for name in ("input", "input_complete", "output", "output_complete")}
        raise Error(_NO_MODEL.format("getPerfCounters"))

    def latency(self, start, end, first=min):
        """(minimum, maximum, average) between two kinds of times; zeros before a run. Error: no model."""
        if not self._ran:
            return 0.0, 0.0, 0.0
        raise Error(_NO_MODEL.format("a latency"))


def _made_up(tensor):
    if tensor.is_floating_point():
        return torch.randn(tensor.shape).to(tensor.dtype)
    return torch.zeros_like(tensor)
