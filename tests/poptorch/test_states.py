"""States of executors: compiled, attached, destroyed; weights and buffers; the class of the module; random numbers."""
import copy
import io

import poptorch
import pytest
import torch
from support import Regression


def data(rows=2):
    return torch.randn(rows, 4), torch.randn(rows, 3)


class Norm(torch.nn.Module):
    """A norm with running statistics, and a loss."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(4)

    def forward(self, x):
        y = self.norm(x)
        return y, poptorch.identity_loss(y ** 2, "mean")


def test_attach_and_detach():
    executor = poptorch.trainingModel(Regression())
    for method in (executor.attachToDevice, executor.detachFromDevice, executor.copyWeightsToHost, executor.copyWeightsToDevice):
        with pytest.raises(poptorch.Error, match="not been compiled"):
            method()
    assert not executor.isCompiled() and not executor.isAttachedToDevice() and not executor._executable
    executor.compile(*data())
    assert executor.isCompiled() and executor.isAttachedToDevice() and executor._executable
    with pytest.raises(poptorch.Error, match="already attached"):
        executor.attachToDevice()
    executor.detachFromDevice()
    with pytest.raises(poptorch.Error, match="not attached"):
        executor.detachFromDevice()
    executor(*data())
    assert executor.isAttachedToDevice()


def test_compile_leaves_no_mark():
    model = Norm()
    before, random = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    poptorch.trainingModel(model).compile(torch.randn(4, 4, generator=torch.Generator().manual_seed(3)))
    assert torch.equal(random, torch.get_rng_state())
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_an_offline_target_compiles_and_does_not_run():
    executor = poptorch.inferenceModel(torch.nn.ReLU(), poptorch.Options().useOfflineIpuTarget())
    executor.compile(torch.ones(1))
    assert executor.isCompiled() and not executor.isAttachedToDevice()
    with pytest.raises(AssertionError, match="offline"):
        executor(torch.ones(1))


def test_the_class_while_training():
    model = Regression()
    executor = poptorch.trainingModel(model)
    assert type(model).__name__ == "PoptorchRegression" and isinstance(model, Regression)
    with pytest.raises(RuntimeError, match="already been wrapped"):
        poptorch.trainingModel(model)
    executor(*data())
    for other in (copy.deepcopy(model), torch.load(io.BytesIO(saved(model)), weights_only=False)):
        assert type(other) is Regression
        assert torch.equal(other.layer.weight, model.layer.weight)
    model.destroy()
    assert type(model) is Regression and not executor.isCompiled()
    poptorch.trainingModel(executor)(*data())


def saved(model):
    file = io.BytesIO()
    torch.save(model, file)
    return file.getvalue()


def test_attributes_are_the_models():
    model = Regression()
    executor = poptorch.trainingModel(model)
    assert executor.model is model and executor.layer is model.layer
    assert list(executor.state_dict()) == ["layer.weight", "layer.bias"]
    with pytest.raises(AttributeError):
        executor.no_such_thing
    executor.load_state_dict({"layer.weight": torch.zeros(3, 4), "layer.bias": torch.zeros(3)})
    assert float(model.layer.weight.abs().max()) == 0


def test_executors_of_a_module_share_its_weights():
    model = Regression()
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.5))
    inference = poptorch.inferenceModel(model)
    x, target = data()
    before, _ = inference(x, target)
    training(x, target)
    after, _ = inference(x, target)
    assert not torch.equal(before, after)
    torch.testing.assert_close(after, model(x, target)[0])


def test_training_flags_are_those_of_wrapping_and_compiling():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.drop = torch.nn.Dropout(0.5)

        def forward(self, x):
            return torch.tensor([self.training, self.drop.training])

    model = Model()
    executor = poptorch.inferenceModel(model)
    model.eval()  # after wrapping: the module's own flag is kept
    assert executor(torch.ones(1)).tolist() == [True, False]
    model.train()  # after compiling: nothing changes
    assert executor(torch.ones(1)).tolist() == [True, False]
    assert model.drop.training


def test_statistics_live_in_the_module_in_training_and_on_the_device_in_inference():
    model = Norm()
    x = torch.randn(8, 4) + 3
    poptorch.trainingModel(model)(x)
    assert float(model.norm.running_mean.min()) > 0.1
    model.destroy()
    model = Norm()
    executor = poptorch.inferenceModel(model)
    executor(x)
    executor(x)
    assert float(model.norm.running_mean.abs().max()) == 0
    executor.copyWeightsToHost()
    torch.testing.assert_close(model.norm.running_mean, (1 - 0.9 ** 2) * x.mean(0))


def test_inference_follows_statistics_that_training_changes():
    model = Norm()
    inference = poptorch.inferenceModel(copy.deepcopy(model).eval())
    model.eval()
    inference = poptorch.inferenceModel(model)
    x = torch.randn(8, 4) + 3
    first, _ = inference(x)
    model.train()
    training = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.0))
    training(x)
    second, _ = inference(x)
    assert not torch.allclose(first, second)


def test_named_buffers():
    class Shift(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("shift", torch.zeros(1))

        def forward(self, x):
            return x + self.shift

    executor = poptorch.inferenceModel(Shift(), poptorch.Options().updatableNamedBuffers(["shift"]))
    x = torch.ones(1)
    assert executor(x) == 1
    executor.shift.fill_(5)
    assert executor(x) == 1
    executor.copyNamedBuffersToDevice()
    assert executor(x) == 6
    other = poptorch.inferenceModel(Shift())
    other(x)
    with pytest.raises(poptorch.Error, match="updatableNamedBuffers"):
        other.copyNamedBuffersToDevice()
    with pytest.raises(poptorch.Error, match="no_such.*shift"):
        poptorch.inferenceModel(Shift(), poptorch.Options().updatableNamedBuffers(["no_such"]))(x)


@pytest.mark.parametrize("change, words", [(lambda m, x: setattr(m, "kept", x), "kept is reassigned"),
                                           (lambda m, x: m._buffers.pop("kept", None), "kept is removed")])
def test_buffers_stay_the_same_tensors(change, words):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("kept", torch.zeros(1))

        def forward(self, x):
            change(self, x)
            return x

    with pytest.raises(poptorch.Error, match=words):
        poptorch.inferenceModel(Model())(torch.ones(1))


def test_replicas_and_buffers():
    class Count(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(1))

        def forward(self, x):
            self.total += x
            return self.total + 0

    options = poptorch.Options().replicationFactor(2)
    with pytest.raises(poptorch.Error, match="broadcastBuffers"):
        poptorch.inferenceModel(Count(), options)(torch.tensor([1.0, 10.0]))
    executor = poptorch.inferenceModel(Count(), options.clone().broadcastBuffers(False))
    for _ in range(3):
        y = executor(torch.tensor([1.0, 10.0]))
    assert y.tolist() == [3, 30]


def test_random_numbers_are_the_executors_own():
    options = poptorch.Options().randomSeed(3).deviceIterations(2)
    host = torch.get_rng_state()
    first = poptorch.inferenceModel(lambda x: x + torch.rand(2), options)
    a, b = first(torch.zeros(4)), first(torch.zeros(4))
    assert torch.equal(host, torch.get_rng_state())
    assert not torch.equal(a[:2], a[2:]) and not torch.equal(a, b)
    again = poptorch.inferenceModel(lambda x: x + torch.rand(2), options)
    assert torch.equal(a, again(torch.zeros(4)))
    state = first.rng_state
    c = first(torch.zeros(4))
    first.rng_state = state
    assert torch.equal(c, first(torch.zeros(4)))
    with pytest.raises(poptorch.Error, match="integers"):
        first.rng_state = [1, 2]


def test_hooks_and_compilation_time():
    calls = []
    handles = [poptorch.registerPreCompileHook(lambda: calls.append("before")),
               poptorch.registerPostCompileHook(lambda: calls.append("after"))]
    executor = poptorch.inferenceModel(lambda x: calls.append("forward") or x)
    with pytest.raises(poptorch.Error, match="compile"):
        executor.compilationTime()
    executor.compile(torch.ones(1))
    assert calls == ["before", "forward", "after"]
    assert executor.compilationTime().total_seconds() > 0
    for handle in handles:
        handle.remove()
    poptorch.inferenceModel(torch.nn.ReLU())(torch.ones(1))
    assert calls == ["before", "forward", "after"]
    with pytest.raises(RuntimeError, match="callable"):
        poptorch.registerPreCompileHook(3)


def test_values_that_are_not_finite_are_refused_where_asked():
    for enabled in (False, True):
        options = poptorch.Options()
        options.Precision.enableFloatingPointExceptions(enabled)
        executor = poptorch.inferenceModel(lambda x: torch.log(x).clamp(min=-1), options)
        if enabled:
            with pytest.raises(poptorch.Error, match="log is not finite"):
                executor(torch.zeros(1))
        else:
            assert executor(torch.zeros(1)) == -1
