"""The bulk-synchronous machine: programs of the kind that IPUs run, built, checked, executed and counted in cycles.

    graph = bsp.Graph("gc200")
    graph.add_codelets(CODE)                    # vertex classes, in C++
    x = graph.add_variable("f32", (1472 * 8,), "x", mapping="linear")
    ...
    engine = bsp.Engine(graph, [bsp.Execute(scale)])
    engine.write("x", values); engine.run(); engine.read("x")

``docs/bsp.md`` says what the machine is and how cycles are counted: modelled, nothing is measured on hardware. Vertex classes
are text in C++, which the compiler of this machine (``$CXX``, else ``c++``, with C++23) makes into a library.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
from collections import abc
from typing import Any

import numpy

from . import _core
from .arrays import numpy_type
from .errors import BadFile, InvalidArgument, NotFound

__all__ = ["AbortOnCondition", "Call", "Copy", "Engine", "Execute", "Graph", "If", "Program", "Repeat", "RepeatWhileFalse",
           "RepeatWhileTrue", "Sequence", "Switch", "Sync", "Tensor", "WriteUndef", "concat", "devices"]

_bsp = _core.bsp
Program = _bsp.Program
ComputeSet = _bsp.ComputeSet
Vertex = _bsp.Vertex
Function = _bsp.Function


def devices() -> list[str]:
    """The machines: ``"gc200"``, ``"bow"``, ``"gc2"``, and pods of them."""
    return _bsp.device_names()


class Tensor:
    """Elements of variables of a graph: slices, reshapes and broadcasts make no data, they say which elements are meant.

    Attributes:
        shape: extents.
        element: the element type: ``"f32"``, ``"f16"``, ``"i32"``, ``"bool"``.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _bsp.Tensor) -> None:
        self._core = core

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents."""
        return self._core.shape

    @property
    def element(self) -> str:
        """The element type."""
        return self._core.element

    @property
    def name(self) -> str:
        """Of its variables: ``"weights[0..31]"``."""
        return self._core.name

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: int | slice | tuple[int | slice, ...]) -> Tensor:
        """As of NumPy's arrays: numbers drop their axis, slices with step 1 cut it."""
        found, axis = self._core, 0
        for part in key if isinstance(key, tuple) else (key,):
            extent = found.shape[axis] if axis < len(found.shape) else 0
            if isinstance(part, slice):
                begin, end, step = part.indices(extent)
                if step != 1:
                    raise InvalidArgument(f"a step of {step}", f"slice of '{self.name}'", "sub_sample(step, axis)")
                found = found.slice(begin, max(begin, end), axis)
                axis += 1
            else:
                index = part + extent if part < 0 else part
                found = found.slice(index, index + 1, axis)
                found = found.reshape([*found.shape[:axis], *found.shape[axis + 1:]])
        return Tensor(found)

    def reshape(self, *shape: int) -> Tensor:
        """The same elements, row-major, in other extents."""
        return Tensor(self._core.reshape(list(shape)))

    def flatten(self) -> Tensor:
        """In one axis."""
        return Tensor(self._core.flatten())

    def dim_shuffle(self, *permutation: int) -> Tensor:
        """Axes in another order."""
        return Tensor(self._core.dim_shuffle(list(permutation)))

    @property
    def T(self) -> Tensor:  # noqa: N802: NumPy's name
        """Axes in reversed order."""
        return Tensor(self._core.transpose())

    def broadcast(self, times: int, axis: int) -> Tensor:
        """Repeated along an axis."""
        return Tensor(self._core.broadcast(times, axis))

    def expand(self, *axes: int) -> Tensor:
        """With an axis of extent 1 before each of these."""
        return Tensor(self._core.expand(list(axes)))

    def squeeze(self) -> Tensor:
        """Without axes of extent 1."""
        return Tensor(self._core.squeeze())

    def sub_sample(self, step: int, axis: int) -> Tensor:
        """Every `step`-th along an axis."""
        return Tensor(self._core.sub_sample(step, axis))

    def reverse(self, axis: int) -> Tensor:
        """Backwards along an axis."""
        return Tensor(self._core.reverse(axis))

    def __repr__(self) -> str:
        return f"superstep.bsp.Tensor({self.name}: {self.element}[{','.join(map(str, self.shape))}])"


def concat(tensors: abc.Sequence[Tensor], axis: int = 0) -> Tensor:
    """Tensors one after the other along an axis."""
    return Tensor(_bsp.concat([tensor._core for tensor in tensors], axis))


# --- vertices in C++

_CLASS = re.compile(r"^\s*(?:struct|class)\s+(\w+)\s*(?:final\s*)?:\s*(?:public\s+)?(?:superstep::bsp::)?"
                    r"(?:Vertex|MultiVertex|SupervisorVertex)\b", re.M)


def _compiler() -> str:
    compiler = os.environ.get("CXX", "c++").split()[0]
    if shutil.which(compiler) is None:
        raise NotFound("there is no C++ compiler, which vertices are made with", compiler, "install g++ 12 or later, or set CXX")
    return compiler


def _library(text: str, folder: pathlib.Path) -> pathlib.Path:
    names = _CLASS.findall(text)
    if not names:
        raise InvalidArgument("has no class that is a Vertex, MultiVertex or SupervisorVertex", "codelets",
                              "struct Scale : Vertex { ... };")
    listed = "".join(f'  classes.push_back(superstep::bsp::vertex_class<{name}>("{name}"));\n' for name in names)
    source = folder / f"codelets_{hashlib.sha256(text.encode()).hexdigest()[:16]}.cpp"
    source.write_text(f'#include <superstep/bsp.h>\nusing namespace superstep::bsp;\n#line 1 "codelets"\n{text}\n'
                      f'extern "C" __attribute__((visibility("default"))) void '
                      f"superstep_codelets(std::vector<superstep::bsp::VertexClass>& classes) {{\n{listed}}}\n")
    library = source.with_suffix(".so")
    package = pathlib.Path(__file__).resolve().parent
    command = [_compiler(), "-std=c++23", "-O2", "-fPIC", "-shared", f"-I{package / 'include'}", "-o", str(library), str(source),
               *map(str, sorted((package / "lib").glob("libsuperstep*.so*")))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        errors = [line for line in done.stderr.splitlines() if "error:" in line] or done.stderr.splitlines()
        raise BadFile("cannot be compiled: " + "; ".join(errors[:3]), "codelets")
    return library


# --- graphs

class Graph:
    """A device graph: variables with their tiles, compute sets of vertices, functions.

    Args:
        device: a machine (``devices``).
        ipus: chips.
        replication: replicas that share the chips.
    """

    def __init__(self, device: str = "gc200", ipus: int = 1, replication: int = 1) -> None:
        self._core = _bsp.Graph(device, ipus, replication)
        self._handles: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._replication = replication

    @property
    def num_tiles(self) -> int:
        """Tiles of a replica."""
        return self._core.num_tiles

    @property
    def workers(self) -> int:
        """Worker threads of a tile."""
        return self._core.workers

    @property
    def clock_hz(self) -> float:
        """Cycles per second."""
        return self._core.clock_hz

    def add_variable(self, element: str, shape: abc.Sequence[int], name: str = "", *, mapping: str | int | None = None) -> Tensor:
        """A variable.

        Args:
            element: ``"f32"``, ``"f16"``, ``"i32"``, ``"u8"``, ``"bool"``, ...
            mapping: ``"linear"``: equal shares over all tiles; a number: on that tile; None: mapped later.
        """
        tensor = Tensor(self._core.add_variable(element, list(shape), name))
        if mapping == "linear":
            self.map_linearly(tensor)
        elif isinstance(mapping, int):
            self.set_tile_mapping(tensor, mapping)
        elif mapping is not None:
            raise InvalidArgument("is 'linear' or the number of a tile", f"mapping {mapping!r}")
        return tensor

    def add_constant(self, array: Any, name: str = "") -> Tensor:
        """A constant with the elements of an array."""
        values = numpy.ascontiguousarray(array)
        element = {"f": "f", "i": "i", "u": "u"}.get(values.dtype.kind, "")
        element = "bool" if values.dtype.kind == "b" else f"{element}{8 * values.dtype.itemsize}"
        return Tensor(self._core.add_constant(values, element, list(values.shape), name))

    def set_initial_value(self, tensor: Tensor, value: Any) -> None:
        """What elements hold when an engine is loaded: an array, or a number for all."""
        values = numpy.broadcast_to(numpy.asarray(value, numpy_type(tensor.element)), tensor.shape)
        self._core.set_initial_value(tensor._core, numpy.ascontiguousarray(values))

    def set_tile_mapping(self, tensor: Tensor, mapping: int | abc.Sequence[abc.Sequence[tuple[int, int]]]) -> None:
        """Where elements live: on one tile, or intervals of the flattened tensor, a list a tile."""
        if isinstance(mapping, int):
            self._core.set_tile(tensor._core, mapping)
        else:
            self._core.set_tile_mapping(tensor._core, [[(begin, end) for begin, end in intervals] for intervals in mapping])

    def map_linearly(self, tensor: Tensor, minimum: int = 1, grain: int = 1) -> None:
        """Elements in equal shares, `grain` at a time, at least `minimum` a tile, from tile 0 up."""
        self._core.map_linearly(tensor._core, minimum, grain)

    def tile_mapping(self, tensor: Tensor) -> list[list[tuple[int, int]]]:
        """Intervals of the flattened tensor, a list a tile."""
        return self._core.tile_mapping(tensor._core)

    def shares(self, tensor: Tensor) -> abc.Iterator[tuple[int, Tensor]]:
        """(tile, its elements), a pair for each interval that a tile has."""
        flat = tensor.flatten()
        for tile, intervals in enumerate(self.tile_mapping(tensor)):
            for begin, end in intervals:
                yield tile, flat[begin:end]

    def add_codelets(self, text: str) -> None:
        """Vertex classes in C++ (docs/bsp.md): every class in it that is a Vertex, MultiVertex or SupervisorVertex."""
        with tempfile.TemporaryDirectory(prefix="superstep-") as folder:
            self._core.load_codelets(str(_library(text, pathlib.Path(folder))))

    def add_compute_set(self, name: str = "") -> ComputeSet:
        """A set of vertices that run in one superstep."""
        return self._core.add_compute_set(name)

    def add_vertex(self, compute_set: ComputeSet, codelet: str, fields: abc.Mapping[str, Tensor | abc.Sequence[Tensor]], *,
                   tile: int | None = None, **state: float) -> Vertex:
        """A vertex of a class.

        Args:
            fields: the tensor of each field; a list of them for a list of vectors.
            tile: where it computes.
            state: initial values of its state.
        """
        connected = {name: value._core if isinstance(value, Tensor) else [one._core for one in value]
                     for name, value in fields.items()}
        return self._core.add_vertex(compute_set, codelet, connected, {n: float(v) for n, v in state.items()},
                                     -1 if tile is None else tile)

    def set_perf_estimate(self, vertex: Vertex, cycles: int, flops: int = 0) -> None:
        """Cycles of one vertex, in place of its class's."""
        self._core.set_perf_estimate(vertex, cycles, flops)

    def create_host_write(self, handle: str, tensor: Tensor) -> None:
        """Lets an engine write the tensor by this name."""
        self._core.create_host_write(handle, tensor._core)
        self._keep(handle, tensor)

    def create_host_read(self, handle: str, tensor: Tensor) -> None:
        """Lets an engine read the tensor by this name."""
        self._core.create_host_read(handle, tensor._core)
        self._keep(handle, tensor)

    def add_function(self, program: Program) -> Function:
        """A program that several places ``Call``."""
        return self._core.add_function(program)

    def _keep(self, handle: str, tensor: Tensor) -> None:
        replicas = (self._replication,) if self._replication > 1 else ()
        self._handles[handle] = (tensor.element, (*replicas, *tensor.shape))


# --- programs

def Sequence(*programs: Program, name: str = "") -> Program:  # noqa: N802
    """Programs one after the other."""
    return _bsp.sequence(list(programs), name)


def Execute(compute_set: ComputeSet) -> Program:  # noqa: N802
    """Runs the vertices of a compute set."""
    return _bsp.execute(compute_set)


def Copy(source: Tensor, destination: Tensor) -> Program:  # noqa: N802
    """Copies elements, over tiles where they live on others."""
    return _bsp.copy(source._core, destination._core)


def Repeat(count: int, body: Program) -> Program:  # noqa: N802
    """A program so many times."""
    return _bsp.repeat(count, body)


def RepeatWhileTrue(condition: Program, predicate: Tensor, body: Program) -> Program:  # noqa: N802
    """Runs `condition`, reads the predicate, and while it is true runs `body` and begins again."""
    return _bsp.repeat_while(condition, predicate._core, body, True)


def RepeatWhileFalse(condition: Program, predicate: Tensor, body: Program) -> Program:  # noqa: N802
    """The same while the predicate is false."""
    return _bsp.repeat_while(condition, predicate._core, body, False)


def If(predicate: Tensor, when_true: Program, when_false: Program | None = None) -> Program:  # noqa: N802
    """One of two programs."""
    return _bsp.branch(predicate._core, when_true, when_false if when_false is not None else Sequence())


def Switch(control: Tensor, cases: abc.Mapping[int, Program], otherwise: Program | None = None) -> Program:  # noqa: N802
    """The program of a value."""
    return _bsp.switch_case(control._core, list(cases.items()), otherwise if otherwise is not None else Sequence())


def Call(function: Function) -> Program:  # noqa: N802
    """A function of the graph."""
    return _bsp.call(function)


def Sync(external: bool = False) -> Program:  # noqa: N802
    """A barrier of a chip's tiles; external: of all chips."""
    return _bsp.sync(external)


def WriteUndef(tensor: Tensor) -> Program:  # noqa: N802
    """Ends the life of the tensor's values."""
    return _bsp.write_undef(tensor._core)


def AbortOnCondition(predicate: Tensor, message: str) -> Program:  # noqa: N802
    """Stops the engine with an error where the predicate is true."""
    return _bsp.abort_on_condition(predicate._core, message)


# --- running

class Engine:
    """Programs of a graph, compiled: runs them on this machine's cores, with the same bits on any number of threads.

    Args:
        programs: that ``run`` takes by number.
        threads: of this machine.
        timing_only: touches no data, only counts.
        allow_out_of_memory: goes on when a tile is too full; the profile shows it.

    Raises:
        BadGraph: an element without a tile, a field that is not connected, two vertices that write one element, ..., with the
            names of tensor, vertex, field and tile.
        OutOfMemory: a tile is too full; its ten largest tenants.
    """

    def __init__(self, graph: Graph, programs: abc.Sequence[Program], *, threads: int = 1, timing_only: bool = False,
                 allow_out_of_memory: bool = False) -> None:
        self._graph = graph
        self._handles = dict(graph._handles)
        self._core = _bsp.compile(graph._core, list(programs), threads, timing_only, allow_out_of_memory)

    def _port(self, handle: str) -> tuple[str, tuple[int, ...]]:
        try:
            return self._handles[handle]
        except KeyError:
            raise InvalidArgument("there is no handle of this name", handle,
                                  "there are: " + ", ".join(sorted(self._handles))) from None

    def write(self, handle: str, array: Any) -> None:
        """Writes a tensor: an array of its shape and element type."""
        element, shape = self._port(handle)
        self._core.write(handle, array, element, list(shape))

    def read(self, handle: str) -> numpy.ndarray:
        """Reads a tensor."""
        element, shape = self._port(handle)
        values: numpy.ndarray = self._core.read(handle, element, list(shape))
        return values

    def run(self, program: int = 0) -> None:
        """Runs a program."""
        self._core.run(program)

    @property
    def cycles(self) -> int:
        """Modelled cycles of all runs."""
        return self._core.cycles()

    @property
    def seconds(self) -> float:
        """The same in s, at the machine's clock."""
        return self.cycles / self._graph.clock_hz

    def profile(self) -> dict[str, Any]:
        """Everything counted, as docs/bsp.md explains it (``superstep-bsp-profile/1``)."""
        counted: dict[str, Any] = json.loads(self._core.profile_json())
        return counted

    def summary(self) -> str:
        """The profile in words."""
        return self._core.summary()

    def html(self) -> str:
        """The profile as a self-contained page."""
        return self._core.profile_html()

    def _repr_html_(self) -> str:
        import html
        return f'<iframe srcdoc="{html.escape(self.html(), quote=True)}" width="100%" height="600" style="border:0"></iframe>'
