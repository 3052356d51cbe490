"""How far long work is: a line on a terminal, a bar in a notebook."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable
from typing import Any

Listener = Callable[[str, str, str, float, float], None]


def _in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    current = shell.get_ipython() if shell else None
    return type(current).__name__ == "ZMQInteractiveShell"


class Line:
    """Writes one line of a terminal anew."""

    def __init__(self) -> None:
        self._width = 0

    def __call__(self, label: str, unit: str, note: str, done: float, total: float) -> None:
        share = f" {100 * min(1.0, done / total):3.0f} %" if total > 0 else ""
        text = f"{label}{share}  {note}"[:100]
        sys.stderr.write("\r" + text.ljust(self._width))
        sys.stderr.flush()
        self._width = len(text)

    def close(self) -> None:
        """Ends the line."""
        if self._width:
            sys.stderr.write("\n")


class _Page:
    """What a notebook shows, as HTML; what keeps text alone has the same in words."""

    def __init__(self, page: str, text: str) -> None:
        self._page = page
        self._text = text

    def _repr_html_(self) -> str:
        return self._page

    def __repr__(self) -> str:
        return self._text


class Bar:
    """A bar in a notebook: one output, which is written anew."""

    def __init__(self) -> None:
        from IPython.display import display  # type: ignore[import-not-found, unused-ignore]
        self._shown = display(_Page("", ""), display_id=True)
        self._measured: _Page | None = None

    def __call__(self, label: str, unit: str, note: str, done: float, total: float) -> None:
        bar = f'<progress max="{total:g}" value="{done:g}" style="width:20em"></progress>' if total > 0 else ""
        share = f" {100 * min(1.0, done / total):3.0f} %" if total > 0 else ""
        page = _Page(f"<span>{html.escape(label)}</span> {bar} <span>{html.escape(note)}</span>", f"{label}{share}  {note}".rstrip())
        if total > 0:
            self._measured = page
        self._shown.update(page)

    def close(self) -> None:
        """The last bar stays, with how far it came: not what short work was done after it."""
        if self._measured:
            self._shown.update(self._measured)


def listener(wanted: bool | Listener | None) -> Any:
    """What is told how far the work is: none for False, a line or a bar for True; None: these where somebody sees them."""
    if callable(wanted):
        return wanted
    if wanted is False:
        return None
    if _in_notebook():
        return Bar()
    return Line() if wanted or sys.stderr.isatty() else None
