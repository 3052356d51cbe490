"""Superstep: compiles, trains, serves and predicts scientific machine-learning models.

    import superstep
    m = superstep.load("model.onnx", batch=8)      # or a workload of the zoo: "braggnn"
    y = m(x)                                        # arrays of NumPy, PyTorch, JAX

    run = superstep.train("model.onnx", {"x": x, "target": y}, loss="mse", epochs=10)
    y = run.load(batch=8)(x)

``superstep.torch`` takes modules of PyTorch. Everything that goes wrong is a ``superstep.Error``.
"""

from .errors import (BadFile, BadGraph, CopyWarning, Diverged, Error, InputOutput, Internal, Interrupted, InvalidArgument,
                     NotFound, OutOfMemory, Unsupported)
from .force_field import ForceField, Forces
from .laboratory import (Page, Quantity, Result, advise, baseline, bench, generate, infer, machines, predict, profile, records,
                         workloads)
from .models import Model, Plan, Port, Session, Trainer, load, load_operators, targets, version, zoo
from .training import Event, TrainingResult, train

__version__ = version()

__all__ = ["BadFile", "BadGraph", "CopyWarning", "Diverged", "Error", "Event", "ForceField", "Forces", "InputOutput", "Internal", "Interrupted",
           "InvalidArgument", "Model", "NotFound", "OutOfMemory", "Page", "Plan", "Port", "Quantity", "Result", "Session",
           "Trainer", "TrainingResult", "Unsupported", "advise", "baseline", "bench", "generate", "infer", "load", "machines",
           "load_operators", "predict", "profile", "records", "targets", "train", "version", "workloads", "zoo"]


def __getattr__(name: str) -> object:
    # With PyTorch, which not everybody has: when it is asked for.
    if name == "torch":
        import importlib
        return importlib.import_module(".torch", __name__)
    raise AttributeError(f"module 'superstep' has no attribute '{name}'")
