"""Models: opened, compiled, called."""

from __future__ import annotations

import asyncio
import html
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy

from . import _core, figures
from .arrays import numpy_type
from .errors import InvalidArgument, Unsupported
from .origins import MODEL_FILES, Origin, open_origin
from .words import Precision, TrainingPrecision

__all__ = ["Port", "Plan", "Model", "Session", "Trainer", "load", "version", "zoo", "targets"]

PathLike = str | os.PathLike[str]


def version() -> str:
    """The version of the library: ``"0.2.0"``."""
    return _core.version()


def zoo() -> list[str]:
    """The names of the workloads that ``load`` and ``Model`` know."""
    return _core.zoo()


def load_operators(library: PathLike) -> None:
    """Makes operators of a shared library known (docs/custom-operators.md), for as long as the process lives; before models with
    them are opened.

    Args:
        library: a file that exports ``superstep_operators()`` as ``superstep/operator.h`` says. It runs as your own code.

    Raises:
        NotFound, BadFile, InvalidArgument: there is no such file, it is no such library, or describes an operator wrongly.
    """
    _core.load_operators(path_of(library, "library"))


def targets() -> list[str]:
    """Where models run: ``"cpu"``, ``"reference"``, machines that are executed cycle by cycle, devices behind plug-ins
    (``"cuda"``, ``"cuda:1"``, ``"tpu"``, ...)."""
    return _core.targets()


@dataclass(frozen=True, slots=True)
class Port:
    """An input, an output or a parameter.

    Attributes:
        name: as in the model's file.
        element: the element type: ``"f32"``, ``"bf16"``, ``"i64"``, ``"bool"``.
        shape: extents, at the batch that was asked for; axis 0 counts samples where the port has samples.
    """

    name: str
    element: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> numpy.dtype[Any]:
        """The type of NumPy's arrays for it."""
        return numpy_type(self.element)

    def __str__(self) -> str:
        return f"{self.name}: {self.element}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Plan:
    """What was compiled.

    Attributes:
        batch: samples of a call.
        micro_batch: samples that go through the model at a time.
        threads: threads that work on a call.
        flops: operations of a call.
        plan_bytes: memory of the plan in bytes; 0: not known.
        compile_seconds: time that compiling took, in s.
    """

    batch: int
    micro_batch: int
    threads: int
    flops: float
    plan_bytes: int
    compile_seconds: float


def _ports_html(title: str, inputs: Sequence[Port], outputs: Sequence[Port]) -> str:
    rows = [{"": kind, "name": port.name, "type": port.element, "shape": "x".join(map(str, port.shape))}
            for kind, ports in (("input", inputs), ("output", outputs)) for port in ports]
    return f"<b>{html.escape(title)}</b>" + figures.table(rows)


def _ports(listed: Sequence[tuple[str, str, tuple[int, ...]]]) -> list[Port]:
    return [Port(*port) for port in listed]


class Session:
    """A model compiled for one batch, precision and number of threads: call it with arrays.

    Arrays are NumPy's or of anything with DLPack (PyTorch, JAX, CuPy's on the host). Row-major memory is read where it lies;
    what lies otherwise is copied, with a ``superstep.CopyWarning``. Results are arrays of NumPy, or what the inputs were
    (tensors of PyTorch, arrays of JAX), over memory of their own.

    Other threads of Python run while a call works. A session does one call at a time: several threads may call it and take
    turns. One that was made before the process was forked refuses calls in the child.

    Sessions are pickled, by ``pickle`` and by joblib: with their model, and the parameters that they have then; where they are
    unpickled they are compiled anew, for the processor there.
    """

    __slots__ = ("_core", "_run", "_executor", "_origin", "_settings", "_gradient", "inputs", "outputs", "plan", "__weakref__")

    def __init__(self, core: _core.Session, origin: Origin, settings: Mapping[str, Any], gradient: bool = False) -> None:
        self._core = core
        self._gradient = gradient
        self._origin = origin
        self._settings = dict(settings)
        self._run = core.run
        self._executor: ThreadPoolExecutor | None = None
        self.inputs: list[Port] = _ports(core.inputs())
        self.outputs: list[Port] = _ports(core.outputs())
        self.plan: Plan = Plan(**core.plan())

    def __call__(self, *inputs: Any, out: Sequence[Any] | None = None, **named: Any) -> Any:
        """Outputs for inputs, which are given in the order of ``inputs``, or by name.

        Args:
            inputs: arrays of the shapes and element types of ``self.inputs``.
            out: arrays to write the outputs to, one for each of ``self.outputs``: row-major, writable.
            named: inputs by name. For names that are no words of Python: ``run``.

        Returns:
            The output; of a model with several a tuple, in the order of ``self.outputs``.

        Raises:
            InvalidArgument: an array of another type or shape, with the port's name; a missing or an unknown input.
        """
        return self._run(inputs, named, out)

    def run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs by name for inputs by name."""
        results = self._run((), dict(inputs), None)
        if len(self.outputs) == 1:
            results = (results,)
        return dict(zip((port.name for port in self.outputs), results))

    def map(self, *inputs: Any, **named: Any) -> Any:
        """As a call, for any number of samples: rows of axis 0, ``self.plan.batch`` of them at a time.

        The last part is filled up with copies of the last row, whose results are dropped. Inputs without an axis of samples
        are given as they are to every call.

        Returns:
            The outputs of all rows, arrays of NumPy; of a model with several a tuple.
        """
        batch = self.plan.batch
        values = self._by_name(inputs, named)
        rows = self._rows(values)
        results: list[list[numpy.ndarray]] = [[] for _ in self.outputs]
        for first in range(0, rows, batch):
            count = min(batch, rows - first)
            part = {p.name: self._part(p, values[p.name], first, count) for p in self.inputs}
            outputs = self._run((), part, None)
            for kept, output in zip(results, (outputs,) if len(self.outputs) == 1 else outputs):
                kept.append(output[:count])
        joined = tuple(numpy.concatenate(kept) if kept else numpy.empty((0, *port.shape[1:]), port.dtype)
                       for kept, port in zip(results, self.outputs))
        return joined[0] if len(joined) == 1 else joined

    def submit(self, *inputs: Any, **named: Any) -> Future[Any]:
        """As a call, in a thread of the session's own; at once gives a future with the outputs. Calls are done in turn."""
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "superstep")
        return self._executor.submit(self._run, inputs, named, None)

    async def run_async(self, *inputs: Any, **named: Any) -> Any:
        """As a call, for programs with an event loop: ``outputs = await session.run_async(x)``."""
        return await asyncio.wrap_future(self.submit(*inputs, **named))

    def time(self, *inputs: Any, calls: int = 100, **named: Any) -> numpy.ndarray:
        """Seconds of each of `calls` calls on the same arrays, without Python between them: what a call costs in C++."""
        return numpy.array(self._core.time(inputs, named, calls))

    def parameters(self) -> dict[str, numpy.ndarray]:
        """Copies of the parameters, by name. Parameters in 16 bits are given as float32."""
        return {name: self._core.parameter(name) for name in self._core.parameter_names()}

    def parameter(self, name: str) -> numpy.ndarray:
        """A copy of one of them."""
        value: numpy.ndarray = self._core.parameter(name)
        return value

    def set_parameter(self, name: str, value: Any) -> None:
        """Gives a parameter another value, of its own type and shape, from the next call on."""
        self._core.set_parameter(name, value)

    def _by_name(self, inputs: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
        if len(inputs) > len(self.inputs):
            raise InvalidArgument(f"{len(self.inputs)} inputs are needed, {len(inputs)} are given")
        values = dict(zip((port.name for port in self.inputs), inputs))
        for name, value in named.items():
            if name in values:
                raise InvalidArgument("is given twice", f"'{name}'")
            values[name] = value
        for port in self.inputs:
            if port.name not in values:
                raise InvalidArgument("no value is given", f"input '{port.name}'", f"a row of it is {port}")
        return values

    def _has_rows(self, port: Port, value: Any) -> bool:
        if not hasattr(value, "shape"):
            raise InvalidArgument(f"is {type(value).__name__}, which is no array", f"'{port.name}'",
                                  "numpy.asarray(x, dtype=...) makes one")
        shape = tuple(value.shape)
        if shape == port.shape and not (port.shape and port.shape[0] == self.plan.batch):
            return False
        if len(shape) == len(port.shape) and shape and shape[1:] == port.shape[1:]:
            return True
        raise InvalidArgument(f"is {port.element}[{','.join(map(str, shape))}]", f"'{port.name}'",
                              f"rows of it are {port}, in any number")

    def _rows(self, values: Mapping[str, Any]) -> int:
        counts = {port.name: int(values[port.name].shape[0]) for port in self.inputs if self._has_rows(port, values[port.name])}
        if len(set(counts.values())) > 1:
            raise InvalidArgument("inputs have different numbers of rows", ", ".join(f"{n}: {c}" for n, c in counts.items()))
        if not counts:
            raise InvalidArgument("no input has an axis of samples", hint="call the session itself")
        return next(iter(counts.values()))

    def _part(self, port: Port, value: Any, first: int, count: int) -> Any:
        if not self._has_rows(port, value):
            return value
        part = value[first:first + count]
        if count == port.shape[0]:
            return part
        filled = numpy.empty(port.shape, port.dtype)
        filled[:count] = numpy.asarray(part)
        filled[count:] = filled[count - 1]
        return filled

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in self.parameters().items() if name != "dropout.counter"}  # of masks, no parameter
        return {"model": self._origin.state(kept), "compile": self._settings, "gradient": self._gradient}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        core, origin = open_origin(state["model"])
        compiled = (core.gradient if state["gradient"] else core.compile)(dict(state["compile"]))
        self.__init__(compiled, origin, state["compile"], state["gradient"])  # type: ignore[misc]

    def _repr_html_(self) -> str:
        return _ports_html("Session", self.inputs, self.outputs) + figures.table(
            [{"batch": self.plan.batch, "micro-batch": self.plan.micro_batch, "threads": self.plan.threads,
              "operations per call": f"{self.plan.flops:.4g}", "compiled in": f"{self.plan.compile_seconds:.3g} s"}])

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.inputs)), ", ".join(map(str, self.outputs))
        return f"superstep.Session({names[0]} -> {names[1]}; batch {self.plan.batch}, {self.plan.threads} threads)"


class Trainer:
    """A training step compiled for one batch: forward pass, loss, backward pass and optimiser in one call."""

    __slots__ = ("_core", "_step", "inputs", "plan", "__weakref__")

    def __init__(self, core: _core.Trainer) -> None:
        self._core = core
        self._step = core.step
        self.inputs: list[Port] = _ports(core.inputs())
        self.plan: Plan = Plan(**core.plan())

    def step(self, *values: Any, learning_rate: float = 0.0, named: Mapping[str, Any] | None = None) -> float:
        """One step on one batch.

        Args:
            values: the model's inputs, then the targets of its loss, in the order of ``self.inputs``.
            learning_rate: of this step; 0: that of the settings.
            named: values by name.

        Returns:
            The loss before the step.

        Raises:
            Diverged: the loss is not finite.
        """
        return self._step(values, dict(named or {}), learning_rate)

    @property
    def steps(self) -> int:
        """Steps made so far, those before a ``restore`` included."""
        return self._core.steps()

    def parameters(self) -> dict[str, numpy.ndarray]:
        """Copies of the parameters, of the optimiser's moments and counters, by name."""
        return {name: self._core.parameter(name) for name in self._core.parameter_names()}

    def parameter(self, name: str) -> numpy.ndarray:
        """A copy of one of them."""
        value: numpy.ndarray = self._core.parameter(name)
        return value

    def set_parameter(self, name: str, value: Any) -> None:
        """Gives one of them another value, of its own type and shape."""
        self._core.set_parameter(name, value)

    def save(self, file: PathLike) -> None:
        """Writes parameters, moments and counters: a trainer that restores the file goes on as if it had never stopped."""
        self._core.save(os.fspath(file))

    def restore(self, file: PathLike) -> None:
        """Reads what ``save`` wrote."""
        self._core.restore(os.fspath(file))

    def __reduce__(self) -> Any:
        raise Unsupported("is not pickled", "Trainer", "save(FILE) keeps what it has learned, restore(FILE) takes it up again")

    def __repr__(self) -> str:
        return f"superstep.Trainer({', '.join(map(str, self.inputs))}; {self.plan.threads} threads, {self.steps} steps made)"


class _Parameters(Mapping[str, numpy.ndarray]):
    """A model's parameters by name: copies are given, values are taken."""

    def __init__(self, core: _core.Model) -> None:
        self._core = core
        self._names = [name for name, _, _ in core.parameters()]

    def __getitem__(self, name: str) -> numpy.ndarray:
        if name not in self._names:
            raise KeyError(name)
        value: numpy.ndarray = self._core.parameter(name)
        return value

    def __setitem__(self, name: str, value: Any) -> None:
        self._core.set_parameter(name, value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _texts(values: Mapping[str, Any] | Iterable[str] | str | None) -> list[str]:
    """``{"patch": 13}`` or ``["patch=13"]`` as the library takes it."""
    if values is None:
        return []
    if isinstance(values, str):
        return [values]
    if isinstance(values, Mapping):
        return [f"{name}={_text(value)}" for name, value in values.items()]
    try:
        return list(values)
    except TypeError:
        raise InvalidArgument(f"is {values!r} ({type(values).__name__})", "options, shapes or bounds",
                              'a mapping, {"patch": 13}, or texts, ["patch=13"]') from None


def path_of(value: Any, name: str) -> str:
    """A path as text; an ``InvalidArgument`` of what is none."""
    try:
        return os.fsdecode(value)
    except TypeError:
        raise InvalidArgument(f"is {value!r} ({type(value).__name__}), not a path or a name", name) from None


def number_of(value: Any, name: str) -> float:
    """A number; an ``InvalidArgument`` of what is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidArgument(f"is {value!r} ({type(value).__name__}), not a number", name) from None


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


class Model:
    """A model with its parameters, at any batch: a workload of the zoo, or an ONNX file.

    Args:
        what: the name of a workload (``zoo``), or the path of an ONNX file.
        options: of a workload: ``{"patch": 13}``. The program's ``--set``.
        shapes: of an ONNX file, extents that it leaves open: ``{"x": (-1, 3, 224, 224)}`` for an input (-1: as the file says),
            ``{"length": 64}`` for a symbol of the file.
        bounds: of an ONNX file, how long results may be whose length depends on the data: ``{"nonzero": 100}`` by node,
            ``{"*": "all"}`` for all of them. Results are padded; where a bound may be too small, ``beyond_bounds`` counts what found no room.
        loss: of an ONNX file that is trained: ``"mse"``, ``"l1"``, ``"huber"``, ``"cross_entropy"``, ``"value"``
            (the output is itself the loss), or terms by output.
        seed: of initial parameters and random masks.
        train: of an ONNX file, initialisers that are trained beside its weights; ``*`` and ``?`` stand for letters.
        freeze: weights that are not trained.

    Raises:
        NotFound, BadFile: the file.
        Unsupported: naming node, operator and operator set.
        InvalidArgument: an unknown name, an option or a shape that does not fit.
    """

    def __init__(self, what: PathLike, *, options: Mapping[str, Any] | Iterable[str] | None = None,
                 shapes: Mapping[str, Any] | Iterable[str] | None = None, loss: str = "", seed: int = 1,
                 train: Iterable[str] = (), freeze: Iterable[str] = (),
                 bounds: Mapping[str, Any] | Iterable[str] | None = None) -> None:
        settings = {"options": _texts(options), "shapes": _texts(shapes), "bounds": _texts(bounds), "loss": loss, "seed": seed, "train": list(train),
                    "freeze": list(freeze)}
        path = path_of(what, "what")
        self._core = _core.open_model(path, settings)
        self._origin = Origin(os.path.abspath(path) if path.endswith(MODEL_FILES) else path, settings)

    @classmethod
    def from_run(cls, folder: PathLike) -> Model:
        """What a training run left in its folder: the model as it was trained, with its best parameters."""
        model = cls.__new__(cls)
        path = path_of(folder, "folder")
        model._core = _core.open_run(path)
        model._origin = Origin.of_run(os.path.abspath(path))
        return model

    @property
    def name(self) -> str:
        """The workload's name, or the file's path."""
        return self._core.name()

    @property
    def fixed_batch(self) -> int:
        """The only batch of a file that fixes it; 0: any."""
        return self._core.fixed_batch()

    def inputs(self, batch: int = 0) -> list[Port]:
        """Inputs at a batch; 0: 1, or the fixed one."""
        return _ports(self._core.inputs(batch))

    def outputs(self, batch: int = 0) -> list[Port]:
        """Outputs at a batch."""
        return _ports(self._core.outputs(batch))

    def targets(self, batch: int = 0) -> list[Port]:
        """What a trainer takes after the inputs: the targets of the loss."""
        return _ports(self._core.targets(batch))

    @property
    def parameters(self) -> _Parameters:
        """The parameters by name: ``model.parameters["fc.weight"]`` is a copy, which may be assigned."""
        return _Parameters(self._core)

    def take_parameters(self, trainer: Trainer) -> None:
        """Takes what a trainer of this model has learned."""
        self._core.take_parameters(trainer._core)

    def compile(self, *, batch: int = 0, precision: Precision = "f32", threads: int = 0, micro_batch: int = 0,
                target: str = "cpu", memory_limit: int = 0, calibration: Mapping[str, Any] | None = None) -> Session:
        """Compiles the model for one batch.

        Args:
            batch: samples of a call; 0: 1, or the file's.
            precision: ``"f32"``, ``"bf16"``, ``"f16"``, or ``"int8"``, which needs `calibration`.
            threads: that work on a call; 0: every processor that the process may use.
            micro_batch: samples that go through the model at a time; 0: the target chooses.
            target: where it runs (``targets``).
            memory_limit: bytes that the plan may take; 0: no limit.
            calibration: samples by input, a row a sample, that the ranges of 8-bit numbers are taken from.
        """
        settings = self._settings(batch, precision, threads, micro_batch, target, memory_limit, calibration)
        return Session(self._core.compile(settings), self._origin, settings)

    def gradient(self, *, batch: int = 0, precision: TrainingPrecision = "f32", threads: int = 0, micro_batch: int = 0, target: str = "cpu",
                 memory_limit: int = 0) -> Session:
        """Compiles loss and gradients for one batch, for an optimizer of your own.

        What is returned is called with the model's inputs, then the targets. It gives ``loss`` (the mean over the batch), the
        model's outputs, then ``gradient/NAME`` for each trained parameter, in its shape. Random masks are drawn anew at every
        call, and running statistics are kept as in a training step; parameters stay as they are until ``set_parameter``.

            step = model.gradient(batch=32)
            found = step.run({"x": x, "target": y})
            step.set_parameter("w", step.parameters()["w"] - 0.1 * found["gradient/w"])

        Args:
            precision: ``"f32"`` or ``"bf16"``; the others as in ``compile``.
        """
        settings = self._settings(batch, precision, threads, micro_batch, target, memory_limit, None)
        return Session(self._core.gradient(settings), self._origin, settings, gradient=True)

    def trainer(self, *, batch: int = 0, optimizer: str = "", learning_rate: float = 0.0, precision: TrainingPrecision = "f32",
                threads: int = 0, micro_batch: int = 0, target: str = "cpu", memory_limit: int = 0) -> Trainer:
        """Compiles a training step for one batch.

        Args:
            optimizer: ``"sgd:momentum=0.9"``, ``"adam"``, ``"adamw:weight_decay=0.01"``, ``"adamax"``, ``"rmsprop"``, ``"lamb"``; empty:
                the workload's own.
            learning_rate: 0: the workload's own.
            precision: ``"f32"`` or ``"bf16"``; the others as in ``compile``.
        """
        settings = self._settings(batch, precision, threads, micro_batch, target, memory_limit, None)
        if not isinstance(optimizer, str):
            raise InvalidArgument(f"is {optimizer!r} ({type(optimizer).__name__}), not a text", "optimizer", '"adam", "sgd:momentum=0.9"')
        return Trainer(self._core.trainer(settings, optimizer, number_of(learning_rate, "learning_rate")))

    def write_onnx(self, file: PathLike, *, opset: int = 0, batch: int = 0) -> None:
        """Writes the model as it is served, with its present parameters, as an ONNX file.

        Args:
            opset: of the default domain; 0: the smallest that will do.
            batch: fixed in the file; 0: left open where the model allows it.
        """
        self._core.write_onnx(os.fspath(file), opset, batch)

    def _settings(self, batch: int, precision: str, threads: int, micro_batch: int, target: str, memory_limit: int,
                  calibration: Mapping[str, Any] | None) -> dict[str, Any]:
        if calibration is not None and not isinstance(calibration, Mapping):
            raise InvalidArgument(f"is {type(calibration).__name__}, not a mapping", "calibration", "arrays of samples by input")
        return {"batch": batch or self.fixed_batch or 1, "precision": precision, "threads": threads, "micro_batch": micro_batch,
                "target": target, "memory_limit": memory_limit, "calibration": dict(calibration or {})}

    def __getstate__(self) -> dict[str, Any]:
        return self._origin.state(dict(self.parameters))

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self._core, self._origin = open_origin(state)

    def _repr_html_(self) -> str:
        count = sum(int(numpy.prod(shape)) for _, _, shape in self._core.parameters())
        return _ports_html(self.name, self.inputs(), self.outputs()) + figures.table([{"parameters": f"{count:,}"}])

    def __repr__(self) -> str:
        ports = ", ".join(map(str, self.inputs())), ", ".join(map(str, self.outputs()))
        return f"superstep.Model({self.name!r}: {ports[0]} -> {ports[1]})"


def load(what: PathLike, *, batch: int = 0, precision: Precision = "f32", threads: int = 0,
         options: Mapping[str, Any] | Iterable[str] | None = None, shapes: Mapping[str, Any] | Iterable[str] | None = None,
         micro_batch: int = 0, target: str = "cpu", memory_limit: int = 0,
         calibration: Mapping[str, Any] | None = None, bounds: Mapping[str, Any] | Iterable[str] | None = None) -> Session:
    """Opens a model and compiles it: ``m = superstep.load("model.onnx", batch=8)``, then ``m(x)``.

    Args:
        what: an ONNX file, the folder of a training run, or the name of a workload (``zoo``; with its initial
            parameters).

    The others are those of ``Model`` and ``Model.compile``.
    """
    path = path_of(what, "what")
    if os.path.isdir(path) and os.path.exists(os.path.join(path, "config.json")):
        if options or shapes or bounds:
            raise InvalidArgument("a trained model has the options and shapes that it was trained with", path)
        model = Model.from_run(path)
    else:
        model = Model(path, options=options, shapes=shapes, bounds=bounds)
    return model.compile(batch=batch, precision=precision, threads=threads, micro_batch=micro_batch, target=target,
                         memory_limit=memory_limit, calibration=calibration)
