#!/usr/bin/env python3
"""superstep md beside LAMMPS: the same atoms, the same potential, the same cutoff, one thread each.

    bench/md/beside_lammps.py [--program build/superstep] [--check] [--rounds 3] [--only NAME] [--json FILE]

Energy, forces and pressure of a warm frame must agree; then both run the same number of steps at constant energy in
turns, and the medians of ns/day stand side by side. --check compares energies alone. Ends with 77 where there is no
LAMMPS (Debian: lammps), with 1 where something differs. LAMMPS is a program of its own here: nothing of it is linked.
"""
import argparse
import json
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

KCAL = 4184 / 96485.33212  # eV of a kcal/mol
MASS = {'Ar': 39.95, 'Cu': 63.546, 'O': 15.999, 'H': 1.008}
SHARP = ['--set', 'smooth-from=cutoff']


def lennard_jones(_folder):
    return ['units metal', 'atom_style atomic'], ['pair_style lj/cut 8.5125', 'pair_coeff 1 1 0.0103 3.405']


def morse(_folder):
    return ['units metal', 'atom_style atomic'], ['pair_style morse 7.165', 'pair_coeff 1 1 0.3429 1.3588 2.866']


def sutton_chen(folder):
    """A table of the metal for LAMMPS: it interpolates, so that energies agree to some digits only."""
    n, m, epsilon, c, a, cutoff, count, most = 9, 6, 1.2382e-2, 39.432, 3.61, 7.22, 10000, 300.0
    dr, drho = cutoff / (count - 1), most / (count - 1)
    embedding = [-epsilon * c * math.sqrt(i * drho) for i in range(count)]
    radii = [max(i, 1) * dr for i in range(count)]

    def end(r):  # as superstep ends potentials: over the last eighth
        x = min(max((r - 0.875 * cutoff) / (0.125 * cutoff), 0), 1)
        return x ** 3 * (-6 * x * x + 15 * x - 10) + 1
    density = [min((a / r) ** m, 1e6) * end(r) for r in radii]
    pair = [r * epsilon * min((a / r) ** n, 1e9) * end(r) for r in radii]
    lines = ['Sutton-Chen copper', 'made for a comparison', '', '1 Cu', f'{count} {drho:.17g} {count} {dr:.17g} {cutoff}',
             f'29 {MASS["Cu"]} {a} fcc']
    lines += [f'{value:.17g}' for values in (embedding, density, pair) for value in values]
    (folder / 'cu.setfl').write_text('\n'.join(lines) + '\n')
    return ['units metal', 'atom_style atomic'], ['pair_style eam/alloy', 'pair_coeff * * cu.setfl Cu']


def water(_folder):
    """LAMMPS takes erfc to 1.5e-7, and e^2/(4 pi epsilon_0) to seven digits: energies agree to some six digits."""
    bond, angle = 1059.162 / 2 * KCAL, 75.90 / 2 * KCAL
    return (['units metal', 'atom_style full', 'bond_style harmonic', 'angle_style harmonic'],
            ['pair_style lj/cut/coul/dsf 0.2 9.0 9.0', f'pair_coeff 1 1 {0.1554253 * KCAL:.17g} 3.165492',
             'pair_coeff 1 2 0 1', 'pair_coeff 2 2 0 1', f'bond_coeff 1 {bond:.17g} 1.012',
             f'angle_coeff 1 {angle:.17g} 113.24', 'special_bonds lj/coul 0 0 0'])


# name: (arguments of superstep md, pair style for LAMMPS, step in fs, steps timed, agreement of energies)
CASES = {
    'argon-864': (['lennard-jones', '--lattice', 'fcc:Ar:5.4:6', '--temperature', '90', *SHARP], lennard_jones, 2, 4000, 1e-9),
    'argon-4000': (['lennard-jones', '--lattice', 'fcc:Ar:5.4:10', '--temperature', '90', *SHARP], lennard_jones, 2, 1000, 1e-9),
    'copper-pairs-500': (['morse', '--lattice', 'fcc:Cu:3.61:5', '--temperature', '300', *SHARP], morse, 2, 3000, 1e-9),
    'copper-500': (['sutton-chen', '--lattice', 'fcc:Cu:3.61:5', '--temperature', '300'], sutton_chen, 2, 2000, 1e-5),
    'copper-4000': (['sutton-chen', '--lattice', 'fcc:Cu:3.61:10', '--temperature', '300'], sutton_chen, 2, 300, 1e-5),
    'water-216': (['spc-fw', '--water', '216', '--relax', '0.5', '--temperature', '300', *SHARP], water, 0.5, 1500, 1e-5),
}


def run(command, folder):
    own = {**os.environ, 'SUPERSTEP_HOME': str(folder / 'home'), 'OMP_NUM_THREADS': '1'}  # no records of the user's
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=own)
    if done.returncode != 0:
        sys.exit(f'{" ".join(map(str, command))}\nended with {done.returncode}: {done.stdout[-800:]}{done.stderr[-800:]}')
    return done.stdout


def last_frame(path):
    """Lattice, energy, virial and the rows of the last frame."""
    lines = path.read_text().splitlines()
    at = 0
    while at < len(lines):
        count, first = int(lines[at]), at
        at += count + 2
    comment = lines[first + 1]
    numbers = {key: [float(each) for each in found.split()]
               for key, found in re.findall(r'(\w+)="?([-+.\de ]+?)"?(?= \w+=|$)', comment) if key in ('Lattice', 'energy', 'virial')}
    rows = [(words[0], *map(float, words[1:])) for words in map(str.split, lines[first + 2:first + 2 + count])]
    return numbers, rows


def data_file(path, lattice, rows):
    kinds = sorted({row[0] for row in rows}, key=['Ar', 'Cu', 'O', 'H'].index)
    is_water = 'O' in kinds
    molecules = len(rows) // 3
    text = [f'atoms of a frame\n\n{len(rows)} atoms\n{len(kinds)} atom types']
    if is_water:
        text.append(f'{2 * molecules} bonds\n{molecules} angles\n1 bond types\n1 angle types')
    text.append(f'0 {lattice[0]:.17g} xlo xhi\n0 {lattice[4]:.17g} ylo yhi\n0 {lattice[8]:.17g} zlo zhi\n\nMasses\n')
    text += [f'{i + 1} {MASS[kind]}' for i, kind in enumerate(kinds)]
    text.append(f'\nAtoms # {"full" if is_water else "atomic"}\n')
    for i, row in enumerate(rows):
        kind = kinds.index(row[0]) + 1
        middle = f'{i // 3 + 1} {kind} {-0.82 if row[0] == "O" else 0.41}' if is_water else f'{kind}'
        text.append(f'{i + 1} {middle} {row[1]:.17g} {row[2]:.17g} {row[3]:.17g}')
    text.append('\nVelocities\n')
    text += [f'{i + 1} {1000 * row[4]:.17g} {1000 * row[5]:.17g} {1000 * row[6]:.17g}' for i, row in enumerate(rows)]
    if is_water:
        text.append('\nBonds\n')
        text += [f'{2 * k + h} 1 {3 * k + 1} {3 * k + 1 + h}' for k in range(molecules) for h in (1, 2)]
        text.append('\nAngles\n')
        text += [f'{k + 1} 1 {3 * k + 2} {3 * k + 1} {3 * k + 3}' for k in range(molecules)]
    path.write_text('\n'.join(text) + '\n')


def lammps(folder, program, pair, step, steps):
    head, styles = pair(folder)
    script = head + ['boundary p p p', 'read_data atoms.data', *styles, f'timestep {step / 1000}', 'fix 1 all nve',
                     'thermo_style custom step pe pxx pyy pzz', 'thermo_modify format float %.15g norm no',
                     f'thermo {max(steps, 1)}', 'compute virial all pressure NULL virial',
                     'variable trace equal "c_virial[1]+c_virial[2]+c_virial[3]"']
    if steps == 0:
        script += ['thermo_style custom step pe v_trace', 'thermo_modify format float %.15g norm no',
                   'dump 1 all custom 1 forces.txt id fx fy fz', 'dump_modify 1 sort id format float %.15g']
    (folder / 'in.lammps').write_text('\n'.join(script + [f'run {steps}']) + '\n')
    return run([program, '-in', 'in.lammps', '-log', 'none'], folder)


def compare(name, case, program, lmp, folder):
    """Relative differences of energy, forces and the virial's trace; leaves atoms.data and warm/last.xyz."""
    arguments, pair, step, _, tolerance = case
    warm = [program, 'md', *arguments, '--ensemble', 'nvt', '--steps', '400', '--timestep', str(step), '--threads', '1', '--quiet',
            '--out', 'warm']
    run(warm, folder)
    numbers, rows = last_frame(folder / 'warm/last.xyz')
    data_file(folder / 'atoms.data', numbers['Lattice'], rows)
    text = lammps(folder, lmp, pair, step, 0)
    found = re.search(r'^\s*Step.*\n\s*0 +(\S+) +(\S+)', text, re.MULTILINE)
    energy, pressures = float(found[1]), float(found[2])
    volume = numbers['Lattice'][0] * numbers['Lattice'][4] * numbers['Lattice'][8]
    trace, bar = sum(numbers['virial'][k] for k in (0, 4, 8)), 1.6021765e6
    lines = (folder / 'forces.txt').read_text().splitlines()[9:]
    theirs = [tuple(map(float, line.split()[1:4])) for line in lines]
    scale = max(abs(x) for row in rows for x in row[7:10])
    apart = max(abs(a - b) for row, other in zip(rows, theirs) for a, b in zip(row[7:10], other)) / scale
    differences = {'energy': abs(energy / numbers['energy'][0] - 1), 'forces': apart,
                   'virial': abs(pressures / bar * volume - trace) / max(abs(trace), 1)}
    fine = differences['energy'] < tolerance and differences['forces'] < 100 * tolerance and differences['virial'] < 1000 * tolerance
    print(f'{name:<18} energy {numbers["energy"][0]:.9g} eV, relative difference {differences["energy"]:.1e}; forces '
          f'{differences["forces"]:.1e}, virial {differences["virial"]:.1e}{"" if fine else "  DIFFERENT"}')
    return fine, differences


def timed(case, program, lmp, folder, rounds):
    arguments, pair, step, steps, _ = case
    ours, theirs = [], []
    for _ in range(rounds):
        shutil.rmtree(folder / 'timed', ignore_errors=True)
        settings = [arguments[i + 1] for i, word in enumerate(arguments) if word == '--set']
        again = [word for setting in settings for word in ('--set', setting)]
        run([program, 'md', arguments[0], *again, '--structure', 'warm/last.xyz', '--own-velocities', '--steps', str(steps), '--timestep',
             str(step), '--frame-every', str(steps), '--thermo-every', str(steps), '--threads', '1', '--quiet', '--json', 'r.json', '--out',
             'timed'], folder)
        metrics = json.loads((folder / 'r.json').read_text())['metrics']
        ours.append(metrics['ns_per_day']['value'])
        text = lammps(folder, lmp, pair, step, steps)
        theirs.append(float(re.search(r'Performance: (\S+) ns/day', text)[1]))
    return statistics.median(ours), statistics.median(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', default='build/superstep')
    parser.add_argument('--check', action='store_true', help='energies, forces and virials alone')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--only', default='', help='cases with this in their name')
    parser.add_argument('--json', type=pathlib.Path)
    arguments = parser.parse_args()
    lmp = shutil.which('lmp')
    if not lmp:
        print('skipped: there is no LAMMPS here (Debian: lammps)')
        return 77
    program, fine, results = str(pathlib.Path(arguments.program).resolve()), True, {}
    for name, case in CASES.items():
        if arguments.only not in name:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            folder = pathlib.Path(scratch)
            same, differences = compare(name, case, program, lmp, folder)
            fine &= same
            results[name] = {'differences': differences}
            if not arguments.check:
                ours, theirs = timed(case, program, lmp, folder, arguments.rounds)
                results[name].update(ours=ours, lammps=theirs)
                print(f'{"":<18} {ours:8.3f} ns/day, LAMMPS {theirs:8.3f}: {ours / theirs:.2f} times', flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + '\n')
    return 0 if fine else 1


if __name__ == '__main__':
    sys.exit(main())
