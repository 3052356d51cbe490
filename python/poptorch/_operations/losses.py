"""Which value a training model is trained on.

Losses are computed inside forward: functions of `torch.nn.functional` that compute losses, and `identity_loss`, mark their
results. The one marked value that no other is computed from starts backpropagation; what is computed from it without a mark
is returned and not trained.
"""

import torch

from .._errors import Error

NAMES = frozenset("""binary_cross_entropy binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy cross_entropy_loss
ctc_loss gaussian_nll_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
multilabel_margin_loss multilabel_soft_margin_loss nll_loss nll_loss_nd nll_loss2d poisson_nll_loss smooth_l1_loss
soft_margin_loss triplet_margin_loss triplet_margin_with_distance_loss""".split())


class Marks:
    """The marked values of one forward pass."""

    def __init__(self):
        self._marked = []

    def add(self, value):
        """Marks a value as a loss."""
        if isinstance(value, torch.Tensor):
            edge = torch.autograd.graph.get_gradient_edge(value) if value.requires_grad else None
            self._marked.append((value.detach(), edge))

    def final(self):
        """(value, edge) of the loss to train on; the edge is None where it depends on no parameter.

        Error: no loss, or several of which none depends on the others.
        """
        if not self._marked:
            raise Error("Couldn't find a loss in graph: forward of a training model computes a loss by a loss function of "
                        "torch.nn, or marks one by poptorch.identity_loss")
        trained = [mark for mark in self._marked if mark[1] is not None] or self._marked[-1:]
        final = self._last(trained)
        if len(final) > 1:
            raise Error("Multiple independent losses found in graph. Graph must have one final loss. Wrap final graph loss "
                        "in poptorch.identity_loss.")
        return final[0]

    @staticmethod
    def _last(marks):
        if len(marks) == 1:
            return marks
        below = set()
        for _, edge in marks:
            below |= _ancestors(edge.node)
        unique = {(mark[1].node, mark[1].output_nr): mark for mark in marks}
        return [mark for (node, _), mark in unique.items() if node not in below]


def _ancestors(node):
    """The nodes that `node` is computed from, itself left out."""
    seen, work = set(), [node]
    while work:
        for parent, _ in work.pop().next_functions:
            if parent is not None and parent not in seen:
                seen.add(parent)
                work.append(parent)
    return seen


def identity_loss(x, reduction):
    """`x` reduced by "sum", "mean" or "none" (also 0, 1, 2), and marked as a loss. AssertionError for another word."""
    from .. import _running
    kind = {0: "sum", 1: "mean", 2: "none"}.get(reduction, reduction)
    assert kind in ("sum", "mean", "none"), f"Unsupported reduction type {reduction!r}: use sum, mean or none"
    value = x.sum() if kind == "sum" else x.mean() if kind == "mean" else x.clone()
    forward = _running.current()
    if forward is not None:
        forward.marks.add(value)
    return value
