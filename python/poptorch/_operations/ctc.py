"""Beam search over the probabilities of connectionist temporal classification."""

import math

import torch

from .._errors import Error


def ctc_beam_search_decoder(probs, lengths, blank=0, beam_width=100, top_paths=1):
    """The most likely labelings of each sample.

    Args:
        probs: log probabilities [time, batch, classes]; lengths: steps of each sample [batch].
    Returns:
        [log probabilities [batch, top_paths], lengths [batch, top_paths], labels [batch, top_paths, time]]; unused places
        hold the blank. Error: no tensors.
    """
    for name, value in (("probs", probs), ("lengths", lengths)):
        if not isinstance(value, torch.Tensor):
            raise Error(f"ctc_beam_search_decoder: {name} must be a torch.tensor argument. {type(value)} is not supported.")
    steps, batch, _ = probs.shape
    scores = torch.full((batch, top_paths), -math.inf)
    sizes = torch.zeros(batch, top_paths, dtype=torch.int32)
    labels = torch.full((batch, top_paths, steps), blank, dtype=torch.int32)
    for sample in range(batch):
        rows = probs[: int(lengths[sample]), sample].detach().double().tolist()
        for place, (path, score) in enumerate(_search(rows, blank, beam_width)[:top_paths]):
            scores[sample, place] = score
            sizes[sample, place] = len(path)
            labels[sample, place, : len(path)] = torch.tensor(path, dtype=torch.int32)
    return [scores.to(probs.dtype), sizes, labels]


def _add(*logs):
    """log of the sum of exponentials."""
    top = max(logs)
    return -math.inf if top == -math.inf else top + math.log(sum(math.exp(value - top) for value in logs))


def _search(rows, blank, width):
    """[(labels, log probability)], best first. Each beam keeps apart the paths that end in a blank and those that do not."""
    beams = {(): (0.0, -math.inf)}
    for row in rows:
        extended = {}
        for path, (ending, open_) in beams.items():
            _extend(extended, path, ending, open_, row, blank)
        best = sorted(extended.items(), key=lambda item: -_add(*item[1]))
        beams = dict(best[:width])
    return sorted(((path, _add(*scores)) for path, scores in beams.items()), key=lambda item: -item[1])


def _extend(extended, path, ending, open_, row, blank):
    for label, score in enumerate(row):
        if label == blank:
            _put(extended, path, _add(ending, open_) + score, -math.inf)
        elif path and path[-1] == label:
            _put(extended, path, -math.inf, open_ + score)
            _put(extended, path + (label,), -math.inf, ending + score)
        else:
            _put(extended, path + (label,), -math.inf, _add(ending, open_) + score)


def _put(extended, path, ending, open_):
    known = extended.get(path, (-math.inf, -math.inf))
    extended[path] = (_add(known[0], ending), _add(known[1], open_))
