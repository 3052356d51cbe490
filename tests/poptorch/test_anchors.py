"""Tensors of a run that are kept, and their names."""
import poptorch
import pytest
import torch
from support import Regression


def executor_of(anchors, iterations=1, mode=None, scaling=1.0):
    model = Regression()
    options = poptorch.Options().deviceIterations(iterations)
    for short, long in anchors.items():
        options.anchorTensor(short, long, mode) if mode is not None else options.anchorTensor(short, long)
    return poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.1, loss_scaling=scaling))


def test_names():
    executor = executor_of({})
    with pytest.raises(AssertionError, match="compiled"):
        executor.getTensorNames()
    executor.compile(torch.ones(2, 4), torch.ones(2, 3))
    names = executor.getTensorNames()
    for name in ("layer.weight", "Gradient___layer.weight", "UpdatedVar___layer.bias", "input", "input/1", "loss", "layer/MatMul:0",
                 "Gradient___layer/MatMul:0"):
        assert name in names
    assert any(name.startswith("scaledLearningRate") for name in names)


@pytest.mark.parametrize("scaling", [1.0, 8.0])
def test_values(scaling):
    executor = executor_of({"gradient": "Gradient___layer.bias", "updated": "UpdatedVar___layer.bias", "value": "layer/MatMul:0",
                            "of value": "Gradient___layer/MatMul:0", "loss": "loss", "target": "input/1",
                            "plain": "layer.bias"}, scaling=scaling)
    with pytest.raises(AssertionError, match="No tensor"):
        executor.getAnchoredTensor("gradient")
    before = executor.layer.bias.detach().clone()
    x, target = torch.randn(2, 4), torch.randn(2, 3)
    y, loss = executor(x, target)
    get = executor.getAnchoredTensor
    torch.testing.assert_close(get("value"), y)
    torch.testing.assert_close(get("of value"), 2 * (y - target) / 6)
    torch.testing.assert_close(get("gradient"), get("of value").sum(0))
    torch.testing.assert_close(get("updated"), before - 0.1 * get("gradient"))
    torch.testing.assert_close(get("plain"), get("updated"))
    assert torch.equal(get("loss"), loss) and torch.equal(get("target"), target)


def test_modes():
    executor = executor_of({"gradient": "Gradient___layer.bias", "loss": "loss"}, 3, poptorch.OutputMode.All)
    executor(torch.randn(6, 4), torch.randn(6, 3))
    assert executor.getAnchoredTensor("gradient").shape == (9,)
    assert executor.getAnchoredTensor("loss").shape == (3,)


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(poptorch.Error, match="Gradient___layer.wieght.*Gradient___layer.weight"):
        executor_of({"a": "Gradient___layer.wieght"}).compile(torch.ones(2, 4), torch.ones(2, 3))
