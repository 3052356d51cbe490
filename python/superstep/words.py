"""Words that arguments may be, for editors and type checkers; the program refuses others with those that it knows."""

from typing import Literal

__all__ = ["Goal", "Mode", "Precision", "TrainingPrecision"]

Mode = Literal["train", "infer"]
Precision = Literal["f32", "bf16", "f16", "int8"]
TrainingPrecision = Literal["f32", "bf16", "f16"]
Goal = Literal["throughput", "latency", "time-to-quality", "energy", "cost"]
