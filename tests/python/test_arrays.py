"""The boundary: whatever arrays come, they are read as they are, or refused with words."""
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings

import numpy
import pytest
from support import error_of, filled

import superstep


@pytest.fixture(scope="module")
def session():
    return superstep.load("braggnn", batch=2, threads=1)


@pytest.fixture(scope="module")
def x(session):
    return filled(session.inputs[0])


def test_row_major_arrays_are_read_where_they_lie(session, x):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = session(x)
        frozen = x.copy()
        frozen.flags.writeable = False
        assert (session(frozen) == expected).all()
        assert (session(memoryview(x)) == expected).all()
        shifted = numpy.empty(x.size + 3, numpy.float32)[3:].reshape(x.shape)
        shifted[:] = x
        assert (session(shifted) == expected).all()


@pytest.mark.parametrize("layout", ["transposed", "reversed", "every second", "broadcast", "fortran", "unaligned"])
def test_other_layouts_are_copied_and_said(session, x, layout):
    wide = numpy.zeros((2, 1, 11, 22), numpy.float32)
    wide[..., ::2] = x
    raw = numpy.zeros(x.nbytes + 1, numpy.uint8)
    unaligned = raw[1:].view(numpy.float32).reshape(x.shape)
    unaligned[:] = x
    given = {"transposed": numpy.ascontiguousarray(x.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0),
             "reversed": numpy.ascontiguousarray(x[::-1, :, ::-1])[::-1, :, ::-1], "every second": wide[..., ::2],
             "broadcast": numpy.broadcast_to(x[:1, :, :1, :1], x.shape), "fortran": numpy.asfortranarray(x),
             "unaligned": unaligned}[layout]
    expected = session(given.copy(order="C"))
    with pytest.warns(superstep.CopyWarning, match="patch"):
        assert (session(given) == expected).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", superstep.CopyWarning)
        with pytest.raises(superstep.CopyWarning):
            session(given)


def test_wrong_types_are_refused_with_a_way_out(session, x):
    for given, words in [(x.astype("f8"), r"is f32\[2,1,11,11\], not f64\[2,1,11,11\]"), (x.astype("f2"), "not f16"),
                         (x.astype("i4"), "not i32"), (x.astype("?"), "not bool"), (x.astype("c8"), "elements of kind"),
                         (x.astype(">f4"), "elements of kind"), (x.astype("S4"), "elements of kind"),
                         (x.astype("O"), "elements of kind|no array")]:
        with error_of(superstep.InvalidArgument, "'patch'", words):
            session(given)
    with error_of(superstep.InvalidArgument, r"astype\('float32'\)"):
        session(x.astype("f8"))


def test_what_is_no_array_is_refused(session, x):
    for given in (None, 1.0, "x", x.tolist(), object(), {"patch": x}, type(x)):
        with error_of(superstep.InvalidArgument, "'patch'", "no array|elements of kind|cannot be read"):
            session(given)


def test_wrong_shapes_are_refused(session, x):
    for given in (x[:1], x[0], x.reshape(-1), x[:0], numpy.zeros((), numpy.float32), x[..., :10], x[None]):
        with error_of(superstep.InvalidArgument, r"is f32\[2,1,11,11\], not f32\["):
            session(given)


class Liar:
    """Its methods are not what they should be."""

    def __init__(self, result):
        self.result = result

    def __dlpack__(self, **_):
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    def __dlpack_device__(self):
        return (1, 0)


def test_liars_are_refused(session):
    for result in (None, 3, "capsule", RuntimeError("no"), numpy.zeros(3)):
        with pytest.raises(superstep.InvalidArgument):
            session(Liar(result))


def test_arrays_through_dlpack_alone(session, x):
    class Other:
        """An array of another library."""

        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    expected = session(x)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert (session(Other(x)) == expected).all()
    turned = numpy.ascontiguousarray(x.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    with pytest.warns(superstep.CopyWarning):
        assert (session(Other(turned)) == expected).all()
    with error_of(superstep.InvalidArgument, "not f64"):
        session(Other(x.astype("f8")))


def test_inputs_are_not_written_to_and_let_go(session, x):
    given = x.copy()
    references = sys.getrefcount(given)
    results = [session(given) for _ in range(10)]
    assert (given == x).all() and sys.getrefcount(given) == references
    first = results[0].copy()
    session(given * 0)
    assert (results[0] == first).all()  # a later call does not write to what an earlier one gave
    given.resize((4, 1, 11, 11), refcheck=False)  # no view is left behind


def test_memory_does_not_grow(session, x):
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def some(count):
        for _ in range(count):
            session(x)
            try:
                session(x[:1])
            except superstep.InvalidArgument:
                pass
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                session(numpy.asfortranarray(x))

    some(2000)
    gc.collect()
    before = resident()
    some(20000)
    gc.collect()
    assert resident() - before < 2_000_000


def test_an_array_that_is_dropped_while_it_is_read():
    """The only name of the array goes while another thread's call reads it."""
    big = superstep.load("unet-64", batch=4, threads=1)
    given = filled(big.inputs[0])
    expected = big(given)
    holder = [given.copy()]
    future = big.submit(holder[0])
    holder.clear()
    gc.collect()
    rubbish = [numpy.full(given.shape, numpy.nan, numpy.float32) for _ in range(4)]
    assert (future.result() == expected).all() and len(rubbish) == 4


def test_an_array_cannot_be_resized_while_it_is_read():
    big = superstep.load("unet-64", batch=4, threads=1)
    given = filled(big.inputs[0]).copy()
    refused = []

    def resize():
        while not refused and not done.is_set():
            if not began.is_set():
                continue
            try:
                given.resize((1,), refcheck=False)
                given.resize(shape, refcheck=False)
            except ValueError as error:
                refused.append(str(error))

    shape, began, done = given.shape, threading.Event(), threading.Event()
    future = big.submit(given)
    time.sleep(0.002)
    began.set()
    thread = threading.Thread(target=resize)
    if not future.done():
        thread.start()
        future.result()
        done.set()
        thread.join()
        assert given.shape == shape


def child_of_fork(pipe, session, x):
    try:
        session(x)
        pipe.send("ran")
    except superstep.Unsupported as error:
        own = superstep.load("braggnn", batch=2, threads=2)
        pipe.send(f"{error} / {own(x).shape}")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_is_told_what_to_do(x):
    """Threads do not come along: a session of the parent is refused, one that the child makes works."""
    made = superstep.load("braggnn", batch=2, threads=2)
    made(x)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    child = context.Process(target=child_of_fork, args=(theirs, made, x))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert ours.poll(1)
    said = ours.recv()
    assert "forked" in said and "spawn" in said and said.endswith("(2, 2)")
    assert made(x).shape == (2, 2)


INTERRUPTED = """
    import os, signal, sys, threading, time
    import superstep
    timer = threading.Timer(float(sys.argv[1]), lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    try:
        {work}
    except KeyboardInterrupt:
        print("stopped", flush=True)
"""


def interrupted(work, seconds, folder):
    script = folder / "script.py"
    script.write_text(textwrap.dedent(INTERRUPTED).format(work=work))
    began = time.monotonic()
    done = subprocess.run([sys.executable, str(script), str(seconds)], capture_output=True, text=True, timeout=120, check=False)
    return done, time.monotonic() - began


def test_control_c_stops_training_and_keeps_it(tmp_path):
    work = f"superstep.train('mlp', samples=4096, epochs=100000, threads=1, out={str(tmp_path / 'run')!r})"
    done, seconds = interrupted(work, 3, tmp_path)
    assert done.stdout == "stopped\n" and done.returncode == 0, done.stderr
    assert seconds < 60 and list((tmp_path / "run" / "checkpoints").iterdir())


def test_control_c_stops_a_program(tmp_path):
    work = f"superstep.generate('braggnn', {str(tmp_path / 'peaks.h5')!r}, samples=100000000)"
    done, seconds = interrupted(work, 3, tmp_path)
    assert done.stdout == "stopped\n" and seconds < 60, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]  # the program took its half-written file away


def test_signal_handlers_are_pythons():
    before = signal.getsignal(signal.SIGINT)
    superstep.load("mlp", threads=1)
    assert signal.getsignal(signal.SIGINT) is before


def drawn(random, x):
    """An array with or without the elements, type and shape of `x`, in some layout; and whether it is to be taken."""
    types = ["f4"] * 12 + ["f8", "f2", "i4", "u1", "?", "c8", ">f4", "O", "S4", "M8[s]"]
    kind = types[random.integers(len(types))]
    taken = kind == "f4"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        array = numpy.abs(x).astype("i8").astype(kind) if kind == "M8[s]" else x.astype(kind)
    for _ in range(random.integers(4)):
        change = random.integers(8)
        if change == 0:
            array = array[tuple(slice(None, None, -1) if random.random() < 0.5 else slice(None) for _ in array.shape)]
        elif change == 1:
            order = random.permutation(array.ndim)
            array = numpy.ascontiguousarray(array.transpose(order)).transpose(numpy.argsort(order))
        elif change == 2:
            wide = numpy.zeros((*array.shape[:-1], 2 * array.shape[-1]), array.dtype)
            wide[..., ::2] = array
            array = wide[..., ::2]
        elif change == 3 and array.dtype.itemsize > 1 and kind != "O":
            raw = numpy.zeros(array.nbytes + 1, numpy.uint8)[1:].view(array.dtype).reshape(array.shape)
            raw[...] = array
            array = raw
        elif change == 4:
            array = array.view()
            array.flags.writeable = False
        elif change == 5:
            array, taken = array[: random.integers(len(array))], False  # no rows, or too few
        elif change == 6:
            array, taken = array[..., None], False
        else:
            array = array.copy(order="F")
        if array.size == 0:
            break
    return array, taken


@pytest.mark.filterwarnings("ignore::superstep.CopyWarning")
def test_drawn_arrays_are_read_as_they_are_or_refused(session, x):
    random = numpy.random.default_rng(3)
    counts = {True: 0, False: 0}
    for _ in range(3000):
        array, taken = drawn(random, x)
        counts[taken] += 1
        if taken:
            assert (session(array) == session(numpy.array(array, order="C", copy=True))).all()
        else:
            with pytest.raises(superstep.InvalidArgument, match="'patch'"):
                session(array)
    assert min(counts.values()) > 500
