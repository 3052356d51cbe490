"""Half precision: products take the activation's type; sums are those of float32; scaling keeps small gradients."""
import poptorch
import pytest
import torch

HALF, FLOAT = torch.float16, torch.float32


@pytest.mark.parametrize("layer, shape", [(lambda: torch.nn.Linear(8, 4), (2, 8)), (lambda: torch.nn.Conv1d(3, 4, 2), (2, 3, 8)),
                                          (lambda: torch.nn.Conv2d(3, 4, 2), (2, 3, 8, 8)),
                                          (lambda: torch.nn.ConvTranspose2d(3, 4, 2), (2, 3, 4, 4))])
@pytest.mark.parametrize("activation", [HALF, FLOAT])
@pytest.mark.parametrize("weights", [HALF, FLOAT])
def test_products_take_the_type_of_the_activation(layer, shape, activation, weights):
    model = layer().to(weights)
    x = torch.randn(shape)
    y = poptorch.inferenceModel(model)(x.to(activation))
    assert y.dtype == activation
    expected = model.float()(x.to(activation).float())
    torch.testing.assert_close(y.float(), expected, rtol=2e-3, atol=2e-3)


def test_operands_of_matmul():
    y = poptorch.inferenceModel(lambda a, b: (a @ b, torch.bmm(a[None], b[None]), torch.einsum("ij,jk->ik", a, b)))(
        torch.randn(3, 4).half(), torch.randn(4, 5))
    assert {tensor.dtype for tensor in y} == {HALF}


def test_products_sum_in_float32():
    # 4096 ones and 0.25: sums in half would stay at 2048.
    x = torch.ones(1, 4096).half()
    model = torch.nn.Linear(4096, 1, bias=False).half()
    model.weight.data.fill_(1.0)
    assert float(poptorch.inferenceModel(model)(x)) == 4096.0


class Trained(torch.nn.Module):
    """Float weights under half activations."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
        self.norm = torch.nn.BatchNorm1d(8)
        self.loss = torch.nn.MSELoss()

    def forward(self, x, target):
        return self.loss(self.norm(self.layer(x)), target)


def test_float_weights_learn_from_half_activations():
    model = Trained()
    executor = poptorch.trainingModel(model, optimizer=torch.optim.SGD(model.parameters(), lr=0.05))
    x, target = torch.randn(16, 8).half(), torch.randn(16, 8).half()
    losses = [float(executor(x, target)) for _ in range(40)]
    assert losses[-1] < 0.7 * losses[0]
    assert model.layer.weight.dtype == FLOAT
    assert model.norm.running_mean.dtype == FLOAT
    assert int(model.norm.num_batches_tracked) == 40
    assert float(model.norm.running_mean.abs().max()) > 0


def test_statistics_in_half_are_moved_too():
    norm = torch.nn.BatchNorm1d(4)
    norm.running_mean = norm.running_mean.half()
    norm.running_var = norm.running_var.half()
    executor = poptorch.inferenceModel(norm)
    x = torch.randn(8, 4) + 3
    executor(x.half())
    executor.copyWeightsToHost()
    assert norm.running_mean.dtype == HALF
    torch.testing.assert_close(executor.running_mean.float(), 0.1 * x.mean(0), rtol=1e-2, atol=1e-3)


def test_scaling_keeps_gradients_that_half_loses():
    class Small(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1, dtype=HALF))

        def forward(self, x):
            return poptorch.identity_loss((self.weight * x).float() * 1e-4, "mean")

    moved = []
    for scaling in (1.0, 2.0 ** 14):
        model = Small()
        options = poptorch.Options()
        optimizer = poptorch.optim.SGD(model.parameters(), lr=1e4, loss_scaling=scaling)
        poptorch.trainingModel(model, options, optimizer)(torch.full((1,), 1e-4).half())
        moved.append(float(model.weight))
    assert moved[0] == 0.0  # 1e-8 is no half number
    assert moved[1] == pytest.approx(-1e-4, rel=0.01)
