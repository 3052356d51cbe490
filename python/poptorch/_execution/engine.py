"""Engines: what computes the forward and the backward pass of one micro-batch.

An engine has `trace` (a pass at compile time that leaves no mark), `begin` (of a call), `forward` and `backward`. `Eager` lets
PyTorch run the module itself; `Captured` (`captured.py`) has Superstep compute what it can capture. SUPERSTEP_POPTORCH_ENGINE
chooses: `eager`; `superstep`, which refuses what cannot be captured; `auto`, which leaves that to PyTorch.
"""

import contextlib
import os

import torch

from .._errors import Error
from .._logging import logger
from .forward import run_pass
from .state import Modes, ModuleState, Randomness, Swapped, count_training, trainings

_NAMES = ("auto", "eager", "superstep")


def make_engine(model, options, training, groupings):
    """The engine that the environment asks for. Error: one that there is not."""
    name = os.environ.get("SUPERSTEP_POPTORCH_ENGINE") or "auto"
    if name not in _NAMES:
        raise Error(f"SUPERSTEP_POPTORCH_ENGINE is {name!r}: the engines are {', '.join(_NAMES)}")
    if name == "eager":
        return Eager(model, options, training, groupings)
    from . import captured
    missing = captured.missing()
    if not missing:
        return captured.Captured(model, options, training, groupings, name == "superstep")
    if name == "superstep":
        raise Error(f"SUPERSTEP_POPTORCH_ENGINE=superstep needs packages that are not installed: {', '.join(missing)}")
    logger.info("forward of %s by PyTorch: not installed: %s", type(model).__name__, ", ".join(missing))
    return Eager(model, options, training, groupings)


class Eager:
    """PyTorch runs the module, micro-batch by micro-batch; gradients are autograd's.

    Parameters are the module's own tensors. Buffers that forward changes are the module's in training; in inference they
    live here until `buffers_to_host`, as they do on a device.
    """

    words = "PyTorch"  # who computes, for reports

    def __init__(self, model, options, training, groupings):
        self._model = model
        self.training = training
        self._replicas = options.replication_factor
        self._broadcast = options.broadcast_buffers
        self.state = ModuleState(model)
        self.randomness = Randomness(options.random_seed if options.exists("random_seed") else torch.initial_seed())
        self.modes = []
        self._groupings = groupings  # of parameters with values of their own in groups of replicas, by name
        self._buffers, self._places = [], []
        self._group_places = []
        self.changed = []
        self._seen = None

    # Compile time.

    def trace(self, arguments, forward):
        """One forward pass on copies of inputs and buffers, with random numbers put back. Returns its result.

        Notes the training flags (they stay as they are now) and which buffers forward changes. Error: a parameter or buffer
        assigned anew; buffers that replicas would change differently.
        """
        self.modes = self.state.modes()
        buffers = self.state.buffers()
        copies = {name: buffer.clone() for name, buffer in buffers.items()}
        versions = {name: copy._version for name, copy in copies.items()}
        arguments = arguments.mapped(torch.clone)
        forward.overlap.begin(arguments.tensors())
        self._place_groups()
        with Swapped(self.state.places(buffers), copies), self._grouped(0), self.randomness.copy():
            before = self.state.identities()
            result = self._call(arguments, forward, tracing=True)
            self.state.check_unchanged(before)
        # Norms change running statistics without a new version: values tell.
        self.changed = [name for name, buffer in buffers.items()
                         if copies[name]._version != versions[name] or not torch.equal(copies[name], buffer)]
        self._check_replicas()
        self.buffers_to_device()
        return result

    def _place_groups(self):
        parameters = self.state.parameters()
        for name, grouping in self._groupings.items():
            grouping.check(parameters[name], self._replicas)
        self._group_places = self.state.places(self._groupings) if self._groupings else []

    def _grouped(self, replica):
        """The rows of this replica's group in the place of grouped parameters; gradients reach the whole parameters."""
        if not self._groupings:
            return contextlib.nullcontext()
        parameters = self.state.parameters()
        rows = {name: parameters[name][grouping.group(replica, self._replicas)] for name, grouping in self._groupings.items()}
        return Swapped(self._group_places, rows)

    def _check_replicas(self):
        if self.changed and self._replicas > 1 and self._broadcast:
            raise Error(f"PopTorch does not support broadcasting buffers. If your model is able to tolerate buffers becoming "
                        "out of sync between replicas, you can disable buffer broadcasting using "
                        f"poptorch.Options.broadcastBuffers(False). Buffers that forward changes: {', '.join(self.changed)}")

    # Each micro-batch.

    def forward(self, arguments, forward, replica):
        """The result of one micro-batch on one replica."""
        with Swapped(self._places[replica], self._buffers[replica]), self._grouped(replica):
            return self._call(arguments, forward, tracing=False)

    def backward(self, forward, parameters, scale, watched=()):
        """(gradients by name, gradients of `watched`) of the final loss of the pass, times `scale`.

        A parameter that the loss does not depend on has none.
        """
        loss, edge = forward.marks.final()
        names = [name for name, parameter in parameters.items() if parameter.requires_grad]
        if edge is None or not names:
            return loss, {}, [None] * len(watched)
        start = torch.full_like(loss, scale)
        found = torch.autograd.grad([edge], [parameters[name] for name in names] + list(watched), [start], allow_unused=True)
        gradients = {name: gradient for name, gradient in zip(names, found) if gradient is not None}
        return loss, gradients, found[len(names):]

    def _call(self, arguments, forward, tracing):
        positional = arguments.positional
        with Modes(self.modes), torch.set_grad_enabled(self.training):
            return run_pass(forward, tracing, lambda: self._model(*positional, **arguments.named))

    # Buffers.

    def buffers_to_device(self):
        """Copies the host's buffers to where forward reads them: one set, and for each further replica what it changes."""
        buffers = self.state.buffers()
        first = {} if self.training else {name: buffer.clone() for name, buffer in buffers.items()}
        own = [{name: buffers[name].clone() for name in self.changed} for _ in range(1, self._replicas)]
        self._buffers = [first] + [{**first, **changed} for changed in own]
        self._places = [self.state.places(named) for named in self._buffers]
        self._seen = self._versions()

    def buffers_to_host(self):
        """Copies what forward changed (on the first replica) back to the host's buffers."""
        if self.training:
            return
        buffers = self.state.buffers()
        with torch.no_grad():
            for name in self.changed:
                buffers[name].copy_(self._buffers[0][name])

    def named_buffers_to_device(self, names):
        """Copies these buffers of the host. Error: a name that the model does not have."""
        buffers = self.state.buffers()
        for name in names:
            if name not in buffers:
                raise Error(f"There is no buffer {name}: the model has {', '.join(buffers) or 'none'}")
            for named in self._buffers:
                if name in named:
                    named[name].copy_(buffers[name])

    def _versions(self):
        parameters = self.state.parameters().values()
        return sum(parameter._version for parameter in parameters), trainings(self.state.buffers().values())

    def begin(self):
        """A call begins: buffers follow when training changed them, or together with parameters that the host changed."""
        if not self.training and self._buffers[0] and self._seen != self._versions():
            logger.debug("Buffers are copied to the device: training or the host changed the model")
            self.buffers_to_device()

    def trained(self):
        """After a training call: other executors of the module take its buffers anew."""
        buffers = self.state.buffers()
        count_training([buffers[name] for name in self.changed])
