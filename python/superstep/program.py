"""The command-line program, which the package brings along, called from Python."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any

from .errors import Error, InvalidArgument, of_kind

__all__ = ["path", "run"]


def path() -> pathlib.Path:
    """The program's file."""
    return pathlib.Path(__file__).resolve().parent / "bin" / "superstep"


def _words(options: Mapping[str, Any]) -> list[str]:
    """``{"batch": 8, "explain": True, "set": {"patch": 13}}`` as ``--batch 8 --explain --set patch=13``."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, Mapping):
            for key, one in value.items():
                words += [option, f"{key}={','.join(map(str, one)) if isinstance(one, (list, tuple)) else one}"]
        elif isinstance(value, (list, tuple)):
            for one in value:
                words += [option, str(one)]
        else:
            words += [option, os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return words


def _raise(status: int, said: str) -> None:
    """The error that the program told of in its last lines."""
    before, found, told = said.rpartition("superstep: error: ")
    lines = (told if found else said).strip().splitlines() or [f"ended with status {status}"]
    hint = lines[1].strip() if len(lines) > 1 and lines[1].startswith("  ") else ""
    code = "invalid argument" if status == 2 else "unsupported" if status == 1 and "unsupported" in lines[0] else ""
    if code:
        raise of_kind(code, lines[0], "", hint)
    raise Error(lines[0], "", hint)


def _done(command: list[str], quiet: bool) -> tuple[int, str, str]:
    """Exit status, output and what was said on standard error. Ctrl-C is passed on once, and the program's end waited for: it
    saves what it saves, and takes away what is half written."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE if quiet else None, text=True,
                          stdin=subprocess.DEVNULL, errors="replace", process_group=0) as program:
        try:
            printed, said = program.communicate()
        except KeyboardInterrupt:
            program.send_signal(signal.SIGINT)
            program.communicate()
            raise
    return program.returncode, printed, said or ""


def run(*words: Any, quiet: bool = True, **options: Any) -> tuple[Any, str]:
    """Runs a command: ``run("predict", "braggnn", on="gc200", mode="train")``.

    Args:
        words: the command and its arguments.
        quiet: without signs of progress on standard error.
        options: of the command, with ``_`` for ``-``: ``True`` is a flag, a mapping is ``NAME=VALUE`` as often as it has
            members, a list is the option once for each.

    Returns:
        What the command wrote to ``--json`` (None: nothing), and what it printed.

    Raises:
        Error: what the program said, with its hint; InvalidArgument where it says that the call was wrong.
        KeyboardInterrupt: on Ctrl-C; the program hears it too and saves what it saves.
    """
    if not words:
        raise InvalidArgument("which command?", "run", 'run("list", "workloads")')
    with tempfile.TemporaryDirectory(prefix="superstep-") as folder:
        file = os.path.join(folder, "result.json")
        command = [str(path()), *map(str, words), *_words(options), *(["--progress", "none"] if quiet else [])]
        if words[0] not in ("list", "graph", "completion", "man", "help"):
            command += ["--json", file]
        status, printed, said = _done(command, quiet)
        if status == 130:
            raise KeyboardInterrupt
        if status != 0:
            _raise(status, said if quiet else printed)
        if said:
            sys.stderr.write(said)  # notes and warnings
        written = json.loads(pathlib.Path(file).read_text()) if os.path.exists(file) else None
        return written, printed
