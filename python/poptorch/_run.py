"""Runs a PopTorch script and tells afterwards what ran where: `python -m poptorch run SCRIPT [ARGUMENTS]`.

For each executor that the script made: who computed its passes, the host's time, and the machine's own by its model.
"""

import argparse
import html
import json
import os
import pathlib
import runpy
import sys
import traceback

from . import _running
from ._errors import Error

_EPILOG = """examples:
  python -m poptorch run mnist_poptorch.py --epochs 1
  python -m poptorch run --report mnist/ mnist_poptorch.py     mnist/report.html, mnist/report.json
  python -m poptorch data MNIST --to data/; python -m poptorch run --data data/ script.py

What the script prints stays as it is; the table goes to standard error. Options for `run` stand before the script, all behind it
are the script's. The status is the script's."""


def parser():
    """The command line."""
    made = argparse.ArgumentParser("python -m poptorch run", formatter_class=argparse.RawDescriptionHelpFormatter,
                                   description=__doc__.split(":")[0] + ".", epilog=_EPILOG)
    made.add_argument("--report", metavar="FOLDER", type=pathlib.Path, help="write report.html and report.json there")
    made.add_argument("--data", metavar="FOLDER", type=pathlib.Path,
                      help="DATASETS_DIR of the script; generated data in it are taken for the real ones")
    made.add_argument("--no-machine", action="store_true", help="leave the machine's model out: no cycles, no memory")
    made.add_argument("script", type=pathlib.Path)
    made.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...", help="of the script")
    return made


def main(arguments):
    """Runs the command."""
    chosen = parser().parse_args(arguments)
    if not chosen.script.is_file():
        print(f"{chosen.script}: there is no such script", file=sys.stderr)
        return 2
    if chosen.data is not None and not chosen.data.is_dir():
        print(f"--data {chosen.data}: there is no such folder (python -m poptorch data NAME --to FOLDER makes one)", file=sys.stderr)
        return 2
    _surroundings(chosen)
    _running.made = []
    status = _status_of(chosen)
    rows = [row_of(executor, not chosen.no_machine) for executor in _running.made]
    print(table(rows), file=sys.stderr)
    if chosen.report is not None:
        write(chosen.report, chosen.script, status, rows)
        print(f"written to {chosen.report}: report.html, report.json", file=sys.stderr)
    return status


def _surroundings(chosen):
    """What scripts read of the environment and of their command line."""
    os.environ.setdefault("NUM_AVAILABLE_IPU", "64")
    if chosen.data is not None:
        os.environ["DATASETS_DIR"] = str(chosen.data.resolve())
        from .data import accept
        accept(chosen.data)
    sys.argv = [str(chosen.script), *chosen.arguments]
    sys.path[0] = str(chosen.script.resolve().parent)


def _status_of(chosen):
    """The exit status of the script, which runs here. What it raises is printed as Python prints it."""
    try:
        runpy.run_path(str(chosen.script), run_name="__main__")
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def row_of(executor, with_machine):
    """What is known of an executor, by name. Times in s, memory in bytes."""
    row = {"model": type(executor._model).__name__, "kind": "training" if executor._training else "inference",
           "calls": executor._timing.calls, "computed by": executor._computed_by or "nobody: it never ran",
           "host_seconds": executor._timing.host_seconds}
    if with_machine and executor._timing.calls:
        row |= _of_machine(executor)
    return row


def _of_machine(executor):
    if not executor.isCompiled():
        return {"machine": "not told: the executor was destroyed"}
    from ._modeled import devices
    try:
        found = executor._timing.prediction()
    except Error as error:
        return {"machine": f"not told: {error.message}"}
    told = {"machine": devices.machine(), "fits": found.fits, "bytes_needed": found.bytes_needed, "bytes_available": found.bytes_available}
    if found.seconds is not None:
        iterations = executor._batching.iterations
        told |= {"cycles_per_call": found.cycles(iterations), "machine_seconds_per_call": iterations * (found.seconds + found.link_seconds)}
    return told


def table(rows):
    """The rows as text."""
    if not rows:
        return "poptorch: the script made no executor"
    lines = ["", "executors (the machine's times and memory are modeled)"]
    for row in rows:
        lines.append(f"  {row['model']}, {row['kind']}: {row['calls']} calls in {row['host_seconds']:.3g} s on this host, computed by {row['computed by']}")
        if "cycles_per_call" in row:
            lines.append(f"    {row['machine']}: {row['cycles_per_call']:,} cycles per call ({row['machine_seconds_per_call']:.3g} s), "
                         f"{row['bytes_needed'] / 1e6:.1f} MB of {row['bytes_available'] / 1e6:.1f} MB on the fullest chip")
        elif "fits" in row:
            lines.append(f"    {row['machine']}: does not fit, {row['bytes_needed'] / 1e6:.1f} MB of {row['bytes_available'] / 1e6:.1f} MB")
        elif "machine" in row:
            lines.append(f"    machine: {row['machine']}")
    return "\n".join(lines)


def write(folder, script, status, rows):
    """report.json and report.html in a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    found = {"schema": "superstep-poptorch/1", "script": script.name, "status": status, "executors": rows}
    (folder / "report.json").write_text(json.dumps(found, indent=1) + "\n")
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(_shown(row.get(name)))}</td>" for name in names) + "</tr>" for row in rows)
    style = "body{font:15px system-ui;margin:2em;color-scheme:light dark}td,th{padding:.3em .8em;text-align:left;border-bottom:1px solid #8884}"
    (folder / "report.html").write_text(
        f"<!doctype html><meta charset=utf-8><title>{html.escape(script.name)}</title><style>{style}</style>"
        f"<h1>{html.escape(script.name)}</h1><p>Executors of a PopTorch script, which ended with {status}. The host's times were measured; cycles, "
        f"times and memory of the machine are modeled.</p><table><tr>{head}</tr>{body}</table>\n")


def _shown(value):
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
