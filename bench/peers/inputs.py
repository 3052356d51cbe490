"""What contenders are fed with: the same random arrays for all that take them, whole numbers from the range that the model has."""

import numpy

# [lowest, below) of inputs that are whole numbers, by their names in the model files.
WHOLE = {
    "bert-small": {"input_ids": (0, 1024), "attention_mask": (1, 2), "labels": (0, 1024)},
    "distilbert": {"input_ids": (0, 30522), "attention_mask": (1, 2), "labels": (0, 30522)},
    "bert-base-128": {"input_ids": (0, 30522), "attention_mask": (1, 2), "start_label": (0, 128), "end_label": (0, 128)},
    "bert-base-384": {"input_ids": (0, 30522), "attention_mask": (1, 2), "start_label": (0, 384), "end_label": (0, 384)},
}
OTHERWISE = (0, 2)  # flags and indices into anything

TYPES = {"f32": "float32", "f64": "float64", "f16": "float16", "i64": "int64", "i32": "int32", "i8": "int8", "u8": "uint8",
         "bool": "bool"}


def array(model, name, kind, extents, seed=1):
    """Numbers that depend on the input's name and shape alone; in [0, 1) where they are not whole."""
    generator = numpy.random.default_rng([seed, *name.encode()])
    if kind.startswith("f"):
        return generator.random(extents, dtype="float32").astype(TYPES[kind])
    low, below = WHOLE.get(model, {}).get(name, OTHERWISE)
    return generator.integers(low, below, extents).astype(TYPES[kind])
