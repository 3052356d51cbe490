"""The program: ``python -m superstep``, and the command ``superstep`` that the package installs."""

import os
import sys

from .program import path


def main() -> None:
    """Becomes the program: its signals and its exit status are the command's own."""
    program = str(path())
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
