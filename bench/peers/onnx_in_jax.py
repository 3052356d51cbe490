"""ONNX operators in JAX's numbers: what the models of the zoo are written in, read from their files."""

import jax
import jax.numpy as jnp
import numpy
import onnx
from jax import lax

LETTERS = "DHW"


def windows(node, x, kernel):
    """Strides, padding and dilation of a window over the last axes."""
    rank = len(kernel)
    pads = node.get("pads", [0] * (2 * rank))
    return node.get("strides", [1] * rank), list(zip(pads[:rank], pads[rank:])), node.get("dilations", [1] * rank)


def layout(rank):
    axes = LETTERS[3 - rank:]
    return "NC" + axes, "OI" + axes, "NC" + axes


def with_bias(y, bias):
    return y if bias is None else y + bias.reshape((1, -1) + (1,) * (y.ndim - 2))


def conv(node, x, w, bias=None):
    strides, pads, dilations = windows(node, x, w.shape[2:])
    y = lax.conv_general_dilated(x, w, strides, pads, rhs_dilation=dilations, feature_group_count=node.get("group", 1),
                                 dimension_numbers=layout(w.ndim - 2))
    return with_bias(y, bias)


def conv_transpose(node, x, w, bias=None):
    """The gradient of a convolution: the window turned round over an image with gaps."""
    rank = w.ndim - 2
    strides, pads, _ = windows(node, x, w.shape[2:])
    extra = node.get("output_padding", [0] * rank)
    around = [(k - 1 - a, k - 1 - b + e) for k, (a, b), e in zip(w.shape[2:], pads, extra)]
    turned = jnp.flip(w, range(2, w.ndim)).swapaxes(0, 1)
    return with_bias(lax.conv_general_dilated(x, turned, [1] * rank, around, lhs_dilation=strides, dimension_numbers=layout(rank)), bias)


def max_pool(node, x):
    kernel = node["kernel_shape"]
    strides, pads, _ = windows(node, x, kernel)
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, *kernel), (1, 1, *strides), ((0, 0), (0, 0), *pads))


def gemm(node, a, b, c=None):
    a, b = (a.T if node.get("transA") else a), (b.T if node.get("transB") else b)
    y = node.get("alpha", 1.0) * (a @ b)
    return y if c is None else y + node.get("beta", 1.0) * c


def batch_normalization(node, x, scale, shift, mean, variance):
    across = lambda v: v.reshape((1, -1) + (1,) * (x.ndim - 2))
    if node["training"]:
        axes = (0, *range(2, x.ndim))
        mean, variance = x.mean(axes), x.var(axes)
    return (x - across(mean)) * across(scale * lax.rsqrt(variance + node.get("epsilon", 1e-5))) + across(shift)


def layer_normalization(node, x, scale, shift=None):
    axes = tuple(range(node.get("axis", -1) % x.ndim, x.ndim))
    y = (x - x.mean(axes, keepdims=True)) * lax.rsqrt(x.var(axes, keepdims=True) + node.get("epsilon", 1e-5)) * scale
    return y if shift is None else y + shift


def lstm(node, x, w, r, bias=None, lengths=None, first=None, cell=None, *rest):
    """One direction, in ONNX's order of gates: input, output, forget, cell."""
    if node.get("direction", b"forward") not in (b"forward", "forward"):
        raise NotImplementedError("LSTM backwards")
    units = r.shape[2]
    into = x @ w[0].T + (0 if bias is None else bias[0, :4 * units] + bias[0, 4 * units:])
    zero = jnp.zeros((x.shape[1], units), x.dtype)

    def step(state, row):
        h, c = state
        i, o, f, g = jnp.split(row + h @ r[0].T, 4, 1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    start = (zero if first is None else first[0], zero if cell is None else cell[0])
    (h, c), rows = lax.scan(step, start, into)
    return rows[:, None], h[None], c[None]


def static(value):
    """A value that extents depend on."""
    return [int(v) for v in numpy.asarray(value).reshape(-1)]


def reshape(node, x, extents):
    given = static(extents)
    return x.reshape([x.shape[i] if e == 0 and not node.get("allowzero") else e for i, e in enumerate(given)])


def axes_of(node, rest):
    given = node["axes"] if "axes" in node else static(rest[0]) if rest and rest[0] is not None else None
    return None if given is None else tuple(given)


def reduce(function):
    return lambda node, x, *rest: function(x, axes_of(node, rest), keepdims=bool(node.get("keepdims", 1)))


def unsqueeze(node, x, *rest):
    axes = axes_of(node, rest)
    return jnp.expand_dims(x, axes)


def slice_of(node, x, starts=None, ends=None, axes=None, steps=None):
    starts, ends = (static(v) if v is not None else node[k] for v, k in ((starts, "starts"), (ends, "ends")))
    axes = static(axes) if axes is not None else node.get("axes", range(len(starts)))
    steps = static(steps) if steps is not None else [1] * len(starts)
    where = [slice(None)] * x.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps):
        where[axis] = slice(start, None if end < -x.shape[axis] else end, step)
    return x[tuple(where)]


def pad(node, x, around, value=None):
    if node.get("mode", b"constant") != b"constant":
        raise NotImplementedError("Pad by anything but a constant")
    around = static(around)
    return jnp.pad(x, list(zip(around[:x.ndim], around[x.ndim:])), constant_values=0 if value is None else value)


def gather_nd(node, x, index):
    take = lambda x, index: x[tuple(jnp.moveaxis(jnp.asarray(index), -1, 0))]
    for _ in range(node.get("batch_dims", 0)):
        take = jax.vmap(take)
    return take(x, index)


def split(node, x, sizes=None):
    axis = node.get("axis", 0)
    sizes = static(sizes) if sizes is not None else node.get("split")
    parts = len(node["outputs"])
    at = numpy.cumsum(sizes)[:-1].tolist() if sizes else parts
    return tuple(jnp.split(x, at, axis))


def resize(node, x, roi=None, scales=None, sizes=None):
    extents = static(sizes) if sizes is not None else [int(e * s) for e, s in zip(x.shape, numpy.asarray(scales))]
    if node.get("coordinate_transformation_mode", b"half_pixel") not in (b"half_pixel", b"pytorch_half_pixel"):
        raise NotImplementedError("Resize by other coordinates")
    return jax.image.resize(x, extents, {b"linear": "linear", b"nearest": "nearest"}[node.get("mode", b"nearest")], antialias=False)


ELEMENTWISE = {
    "Add": jnp.add, "Sub": jnp.subtract, "Mul": jnp.multiply, "Div": jnp.divide, "Pow": jnp.power, "Sqrt": jnp.sqrt, "Exp": jnp.exp,
    "Log": jnp.log, "Neg": jnp.negative, "Abs": jnp.abs, "Relu": jax.nn.relu, "Sigmoid": jax.nn.sigmoid, "Tanh": jnp.tanh,
    "Erf": lax.erf, "Identity": lambda x: x, "Reciprocal": jnp.reciprocal, "Where": jnp.where, "Max": jnp.maximum, "Min": jnp.minimum,
    "Equal": jnp.equal, "Greater": jnp.greater, "Less": jnp.less, "Not": jnp.logical_not, "Floor": jnp.floor, "Round": jnp.round,
    "GreaterOrEqual": jnp.greater_equal, "LessOrEqual": jnp.less_equal, "Softplus": jax.nn.softplus, "MatMul": jnp.matmul, "Sin": jnp.sin, "Cos": jnp.cos,
    "HardSwish": lambda x: x * jnp.clip(x / 6 + 0.5, 0, 1),
}
OPERATORS = {
    "Conv": conv, "ConvTranspose": conv_transpose, "MaxPool": max_pool, "Gemm": gemm, "BatchNormalization": batch_normalization,
    "LayerNormalization": layer_normalization, "LSTM": lstm, "Reshape": reshape, "Unsqueeze": unsqueeze, "Slice": slice_of,
    "Split": split, "Resize": resize, "Pad": pad, "GatherND": gather_nd,
    "LeakyRelu": lambda node, x: jax.nn.leaky_relu(x, node.get("alpha", 0.01)),
    "HardSigmoid": lambda node, x: jnp.clip(node.get("alpha", 0.2) * x + node.get("beta", 0.5), 0, 1),
    "Softmax": lambda node, x: jax.nn.softmax(x, node.get("axis", -1)),
    "Gelu": lambda node, x: jax.nn.gelu(x, approximate=node.get("approximate", b"none") == b"tanh"),
    "Clip": lambda node, x, low=None, high=None: jnp.clip(x, low, high),
    "Cast": lambda node, x: x.astype(onnx.helper.tensor_dtype_to_np_dtype(node["to"])),
    "Concat": lambda node, *parts: jnp.concatenate(parts, node["axis"]),
    "Transpose": lambda node, x: jnp.transpose(x, node.get("perm")),
    "Flatten": lambda node, x: x.reshape(int(numpy.prod(x.shape[:node.get("axis", 1)])), -1),
    "Squeeze": lambda node, x, *rest: jnp.squeeze(x, axes_of(node, rest)),
    "Gather": lambda node, x, index: jnp.take(x, jnp.asarray(index), node.get("axis", 0)),
    "Expand": lambda node, x, extents: jnp.broadcast_to(x, numpy.broadcast_shapes(x.shape, tuple(static(extents)))),
    "Shape": lambda node, x: numpy.asarray(x.shape[node.get("start", 0):node.get("end")], "int64"),
    "ConstantOfShape": lambda node, extents: numpy.full(static(extents), onnx.numpy_helper.to_array(node["value"])[0]),
    "GlobalAveragePool": lambda node, x: x.mean(tuple(range(2, x.ndim)), keepdims=True),
    "ReduceMean": reduce(jnp.mean), "ReduceSum": reduce(jnp.sum), "ReduceMax": reduce(jnp.max), "Dropout": lambda node, x, *rest: x,
}


def compute(op, given, attributes):
    if op == "Constant":
        value = next(value for name, value in attributes.items() if name.startswith("value"))
        return onnx.numpy_helper.to_array(value) if hasattr(value, "data_type") else numpy.asarray(value)
    if op in ELEMENTWISE:
        return ELEMENTWISE[op](*given)
    if op in OPERATORS:
        return OPERATORS[op](attributes, *given)
    raise NotImplementedError("operator " + op)


def in_numbers(op, given, attributes):
    """What depends on constants alone, extents among them, is computed while the function is made."""
    with jax.ensure_compile_time_eval():
        result = compute(op, given, attributes)
        return tuple(map(numpy.asarray, result)) if isinstance(result, tuple) else numpy.asarray(result)


class Model:
    """An ONNX graph as a function of its weights and inputs."""

    def __init__(self, path):
        graph = onnx.load(path).graph
        arrays = {t.name: onnx.numpy_helper.to_array(t) for t in graph.initializer}
        self.nodes = [(node.op_type, list(node.input), list(node.output),
                       {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}) for node in graph.node]
        statistics = {name for op, names, _, _ in self.nodes if op == "BatchNormalization" for name in names[3:]}
        self.weights = {name: a for name, a in arrays.items() if a.dtype == numpy.float32 and a.size > 1 and name not in statistics}
        self.constants = {name: a for name, a in arrays.items() if name not in self.weights}
        self.outputs = [value.name for value in graph.output]
        self.inputs = []
        for value in graph.input:
            kind = value.type.tensor_type
            if value.name not in arrays:
                extents = [d.dim_value if d.HasField("dim_value") else -1 for d in kind.shape.dim]
                self.inputs.append((value.name, {1: "f32", 7: "i64", 6: "i32", 9: "bool"}[kind.elem_type], extents))

    def __call__(self, weights, inputs, training=False):
        values = {"": None, **self.constants, **weights, **inputs}
        for op, names, outputs, attributes in self.nodes:
            given = [values[name] for name in names]
            while given and given[-1] is None:
                given.pop()
            known = all(value is None or isinstance(value, numpy.ndarray) for value in given)
            result = in_numbers(op, given, attributes | {"outputs": outputs}) if known else compute(
                op, given, attributes | {"training": training, "outputs": outputs})
            values.update(zip(outputs, result if isinstance(result, tuple) else (result,)))
        return [values[name] for name in self.outputs]
