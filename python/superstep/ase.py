"""Trained force fields as a calculator of the Atomic Simulation Environment (ASE).

    from superstep.ase import SuperstepCalculator
    atoms.calc = SuperstepCalculator("run/")           # a training of deepmd or schnet
    atoms.get_potential_energy(), atoms.get_forces(), atoms.get_stress()

Optimizers, dynamics, phonons and the i-PI client of ASE take it as any other calculator. Needs ``pip install ase``.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

try:
    from ase.calculators.calculator import Calculator, PropertyNotImplementedError, all_changes
    from ase.stress import full_3x3_to_voigt_6_stress
except ImportError as error:
    raise ImportError("superstep.ase needs the Atomic Simulation Environment: pip install ase") from error

from .errors import Unsupported
from .force_field import ForceField

__all__ = ["SuperstepCalculator"]


class SuperstepCalculator(Calculator):  # type: ignore[misc]
    """Energy (eV), forces (eV/A) and stress (eV/A^3) of a trained run.

    The energy is that of the model: it has no zero of its own but the data's. Boxes are periodic along all three edges, or
    along none: what the model was not made for is refused.

    Args:
        run: the folder of a training of ``deepmd`` or ``schnet``.
        threads: threads that work on a call; 0: every processor there is.
    """

    implemented_properties = ["energy", "free_energy", "forces", "stress"]

    def __init__(self, run: str | os.PathLike[str], *, threads: int = 1, **rest: Any) -> None:
        super().__init__(**rest)
        self.run = os.fspath(run)
        self.threads = threads
        self._field: ForceField | None = None

    def _field_of(self, numbers: Sequence[int]) -> ForceField:
        elements = tuple(int(number) for number in numbers)
        if self._field is None or self._field.elements != elements:
            self._field = ForceField(self.run, elements, threads=self.threads)
        return self._field

    def calculate(self, atoms: Any = None, properties: Sequence[str] = ("energy",),
                  system_changes: Sequence[str] = tuple(all_changes)) -> None:
        super().calculate(atoms, properties, system_changes)
        periodic = set(map(bool, self.atoms.pbc))
        if len(periodic) > 1:
            raise Unsupported("a box that is periodic along some of its edges", "pbc",
                              "make it periodic along all of them, with room where there is none, or along none")
        cell = self.atoms.cell.array if True in periodic else None
        found = self._field_of(self.atoms.numbers)(self.atoms.positions, cell)
        self.results = {"energy": found.energy, "free_energy": found.energy, "forces": found.forces}
        if cell is not None and found.virial is not None:
            self.results["stress"] = full_3x3_to_voigt_6_stress(-found.virial / self.atoms.get_volume())
        elif "stress" in properties:
            raise PropertyNotImplementedError("there is no stress in open space" if cell is None else
                                              "this model gives no virial, and so no stress")
