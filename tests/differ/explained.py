"""Differences from ONNX Runtime that are no fault of ours: what the operator's text says, and what it computes.

An entry is a function of the cut-down graph and the kind of difference that gives the reason, or None. docs/onnx.md
has the same list for users.
"""
import numpy as np


def explained(graph, kind):
    operators = {node[0] for node in graph.nodes}
    if kind == "not refused" and operators & {"Shape", "Size"}:
        return "what nobody reads the elements of is not computed"
    if not kind.startswith("ONNX Runtime"):
        return None
    arrays = [array for array in {**graph.inputs, **graph.constants}.values() if np.issubdtype(array.dtype, np.floating)]
    has_nan = any(np.isnan(array).any() for array in arrays)
    has_infinity = any(np.isinf(array).any() for array in arrays)
    for names, holds, reason in RULES:
        if operators & names and holds(kind, has_nan, has_infinity, graph):
            return reason
    return None


def with_nan(kind, has_nan, has_infinity, graph):
    return has_nan


def with_special(kind, has_nan, has_infinity, graph):
    return has_nan or has_infinity


def with_infinity(kind, has_nan, has_infinity, graph):
    return has_infinity


def always(kind, has_nan, has_infinity, graph):
    return True


def fractional(kind, has_nan, has_infinity, graph):
    return any(node[3].get("coordinate_transformation_mode") == "align_corners" for node in graph.nodes)


def cut_off(kind, has_nan, has_infinity, graph):
    return any(str(node[3].get("auto_pad", "")).startswith("SAME") for node in graph.nodes)


def integers(kind, has_nan, has_infinity, graph):
    return any(array.dtype.kind in "iu" for array in graph.inputs.values())


def one_place(kind, has_nan, has_infinity, graph):
    return any(1 in array.tolist()[2:] for array in graph.constants.values() if array.ndim == 1 and array.size in (4, 5)) or \
        any(1 in array.tolist()[2:] for array in graph.inputs.values() if array.ndim == 1 and array.size in (4, 5))


RULES = [
    ({"MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "Hardmax", "ScatterElements", "ScatterND",
      "TopK"}, with_nan, "NaN is the largest and the smallest, as in NumPy; it is left out"),
    ({"MaxPool", "GlobalMaxPool"}, with_infinity, "a window of minus infinities; it gives the lowest finite number"),
    ({"LogSoftmax", "Softmax"}, with_special, "a row with NaN or an infinity above is NaN; of f64 it is numbers"),
    ({"Clip"}, with_infinity, "without a limit infinity stays, as in NumPy; it becomes the largest finite number"),
    ({"LRN"}, with_special, "sums of windows; a running sum goes on being NaN behind an infinity"),
    ({"Conv", "ConvTranspose", "InstanceNormalization", "BatchNormalization", "GroupNormalization", "LayerNormalization",
      "MeanVarianceNormalization"}, with_special,
     "what is multiplied with what: zeros of the padding with infinities, a scale before or behind a shift"),
    ({"MaxPool", "AveragePool", "LpPool"}, cut_off, "automatic padding is never below zero; elements are cut off at both ends"),
    ({"AffineGrid"}, one_place, "one position along an axis is its middle, as in PyTorch; it is the end"),
    ({"Clip"}, with_nan, "a limit that is NaN makes NaN, as Min and Max do; it is left out"),
    ({"ReduceProd"}, integers, "integers that are too large wrap around, as in NumPy; they are multiplied as another type"),
    ({"Sign"}, with_nan, "the sign of NaN is NaN, as in NumPy; it is 0"),
    ({"ReduceLogSumExp"}, with_special, "NaN beside an infinity is NaN; it is the infinity"),
    ({"MeanVarianceNormalization"}, always, "a line of one element is 0; it is NaN"),
    ({"GroupNormalization", "InstanceNormalization"}, always, "the variance of its parts; the mean of squares less a square"),
    ({"DynamicQuantizeLinear"}, always, "nothing but zeros has the scale 1 / 255, as in ONNX's own program; it has 1"),
    ({"Resize"}, fractional, "corners are aligned by the length that the scale makes, a fraction; by the whole length"),
    ({"Resize"}, with_special, "what has no weight is not read; it is multiplied by zero"),
]
