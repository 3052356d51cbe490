"""Shapes that generated pictures show, and drawing many of them at once: turned, scaled, slanted, noisy.

A shape is a list of parts in the unit square, y downward: ("line", points, half width), ("area", points) a filled polygon,
("disc", x, y, radius x, radius y). Distances to it are computed once on a fine grid; pictures look them up.
"""

import numpy as np

_GRID = 96
# Pictures show the square from -MARGIN to 1 + MARGIN.
_MARGIN = 0.25


def _arc(x, y, radius_x, radius_y, begin, end, count=14):
    """Points of an ellipse's arc; angles in turns, 0 to the right, clockwise as y goes downward."""
    angles = 2 * np.pi * np.linspace(begin, end, count)
    return [(x + radius_x * np.cos(a), y + radius_y * np.sin(a)) for a in angles]


_PEN = 0.055

DIGITS = [
    [("line", _arc(0.5, 0.5, 0.24, 0.4, 0, 1, 24), _PEN)],
    [("line", [(0.34, 0.26), (0.53, 0.1), (0.53, 0.9)], _PEN)],
    [("line", [*_arc(0.5, 0.32, 0.24, 0.22, 0.5, 1.08), (0.26, 0.9), (0.77, 0.9)], _PEN)],
    [("line", _arc(0.47, 0.3, 0.23, 0.2, 0.55, 1.25), _PEN), ("line", _arc(0.47, 0.7, 0.26, 0.2, 0.75, 1.45), _PEN)],
    [("line", [(0.62, 0.92), (0.62, 0.1), (0.24, 0.64), (0.8, 0.64)], _PEN)],
    [("line", [(0.74, 0.1), (0.32, 0.1), (0.3, 0.46)], _PEN), ("line", _arc(0.48, 0.65, 0.26, 0.25, 0.65, 1.42), _PEN)],
    [("line", [(0.66, 0.1), (0.4, 0.3), (0.28, 0.62)], _PEN), ("line", _arc(0.5, 0.69, 0.23, 0.21, 0, 1, 20), _PEN)],
    [("line", [(0.24, 0.1), (0.76, 0.1), (0.42, 0.92)], _PEN)],
    [("line", _arc(0.5, 0.29, 0.19, 0.19, 0, 1, 20), _PEN), ("line", _arc(0.5, 0.7, 0.24, 0.21, 0, 1, 20), _PEN)],
    [("line", _arc(0.5, 0.32, 0.22, 0.22, 0, 1, 20), _PEN), ("line", [(0.72, 0.32), (0.66, 0.62), (0.52, 0.92)], _PEN)],
]

_SLEEVES = [(0.3, 0.12), (0.7, 0.12), (0.98, 0.36), (0.86, 0.48), (0.72, 0.38)]
_LONG = [(0.3, 0.1), (0.7, 0.1), (0.88, 0.3), (0.98, 0.86), (0.84, 0.88), (0.74, 0.44)]
_BODY = [(0.74, 0.92), (0.26, 0.92)]


def _mirrored(points):
    return [(1 - x, y) for x, y in reversed(points)]


CLOTHES = [
    [("area", [*_SLEEVES, *_BODY, *_mirrored(_SLEEVES[2:])])],
    [("area", [(0.3, 0.06), (0.7, 0.06), (0.76, 0.95), (0.57, 0.95), (0.5, 0.35), (0.43, 0.95), (0.24, 0.95)])],
    [("area", [*_LONG, *_BODY, *_mirrored(_LONG[2:])])],
    [("area", [(0.36, 0.05), (0.64, 0.05), (0.6, 0.36), (0.8, 0.95), (0.2, 0.95), (0.4, 0.36)])],
    [("area", [*_LONG, (0.78, 0.96), (0.53, 0.96), (0.5, 0.14), (0.47, 0.96), (0.22, 0.96), *_mirrored(_LONG[2:])])],
    [("line", [(0.05, 0.78), (0.5, 0.7), (0.95, 0.8)], 0.05), ("line", [(0.2, 0.74), (0.45, 0.42), (0.6, 0.72)], 0.03),
     ("line", [(0.75, 0.74), (0.9, 0.5)], 0.03)],
    [("area", [*_LONG, *_BODY, *_mirrored(_LONG[2:])]), ("area", [(0.38, 0.02), (0.62, 0.02), (0.66, 0.14), (0.34, 0.14)]),
     ("line", [(0.26, 0.92), (0.2, 0.99), (0.5, 0.93), (0.8, 0.99), (0.74, 0.92)], 0.04)],
    [("area", [(0.05, 0.5), (0.3, 0.52), (0.6, 0.36), (0.7, 0.5), (0.95, 0.62), (0.97, 0.76), (0.05, 0.76)])],
    [("area", [(0.12, 0.4), (0.88, 0.4), (0.94, 0.92), (0.06, 0.92)]), ("line", _arc(0.5, 0.4, 0.22, 0.26, 0.5, 1), 0.035)],
    [("area", [(0.2, 0.08), (0.56, 0.08), (0.58, 0.52), (0.92, 0.68), (0.94, 0.86), (0.2, 0.86)]),
     ("area", [(0.2, 0.84), (0.34, 0.84), (0.34, 0.95), (0.2, 0.95)])],
]

_LEGS = [("line", [(x, 0.6), (x, 0.95)], 0.035) for x in (0.3, 0.42, 0.62, 0.74)]

THINGS = [
    [("disc", 0.5, 0.5, 0.45, 0.07), ("area", [(0.44, 0.5), (0.56, 0.5), (0.4, 0.12), (0.32, 0.12)]),
     ("area", [(0.44, 0.5), (0.56, 0.5), (0.4, 0.88), (0.32, 0.88)]), ("area", [(0.06, 0.5), (0.16, 0.5), (0.08, 0.3)])],
    [("area", [(0.05, 0.55), (0.22, 0.52), (0.34, 0.34), (0.68, 0.34), (0.8, 0.52), (0.95, 0.58), (0.95, 0.72), (0.05, 0.72)]),
     ("disc", 0.27, 0.74, 0.1, 0.1), ("disc", 0.75, 0.74, 0.1, 0.1)],
    [("disc", 0.45, 0.55, 0.25, 0.16), ("disc", 0.72, 0.38, 0.1, 0.1), ("area", [(0.8, 0.35), (0.95, 0.4), (0.8, 0.43)]),
     ("area", [(0.24, 0.5), (0.03, 0.38), (0.1, 0.62)]), ("line", [(0.45, 0.7), (0.45, 0.92)], 0.02)],
    [("disc", 0.5, 0.68, 0.3, 0.22), ("disc", 0.5, 0.34, 0.2, 0.18), ("area", [(0.32, 0.26), (0.34, 0.04), (0.47, 0.2)]),
     ("area", [(0.68, 0.26), (0.66, 0.04), (0.53, 0.2)]), ("line", [(0.78, 0.78), (0.94, 0.6), (0.9, 0.4)], 0.035)],
    [("disc", 0.5, 0.55, 0.26, 0.13), *_LEGS, ("line", [(0.72, 0.5), (0.82, 0.28)], 0.05), ("disc", 0.86, 0.26, 0.09, 0.06),
     ("line", [(0.84, 0.22), (0.78, 0.02)], 0.02), ("line", [(0.88, 0.22), (0.96, 0.02)], 0.02),
     ("line", [(0.8, 0.1), (0.7, 0.06)], 0.02)],
    [("disc", 0.48, 0.58, 0.28, 0.15), *_LEGS, ("disc", 0.8, 0.42, 0.14, 0.12), ("disc", 0.93, 0.46, 0.07, 0.05),
     ("area", [(0.7, 0.36), (0.64, 0.56), (0.76, 0.5)]), ("line", [(0.22, 0.54), (0.08, 0.34)], 0.03)],
    [("disc", 0.5, 0.62, 0.36, 0.2), ("disc", 0.34, 0.4, 0.09, 0.1), ("disc", 0.66, 0.4, 0.09, 0.1),
     ("line", [(0.2, 0.7), (0.05, 0.9), (0.3, 0.88)], 0.05), ("line", [(0.8, 0.7), (0.95, 0.9), (0.7, 0.88)], 0.05)],
    [("disc", 0.46, 0.52, 0.28, 0.15), *_LEGS, ("area", [(0.62, 0.45), (0.78, 0.1), (0.9, 0.16), (0.74, 0.6)]),
     ("area", [(0.8, 0.1), (0.98, 0.3), (0.9, 0.36), (0.78, 0.22)]), ("line", [(0.2, 0.46), (0.08, 0.8)], 0.04)],
    [("area", [(0.05, 0.62), (0.95, 0.62), (0.84, 0.86), (0.16, 0.86)]), ("area", [(0.3, 0.46), (0.7, 0.46), (0.7, 0.62),
     (0.3, 0.62)]), ("area", [(0.42, 0.2), (0.54, 0.2), (0.54, 0.46), (0.42, 0.46)])],
    [("area", [(0.04, 0.22), (0.64, 0.22), (0.64, 0.72), (0.04, 0.72)]), ("area", [(0.67, 0.4), (0.84, 0.4), (0.95, 0.54),
     (0.95, 0.72), (0.67, 0.72)]), ("disc", 0.2, 0.76, 0.09, 0.09), ("disc", 0.48, 0.76, 0.09, 0.09),
     ("disc", 0.8, 0.76, 0.09, 0.09)],
]


def _to_segments(x, y, points):
    """Distances to an open line through the points."""
    best = np.full(x.shape, np.inf)
    for (ax, ay), (bx, by) in zip(points, points[1:]):
        dx, dy = bx - ax, by - ay
        t = np.clip(((x - ax) * dx + (y - ay) * dy) / max(dx * dx + dy * dy, 1e-12), 0, 1)
        best = np.minimum(best, np.hypot(x - ax - t * dx, y - ay - t * dy))
    return best


def _inside(x, y, points):
    """By the number of edges that a ray to the right crosses."""
    crossed = np.zeros(x.shape, bool)
    for (ax, ay), (bx, by) in zip(points, [*points[1:], points[0]]):
        if ay != by:
            crossed ^= ((ay > y) != (by > y)) & (x < (bx - ax) * (y - ay) / (by - ay) + ax)
    return crossed


def _distance(part, x, y):
    """Signed distances to one part: negative inside."""
    kind, *values = part
    if kind == "line":
        points, half_width = values
        return _to_segments(x, y, points) - half_width
    if kind == "disc":
        cx, cy, rx, ry = values
        return (np.hypot((x - cx) / rx, (y - cy) / ry) - 1) * min(rx, ry)
    points, = values
    far = _to_segments(x, y, [*points, points[0]])
    return np.where(_inside(x, y, points), -far, far)


def distances(shapes):
    """[shape, grid, grid] float32: signed distances over the square that pictures show."""
    line = np.linspace(-_MARGIN, 1 + _MARGIN, _GRID)
    x, y = np.meshgrid(line, line)
    return np.stack([np.min([_distance(part, x, y) for part in shape], axis=0) for shape in shapes]).astype(np.float32)


def _grid_places(drawn, count, size, turn, slant, scale, shift):
    """Where on the grid each pixel of each picture looks: two arrays [count, size, size]."""
    angle = drawn.normal(0, turn, (count, 1, 1))
    slanted = drawn.normal(0, slant, (count, 1, 1))
    scaled_x, scaled_y = 1 / drawn.uniform(*scale, (2, count, 1, 1))
    line = (np.arange(size) + 0.5) / size - 0.5
    x, y = (part[None] + drawn.normal(0, shift, (count, 1, 1)) for part in np.meshgrid(line, line))
    x = x + slanted * y
    turned_x = (np.cos(angle) * x - np.sin(angle) * y) * scaled_x + 0.5
    turned_y = (np.sin(angle) * x + np.cos(angle) * y) * scaled_y + 0.5
    to_grid = (_GRID - 1) / (1 + 2 * _MARGIN)
    return ((np.clip(part, -_MARGIN, 1 + _MARGIN - 1e-6) + _MARGIN) * to_grid for part in (turned_x, turned_y))


def look_up(fields, labels, drawn, size, turn, slant, scale, shift):
    """[count, size, size] float32: distances as each picture sees its shape, bilinear between the grid's points."""
    x, y = _grid_places(drawn, len(labels), size, turn, slant, scale, shift)
    left, top = x.astype(np.int32), y.astype(np.int32)
    right, below = (x - left).astype(np.float32), (y - top).astype(np.float32)
    flat = fields.reshape(len(fields), -1)
    base = labels[:, None, None].astype(np.int64) * flat.shape[1] + top * _GRID + left
    every = flat.reshape(-1)
    above = every[base] * (1 - right) + every[base + 1] * right
    under = every[base + _GRID] * (1 - right) + every[base + _GRID + 1] * right
    return above * (1 - below) + under * below
