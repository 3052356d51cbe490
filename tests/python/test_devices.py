"""Devices behind PJRT plug-ins, here this processor; skipped where there is no plug-in for it."""
import numpy
import pytest
from support import error_of, filled

import superstep

DEVICE = "pjrt-cpu"


@pytest.fixture(scope="module", autouse=True)
def needs_the_plugin():
    try:
        superstep.load("mlp", target=DEVICE)
    except superstep.Error as error:
        if "tools/setup-plugins" in str(error):
            pytest.skip("there is no PJRT plug-in for this processor: tools/setup-plugins cpu")
        raise


def test_a_session_there_gives_what_the_cpu_gives():
    here, there = (superstep.load("braggnn", batch=3, target=target) for target in ("cpu", DEVICE))
    x = filled(here.inputs[0])
    assert numpy.abs(here(x) - there(x)).max() < 1e-5


def test_a_trainer_there_learns_what_the_cpu_learns():
    losses = []
    for target in ("cpu", DEVICE):
        trainer = superstep.Model("mlp").trainer(batch=8, target=target)
        batch = [filled(port, phase) for phase, port in enumerate(trainer.inputs)]
        losses.append([float(trainer.step(*batch)) for _ in range(5)])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4) and losses[1][-1] < losses[1][0]


def test_a_run_there_is_kept_and_goes_on(tmp_path):
    settings = {"samples": 640, "batch": 64, "seed": 3, "target": DEVICE, "out": tmp_path / "run", "progress": False}
    first = superstep.train("mlp", steps=5, **settings)
    again = superstep.train(out=tmp_path / "run", resume=True, steps=10, progress=False)
    whole = superstep.train("mlp", steps=10, samples=640, batch=64, seed=3, progress=False)
    assert first.steps == 5 and again.steps == 10
    assert again.metrics["loss"] == pytest.approx(whole.metrics["loss"], rel=1e-3)


def test_devices_share_a_batch(tmp_path):
    settings = {"samples": 640, "batch": 64, "seed": 3, "steps": 6, "target": DEVICE, "progress": False}
    one = superstep.train("mlp", **settings)
    two = superstep.train("mlp", devices=2, shard="parameters", **settings)
    assert two.metrics["loss"] == pytest.approx(one.metrics["loss"], rel=1e-5)
    with error_of(superstep.InvalidArgument, "a batch of 64", "3 devices"):
        superstep.train("mlp", devices=3, **settings)
    with error_of(superstep.Unsupported, "devices behind a plug-in"):
        superstep.train("mlp", **(settings | {"devices": 2, "target": "cpu"}))
    with error_of(superstep.InvalidArgument, "shard", "parameters"):
        superstep.train("mlp", shard="rows", **settings)


def test_a_benchmark_there_names_the_device():
    result, = superstep.bench("mlp", on=DEVICE, mode="infer", batch=64, seconds=0.1)
    assert result.data["environment"]["device"][0]["kind"] == "cpu"


def test_a_device_that_is_not_there_is_named(monkeypatch):
    with error_of(superstep.Error, "there is no device 77", "superstep list devices"):
        superstep.load("mlp", target=f"{DEVICE}:77")
