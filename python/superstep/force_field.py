"""Trained force fields: what atoms weigh in energy and how each is pulled, for programs that move them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from . import _core
from .errors import InvalidArgument

__all__ = ["ForceField", "Forces"]


@dataclass(frozen=True, slots=True)
class Forces:
    """What a force field says of atoms.

    Attributes:
        energy: in eV.
        forces: [atoms, 3], in eV/A.
        virial: [3, 3], -dE/d(strain), in eV; None where the model gives none. The stress is ``-virial / volume``.
    """

    energy: float
    forces: numpy.ndarray
    virial: numpy.ndarray | None


class ForceField:
    """The model that a training of ``deepmd`` or ``schnet`` left in its folder, for atoms of given elements.

    Args:
        run: the folder of the run.
        elements: atomic numbers of the atoms, in the order in which positions will be given.
        threads: threads that work on a call; 0: every processor there is.

    Raises:
        NotFound, BadFile: the run is not there, or damaged.
        Unsupported: its workload gives no forces.
        InvalidArgument: an element that the model does not know.
    """

    __slots__ = ("_core", "run", "elements", "threads", "__weakref__")

    def __init__(self, run: str | os.PathLike[str], elements: Sequence[int], *, threads: int = 1) -> None:
        numbers = [int(number) for number in elements]
        self._core = _core.ForceField.open(os.fspath(run), numbers, threads)
        self.run = os.fspath(run)
        self.elements: tuple[int, ...] = tuple(numbers)
        self.threads = threads

    @property
    def cutoff(self) -> float:
        """Beyond which atoms do not feel each other, in A."""
        cutoff: float = self._core.cutoff()
        return cutoff

    @property
    def elements_it_knows(self) -> tuple[int, ...]:
        """Atomic numbers of the elements that the model was trained on."""
        return tuple(self._core.elements_it_knows())

    def __call__(self, positions: Any, cell: Any = None) -> Forces:
        """Energy, forces and virial of the atoms at these places.

        Args:
            positions: [atoms, 3], in A.
            cell: [3, 3], the edges of a periodic box as rows, in A; None: open space. A box may be smaller than the cutoff.

        Raises:
            InvalidArgument: another shape, values that are not finite, a box without volume.
            BadFile: two atoms at one place, or one with more neighbors than the model has room for; the atoms are named.
        """
        places = _matrix(positions, "positions", len(self.elements))
        box = None if cell is None else _matrix(cell, "cell", 3)
        return Forces(*self._core.evaluate(places, box))

    def __reduce__(self) -> tuple[Any, ...]:
        return _open, (self.run, self.elements, self.threads)

    def __repr__(self) -> str:
        return f"ForceField({self.run!r}, {len(self.elements)} atoms, cutoff {self.cutoff:g} A)"


def _open(run: str, elements: tuple[int, ...], threads: int) -> ForceField:
    return ForceField(run, elements, threads=threads)


def _matrix(given: Any, name: str, rows: int) -> numpy.ndarray:
    matrix = numpy.ascontiguousarray(given, dtype=numpy.float64)
    if matrix.shape != (rows, 3):
        raise InvalidArgument(f"{name}: [{rows}, 3] is needed, {list(matrix.shape)} is given")
    return matrix
