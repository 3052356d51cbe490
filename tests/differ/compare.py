"""Where results differ, said in a few words: the same words for the same kind of difference."""
import numpy as np

from ask import Refused

# Sums of a few dozen products in another order, and functions of a few roundings: of f32, of the largest number of
# the result or of 1. What is wrong is mostly wrong by more.
RELATIVE = {"float64": 1e-6, "float32": 2e-4, "float16": 2e-2}


def difference(a, b):
    """Empty where the two arrays agree."""
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
    return "" if np.all(np.abs(a - b) <= allowed * scale) else "numbers"


def between(a, b):
    for name in a:
        if name not in b:
            return f"output {name} is missing"
        if found := difference(a[name], b[name]):
            return found
    return ""


def judge(graph, ours, peer, refused_on_purpose=False):
    """(kind, detail): kind is empty where nothing is wrong. Kinds begin with whom it is between."""
    crashed = [target for target, result in ours.items() if isinstance(result, Refused) and result.code in ("crash", "exception", "internal")]
    if crashed:
        return f"{crashed[0]}: {ours[crashed[0]].code}", ours[crashed[0]].what
    done = {target: result for target, result in ours.items() if not isinstance(result, Refused)}
    for target, result in ours.items():
        if isinstance(result, Refused) and done and result.code not in ("unsupported", "out of memory"):
            return f"{target} refuses, {next(iter(done))} does not", result.what
    reference = done.get("reference")
    for target, result in done.items():
        if reference is not None and (found := between(reference, result)):
            return f"{target} and reference: {found}", ""
    if isinstance(peer, Refused):
        if done and refused_on_purpose and peer.code == "run":
            return "not refused", peer.what
        return "", ""
    if reference is not None and (found := between(peer, reference)):
        return f"ONNX Runtime: {found}", ""
    return "", ""
