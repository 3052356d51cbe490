"""The engine `superstep`: a captured forward pass, computed with its gradients by Superstep instead of by PyTorch.

The pass at compile time is exported to ONNX and imported, and compared with PyTorch's: outputs, loss and every gradient, of the
first micro-batch and of altered inputs and weights, which tell what became a constant by mistake. What cannot be captured, or
gives other numbers, is left to PyTorch, and one line says why. The optimizer's step stays what it is; parameters are the
module's own, copied to the engine where they have changed.
"""

import contextlib
import importlib.util
import pathlib
import tempfile
import types
import warnings

import torch

from .._errors import Error
from .._logging import logger
from .._structures import with_tensors
from .agreement import Expected, NotCaptured, WithoutDropout, altered, altered_state, one_pass, total
from .engine import Eager
from .state import Modes, Swapped
from .statistics import NotFollowed, Statistics

_NEEDS = ("superstep", "onnx")
_EXPORTERS = {"traced": False, "dynamo": True}  # the faster one first; the second needs onnxscript
_TRIALS = 5
_PREFIX = "held."  # of parameters' names in a file: the module is held by another one


def missing():
    """The packages that capturing needs and that are not installed."""
    return [name for name in _NEEDS if importlib.util.find_spec(name) is None]


def _exporters():
    every = list(_EXPORTERS)
    return every if importlib.util.find_spec("onnxscript") is not None else every[:1]


class _Seen:
    """A tensor's values at one moment. It keeps their memory, so that no other tensor comes to lie there."""

    def __init__(self, tensor):
        self._memory, self._version = tensor.detach(), tensor._version

    def holds(self, tensor):
        """Whether the tensor lies there still and nothing has written to it (through PyTorch) since."""
        return tensor.data_ptr() == self._memory.data_ptr() and tensor._version == self._version


class Captured(Eager):
    """As `Eager`, but micro-batches of a captured pass are computed by Superstep.

    `required`: a pass that cannot be captured is an Error.
    """

    def __init__(self, model, options, training, groupings, required):
        super().__init__(model, options, training, groupings)
        self._required = required
        self._graph = None
        self._result = None  # the structure that forward gives
        self._found = None  # (loss, gradients) of the last captured micro-batch
        self._tables = {}  # of each parameter and buffer: the dictionary that holds it, and under what
        self.statistics = None  # of normalizations, in training
        self._constants = {}  # in training: the other buffers as they were captured

    def trace(self, arguments, forward):
        self._result = super().trace(arguments, forward)
        name = type(self._model).__name__
        try:
            self._refuse_what_is_not_captured()
            self._find_tables()
            with self.randomness.copy():
                self.statistics, self._graph = _capture(self, arguments)
            followed = self.statistics.names + self.changed
            self._constants = {name: _Seen(buffer) for name, buffer in self.state.buffers().items() if name not in followed}
            self.words = "Superstep's engine"
            logger.info("forward of %s by Superstep's engine", name)
        except NotCaptured as reason:
            if self._required:
                raise Error(f"forward of {name} cannot be computed by Superstep's engine: {reason}. With "
                            "SUPERSTEP_POPTORCH_ENGINE=auto PyTorch computes it") from None
            self.words = f"PyTorch ({reason})"
            logger.info("forward of %s by PyTorch: %s", name, reason)
        return self._result

    def _refuse_what_is_not_captured(self):
        if self.state.module is None:
            raise NotCaptured("it is a function, not a module")
        if self._groupings:
            raise NotCaptured("parameters have values of their own in groups of replicas")
        if self.changed and (self._replicas > 1 or not self.training):
            raise NotCaptured(f"forward changes buffers: {', '.join(self.changed[:3])}")
        if self.training and not any(p.requires_grad for p in self.state.parameters().values()):
            raise NotCaptured("it has no parameter to train")

    def forward(self, arguments, forward, replica):
        self._found = None
        if self.training and self._graph is not None and not self._constants_hold():
            logger.info("forward of %s by PyTorch from now on: the host changed a buffer", type(self._model).__name__)
            self._graph, self.words = None, "Superstep's engine, then PyTorch (the host changed a buffer)"
        if self._graph is not None and (forward.recorder is not None or forward.finite):
            self.words = "PyTorch (values within the pass are looked at: anchors, floating-point exceptions)"
            return super().forward(arguments, forward, replica)
        if self._graph is None:
            return super().forward(arguments, forward, replica)
        outputs, loss, gradients = self._graph.run(arguments.tensors(), self.tensors(replica))
        if self.training:
            self._found = loss, gradients
            self.statistics.take(self._graph.state)
        return with_tensors(self._result, iter(outputs))

    def _constants_hold(self):
        tensors = self.tensors(0)
        return all(seen.holds(tensors[name]) for name, seen in self._constants.items())

    def _find_tables(self):
        """Where each parameter and buffer lies: going through all modules takes as long as a small network's pass."""
        named = [*self.state.parameters(), *self.state.buffers()]
        self._tables = {}
        for table, key, name in self.state.places(named):
            self._tables.setdefault(name, (table, key))

    def tensors(self, replica):
        """Parameters and buffers as forward on this replica reads them, by name."""
        return {name: table[key] for name, (table, key) in self._tables.items()} | self._buffers[replica]

    def backward(self, forward, parameters, scale, watched=()):
        if self._found is None:
            return super().backward(forward, parameters, scale, watched)
        loss, gradients = self._found
        self._found = None
        scaled = gradients if scale == 1 else {name: gradient * scale for name, gradient in gradients.items()}
        return loss, scaled, [None] * len(watched)


# --- the file


class _Holder(torch.nn.Module):
    """A module with another one as its only part; it gets its forward later."""

    def __init__(self, held):
        super().__init__()
        self.held = held


def _flat(engine, arguments):
    """The module with a forward of plain tensors, which gives the loss (in training) and all tensors of the result."""
    def forward(self, *tensors):
        found, outputs = one_pass(engine.state.module, engine.training, arguments, tensors)
        return (total(found.marks.final()[0]), *outputs) if engine.training else tuple(outputs)

    holder = _Holder(engine.state.module)
    holder.forward = types.MethodType(forward, holder)
    return holder


def _export(engine, arguments, results, file, exporter):
    tensors = arguments.tensors()
    count = results + engine.training
    options = {"input_names": [f"input{i}" for i in range(len(tensors))],
               "output_names": [f"output{i}" for i in range(count)], "verbose": False}
    if _EXPORTERS[exporter]:
        options |= {"external_data": False, "optimize": False}
    else:
        options |= {"training": torch.onnx.TrainingMode.PRESERVE, "do_constant_folding": False}
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        with warnings.catch_warnings(), torch.set_grad_enabled(engine.training):
            warnings.simplefilter("ignore")
            torch.onnx.export(_flat(engine, arguments), tuple(tensors), str(file), dynamo=_EXPORTERS[exporter], **options)
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


def _capture(engine, arguments):
    """Statistics to keep, and a graph that gives PyTorch's numbers. Raises NotCaptured with the reason of each exporter."""
    buffers = engine.state.buffers()
    copies = {name: buffer.clone() for name, buffer in buffers.items()}
    arguments = arguments.mapped(torch.clone)
    reasons = []
    changed = engine.changed if engine.training else []
    with Modes(engine.modes), Swapped(engine.state.places(buffers), copies), tempfile.TemporaryDirectory() as folder:
        try:
            statistics = Statistics(engine.state.module, changed, lambda: one_pass(engine.state.module, True, arguments, arguments.tensors()))
        except NotFollowed as buffer:
            raise NotCaptured(f"forward changes buffers: {buffer}") from None
        expected = Expected(engine.state.module, engine.training, arguments)
        for exporter in _exporters():
            try:
                return statistics, _checked(engine, arguments, pathlib.Path(folder), exporter, expected)
            except NotCaptured as reason:
                reasons.append(f"{exporter}: {reason}")
    raise NotCaptured("; ".join(reasons))


def _checked(engine, arguments, folder, exporter, expected):
    """The graph of one exporter: held against PyTorch without dropouts, then, where there are any, exported with them."""
    with WithoutDropout() if engine.training else contextlib.nullcontext():
        graph = _graph(engine, arguments, folder / f"{exporter}.onnx", exporter, expected)
    _try_out(engine, arguments, graph, expected)
    if expected.dropouts == 0:
        return graph
    return _graph(engine, arguments, folder / f"{exporter}.masks.onnx", exporter, expected)


def _try_out(engine, arguments, graph, expected):
    """Raises NotCaptured where the graph gives other numbers than PyTorch, for the first micro-batch or for altered inputs and weights.

    A rectifier whose input is nearly zero may turn a rounding into a few percent of a gradient: each gradient must agree in one trial,
    of two or more, and be near in all.
    """
    open_ = expected.compare(*graph.run(arguments.tensors(), engine.tensors(0)))
    for trial in range(1, _TRIALS):
        found = _compare_altered(engine, arguments, graph, trial)
        open_ = {what: reason for what, reason in found.items() if what in open_}
        if not open_:
            return
    raise NotCaptured(next(iter(open_.values())))


def _compare_altered(engine, arguments, graph, trial):
    """As `compare`, for other inputs and weights, which forward takes too."""
    state = altered_state(engine, trial)
    others = arguments.mapped(lambda tensor: altered(tensor, trial))
    with Swapped(engine.state.places(state), state):
        try:
            expected = Expected(engine.state.module, engine.training, others)
        except Exception as error:
            raise NotCaptured(f"forward cannot be tried with other values: {_first_words(error)}") from None
        try:
            return expected.compare(*graph.run(others.tensors(), {**engine.tensors(0), **state}))
        except NotCaptured as reason:
            raise NotCaptured(f"with other inputs and weights {reason}") from None


def _graph(engine, arguments, file, exporter, expected):
    import superstep
    from superstep.torch import refuse_draws
    try:
        _export(engine, arguments, len(expected.outputs), file, exporter)
    except Exception as error:  # exporters raise whatever the module raised
        raise NotCaptured(_first_words(error)) from None
    try:
        refuse_draws(file)
        return _Graph(engine, file, expected.gradients)
    except superstep.Error as error:
        raise NotCaptured(_first_words(error)) from None


def _first_words(error):
    plain = str(error).rpartition("## Exception summary")[2]  # what stands before it is advice to developers
    return " ".join(plain.split())[:300] or type(error).__name__


class _Graph:
    """A compiled file: outputs, in training loss and gradients, of one micro-batch."""

    def __init__(self, engine, file, gradients):
        import onnx
        content = onnx.load(str(file), load_external_data=False).graph
        outputs = [output.name for output in content.output]
        trains = engine.training
        known = {initializer.name for initializer in content.initializer}
        self._session = _trained(engine, file, outputs, gradients, known) if trains else _served(file)
        places = {port.name: place for place, port in enumerate(self._session.outputs)}
        self._loss = places["loss"] if trains else None
        self._results = [places[name] for name in (outputs[1:] if trains else outputs)]
        self._gradients = {name: places[f"gradient/{_PREFIX}{name}"] for name in gradients}
        self._inputs = [int(port.name.removeprefix("input")) for port in self._session.inputs]
        states = set(self._session.parameters())
        self._names = [name for name in engine.tensors(0) if _PREFIX + name in states]
        self._seen = {}

    def state(self, name):
        """A buffer as the last pass left it."""
        return torch.from_numpy(self._session.parameter(_PREFIX + name))

    def run(self, inputs, tensors):
        """(outputs, loss, gradients by name) for the inputs, with the module's tensors as they are now."""
        for name in self._names:
            tensor = tensors[name]
            if name not in self._seen or not self._seen[name].holds(tensor):
                self._session.set_parameter(_PREFIX + name, tensor.detach().contiguous())
                self._seen[name] = _Seen(tensor)
        found = self._session(*(inputs[place] for place in self._inputs))
        found = found if isinstance(found, tuple) else (found,)
        loss = None if self._loss is None else found[self._loss]
        return [found[place] for place in self._results], loss, {name: found[place] for name, place in self._gradients.items()}


def _served(file):
    import superstep
    return superstep.Model(file).compile()


def _trained(engine, file, outputs, gradients, known):
    """Loss and gradients. Parameters without a gradient are trained too, and their gradients left alone: what is not trained would be
    a constant of the plan, and the module's may change. Buffers are constants: forward does not change them."""
    import superstep
    lost = [name for name in gradients if _PREFIX + name not in known]
    if lost:
        raise NotCaptured(f"the file has no parameter {lost[0]} of its own")
    names = [_PREFIX + name for name, value in engine.state.parameters().items()
             if value.is_floating_point() and _PREFIX + name in known]
    loss = f"value:{outputs[0]}" if len(outputs) > 1 else "value"
    model = superstep.Model(file, loss=loss, train=names)
    others = [name for name in model.parameters if name in known and name not in names]
    return (superstep.Model(file, loss=loss, train=names, freeze=others) if others else model).gradient()
