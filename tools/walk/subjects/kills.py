"""A run that is killed at random moments and resumed ends with the weights, or the draws, of one that never was."""
import random
import signal
import zipfile
from pathlib import Path

from harness import Attempt, Walk, run

RUNS = {
    'mlp': 'train mlp --samples 4000 --epochs 12 --batch 64 --threads 2 --checkpoint-seconds 0.02 --quiet',
    'braggnn': 'train braggnn --samples 1200 --epochs 3 --batch 64 --threads 2 --checkpoint-seconds 0.05 --quiet',
    'mcmc': 'sample mcmc --set units=4 --set window=60 --set ahead=5 --chains 3 --warm-up 60 --draws 60 --doublings 5 --threads 2 '
            '--checkpoint-seconds 0.02 --quiet',
}
MOST_KILLS = 6


def attempts(walk: Walk) -> list:
    names = ['mlp'] if walk.short else list(RUNS)
    references = {name: Reference(walk, name) for name in names}
    count = 3 if walk.short else walk.count
    return [Attempt('kills', f'{names[i % len(names)]}, seed {walk.seed + i}',
                    Killed(walk, references[names[i % len(names)]], walk.seed + i), RUNS[names[i % len(names)]])
            for i in range(count)]


class Reference:
    """The run that nobody stops; made when it is first asked for."""

    def __init__(self, walk: Walk, name: str):
        self.walk, self.name, self.model, self.seconds = walk, name, b'', 0.0

    def make(self):
        if self.model:
            return
        folder = self.walk.fresh('reference')
        outcome = run(self.walk.line(f'{RUNS[self.name]} --out run', folder), most_seconds=300)
        if outcome.code != 0:
            raise RuntimeError(f'the run itself fails: {outcome.errors}')
        self.model, self.seconds = what_came_of(folder / 'run'), outcome.seconds


class Killed:
    def __init__(self, walk: Walk, reference: Reference, seed: int):
        self.walk, self.reference, self.seed = walk, reference, seed

    def __call__(self):
        self.reference.make()
        draw, folder = random.Random(self.seed), self.walk.fresh('killed')
        new = f'{RUNS[self.reference.name]} --out run'
        for _ in range(draw.randint(1, MOST_KILLS)):
            outcome = run(self.walk.line(next_call(new, self.reference.name, folder), folder),
                          draw.uniform(0, self.reference.seconds), signal.SIGKILL)
            if outcome.code not in (0, -signal.SIGKILL):
                return f'before it was killed: {outcome.code}, {outcome.errors.strip()}'
        outcome = run(self.walk.line(next_call(new, self.reference.name, folder), folder), most_seconds=300)
        return self.wrong_at_the_end(folder / 'run', outcome)

    def wrong_at_the_end(self, folder: Path, outcome):
        if outcome.code != 0:
            return f'the resumed run ended with {outcome.code}: {outcome.errors.strip()}'
        if what_came_of(folder) != self.reference.model:
            return 'other weights or draws than those of a run that was never stopped'
        left = [path.name for path in folder.rglob('*partial*')]
        return f'left behind: {", ".join(left)}' if left else None


def what_came_of(folder: Path) -> bytes:
    """The model, or all arrays of all chains but the seconds that they took."""
    if (folder / 'model.onnx').exists():
        return (folder / 'model.onnx').read_bytes()
    found = b''
    for path in sorted(folder.glob('*/chain-*.npz')):
        with zipfile.ZipFile(path) as chain:
            found += b''.join(chain.read(name) for name in sorted(chain.namelist()) if 'seconds' not in name)
    return found


def next_call(new: str, name: str, folder: Path) -> str:
    """A run killed before it had its configuration is begun again; draws go on by the same command."""
    if new.startswith('sample'):
        return new
    return f'train {name} --resume run --quiet' if (folder / 'run/config.json').exists() else new
