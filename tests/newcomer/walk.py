"""What the walks of newcomers share: each begins with nothing, ends with a result, and prints its time and disk."""

import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = 77  # ctest's word for it


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def needed(*tools):
    """Their paths; the walk is skipped where one is not here."""
    place = os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin"
    found = [shutil.which(tool, path=place) for tool in tools]
    if missing := [tool for tool, path in zip(tools, found) if path is None]:
        skip(f"there is no {', '.join(missing)} here")
    return found


def bytes_in(folder):
    """On the disk, as du counts them."""
    return int(subprocess.run(["du", "-s", "-B1", folder], capture_output=True, text=True, check=True).stdout.split()[0])


@contextlib.contextmanager
def walk(name, folder=None):
    """A folder of its own; at its end, how long it took and what it left on the disk."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="newcomer-", dir=folder) as home:
        yield pathlib.Path(home)
        print(f"{name}: {time.monotonic() - began:.0f} s, {bytes_in(home) / 1e6:.0f} MB")


def done(command, code=0, timeout=280, **more):
    """Runs it; another status than `code` ends the walk with what it said."""
    ended = subprocess.run(command, capture_output=True, text=True, timeout=timeout, **more)
    if ended.returncode != code:
        sys.exit(f"{command}: ended with {ended.returncode}, not {code}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}")
    return ended.stdout + ended.stderr


def python_of(page):
    """The first block of Python of a page that uses the package."""
    blocks = re.findall(r"```python\n(.*?)```", (SOURCE / page).read_text(), re.S)
    return next(block for block in blocks if "superstep" in block)
