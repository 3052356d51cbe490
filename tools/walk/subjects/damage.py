"""Damaged files: refused with an error that names them, or read; never a crash, a hang or memory without end."""
import shutil
from pathlib import Path

from harness import DONE, FAILED, MEBI, Attempt, Walk, judged, run
from mutate import mutated

MOST_MEMORY = 2048 * MEBI
# A kind of file and the commands that read it. {file} is the damaged one.
READERS = {
    'peaks.h5': ['show {file} --out page.html', 'train braggnn --data {file} --steps 2 --batch 64',
                 'baseline braggnn --input {file} --set method=centroid', 'infer braggnn --input {file} --batch 64'],
    'x.npy': ['show {file} --out page.html', 'infer {model} --input {file} --batch 4'],
    'x.npz': ['show {file} --out page.html', 'infer {model} --input {file} --batch 4'],
    'y.safetensors': ['show {file} --out page.html'],
    'model.onnx': ['onnx check {file}', 'infer {file} --batch 1', 'show {file} --out page.html'],
    'cycles.csv': ['validate {file}'],
    'results.csv': ['validate {file}'],
    'machine.toml': ['predict mlp --on {file} --micro-batch 4'],
    'infer.json': ['compare {file} {file}', 'records import {file}'],
}


def attempts(walk: Walk) -> list:
    count = 2 if walk.short else walk.count
    found = []
    for name, commands in READERS.items():
        for i in range(count):
            for command in commands if not walk.short else commands[:1]:
                found.append(of_file(walk, name, walk.samples[name], command, walk.seed + i))
    found += of_runs(walk, count)
    for name, path in walk.samples.items():
        if name.startswith('generated '):
            found += of_generated(walk, name.split()[1], path, count)
    return found


class Whole:
    """What the file does undamaged: a sample of four may be too few for a method (2), or keep it at work for long."""

    def __init__(self, walk: Walk, name: str, original: Path, command: str):
        self.walk, self.name, self.original, self.command, self.found = walk, name, original, command, None

    def outcome(self):
        if self.found is None:
            folder = self.walk.fresh('whole')
            shutil.copy(self.original, folder / self.name)
            self.found = read(self.walk, folder, self.command)
        return self.found


def of_file(walk: Walk, name: str, original: Path, command: str, seed: int, whole=None) -> Attempt:
    def action():
        folder = walk.fresh('broken')
        (folder / name).write_bytes(mutated(original.read_bytes(), seed))
        wrong = judge(walk, folder, command.format(file=name, model=walk.samples['model.onnx']), name, whole)
        if wrong is None:
            shutil.rmtree(folder)
        return wrong and f'{wrong}; the file is {folder / name} (with --keep)'
    return Attempt('damage', f'{name}, seed {seed}: {command}', action,
                   f'python3 tools/walk --subject damage --seed {seed} --count 1 --keep')


def read(walk: Walk, folder: Path, arguments: str):
    return run(walk.line(arguments + ' --threads 1', folder, before='prlimit --as=8589934592'), most_seconds=30)


def judge(walk: Walk, folder: Path, arguments: str, name: str, whole=None):
    outcome, codes = read(walk, folder, arguments), {DONE, FAILED}
    undamaged = whole.outcome() if whole and (outcome.asked_to_stop or outcome.code not in codes) else None
    if outcome.asked_to_stop and not (undamaged and undamaged.asked_to_stop):
        return 'was still at work after 30 s'
    if undamaged and not undamaged.asked_to_stop:
        codes.add(undamaged.code)
    return judged(outcome, codes=codes, names=name, memory=MOST_MEMORY, patience=walk.patience)


def of_runs(walk: Walk, count: int) -> list:
    original = walk.samples['run']
    files = sorted(path.relative_to(original) for path in original.rglob('*') if path.is_file())
    return [of_run(walk, original, file, command, walk.seed + i) for file in files for i in range(count)
            for command in ('train mlp --resume run', 'report --run run --samples 100 --out report')]


def of_run(walk: Walk, original: Path, file: Path, command: str, seed: int) -> Attempt:
    def action():
        folder = walk.fresh('broken-run')
        shutil.copytree(original, folder / 'run')
        (folder / 'run' / file).write_bytes(mutated((original / file).read_bytes(), seed))
        wrong = judge(walk, folder, command, 'run')
        if wrong is None:
            shutil.rmtree(folder)
        return wrong and f'{wrong}; the run is {folder / "run"} (with --keep)'
    return Attempt('damage', f'run/{file}, seed {seed}: {command}', action,
                   f'python3 tools/walk --subject damage --seed {seed} --count 1 --keep')


def of_generated(walk: Walk, workload: str, path: Path, count: int) -> list:
    """The files of a generator, read by `show` where it can, and by the workload's conventional method."""
    if not path.is_file():
        return []
    commands = [template.format(file=path.name) for template in
                ('show {file} --out page.html', f'baseline {workload} --input {{file}}')]
    wholes = [Whole(walk, path.name, path, command) for command in commands]
    return [of_file(walk, path.name, path, command, walk.seed + i, whole) for i in range(count)
            for command, whole in zip(commands, wholes)]
