"""Trained force fields in Python, and as a calculator of ASE: forces, stress, dynamics that keep their energy."""
import pickle

import numpy
import pytest
import superstep

COPPER = {'embedding': '4,8', 'axis': 4, 'fitting': '8,8', 'precision': 'f64'}


@pytest.fixture(scope='module')
def copper(tmp_path_factory):
    run = tmp_path_factory.mktemp('force_field') / 'copper'
    superstep.train('deepmd', samples=40, batch=4, epochs=1, threads=1, options=COPPER, out=run)
    return run


@pytest.fixture(scope='module')
def water(tmp_path_factory):
    run = tmp_path_factory.mktemp('force_field') / 'water'
    superstep.train('schnet', samples=40, batch=4, epochs=1, threads=1, options={'width': 8, 'blocks': 1}, out=run)
    return run


PLACES = numpy.array([[0.1, 0, 0], [0, 1.8, 1.9], [1.8, 0.05, 1.8], [1.85, 1.8, -0.1]])
BOX = numpy.array([[3.7, 0, 0], [0.1, 3.6, 0], [0, 0.05, 3.65]])


def test_forces_are_the_gradient_of_the_energy(copper):
    field = superstep.ForceField(copper, [29] * 4)
    found = field(PLACES, BOX)
    assert found.forces.shape == (4, 3) and found.virial.shape == (3, 3)
    step = 1e-4
    for i in range(4):
        for axis in range(3):
            move = numpy.zeros((4, 3))
            move[i, axis] = step
            slope = (field(PLACES + move, BOX).energy - field(PLACES - move, BOX).energy) / (2 * step)
            assert found.forces[i, axis] == pytest.approx(-slope, abs=1e-6)
    assert '4 atoms' in repr(field) and field.cutoff == 6 and field.elements_it_knows == (29,)


def test_shapes_and_elements_are_refused_by_name(copper, water):
    field = superstep.ForceField(copper, [29] * 4)
    with pytest.raises(superstep.InvalidArgument, match='positions: .4, 3. is needed'):
        field(PLACES[:3])
    with pytest.raises(superstep.InvalidArgument, match='cell: .3, 3.'):
        field(PLACES, [3.7, 3.7, 3.7])
    with pytest.raises(superstep.InvalidArgument, match=r'atom 1 \(Al\)'):
        superstep.ForceField(copper, [13])
    with pytest.raises(superstep.NotFound):
        superstep.ForceField('nowhere', [29])
    with pytest.raises(superstep.Unsupported, match='periodic box'):
        superstep.ForceField(water, [8, 1, 1])(PLACES[:3], BOX)


def test_it_is_pickled_by_its_folder(copper):
    field = superstep.ForceField(copper, [29] * 4)
    again = pickle.loads(pickle.dumps(field))
    assert (again(PLACES, BOX).forces == field(PLACES, BOX).forces).all()


def crystal():
    bulk = pytest.importorskip('ase.build').bulk
    atoms = bulk('Cu', cubic=True, a=3.65) * (2, 1, 1)
    atoms.rattle(0.05, seed=1)
    return atoms


def test_ase_has_the_same_forces_and_a_stress_that_is_the_derivative(copper):
    atoms = crystal()
    from superstep.ase import SuperstepCalculator
    atoms.calc = SuperstepCalculator(copper)
    found = superstep.ForceField(copper, atoms.numbers)(atoms.positions, atoms.cell.array)
    assert atoms.get_potential_energy() == found.energy
    assert (atoms.get_forces() == found.forces).all()
    numerical = atoms.calc.calculate_numerical_stress(atoms, d=1e-4)
    assert numpy.allclose(atoms.get_stress(), numerical, atol=1e-7)
    assert abs(numerical).max() > 1e-4


def test_dynamics_of_ase_keep_their_energy(copper):
    pytest.importorskip('ase')
    from ase import units
    from ase.md.velocitydistribution import MaxwellBoltzmannDistribution
    from ase.md.verlet import VelocityVerlet
    from superstep.ase import SuperstepCalculator

    def worst(timestep):
        atoms = crystal()
        atoms.calc = SuperstepCalculator(copper)
        MaxwellBoltzmannDistribution(atoms, temperature_K=300, rng=numpy.random.default_rng(2))
        dynamics = VelocityVerlet(atoms, timestep * units.fs)
        begun, off = atoms.get_total_energy(), 0.0
        for _ in range(round(60 / timestep)):
            dynamics.run(1)
            off = max(off, abs(atoms.get_total_energy() - begun))
        return off
    # The error of the method falls with the square of the step; forces that were not the energy's would leave a drift.
    assert worst(1.5) < worst(3) / 2.5


def test_other_atoms_make_another_field_and_half_a_box_is_refused(copper, water):
    atoms = crystal()
    from ase import Atoms
    from ase.calculators.calculator import PropertyNotImplementedError
    from superstep.ase import SuperstepCalculator
    calculator = SuperstepCalculator(copper)
    atoms.calc = calculator
    atoms.get_potential_energy()
    fewer = atoms[:5]
    fewer.calc = calculator
    assert fewer.get_forces().shape == (5, 3)
    atoms.pbc = (True, True, False)
    with pytest.raises(superstep.Unsupported, match='periodic along some'):
        atoms.get_potential_energy()
    molecule = Atoms('OHH', positions=[[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]], calculator=SuperstepCalculator(water))
    assert abs(molecule.get_forces().sum(axis=0)).max() < 1e-4
    with pytest.raises(PropertyNotImplementedError):
        molecule.get_stress()
