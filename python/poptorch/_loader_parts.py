"""Which samples a process reads, and batches joined to the size of a call."""

import torch

from ._structures import tensors_in, with_tensors


def accept_data_sources():
    """Lets samplers of scripts call `Sampler.__init__(data_source)`, which torch took, without effect, until 2.x.

    Without it every sampler that a script of those years derives is a TypeError.
    """
    sampler = torch.utils.data.Sampler
    if sampler.__init__ is not object.__init__:
        return

    def __init__(self, data_source=None):
        object.__init__(self)

    sampler.__init__ = __init__


class PartOfProcess(torch.utils.data.Sampler):
    """Indices of the samples that one of several processes reads: a contiguous part of the data set, or of its shuffle.

    With `drop_last` all processes get as many samples, a multiple of `step`; what is left over in one epoch comes first
    in line in the next. Without it the samples are divided as evenly as can be. All processes draw the same shuffles,
    from the seed of the options.
    """

    def __init__(self, length, step, process, processes, drop_last, seed):
        """`seed` is None where nothing is shuffled."""
        self._length, self._seed, self._epoch = length, seed, 0
        self._left = None
        if drop_last:
            share = step * (length // (step * processes))
            self._begin, self._end = process * share, (process + 1) * share
            self._used = share * processes
        else:
            shares = [length // processes + (length % processes > other) for other in range(processes)]
            self._begin = sum(shares[:process])
            self._end = self._begin + shares[process]
            self._used = length

    def __len__(self):
        return self._end - self._begin

    def __iter__(self):
        order = self._order()
        self._epoch += 1
        self._left = order[self._used:]
        return iter(order[self._begin:self._end].tolist())

    def _order(self):
        if self._seed is None:
            # Unshuffled, the samples of the end that one epoch leaves out are read by the next instead of the first ones.
            shift = self._length - self._used if self._epoch % 2 else 0
            return torch.arange(self._length).roll(-shift)
        drawn = torch.Generator()
        drawn.manual_seed(self._seed + self._epoch)
        order = torch.randperm(self._length, generator=drawn)
        if self._left is None or not len(self._left):
            return order
        waiting = torch.isin(order, self._left)
        order = torch.cat([order[waiting], order[~waiting]])
        mixed = torch.randperm(self._used, generator=drawn)
        return torch.cat([order[:self._used][mixed], order[self._used:]])


def join(batches):
    """Batches of the same structure as one, tensor by tensor along dimension 0. Of other values the last batch's."""
    if len(batches) == 1:
        return batches[0]
    columns = zip(*(tensors_in(batch) for batch in batches))
    return with_tensors(batches[-1], (torch.cat(column) for column in columns))


def joined(batches, count, drop_last):
    """Every `count` batches of an iterator as one; the last may be of fewer without `drop_last`."""
    waiting = []
    for batch in batches:
        waiting.append(batch)
        if len(waiting) == count:
            yield join(waiting)
            waiting = []
    if waiting and not drop_last:
        yield join(waiting)


def _rows(batch):
    tensors = tensors_in(batch)
    return tensors[0].shape[0] if tensors else 0


def _cut(batch, begin, end):
    return with_tensors(batch, iter([tensor[begin:end] for tensor in tensors_in(batch)]))


def rebatched(batches, size, drop_last):
    """Batches of exactly `size` rows out of an iterator's batches of any, in their order.

    The last one has what remains, unless `drop_last`. All tensors of a batch must have as many rows.
    """
    waiting, rows = [], 0
    for batch in batches:
        begin, extent = 0, _rows(batch)
        while rows + extent - begin >= size:
            end = begin + size - rows
            whole = begin == 0 and end == extent
            waiting.append(batch if whole else _cut(batch, begin, end))
            yield join(waiting)
            waiting, rows, begin = [], 0, end
        if begin < extent:
            waiting.append(_cut(batch, begin, extent) if begin else batch)
            rows += extent - begin
    if rows and not drop_last:
        yield join(waiting)
