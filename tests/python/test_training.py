"""Whole runs: the program's bits, data from anywhere, callbacks, going on."""
import subprocess
import sys
import types

import numpy
import pytest
from support import error_of

import superstep
from superstep import program, progress

SETTINGS = {"batch": 32, "optimizer": "adam", "learning_rate": 1e-3, "seed": 5, "threads": 2}


@pytest.fixture(scope="module")
def arrays():
    generator = numpy.random.default_rng(1)
    ports = superstep.Model("mlp").inputs(320), superstep.Model("mlp").targets(320)
    x = generator.standard_normal(ports[0][0].shape).astype("f4")
    y = numpy.tanh(x[:, :1]) * numpy.ones(ports[1][0].shape, "f4")
    return x, y.astype("f4")


def names_of(file):
    model = superstep.Model(file)
    return model.inputs()[0].name, model.targets()[0].name


def same_parameters(a, b):
    ours, theirs = superstep.Model.from_run(a).parameters, superstep.Model.from_run(b).parameters
    assert list(ours) == list(theirs) and len(ours) > 0
    return all((ours[name] == theirs[name]).all() for name in ours)


def ran(*words):
    done = subprocess.run([program.path(), *map(str, words), "--quiet"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_workload_ends_with_the_programs_bits(tmp_path):
    result = superstep.train("mlp", samples=512, epochs=2, out=tmp_path / "ours", **SETTINGS)
    ran("train", "mlp", "--samples", 512, "--epochs", 2, "--batch", 32, "--optimizer", "adam", "--learning-rate", 1e-3,
        "--seed", 5, "--threads", 2, "--out", tmp_path / "theirs")
    assert same_parameters(tmp_path / "ours", tmp_path / "theirs")
    assert (tmp_path / "ours/model.onnx").read_bytes() == (tmp_path / "theirs/model.onnx").read_bytes()
    assert result.steps > 0 and result.epochs == 2 and not result.reached and not result.stopped
    assert result.metrics["loss"] > 0 and result.units["throughput"] == "samples/s"
    assert [row["epoch"] for row in result.history] == [1, 2]
    other = superstep.train("mlp", samples=512, epochs=2, out=tmp_path / "other", **(SETTINGS | {"seed": 6}))
    assert other.steps == result.steps and not same_parameters(tmp_path / "ours", tmp_path / "other")


def test_a_file_ends_with_the_programs_bits(tmp_path, mlp_file, arrays):
    x, target = names_of(mlp_file)
    superstep.train(mlp_file, {x: arrays[0], target: arrays[1]}, loss="mse", epochs=2, out=tmp_path / "ours", **SETTINGS)
    numpy.savez(tmp_path / "pairs.npz", **{x: arrays[0], target: arrays[1]})
    ran("train", mlp_file, "--data", tmp_path / "pairs.npz", "--loss", "mse", "--epochs", 2, "--batch", 32, "--optimizer", "adam",
        "--learning-rate", 1e-3, "--seed", 5, "--threads", 2, "--out", tmp_path / "theirs")
    assert (tmp_path / "ours/model.onnx").read_bytes() == (tmp_path / "theirs/model.onnx").read_bytes()


class Pairs:
    """As a Dataset of PyTorch: numbered samples."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]


def test_data_come_from_anywhere(tmp_path, mlp_file, arrays):
    x, target = names_of(mlp_file)
    samples = Pairs(*arrays)
    kinds = {"mapping": {x: arrays[0], target: arrays[1]}, "tuple": arrays, "dataset": samples,
             "generator": ((a, b) for a, b in zip(*arrays)), "dicts": [{x: a, target: b} for a, b in zip(*arrays)]}
    try:
        import h5py
    except ImportError:
        pass
    else:
        with h5py.File(tmp_path / "pairs.h5", "w") as file:
            file[x], file[target] = arrays
        kinds["HDF5"] = tmp_path / "pairs.h5"
    written = {}
    for kind, data in kinds.items():
        superstep.train(mlp_file, data, steps=3, out=tmp_path / kind, **SETTINGS)
        written[kind] = (tmp_path / kind / "model.onnx").read_bytes()
    assert len(set(written.values())) == 1, written.keys()


def test_larger_pictures_are_cropped_where_that_is_asked(tmp_path):
    generator = numpy.random.default_rng(2)
    image, label = generator.integers(0, 256, (40, 3, 40, 36), dtype="u1"), generator.integers(0, 10, 40)
    numpy.savez(tmp_path / "larger.npz", image=image, label=label)
    numpy.savez(tmp_path / "own.npz", image=image[:, :, 4:36, 2:34], label=label)
    settings = {"steps": 2, "batch": 8, "threads": 1}
    superstep.train("cifar10-cnn", tmp_path / "larger.npz", crop="center", data_memory=1, out=tmp_path / "a", **settings)
    superstep.train("cifar10-cnn", tmp_path / "own.npz", out=tmp_path / "b", **settings)
    assert same_parameters(tmp_path / "a", tmp_path / "b")
    with error_of(superstep.Error, "larger.npz", "--crop center"):
        superstep.train("cifar10-cnn", tmp_path / "larger.npz", **settings)
    with error_of(superstep.InvalidArgument, "crop", "center"):
        superstep.train("cifar10-cnn", tmp_path / "larger.npz", crop="left", **settings)


def test_data_are_scaled_and_drawn_anew(tmp_path, mlp_file, arrays):
    x, y = arrays
    name, target = names_of(mlp_file)
    numpy.savez(tmp_path / "raw.npz", **{name: (x + 3) / 0.25, target: y})
    numpy.savez(tmp_path / "scaled.npz", **{name: (((x + 3) / 0.25).astype("f8") * 0.25 - 3).astype("f4"), target: y})
    settings = SETTINGS | {"epochs": 2}
    superstep.train(mlp_file, tmp_path / "scaled.npz", out=tmp_path / "plain", **settings)
    superstep.train(mlp_file, tmp_path / "raw.npz", scale={name: 0.25}, offset={name: -3}, out=tmp_path / "raw", **settings)
    assert same_parameters(tmp_path / "plain", tmp_path / "raw")
    superstep.train(mlp_file, tmp_path / "scaled.npz", augmentation=[f"{name}=noise:0.1"], out=tmp_path / "noisy", **settings)
    assert not same_parameters(tmp_path / "plain", tmp_path / "noisy")
    with error_of(superstep.Error, "none", name):
        superstep.train(mlp_file, tmp_path / "raw.npz", scale={"none": 2}, **settings)
    with error_of(superstep.InvalidArgument, "--augment", "no step 'turn'"):
        superstep.train(mlp_file, tmp_path / "raw.npz", augmentation=[f"{name}=turn"], **settings)


def test_data_that_do_not_fit_are_refused(tmp_path, mlp_file, arrays):
    x, target = names_of(mlp_file)
    with error_of(superstep.InvalidArgument, "1 parts, 2 are needed", x, target):
        superstep.train(mlp_file, (arrays[0],), steps=1)
    with error_of(superstep.InvalidArgument, "no samples"):
        superstep.train(mlp_file, [], steps=1)
    with error_of(superstep.BadFile, x):
        superstep.train(mlp_file, {x: arrays[0][:, :-1], target: arrays[1]}, steps=1)
    with error_of(superstep.InvalidArgument, "workload reads files"):
        superstep.train("mlp", {x: arrays[0]}, steps=1)
    with pytest.raises(FileNotFoundError, match="absent.h5"):
        superstep.train(mlp_file, tmp_path / "absent.h5", steps=1)
    with error_of(superstep.InvalidArgument, "METRIC=VALUE"):
        superstep.train("mlp", until="loss")


def test_a_run_goes_on(tmp_path):
    superstep.train("mlp", samples=512, epochs=2, out=tmp_path / "whole", **SETTINGS)
    superstep.train("mlp", samples=512, epochs=2, steps=5, out=tmp_path / "halves", **SETTINGS)
    superstep.train(out=tmp_path / "halves", resume=True, epochs=2)
    assert same_parameters(tmp_path / "whole", tmp_path / "halves")
    with error_of(superstep.InvalidArgument, "out"):
        superstep.train(resume=True)
    with error_of(superstep.InvalidArgument, "mlp"):
        superstep.train("braggnn", out=tmp_path / "halves", resume=True)
    with pytest.raises(superstep.Error, match="whole"):
        superstep.train("mlp", steps=1, out=tmp_path / "whole")


def test_callbacks_hear_and_stop(tmp_path):
    events = []
    superstep.train("mlp", samples=256, epochs=2, callbacks=events.append, **SETTINGS)
    assert [(e.kind, e.epoch) for e in events][:3] == [("epoch_begun", 1), ("epoch_ended", 1), ("evaluated", 1)]
    assert events[-1].kind == "finished" and events[1].samples_per_second > 0 and events[2].metrics

    result = superstep.train("mlp", samples=256, epochs=50, out=tmp_path / "run", **SETTINGS,
                             callbacks=[lambda e: e.kind != "evaluated" or e.epoch < 3])
    assert result.stopped and result.epochs == 3 and result.metrics
    assert [row["epoch"] for row in result.history][-1] == 3
    assert superstep.train(out=tmp_path / "run", resume=True, epochs=5).epochs == 5

    def fails(event):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        superstep.train("mlp", samples=256, epochs=50, callbacks=fails, **SETTINGS)


def test_a_run_ends_where_nothing_is_gained(tmp_path):
    result = superstep.train("mlp", samples=512, epochs=40, batch=32, learning_rate=1e-30, schedule="cosine:warm_up=1", patience=2,
                             monitor="rmse", ema=0.9, threads=1, out=tmp_path / "run")
    assert result.epochs == 3
    with error_of(superstep.InvalidArgument, "schedule cosin", "cosine"):
        superstep.train("mlp", samples=512, schedule="cosin", threads=1)


def test_until_is_reached():
    known = superstep.train("mlp", samples=512, epochs=1, **SETTINGS)
    name = next(name for name in known.history[0] if name in known.metrics and name not in ("loss", "throughput"))
    result = superstep.train("mlp", samples=512, epochs=30, until={name: 1e9}, **SETTINGS)
    assert result.reached and result.epochs == 1


def test_progress_is_told():
    told = []
    superstep.train("mlp", samples=512, epochs=2, progress=lambda *report: told.append(report), **SETTINGS)
    labels = {report[0] for report in told}
    assert "mlp" in labels and any(done == total > 0 for label, _, _, done, total in told if label == "mlp")


def test_what_was_trained_is_served(tmp_path):
    result = superstep.train("mlp", samples=512, epochs=2, **SETTINGS)
    session, untrained = result.load(batch=4, threads=1), superstep.load("mlp", batch=4, threads=1)
    x = numpy.ones(session.inputs[0].shape, "f4")
    assert (session(x) != untrained(x)).any()
    assert (superstep.load(result.folder, batch=4, threads=1)(x) == session(x)).all()
    page = result._repr_html_()
    assert "<svg" in page and "throughput" in page


def test_a_notebook_has_one_bar(monkeypatch):
    shown, updates = [], []
    handle = types.SimpleNamespace(update=updates.append)
    display = types.ModuleType("IPython.display")
    display.display = lambda page, display_id: shown.append(page) or handle
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    bar = progress.Bar()
    bar("model", "steps", "loss 1", 5, 10)
    bar("evaluating model", "", "", 0, 0)
    bar.close()
    assert len(shown) == 1 and len(updates) == 3
    assert repr(updates[-1]) == "model  50 %  loss 1" and 'value="5"' in updates[-1]._repr_html_()
