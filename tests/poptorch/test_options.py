"""Options: values, refusals, freezing, files, JSON, the environment."""
import copy
import json
import pickle
import subprocess
import sys

import poptorch
import pytest
import torch
from support import Regression


def test_values_are_attributes_and_methods_return_the_object():
    options = poptorch.Options().deviceIterations(4).replicationFactor(2)
    options.Training.gradientAccumulation(gradient_accumulation=3)
    assert (options.device_iterations, options.replication_factor, options.Training.gradient_accumulation) == (4, 2, 3)
    assert options.exists("random_seed") is False
    assert options.randomSeed(7).random_seed == 7
    assert "device_iterations=4" in repr(options)


@pytest.mark.parametrize("call, kind", [
    (lambda o: o.deviceIterations("4"), AssertionError), (lambda o: setattr(o, "device_iterations", 1.5), AssertionError),
    (lambda o: setattr(o, "no_such_value", 1), AssertionError), (lambda o: o.no_such_value, AttributeError),
    (lambda o: setattr(o, "_private", 1), AttributeError), (lambda o: o.outputMode(poptorch.OutputMode.EveryN), AssertionError),
    (lambda o: o.outputMode(2), AssertionError), (lambda o: o.toDict(), AssertionError),
    (lambda o: o.setAvailableMemoryProportion({"0": 0.5}), AssertionError),
    (lambda o: o.setExecutionStrategy("pipelined"), AssertionError), (lambda o: o.Jit.traceModel(True), ValueError),
    (lambda o: o.Precision.setPartialsType(torch.int32), ValueError),
    (lambda o: o.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.NoReduction), ValueError),
    (lambda o: o.inputReplicaGrouping(3, poptorch.CommGroupType.Consecutive), ValueError),
    (lambda o: o.inputReplicaGrouping(1, poptorch.CommGroupType.All), ValueError),
    (lambda o: o.TensorLocations.numIOTiles(33), AssertionError), (lambda o: o.TensorLocations.numIOTiles(194), AssertionError),
    (lambda o: o.TensorLocations.setWeightLocation({"onChip": 1}), AssertionError),
    (lambda o: poptorch.TensorLocationSettings().useOnChipStorage(1), AssertionError)])
def test_wrong_values_are_refused(call, kind):
    with pytest.raises(kind):
        call(poptorch.Options())


def test_a_model_freezes_the_options_and_keeps_a_clone():
    options = poptorch.Options()
    executor = poptorch.trainingModel(Regression(), options)
    for change in (lambda o: o.deviceIterations(2), lambda o: o.Training.gradientAccumulation(2),
                   lambda o: o._Popart.set("enableOutlining", True), lambda o: o.TensorLocations.numIOTiles(32),
                   lambda o: o.anchorTensor("a", "b"), lambda o: o.enableProfiling()):
        for frozen in (options, executor.options):
            with pytest.raises(AttributeError, match="frozen"):
                change(frozen)
    assert executor.options is not options
    clone = options.clone().deviceIterations(2)
    clone.Training.gradientAccumulation(2)
    assert options.device_iterations == 1


def test_copies_are_apart():
    options = poptorch.Options().deviceIterations(5)
    options._Popart.set("autoRecomputation", 3)
    options.anchorTensor("a", "weight")
    for other in (copy.deepcopy(options), pickle.loads(pickle.dumps(options)), options.clone()):
        other.deviceIterations(6)
        other._Popart.set("autoRecomputation", 2)
        other.anchorTensor("b", "bias")
    assert options.device_iterations == 5
    assert options._Popart.options["autoRecomputation"] == 3
    assert list(options.anchored_tensors) == ["a"]


def test_the_model_chooses_the_default_output_mode():
    assert poptorch.trainingModel(Regression()).options.output_mode == poptorch.OutputMode.Final
    assert poptorch.inferenceModel(Regression()).options.output_mode == poptorch.OutputMode.All


def test_json_and_the_environment(monkeypatch):
    text = json.dumps({"Training.gradientAccumulation": 4, "outputMode": "OutputMode.All",
                       "_Popart.set": ["enableOutlining", True]})
    options = poptorch.Options()
    options.from_json(text)
    monkeypatch.setenv("POPTORCH_DEFAULT_OPTIONS", text)
    monkeypatch.setenv("POPTORCH_CACHE_DIR", "/tmp/cache")
    started = poptorch.Options()
    for found in (options, started):
        assert found.Training.gradient_accumulation == 4
        assert found.output_mode == poptorch.OutputMode.All
        assert found._Popart.options["enableOutlining"] is True
    assert started._Popart.options["cachePath"] == "/tmp/cache"


def test_files(tmp_path):
    file = tmp_path / "my.conf"
    file.write_text("# a comment\n\n  deviceIterations(3)  # another\nTraining.gradientAccumulation(2)\n"
                    "setExecutionStrategy(poptorch.ShardedExecution())\n")
    options = poptorch.Options()
    options.loadFromFile(str(file))
    assert (options.device_iterations, options.Training.gradient_accumulation) == (3, 2)
    assert isinstance(options._execution_strategy, poptorch.ShardedExecution)
    file.write_text("deviceIterations(1)\n\nreplicationFactor(2\n")
    with pytest.raises(poptorch.ConfigFileError, match="line 3 of my.conf.*\n.*replicationFactor"):
        poptorch.Options().loadFromFile(str(file))


def test_names_that_public_scripts_set_are_known():
    options = poptorch.Options()
    for name in ("replicatedCollectivesSettings.prepareScheduleForMergingCollectives", "disableGradAccumulationTensorStreams",
                 "replicatedCollectivesSettings.mergeAllReduceCollectives", "groupNormStridedChannelGrouping"):
        options._Popart.set(name, True)
    assert poptorch.inferenceModel(torch.nn.ReLU(), options)(torch.ones(1)) == 1


def test_unknown_names_of_popart_are_refused_with_the_nearest():
    options = poptorch.Options()
    options._Popart.set("enableOutlinig", True)
    with pytest.raises(poptorch.Error, match="Unknown PopART option enableOutlinig.*enableOutlining"):
        poptorch.inferenceModel(torch.nn.ReLU(), options)(torch.ones(1))


def test_random_seed_seeds_the_host_too():
    poptorch.Options().randomSeed(5)
    first = torch.rand(3)
    poptorch.Options().randomSeed(5)
    assert torch.equal(first, torch.rand(3))


def test_inference_takes_neither_accumulation_nor_other_options():
    options = poptorch.Options()
    options.Training.gradientAccumulation(2)
    with pytest.raises(poptorch.Error, match="gradientAccumulation"):
        poptorch.inferenceModel(torch.nn.ReLU(), options)
    with pytest.raises(poptorch.Error, match="poptorch.Options"):
        poptorch.inferenceModel(torch.nn.ReLU(), {"device_iterations": 2})


def test_synthetic_data_are_made_up():
    options = poptorch.Options().enableSyntheticData(2)
    executor = poptorch.inferenceModel(lambda x, labels: (x + 0, labels + 0), options)
    y, labels = executor(torch.full((1000,), 7.0), torch.arange(1000))
    assert abs(float(y.mean())) < 0.5
    assert int(labels.abs().max()) == 0


@pytest.mark.parametrize("level, kind", [("LOUD", ValueError), (5, ValueError)])
def test_levels(level, kind):
    with pytest.raises(kind):
        poptorch.setLogLevel(level)


def test_devices(monkeypatch):
    assert poptorch.ipuHardwareIsAvailable(64)
    assert not poptorch.ipuHardwareIsAvailable(65)
    assert poptorch.ipuHardwareVersion() == 2
    monkeypatch.setenv("SUPERSTEP_POPTORCH_DEVICES", "bow")
    assert poptorch.ipuHardwareVersion() == 3
    monkeypatch.setenv("POPTORCH_IPU_MODEL", "1")
    assert not poptorch.ipuHardwareIsAvailable()
    monkeypatch.setenv("SUPERSTEP_POPTORCH_DEVICES", "abacus")
    with pytest.raises(poptorch.Error, match="abacus"):
        poptorch.ipuHardwareIsAvailable()


def test_engines(monkeypatch):
    import poptorch._execution.captured
    monkeypatch.setattr(poptorch._execution.captured, "missing", lambda: ["onnx"])
    for name, refused in (("auto", False), ("eager", False), ("superstep", True), ("steam", True)):
        monkeypatch.setenv("SUPERSTEP_POPTORCH_ENGINE", name)
        if refused:
            with pytest.raises(poptorch.Error, match=name):
                poptorch.inferenceModel(torch.nn.ReLU())(torch.ones(1))
        else:
            assert poptorch.inferenceModel(torch.nn.ReLU())(torch.ones(1)) == 1


def test_importing_takes_torch_alone():
    code = "import sys, poptorch; print([name for name in ('superstep', 'onnx', 'torch_geometric', 'popdist') if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n" and found.stderr == ""
