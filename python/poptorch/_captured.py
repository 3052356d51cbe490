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
from torch.overrides import TorchFunctionMode

from . import _forward
from ._engine import Eager
from ._errors import Error
from ._logging import logger
from ._state import Modes, Swapped
from ._statistics import NotFollowed, Statistics
from ._structures import tensors_in, with_tensors

_NEEDS = ("superstep", "onnx", "onnxscript")
_EXPORTERS = {"traced": False, "dynamo": True}  # the faster one first
_DROPOUTS = ("dropout", "dropout_", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "alpha_dropout_",
             "feature_dropout", "feature_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_")
_AGREES = {torch.float16: 1e-2}  # relative to the largest element (outputs) or the norm (gradients); else 1e-3
_PREFIX = "held."  # of parameters' names in a file: the module is held by another one


class _NotCaptured(Exception):
    """Why a forward pass is left to PyTorch."""


def missing():
    """The packages that capturing needs and that are not installed."""
    return [name for name in _NEEDS if importlib.util.find_spec(name) is None]


def _mark(tensor):
    """Another one where the tensor's values have changed."""
    return tensor.data_ptr(), tensor._version


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
        self.statistics = None  # of normalizations, in training
        self._constants = []  # in training: the other buffers as they were captured

    def trace(self, arguments, forward):
        self._result = super().trace(arguments, forward)
        name = type(self._model).__name__
        try:
            self._refuse_what_is_not_captured()
            with self.randomness.copy():
                self.statistics, self._graph = _capture(self, arguments)
            self._constants = self._marks_of_constants()
            logger.info("forward of %s by Superstep's engine", name)
        except _NotCaptured as reason:
            if self._required:
                raise Error(f"forward of {name} cannot be computed by Superstep's engine: {reason}. With "
                            "SUPERSTEP_POPTORCH_ENGINE=auto PyTorch computes it") from None
            logger.info("forward of %s by PyTorch: %s", name, reason)
        return self._result

    def _refuse_what_is_not_captured(self):
        if self.state.module is None:
            raise _NotCaptured("it is a function, not a module")
        if self._groupings:
            raise _NotCaptured("parameters have values of their own in groups of replicas")
        if self.changed and (self._replicas > 1 or not self.training):
            raise _NotCaptured(f"forward changes buffers: {', '.join(self.changed[:3])}")
        if self.training and not any(p.requires_grad for p in self.state.parameters().values()):
            raise _NotCaptured("it has no parameter to train")

    def forward(self, arguments, forward, replica):
        self._found = None
        if self.training and self._graph is not None and self._constants != self._marks_of_constants():
            logger.info("forward of %s by PyTorch from now on: the host changed a buffer", type(self._model).__name__)
            self._graph = None
        if self._graph is None or forward.recorder is not None or forward.finite:
            return super().forward(arguments, forward, replica)
        self._refresh()
        outputs, loss, gradients = self._graph.run(arguments.tensors(), self.tensors(replica))
        if self.training:
            self._found = loss, gradients
            self.statistics.take(self._graph.state)
        return with_tensors(self._result, iter(outputs))

    def _marks_of_constants(self):
        followed = self.statistics.names + self.changed
        return [_mark(tensor) for name, tensor in self.state.buffers().items() if name not in followed]

    def tensors(self, replica):
        """Parameters and buffers as forward on this replica reads them, by name."""
        return {**self.state.parameters(), **self.state.buffers(), **self._buffers[replica]}

    def backward(self, forward, parameters, scale, watched=()):
        if self._found is None:
            return super().backward(forward, parameters, scale, watched)
        loss, gradients = self._found
        self._found = None
        scaled = gradients if scale == 1 else {name: gradient * scale for name, gradient in gradients.items()}
        return loss, scaled, [None] * len(watched)


# --- PyTorch's numbers


class _WithoutDropout(TorchFunctionMode):
    """Dropouts give what they get, and are counted: masks differ between engines, all else can be compared."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(func, "__name__", "") in _DROPOUTS:
            share = kwargs.get("p", args[1] if len(args) > 1 else 0.5)
            if kwargs.get("training", args[2] if len(args) > 2 else True) and share > 0:
                self.count += 1
                return args[0] if args else kwargs["input"]
        return func(*args, **kwargs)


def _pass(engine, arguments, tensors):
    """One forward pass of the module on these tensors: the pass, and the tensors of its result."""
    positional, named = with_tensors((arguments.positional, arguments.named), iter(tensors))
    forward = _forward.ForwardPass(None, None, engine.training)
    result = _forward.run(forward, True, lambda: engine.state.module(*positional, **named))
    return forward, tensors_in(result)


def _total(loss):
    """What backpropagation with ones starts from."""
    return loss if loss.dim() == 0 else loss.sum()


def _altered(tensor):
    """Other values of the same kind: floating-point elements turned round and scaled, rows of others in another order."""
    if tensor.is_floating_point():
        return tensor.detach().flatten().flip(0).reshape(tensor.shape) * 0.9
    if tensor.dim() == 0:
        return tensor.clone()
    return tensor.roll(1, 0 if tensor.shape[0] > 1 else -1)


def _altered_state(engine):
    """Parameters of the module, and in inference its buffers (in training they are constants of the plan), scaled."""
    parameters = {name: torch.nn.Parameter(value.detach() * 0.9, value.requires_grad)
                  for name, value in engine.state.parameters().items() if value.is_floating_point()}
    if engine.training:
        return parameters
    return parameters | {name: value * 0.9 for name, value in engine.state.buffers().items() if value.is_floating_point()}


class _Expected:
    """What PyTorch gives for one micro-batch: outputs, in training the loss and gradients without dropouts."""

    def __init__(self, engine, arguments):
        without = _WithoutDropout()
        with without if engine.training else contextlib.nullcontext(), torch.set_grad_enabled(engine.training):
            forward, outputs = _pass(engine, arguments, arguments.tensors())
            self.outputs = [output.detach().clone() for output in outputs]
            self.loss, self.gradients = None, {}
            if engine.training:
                loss, self.gradients, _ = Eager.backward(engine, forward, engine.state.parameters(), 1.0)
                self.loss = _total(loss.detach())
        self.dropouts = without.count

    def compare(self, outputs, loss, gradients):
        """Raises _NotCaptured where these are other numbers."""
        if len(outputs) != len(self.outputs):
            raise _NotCaptured(f"the file gives {len(outputs)} results, forward {len(self.outputs)}")
        for place, (one, other) in enumerate(zip(self.outputs, outputs)):
            _agree(f"result {place}", one, other, lambda x: x.abs().max())
        if self.loss is not None:
            _agree("the loss", self.loss, loss, torch.abs)
        norms = {name: float(torch.linalg.vector_norm(gradient.double())) for name, gradient in self.gradients.items()}
        rounding = 1e-5 * max(norms.values(), default=0.0)  # of gradients that are zero but for rounding
        for name, gradient in self.gradients.items():
            _agree(f"the gradient of {name}", gradient, gradients[name], torch.linalg.vector_norm, rounding)


def _agree(what, expected, found, size, rounding=1e-9):
    if expected.shape != found.shape or expected.dtype != found.dtype:
        raise _NotCaptured(f"{what} is {found.dtype} {tuple(found.shape)}, by PyTorch {expected.dtype} {tuple(expected.shape)}")
    if expected.numel() == 0:
        return
    one, other = expected.double(), found.double()
    if not torch.equal(one.isfinite(), other.isfinite()):
        raise _NotCaptured(f"{what} is not finite where PyTorch's is, or the other way round")
    one, other = (torch.nan_to_num(value, 0, 0, 0) for value in (one, other))
    limit = _AGREES.get(expected.dtype, 1e-3) if expected.is_floating_point() else 0
    if float(size(one - other)) > limit * float(size(one)) + rounding:
        raise _NotCaptured(f"{what} differs from PyTorch's by {float(size(one - other)):.3g} of {float(size(one)):.3g}")


# --- the file


class _Holder(torch.nn.Module):
    """A module with another one as its only part; it gets its forward later."""

    def __init__(self, held):
        super().__init__()
        self.held = held


def _flat(engine, arguments):
    """The module with a forward of plain tensors, which gives the loss (in training) and all tensors of the result."""
    def forward(self, *tensors):
        found, outputs = _pass(engine, arguments, tensors)
        return (_total(found.marks.final()[0]), *outputs) if engine.training else tuple(outputs)

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
    """Statistics to keep, and a graph that gives PyTorch's numbers. Raises _NotCaptured with the reason of each exporter."""
    buffers = engine.state.buffers()
    copies = {name: buffer.clone() for name, buffer in buffers.items()}
    arguments = arguments.mapped(torch.clone)
    reasons = []
    changed = engine.changed if engine.training else []
    with Modes(engine.modes), Swapped(engine.state.places(buffers), copies), tempfile.TemporaryDirectory() as folder:
        try:
            statistics = Statistics(engine.state.module, changed, lambda: _pass(engine, arguments, arguments.tensors()))
        except NotFollowed as buffer:
            raise _NotCaptured(f"forward changes buffers: {buffer}") from None
        expected = _Expected(engine, arguments)
        for exporter in _EXPORTERS:
            try:
                return statistics, _checked(engine, arguments, pathlib.Path(folder), exporter, expected)
            except _NotCaptured as reason:
                reasons.append(f"{exporter}: {reason}")
    raise _NotCaptured("; ".join(reasons))


def _checked(engine, arguments, folder, exporter, expected):
    """The graph of one exporter: held against PyTorch without dropouts, then, where there are any, exported with them."""
    with _WithoutDropout() if engine.training else contextlib.nullcontext():
        graph = _graph(engine, arguments, folder / f"{exporter}.onnx", exporter, expected)
    expected.compare(*graph.run(arguments.tensors(), engine.tensors(0)))
    _compare_altered(engine, arguments, graph)
    if expected.dropouts == 0:
        return graph
    return _graph(engine, arguments, folder / f"{exporter}.masks.onnx", exporter, expected)


def _compare_altered(engine, arguments, graph):
    """Raises _NotCaptured where other inputs and weights, which forward takes too, give other numbers than PyTorch's."""
    state = _altered_state(engine)
    altered = arguments.mapped(_altered)
    with Swapped(engine.state.places(state), state):
        try:
            expected = _Expected(engine, altered)
        except Exception as error:
            raise _NotCaptured(f"forward cannot be tried with other values: {_first_words(error)}") from None
        try:
            expected.compare(*graph.run(altered.tensors(), {**engine.tensors(0), **state}))
        except _NotCaptured as reason:
            raise _NotCaptured(f"with other inputs and weights {reason}") from None


def _graph(engine, arguments, file, exporter, expected):
    import superstep
    from superstep.torch import refuse_draws
    try:
        _export(engine, arguments, len(expected.outputs), file, exporter)
    except Exception as error:  # exporters raise whatever the module raised
        raise _NotCaptured(_first_words(error)) from None
    try:
        refuse_draws(file)
        return _Graph(engine, file, expected.gradients)
    except superstep.Error as error:
        raise _NotCaptured(_first_words(error)) from None


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
        self._marks = {}

    def state(self, name):
        """A buffer as the last pass left it."""
        return torch.from_numpy(self._session.parameter(_PREFIX + name))

    def run(self, inputs, tensors):
        """(outputs, loss, gradients by name) for the inputs, with the module's tensors as they are now."""
        for name in self._names:
            tensor = tensors[name]
            mark = _mark(tensor)
            if self._marks.get(name) != mark:
                self._session.set_parameter(_PREFIX + name, tensor.detach().contiguous())
                self._marks[name] = mark
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
        raise _NotCaptured(f"the file has no parameter {lost[0]} of its own")
    names = [_PREFIX + name for name, value in engine.state.parameters().items()
             if value.is_floating_point() and _PREFIX + name in known]
    loss = f"value:{outputs[0]}" if len(outputs) > 1 else "value"
    model = superstep.Model(file, loss=loss, train=names)
    others = [name for name in model.parameters if name in known and name not in names]
    return (superstep.Model(file, loss=loss, train=names, freeze=others) if others else model).gradient()
