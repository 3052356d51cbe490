"""Figures for notebooks: tables and curves as HTML and SVG, without a library for them."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from typing import Any

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 480, 200, 60, 30


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return html.escape("" if value is None else str(value))


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a table; the columns are the names of the first row."""
    if not rows:
        return "<p>nothing</p>"
    names = list(rows[0])
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{_cell(row.get(name))}</td>" for name in names) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def curve(xs: Sequence[Any], ys: Sequence[Any], x_name: str, y_name: str) -> str:
    """A curve as SVG, in the colour of the text around it; what is no number is left out."""
    points = [(float(x), float(y)) for x, y in zip(xs, ys) if _is_number(x) and _is_number(y)]
    if not points:
        return ""
    low_x, high_x = min(p[0] for p in points), max(p[0] for p in points)
    low_y, high_y = min(p[1] for p in points), max(p[1] for p in points)

    def place(value: float, low: float, high: float, begin: float, end: float) -> float:
        return begin if high == low else begin + (value - low) / (high - low) * (end - begin)

    drawn = " ".join(f"{place(x, low_x, high_x, _LEFT, _WIDTH - 10):.1f},{place(y, low_y, high_y, _HEIGHT - _BOTTOM, 10):.1f}"
                     for x, y in points)
    words = [(_LEFT - 5, 15, "end", f"{high_y:.3g}"), (_LEFT - 5, _HEIGHT - _BOTTOM, "end", f"{low_y:.3g}"),
             (_LEFT, _HEIGHT - 12, "start", f"{low_x:g}"), (_WIDTH - 10, _HEIGHT - 12, "end", f"{high_x:g}"),
             ((_LEFT + _WIDTH) / 2, _HEIGHT - 5, "middle", x_name), (_LEFT - 5, _HEIGHT / 2, "end", y_name)]
    texts = "".join(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}">{html.escape(text)}</text>' for x, y, anchor, text in words)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'font-size="11" fill="currentColor" role="img" aria-label="{html.escape(y_name)} by {html.escape(x_name)}">'
            f'<polyline points="{drawn}" fill="none" stroke="currentColor" stroke-width="1.5"/>{texts}</svg>')
