"""Where results differ, said in a few words: the same words for the same kind of difference."""
import numpy as np

from ask import Refused

# Sums of a few dozen products in another order, and functions of a few roundings: of f32, of the largest number of
# the result or of 1. What is wrong is mostly wrong by more.
RELATIVE = {"float64": 1e-6, "float32": 2e-4, "float16": 2e-2}

# Where a sum cancels and a logarithm follows, a rounding alone moves a result by more than that: such a
# result may differ by this many times of what it moves by, but never by more than CANCELLED times the rule above.
ROUNDINGS, CANCELLED = 16, 10


def difference(a, b, moved=0.0):
    """Empty where the two arrays agree. `moved`: what roundings move the result by."""
    if a.dtype != b.dtype:
        return f"types {a.dtype} and {b.dtype}"
    if a.shape != b.shape:
        return f"shapes {a.shape} and {b.shape}"
    if a.size == 0:
        return ""
    if not np.issubdtype(a.dtype, np.floating):
        return "" if np.array_equal(a, b) else "numbers"
    allowed = RELATIVE[a.dtype.name]
    a, b = a.astype(np.float64), b.astype(np.float64)
    if not np.array_equal(np.isnan(a), np.isnan(b)):
        return "NaN"
    if not np.array_equal(np.isinf(a), np.isinf(b)) or np.any(np.sign(a[np.isinf(a)]) != np.sign(b[np.isinf(b)])):
        return "infinities"
    finite = np.isfinite(a)
    if not finite.any():
        return ""
    a, b = a[finite], b[finite]
    scale = max(1.0, float(np.abs(b).max()))
    allowed *= scale
    return "" if np.all(np.abs(a - b) <= max(allowed, min(ROUNDINGS * moved, CANCELLED * allowed))) else "numbers"


def between(a, b, moved):
    for name in a:
        if name not in b:
            return f"output {name} is missing"
        if found := difference(a[name], b[name], moved.get(name, 0.0)):
            return found
    return ""


def rounded(arrays, random):
    """The floating-point arrays, each element moved by up to one unit in its last place."""
    def move(array):
        if not np.issubdtype(array.dtype, np.floating):
            return array
        with np.errstate(all="ignore"):
            return (array * (1 + random.uniform(-1, 1, array.shape) * np.finfo(array.dtype).eps)).astype(array.dtype)
    return {name: move(array) for name, array in arrays.items()}


def movement(results, others):
    """By output: the largest difference of finite numbers between `results` and each of `others`."""
    moved = {}
    for name, array in results.items():
        if not np.issubdtype(array.dtype, np.floating):
            continue
        for other in others:
            with np.errstate(all="ignore"):
                away = np.abs(array.astype(np.float64) - other[name].astype(np.float64))
            away = away[np.isfinite(away)]
            moved[name] = max(moved.get(name, 0.0), float(away.max()) if away.size else 0.0)
    return moved


def judge(graph, ours, peer, refused_on_purpose=False, moved={}):
    """(kind, detail): kind is empty where nothing is wrong. Kinds begin with whom it is between. `moved`: by output,
    what roundings move it by."""
    crashed = [target for target, result in ours.items() if isinstance(result, Refused) and result.code in ("crash", "exception", "internal")]
    if crashed:
        return f"{crashed[0]}: {ours[crashed[0]].code}", ours[crashed[0]].what
    done = {target: result for target, result in ours.items() if not isinstance(result, Refused)}
    for target, result in ours.items():
        if isinstance(result, Refused) and done and result.code not in ("unsupported", "out of memory"):
            return f"{target} refuses, {next(iter(done))} does not", result.what
    reference = done.get("reference")
    for target, result in done.items():
        if reference is not None and (found := between(reference, result, moved)):
            return f"{target} and reference: {found}", ""
    if isinstance(peer, Refused):
        if done and refused_on_purpose and peer.code == "run":
            return "not refused", peer.what
        return "", ""
    if reference is not None and (found := between(peer, reference, moved)):
        return f"ONNX Runtime: {found}", ""
    return "", ""
