"""Which value a model is trained on."""
import copy

import poptorch
import pytest
import torch
import torch.nn.functional as F


class Model(torch.nn.Module):
    """A weight, and a function of it and the input that returns losses."""

    def __init__(self, function):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.tensor([1.0, -2.0, 3.0]))
        self._function = function

    def forward(self, x):
        return self._function(self.weight * x)


def step_of(function, loss_of, x=None):
    """Weights after one step of SGD at rate 1: of the executor, and of PyTorch with the loss that `loss_of` picks."""
    x = torch.tensor([0.5, 0.25, 2.0]) if x is None else x
    model, plain = Model(function), Model(function)
    result = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0))(x)
    loss_of(plain(x)).sum().backward()
    return model.weight.detach(), (plain.weight - plain.weight.grad).detach(), result


def target():
    return torch.tensor([0.0, 1.0, 2.0])


@pytest.mark.parametrize("loss", [
    lambda y: F.mse_loss(y, target()), lambda y: F.l1_loss(y, target()), lambda y: F.smooth_l1_loss(y, target()),
    lambda y: F.huber_loss(y, target()), lambda y: F.cross_entropy(y[None], torch.tensor([2])),
    lambda y: F.nll_loss(F.log_softmax(y[None], 1), torch.tensor([0])),
    lambda y: F.binary_cross_entropy_with_logits(y, torch.tensor([0.0, 1.0, 1.0])),
    lambda y: F.kl_div(F.log_softmax(y, 0), torch.tensor([0.2, 0.3, 0.5]), reduction="sum"),
    lambda y: F.poisson_nll_loss(y, target()), lambda y: F.soft_margin_loss(y, torch.tensor([1.0, -1.0, 1.0])),
    lambda y: F.triplet_margin_loss(y[None], target()[None], -target()[None]),
    lambda y: poptorch.identity_loss(y ** 2, "mean"), lambda y: poptorch.identity_loss(y ** 2, "sum")])
def test_losses_start_backpropagation(loss):
    found, expected, _ = step_of(loss, lambda result: result)
    torch.testing.assert_close(found, expected)


def test_what_is_computed_from_the_loss_without_a_mark_is_not_trained():
    found, expected, result = step_of(lambda y: F.mse_loss(y, target()) * 0.5, lambda result: result * 2)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(result, F.mse_loss(torch.tensor([0.5, -0.5, 6.0]), target()) * 0.5)


def test_a_loss_of_losses_is_the_last_mark():
    def function(y):
        return poptorch.identity_loss(F.mse_loss(y, target()) + 3 * F.l1_loss(y, target()), "none")
    found, expected, _ = step_of(function, lambda result: result)
    torch.testing.assert_close(found, expected)


def test_an_unreduced_loss_starts_with_ones():
    found, expected, result = step_of(lambda y: poptorch.identity_loss(y ** 2, "none"), lambda result: result)
    torch.testing.assert_close(found, expected)
    assert result.shape == (3,)


def test_no_loss_and_two_losses_are_refused():
    with pytest.raises(poptorch.Error, match="find a loss"):
        step_of(lambda y: y.sum(), lambda result: result)
    with pytest.raises(poptorch.Error, match="Multiple independent losses"):
        step_of(lambda y: F.mse_loss(y, target()) + F.l1_loss(y, target()), lambda result: result)


def test_a_loss_within_a_branch_that_is_no_ancestor_is_refused_although_one_was_marked_later():
    def function(y):
        first = F.mse_loss(y, target())
        return poptorch.identity_loss(y.sum(), "none"), first
    with pytest.raises(poptorch.Error, match="Multiple independent losses"):
        step_of(function, lambda result: result[0])


def test_identity_loss_outside_is_the_reduction():
    x = torch.tensor([1.0, 3.0])
    assert [float(poptorch.identity_loss(x, kind)) for kind in ("sum", "mean")] == [4.0, 2.0]
    assert poptorch.identity_loss(x, "none").tolist() == [1.0, 3.0]
    with pytest.raises(AssertionError, match="max"):
        poptorch.identity_loss(x, "max")


def test_loss_scaling_changes_neither_loss_nor_step():
    plain, scaled = (Model(lambda y: F.mse_loss(y, target())) for _ in range(2))
    x = torch.tensor([0.5, 0.25, 2.0])
    one = poptorch.trainingModel(plain, optimizer=poptorch.optim.SGD(plain.parameters(), lr=0.1))(x)
    other = poptorch.trainingModel(scaled, optimizer=poptorch.optim.SGD(scaled.parameters(), lr=0.1, loss_scaling=64.0))(x)
    torch.testing.assert_close(one, other)
    torch.testing.assert_close(plain.weight, scaled.weight)


def test_parameters_that_the_loss_does_not_reach_stay():
    class Two(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.used = torch.nn.Parameter(torch.ones(2))
            self.unused = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            return F.mse_loss(self.used * x, x)

    model = Two()
    model.used.data *= 3
    before = copy.deepcopy(model.state_dict())
    poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.1))(torch.ones(2))
    assert not torch.equal(before["used"], model.used)
    assert torch.equal(before["unused"], model.unused)
