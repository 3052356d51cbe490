"""Names of PopTorch's private module `_poplar_executor`."""

from ._executor import PoplarExecutor
from ._hooks import registerPostCompileHook, registerPreCompileHook

__all__ = ["PoplarExecutor", "registerPostCompileHook", "registerPreCompileHook"]
