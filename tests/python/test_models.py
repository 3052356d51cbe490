"""Models opened, compiled and called."""
import asyncio
import pathlib
import subprocess
import sys
import threading

import numpy
import pytest
from support import error_of, filled

import superstep


def test_says_what_there_is():
    assert superstep.__version__.startswith("0.")
    assert "braggnn" in superstep.zoo() and "cpu" in superstep.targets()


def test_ports_are_those_of_the_batch():
    session = superstep.load("braggnn", batch=5, threads=1)
    assert [(p.name, p.element, p.shape) for p in session.inputs] == [("patch", "f32", (5, 1, 11, 11))]
    assert session.inputs[0].dtype == numpy.float32
    assert session.outputs[0].shape == (5, 2)
    assert session.plan.batch == 5 and session.plan.threads == 1 and session.plan.flops > 1e6
    assert str(session.inputs[0]) == "patch: f32[5,1,11,11]" and "patch" in repr(session)


def test_gives_what_the_definition_gives():
    expected = superstep.load("braggnn", batch=3, target="reference", threads=1)
    x = filled(expected.inputs[0])
    for settings, apart in [({}, 1e-5), ({"threads": 2}, 1e-5), ({"precision": "bf16"}, 0.1)]:
        session = superstep.load("braggnn", batch=3, **({"threads": 1} | settings))
        assert numpy.abs(session(x) - expected(x)).max() < apart


def test_results_of_unknown_length_are_bounded(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "walk"))
    from detector import detector

    path = tmp_path / "detector.onnx"
    path.write_bytes(detector())
    with pytest.raises(superstep.Unsupported, match="bright_NonZero"):
        superstep.load(path, threads=1)
    picture = numpy.zeros((1, 1, 16, 16), numpy.float32)
    picture[0, 0, 3, 5] = picture[0, 0, 9, 2] = 1

    def found(bounds):
        session = superstep.load(path, bounds=bounds, threads=1)
        return dict(zip([port.name for port in session.outputs], session(picture)))

    everything = found({"*": "all"})
    assert everything["where"].shape == (4, 256) and everything["where.count"] == 2 and "beyond_bounds" not in everything
    assert everything["where"][2:, :2].tolist() == [[3, 9], [5, 2]]
    assert found({"*": 1})["beyond_bounds"] > 0


def test_int8_is_calibrated():
    model = superstep.Model("braggnn")
    samples = numpy.random.default_rng(1).random((64, 1, 11, 11), numpy.float32)
    session = model.compile(batch=2, precision="int8", threads=1, calibration={"patch": samples})
    apart = numpy.abs(session(samples[:2]) - model.compile(batch=2, threads=1)(samples[:2])).max()
    # Without instructions that multiply bytes every product stays in f32.
    multiplies_bytes = 'avx2' in pathlib.Path('/proc/cpuinfo').read_text()
    assert (0 < apart < 0.1) if multiplies_bytes else apart == 0
    with error_of(superstep.InvalidArgument, "patch"):
        model.compile(precision="int8")


def test_a_file_gives_what_the_model_gives(mlp_file):
    ours, theirs = superstep.load("mlp", batch=4, threads=1), superstep.load(mlp_file, batch=4, threads=1)
    x = filled(ours.inputs[0])
    assert numpy.abs(ours(x) - theirs(x)).max() < 1e-6


def test_inputs_go_by_place_and_by_name():
    session = superstep.load("uno", batch=2, threads=1)
    arrays = [filled(port, i) for i, port in enumerate(session.inputs)]
    names = [port.name for port in session.inputs]
    assert len(names) > 1
    by_place = session(*arrays)
    assert (session.run(dict(zip(names, arrays)))[session.outputs[0].name] == by_place).all()
    assert (session(arrays[0], **dict(zip(names[1:], arrays[1:]))) == by_place).all()
    with error_of(superstep.InvalidArgument, names[1], "no value"):
        session(arrays[0])
    with error_of(superstep.InvalidArgument, names[0], "twice"):
        session(*arrays, **{names[0]: arrays[0]})
    with error_of(superstep.InvalidArgument, "nonesuch", names[0]):
        session(nonesuch=arrays[0])
    with error_of(superstep.InvalidArgument, f"{len(names)} inputs are needed"):
        session(*arrays, arrays[0])


def test_outputs_are_written_where_one_wants_them():
    session = superstep.load("braggnn", batch=2, threads=1)
    x = filled(session.inputs[0])
    out = numpy.full((2, 2), numpy.nan, numpy.float32)
    assert session(x, out=[out]) is out
    assert (out == session(x)).all()
    for wrong, words in [(numpy.zeros((2, 3), numpy.float32), r"f32\[2,2\], not f32\[2,3\]"),
                         (numpy.zeros((2, 2)), r"not f64\[2,2\]"),
                         (numpy.zeros((2, 2), numpy.float32).T[:, ::-1], "row-major"), (b"12345678", "written")]:
        with error_of(superstep.InvalidArgument, words):
            session(x, out=[wrong])
    with error_of(superstep.InvalidArgument, "1 outputs are needed, 2 are given"):
        session(x, out=[out, out])


def test_map_takes_any_number_of_rows():
    session, one = superstep.load("braggnn", batch=4, threads=1), superstep.load("braggnn", batch=1, threads=1)
    x = numpy.random.default_rng(1).random((11, 1, 11, 11), numpy.float32)
    found = session.map(x)
    assert found.shape == (11, 2)
    assert numpy.abs(found - numpy.concatenate([one(row[None]) for row in x])).max() < 1e-6
    assert session.map(x[:0]).shape == (0, 2)
    assert (session.map(patch=x[:4]) == session(x[:4])).all()
    with error_of(superstep.InvalidArgument, "patch", r"f32\[4,1,11,12\]"):
        session.map(numpy.zeros((4, 1, 11, 12), numpy.float32))


def test_map_wants_as_many_rows_of_each_input():
    session = superstep.load("uno", batch=2, threads=1)
    arrays = [numpy.concatenate([filled(port)] * 3) for port in session.inputs]
    assert session.map(*arrays).shape[0] == 6
    arrays[1] = arrays[1][:4]
    with error_of(superstep.InvalidArgument, "different numbers of rows"):
        session.map(*arrays)


def test_calls_in_the_background():
    session = superstep.load("braggnn", batch=2, threads=1)
    x = filled(session.inputs[0])
    expected = session(x)
    futures = [session.submit(x * scale) for scale in (1, 2, 1)]
    assert (futures[0].result() == expected).all() and (futures[2].result() == expected).all()
    assert (futures[1].result() != expected).any()

    async def both():
        return await asyncio.gather(session.run_async(x), session.run_async(patch=x))

    for result in asyncio.run(both()):
        assert (result == expected).all()
    with error_of(superstep.InvalidArgument, "patch"):
        session.submit(x[:1]).result()


def test_threads_take_turns():
    session = superstep.load("braggnn", batch=8, threads=2)
    inputs = [filled(session.inputs[0], i) for i in range(4)]
    expected = [session(x) for x in inputs]
    wrong = []

    def work(i):
        for _ in range(200):
            if not (session(inputs[i]) == expected[i]).all():
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_threads_run_meanwhile():
    """A call gives the interpreter away: another thread counts while it works."""
    session = superstep.load("unet-64", batch=2, threads=1)
    x = filled(session.inputs[0])
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1

    thread = threading.Thread(target=count)
    thread.start()
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.2)  # without a gift nobody else would run for that long
    try:
        began = counted[0]
        for _ in range(10):  # on a busy machine the other thread may not be on a processor at once
            session(x)
            if counted[0] - began > 100:
                break
        assert counted[0] - began > 100
    finally:
        sys.setswitchinterval(before)
        stop.set()
        thread.join()


def test_parameters_are_read_and_set(tmp_path):
    model = superstep.Model("mlp")
    name = next(iter(model.parameters))
    before = model.parameters[name]
    session = model.compile(threads=1)
    x = filled(session.inputs[0])
    first = session(x)
    model.parameters[name] = numpy.zeros_like(before)
    assert not model.parameters[name].any() and (session(x) == first).all()
    zeroed = model.compile(threads=1)
    assert (zeroed(x) != first).any()
    zeroed.set_parameter(name, before)
    assert (zeroed(x) == first).all() and (zeroed.parameters()[name] == before).all()
    with error_of(superstep.InvalidArgument, name):
        model.parameters[name] = before[:1]
    with error_of(superstep.InvalidArgument, "nonesuch"):
        model.parameters["nonesuch"] = before
    with pytest.raises(KeyError):
        model.parameters["nonesuch"]


def test_a_trainer_learns_and_goes_on(tmp_path):
    model = superstep.Model("mlp", seed=7)
    settings = {"batch": 32, "threads": 1, "optimizer": "adam", "learning_rate": 1e-3}
    trainer = model.trainer(**settings)
    values = [filled(port, i) for i, port in enumerate(trainer.inputs)]
    first = trainer.step(*values)
    for _ in range(50):
        trainer.step(*values)
    trainer.save(tmp_path / "half.safetensors")
    last = [trainer.step(*values) for _ in range(50)][-1]
    assert last < 0.5 * first and trainer.steps == 101
    again = model.trainer(**settings)
    again.restore(tmp_path / "half.safetensors")
    assert [again.step(*values) for _ in range(50)][-1] == last
    model.take_parameters(trainer)
    name = next(iter(model.parameters))
    assert (model.parameters[name] == trainer.parameter(name)).all()
    with error_of(superstep.Diverged, "not finite"):
        for _ in range(200):
            trainer.step(*values, learning_rate=1e6)
    with error_of(superstep.InvalidArgument, "learning_rate"):
        trainer.step(*values, learning_rate=-1)


def test_gradients_are_for_an_optimizer_of_ones_own():
    """Descent by hand goes where the trainer goes."""
    model = superstep.Model("mlp", options={"dropout": 0})
    step = model.gradient(batch=8, threads=1)
    trainer = model.trainer(batch=8, threads=1, optimizer="sgd", learning_rate=0.1)
    values = {port.name: filled(port, place) for place, port in enumerate(step.inputs)}
    names = list(model.parameters)
    assert [port.name for port in step.outputs] == ["loss", model.outputs()[0].name, *(f"gradient/{name}" for name in names)]
    for _ in range(3):
        found = step.run(values)
        assert abs(float(found["loss"]) - trainer.step(named=values)) < 1e-6
        for name in names:
            step.set_parameter(name, step.parameter(name) - numpy.float32(0.1) * found[f"gradient/{name}"])
    for name in names:
        assert abs(step.parameter(name) - trainer.parameter(name)).max() < 1e-6
    with error_of(superstep.InvalidArgument, "f16"):
        model.gradient(precision="f16")


def test_masks_of_a_gradient_are_drawn_anew():
    step = superstep.Model("mlp", options={"dropout": 0.5}).gradient(batch=8, threads=1)
    values = {port.name: filled(port) for port in step.inputs}
    assert step.run(values)["loss"] != step.run(values)["loss"]


def test_what_is_wrong_is_said(tmp_path):
    with error_of(superstep.InvalidArgument, "braggnn"):
        superstep.load("bragnn")
    with pytest.raises(FileNotFoundError) as caught:
        superstep.load("no/file.onnx")
    assert isinstance(caught.value, superstep.NotFound) and caught.value.code == "not found"
    assert "no/file.onnx" in str(caught.value) and caught.value.where
    (tmp_path / "broken.onnx").write_bytes(b"\x08\x07\xff\xff")
    with pytest.raises(superstep.BadFile, match="broken.onnx"):
        superstep.load(tmp_path / "broken.onnx")
    for settings, word in [({"precision": "f8"}, "f8"), ({"target": "gpu"}, "gpu"), ({"threads": -1}, "threads")]:
        with pytest.raises(ValueError, match=word):
            superstep.load("mlp", **settings)
    with error_of(superstep.InvalidArgument, "nonesuch"):
        superstep.load("braggnn", options={"nonesuch": 3})


def test_errors_survive_pickling():
    import pickle
    with pytest.raises(superstep.NotFound) as caught:
        superstep.load("no/file.onnx")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert type(copy) is superstep.NotFound and str(copy) == str(caught.value) and copy.hint == caught.value.hint


def test_no_dependency_but_numpy():
    code = ("import sys, superstep; superstep.load('mlp', threads=1); "
            "print([m for m in ('torch', 'onnx', 'h5py', 'jax', 'IPython') if m in sys.modules])")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_package_is_typed():
    folder = pathlib.Path(superstep.__file__).parent
    assert (folder / "py.typed").exists()
    assert "class Session" in (folder / "_core/__init__.pyi").read_text()
    assert "class Graph" in (folder / "_core/bsp.pyi").read_text() and not list(folder.glob("_core/*.py"))
