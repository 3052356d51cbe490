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


def of_file(walk: Walk, name: str, original: Path, command: str, seed: int) -> Attempt:
    def action():
        folder = walk.fresh('damage')
        (folder / name).write_bytes(mutated(original.read_bytes(), seed))
        wrong = judge(walk, folder, command.format(file=name, model=walk.samples['model.onnx']), name)
        if wrong is None:
            shutil.rmtree(folder)
        return wrong and f'{wrong}; the file is {folder / name} (with --keep)'
    return Attempt('damage', f'{name}, seed {seed}: {command}', action,
                   f'python3 tools/walk --subject damage --seed {seed} --count 1 --keep')


def judge(walk: Walk, folder: Path, arguments: str, name: str):
    outcome = run(walk.line(arguments + ' --threads 1', folder, before='prlimit --as=8589934592'), most_seconds=30)
    if outcome.asked_to_stop:
        return 'was still at work after 30 s'
    return judged(outcome, codes=(DONE, FAILED), names=name, memory=MOST_MEMORY)


def of_runs(walk: Walk, count: int) -> list:
    original = walk.samples['run']
    files = sorted(path.relative_to(original) for path in original.rglob('*') if path.is_file())
    return [of_run(walk, original, file, command, walk.seed + i) for file in files for i in range(count)
            for command in ('train mlp --resume run', 'report --run run --samples 100 --out report')]


def of_run(walk: Walk, original: Path, file: Path, command: str, seed: int) -> Attempt:
    def action():
        folder = walk.fresh('damaged-run')
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
    original = path if path.is_file() else max((p for p in path.rglob('*') if p.is_file()), key=lambda p: p.stat().st_size)
    return [of_file(walk, path.name, original, command, walk.seed + i) for i in range(count)
            for command in ('show {file} --out page.html', f'baseline {workload} --input {{file}}')
            if path.is_file()]
