"""Models and sessions through pickle and joblib, in this process and another."""
import copy
import pickle
import subprocess
import sys

import numpy
import pytest
from support import filled

import superstep


def again(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("settings", [{}, {"precision": "bf16"}, {"batch": 3, "threads": 2}])
def test_a_session_gives_the_same_bits(settings):
    session = superstep.load("braggnn", **({"batch": 4, "threads": 1} | settings))
    x = filled(session.inputs[0])
    other = again(session)
    assert (other(x) == session(x)).all()
    assert other.plan.batch == session.plan.batch and other.plan.threads == session.plan.threads
    assert (copy.deepcopy(other)(x) == session(x)).all()


def test_gradients_come_back():
    session = superstep.Model("mlp", options={"dropout": 0}).gradient(batch=4, threads=1)
    values = {port.name: filled(port, place) for place, port in enumerate(session.inputs)}
    first, other = session.run(values), again(session).run(values)
    assert first.keys() == other.keys() and all((first[name] == other[name]).all() for name in first)


def test_a_session_on_bytes_is_calibrated_again():
    model = superstep.Model("braggnn")
    samples = numpy.random.default_rng(1).random((64, 1, 11, 11), numpy.float32)
    session = model.compile(batch=2, precision="int8", threads=1, calibration={"patch": samples})
    assert (again(session)(samples[:2]) == session(samples[:2])).all()


def test_parameters_come_along(mlp_file):
    model = superstep.Model(mlp_file, loss="mse")
    name = next(iter(model.parameters))
    model.parameters[name] = model.parameters[name] * 2
    other = again(model)
    assert (other.parameters[name] == model.parameters[name]).all()
    assert [str(port) for port in other.targets(2)] == [str(port) for port in model.targets(2)]
    session = model.compile(batch=2, threads=1)
    session.set_parameter(name, model.parameters[name] * 3)
    x = filled(session.inputs[0])
    assert (again(session)(x) == session(x)).all()
    assert (again(again(session))(x) == session(x)).all()


def test_a_file_that_has_gone_is_named(mlp_file, tmp_path):
    file = tmp_path / "gone.onnx"
    file.write_bytes(open(mlp_file, "rb").read())
    model = superstep.Model(file)
    pickled = pickle.dumps(model)
    file.unlink()
    assert pickle.loads(pickled).compile(threads=1).plan.batch == 1
    with pytest.raises(superstep.NotFound, match="gone.onnx"):
        pickle.dumps(model)


def test_what_a_run_left_is_pickled_without_its_folder(mlp_file, tmp_path):
    model = superstep.Model(mlp_file)
    (port,), (target,) = model.inputs(64), model.targets(64)
    data = {port.name: filled(port), target.name: filled(target)}
    for what, given in ((mlp_file, data), ("mlp", None)):
        run = superstep.train(what, given, samples=64, steps=2, batch=16, threads=1, out=tmp_path / f"run{given is None}",
                              progress=False)
        session = run.load(batch=2, threads=1)
        pickled = pickle.dumps((session, run.model()))
        x = filled(session.inputs[0])
        expected = session(x)
        for path in sorted(run.folder.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        other, trained = pickle.loads(pickled)
        assert (other(x) == expected).all()
        assert numpy.abs(trained.compile(batch=2, threads=1)(x) - expected).max() < 1e-6


def test_another_process_takes_it(mlp_file, tmp_path):
    session = superstep.load(mlp_file, batch=2, threads=1)
    x = filled(session.inputs[0])
    (tmp_path / "s.pickle").write_bytes(pickle.dumps((session, x)))
    said = subprocess.run([sys.executable, "-c", "import pickle; s, x = pickle.load(open('s.pickle', 'rb')); print(s(x).tobytes().hex())"],
                          cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert said.strip() == session(x).tobytes().hex()


def test_errors_are_pickled():
    for kind in (superstep.Error, superstep.NotFound, superstep.InvalidArgument, superstep.InputOutput, superstep.Unsupported):
        error = again(kind("what", "where", "cure"))
        assert type(error) is kind and str(error) == "where: what (cure)"


def test_a_trainer_says_what_does_instead():
    trainer = superstep.Model("mlp").trainer(batch=4, threads=1)
    with pytest.raises(superstep.Unsupported, match="restore"):
        pickle.dumps(trainer)


def test_notebooks_show_tables():
    model = superstep.Model("braggnn")
    assert "<table>" in model._repr_html_() and "patch" in model._repr_html_()
    assert "batch" in model.compile(batch=2, threads=1)._repr_html_()
