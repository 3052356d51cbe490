"""Random small ONNX graphs: what a graph is, and how its leaves are drawn. The operators are in operators.py.

A graph is plain data (nodes, arrays, outputs), so that it can be cut down and written to a file.
"""
import random

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"f32": (np.float32, TensorProto.FLOAT), "f64": (np.float64, TensorProto.DOUBLE),
         "f16": (np.float16, TensorProto.FLOAT16), "i64": (np.int64, TensorProto.INT64),
         "i32": (np.int32, TensorProto.INT32), "i16": (np.int16, TensorProto.INT16),
         "i8": (np.int8, TensorProto.INT8), "u64": (np.uint64, TensorProto.UINT64),
         "u32": (np.uint32, TensorProto.UINT32), "u16": (np.uint16, TensorProto.UINT16),
         "u8": (np.uint8, TensorProto.UINT8), "bool": (np.bool_, TensorProto.BOOL)}
NAMES = {np.dtype(numpy): name for name, (numpy, _) in TYPES.items()}
PROTO = {name: proto for name, (_, proto) in TYPES.items()}
OF_PROTO = {proto: name for name, (_, proto) in TYPES.items()}
FLOATS = ("f32",) * 8 + ("f64", "f16")
INTEGERS = ("i64", "i32", "i32", "i8", "u8")
SPECIAL = [np.nan, np.inf, -np.inf, -0.0, 0.0]
WILD = [1e-41, -1e-41, 1e-38, 3.4e38, -3.4e38, 1e30]  # a product or sum of these depends on the type between
IR_VERSION = 10


class Graph:
    """Nodes (op, inputs, outputs, attributes, domain), arrays by name, and which of them are constants."""

    def __init__(self, opset):
        self.opset = opset
        self.nodes, self.inputs, self.constants, self.outputs = [], {}, {}, []
        # Inputs that have an initialiser, of other numbers than are given; and constants that nobody gives, though they
        # are inputs.
        self.defaults, self.listed = {}, []

    def model(self, outputs=None):
        names = self.outputs if outputs is None else outputs
        ports = [helper.make_tensor_value_info(name, PROTO[NAMES[array.dtype]], array.shape)
                 for name, array in {**self.inputs, **{n: self.constants[n] for n in self.listed}}.items()]
        constants = [numpy_helper.from_array(np.asarray(array), name)
                     for name, array in {**self.constants, **self.defaults}.items()]
        nodes = [helper.make_node(op, inputs, results, name=f"n{i}_{op}", domain=domain, **attributes)
                 for i, (op, inputs, results, attributes, domain) in enumerate(self.nodes)]
        results = [onnx.ValueInfoProto(name=name) for name in names]
        graph = helper.make_graph(nodes, "drawn", ports, results, constants)
        sets = [helper.make_opsetid("", self.opset)]
        return helper.make_model(graph, opset_imports=sets, ir_version=IR_VERSION)

    def copy(self):
        other = Graph(self.opset)
        other.nodes = [(op, list(i), list(o), dict(a), d) for op, i, o, a, d in self.nodes]
        other.inputs, other.constants = dict(self.inputs), dict(self.constants)
        other.outputs, other.defaults, other.listed = list(self.outputs), dict(self.defaults), list(self.listed)
        return other

    def without_unread(self):
        """Only the nodes and arrays that outputs follow from."""
        wanted, nodes = set(self.outputs), []
        for node in reversed(self.nodes):
            if wanted.intersection(node[2]):
                nodes.append(node)
                wanted.update(node[1])
        self.nodes = nodes[::-1]
        self.inputs = {name: array for name, array in self.inputs.items() if name in wanted}
        self.constants = {name: array for name, array in self.constants.items() if name in wanted}
        self.defaults = {name: array for name, array in self.defaults.items() if name in wanted}
        self.listed = [name for name in self.listed if name in self.constants]
        return self


class Value:
    def __init__(self, name, kind, shape, exact, special=False, wild=False):
        self.name, self.kind, self.shape, self.exact = name, kind, tuple(shape), exact
        self.special, self.wild = special, wild  # may hold such numbers

    @property
    def rank(self):
        return len(self.shape)


class Draw:
    """A graph being drawn. Values know their types and shapes; `exact` ones have the same bits everywhere, so that
    what is not continuous (comparisons, rounding, sorting) may read them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.numpy = np.random.default_rng(seed)
        opset = self.random.choice([13, 15, 17, 18, 19, 20, 21, 22, 22, 23, 24]) if self.chance(0.85) else \
            self.random.choice([7, 9, 10, 11, 12])
        self.graph = Graph(opset)
        self.special = self.chance(0.3)
        self.values, self.refused = [], False  # refused: an index lies outside on purpose
        self.serial = 0

    # --- numbers

    def chance(self, share):
        return self.random.random() < share

    def one(self, options):
        return self.random.choice(options)

    def number(self, low, high):
        return self.random.randint(low, high)

    def extent(self, low=1, high=6):
        if low == 0 or self.chance(0.9):
            return self.number(low, high)
        return self.one([1, 7, 8, 9, 15, 16, 17, 31, 33])

    def shape(self, low=1, high=4):
        rank = self.number(low, high)
        most = {0: 1, 1: 20, 2: 9, 3: 6}.get(rank, 4)
        extents = [self.number(1, most) for _ in range(rank)]
        if rank and self.chance(0.04):
            extents[self.number(0, rank - 1)] = 0
        elif rank and self.chance(0.1):
            extents[self.number(0, rank - 1)] = self.one([16, 17, 31, 33])
        return tuple(extents)

    def like(self, shape):
        """A shape that broadcasts to this one."""
        shape = list(shape)[self.number(0, len(shape)) if self.chance(0.3) else 0:]
        return tuple(1 if self.chance(0.25) else extent for extent in shape)

    def axis(self, rank):
        return self.number(-rank, rank - 1)

    # --- leaves

    def name(self, stem):
        self.serial += 1
        return f"{stem}{self.serial}"

    def array(self, kind, shape, low=-3, high=3, special=True, wild=False):
        numpy, _ = TYPES[kind]
        if kind == "bool":
            return self.numpy.random(shape) < 0.5
        if not np.issubdtype(numpy, np.floating):
            low = max(low, 0) if kind.startswith("u") else low
            return self.numpy.integers(int(np.floor(low)), int(np.ceil(high)) + 1, shape).astype(numpy)
        if self.chance(0.3):
            array = np.round(self.numpy.uniform(low, high, shape) * 2) / 2
        else:
            array = self.numpy.uniform(low, high, shape)
        array = np.asarray(array, numpy)
        if special and self.special and array.size:
            pool = SPECIAL + (WILD if wild else [])
            pool = self.random.sample(pool, self.number(1, 3))
            with np.errstate(over="ignore"):
                chosen = self.numpy.choice(np.array(pool), shape).astype(numpy)
            array = np.where(self.numpy.random(shape) < self.one([0.1, 0.3, 0.8]), chosen, array).astype(numpy)
        return array

    def leaf(self, array, constant=None, exact=True):
        name = self.name("x")
        array = np.asarray(array)
        constant = self.chance(0.25) if constant is None else constant
        (self.graph.constants if constant else self.graph.inputs)[name] = array
        floating = np.issubdtype(array.dtype, np.floating) and array.size
        with np.errstate(invalid="ignore"):
            sizes = np.abs(array[np.isfinite(array) & (array != 0)]) if floating else array.reshape(-1)[:0]
        special = bool(floating and not np.isfinite(array).all())
        wild = bool(floating and sizes.size and (sizes.max() > 1e6 or sizes.min() < 1e-9))
        value = Value(name, NAMES[array.dtype], array.shape, exact, special, wild)
        self.values.append(value)
        return value

    def value(self, kinds=FLOATS, shape=None, rank=(1, 4), exact=False, nonempty=False, special=True, wild=False,
              **limits):
        """One that is there already, or a leaf. `limits` are those of array()."""
        kinds = (kinds,) if isinstance(kinds, str) else kinds
        limits.update(special=special, wild=wild)
        fitting = [v for v in self.values
                   if v.kind in kinds and (v.exact or not exact) and (special or not v.special) and (wild or not v.wild)
                   and (v.shape == shape if shape is not None else rank[0] <= v.rank <= rank[1])
                   and not (nonempty and 0 in v.shape)]
        if "low" in limits or "high" in limits:
            fitting = []
        if fitting and self.chance(0.75):
            return self.one(fitting)
        drawn = shape if shape is not None else self.shape(*rank)
        if nonempty and shape is None:
            drawn = tuple(max(1, extent) for extent in drawn)
        return self.leaf(self.array(self.one(kinds), drawn, **limits))

    def known(self, numbers, kind="i64"):
        """A constant: shapes, axes."""
        return self.leaf(np.array(numbers, TYPES[kind][0]), constant=True)

    def indices(self, shape, extent, kinds=("i64", "i32"), negative=True):
        low = -extent if negative and self.chance(0.5) else 0
        array = self.numpy.integers(low, max(extent, low + 1), shape)
        if array.size and (extent == 0 or self.chance(0.04)):
            array.reshape(-1)[self.number(0, array.size - 1)] = self.one([extent, -extent - 1, extent + 100, 1 << 30])
            self.refused = True
        return self.leaf(np.asarray(array, TYPES[self.one(kinds)][0]))

    # --- nodes

    def node(self, op, inputs, attributes=None, outputs=1, exact=False, domain=""):
        names = [value.name if value else "" for value in inputs]
        while names and not names[-1]:
            names.pop()
        results = [self.name("y") for _ in range(outputs)]
        self.graph.nodes.append((op, names, results, {k: v for k, v in (attributes or {}).items() if v is not None}, domain))
        same = exact and all(value is None or value.exact for value in inputs)
        read = [value for value in inputs if value]
        # Whatever is not exact may make such numbers of others: a quotient, an overflow.
        self.pending = (results, same, not same or any(value.special for value in read),
                        any(value.wild for value in read))
        return results

    def settle(self):
        """Types and shapes of what the last node gives; False where they cannot be known."""
        results, exact, special, wild = self.pending
        model = self.graph.model(outputs=results)
        try:
            inferred = onnx.shape_inference.infer_shapes(model, strict_mode=False, data_prop=True)
        except Exception:
            return False
        known = {info.name: info for info in list(inferred.graph.value_info) + list(inferred.graph.output)}
        for name in results:
            kind = known[name].type.tensor_type if name in known else None
            if kind is None or not kind.HasField("shape") or kind.elem_type not in OF_PROTO:
                continue
            extents = [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim]
            if -1 not in extents:
                self.values.append(Value(name, OF_PROTO[kind.elem_type], extents, exact, special, wild))
        return True
