"""Running statistics of batch normalizations in captured training passes, kept as PyTorch keeps them.

A file's normalization averages the variance of each batch over its n elements, PyTorch's the sum of squares over n - 1. Each pass
begins with the module's statistics, so what the batch gave follows from what the engine made of them.
"""

import torch


class NotFollowed(Exception):
    """Why statistics cannot be kept here."""


class Statistics:
    """Of the normalizations whose buffers forward changes; `names` are these buffers' full names.

    NotFollowed: a changed buffer that is no statistic of a normalization which runs once in a pass.
    """

    def __init__(self, module, changed, run):
        """`run()`: one forward pass of `module`, on copies of its buffers."""
        self._norms = []  # (name, module, elements of a channel)
        calls = {}
        hooks = [part.register_forward_hook(lambda part, given, _, name=name: calls.setdefault(name, []).append(given[0]))
                 for name, part in module.named_modules() if isinstance(part, torch.nn.modules.batchnorm._BatchNorm)]
        try:
            run()
        finally:
            for hook in hooks:
                hook.remove()
        parts = dict(module.named_modules())
        for name in dict.fromkeys(buffer.rpartition(".")[0] for buffer in changed):
            if len(calls.get(name, ())) != 1 or parts[name].momentum is None:
                raise NotFollowed(next(buffer for buffer in changed if buffer.rpartition(".")[0] == name))
            x = calls[name][0]
            self._norms.append((name, parts[name], x.numel() // x.shape[1]))
        self.names = [f"{name}.{buffer}" for name, _, _ in self._norms for buffer in ("running_mean", "running_var")]
        others = set(changed) - set(self.names) - {f"{name}.num_batches_tracked" for name, _, _ in self._norms}
        if others:
            raise NotFollowed(sorted(others)[0])

    @torch.no_grad()
    def take(self, found):
        """Gives the module's buffers the statistics after a pass; `found(name)` is what the engine made of a buffer."""
        for name, norm, count in self._norms:
            norm.running_mean.copy_(found(f"{name}.running_mean"))
            kept = (1 - norm.momentum) * norm.running_var
            of_batch = found(f"{name}.running_var") - kept
            norm.running_var.copy_(kept + of_batch * (count / max(1, count - 1)))
            if norm.num_batches_tracked is not None:
                norm.num_batches_tracked += 1
