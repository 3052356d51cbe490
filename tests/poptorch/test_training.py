"""Optimizers through executors, beside torch's own steps."""
import copy
import pathlib
import subprocess
import sys

import poptorch
import pytest
import torch
from support import Regression, reference


def trained(model, optimizer, steps=4, options=None):
    executor = poptorch.trainingModel(model, options, optimizer)
    generator = torch.Generator().manual_seed(5)
    for _ in range(steps):
        executor(torch.randn(8, 4, generator=generator), torch.randn(8, 3, generator=generator))
    return executor


def by_torch(model, optimizer, steps=4):
    generator = torch.Generator().manual_seed(5)
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(8, 4, generator=generator), torch.randn(8, 3, generator=generator))[1].backward()
        optimizer.step()


@pytest.mark.parametrize("ours, theirs", [
    (lambda p: poptorch.optim.SGD(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    (lambda p: poptorch.optim.AdamW(p, lr=0.01), lambda p: torch.optim.AdamW(p, lr=0.01)),
    (lambda p: poptorch.optim.Adam(p, lr=0.01, weight_decay=0.1), lambda p: torch.optim.Adam(p, lr=0.01, weight_decay=0.1)),
    (lambda p: torch.optim.RMSprop(p, lr=0.01), lambda p: torch.optim.RMSprop(p, lr=0.01))])
def test_steps_are_torchs(ours, theirs):
    model = Regression()
    plain = copy.deepcopy(model)
    trained(model, ours(model.parameters()))
    by_torch(plain, theirs(plain.parameters()))
    for one, other in zip(model.parameters(), plain.parameters()):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


def test_groups_and_frozen_parameters():
    model = Regression()
    plain = copy.deepcopy(model)
    for one in (model, plain):
        one.layer.bias.requires_grad_(False)
    trained(model, torch.optim.SGD([{"params": [model.layer.weight], "lr": 0.2}, {"params": [model.layer.bias]}], lr=0.1))
    by_torch(plain, torch.optim.SGD([plain.layer.weight], lr=0.2))
    torch.testing.assert_close(model.layer.weight, plain.layer.weight)
    assert torch.equal(model.layer.bias, plain.layer.bias)


def test_schedules_act_at_set_optimizer():
    model = Regression()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    executor = trained(model, optimizer, 1)
    x, target = torch.randn(8, 4), torch.randn(8, 3)
    optimizer.param_groups[0]["lr"] = 0.0
    before = model.layer.weight.detach().clone()
    executor(x, target)
    moved = model.layer.weight.detach().clone()
    assert not torch.equal(before, moved)  # nothing happens until setOptimizer
    executor.setOptimizer(optimizer)
    executor(x, target)
    assert torch.equal(model.layer.weight, moved)


def test_without_an_optimizer_it_is_sgd_of_rate_001():
    model = Regression()
    plain = copy.deepcopy(model)
    trained(model, None, 2)
    by_torch(plain, torch.optim.SGD(plain.parameters(), lr=0.01), 2)
    torch.testing.assert_close(model.layer.weight, plain.layer.weight)


def test_optimizers_of_other_classes_are_refused():
    model = Regression()
    with pytest.raises(AssertionError):
        trained(model, torch.optim.Adagrad(model.parameters(), lr=0.1))


@pytest.mark.parametrize("strategy", list(poptorch.MeanReductionStrategy))
def test_strategies_of_the_mean_differ_by_rounding_alone(strategy):
    model = Regression()
    plain = copy.deepcopy(model)
    options = poptorch.Options().replicationFactor(2)
    options.Training.gradientAccumulation(3)
    options.Training.setMeanAccumulationAndReplicationReductionStrategy(strategy)
    x, target = torch.randn(12, 4), torch.randn(12, 3)
    poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.1))(x, target)
    reference(plain, x, target, 0.1, 1, 3, 2)
    torch.testing.assert_close(model.layer.weight, plain.layer.weight)


def test_gradients_summed_in_half_are_a_running_mean():
    model = Regression()
    optimizer = poptorch.optim.SGD(model.parameters(), lr=0.1, accum_type=torch.float16)
    options = poptorch.Options()
    options.Training.gradientAccumulation(4)
    executor = poptorch.trainingModel(model, options, optimizer)
    assert (executor.options.Training.meanAccumulationAndReplicationReductionStrategy
            == poptorch.MeanReductionStrategy.Running)
    # Gradients of 30,000 are near the largest half number, 65,504: the sum of four would be infinite, their mean is not.
    executor(torch.ones(4, 4), torch.full((4, 3), -45000.0))
    assert bool(torch.isfinite(model.layer.weight).all())


def test_parameters_with_the_same_gradient_are_apart():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.zeros(2))
            self.b = torch.nn.Parameter(torch.zeros(2))

        def forward(self, x):
            return poptorch.identity_loss((self.a + self.b) * x, "sum")

    model = Two()
    options = poptorch.Options()
    options.Training.gradientAccumulation(3)
    options.Training.setMeanAccumulationAndReplicationReductionStrategy(poptorch.MeanReductionStrategy.Running)
    poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=1.0))(torch.tensor([[1.0], [2.0], [6.0]]))
    assert model.a.tolist() == pytest.approx([-3, -3]) and model.b.tolist() == pytest.approx([-3, -3])


def test_rows_of_parameters_by_groups_of_replicas():
    class Rows(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2, 3))

        def forward(self, x):
            y = self.weight * x
            return y, poptorch.identity_loss(y, "sum")

    model = Rows()
    options = poptorch.Options().replicationFactor(4)
    options.Training.accumulationAndReplicationReductionType(poptorch.ReductionType.Sum)
    executor = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=1.0))
    executor.weight.replicaGrouping(poptorch.CommGroupType.Consecutive, 2, poptorch.VariableRetrievalMode.OnePerGroup)
    executor(torch.tensor([1.0, 2.0, 3.0, 4.0])[:, None].expand(4, 3))
    # Replicas 0 and 1 share row 0, 2 and 3 row 1: the gradients are 1 + 2 and 3 + 4.
    assert model.weight[:, 0].tolist() == [-2, -6]
    with pytest.raises(poptorch.Error, match="before the model is compiled"):
        executor.weight.replicaGrouping(poptorch.CommGroupType.NoGrouping, 0, poptorch.VariableRetrievalMode.OnePerGroup)
    with pytest.raises(poptorch.Error, match="OnePerGroup"):
        poptorch.trainingModel(Rows()).weight.replicaGrouping(poptorch.CommGroupType.NoGrouping, 0,
                                                              poptorch.VariableRetrievalMode.AllReplicas)
    other = poptorch.trainingModel(Rows(), poptorch.Options().replicationFactor(4))
    other.weight.replicaGrouping(poptorch.CommGroupType.NoGrouping, 0, poptorch.VariableRetrievalMode.OnePerGroup)
    with pytest.raises(poptorch.Error, match="dimension 0 is 2.*4 groups"):
        other(torch.ones(4, 3))


INSTANCE = """
import sys, popdist, popdist.poptorch, poptorch, torch
sys.path.insert(0, sys.argv[2])
from support import Regression
options = popdist.poptorch.Options()
options.Training.gradientAccumulation(2)
torch.manual_seed(1)
model = Regression()
executor = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.1))
generator = torch.Generator().manual_seed(5)
part = slice(4 * popdist.getInstanceIndex(), 4 * popdist.getInstanceIndex() + 4)
for _ in range(3):
    executor(torch.randn(8, 4, generator=generator)[part], torch.randn(8, 3, generator=generator)[part])
torch.save(model.state_dict(), f"{sys.argv[1]}/{popdist.getInstanceIndex()}")
"""


def test_two_instances_are_two_replicas(tmp_path):
    pytest.importorskip("popdist")
    (tmp_path / "train.py").write_text(INSTANCE)
    subprocess.run([sys.executable, "-m", "popdist.poprun", "--num-instances", "2", "--num-replicas", "2", sys.executable,
                    str(tmp_path / "train.py"), str(tmp_path), str(pathlib.Path(__file__).parent)], check=True, timeout=120)
    torch.manual_seed(1)
    model = Regression()
    options = poptorch.Options().replicationFactor(2)
    options.Training.gradientAccumulation(2)
    executor = poptorch.trainingModel(model, options, torch.optim.SGD(model.parameters(), lr=0.1))
    generator = torch.Generator().manual_seed(5)
    for _ in range(3):
        executor(torch.randn(8, 4, generator=generator), torch.randn(8, 3, generator=generator))
    for instance in range(2):
        for name, value in torch.load(tmp_path / str(instance)).items():
            torch.testing.assert_close(value, model.state_dict()[name], rtol=1e-6, atol=1e-6)
