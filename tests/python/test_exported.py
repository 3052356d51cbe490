"""Archives of torch.export as torch.export.save writes them: served and trained here, beside PyTorch. Skipped without torch."""
import numpy
import pytest
from support import error_of

torch = pytest.importorskip("torch")
nn = torch.nn

import superstep


class Attends(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 8), nn.Parameter(torch.randn(5, 8))
        self.q, self.k, self.v, self.out = (nn.Linear(8, 8) for _ in range(4))
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        y = self.norm(self.tokens(x) + self.places)
        q, k, v = (layer(y).view(x.size(0), 5, 2, 4).transpose(1, 2) for layer in (self.q, self.k, self.v))
        y = y + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.size(0), 5, 8))
        return torch.softmax(y.mean(1), -1), y.amax((1, 2))


class Convolves(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2))
        self.body = nn.Sequential(nn.Conv2d(8, 8, 3, padding="same", groups=2), nn.GroupNorm(2, 8), nn.SiLU(), nn.AvgPool2d(2))
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)
        self.head = nn.Linear(4, 5)

    def forward(self, x):
        y = self.stem(x)
        y = torch.cat([self.up(self.body(y)), torch.chunk(y, 2, 1)[0]], 1)[:, 2:6]
        return self.head(nn.functional.adaptive_avg_pool2d(y, 1).flatten(1))


class Lines(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv1d(2, 4, 3, dilation=2), nn.BatchNorm1d(4), nn.GELU(), nn.Dropout(0.1), nn.AvgPool1d(2), nn.Flatten(),
                                    nn.Linear(12, 6), nn.Tanh(), nn.Linear(6, 1))

    def forward(self, x):
        return self.layers((x - x.mean(2, keepdim=True)) / (x.square().sum(2, keepdim=True) + 1.0).sqrt()).exp() ** 2


class Volumes(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.slope = nn.Conv3d(1, 3, 2), nn.PReLU(3)

    def forward(self, x):
        y = nn.functional.leaky_relu(nn.functional.max_pool3d(self.slope(self.conv(x)), 2), 0.2)
        return torch.where(y > 0.1, y.sigmoid(), nn.functional.elu(y)).permute(0, 4, 1, 2, 3).reshape(x.shape[0], -1)


NETS = {"attends": (Attends, lambda n: torch.randint(0, 11, (n, 5))), "convolves": (Convolves, lambda n: torch.randn(n, 3, 16, 16)),
        "lines": (Lines, lambda n: torch.randn(n, 2, 10)), "volumes": (Volumes, lambda n: torch.randn(n, 1, 5, 5, 5))}


def exported(tmp_path, name, train=False):
    torch.manual_seed(1)
    kind, samples = NETS[name]
    module, x = kind().train(train), samples(3)
    if not train:  # statistics that are not those of a fresh layer
        module.train()(x), module.eval()
    program = torch.export.export(module, (x,), dynamic_shapes=({0: torch.export.Dim("batch", min=2)},))
    path = str(tmp_path / f"{name}.pt2")
    torch.export.save(program, path)
    return path, module, samples


@pytest.mark.parametrize("name", NETS)
def test_answers_are_those_of_pytorch(tmp_path, name):
    path, module, samples = exported(tmp_path, name)
    x = samples(7)
    with torch.no_grad():
        wanted = module(x)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    found = superstep.load(path, batch=7, threads=1)(x.numpy())
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(wanted)
    for ours, theirs in zip(found, wanted):
        numpy.testing.assert_allclose(ours, theirs.numpy(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", ["convolves", "volumes"])
def test_training_is_that_of_pytorch(tmp_path, name):
    path, module, samples = exported(tmp_path, name, train=True)
    x = samples(4)
    target = torch.randn_like(module(x)).detach()
    path, module, samples = exported(tmp_path, name, train=True)
    model = superstep.Model(path, loss="mse")
    names = {each for each, value in module.state_dict().items() if value.is_floating_point()}  # with running statistics
    assert set(model.parameters) == names
    trainer = model.trainer(batch=4, optimizer="sgd", learning_rate=0.05, threads=1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(module(x), target)
        loss.backward(), optimizer.step()
        assert trainer.step(x.numpy(), target.numpy()) == pytest.approx(loss.item(), rel=1e-4)


def test_what_is_not_read_is_named(tmp_path):
    class Spectrum(nn.Module):
        def forward(self, x):
            return torch.fft.rfft(x).abs()

    path = str(tmp_path / "spectrum.pt2")
    torch.export.save(torch.export.export(Spectrum(), (torch.randn(2, 8),)), path)
    with error_of(superstep.Unsupported, "aten.fft_rfft.default"):
        superstep.Model(path)
