"""The loader of batches: sizes, order, reading ahead, processes."""

import logging
import threading
import time

import pytest
import torch

from poptorch import _loader_parts as parts
from poptorch._dataloader import AsynchronousDataAccessor, DataLoader
from poptorch._errors import Error
from poptorch._options import Options
from poptorch.enums import DataLoaderMode

MODES = list(DataLoaderMode)


class Numbers(torch.utils.data.Dataset):
    """Sample i is the number i."""

    def __init__(self, length):
        self.length = length

    def __len__(self):
        return self.length

    def __getitem__(self, index):
        if index >= self.length:
            raise IndexError(index)
        return torch.tensor(float(index))


class Stream(torch.utils.data.IterableDataset):
    def __init__(self, length):
        self.length = length

    def __iter__(self):
        return iter([torch.tensor(float(index)) for index in range(self.length)])


class Broken(Numbers):
    """Fails at one index."""

    def __init__(self, length, at):
        super().__init__(length)
        self.at = at

    def __getitem__(self, index):
        if index == self.at:
            raise ValueError(f"no sample {index}")
        return super().__getitem__(index)


def options(iterations=1, accumulation=1, replicas=1, process=None, processes=1, seed=None):
    made = Options().deviceIterations(iterations).replicationFactor(replicas)
    made.Training.gradientAccumulation(accumulation)
    if process is not None:
        made.Distributed.configureProcessId(process, processes)
    if seed is not None:
        made.randomSeed(seed)
    return made


def values(loader):
    return [number for batch in loader for number in batch.tolist()]


@pytest.fixture
def said(caplog):
    logging.getLogger("poptorch::python").propagate = True
    caplog.set_level(logging.DEBUG, "poptorch::python")
    return caplog


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("workers", [0, 2])
def test_a_batch_is_what_one_call_takes(mode, workers):
    loader = DataLoader(options(3, 2, 2), Numbers(50), batch_size=2, num_workers=workers, mode=mode)
    assert isinstance(loader, torch.utils.data.DataLoader)
    assert loader.combinedBatchSize == 24 and len(loader) == 2
    for _ in range(2):
        batches = list(loader)
        assert [len(batch) for batch in batches] == [24, 24]
        assert torch.cat(batches).tolist() == list(range(48))
    loader.terminate()


def test_replicas_that_share_their_input_count_once():
    made = options(2, 1, 4)
    made.inputReplicaGrouping(2, __import__("poptorch").CommGroupType.Consecutive)
    assert DataLoader(made, Numbers(100), batch_size=3).combinedBatchSize == 2 * 2 * 3


@pytest.mark.parametrize("mode", MODES)
def test_the_remainder_comes_last_without_drop_last(mode, said):
    loader = DataLoader(options(2), Numbers(11), batch_size=2, drop_last=False, mode=mode, num_workers=1)
    batches = list(loader)
    assert [len(batch) for batch in batches] == [4, 4, 3] and len(loader) == 3
    assert ("no multiple of the combined batch size 4" in said.text) == (mode == DataLoaderMode.Sync)
    loader.terminate()


def test_options_are_frozen():
    made = options()
    DataLoader(made, Numbers(4))
    with pytest.raises(AttributeError):
        made.deviceIterations(2)


def test_a_data_set_that_is_too_small_is_said(said):
    loader = DataLoader(options(10), Numbers(7))
    assert len(loader) == 0 and "the loader is empty" in said.text


def test_no_batches():
    loader = DataLoader(options(5), Numbers(3), batch_size=None, drop_last=False)
    assert loader.combinedBatchSize is None
    assert [sample.tolist() for sample in loader] == [0, 1, 2]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("drop_last", [True, False])
def test_batches_of_a_sampler_are_joined(mode, drop_last):
    sampler = torch.utils.data.BatchSampler(range(20), batch_size=4, drop_last=False)
    loader = DataLoader(options(2), Numbers(20), batch_sampler=sampler, drop_last=drop_last, mode=mode)
    expected = [8, 8] if drop_last else [8, 8, 4]
    assert loader.combinedBatchSize == 8 and len(loader) == len(expected)
    batches = list(loader)
    assert [len(batch) for batch in batches] == expected
    assert torch.cat(batches).tolist() == list(range(sum(expected)))
    loader.terminate()


def test_a_sampler_of_old_scripts():
    class Old(torch.utils.data.Sampler):
        def __init__(self, data):
            super().__init__(data)

        def __iter__(self):
            return iter([3, 1])

        def __len__(self):
            return 2

    assert values(DataLoader(options(), Numbers(5), sampler=Old(None))) == [3, 1]


def test_what_excludes_one_another():
    sampler = torch.utils.data.BatchSampler(range(20), batch_size=4, drop_last=False)
    for wrong in ({"batch_size": 2}, {"shuffle": True}):
        with pytest.raises(Error, match="excludes batch_size and shuffle"):
            DataLoader(options(), Numbers(20), batch_sampler=sampler, **wrong)
    with pytest.raises(Error, match="auto_distributed_partitioning"):
        DataLoader(options(process=0, processes=2), Numbers(20), batch_sampler=sampler)
    with pytest.raises(Error, match="divide in the sampler"):
        DataLoader(options(process=0, processes=2), Numbers(20), sampler=range(20))
    with pytest.raises(AssertionError, match="cannot divide an IterableDataset"):
        DataLoader(options(process=0, processes=2), Stream(20))
    with pytest.raises(AssertionError, match="needs options.randomSeed"):
        DataLoader(options(process=0, processes=2), Numbers(20), shuffle=True)
    with pytest.raises(AssertionError, match="rebatched_worker_size is 9"):
        DataLoader(options(2), Numbers(20), batch_size=4, mode=DataLoaderMode.AsyncRebatched, rebatched_worker_size=9)
    with pytest.raises(AssertionError, match="poptorch.Options"):
        DataLoader(None, Numbers(20))


def test_workers_of_a_stream_without_an_initialization_are_warned_of(said):
    DataLoader(options(), Stream(4), num_workers=3)
    assert "comes 3 times" in said.text


def test_map_style_workers_are_limited_and_streams_are_not():
    import os
    most = 2 * len(os.sched_getaffinity(0))
    assert DataLoader(options(), Numbers(4), num_workers=most + 50).num_workers == most
    assert DataLoader(options(), Stream(4), num_workers=most + 1, worker_init_fn=print).num_workers == most + 1


# -- joining and cutting ----------------------------------------------------------------------------------------------

@pytest.mark.parametrize("given", [[5, 5, 5], [1] * 13, [12, 1], [4, 4], [3, 9, 2, 2, 7], []])
@pytest.mark.parametrize("drop_last", [True, False])
def test_rebatching_keeps_order_and_rows(given, drop_last):
    rows = torch.arange(sum(given))
    batches = [{"x": part, "y": (part * 2, "word")} for part in rows.split(given)]
    result = list(parts.rebatched(iter(batches), 4, drop_last))
    sizes = [len(batch["x"]) for batch in result]
    assert sizes == [4] * (sum(given) // 4) + ([sum(given) % 4] if sum(given) % 4 and not drop_last else [])
    seen = torch.cat([batch["x"] for batch in result]) if result else rows[:0]
    assert torch.equal(seen, rows[:len(seen)])
    assert all(torch.equal(batch["y"][0], batch["x"] * 2) and batch["y"][1] == "word" for batch in result)


# -- processes --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("processes", [2, 3])
@pytest.mark.parametrize("drop_last", [True, False])
def test_processes_read_disjoint_contiguous_parts(processes, drop_last):
    seen = []
    for process in range(processes):
        loader = DataLoader(options(2, process=process, processes=processes), Numbers(50), batch_size=4,
                            drop_last=drop_last)
        mine = values(loader)
        assert mine == list(range(int(mine[0]), int(mine[0]) + len(mine)))
        seen += mine
    assert seen == list(range(48 if drop_last and processes == 3 else 48 if drop_last else 50))


def test_processes_shuffle_alike_and_leave_nothing_out_for_long():
    epochs = []
    loaders = [DataLoader(options(process=process, processes=3, seed=5), Numbers(100), batch_size=4, shuffle=True)
               for process in range(3)]
    for _ in range(4):
        by_process = [values(loader) for loader in loaders]
        together = [number for mine in by_process for number in mine]
        assert len(set(together)) == len(together) == 96
        epochs.append(together)
    assert epochs[0] != epochs[1]
    for one, other in zip(epochs, epochs[1:]):
        assert set(one) | set(other) == set(range(100))


def test_nearly_half_left_out_comes_in_the_next_epoch():
    """23 samples, of which an epoch of three processes takes 12: the other 11 are all in the next."""
    loaders = [DataLoader(options(process=process, processes=3, seed=7), Numbers(23), batch_size=4, shuffle=True)
               for process in range(3)]
    epochs = [{number for loader in loaders for number in values(loader)} for _ in range(5)]
    assert all(len(epoch) == 12 for epoch in epochs)
    assert all(one | other == set(range(23)) for one, other in zip(epochs, epochs[1:]))


# -- reading ahead ----------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("persistent", [True, False])
def test_an_epoch_that_was_left_begins_anew(persistent):
    loader = DataLoader(options(), Numbers(9), num_workers=1, persistent_workers=persistent, mode=DataLoaderMode.Async)
    for position, _ in enumerate(loader):
        if position == 3:
            break
    assert values(loader) == list(range(9))
    assert values(loader) == list(range(9))
    loader.terminate()


@pytest.mark.parametrize("indefinitely", [True, False])
def test_epochs_of_any_iterable(indefinitely):
    accessor = AsynchronousDataAccessor(Numbers(7), load_indefinitely=indefinitely, buffer_size=2)
    assert len(accessor) == 7
    for _ in range(3):
        assert [sample.item() for sample in accessor] == list(range(7))
    accessor.terminate()
    with pytest.raises(Error, match="was terminated"):
        next(accessor)


def wait_for(what):
    """Until it is true; it becomes so in milliseconds. Returns what it gave last."""
    for _ in range(3000):
        if what():
            break
        time.sleep(0.01)
    return what()


def test_so_many_elements_are_read_ahead():
    fetched = []

    class Watched(Numbers):
        def __getitem__(self, index):
            value = super().__getitem__(index)
            fetched.append(index)
            return value

    waiting = AsynchronousDataAccessor(Watched(50), buffer_size=4)
    assert fetched == [0], "one element shows that the data can be read"
    waiting.terminate()
    fetched.clear()
    early = AsynchronousDataAccessor(Watched(50), buffer_size=4, early_preload=True)
    assert wait_for(lambda: early._worker.ready() == 4)
    assert fetched == [0, 1, 2, 3]
    iterator = iter(early)
    assert next(iterator) == 0
    assert wait_for(lambda: early._worker.ready() == 4)
    assert fetched == [0, 1, 2, 3, 4]
    early.terminate()


def test_elements_keep_their_values():
    loader = DataLoader(options(), Numbers(20), batch_size=2, num_workers=2, mode=DataLoaderMode.Async)
    kept = list(loader)
    assert torch.cat(kept).tolist() == list(range(20))
    assert not any(batch.is_shared() for batch in kept)
    loader.terminate()


def test_an_error_comes_where_its_element_would(said):
    loader = DataLoader(options(), Broken(8, at=5), num_workers=1, mode=DataLoaderMode.Async)
    seen = []
    with pytest.raises(ValueError, match="no sample 5"):
        for batch in loader:
            seen.append(batch.item())
    assert seen == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="no sample 5"):
        values(loader)
    loader.terminate()


def test_what_cannot_be_read_at_all_is_refused_at_once(said):
    with pytest.raises(Error, match="ValueError: no sample 0"):
        AsynchronousDataAccessor(Broken(8, at=0))
    assert "in __getitem__" in said.text, "the place is logged"
    with pytest.raises(Error, match="The data set is empty"):
        AsynchronousDataAccessor(Numbers(0))
    loader = DataLoader(options(), Numbers(8), mode=DataLoaderMode.Async)
    with pytest.raises(Error, match="reads ahead already"):
        AsynchronousDataAccessor(loader)
    loader.terminate()
    with pytest.raises(AssertionError, match="only with rebatched_size"):
        AsynchronousDataAccessor(DataLoader(options(), Numbers(8), batch_size=2, drop_last=False))


def test_an_iterator_outlives_the_name_of_its_loader():
    batches = iter(DataLoader(options(), Numbers(9), batch_size=3, mode=DataLoaderMode.Async))
    assert [batch.tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_a_loader_ends_without_the_garbage_collector():
    """Processes of a loader in a circle of references are told nothing and end after 5 seconds only."""
    import gc
    import weakref
    loader = DataLoader(options(2), Numbers(9), num_workers=1, mode=DataLoaderMode.AsyncRebatched)
    values(loader)
    seen = weakref.ref(loader)
    gc.disable()
    try:
        del loader
        assert seen() is None
    finally:
        gc.enable()


def test_threads_end():
    def reading():
        return [thread for thread in threading.enumerate() if thread.name == "poptorch-reading-ahead"]

    before = len(reading())
    loader = DataLoader(options(), Numbers(50), mode=DataLoaderMode.Async, async_options={"early_preload": True})
    next(iter(loader))
    assert len(reading()) == before + 1
    loader.terminate()
    assert len(reading()) == before


def test_random_numbers_of_data_do_not_depend_on_time():
    class Drawn(Numbers):
        def __getitem__(self, index):
            return torch.rand(())

    def run(pause):
        torch.manual_seed(3)
        loader = DataLoader(options(), Drawn(12), batch_size=2, shuffle=True, mode=DataLoaderMode.Async)
        seen = []
        for batch in loader:
            time.sleep(pause)
            seen += batch.tolist() + torch.rand(2).tolist()
        loader.terminate()
        return seen

    assert run(0) == run(0.01)


@pytest.mark.parametrize("mode", MODES)
def test_structures(mode):
    class Pairs(Numbers):
        def __getitem__(self, index):
            return {"x": torch.full((2,), float(index)), "y": (index, torch.tensor(index))}

    loader = DataLoader(options(2), Pairs(10), batch_size=2, mode=mode)
    first = next(iter(loader))
    assert first["x"].shape == (4, 2) and first["y"][1].tolist() == [0, 1, 2, 3]
    loader.terminate()
