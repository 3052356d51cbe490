"""Any number of threads, more than there are processors too: done, with the loss of one thread."""
import json
import math

from harness import Attempt, Walk, run

CALLS = {
    'mlp': 'train mlp --samples 2000 --steps 30 --batch 64',
    'mlp, small batch': 'train mlp --samples 600 --steps 30 --batch 16 --micro-batch 4',
    'braggnn': 'train braggnn --samples 600 --steps 6 --batch 256',
    'braggnn, micro-batches': 'train braggnn --samples 300 --steps 5 --batch 48 --micro-batch 16',
    'lstm': 'train lstm --samples 128 --steps 2 --batch 64',
    'unet-64': 'infer unet-64 --batch 3 --samples 6',
    'braggnn on bytes': 'infer braggnn --precision int8 --batch 64 --samples 512 --calibrate 64',
    'mcmc': 'sample mcmc --set units=4 --set window=60 --chains 5 --warm-up 30 --draws 20 --doublings 4',
    'generate': 'generate braggnn --samples 500 --out peaks.h5',
    'baseline': 'baseline braggnn --input {peaks} --set method=centroid',
}
QUALITIES = ('loss', 'error_px_mean', 'error_px_p50', 'rms', 'mse', 'log_likelihood')


def attempts(walk: Walk) -> list:
    calls = dict(list(CALLS.items())[:3]) if walk.short else CALLS
    counts = (2, 9, 64) if walk.short else (2, 3, 4, 5, 7, 8, 9, 12, 13, 16, 17, 24, 31, 32, 33, 48, 63, 64)
    found = []
    for name, call in calls.items():
        alone = Alone(walk, call)
        found += [attempt(walk, name, call, count, alone) for count in counts]
    return found


class Alone:
    """The qualities that one thread reaches; found when they are first asked for."""

    def __init__(self, walk: Walk, call: str):
        self.walk, self.call, self.found = walk, call, None

    def qualities(self):
        if self.found is None:
            self.found = qualities_of(self.walk, self.call, 1)
        return self.found


def line_of(walk: Walk, call: str, count: int):
    folder = walk.fresh('threads')
    call = call.format(peaks=walk.samples['peaks.h5'])
    return folder, walk.line(f'{call} --threads {count} --json result.json', folder)


def qualities_of(walk: Walk, call: str, count: int):
    folder, line = line_of(walk, call, count)
    outcome = run(line, 120)
    if outcome.code != 0:
        raise RuntimeError(f'ended with {outcome.code}: {outcome.errors.strip()[-200:]}')
    metrics = json.loads((folder / 'result.json').read_text())['metrics']
    return {name: metrics[name]['value'] for name in QUALITIES if name in metrics}


def attempt(walk: Walk, name: str, call: str, count: int, alone: Alone) -> Attempt:
    def action():
        expected = alone.qualities()
        try:
            found = qualities_of(walk, call, count)
        except RuntimeError as error:
            return str(error)
        for quality, value in expected.items():
            if not math.isclose(found.get(quality, math.nan), value, rel_tol=0.02, abs_tol=1e-5):
                return f'{quality} is {found.get(quality)}, on one thread {value}'
        return None
    return Attempt('threads', f'{name} on {count} threads', action, line_of(walk, call, count)[1])
