"""How a node of each operator is drawn: inputs, attributes, the forms of its operator sets.

An entry is a function of a Draw that adds one node (and the leaves it reads). Where an operator's text leaves something
open, or ONNX Runtime is known to differ from it, the draw stays away and says so.
"""
import numpy as np

from draw import FLOATS, INTEGERS

TABLE = []  # (operator, first operator set, last or None, function)


def draws(*names, since=1, until=None):
    def add(function):
        TABLE.extend((name, since, until, function) for name in names)
        return function
    return add


def normalized(axis, rank):
    return axis + rank if axis < 0 else axis


# --- element by element

@draws("Neg", "Abs", since=7)
def exact_unary(d, op):
    d.node(op, [d.value(FLOATS + ("i32", "i64"), rank=(0, 4), wild=True)], exact=True)


@draws("Sign", since=9)
def sign(d, op):
    d.node(op, [d.value(FLOATS + ("i32", "i64"), rank=(0, 4), wild=True, exact=True)], exact=True)


@draws("Floor", "Ceil", since=7)
@draws("Round", since=11)
def rounding(d, op):
    d.node(op, [d.value(FLOATS, rank=(0, 4), wild=True, exact=True)], exact=True)


@draws("Exp", "Sqrt", "Reciprocal", "Sigmoid", "Tanh", "Log", "Softplus", "Softsign", "Sin", "Cos", "Atan",
       since=7)
@draws("Erf", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", since=9)
@draws("Asin", "Acos", "Tan", since=7)
def unary(d, op):
    limits = {"low": -1, "high": 1} if op in ("Asin", "Acos", "Atanh", "Tan") else {}
    if op in ("Log", "Sqrt") and d.chance(0.7):
        limits = {"low": 0.1, "high": 4}
    steep = op in ("Reciprocal", "Log", "Sqrt", "Tan", "Asin", "Acos", "Acosh", "Atanh")
    d.node(op, [d.value("f32" if d.chance(0.8) else "f64", rank=(0, 4), exact=steep, **limits)])


@draws("Relu", since=7)
def relu(d, op):
    d.node(op, [d.value(FLOATS, rank=(0, 4), wild=True)], exact=True)


@draws("LeakyRelu", "Elu", "ThresholdedRelu", since=10)
@draws("Celu", since=12)
def with_alpha(d, op):
    alpha = d.one([None, 0.5, 2.0]) if op != "Celu" else d.one([None, 0.5, 2.0])
    d.node(op, [d.value("f32", exact=op == "ThresholdedRelu")], {"alpha": alpha})


@draws("Selu", "HardSigmoid", since=7)
def two_numbers(d, op):
    names = ("alpha", "gamma") if op == "Selu" else ("alpha", "beta")
    d.node(op, [d.value("f32")], {names[0]: d.one([None, 0.25]), names[1]: d.one([None, 0.75])})


@draws("HardSwish", since=14)
@draws("Mish", since=18)
def plain_activation(d, op):
    d.node(op, [d.value("f32")])


@draws("Gelu", since=20)
def gelu(d, op):
    d.node(op, [d.value("f32")], {"approximate": d.one([None, "none", "tanh"])})


@draws("Shrink", since=9)
def shrink(d, op):
    d.node(op, [d.value("f32", exact=True)], {"lambd": d.one([0.5, 1.5]), "bias": d.one([None, 0.25])})


@draws("PRelu", since=9)
def prelu(d, op):
    x = d.value("f32")
    d.node(op, [x, d.value("f32", shape=d.like(x.shape))])


@draws("Clip", since=13)
def clip(d, op):
    x = d.value(FLOATS + ("i32", "i64"), rank=(0, 4), wild=True)
    low = d.leaf(d.array(x.kind, (), -2, 0, special=d.chance(0.2))) if d.chance(0.7) else None
    high = d.leaf(d.array(x.kind, (), -1, 2, special=d.chance(0.2))) if d.chance(0.7) else None
    d.node(op, [x, low, high], exact=True)


@draws("Clip", since=7, until=10)
def old_clip(d, op):
    d.node(op, [d.value("f32")], {"min": d.one([None, -1.0]), "max": d.one([None, 0.5])}, exact=True)


def broadcast_pair(d, kinds, **limits):
    a = d.value(kinds, rank=(0, 4), **limits)
    b = d.value(a.kind, shape=d.like(a.shape) if d.chance(0.6) else a.shape, **limits)
    return (a, b) if d.chance(0.5) else (b, a)


@draws("Add", "Sub", "Mul", since=7)
def arithmetic(d, op):
    d.node(op, broadcast_pair(d, FLOATS + ("i32", "i64")), exact=False)


@draws("Div", since=7)
def division(d, op):
    if d.chance(0.7):
        return d.node(op, broadcast_pair(d, FLOATS, exact=True))
    kind = d.one(["i32", "i64"])
    a = d.value(kind)
    b = d.leaf(np.where(d.numpy.random(a.shape) < 0.5, d.array(kind, a.shape, 1, 4), d.array(kind, a.shape, -4, -1)))
    d.node(op, [a, b], exact=True)


@draws("Pow", since=12)
def power(d, op):
    base = d.value("f32", low=-3, high=3, special=False) if d.chance(0.3) else d.value("f32", low=0.1, high=3, special=False)
    if d.chance(0.5):
        exponent = d.leaf(np.array(d.one([2.0, 3.0, 0.5, -1.0, 0.0, 1.0, 2.5]), np.float32))
    else:
        exponent = d.value("f32", shape=d.like(base.shape), low=-2, high=2)
    d.node(op, [base, exponent])


@draws("Min", "Max", since=12)
def extremes(d, op):
    a, b = broadcast_pair(d, FLOATS + ("i32", "i64"), wild=True)
    inputs = [a, b] + ([d.value(a.kind, shape=a.shape)] if d.chance(0.2) else [])
    d.node(op, inputs, exact=True)


@draws("Sum", "Mean", since=8)
def several(d, op):
    a, b = broadcast_pair(d, "f32")
    d.node(op, [a, b] + ([d.value("f32", shape=())] if d.chance(0.3) else []))


@draws("Mod", since=10)
def modulo(d, op):
    if d.chance(0.5):
        a = d.value("f32", exact=True, special=False)
        b = d.leaf(d.array("f32", d.like(a.shape), 0.5, 3, special=False))
        return d.node(op, [a, b], {"fmod": 1})
    kind = d.one(["i32", "i64"])
    a = d.value(kind)
    b = d.leaf(np.where(d.numpy.random(a.shape) < 0.5, d.array(kind, a.shape, 1, 4), d.array(kind, a.shape, -4, -1)))
    d.node(op, [a, b], {"fmod": d.one([None, 0, 1])}, exact=True)


@draws("BitShift", since=11)
def shift(d, op):
    kind = d.one(["u8", "u32", "u64"])
    a = d.value(kind)
    d.node(op, [a, d.leaf(d.array(kind, a.shape, 0, 5))], {"direction": d.one(["LEFT", "RIGHT"])}, exact=True)


@draws("BitwiseAnd", "BitwiseOr", "BitwiseXor", since=18)
def bitwise(d, op):
    d.node(op, broadcast_pair(d, ("u8", "i32", "i64")), exact=True)


@draws("BitwiseNot", since=18)
def bitwise_not(d, op):
    d.node(op, [d.value(("u8", "i32", "i64"))], exact=True)


@draws("Equal", since=11)
@draws("Greater", "Less", since=9)
@draws("GreaterOrEqual", "LessOrEqual", since=12)
def comparison(d, op):
    kinds = ("f32", "f64", "i32", "i64") + (("bool",) if op == "Equal" else ())
    d.node(op, broadcast_pair(d, kinds, exact=True), exact=True)


@draws("And", "Or", "Xor", since=7)
def logic(d, op):
    d.node(op, broadcast_pair(d, "bool"), exact=True)


@draws("Not", since=1)
def negation(d, op):
    d.node(op, [d.value("bool")], exact=True)


@draws("IsNaN", since=13)
@draws("IsInf", since=10)
def classes(d, op):
    attributes = {"detect_negative": d.one([None, 0]), "detect_positive": d.one([None, 0])} if op == "IsInf" else {}
    d.node(op, [d.value("f32", exact=True)], attributes, exact=True)


@draws("Where", since=9)
def where(d, op):
    a, b = broadcast_pair(d, ("f32", "i64", "i32"), wild=True)
    d.node(op, [d.value("bool", shape=d.like(a.shape)), a, b], exact=True)


@draws("Cast", since=9)
def cast(d, op):
    kinds = ("f32", "f64", "f16", "i64", "i32", "u8", "i8", "bool")
    to = d.one(kinds)
    # What NaN, and numbers beyond the range, become as an integer is left open.
    limits = {"special": False, "low": 0, "high": 9} if to[0] in "iu" else {"wild": True}
    x = d.leaf(d.array(d.one(kinds), d.shape(0, 4), **limits))
    d.node(op, [x], {"to": TO[to]}, exact=True)


TO = {"f32": 1, "u8": 2, "i8": 3, "i32": 6, "i64": 7, "bool": 9, "f16": 10, "f64": 11}


@draws("CastLike", since=15)
def cast_like(d, op):
    d.node(op, [d.leaf(d.array("f32", d.shape(), special=False)), d.value(("f32", "f64", "i32"))], exact=True)


@draws("Identity", since=1)
def identity(d, op):
    d.node(op, [d.value(FLOATS + INTEGERS, rank=(0, 4))], exact=True)


@draws("Dropout", since=13)
def dropout(d, op):
    d.node(op, [d.value("f32")], outputs=d.number(1, 2), exact=True)


# --- products

@draws("MatMul", since=9)
def matmul(d, op):
    m, k, n = d.extent(), d.extent(0 if d.chance(0.05) else 1), d.extent()
    lead = d.shape(0, 2) if d.chance(0.5) else ()
    a, b = lead + (m, k), (d.like(lead) if d.chance(0.5) else lead) + (k, n)
    if d.chance(0.1):
        a = (k,)
    elif d.chance(0.1):
        b = (k,)
    kind = d.one(["f32", "f32", "f64", "i32"])
    d.node(op, [d.value(kind, shape=a), d.value(kind, shape=b)])


@draws("Gemm", since=11)
def gemm(d, op):
    m, k, n = d.extent(), d.extent(), d.extent()
    a, b = d.one([0, 1]), d.one([0, 1])
    kind = d.one(["f32", "f32", "f64"])
    inputs = [d.value(kind, shape=(k, m) if a else (m, k)), d.value(kind, shape=(n, k) if b else (k, n))]
    if d.chance(0.6):
        inputs.append(d.value(kind, shape=d.one([(m, n), (n,), (1, n), (m, 1), (), (1, 1)])))
    d.node(op, inputs, {"transA": a, "transB": b, "alpha": d.one([None, 0.5]), "beta": d.one([None, 2.0, 0.0])})


@draws("Einsum", since=12)
def einsum(d, op):
    m, k, n, h = d.extent(), d.extent(), d.extent(), d.extent()
    equation, a, b = d.one([("ij,jk->ik", (m, k), (k, n)), ("bij,bkj->bik", (h, m, k), (h, n, k)),
                            ("i,j->ij", (m,), (n,)), ("ij,ij->", (m, k), (m, k)), ("ij,ij->ij", (m, k), (m, k)),
                            ("hmk,hnk->mnh", (h, m, k), (h, n, k)), ("...j,jk->...k", (h, m, k), (k, n))])
    d.node(op, [d.value("f32", shape=a), d.value("f32", shape=b)], {"equation": equation})


@draws("Det", since=11)
def determinant(d, op):
    n = d.number(1, 4)
    d.node(op, [d.value("f32", shape=d.shape(0, 1) + (n, n), special=False)])


def window(d, spatial, pool=False):
    """Attributes of windows over `spatial` axes, and the least extents that hold one."""
    kernel = [d.number(1, 3) for _ in range(spatial)]
    strides = [d.number(1, 3) for _ in range(spatial)]
    dilations = [d.number(1, 2) for _ in range(spatial)]
    attributes = {"kernel_shape": kernel, "strides": strides if d.chance(0.7) else None,
                  "dilations": dilations if d.chance(0.4) else None}
    reach = [(k - 1) * (e if attributes["dilations"] else 1) + 1 for k, e in zip(kernel, dilations)]
    how = d.random.random()
    if how < 0.25:
        attributes["auto_pad"] = d.one(["SAME_UPPER", "SAME_LOWER", "VALID"])
    elif how < 0.8:
        most = [min(k - 1, 2) if pool else 2 for k in kernel]
        attributes["pads"] = [d.number(0, m) for m in most] + [d.number(0, m) for m in most]
    return attributes, kernel, reach


@draws("Conv", since=11)
def convolution(d, op):
    spatial = d.one([1, 2, 2, 2, 3])
    attributes, kernel, reach = window(d, spatial)
    group = d.one([1, 1, 2, 3])
    inner, outer = d.number(1, 4), group * d.number(1, 4)
    if d.chance(0.15):
        group = outer = d.number(2, 8)
        inner = 1
    extents = tuple(r + d.number(0, 8) for r in reach)
    x = d.value("f32", shape=(d.number(1, 3), inner * group) + extents)
    inputs = [x, d.value("f32", shape=(outer, inner) + tuple(kernel), special=False)]
    if d.chance(0.5):
        inputs.append(d.value("f32", shape=(outer,)))
    attributes["group"] = group if group > 1 or d.chance(0.3) else None
    d.node(op, inputs, attributes)


@draws("ConvTranspose", since=11)
def transposed(d, op):
    spatial = d.one([1, 2, 2, 3])
    attributes, kernel, reach = window(d, spatial)
    group = d.one([1, 1, 2])
    inner, outer = d.number(1, 3) * group, d.number(1, 3)
    extents = [d.number(1, 6) for _ in range(spatial)]
    strides = attributes["strides"] or [1] * spatial
    full = [(n - 1) * s + r for n, s, r in zip(extents, strides, reach)]
    pads = attributes.get("pads")
    if pads and any(f - a - b < 1 for f, a, b in zip(full, pads[:spatial], pads[spatial:])):
        del attributes["pads"]
    if attributes.get("auto_pad"):
        # SAME of a transposed convolution has been read in several ways; with output_shape it is clear.
        attributes["auto_pad"] = d.one(["SAME_UPPER", "SAME_LOWER"])
        attributes["output_shape"] = [d.number(max(1, f - 2), f) for f in full]
    elif not attributes.get("pads") and d.chance(0.4):
        attributes["output_shape"] = [d.number(max(1, f - 3), f) for f in full]
    elif d.chance(0.3):
        attributes["output_padding"] = [d.number(0, s - 1) for s in strides]
    inputs = [d.value("f32", shape=(d.number(1, 2), inner) + tuple(extents)),
              d.value("f32", shape=(inner, outer) + tuple(kernel), special=False)]
    if d.chance(0.4):
        inputs.append(d.value("f32", shape=(outer * group,)))
    attributes["group"] = group if group > 1 else None
    d.node(op, inputs, attributes)


@draws("MatMulInteger", since=10)
def matmul_integer(d, op):
    m, k, n = d.extent(), d.extent(), d.extent()
    b = d.one(["u8", "i8"])
    inputs = [d.value("u8", shape=(m, k), low=0, high=255),
              d.value(b, shape=(k, n), low=0 if b == "u8" else -128, high=255 if b == "u8" else 127)]
    if d.chance(0.5):
        inputs.append(d.leaf(d.array("u8", (), 0, 9)))
    d.node(op, inputs, exact=True)


@draws("ConvInteger", since=10)
def convolution_integer(d, op):
    attributes, kernel, reach = window(d, 2)
    inner, outer = d.number(1, 4), d.number(1, 4)
    inputs = [d.value("u8", shape=(1, inner) + tuple(r + d.number(0, 5) for r in reach), low=0, high=255),
              d.value("u8", shape=(outer, inner) + tuple(kernel), low=0, high=255)]
    if d.chance(0.5):
        inputs.append(d.leaf(d.array("u8", (), 0, 9)))
    d.node(op, inputs, attributes, exact=True)


# --- windows

@draws("MaxPool", since=12)
def max_pool(d, op):
    spatial = d.one([1, 2, 2, 3])
    attributes, kernel, reach = window(d, spatial, pool=True)
    if attributes.get("auto_pad") in ("SAME_UPPER", "SAME_LOWER"):
        attributes["dilations"] = None
    attributes["ceil_mode"] = d.one([None, 1]) if "auto_pad" not in attributes else None
    extents = tuple(r + d.number(0, 7) for r in reach)
    x = d.value("f32", shape=(d.number(1, 2), d.number(1, 3)) + extents, exact=True)
    d.node(op, [x], attributes, outputs=d.one([1, 1, 2]), exact=True)


@draws("AveragePool", since=11)
def average_pool(d, op):
    spatial = d.one([1, 2, 2, 3])
    attributes, kernel, reach = window(d, spatial, pool=True)
    dilated = d.graph.opset >= 19 and "auto_pad" not in attributes
    if not dilated:
        attributes["dilations"] = None
    # Windows that hang over the end, and whether they count it, changed between operator sets.
    if "auto_pad" not in attributes and d.graph.opset >= 19:
        attributes["ceil_mode"] = d.one([None, 1])
    attributes["count_include_pad"] = d.one([None, 1])
    extents = tuple(r + d.number(0, 7) for r in reach)
    d.node(op, [d.value("f32", shape=(d.number(1, 2), d.number(1, 3)) + extents)], attributes)


@draws("LpPool", since=18)
def lp_pool(d, op):
    attributes, kernel, reach = window(d, 2, pool=True)
    attributes["dilations"] = None
    attributes["p"] = d.one([None, 1, 2, 3])
    extents = tuple(r + d.number(0, 5) for r in reach)
    d.node(op, [d.value("f32", shape=(1, 2) + extents)], attributes)


@draws("GlobalAveragePool", "GlobalMaxPool", since=1)
def global_pool(d, op):
    shape = (d.number(1, 3), d.number(1, 3)) + tuple(d.extent() for _ in range(d.number(1, 3)))
    d.node(op, [d.value("f32", shape=shape)])


@draws("GlobalLpPool", since=2)
def global_lp_pool(d, op):
    d.node(op, [d.value("f32", shape=(2, 2, d.extent(), d.extent()))], {"p": d.one([None, 1, 3])})


@draws("MaxUnpool", since=11)
def unpool(d, op):
    n, c, h, w = d.number(1, 2), d.number(1, 2), d.number(1, 4), d.number(1, 4)
    x = d.leaf(d.array("f32", (n, c, h, w)))
    plane = 4 * h * w
    places = np.stack([d.numpy.permutation(plane)[:h * w] + i * plane for i in range(n * c)]).reshape(n, c, h, w)
    d.node(op, [x, d.leaf(places.astype(np.int64))], {"kernel_shape": [2, 2], "strides": [2, 2]}, exact=True)


@draws("Col2Im", since=18)
def col2im(d, op):
    kh, kw = d.number(1, 3), d.number(1, 3)
    h, w = kh + d.number(0, 4), kw + d.number(0, 4)
    c = d.number(1, 3)
    x = d.value("f32", shape=(d.number(1, 2), c * kh * kw, (h - kh + 1) * (w - kw + 1)))
    d.node(op, [x, d.known([h, w]), d.known([kh, kw])])


@draws("GridSample", since=16)
def grid_sample(d, op):
    modes = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
    mode = d.one(list(modes))
    mode = mode if d.graph.opset >= 20 else modes[mode]
    x = d.value("f32", shape=(d.number(1, 2), d.number(1, 2), d.extent(), d.extent()), special=False)
    grid = d.leaf(d.array("f32", (x.shape[0], d.extent(), d.extent(), 2), -1.4, 1.4, special=False))
    d.node(op, [x, grid], {"mode": mode, "padding_mode": d.one([None, "zeros", "border", "reflection"]),
                           "align_corners": d.one([None, 0, 1])}, exact=False)


@draws("AffineGrid", since=20)
def affine_grid(d, op):
    n = d.number(1, 2)
    d.node(op, [d.value("f32", shape=(n, 2, 3)), d.known([n, 1, d.extent(), d.extent()])],
           {"align_corners": d.one([None, 1])})


@draws("RoiAlign", since=16)
def roi_align(d, op):
    # "max" of ONNX Runtime takes the largest of weighted corners, the text that of interpolated values.
    x = d.value("f32", shape=(2, d.number(1, 2), 6, 7), special=False)
    r = d.number(1, 3)
    corner, size = d.numpy.uniform(0, 3, (r, 2)), d.numpy.uniform(0.5, 3, (r, 2))
    rois = d.leaf(np.concatenate([corner, corner + size], 1).astype(np.float32))
    d.node(op, [x, rois, d.indices((r,), 2, kinds=("i64",), negative=False)],
           {"output_height": d.number(1, 3), "output_width": d.number(1, 3), "sampling_ratio": d.number(1, 3),
            "spatial_scale": d.one([None, 0.5]),
            "coordinate_transformation_mode": d.one([None, "half_pixel", "output_half_pixel"])})


@draws("Resize", since=13)
def resize(d, op):
    x = d.value("f32", shape=(1, d.number(1, 2), d.number(1, 5), d.number(1, 5)), exact=True)
    mode = d.one(["nearest", "linear", "cubic"])
    attributes = {"mode": mode, "coordinate_transformation_mode": d.one(
        [None, "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])}
    if mode == "nearest":
        attributes["nearest_mode"] = d.one([None, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    if mode == "cubic":
        attributes["cubic_coeff_a"] = d.one([None, -0.5])
    if d.chance(0.5):
        sizes = list(x.shape[:2]) + [d.number(1, 8), d.number(1, 8)]
        return d.node(op, [x, None, None, d.known(sizes)], attributes)
    scales = [1.0, 1.0, d.one([0.5, 1.0, 2.0, 3.0]), d.one([0.5, 1.0, 2.0, 1.5])]
    if any(int(extent * scale) < 1 for extent, scale in zip(x.shape, scales)):
        scales = [1.0, 1.0, 2.0, 2.0]
    d.node(op, [x, None, d.known(scales, "f32")], attributes)


# --- rows

@draws("Softmax", "LogSoftmax", since=13)
@draws("Hardmax", since=13)
def softmax(d, op):
    x = d.value("f32" if d.chance(0.9) else "f64", exact=op == "Hardmax")
    d.node(op, [x], {"axis": d.axis(x.rank) if d.chance(0.8) else None}, exact=op == "Hardmax")


@draws("Softmax", "LogSoftmax", since=7, until=12)
def old_softmax(d, op):
    x = d.value("f32", rank=(2, 4))
    d.node(op, [x], {"axis": d.number(0, x.rank - 1) if d.chance(0.8) else None})


@draws("LayerNormalization", since=17)
def layer_norm(d, op):
    x = d.value("f32", rank=(1, 4), nonempty=True)
    axis = d.axis(x.rank)
    shape = x.shape[normalized(axis, x.rank):]
    inputs = [x, d.value("f32", shape=shape, special=False)] + ([d.value("f32", shape=shape, special=False)] if d.chance(0.5) else [])
    d.node(op, inputs, {"axis": axis, "epsilon": d.one([None, 1e-3])})


@draws("BatchNormalization", since=15)
def batch_norm(d, op):
    x = d.value("f32", rank=(2, 4))
    c = (x.shape[1],)
    inputs = [x] + [d.value("f32", shape=c, special=False) for _ in range(3)]
    inputs.append(d.leaf(d.array("f32", c, 0.1, 2, special=False)))
    d.node(op, inputs, {"epsilon": d.one([None, 1e-3])})


@draws("InstanceNormalization", since=6)
def instance_norm(d, op):
    x = d.value("f32", rank=(3, 4), nonempty=True)
    c = (x.shape[1],)
    d.node(op, [x, d.value("f32", shape=c, special=False), d.value("f32", shape=c, special=False)])


@draws("GroupNormalization", since=21)
def group_norm(d, op):
    groups = d.number(1, 3)
    x = d.value("f32", shape=(d.number(1, 2), groups * d.number(1, 3), d.extent(), d.extent()))
    c = (x.shape[1],)
    d.node(op, [x, d.value("f32", shape=c, special=False), d.value("f32", shape=c, special=False)], {"num_groups": groups})


@draws("LpNormalization", since=1)
def lp_norm(d, op):
    x = d.value("f32", nonempty=True)
    d.node(op, [x], {"axis": d.axis(x.rank), "p": d.one([None, 1])})


@draws("LRN", since=1)
def lrn(d, op):
    d.node(op, [d.value("f32", rank=(4, 4))], {"size": d.one([1, 3, 5]), "alpha": d.one([None, 0.1])})


@draws("MeanVarianceNormalization", since=13)
def mvn(d, op):
    d.node(op, [d.value("f32", rank=(4, 4), nonempty=True)])


REDUCTIONS = ("ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceLogSum",
              "ReduceLogSumExp", "ReduceSumSquare")


def reduced(d, op):
    kinds = ("f32", "f32", "f64", "i32", "i64") if op in ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd") else ("f32",)
    x = d.value(kinds, rank=(0, 4))
    axes = d.random.sample(range(x.rank), d.number(1, x.rank)) if x.rank and d.chance(0.8) else None
    if axes:
        axes = [a - x.rank if d.chance(0.3) else a for a in axes]
    return x, axes, {"keepdims": d.one([None, 0, 1])}


@draws("ReduceSum", since=13)
@draws(*REDUCTIONS, since=18)
def reduction(d, op):
    x, axes, attributes = reduced(d, op)
    if axes is None and d.chance(0.3):
        attributes["noop_with_empty_axes"] = 1
    inputs = [x, d.known(axes)] if axes is not None else [x]
    d.node(op, inputs, attributes, exact=op in ("ReduceMax", "ReduceMin"))


@draws(*REDUCTIONS, since=7, until=17)
@draws("ReduceSum", since=7, until=12)
def old_reduction(d, op):
    x, axes, attributes = reduced(d, op)
    if axes is not None:
        axes = [normalized(a, x.rank) for a in axes]
    d.node(op, [x], {"axes": axes, **attributes}, exact=op in ("ReduceMax", "ReduceMin"))


@draws("ArgMax", "ArgMin", since=13)
def arg(d, op):
    x = d.value(("f32", "i32"), exact=True, nonempty=True)
    d.node(op, [x], {"axis": d.axis(x.rank), "keepdims": d.one([None, 0]), "select_last_index": d.one([None, 1])},
           exact=True)


@draws("CumSum", since=11)
def cumsum(d, op):
    x = d.value(("f32", "i32"))
    d.node(op, [x, d.known(d.axis(x.rank))], {"exclusive": d.one([None, 1]), "reverse": d.one([None, 1])})


@draws("Trilu", since=14)
def trilu(d, op):
    x = d.value(("f32", "i64"), rank=(2, 4))
    inputs = [x, d.known(d.number(-3, 3))] if d.chance(0.7) else [x]
    d.node(op, inputs, {"upper": d.one([None, 0])}, exact=True)


@draws("TopK", since=11)
def top_k(d, op):
    x = d.value(("f32", "f32", "i64"), exact=True, nonempty=True)
    axis = d.axis(x.rank)
    # The order of what is not sorted is open.
    d.node(op, [x, d.known([d.number(1, x.shape[axis])])], {"axis": axis, "largest": d.one([None, 0])}, outputs=2,
           exact=True)


@draws("OneHot", since=11)
def one_hot(d, op):
    depth = d.number(1, 6)
    indices = d.leaf(d.numpy.integers(-depth - 1, depth + 2, d.shape(0, 3)).astype(np.int64))
    d.node(op, [indices, d.known(depth), d.leaf(d.array("f32", (2,)))], {"axis": d.one([None, 0, -1])}, exact=True)


@draws("ReverseSequence", since=10)
def reverse_sequence(d, op):
    x = d.value("f32", rank=(2, 4), nonempty=True)
    time = d.one([0, 1])
    lengths = d.numpy.integers(1, x.shape[time] + 1, (x.shape[1 - time],))
    d.node(op, [x, d.leaf(lengths.astype(np.int64))], {"time_axis": time, "batch_axis": 1 - time}, exact=True)


@draws("SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", since=13)
def loss(d, op):
    x = d.value("f32", rank=(2, 4), nonempty=True, special=False)
    shape = x.shape[:1] + x.shape[2:]
    labels = d.indices(shape, x.shape[1], kinds=("i64",), negative=False)
    inputs = [x, labels] + ([d.leaf(d.array("f32", (x.shape[1],), 0.1, 2, special=False))] if d.chance(0.4) else [])
    d.node(op, inputs, {"reduction": d.one([None, "mean", "sum", "none"]),
                        "ignore_index": d.one([None, 0]) if not d.refused else None})


# --- movement

@draws("Reshape", since=13)
def reshape(d, op):
    x = d.value(("f32", "i64"), rank=(0, 4))
    count = int(np.prod(x.shape))
    to = [-1] if count else list(x.shape)
    if x.rank >= 2 and count and d.chance(0.6):
        to = [0, -1] if d.chance(0.5) else [x.shape[0] * x.shape[1], -1]
    d.node(op, [x, d.known(to)], exact=True)


@draws("Flatten", since=9)
def flatten(d, op):
    x = d.value("f32")
    d.node(op, [x], {"axis": d.number(0, x.rank) if d.chance(0.8) else None}, exact=True)


@draws("Squeeze", since=13)
def squeeze(d, op):
    x = d.leaf(d.array("f32", d.one([(1, 3, 1), (3, 1), (1,), (2, 1, 3, 1)])))
    ones = [i for i, extent in enumerate(x.shape) if extent == 1]
    d.node(op, [x, d.known([d.one(ones)])] if d.chance(0.7) else [x], exact=True)


@draws("Unsqueeze", since=13)
def unsqueeze(d, op):
    x = d.value("f32", rank=(0, 3))
    d.node(op, [x, d.known([d.number(-x.rank - 1, x.rank)])], exact=True)


@draws("Expand", since=8)
def expand(d, op):
    x = d.leaf(d.array(d.one(["f32", "i64", "bool"]), d.one([(1, 3), (3, 1), (1,), (2, 1, 3), ()])))
    to = [d.number(1, 4) if extent == 1 else extent for extent in x.shape]
    if d.chance(0.4):
        to = [d.number(1, 3)] + to
    d.node(op, [x, d.known(to)], exact=True)


@draws("Transpose", since=1)
def transpose(d, op):
    x = d.value(FLOATS + ("i64", "bool", "u8"))
    order = list(range(x.rank))
    d.random.shuffle(order)
    d.node(op, [x], {"perm": order if d.chance(0.8) else None}, exact=True)


@draws("Concat", since=11)
def concat(d, op):
    x = d.value(("f32", "i64", "bool"))
    axis = d.axis(x.rank)
    inputs = [x]
    for _ in range(d.number(0, 3)):
        shape = list(x.shape)
        shape[axis] = d.number(0 if d.chance(0.1) else 1, 4)
        inputs.append(d.value(x.kind, shape=tuple(shape)))
    d.random.shuffle(inputs)
    d.node(op, inputs, {"axis": axis}, exact=True)


@draws("Split", since=13)
def split(d, op):
    x = d.value(("f32", "i64"), nonempty=True)
    axis = d.axis(x.rank)
    first = d.number(0, x.shape[axis])
    d.node(op, [x, d.known([first, x.shape[axis] - first])], {"axis": axis}, outputs=2, exact=True)


@draws("Tile", since=6)
def tile(d, op):
    x = d.value(("f32", "i64"), rank=(1, 3))
    d.node(op, [x, d.known([d.number(0 if d.chance(0.05) else 1, 3) for _ in x.shape])], exact=True)


@draws("Slice", since=10)
def slices(d, op):
    x = d.value(("f32", "i64", "bool"))
    axes = d.random.sample(range(x.rank), d.number(1, x.rank))
    starts = [d.number(-x.shape[a] - 2, x.shape[a] + 2) for a in axes]
    ends = [d.one([d.number(-x.shape[a] - 2, x.shape[a] + 2), 1 << 40, -(1 << 40)]) for a in axes]
    steps = [d.one([1, 1, 2, 3, -1, -2]) for _ in axes]
    d.node(op, [x, d.known(starts), d.known(ends), d.known([a - x.rank if d.chance(0.3) else a for a in axes]),
                d.known(steps)], exact=True)


@draws("Pad", since=13)
def pad(d, op):
    x = d.value("f32", nonempty=True)
    modes = ["constant", "constant", "reflect", "edge"] + (["wrap"] if d.graph.opset >= 19 else [])
    mode = d.one(modes)
    most = [3 if mode in ("constant", "edge") else extent - 1 for extent in x.shape]
    pads = [d.number(0, max(0, min(3, m))) for m in most + most]
    if mode == "constant" and d.chance(0.2):
        pads[0] = -d.number(0, min(1, x.shape[0]))
    inputs = [x, d.known(pads)]
    if mode == "constant" and d.chance(0.5):
        inputs.append(d.leaf(d.array("f32", ())))
    d.node(op, inputs, {"mode": mode}, exact=True)


@draws("DepthToSpace", since=13)
def depth_to_space(d, op):
    x = d.value("f32", shape=(d.number(1, 2), 4 * d.number(1, 2), d.extent(), d.extent()))
    d.node(op, [x], {"blocksize": 2, "mode": d.one([None, "DCR", "CRD"])}, exact=True)


@draws("SpaceToDepth", since=13)
def space_to_depth(d, op):
    x = d.value("f32", shape=(d.number(1, 2), d.number(1, 3), 2 * d.number(1, 4), 2 * d.number(1, 4)))
    d.node(op, [x], {"blocksize": 2}, exact=True)


@draws("CenterCropPad", since=18)
def crop(d, op):
    x = d.value("f32", rank=(2, 3), nonempty=True)
    d.node(op, [x, d.known([d.number(1, 6) for _ in x.shape])], exact=True)


@draws("Gather", since=11)
def gather(d, op):
    x = d.value(("f32", "i64", "f64", "bool"), nonempty=True)
    axis = d.axis(x.rank)
    d.node(op, [x, d.indices(d.shape(0, 2), x.shape[axis])], {"axis": axis if d.chance(0.7) or axis else None}, exact=True)


@draws("GatherElements", since=13)
def gather_elements(d, op):
    x = d.value(("f32", "i64"), nonempty=True)
    axis = d.axis(x.rank)
    shape = [d.number(1, extent) for extent in x.shape]
    shape[axis] = d.number(1, 5)
    d.node(op, [x, d.indices(tuple(shape), x.shape[axis])], {"axis": axis}, exact=True)


def vectors(d, shape, first, lead, depth):
    parts = [d.numpy.integers(-shape[first + i] if d.chance(0.3) else 0, shape[first + i], lead) for i in range(depth)]
    array = np.stack(parts, -1).astype(np.int64)
    if array.size and d.chance(0.04):
        array.reshape(-1)[d.number(0, array.size - 1)] = d.one([50, -50, 1 << 30])
        d.refused = True
    return d.leaf(array)


@draws("GatherND", since=12)
def gather_nd(d, op):
    x = d.value(("f32", "i64"), rank=(2, 4), nonempty=True)
    batch = d.number(0, 1)
    depth = d.number(1, x.rank - batch)
    lead = x.shape[:batch] + d.shape(1, 2)
    if 0 in lead:
        lead = x.shape[:batch] + (2,)
    d.node(op, [x, vectors(d, x.shape, batch, lead, depth)], {"batch_dims": batch or None}, exact=True)


@draws("ScatterElements", since=16)
def scatter_elements(d, op):
    x = d.value(("f32", "f32", "i64"), nonempty=True)
    axis = d.axis(x.rank)
    hows = [None, "add", "mul"] + (["max", "min"] if d.graph.opset >= 18 else [])
    how = d.one(hows)
    shape = [d.number(1, extent) for extent in x.shape]
    if how is None:  # no place twice
        shape[axis] = 1
    indices = d.indices(tuple(shape), x.shape[axis])
    d.node(op, [x, indices, d.value(x.kind, shape=tuple(shape))], {"axis": axis, "reduction": how})


@draws("ScatterND", since=16)
def scatter_nd(d, op):
    x = d.value(("f32", "f32", "i64"), nonempty=True)
    depth = d.number(1, x.rank)
    hows = [None, "add", "mul"] + (["max", "min"] if d.graph.opset >= 18 else [])
    how = d.one(hows)
    lead = (1,) if how is None else (d.number(1, 4),)
    d.node(op, [x, vectors(d, x.shape, 0, lead, depth), d.value(x.kind, shape=lead + x.shape[depth:])],
           {"reduction": how})


@draws("EyeLike", since=9)
def eye_like(d, op):
    d.node(op, [d.value("f32", shape=(d.extent(), d.extent()))], {"k": d.one([None, 1, -1])}, exact=True)


# --- sequences

@draws("RNN", "GRU", "LSTM", since=14)
def recurrent(d, op):
    steps, batch, inputs, hidden = d.number(1, 4), d.number(1, 3), d.number(1, 4), d.number(1, 4)
    direction = d.one([None, "forward", "reverse", "bidirectional"])
    directions = 2 if direction == "bidirectional" else 1
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[op]
    plain = {"special": False}
    values = [d.value("f32", shape=(steps, batch, inputs), **plain),
              d.value("f32", shape=(directions, gates * hidden, inputs), **plain),
              d.value("f32", shape=(directions, gates * hidden, hidden), **plain)]
    values.append(d.value("f32", shape=(directions, 2 * gates * hidden), **plain) if d.chance(0.6) else None)
    values.append(d.leaf(d.numpy.integers(1, steps + 1, (batch,)).astype(np.int32)) if d.chance(0.4) else None)
    values.append(d.value("f32", shape=(directions, batch, hidden), **plain) if d.chance(0.4) else None)
    attributes = {"hidden_size": hidden, "direction": direction}
    if op == "GRU":
        attributes["linear_before_reset"] = d.one([None, 1])
    d.node(op, values, attributes, outputs=2)


# --- quantisation

@draws("QuantizeLinear", since=13)
def quantize(d, op):
    x = d.value("f32", exact=True, special=False)
    kind = d.one(["u8", "i8"])
    # A power of two: the division is exact, and ties are.
    d.node(op, [x, d.leaf(np.array(d.one([0.25, 0.5, 2.0]), np.float32)), d.leaf(d.array(kind, (), 0, 9))], exact=True)


@draws("DequantizeLinear", since=13)
def dequantize(d, op):
    kind = d.one(["u8", "i8"])
    x = d.value(kind, rank=(1, 3))
    d.node(op, [x, d.leaf(np.array(d.one([0.25, 0.1]), np.float32)), d.leaf(d.array(kind, (), 0, 9))])


@draws("DynamicQuantizeLinear", since=11)
def dynamic(d, op):
    d.node(op, [d.value("f32", exact=True, special=False, nonempty=True)], outputs=3)


def scale_of(d, low=0.01, high=0.02):
    return d.leaf(np.array(d.numpy.uniform(low, high), np.float32))


@draws("QLinearMatMul", since=10)
def qlinear_matmul(d, op):
    m, k, n = d.extent(), d.extent(), d.extent()
    kind = d.one(["u8", "i8"])
    point = lambda: d.leaf(d.array(kind, (), 0, 9))
    # A quotient may lie at a half: results of the two then differ by one.
    d.node(op, [d.value(kind, shape=(m, k), low=0, high=20), scale_of(d), point(),
                d.value(kind, shape=(k, n), low=0, high=20), scale_of(d), point(), scale_of(d, 0.7, 0.9), point()])


@draws("QLinearConv", since=10)
def qlinear_conv(d, op):
    attributes, kernel, reach = window(d, 2)
    attributes["dilations"] = None
    inner, outer = d.number(1, 3), d.number(1, 3)
    point = lambda: d.leaf(d.array("u8", (), 0, 9))
    d.node(op, [d.value("u8", shape=(1, inner) + tuple(r + d.number(0, 5) for r in reach), low=0, high=20), scale_of(d),
                point(), d.value("u8", shape=(outer, inner) + tuple(kernel), low=0, high=20), scale_of(d),
                d.leaf(d.array("u8", (), 0, 9), constant=True), scale_of(d, 0.7, 0.9), point()], attributes)


# --- transforms, attention

@draws("HannWindow", "HammingWindow", "BlackmanWindow", since=17)
def window_function(d, op):
    d.node(op, [d.known(d.number(2, 9))], {"periodic": d.one([None, 0])})


@draws("DFT", since=17, until=19)
def old_dft(d, op):
    x = d.value("f32", shape=(d.number(1, 2), d.number(1, 9), d.number(1, 4), d.one([1, 2])), special=False)
    inverse = d.one([None, 1]) if x.shape[-1] == 2 else None
    d.node(op, [x], {"axis": d.number(1, 2), "inverse": inverse, "onesided": d.one([None, 1]) if not inverse else None})


@draws("DFT", since=20)
def dft(d, op):
    x = d.value("f32", shape=(d.number(1, 2), d.number(1, 9), d.number(1, 4), d.one([1, 2])), special=False)
    inverse = d.one([None, 1]) if x.shape[-1] == 2 else None
    d.node(op, [x, None, d.known(d.one([1, 2, -2]))],
           {"inverse": inverse, "onesided": d.one([None, 1]) if not inverse and x.shape[-1] == 1 else None})


@draws("DeformConv", since=19)
def deformable(d, op):
    n, c, m, h, w = d.number(1, 2), d.number(1, 3), d.number(1, 3), d.number(3, 6), d.number(3, 6)
    kernel, pads = [d.number(1, 2), d.number(1, 2)], [d.number(0, 1) for _ in range(4)]
    oh, ow = h + pads[0] + pads[2] - kernel[0] + 1, w + pads[1] + pads[3] - kernel[1] + 1
    plain = {"special": False}
    inputs = [d.value("f32", shape=(n, c, h, w), **plain), d.value("f32", shape=(m, c, *kernel), **plain),
              d.leaf(d.array("f32", (n, 2 * kernel[0] * kernel[1], oh, ow), -1.3, 1.3, special=False), exact=False)]
    d.node(op, inputs, {"pads": pads, "kernel_shape": kernel})


@draws("RMSNormalization", since=23)
def rms_norm(d, op):
    x = d.value("f32", rank=(1, 4), nonempty=True)
    axis = d.axis(x.rank)
    d.node(op, [x, d.value("f32", shape=x.shape[normalized(axis, x.rank):], special=False)],
           {"axis": axis, "epsilon": d.one([None, 1e-3])})


@draws("RotaryEmbedding", since=23)
def rotary(d, op):
    batch, heads, length, half = d.number(1, 2), d.number(1, 2), d.number(1, 4), d.number(1, 3)
    most = length + d.number(0, 3)
    cache = lambda: d.value("f32", shape=(most, half), special=False)
    d.node(op, [d.value("f32", shape=(batch, heads, length, 2 * half)), cache(), cache(),
                d.leaf(d.numpy.integers(0, most, (batch, length)).astype(np.int64))],
           {"interleaved": d.one([None, 1])})


@draws("Attention", since=23)
def attention(d, op):
    batch, heads, queries, keys, depth = d.number(1, 2), d.number(1, 2), d.number(1, 4), d.number(1, 4), d.number(1, 4)
    share = d.one([1, 2])
    plain = {"special": False}
    inputs = [d.value("f32", shape=(batch, heads * share, queries, depth), **plain),
              d.value("f32", shape=(batch, heads, keys, depth), **plain),
              d.value("f32", shape=(batch, heads, keys, d.number(1, 4)), **plain)]
    if d.chance(0.4):
        inputs.append(d.value("f32", shape=(queries, keys), **plain))
    d.node(op, inputs, {"is_causal": d.one([None, 1]), "scale": d.one([None, 0.5]), "softcap": d.one([None, 2.0])})


# --- values that must be known

@draws("Compress", since=11)
def compress(d, op):
    x = d.value("f32", nonempty=True)
    axis = d.axis(x.rank) if d.chance(0.7) else None
    extent = x.shape[axis] if axis is not None else int(np.prod(x.shape))
    d.node(op, [x, d.leaf(d.numpy.random(d.number(1, extent)) < 0.6, constant=True)], {"axis": axis}, exact=True)


@draws("NonZero", since=13)
def nonzero(d, op):
    d.node(op, [d.leaf(d.array(d.one(["f32", "i64", "bool"]), d.shape(1, 3), -1, 1), constant=True)], exact=True)


@draws("Unique", since=11)
def unique(d, op):
    x = d.leaf(d.array(d.one(["f32", "i64"]), d.shape(1, 2), -1, 1, special=False), constant=True)
    d.node(op, [x], {"sorted": d.one([None, 0]), "axis": d.axis(x.rank) if d.chance(0.4) and 0 not in x.shape else None},
           outputs=4, exact=True)


# --- values without inputs

@draws("ConstantOfShape", since=9)
def constant_of_shape(d, op):
    d.node(op, [d.known([d.number(0 if d.chance(0.1) else 1, 4) for _ in range(d.number(1, 3))])], exact=True)


@draws("Range", since=11)
def ranges(d, op):
    start, limit, delta = d.one([(0, 5, 1), (5, 0, -2), (1, 1, 1), (-3, 4, 2)])
    kind = d.one(["i64", "f32", "i32"])
    d.node(op, [d.known(start, kind), d.known(limit, kind), d.known(delta, kind)], exact=True)


@draws("Shape", since=1)
@draws("Size", since=1)
def shapes(d, op):
    d.node(op, [d.value(("f32", "i64"), rank=(0, 4))], exact=True)


def usable(opset):
    return [(op, function) for op, since, until, function in TABLE
            if since <= opset and (until is None or opset <= until)]


def draw_graph(d):
    """One to five nodes; what no later node reads are the outputs."""
    table = usable(d.graph.opset)
    for _ in range(d.one([1, 1, 2, 2, 3, 4, 5])):
        op, function = d.one(table)
        before, first, serial = len(d.values), d.graph.copy(), d.serial
        try:
            function(d, op)
        except (ValueError, IndexError):  # nothing fits an extent of zero
            d.graph, d.values = first, d.values[:before]
            continue
        if not d.settle():
            break
    read = {name for node in d.graph.nodes for name in node[1]}
    d.graph.outputs = [name for node in d.graph.nodes for name in node[2] if name not in read or d.chance(0.15)]
    if not d.graph.outputs and d.graph.nodes:
        d.graph.outputs = list(d.graph.nodes[-1][2])
    graph = d.graph.without_unread()
    if graph.inputs and d.chance(0.1):
        name = d.one(sorted(graph.inputs))
        graph.defaults[name] = np.zeros_like(graph.inputs[name])
    if graph.constants and d.chance(0.1):
        graph.listed = [d.one(sorted(graph.constants))]
    return graph
