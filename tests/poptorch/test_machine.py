"""Cycles, latencies, memory and profiles: told by the machine's model where the package superstep is, refused otherwise."""
import importlib.util
import sys

import poptorch
import pytest
import torch
from support import Regression

with_superstep = pytest.mark.skipif(importlib.util.find_spec("superstep._core") is None if importlib.util.find_spec("superstep")
                                    else True, reason="the package superstep is not installed")


def executor_of(iterations=1, replicas=1, log=True):
    options = poptorch.Options().deviceIterations(iterations).replicationFactor(replicas).logCycleCount(log)
    return poptorch.inferenceModel(Regression(), options)


def data(rows):
    return torch.randn(rows, 4), torch.randn(rows, 3)


def test_cycles_before_a_run_are_refused(monkeypatch):
    with pytest.raises(poptorch.Error, match="logCycleCount"):
        executor_of(log=False).cycleCount()
    with pytest.raises(poptorch.Error, match="run the model"):
        executor_of().cycleCount()
    monkeypatch.setenv("POPTORCH_IPU_MODEL", "1")
    with pytest.raises(poptorch.Error, match="only supported on actual IPU hardware"):
        executor_of()(*data(2))


def test_without_the_package_numbers_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "superstep", None)
    executor = executor_of()
    executor(*data(2))
    for ask in (executor.cycleCount, executor.getLatency, executor.getPerfCounters):
        with pytest.raises(poptorch.Error, match="superstep is not installed"):
            ask()


@with_superstep
def test_cycles_grow_with_iterations_and_repeat():
    found = []
    for iterations in (1, 4):
        executor = executor_of(iterations)
        executor(*data(2 * iterations))
        found.append(executor.cycleCount())
        executor(*data(2 * iterations))
        assert executor.cycleCount() == found[-1]
    assert found[0] > 0 and found[1] == pytest.approx(4 * found[0], rel=0.5)


@with_superstep
def test_counters_and_latencies():
    executor = executor_of(3, 2)
    assert executor.getLatency() == (0, 0, 0)
    executor(*data(12))
    counters = executor.getPerfCounters()
    assert {name: [len(times) for times in lists] for name, lists in counters.items()} == {
        "input": [6, 6], "input_complete": [6, 6], "output": [6, 6], "output_complete": [6, 6]}
    least, most, mean = executor.getLatency()
    assert 0 < least <= mean <= most
    parts = [latency()[2] for latency in (executor.getHostIpuLatency, executor.getComputeLatency, executor.getIpuHostLatency)]
    assert sum(parts) == pytest.approx(mean)


def test_made_up_data_are_not_transferred():
    executor = poptorch.inferenceModel(Regression(), poptorch.Options().enableSyntheticData(True))
    executor(*data(2))
    assert executor.getPerfCounters() == {name: [[], []] for name in ("input", "input_complete", "output", "output_complete")}
    assert executor.getLatency() == (0, 0, 0)


@with_superstep
def test_what_cannot_be_exported_has_no_cycles():
    executor = poptorch.inferenceModel(lambda x: torch.linalg.eigvalsh(x), poptorch.Options().logCycleCount(True))
    executor(torch.eye(3))
    with pytest.raises(poptorch.Error, match="machine's model cannot be told"):
        executor.cycleCount()


@with_superstep
def test_what_does_not_fit_is_refused_where_asked(monkeypatch):
    monkeypatch.setenv("SUPERSTEP_POPTORCH_FIT", "refuse")
    # 64 million parameters, their gradients and two moments: 1.02 GB in float32, of 0.94 GB.
    with pytest.raises(poptorch.Error, match="Regression does not fit.*MB of") as error:
        poptorch.trainingModel(Regression(8000, 8000)).compile(torch.ones(1, 8000), torch.ones(1, 8000))
    assert error.value.type == "poplar_graph_memory_allocation_error"
    poptorch.trainingModel(Regression())(*data(2))


@with_superstep
def test_profiles_are_written(tmp_path):
    options = poptorch.Options().modelName("mine").enableProfiling(str(tmp_path))
    poptorch.inferenceModel(torch.nn.Linear(4, 4), options)(torch.ones(2, 4))
    assert {"profile.html", "profile.pop"} <= {file.name for file in (tmp_path / "mine").iterdir()}


def test_what_compiling_found_is_kept(tmp_path, monkeypatch):
    options = poptorch.Options().logCycleCount(True).enableExecutableCaching(str(tmp_path))
    model = Regression()
    first = poptorch.inferenceModel(model, options)
    first(*data(2))
    assert len(list(tmp_path.iterdir())) == 1
    poptorch.inferenceModel(model, options).compile(*data(2))
    assert len(list(tmp_path.iterdir())) == 1
    poptorch.inferenceModel(model, options).compile(*data(4))
    assert len(list(tmp_path.iterdir())) == 2


@with_superstep
def test_kept_predictions_are_used(tmp_path, monkeypatch):
    options = poptorch.Options().logCycleCount(True).enableExecutableCaching(str(tmp_path))
    model = Regression()
    first = poptorch.inferenceModel(model, options)
    first(*data(2))
    cycles = first.cycleCount()
    monkeypatch.setitem(sys.modules, "superstep", None)  # nobody to ask
    second = poptorch.inferenceModel(model, options)
    second(*data(2))
    assert second.cycleCount() == cycles
    next(tmp_path.iterdir()).write_text("not JSON")
    third = poptorch.inferenceModel(model, options)
    third(*data(2))
    with pytest.raises(poptorch.Error, match="not installed"):
        third.cycleCount()
