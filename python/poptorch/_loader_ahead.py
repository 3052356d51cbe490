"""Reading ahead: elements of a data set are fetched while the model computes."""

import atexit
import collections
import threading
import traceback
import weakref

import torch

from ._errors import Error
from ._loader_parts import rebatched
from ._logging import logger
from ._structures import tensors_in, with_tensors
from .enums import SharingStrategy

_END = object()


def _own_memory(element):
    """The element with its tensors out of the memory that is shared with a loader's processes, which is scarce."""
    tensors = tensors_in(element)
    if not any(tensor.is_shared() for tensor in tensors):
        return element
    return with_tensors(element, iter([tensor.clone() if tensor.is_shared() else tensor for tensor in tensors]))


class _Failure:
    """An exception of the data set, to be raised where the element is asked for."""

    def __init__(self, error):
        self.error = error


class _Reader:
    """A thread that keeps up to `size` elements of one iterator ready. It holds no reference to the accessor."""

    def __init__(self, elements, size, first):
        self._elements, self._size = elements, size
        self._ready = collections.deque(first)
        self._changed = threading.Condition()
        self._stopped = False
        self._thread = None

    def start(self):
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="poptorch-reading-ahead", daemon=True)
            self._thread.start()

    def _run(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._stopped or len(self._ready) < self._size)
                if self._stopped:
                    return
            element = self._fetch()
            with self._changed:
                self._ready.append(element)
                self._changed.notify_all()
            if element is _END or isinstance(element, _Failure):
                return

    def _fetch(self):
        try:
            return _own_memory(next(self._elements))
        except StopIteration:
            return _END
        except BaseException as error:  # noqa: BLE001 - it is raised where the element is asked for
            return _Failure(error)

    def next(self):
        """The next element, or the end's mark. Raises what the data set raised."""
        self.start()
        with self._changed:
            self._changed.wait_for(lambda: self._ready)
            element = self._ready[0]
            if element is not _END and not isinstance(element, _Failure):
                self._ready.popleft()
                self._changed.notify_all()
        if isinstance(element, _Failure):
            raise element.error
        return element

    def ready(self):
        """How many elements wait."""
        return len(self._ready)

    def stop(self, seconds=None):
        """Ends the thread after the element that it is reading; waits for it, or no longer than `seconds`."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(seconds)


_accessors = weakref.WeakSet()


@atexit.register
def _stop_all():
    for accessor in list(_accessors):
        accessor.terminate()


class AsynchronousDataAccessor:
    """Reads a data set or a DataLoader ahead of its use.

    A thread of this process keeps `buffer_size` elements ready, each in memory of its own (PopTorch had a process and a
    ring of shared buffers, where an element was overwritten later). A data set that draws random numbers in its
    `__getitem__` shares torch's generator with the model then: read it through a DataLoader, whose workers have theirs.

    Args:
        dataset: any iterable of tensors, tuples, lists, dicts or registered classes.
        buffer_size: elements that are kept ready.
        miss_sleep_time_in_ms, sharing_strategy: recorded; nothing is polled or shared here.
        load_indefinitely: at the end of an epoch the next one's first elements are read already.
        early_preload: read `buffer_size` elements from the construction on; else only the first, which shows whether
            the data set can be read.
        rebatched_size: batches are cut and joined to this many rows; the last, smaller one is dropped, unless `dataset`
            is a DataLoader with drop_last=False.

    Raises Error where the first element cannot be read, or there is none.
    """

    def __init__(self, dataset, buffer_size=3, miss_sleep_time_in_ms=0.1, load_indefinitely=True, early_preload=False,
                 sharing_strategy=SharingStrategy.ForkServer, rebatched_size=None):
        self._worker = None
        self._dataset = dataset
        if getattr(dataset, "_accessor", None) is not None:
            raise Error("The DataLoader reads ahead already, by an AsynchronousDataAccessor of its own: use it as it is, "
                        "or give it mode=poptorch.DataLoaderMode.Sync.")
        assert buffer_size >= 1, f"buffer_size must be at least 1, not {buffer_size}."
        assert rebatched_size is None or rebatched_size > 1, "rebatched_size must be None or greater than 1."
        _refuse_remainders(dataset, rebatched_size)
        self.rebatched_size = rebatched_size
        self._buffer_size = buffer_size
        self._load_indefinitely = load_indefinitely
        self._used = False
        self._begin()
        _accessors.add(self)
        if early_preload:
            self._worker.start()

    def _elements(self):
        iterate = getattr(self._dataset, "_iterate", None)
        elements = iterate() if iterate is not None else iter(self._dataset)
        if self.rebatched_size is None:
            return elements
        return rebatched(elements, self.rebatched_size, getattr(self._dataset, "rebatched_drop_last", True))

    def _begin(self):
        """An iterator and its first element, in the caller's thread: processes of loaders must be started there."""
        try:
            elements = self._elements()
            first = _own_memory(next(elements))
        except StopIteration:
            raise Error("The data set is empty: there is not one element (one batch of a DataLoader) in it.") from None
        except Exception as error:
            logger.error("The data set raised:\n%s", traceback.format_exc())
            raise Error("The data set's first element cannot be read, the worker thread failed to start: "
                        f"{type(error).__name__}: {error}") from error
        self._worker = _Reader(elements, self._buffer_size, [first])
        self._used = False

    def terminate(self):
        """Stops reading ahead. The accessor cannot be used any more."""
        if self._worker is not None:
            # A data set may take minutes for an element; the thread is a daemon and keeps no program from ending.
            self._worker.stop(seconds=5)
            self._worker = None

    def __del__(self):
        self.terminate()

    def __len__(self):
        length = len(self._dataset)
        inside = getattr(self._dataset, "_accessor", None) is self
        if self.rebatched_size and not inside:
            length = length * getattr(self._dataset, "batch_size", 1) // self.rebatched_size
        return length

    def _living(self):
        if self._worker is None:
            raise Error("The AsynchronousDataAccessor was terminated: make a new one.")
        return self._worker

    def __iter__(self):
        """Begins an epoch: the one whose elements were read already, where none of them has been used."""
        worker = self._living()
        if self._used:
            worker.stop()
            self._begin()
        self._worker.start()
        return self

    def __next__(self):
        worker = self._living()
        self._used = True
        element = worker.next()
        if element is not _END:
            return element
        if self._load_indefinitely:
            worker.stop()
            self._begin()
            self._worker.start()
        raise StopIteration


def _refuse_remainders(dataset, rebatched_size):
    """Workers of a loader would each leave a smaller batch, which has no place in batches of one size."""
    if rebatched_size is not None or getattr(dataset, "_is_user_batch_sampler_set", True):
        return
    if isinstance(dataset, torch.utils.data.DataLoader) and not dataset.drop_last:
        assert dataset.combinedBatchSize in (None, 1), (
            "A DataLoader with drop_last=False can be read ahead only with rebatched_size.")
