"""What the program's other commands do, as functions: predictions, advice, data, conventional methods, benchmarks, profiles,
records. Each calls the program that the package brings along and gives its result.

Options that a function does not name are those of the command, with ``_`` for ``-``; ``superstep help COMMAND`` explains them.
"""

from __future__ import annotations

import html
import json
import os
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from . import figures
from .errors import Error
from .program import run
from .words import Goal, Mode

__all__ = ["Quantity", "Result", "Page", "predict", "advise", "generate", "baseline", "bench", "infer", "profile", "records",
           "workloads", "machines"]


@dataclass(frozen=True, slots=True)
class Quantity:
    """A measured or predicted quantity.

    Attributes:
        value: in SI units; NaN: none.
        unit: ``"s"``, ``"samples/s"``, ``"FLOP/s"``, ``"B"``; empty of fractions.
        how: ``"measured"`` or ``"predicted"``.
        low, high: the interval, where there is one.
        samples: all of them, where there are several.
    """

    value: float
    unit: str
    how: str
    low: float | None = None
    high: float | None = None
    samples: tuple[float, ...] = ()

    def __float__(self) -> float:
        return self.value

    def __str__(self) -> str:
        interval = f" ({self.low:.4g} to {self.high:.4g})" if self.low is not None and self.high is not None else ""
        return f"{self.value:.4g} {self.unit}{interval}, {self.how}"


@dataclass(frozen=True)
class Result:
    """One result: what was done, and what came of it.

    Attributes:
        command: of the program.
        workload: a name, or a file.
        machine: where it ran, or for which it was predicted.
        metrics: by name.
        data: the whole, as the program's JSON has it (``superstep-result/1``), configuration and environment included.
        text: what the program printed, for people.
    """

    command: str
    workload: str
    machine: str
    metrics: dict[str, Quantity]
    data: dict[str, Any] = field(repr=False)
    text: str = field(default="", repr=False)

    def __getitem__(self, name: str) -> Quantity:
        return self.metrics[name]

    def row(self) -> dict[str, Any]:
        """A flat dict: ``pandas.DataFrame([r.row() for r in results])``."""
        return {"command": self.command, "workload": self.workload, "machine": self.machine,
                **{name: quantity.value for name, quantity in self.metrics.items()}}

    def _repr_html_(self) -> str:
        title = f"<p>{html.escape(self.command)} {html.escape(self.workload)}, {html.escape(self.machine)}</p>"
        rows = [{"metric": name, "value": q.value, "unit": q.unit, "low": q.low, "high": q.high, "how": q.how}
                for name, q in self.metrics.items()]
        return title + figures.table(rows)


@dataclass(frozen=True)
class Page:
    """A page that the program wrote: self-contained HTML, which a notebook shows as it is.

    Attributes:
        file: the page.
        result: what is on it, as numbers; None: only the page.
    """

    file: pathlib.Path
    result: Result | list[Result] | None = None
    _keep: Any = field(default=None, repr=False)

    def html(self) -> str:
        """The page's text."""
        return self.file.read_text()

    def save(self, file: str | os.PathLike[str]) -> None:
        """Copies the page."""
        shutil.copyfile(self.file, file)

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.html(), quote=True)}" width="100%" height="600" style="border:0"></iframe>'


def _quantity(data: Mapping[str, Any]) -> Quantity:
    value = data.get("value")
    return Quantity(float("nan") if value is None else float(value), data.get("unit", ""), data.get("how", ""), data.get("low"),
                    data.get("high"), tuple(data.get("samples", ())))


def _result(data: Mapping[str, Any], text: str = "") -> Result:
    machine = data.get("machine", "")
    workload = data.get("workload", "")
    named = [part.get("name") or part.get("id") if isinstance(part, Mapping) else part for part in (workload, machine)]
    return Result(data.get("command", ""), named[0] or "", named[1] or "",
                  {name: _quantity(metric) for name, metric in data.get("metrics", {}).items()}, dict(data), text)


def _results(written: Any, text: str) -> list[Result]:
    if written is None:
        return []
    several = written.get("results", [written]) if isinstance(written, Mapping) else written
    return [_result(one, text) for one in several]


def predict(workload: str, *, on: str = "gc200", mode: Mode = "train", **options: Any) -> Result:
    """How a model would run on a machine, by its cost model: times with intervals, without the machine.

    Args:
        workload: of the zoo, or an ONNX file.
        on: a machine (``machines``) or a machine file.
        mode: ``"train"`` or ``"infer"``.
        options: ``micro_batch=16``, ``precision="16.16"``, ``largest=True``, ``set={"patch": 13}``, ...
    """
    return _results(*run("predict", workload, on=on, mode=mode, **options))[0]


def advise(workload: str, *, mode: Mode = "infer", for_: Goal = "throughput", out: str | os.PathLike[str] | None = None,
           **options: Any) -> Page:
    """Which machine, precision, batch and split to choose: a page, and the ranking as its ``result``.

    Args:
        for_: what counts.
        options: ``at_most="5ms"``, ``on=["gc200", "a100"]``, ``batch=64``, ``measure=True``, ...
    """
    keep = tempfile.TemporaryDirectory(prefix="superstep-") if out is None else None
    file = pathlib.Path(keep.name if keep else ".", "advice.html") if out is None else pathlib.Path(out)
    results = _results(*run("advise", workload, mode=mode, for_=for_, out=file, **options))
    return Page(file, results[0] if len(results) == 1 else results, keep)


def generate(workload: str, out: str | os.PathLike[str], *, samples: int, seed: int = 1,
             set: Mapping[str, Any] | None = None, **options: Any) -> Result:  # noqa: A002
    """Writes data of a workload from its physics: a file of the workload's format, the same bits on any number of threads."""
    return _results(*run("generate", workload, out=out, samples=samples, seed=seed, set=set, **options))[0]


def baseline(workload: str, *, input: str | os.PathLike[str] | None = None,  # noqa: A002
             output: str | os.PathLike[str] | None = None, **options: Any) -> Result:
    """What the conventional method that a workload's model replaces makes of the same data."""
    return _results(*run("baseline", workload, input=input, output=output, **options))[0]


def bench(what: str | Iterable[str], *, mode: Mode | None = None, **options: Any) -> list[Result]:
    """Measures a workload, an ONNX file or primitives by the protocol of measurement: a result for each row.

    Args:
        mode: None: both.
        options: ``batch=[1, 8]``, ``precision="bf16"``, ``repeat=3``, ``no_record=True``, ...
    """
    names = [what] if isinstance(what, str) else list(what)
    return _results(*run("bench", *names, mode=mode, **options))


def infer(workload: str, **options: Any) -> Result:
    """Serves a model over a file of data, and says how fast and, where the truth is known, how well.

    Args:
        options: ``weights="run/"``, ``input="peaks.h5"``, ``output="found.h5"``, ``precision="int8"``, ...
    """
    return _results(*run("infer", workload, **options))[0]


def profile(workload: str, *, on: str = "cpu", mode: Mode = "train", out: str | os.PathLike[str] | None = None,
            **options: Any) -> Page:
    """Where the time goes: a page with every step, and its numbers as ``result``. ``trace.json`` lies beside the page.

    Args:
        on: ``"cpu"`` or a device behind a plug-in, ``"cuda"``, ``"tpu"`` (measured: its copies, start and computation);
            ``"gc200"``, ``"bow"``, ``"gc2"`` (modelled).
        out: a folder; None: a temporary one, which goes with the page.
    """
    keep = tempfile.TemporaryDirectory(prefix="superstep-") if out is None else None
    folder = pathlib.Path(keep.name) / "profile" if keep else pathlib.Path(out)  # type: ignore[arg-type]
    results = _results(*run("profile", workload, on=on, mode=mode, out=folder, **options))
    return Page(folder / "profile.html", results[0] if len(results) == 1 else results, keep)


def records(*, workload: str | None = None, command: str | None = None, most: int | None = None) -> list[Result]:
    """What was run before on this machine, the newest last: every train, infer, profile and bench is kept.

    Args:
        workload: of this workload alone.
        command: of this command alone.
        most: at most so many, the newest.
    """
    with tempfile.TemporaryDirectory(prefix="superstep-") as folder:
        file = pathlib.Path(folder, "records.json")
        try:
            run("records", "export", workload=workload, command=command, most=most, out=file)
        except Error as error:
            if "no such records" in str(error):
                return []
            raise
        return _results(json.loads(file.read_text()), "")


def _listed(what: str) -> list[str]:
    _, text = run("list", what)
    _, _, rows = text.partition("\n---")  # what stands under the heads of the columns
    return [line.split()[0] for line in rows.splitlines()[1:] if line and line[0].isalnum()]


def workloads() -> list[str]:
    """The models of the zoo."""
    return _listed("workloads")


def machines() -> list[str]:
    """The machines that predictions know."""
    return _listed("machines")
