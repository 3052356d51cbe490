#!/usr/bin/env python3
"""The walls of the house: what the sources include, how they hang together, how large things are, which numbers of the
models nobody explains, where tests lie, what is counted so that it becomes less (counts.py).

    tests/house/house.py [--source FOLDER] [--map]

Prints what is not as it should be, a line each, and ends with 1; with 0 where nothing is found. The limits and the
exceptions with their reasons are in limits.toml beside this file; an exception that nothing needs any more is a finding
too. --map prints the rooms with their sizes and what they use.
"""

import argparse
import pathlib
import re
import sys
import tomllib

import counts
import literals
import walls

here = pathlib.Path(__file__).resolve().parent


def print_map(house):
    """A line a room: files, lines, rooms that it uses."""
    for room in house.rooms.values():
        files = [file for file in house.files if house.room_of(file) == room.name]
        lines = sum(len(house.lines(file)) for file in files)
        print(f"{room.folder + '/':<24} {len(files):4} files {lines:7,} lines   uses {' '.join(sorted(room.uses)) or '-'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=pathlib.Path, default=here.parent.parent, help="the tree to look at")
    parser.add_argument("--limits", type=pathlib.Path, default=here / "limits.toml", help="limits and exceptions")
    parser.add_argument("--map", action="store_true", help="print the rooms")
    arguments = parser.parse_args()
    house = walls.House(arguments.source)
    if arguments.map:
        print_map(house)
        return 0
    limits = tomllib.loads(arguments.limits.read_text())
    findings = walls.findings(house, limits) + literals.unexplained(arguments.source) + literals.misplaced_tests(arguments.source)
    findings += counts.findings(arguments.source, limits["ceilings"])
    for finding in findings:
        print(finding)
    print(f"{len(house.files)} files in {len(house.rooms)} rooms: {len(findings) or 'no'} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
