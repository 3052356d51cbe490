"""Helpers of models of graphs and of comparisons with PyTorch."""

import copy

import poptorch
import torch
from torch_geometric.nn import MessagePassing

__all__ = ["TrainingStepper", "set_aggregation_dim_size"]


def set_aggregation_dim_size(model, dim_size):
    """Lets all layers of message passing aggregate to `dim_size` nodes: at least those of a batch."""
    def give_size(module, inputs):
        arguments = inputs[-1]
        arguments["dim_size"] = dim_size
        return arguments

    for module in model.modules():
        if isinstance(module, MessagePassing):
            module.register_aggregate_forward_pre_hook(give_size)


class TrainingStepper:
    """Trains a copy of a model by plain PyTorch and another by an executor, and compares them at each step.

    The model's forward returns (output, loss). `run(steps, batch)` or `run(steps, batch, executor's batch)` trains both;
    AssertionError where outputs, losses or parameters differ by more than rtol and atol (torch's defaults).
    """

    def __init__(self, model, lr=0.001, optimizer=poptorch.optim.Adam, options=None, rtol=None, atol=None,
                 enable_fp_exception=True, equal_nan=False):
        model.train()
        self.lr, self.rtol, self.atol, self.equal_nan = lr, rtol, atol, equal_nan
        self.options = poptorch.Options() if options is None else options
        if enable_fp_exception:
            self.options.Precision.enableFloatingPointExceptions(True)
        self.cpu_model, self.ipu_model = copy.deepcopy(model), copy.deepcopy(model)
        self.training_model = None
        if list(model.parameters()):
            self.optimizer = optimizer(self.cpu_model.parameters(), lr=lr)
            self.training_model = poptorch.trainingModel(
                self.ipu_model, options=self.options, optimizer=optimizer(self.ipu_model.parameters(), lr=lr))
        self.inference_model = poptorch.inferenceModel(self.ipu_model, options=self.options)
        self.check_parameters()

    def check_parameters(self):
        """AssertionError where a parameter differs."""
        for (name, expected), (_, actual) in zip(self.cpu_model.named_parameters(), self.ipu_model.named_parameters()):
            self.assert_close(actual, expected, name)

    def cpu_step(self, batch):
        """A step of plain PyTorch: (output, loss)."""
        self.optimizer.zero_grad()
        out, loss = self.cpu_model(*batch)
        loss.backward()
        self.optimizer.step()
        return out, loss

    def ipu_step(self, batch, copy_weights=True):
        """A step of the executor: (output, loss)."""
        out, loss = self.training_model(*batch)
        if copy_weights:
            self.training_model.copyWeightsToHost()
        return out, loss

    def run(self, num_steps, batch, ipu_batch=None):
        """Trains both and compares; of two batches the outputs' common rows."""
        assert self.training_model is not None, "The model has no parameters to train."
        self.cpu_model.train()
        for step in range(num_steps):
            expected, cpu_loss = self.cpu_step(batch)
            actual, ipu_loss = self.ipu_step(batch if ipu_batch is None else ipu_batch)
            if ipu_batch is not None:
                rows = min(expected.shape[0], actual.shape[0])
                expected, actual = expected[:rows], actual[:rows]
            self.assert_close(actual, expected, f"output of step {step}")
            self.check_parameters()
            self.assert_close(ipu_loss, cpu_loss.detach(), f"loss of step {step}")

    def run_inference(self, batch):
        """Compares the outputs without training."""
        self.cpu_model.eval()
        with torch.no_grad():
            expected = self.cpu_model(*batch)
        actual, _ = self.inference_model(*batch)
        self.assert_close(actual, expected, "inference")

    def assert_close(self, actual, expected, id):  # noqa: A002 - the public name
        """torch.testing.assert_close with this object's tolerances."""
        torch.testing.assert_close(actual, expected, rtol=self.rtol, atol=self.atol, equal_nan=self.equal_nan,
                                   msg=lambda text: f"{id} was not equal:\n\n{text}\n")
