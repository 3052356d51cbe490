"""Gradients of the micro-batches and replicas of one optimizer step, joined."""

import torch

from .. import enums


class Accumulator:
    """Sums or averages gradients by parameter, in float32 or, where the optimizer says so, in float16.

    Mean divides by accumulation x replicas: at the end (Post), or kept as a running mean (Running), or by the replicas
    first (PostAndLoss); the three differ by rounding alone.
    """

    def __init__(self, options, accumulation_type, scaling):
        training = options.Training
        self._count = training.gradient_accumulation * options.replication_factor
        self._mean = training.accumulation_and_replication_reduction_type == enums.ReductionType.Mean
        self._running = self._mean and (training.meanAccumulationAndReplicationReductionStrategy
                                        == enums.MeanReductionStrategy.Running)
        self._type = accumulation_type or torch.float32
        self._scaling = scaling
        self._sums = {}
        self._seen = 0

    def add(self, gradients):
        """Takes the (scaled) gradients of one micro-batch on one replica. The tensors are not changed: several parameters
        may have the same one."""
        self._seen += 1
        for name, gradient in gradients.items():
            gradient = (gradient.to_dense() if gradient.is_sparse else gradient).to(self._type)
            self._sums[name] = self._joined(self._sums.get(name), gradient)
        for name in self._sums.keys() - gradients.keys() if self._running else ():
            # A parameter that this micro-batch does not reach has a gradient of zero in it.
            self._sums[name] = self._sums[name] * ((self._seen - 1) / self._seen)

    def _joined(self, kept, gradient):
        if not self._running:
            return gradient if kept is None else kept + gradient
        share = gradient * (1.0 / self._seen)
        return share if kept is None else kept * ((self._seen - 1) / self._seen) + share

    def result(self):
        """The reduced gradients by name, without the loss scaling."""
        divisor = self._scaling * (self._count if self._mean and not self._running else 1)
        if divisor == 1:
            return self._sums
        return {name: kept.float() / divisor for name, kept in self._sums.items()}
