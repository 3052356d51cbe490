"""Rules of host transfers that overlap with computation, checked when a model is compiled."""

from .. import enums
from .._errors import Error
from .._structures import tensors_in


class Overlap:
    """What one pass marks by `set_overlap_for_input` and `set_overlap_for_output`."""

    def __init__(self):
        self._inputs = []
        self._uses = {}
        self._marked = set()
        self._outputs = []  # (the tensor, its alias)

    def begin(self, inputs):
        """The pass takes these tensors."""
        self._inputs = inputs
        self._uses = {id(tensor): 0 for tensor in inputs}

    def used(self, arguments):
        """A function of torch takes these arguments."""
        for tensor in tensors_in(list(arguments)):
            if id(tensor) in self._uses:
                self._uses[id(tensor)] += 1

    def input(self, tensor, mode):
        """Marks an input. Error: no input."""
        if mode == enums.OverlapMode.NoOverlap:
            return tensor
        if id(tensor) not in self._uses:
            raise Error("poptorch.set_overlap_for_input applied on a node which is not a tensor input to the model.")
        self._uses[id(tensor)] -= 1  # the alias is no use of its own
        self._marked.add(id(tensor))
        return tensor.view(tensor.shape)

    def output(self, tensor, mode):
        """Marks an output."""
        if mode == enums.OverlapMode.NoOverlap:
            return tensor
        alias = tensor.view(tensor.shape)
        self._outputs.append((tensor, alias))
        return alias

    def check(self, result, options):
        """Raises Error where a rule is broken: an input used beside its mark, an output that is none, no tiles for it."""
        for index, tensor in enumerate(self._inputs):
            if id(tensor) in self._marked and self._uses[id(tensor)]:
                raise Error("poptorch.set_overlap_for_input must be the only op applied to an input. This is not the case for "
                            f"input {index} to the model.")
        self._check_outputs([id(tensor) for tensor in tensors_in(result)])
        if not self._marked and not self._outputs:
            return
        if options._execution_strategy.MODE == 0:
            raise Error("Overlapped IO is not supported with poptorch.PipelinedExecution. If you are using only one IPU, please "
                        "switch to poptorch.ShardedExecution.")
        if not options.TensorLocations.exists("numIOTiles"):
            raise Error("No IO tiles allocated. You must allocate at least 32 IO tiles using "
                        "poptorch.Options().TensorLocations.numIOTiles.")

    def _check_outputs(self, returned):
        for tensor, alias in self._outputs:
            if id(alias) not in returned:
                raise Error("poptorch.set_overlap_for_output applied on a node which is not a tensor output to the model.")
            if returned.count(id(alias)) + returned.count(id(tensor)) > 1:
                raise Error("poptorch.set_overlap_for_output cannot be used with a tensor that is returned twice. Please check "
                            "all returned tensors including those nested in tuples/lists.")
