"""The loader of batches: as torch's, with the batch of a whole call of the model."""

import os
import weakref

import torch

from ._errors import Error
from ._loader_ahead import AsynchronousDataAccessor
from ._loader_parts import PartOfProcess, accept_data_sources, joined
from ._logging import logger, warn_once
from .enums import DataLoaderMode

__all__ = ["AsynchronousDataAccessor", "DataLoader"]

accept_data_sources()


class DataLoader(torch.utils.data.DataLoader):
    """Batches of `combinedBatchSize` samples: what one call of the executor takes.

    That is batch_size times device iterations, gradient accumulation and replicas (of replicas that share their input
    one each). With several processes (`options.Distributed`) each reads a part of its own.

    Args:
        options: the options of the executor; they can no longer be changed afterwards.
        dataset: of torch, map-style or iterable.
        batch_size: samples of a micro-batch; None: samples come one by one, unbatched.
        shuffle: over all processes in the same order, from `options.randomSeed`.
        num_workers: processes that read; of map-style data at most twice the processors are started, which is said.
        drop_last: True: samples that do not fill a combined batch (of all processes) are left out. False: the last batch
            is smaller, which a compiled model refuses.
        persistent_workers: None: as soon as there are workers.
        auto_distributed_partitioning: False: the data set is divided by the caller.
        mode: Sync; Async reads ahead with one process at least; AsyncRebatched also joins what workers leave over, so that
            few samples are dropped.
        async_options: arguments of AsynchronousDataAccessor.
        rebatched_worker_size: with AsyncRebatched, samples of a batch as workers read it (the combined size).
        batch_sampler: gives the indices of each micro-batch; excludes batch_size and shuffle. Its batches are joined to
            the combined size.
        kwargs: for torch's DataLoader.

    Raises AssertionError and Error for arguments that exclude one another.
    """

    def __init__(self, options, dataset, batch_size=1, shuffle=None, num_workers=0, drop_last=True, persistent_workers=None,
                 auto_distributed_partitioning=True, mode=DataLoaderMode.Sync, async_options=None,
                 rebatched_worker_size=None, batch_sampler=None, **kwargs):
        from ._options import Options
        assert isinstance(options, Options), f"The first argument is a poptorch.Options, not a {type(options).__name__}."
        self._accessor = None
        self._options = options
        self._is_user_batch_sampler_set = batch_sampler is not None
        self._is_iterable = isinstance(dataset, torch.utils.data.IterableDataset)
        self._drop_last = drop_last
        mode = DataLoaderMode(mode)
        partition = auto_distributed_partitioning and options.Distributed.numProcesses > 1
        if self._is_user_batch_sampler_set:
            self._check_batch_sampler(batch_size, shuffle, partition)
            batch_size = getattr(batch_sampler, "batch_size", batch_size)
        options._freeze()
        self._set_sizes(options, batch_size)

        if partition:
            self._partition(dataset, shuffle, drop_last, kwargs)
            shuffle = False
        self._say_what_is_odd(dataset, num_workers, batch_sampler, kwargs, mode)
        mode, rebatched_size = self._rebatching(mode)
        num_workers = _workers(num_workers, self._is_iterable, mode)
        arguments = self._arguments_of_torch(rebatched_size, rebatched_worker_size, shuffle, batch_sampler)
        super().__init__(dataset, num_workers=num_workers,
                         persistent_workers=num_workers > 0 if persistent_workers is None else persistent_workers,
                         **arguments, **kwargs)
        if mode == DataLoaderMode.Async:
            self._read_ahead(async_options or {}, rebatched_size)

    # -- construction -------------------------------------------------------------------------------------------------

    @staticmethod
    def _check_batch_sampler(batch_size, shuffle, partition):
        if batch_size != 1 or shuffle:
            raise Error("batch_sampler excludes batch_size and shuffle: it says which samples form a batch.")
        if partition:
            raise Error("batch_sampler excludes auto_distributed_partitioning=True: divide the samples among the "
                        "processes in the sampler.")

    def _set_sizes(self, options, batch_size):
        self._combined_batch_size = self._num_batches_to_combine = None
        if batch_size is not None:
            groups = options.replication_factor // options.input_group_size
            self._num_batches_to_combine = (options.device_iterations * groups *
                                            options.Training.gradient_accumulation)
            self._combined_batch_size = batch_size * self._num_batches_to_combine

    def _partition(self, dataset, shuffle, drop_last, kwargs):
        options = self._options
        assert not self._is_iterable, ("auto_distributed_partitioning cannot divide an IterableDataset: divide it in its "
                                       "__iter__ and give auto_distributed_partitioning=False.")
        assert self._combined_batch_size is not None, ("batch_size=None cannot be divided among processes: give "
                                                       "auto_distributed_partitioning=False.")
        assert not shuffle or options.exists("random_seed"), ("shuffle among several processes needs "
                                                              "options.randomSeed, so that all draw the same order.")
        if kwargs.get("sampler") is not None:
            raise Error("sampler excludes auto_distributed_partitioning=True: give False and divide in the sampler.")
        distributed = options.Distributed
        kwargs["sampler"] = PartOfProcess(len(dataset), self._combined_batch_size, distributed.processId,
                                          distributed.numProcesses, drop_last, options.random_seed if shuffle else None)

    def _say_what_is_odd(self, dataset, num_workers, batch_sampler, kwargs, mode):
        if self._is_iterable:
            if num_workers > 1 and "worker_init_fn" not in kwargs:
                logger.warning("IterableDataset with num_workers=%d and without worker_init_fn: every worker reads the "
                               "whole data set, each sample comes %d times.", num_workers, num_workers)
        elif self._is_user_batch_sampler_set:
            self._say_incomplete_batches(batch_sampler)
        elif self._combined_batch_size is not None:
            sampler = kwargs.get("sampler")
            self._say_incomplete_samples(len(dataset if sampler is None else sampler), mode)

    def _say_incomplete_batches(self, batch_sampler):
        try:
            batches = len(batch_sampler)
        except (TypeError, NotImplementedError):
            if not self._drop_last:
                logger.warning("The batch sampler has no length and drop_last is False: the last batch may be smaller "
                               "than %d micro-batches, which a compiled model refuses.", self._num_batches_to_combine)
            return
        left = batches % self._num_batches_to_combine
        if left and not self._drop_last:
            logger.warning("The %d batches of the batch sampler are no multiple of %d, which one call takes, and drop_last "
                           "is False: the last batch will be of %d, which a compiled model refuses.", batches,
                           self._num_batches_to_combine, left)

    def _say_incomplete_samples(self, samples, mode):
        size = self._combined_batch_size
        if self._drop_last and samples < size:
            logger.warning("The data set has %d samples for this process and one call takes %d: the loader is empty.",
                           samples, size)
        elif not self._drop_last and samples % size and mode == DataLoaderMode.Sync:
            logger.warning("The %d samples are no multiple of the combined batch size %d and drop_last is False: the last "
                           "batch will be of %d, which a compiled model refuses. drop_last=True leaves it out.", samples,
                           size, samples % size)

    def _rebatching(self, mode):
        """(Sync or Async, rows of a batch that is put together anew or None)."""
        several = self._combined_batch_size is not None and self._combined_batch_size > 1
        if mode == DataLoaderMode.AsyncRebatched or (mode == DataLoaderMode.Async and not self._drop_last and several):
            # Workers give what remains too; it is dropped after joining.
            self.rebatched_drop_last = self._drop_last
            return DataLoaderMode.Async, self._combined_batch_size if several else None
        return mode, None

    def _arguments_of_torch(self, rebatched_size, rebatched_worker_size, shuffle, batch_sampler):
        if self._is_user_batch_sampler_set:
            return {"batch_sampler": batch_sampler}
        size = self._combined_batch_size
        if rebatched_worker_size is not None and rebatched_size is not None:
            assert 0 < rebatched_worker_size <= size, (
                f"rebatched_worker_size is {rebatched_worker_size}: it must be from 1 to the combined batch size {size}.")
            size = rebatched_worker_size
        drop = self._drop_last and rebatched_size is None and size is not None
        return {"batch_size": size, "shuffle": bool(shuffle), "drop_last": drop}

    def _read_ahead(self, async_options, rebatched_size):
        assert "rebatched_size" not in async_options, "rebatched_size is set by the loader: use AsyncRebatched."
        # Without a circle of references: processes of a loader that the garbage collector finds end after 5 s only.
        self._accessor = AsynchronousDataAccessor(weakref.proxy(self), **async_options, rebatched_size=rebatched_size)

    # -- use ----------------------------------------------------------------------------------------------------------

    @property
    def combinedBatchSize(self):
        """Samples of one call of the model; None where samples come unbatched."""
        return self._combined_batch_size

    @property
    def options(self):
        """The options that the loader was made with."""
        return self._options

    def terminate(self):
        """Stops reading ahead; without effect in mode Sync."""
        if self._accessor is not None:
            self._accessor.terminate()

    def __del__(self):
        if getattr(self, "_accessor", None) is not None:
            self._accessor.terminate()

    def __len__(self):
        if self._accessor is not None and self._accessor.rebatched_size and not self._is_user_batch_sampler_set:
            samples = len(self.dataset) if self._is_iterable else len(self.sampler)
            return _divided(samples, self._combined_batch_size, self._drop_last)
        if self._is_user_batch_sampler_set:
            return _divided(super().__len__(), self._num_batches_to_combine, self._drop_last)
        return super().__len__()

    def __iter__(self):
        return _Ahead(self, iter(self._accessor)) if self._accessor is not None else self._iterate()

    def _iterate(self):
        """Batches as torch's loader gives them; those of a batch sampler joined."""
        batches = super().__iter__()
        if self._is_user_batch_sampler_set and self._num_batches_to_combine != 1:
            return joined(batches, self._num_batches_to_combine, self._drop_last)
        return batches


class _Ahead:
    """The iterator of a loader that reads ahead: keeps the loader alive as long as it is used."""

    def __init__(self, loader, accessor):
        self._loader, self._accessor = loader, accessor

    def __iter__(self):
        return self

    def __next__(self):
        return next(self._accessor)

    def __len__(self):
        return len(self._loader)


def _divided(count, size, drop_last):
    return count // size if drop_last else -(-count // size)


def _workers(asked, iterable, mode):
    """How many processes read.

    Of an iterable data set the number decides who reads what, so it is kept. Reading ahead needs one, so that the random
    numbers of the data set and those of the model do not come from one generator in an order that depends on time.
    """
    most = 2 * len(os.sched_getaffinity(0))
    if asked > most and not iterable:
        warn_once("num_workers=%d: %d are started, twice the processors of this machine.", asked, most)
        return most
    return max(asked, 1) if mode == DataLoaderMode.Async else asked
