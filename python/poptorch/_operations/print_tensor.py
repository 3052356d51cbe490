"""Prints tensors (and their gradients) to standard error as forward and backward reach them."""

import sys

import torch

from .._errors import Error

_FORMATS = ("auto", "fixed", "scientific", "none")


def ipu_print_tensor(tensor, title="", print_gradient=True, summarise_threshold=1000, edge_items=3, max_line_width=80, digits=4,
                     float_format="auto", separator=", ", open_bracket="(", close_bracket=")"):
    """The tensor; its value is printed, and its gradient as `title_gradient` when backpropagation reaches it.

    Beyond `summarise_threshold` elements (0: never) only `edge_items` at both ends of each dimension are printed; rows break
    at `max_line_width` (0: never). `float_format` is auto, fixed, scientific or none. Error: no tensor.
    """
    if not isinstance(tensor, torch.Tensor):
        raise Error(f"ipu print tensor must take a torch.tensor argument. {type(tensor)} is not supported.")
    assert float_format in _FORMATS, f"float_format is one of {', '.join(_FORMATS)}, not {float_format!r}"
    style = _Style(summarise_threshold, edge_items, max_line_width, digits, float_format, separator, open_bracket, close_bracket)
    style.say(title, tensor)
    if print_gradient and tensor.requires_grad:
        return _Printed.apply(tensor, title, style)
    return tensor.view_as(tensor) if tensor.requires_grad else tensor.clone()


class _Printed(torch.autograd.Function):
    """Identity that prints the gradient."""

    @staticmethod
    def forward(ctx, tensor, title, style):
        ctx.title, ctx.style = title, style
        return tensor.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.style.say(f"{ctx.title}_gradient" if ctx.title else "gradient", gradient)
        return gradient, None, None


class _Style:
    """How tensors are written."""

    def __init__(self, threshold, edge, width, digits, form, separator, left, right):
        self._threshold, self._edge, self._width, self._digits = threshold, edge, width, digits
        self._form, self._separator, self._left, self._right = form, separator, left, right

    def say(self, title, tensor):
        """Prints one tensor."""
        text = self._written(tensor.detach(), 0)
        print(f"{title}: {text}" if title else text, file=sys.stderr, flush=True)

    def _written(self, tensor, depth):
        if tensor.dim() == 0:
            return self._number(tensor.item())
        short = bool(self._threshold) and tensor.numel() > self._threshold and tensor.shape[0] > 2 * self._edge
        rows = list(tensor[: self._edge]) + [None] + list(tensor[-self._edge:]) if short else list(tensor)
        parts = ["..." if row is None else self._written(row, depth + 1) for row in rows]
        pad = " " * (depth + 1)
        if tensor.dim() == 1:
            return self._left + self._broken(parts, pad) + self._right
        return f"{self._left}\n" + "\n".join(pad + part for part in parts) + f"\n{' ' * depth}{self._right}"

    def _broken(self, parts, pad):
        lines, line = [], ""
        for index, part in enumerate(parts):
            piece = part + (self._separator if index + 1 < len(parts) else "")
            if line and self._width and len(pad) + len(line) + len(piece) > self._width:
                lines.append(line.rstrip())
                line = ""
            line += piece
        return f"\n{pad} ".join(lines + [line])

    def _number(self, value):
        if not isinstance(value, float):
            return str(value)
        digits = self._digits or 6
        form = {"scientific": f".{max(digits - 1, 0)}e", "none": f".{digits}g"}.get(self._form, f".{max(digits - 1, 0)}f")
        return format(value, form)
