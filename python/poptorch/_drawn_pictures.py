"""Generated pictures of three data sets, in the layouts and sizes of the real ones, and their files."""

import hashlib
import json
import pickle
import struct

import numpy as np

from . import _drawn_shapes as shapes

# Pictures that are computed at a time: about 60 MB of intermediate arrays at 28 x 28.
_AT_ONCE = 1000
_CLASSES_OF_CIFAR = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


def _in_parts(draw, labels, seed):
    """`draw(labels, random)` for parts of the labels, each with numbers of its own: any count begins with the same."""
    parts = [draw(labels[begin:begin + _AT_ONCE], np.random.default_rng([seed, begin]))
             for begin in range(0, len(labels), _AT_ONCE)]
    return np.concatenate(parts) if parts else np.zeros((0,), np.uint8)


def _bytes(values):
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def digits(labels, seed):
    """[count, 28, 28] bytes: digits written by pens of several widths."""
    fields = shapes.distances(shapes.DIGITS)

    def draw(part, drawn):
        far = shapes.look_up(fields, part, drawn, 28, turn=0.15, slant=0.12, scale=(0.62, 0.85), shift=0.04)
        pen = drawn.normal(0, 0.018, (len(part), 1, 1))
        ink = 1 / (1 + np.exp(np.clip((far - pen) / 0.022, -30, 30)))
        return _bytes(255 * ink + drawn.normal(0, 6, far.shape) * (ink > 0.05))

    return _in_parts(draw, labels, seed)


def clothes(labels, seed):
    """[count, 28, 28] bytes: pieces of clothing of some cloth."""
    fields = shapes.distances(shapes.CLOTHES)
    line = np.arange(28) / 28

    def draw(part, drawn):
        count = len(part)
        far = shapes.look_up(fields, part, drawn, 28, turn=0.04, slant=0.03, scale=(0.78, 0.95), shift=0.02)
        cover = 1 / (1 + np.exp(np.clip(far / 0.012, -30, 30)))
        shade, stripes, waves, begin = (drawn.uniform(*limits, (count, 1, 1))
                                        for limits in ((110, 235), (0, 45), (2, 12), (0, 6.3)))
        along = np.where(drawn.random((count, 1, 1)) < 0.5, line[None, :, None], line[None, None, :])
        cloth = shade + stripes * np.sin(2 * np.pi * waves * along + begin) + drawn.normal(0, 10, far.shape)
        return _bytes(cover * np.maximum(cloth, 20))

    return _in_parts(draw, labels, seed)


# Color of the ground above and below the horizon, red green blue, for things of the air, the road, the meadow, the sea.
_GROUNDS = {0: ((150, 190, 230), (175, 205, 235)), 1: ((170, 175, 180), (95, 95, 100)), 2: ((160, 195, 225), (90, 140, 70)),
            3: ((165, 140, 115), (120, 95, 75)), 4: ((110, 140, 90), (95, 120, 60)), 5: ((150, 150, 135), (95, 130, 70)),
            6: ((70, 105, 60), (85, 90, 55)), 7: ((155, 180, 190), (125, 135, 75)), 8: ((165, 190, 215), (50, 90, 140)),
            9: ((185, 190, 195), (105, 105, 105))}


def things(labels, seed):
    """[count, 3, 32, 32] bytes: things of any color before their usual ground."""
    fields = shapes.distances(shapes.THINGS)
    above, below = (np.array([_GROUNDS[number][place] for number in range(10)], np.float32) for place in (0, 1))

    def draw(part, drawn):
        count = len(part)
        far = shapes.look_up(fields, part, drawn, 32, turn=0.08, slant=0.06, scale=(0.7, 1.0), shift=0.05)
        cover = 1 / (1 + np.exp(np.clip(far / 0.015, -30, 30)))[:, None]
        horizon = drawn.uniform(0.35, 0.7, (count, 1, 1, 1))
        lower = 1 / (1 + np.exp(np.clip((horizon - np.arange(32)[None, None, :, None] / 32) / 0.03, -30, 30)))
        ground = above[part][:, :, None, None] * (1 - lower) + below[part][:, :, None, None] * lower
        ground = ground * drawn.uniform(0.6, 1.2, (count, 1, 1, 1)) + drawn.normal(0, 12, (count, 3, 32, 32))
        color = drawn.uniform(20, 235, (count, 3, 1, 1)) * (1.15 - 0.3 * np.arange(32)[None, None, :, None] / 32)
        return _bytes(cover * (color + drawn.normal(0, 8, (count, 3, 32, 32))) + (1 - cover) * ground)

    return _in_parts(draw, labels, seed)


def labels_of(count, seed):
    """Ten classes in equal parts, in an order that is drawn."""
    return np.random.default_rng([seed, 77]).permutation(np.arange(count) % 10).astype(np.uint8)


def _idx(array):
    """The bytes of an IDX file of unsigned bytes."""
    return struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape) + array.tobytes()


def idx_files(draw, train, test, seed):
    """(name, bytes) of the four files of MNIST and its successors."""
    for stem, count, own_seed in (("train", train, seed), ("t10k", test, seed + 1)):
        labels = labels_of(count, own_seed)
        yield f"{stem}-images-idx3-ubyte", _idx(draw(labels, own_seed))
        yield f"{stem}-labels-idx1-ubyte", _idx(labels)


def cifar_files(train, test, seed):
    """(name, bytes) of CIFAR-10's files for Python, and of `generated.json` with their MD5 sums."""
    sums = {}
    batches = [(f"data_batch_{number + 1}", train // 5 + (number < train % 5), seed + number) for number in range(5)]
    for name, count, own_seed in [*batches, ("test_batch", test, seed + 5)]:
        labels = labels_of(count, own_seed)
        pictures = things(labels, own_seed).reshape(count, -1)
        held = pickle.dumps({"batch_label": f"generated {name}", "labels": labels.tolist(), "data": pictures,
                             "filenames": [f"generated_{index}.png" for index in range(count)]}, protocol=2)
        sums[name] = hashlib.md5(held).hexdigest()
        yield name, held
    held = pickle.dumps({"label_names": _CLASSES_OF_CIFAR, "num_cases_per_batch": train // 5, "num_vis": 3072}, protocol=2)
    sums["batches.meta"] = hashlib.md5(held).hexdigest()
    yield "batches.meta", held
    yield "generated.json", json.dumps(sums, indent=1).encode()
