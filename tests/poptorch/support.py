"""Models and references that the tests share."""
import torch


class Regression(torch.nn.Module):
    """A linear layer and a loss: returns outputs and loss."""

    def __init__(self, inputs=4, outputs=3):
        super().__init__()
        self.layer = torch.nn.Linear(inputs, outputs)
        self.loss = torch.nn.MSELoss()

    def forward(self, x, target):
        y = self.layer(x)
        return y, self.loss(y, target)


def micro_batch(x, iteration, step, replica, iterations, accumulation, groups, group_of):
    """Rows of one micro-batch: iterations outermost, then accumulation, then groups of replicas."""
    parts = iterations * accumulation * groups
    rows = len(x) // parts
    part = (iteration * accumulation + step) * groups + group_of(replica)
    return x[part * rows:(part + 1) * rows]


def reference(model, x, target, rate, iterations, accumulation, replicas, mean=True):
    """Trains by a plain loop of PyTorch; the losses of all micro-batches in order."""
    losses = []
    for iteration in range(iterations):
        model.zero_grad()
        for step in range(accumulation):
            for replica in range(replicas):
                rows = [micro_batch(part, iteration, step, replica, iterations, accumulation, replicas, lambda r: r)
                        for part in (x, target)]
                _, loss = model(*rows)
                (loss / (accumulation * replicas) if mean else loss).backward()
                losses.append(loss.detach())
        with torch.no_grad():
            for parameter in model.parameters():
                parameter -= rate * parameter.grad
    return torch.stack(losses)
