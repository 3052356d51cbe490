"""Names of PopTorch's private module `_poplar_executor`."""

from ._execution.hooks import registerPostCompileHook, registerPreCompileHook
from ._executor import PoplarExecutor

__all__ = ["PoplarExecutor", "registerPostCompileHook", "registerPreCompileHook"]
