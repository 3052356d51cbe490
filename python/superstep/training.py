"""Whole training runs: data in, a folder with checkpoints, log and trained model out."""

from __future__ import annotations

import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy

from . import _core, figures, progress as progress_module
from .errors import Error, InvalidArgument
from .models import Model, PathLike, Session, _texts, number_of, path_of
from .words import TrainingPrecision

__all__ = ["Event", "TrainingResult", "train"]


@dataclass(frozen=True, slots=True)
class Event:
    """What happens in a training run.

    Attributes:
        kind: ``"epoch_begun"``, ``"epoch_ended"``, ``"evaluated"``, ``"finished"``.
        epoch: from 1; 0 of ``"finished"``.
        samples_per_second: of an epoch that ended.
        metrics: of the validation samples, by name, where they were evaluated.
    """

    kind: str
    epoch: int
    samples_per_second: float
    metrics: dict[str, float]


@dataclass
class TrainingResult:
    """What a training run gave.

    Attributes:
        metrics: by name: ``throughput``, ``step_time``, ``loss``, the quality of the validation samples.
        units: of the metrics: ``"samples/s"``, ``"s"``; empty: none.
        steps: made in all.
        epochs: made in all.
        reached: whether `until` was.
        stopped: a callback ended the run before.
        folder: of the run: ``config.json``, ``metrics.jsonl``, checkpoints, ``model.onnx``.
    """

    metrics: dict[str, float]
    units: dict[str, str]
    steps: int
    epochs: float
    reached: bool
    stopped: bool
    folder: pathlib.Path
    _keep: Any = field(default=None, repr=False)

    @property
    def history(self) -> list[dict[str, Any]]:
        """The run's log, a row per epoch: ``pandas.DataFrame(result.history)``."""
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return [row for row in map(json.loads, lines) if "epoch" in row]

    def model(self) -> Model:
        """The trained model, with its best parameters."""
        return Model.from_run(self.folder)

    def load(self, **settings: Any) -> Session:
        """The trained model, compiled: ``result.load(batch=8)``. Settings are those of ``Model.compile``."""
        return self.model().compile(**settings)

    def _repr_html_(self) -> str:
        rows = self.history
        curve = figures.curve([row["epoch"] for row in rows], [row.get("loss") for row in rows], "epoch", "loss")
        return curve + figures.table([{"metric": name, "value": value, "unit": self.units[name]}
                                      for name, value in self.metrics.items()])


class _Stop(Exception):
    """A callback wants no more."""


def _rows(values: Sequence[Any]) -> numpy.ndarray:
    return numpy.stack([numpy.asarray(value) for value in values])


def _samples(data: Any) -> list[Any]:
    """Of each sample its parts: a tuple, a list, or a mapping."""
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        samples = [data[i] for i in range(len(data))]
    else:
        samples = list(data)
    if not samples:
        raise InvalidArgument("has no samples", "data")
    return [s if isinstance(s, (tuple, list, Mapping)) else (s,) for s in samples]


def _arrays(data: Any, names: Callable[[], list[str]]) -> dict[str, numpy.ndarray]:
    """Arrays by name of whatever holds samples: a mapping of arrays, a tuple of arrays, a Dataset, an iterable of samples."""
    if isinstance(data, Mapping):
        return {name: numpy.asarray(value) for name, value in data.items()}
    if isinstance(data, (tuple, list)) and data and all(hasattr(part, "shape") for part in data):
        parts = [numpy.asarray(part) for part in data]
    else:
        samples = _samples(data)
        if isinstance(samples[0], Mapping):
            return {name: _rows([sample[name] for sample in samples]) for name in samples[0]}
        if len({len(sample) for sample in samples}) > 1:
            raise InvalidArgument("samples have different numbers of parts", "data")
        parts = [_rows(column) for column in zip(*samples, strict=True)]
    wanted = names()
    if len(parts) != len(wanted):
        raise InvalidArgument(f"samples have {len(parts)} parts, {len(wanted)} are needed: {', '.join(wanted)}", "data",
                              "inputs, then targets; or a mapping of arrays by these names")
    return dict(zip(wanted, parts, strict=True))


def _until(until: str | tuple[str, float] | Mapping[str, float] | None) -> tuple[str, float]:
    if until is None:
        return "", 0.0
    if isinstance(until, str):
        name, sign, value = until.partition("=")
        try:
            return name, float(value if sign else "")
        except ValueError:
            raise InvalidArgument("is no METRIC=VALUE", "until", 'such as "error_px_mean=0.04"') from None
    if isinstance(until, Mapping):
        if len(until) != 1:
            raise InvalidArgument("names one metric", "until")
        return next(iter(until.items()))
    return until[0], float(until[1])


def _data_file(model: str, data: Any, settings: dict[str, Any], folder: pathlib.Path, what: str = "data") -> str:
    """The file that the run reads: the user's, or one that its arrays are written to, beside the run's folder."""
    if data is None:
        return ""
    if isinstance(data, (str, os.PathLike)):
        return os.fspath(data)
    if not model.endswith(".onnx"):
        raise InvalidArgument("arrays are taken for ONNX files; a workload reads files of its own format", what,
                              "give the path of a file; or superstep.Model(...).write_onnx('model.onnx') and train that")

    def names() -> list[str]:
        opened = Model(model, shapes=settings["shapes"], loss=settings["loss"])
        return [port.name for port in (*opened.inputs(), *opened.targets())]

    file = folder.with_name(f"{folder.name}.{what}.npz")
    arrays = _arrays(data, names)
    folder.parent.mkdir(parents=True, exist_ok=True)
    numpy.savez(file, **arrays)  # type: ignore[arg-type]
    return str(file)


def _teller(callbacks: Sequence[Callable[[Event], Any]], seen: dict[str, float]) -> Callable[..., None]:
    def told(kind: str, epoch: int, rate: float, metrics: list[tuple[str, str, float]]) -> None:
        event = Event(kind, epoch, rate, {name: value for name, _, value in metrics})
        if event.metrics:
            seen.clear()
            seen.update(event.metrics, epochs=epoch)
        for callback in callbacks:
            if callback(event) is False:
                raise _Stop
    return told


def _shards(shard: str) -> bool:
    if shard not in ("", "parameters"):
        raise InvalidArgument(f"'{shard}' is nothing that devices divide", "shard", "there is 'parameters'")
    return shard == "parameters"


def train(model: PathLike | None = None, data: Any = None, *, validation: Any = None, loss: str = "", optimizer: str = "", learning_rate: float = 0.0,
          until: str | tuple[str, float] | Mapping[str, float] | None = None, epochs: float = 0.0, steps: int = 0,
          batch: int = 0, samples: int = 0, precision: TrainingPrecision = "f32", threads: int = 0, seed: int = 1,
          options: Mapping[str, Any] | Iterable[str] | None = None, shapes: Mapping[str, Any] | Iterable[str] | None = None,
          train: Iterable[str] = (), freeze: Iterable[str] = (), recipe: str = "", augment: bool = True, crop: str = "",
          scale: Mapping[str, Any] | Iterable[str] | None = None, offset: Mapping[str, Any] | Iterable[str] | None = None, augmentation: Iterable[str] = (),
          skip_broken: bool = False, data_memory: int = 0, micro_batch: int = 0, memory_limit: int = 0, target: str = "cpu",
          devices: int = 0, shard: Literal["", "parameters"] = "", out: PathLike | None = None, resume: bool = False,
          checkpoint_seconds: float = 30.0, schedule: str = "", patience: int = 0, monitor: str = "", metrics: str | Sequence[str] = "", loss_scale: str | float = "", ema: float = 0.0, gradient_norms: bool = False, callbacks: Callable[[Event], Any] | Sequence[Callable[[Event], Any]] = (),
          progress: bool | progress_module.Listener | None = None) -> TrainingResult:
    """Trains a model, as the program's ``superstep train`` does: with the same settings, seed and threads to the same bits.

    Args:
        model: the name of a workload, or the path of an ONNX file. May be left out where a run goes on.
        data: of a workload: the path of a file or folder of its format; None: generated, where the workload generates its
            data. Of an ONNX file: the path of data in any form that the program reads, or arrays in places of their own
            (``"x=scan.nxs:/entry/data/data,target=labels.npy"``); or the samples themselves: a
            mapping of arrays by the names of the inputs and of the targets, a tuple of arrays (inputs, then targets), a
            Dataset of PyTorch, any iterable of samples that are tuples or mappings. Samples that are given are written to
            ``OUT.data.npz``, which the run reads; the first four fifths train, the rest validate.
        validation: samples that validate, in the same forms; all of `data` trains then.
        loss: of an ONNX file: ``"mse"``, ``"focal(gamma=2)"``, ``"cross_entropy(class_weights=1:4)"``, ``"value"`` (the output
            is itself the loss) and others, or terms by output: ``"mse:position,0.1*l1:width"``. Arrays for ``sample_weights=NAME``
            and ``mask=NAME`` stand in `data` under their names.
        optimizer: ``"sgd:momentum=0.9"``, ``"adam"``, ``"adamw:weight_decay=0.01"``, ``"adamax"``, ``"rmsprop"``, ``"lamb"``.
        learning_rate: peak; 0: the workload's own.
        schedule: of the learning rate: ``"cosine:warm_up=5,final=0.01"``, ``"stairs:period=30,factor=0.1"``,
            ``"plateau:patience=10"``, ``"one_cycle"``, ``"linear"``, ``"exponential"``, ``"triangular"``, ``"constant"``.
        patience: end after so many epochs in which the watched metric did not become better; 0: the recipe's.
        metrics: of a model file, what quality is measured by: ``"r2,mae"``, ``["auc:mask", "rmse:position"]``; empty: those of the loss.
        loss_scale: with ``precision="f16"``, what the loss is multiplied by: ``"dynamic"``, ``"dynamic:1024"`` or a number; empty: dynamic.
        monitor: the metric that `patience` and a plateau watch, and by which the best weights are kept; empty: the first.
        ema: decay of averages of the weights, which validate and are served: 0.999; 0: the recipe's.
        gradient_norms: the history has the length of all gradients together, ``gradient_norm``, and of each parameter's,
            ``gradient_norm/NAME``, of the last step of every epoch.
        until: stop when a quality of the validation samples is that good or better: ``"error_px_mean=0.04"``,
            ``("r2", 0.7)``.
        epochs: passes over the data, and length of the schedule; 0: the workload's own.
        steps: stop after so many; 0: after the epochs.
        batch: samples per step; 0: the workload's own.
        samples: use so many; 0: all.
        threads: 0: every processor that the process may use.
        seed: of initial parameters, of generated data, of the order of the samples.
        options, shapes, train, freeze: as of ``Model``.
        recipe: ``"quick"`` or ``"published"``, where a workload has both.
        augment: where the data allow it.
        target: where it is trained (``targets``): ``"cpu"``, ``"cuda"``, ...
        devices: of a target behind a plug-in: so many share each batch; 0: one.
        shard: ``"parameters"``: each of the devices keeps a part of the parameters and moments.
        crop: ``"center"``: of pictures that are larger than the model's the middle is taken.
        scale: what arrays of `data` are multiplied by: ``{"x": 0.1}``, a number per channel ``{"image": [4.4, 4.5, 4.4]}``, ``"log"``
            (log(1 + value)) or ``"unit"`` (each sample from 0 to 1); it is the run's, and applied wherever the run is served.
        offset: what is added to them then: ``{"x": -3}``.
        augmentation: of an ONNX file, steps that are drawn anew for each sample of each epoch: ``["x,mask=flip-horizontal", "x=noise:0.01"]``.
        skip_broken: samples that cannot be read are left out.
        data_memory: bytes that samples of files may take; of larger data, rows are read while the model trains. 0: a quarter of
            what is free.
        out: the run's folder; None: a temporary one, which goes with the result.
        resume: `out` holds a run: go on with it, as it was begun; `epochs`, `steps`, `until`, `threads` and `devices` may be given anew.
        checkpoint_seconds: between checkpoints within an epoch, in s.
        callbacks: a function, or several, called with every ``Event``; one that returns False ends the run, with a
            checkpoint. What one raises ends the run the same way and is raised here.
        progress: True, False, or a function of (label, unit, note, done, total); None: shown on terminals and in notebooks.

    Raises:
        KeyboardInterrupt: on Ctrl-C, after a checkpoint: ``resume=True`` goes on.
        Diverged: the loss is not finite.
    """
    if resume and out is None:
        raise InvalidArgument("which run is to go on?", "out", "give the folder of the run")
    keep = tempfile.TemporaryDirectory(prefix="superstep-") if out is None else None
    folder = pathlib.Path(keep.name) / "run" if keep else pathlib.Path(path_of(out, "out"))
    metric, value = _until(until)
    if crop not in ("", "center"):
        raise InvalidArgument(f"is {crop!r}", "crop", 'give "center", or leave it out')
    settings = {"model": "" if model is None else path_of(model, "model"), "options": _texts(options), "shapes": _texts(shapes),
                "train": list(train), "freeze": list(freeze), "loss": loss, "seed": seed, "target": target,
                "precision": precision, "samples": samples, "batch": batch, "micro_batch": micro_batch, "threads": threads,
                "memory_limit": memory_limit, "epochs": number_of(epochs, "epochs"), "steps": steps, "recipe": recipe, "augment": augment,
                "crop": crop == "center", "scale": _texts(scale), "offset": _texts(offset), "augmentation": list(augmentation), "skip_broken": skip_broken, "data_memory": data_memory,
                "schedule": schedule, "patience": patience, "monitor": monitor, "loss_scale": loss_scale if isinstance(loss_scale, str) else f"{loss_scale:g}", "metrics": metrics if isinstance(metrics, str) else ",".join(metrics), "average": number_of(ema, "ema"), "gradient_norms": gradient_norms,
                "optimizer": optimizer, "learning_rate": number_of(learning_rate, "learning_rate"), "until_metric": metric, "until_value": value,
                "devices": devices, "divide_parameters": _shards(shard), "out": str(folder), "resume": resume, "checkpoint_seconds": number_of(checkpoint_seconds, "checkpoint_seconds")}
    settings["data"] = "" if resume else _data_file(str(settings["model"]), data, settings, folder)
    settings["validation"] = "" if resume else _data_file(str(settings["model"]), validation, settings, folder, "validation")
    return _run(settings, callbacks, progress_module.listener(progress), folder, keep)


def _run(settings: dict[str, Any], callbacks: Any, shown: Any, folder: pathlib.Path, keep: Any) -> TrainingResult:
    seen: dict[str, float] = {}
    several = [callbacks] if callable(callbacks) else list(callbacks)
    try:
        metrics, steps, epochs, reached = _core.train(settings, _teller(several, seen) if several else None, shown)
    except _Stop:
        epoch = seen.pop("epochs", 0.0)
        return TrainingResult(seen, dict.fromkeys(seen, ""), _steps_of(folder), epoch, False, True, folder, keep)
    finally:
        if hasattr(shown, "close"):
            shown.close()
    return TrainingResult({name: value for name, _, value in metrics}, {name: unit for name, unit, _ in metrics}, steps, epochs,
                          reached, False, folder, keep)


def _steps_of(folder: pathlib.Path) -> int:
    try:
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        return max((json.loads(line).get("step", 0) for line in lines), default=0)
    except (OSError, ValueError) as error:
        raise Error("the run was stopped before it had a log", str(folder)) from error
