"""Data sets drawn here, in the files of the well-known ones (`python -m poptorch data --help`)."""

from ._generated import DATA_SETS, Refused, accept, write

__all__ = ["DATA_SETS", "Refused", "accept", "write"]
