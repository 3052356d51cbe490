"""The engine `superstep`: what it computes, what it leaves to PyTorch. Skipped without superstep and onnx."""
import importlib.util

import numpy
import pytest

torch = pytest.importorskip("torch")
for needed in ("superstep", "onnx"):
    pytest.importorskip(needed)

import poptorch

functional = torch.nn.functional


@pytest.fixture(params=["eager", "superstep"])
def engine(request, monkeypatch):
    monkeypatch.setenv("SUPERSTEP_POPTORCH_ENGINE", request.param)
    return request.param


def trained(monkeypatch, engine, make, inputs, calls=3, options=None, optimizer=None):
    """The results of some calls by one engine, and the parameters after them."""
    monkeypatch.setenv("SUPERSTEP_POPTORCH_ENGINE", engine)
    torch.manual_seed(5)
    model = make()
    options = options() if options else poptorch.Options()
    options.randomSeed(7)
    optimizer = optimizer or (lambda parameters: poptorch.optim.SGD(parameters, lr=0.1, momentum=0.9, weight_decay=0.01))
    executor = poptorch.trainingModel(model, options, optimizer(model.parameters()))
    results = [executor(*inputs) for _ in range(calls)]
    return results, model.state_dict(), executor


def flat(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, str):
        return []
    return [tensor for part in (value.values() if isinstance(value, dict) else value) for tensor in flat(part)]


def expect_same(monkeypatch, make, inputs, tolerance=2e-5, **named):
    """Both engines give the same results and parameters."""
    one, states, _ = trained(monkeypatch, "eager", make, inputs, **named)
    other, found, executor = trained(monkeypatch, "superstep", make, inputs, **named)
    assert executor._engine._graph is not None, "not captured"
    for a, b in zip(flat(one), flat(other)):
        assert a.shape == b.shape and a.dtype == b.dtype
        assert float((a.double() - b.double()).abs().max()) <= tolerance * max(1, float(a.double().abs().max()))
    for name, value in states.items():
        assert float((value.double() - found[name].double()).abs().max()) <= tolerance * max(1, float(value.abs().max())), name


class Classifier(torch.nn.Module):
    """Scores, and the loss of a criterion where labels are given."""

    def __init__(self, criterion=functional.cross_entropy, dropout=0.0):
        super().__init__()
        self.conv = torch.nn.Conv2d(1, 4, 3)
        self.first, self.second = torch.nn.Linear(4 * 36, 16), torch.nn.Linear(16, 3)
        self.dropout = torch.nn.Dropout(dropout)
        self.criterion = criterion

    def forward(self, x, labels=None):
        x = torch.relu(self.conv(x)).flatten(1)
        scores = self.second(self.dropout(torch.relu(self.first(x))))
        return scores if labels is None else (scores, self.criterion(scores, labels))


def pictures(count):
    generator = torch.Generator().manual_seed(3)
    return torch.randn(count, 1, 8, 8, generator=generator), torch.randint(0, 3, (count,), generator=generator)


def test_gives_pytorchs_numbers(monkeypatch):
    expect_same(monkeypatch, Classifier, pictures(8))


def test_accumulates_replicates_and_iterates(monkeypatch):
    def options():
        made = poptorch.Options()
        made.deviceIterations(2).replicationFactor(2).outputMode(poptorch.OutputMode.All)
        made.Training.gradientAccumulation(3)
        return made
    expect_same(monkeypatch, Classifier, pictures(24), options=options)


def test_every_optimizer_steps_from_its_gradients(monkeypatch):
    for optimizer in (lambda p: poptorch.optim.AdamW(p, lr=0.01), lambda p: torch.optim.RMSprop(p, lr=0.01),
                      lambda p: poptorch.optim.LAMB(p, lr=0.01),
                      lambda p: poptorch.optim.SGD(p, lr=0.1, loss_scaling=128.0, use_combined_accum=True)):
        expect_same(monkeypatch, Classifier, pictures(8), optimizer=optimizer)


@pytest.mark.parametrize("criterion", [
    lambda s, y: functional.cross_entropy(s, y, reduction="sum"),
    lambda s, y: poptorch.identity_loss(functional.cross_entropy(s, y, reduction="none"), "none"),
    lambda s, y: poptorch.identity_loss((s.softmax(1) - functional.one_hot(y, 3)).square().sum(1), "mean"),
    pytest.param(lambda s, y: functional.nll_loss(functional.log_softmax(s, 0), y), id="axis 0",  # tracing takes axis 1 instead
                 marks=pytest.mark.skipif(importlib.util.find_spec("onnxscript") is None, reason="the other exporter needs it")),
    lambda s, y: functional.cross_entropy(s, y) * 0.5])  # trained on the marked value
def test_whatever_is_marked_is_the_loss(monkeypatch, criterion):
    expect_same(monkeypatch, lambda: Classifier(criterion), pictures(6))


def test_results_keep_their_structure(monkeypatch):
    class Structured(Classifier):
        def forward(self, x, labels):
            scores, loss = super().forward(x, labels)
            return {"scores": scores, "parts": [loss, (scores.argmax(1), "a word")]}
    expect_same(monkeypatch, Structured, pictures(4))
    results, _, _ = trained(monkeypatch, "superstep", Structured, pictures(4), calls=1)
    assert results[0]["parts"][1][1] == "a word"


def test_parameters_without_gradient_stay(monkeypatch):
    class Idle(Classifier):
        def __init__(self):
            super().__init__()
            self.idle = torch.nn.Parameter(torch.ones(3))
            self.first.requires_grad_(False)
    expect_same(monkeypatch, Idle, pictures(4))
    _, states, _ = trained(monkeypatch, "superstep", Idle, pictures(4))
    assert torch.equal(states["idle"], torch.ones(3)), "no weight decay of what has no gradient"


def test_dropouts_are_drawn_anew(monkeypatch):
    """Masks are other ones than PyTorch's; everything else was compared without them."""
    results, _, executor = trained(monkeypatch, "superstep", lambda: Classifier(dropout=0.5), pictures(8), calls=1,
                                   optimizer=lambda p: poptorch.optim.SGD(p, lr=0.0))
    assert executor._engine._graph is not None
    again = executor(*pictures(8))
    assert not torch.equal(results[0][0], again[0])


def test_half_precision(monkeypatch):
    x, y = pictures(4)
    expect_same(monkeypatch, lambda: Classifier().half(), (x.half(), y), tolerance=2e-2)


def test_inference_follows_the_module(engine):
    model = Classifier().eval()
    executor = poptorch.inferenceModel(model)
    x, _ = pictures(4)
    for _ in range(2):
        expected = model(x).detach()
        assert torch.allclose(executor(x), expected, atol=1e-5)
        with torch.no_grad():
            model.second.weight.mul_(-2)
    model.second.weight = torch.nn.Parameter(torch.ones(3, 16))
    assert torch.allclose(executor(x), model(x).detach(), atol=1e-4)


def test_normalizations_are_served_with_their_statistics(engine):
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 3, 3), torch.nn.BatchNorm2d(3)).eval()
    executor = poptorch.inferenceModel(model)
    x, _ = pictures(4)
    executor(x)
    with torch.no_grad():
        model[1].running_mean.uniform_()
    executor.copyWeightsToDevice()
    assert torch.allclose(executor(x), model(x).detach(), atol=1e-5)


def test_one_rectifier_is_no_other_network(monkeypatch):
    """An input of a rectifier that is zero but for rounding: its gradient is there by one engine and not by the other."""
    import poptorch._execution.agreement as captured

    class Near:
        def __init__(self, shares):
            self.gradients = {f"w{i}": torch.ones(2) for i in range(len(shares))}
            self.found = {f"w{i}": torch.ones(2) * (1 + share) for i, share in enumerate(shares)}

    def compared(shares):
        near = Near(shares)
        expected = object.__new__(captured.Expected)
        expected.outputs, expected.loss, expected.gradients = [], torch.tensor(1.0), near.gradients
        expected.exact = lambda: None
        return expected.compare([], torch.tensor(1.0), near.found)

    assert compared([0.0, 1e-4]) == {}
    assert list(compared([0.0, 0.02])) == ["the gradient of w1"]
    with pytest.raises(captured.NotCaptured, match="gradient of w0 differs"):
        compared([0.2, 0.0])


def test_memory_that_was_seen_is_not_used_again():
    from poptorch._execution.captured import _Seen
    tensor = torch.ones(1000)
    place, seen = tensor.data_ptr(), _Seen(tensor)
    assert seen.holds(tensor)
    del tensor
    others = [torch.ones(1000) for _ in range(20)]
    assert all(other.data_ptr() != place and not seen.holds(other) for other in others)
    others[0].add_(1)
    again = _Seen(others[0])
    others[0].add_(1)
    assert not again.holds(others[0])


class Shifting(torch.nn.Module):
    """Values in which float32 has few digits left: PyTorch in float64 is as far from PyTorch as from anybody."""

    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Linear(8, 8)

    def forward(self, x, labels):
        large = self.mix(x) * 1e-4 + 3000.0
        scores = (large - large.mean(1, keepdim=True)) * 1e4
        return functional.cross_entropy(scores, labels)


def test_roundings_are_judged_in_double_precision(monkeypatch):
    inputs = (torch.randn(4, 8, generator=torch.Generator().manual_seed(1)), torch.tensor([0, 1, 2, 3]))
    _, _, executor = trained(monkeypatch, "superstep", Shifting, inputs, calls=1)
    assert executor._engine._graph is not None


class InNumpy(Classifier):
    def forward(self, x, labels):
        scores, loss = super().forward(x, labels)
        return torch.from_numpy(numpy.ascontiguousarray(scores.detach().numpy()[:, ::-1])), loss


class Drawing(Classifier):
    def forward(self, x, labels):
        return super().forward(x + torch.randn_like(x), labels)


class Normalizing(Classifier):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm2d(1, momentum=0.3)

    def forward(self, x, labels):
        return super().forward(self.norm(x), labels)


class Twice(Normalizing):
    def forward(self, x, labels):
        return super().forward(self.norm(x), labels)


class Counting(Classifier):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x, labels):
        self.count += 1
        return super().forward(x, labels)


def test_running_statistics_are_kept(monkeypatch):
    expect_same(monkeypatch, Normalizing, pictures(4))


@pytest.mark.parametrize("make, reason", [(InNumpy, "with other inputs"), (Drawing, "draws random numbers"),
                                          (Twice, "changes buffers: norm.running_mean"), (Counting, "changes buffers: count")])
def test_what_is_not_captured_is_computed_by_pytorch(monkeypatch, caplog, make, reason):
    with pytest.raises(poptorch.Error, match=f"forward of {make.__name__} cannot be computed.*{reason}"):
        trained(monkeypatch, "superstep", make, pictures(4))
    one, states, _ = trained(monkeypatch, "eager", make, pictures(4))
    other, found, executor = trained(monkeypatch, "auto", make, pictures(4))
    assert executor._engine._graph is None
    for a, b in zip(flat(one), flat(other)):
        assert torch.equal(a, b)
    assert all(torch.equal(value, found[name]) for name, value in states.items())


class Weighted(Classifier):
    def __init__(self):
        super().__init__()
        self.register_buffer("weights", torch.tensor([1.0, 2.0, 3.0]))
        self.criterion = lambda scores, labels: functional.cross_entropy(scores, labels, weight=self.weights)


def test_buffers_are_followed(monkeypatch):
    expect_same(monkeypatch, Weighted, pictures(6))
    results = {}
    for engine in ("eager", "superstep"):
        results[engine], _, executor = trained(monkeypatch, engine, Weighted, pictures(6), calls=1)
        before = executor._computed_by
        executor.weights.mul_(torch.tensor([5.0, 1.0, 1.0]))
        results[engine].append(executor(*pictures(6)))
        assert before == ("PyTorch" if engine == "eager" else "Superstep's engine")
        assert engine == "eager" or executor._computed_by.endswith("then PyTorch (the host changed a buffer)")
    for one, other in zip(flat(results["eager"]), flat(results["superstep"])):
        assert torch.allclose(one, other, atol=1e-5)


def test_anchors_are_kept(monkeypatch):
    """Of parameters' gradients by either engine."""
    monkeypatch.setenv("SUPERSTEP_POPTORCH_ENGINE", "superstep")
    model = Classifier()
    options = poptorch.Options()
    options.anchorTensor("gradient", "Gradient___second.weight")
    executor = poptorch.trainingModel(model, options, poptorch.optim.SGD(model.parameters(), lr=0.0))
    x, y = pictures(4)
    executor(x, y)
    assert executor._computed_by == "Superstep's engine"
    functional.cross_entropy(model(x), y).backward()
    assert torch.allclose(executor.getAnchoredTensor("gradient"), model.second.weight.grad, atol=1e-5)


def test_values_within_the_pass_are_pytorchs(monkeypatch):
    monkeypatch.setenv("SUPERSTEP_POPTORCH_ENGINE", "superstep")
    model, (x, y) = Classifier(), pictures(4)
    first = poptorch.trainingModel(model)
    first.compile(x, y)
    name = next(name for name in first.getTensorNames() if name.startswith("second/"))
    first.destroy()
    options = poptorch.Options()
    options.anchorTensor("scores", name)
    executor = poptorch.trainingModel(model, options)
    scores, _ = executor(x, y)
    assert torch.equal(executor.getAnchoredTensor("scores"), scores)
    assert executor._computed_by.startswith("PyTorch (values within the pass are looked at")


def test_an_unknown_engine_is_refused(monkeypatch):
    monkeypatch.setenv("SUPERSTEP_POPTORCH_ENGINE", "popart")
    with pytest.raises(poptorch.Error, match="popart.*auto, eager, superstep"):
        poptorch.inferenceModel(Classifier())(pictures(1)[0])
