"""INT, TERM, HUP, USR1 and XCPU end whatever is going on with 130, soon."""
import random
import signal

from harness import STOPPED, Attempt, Walk, patient, run

LONG = [
    'train mlp --samples 20000 --epochs 5000 --out {out}',
    'train braggnn --samples 20000 --epochs 500 --threads 2',
    'train unet-64 --samples 200 --epochs 50',
    'train resnet50 --samples 32 --batch 8 --steps 50',
    'train bert-small --samples 512 --epochs 50',
    'generate braggnn --samples 50000000 --out {out}/peaks.h5',
    'generate unet-256 --samples 5000 --out {out}/slices.h5',
    'infer braggnn --samples 2000000 --batch 64',
    'infer resnet50 --on gc200 --batch 4 --samples 4',
    'infer efficientnet-b4 --batch 8 --samples 64',
    'bench gemm --seconds 60 --config gemm_k4',
    'bench braggnn --mode train --batch 512 --seconds 60',
    'bench relu --processes 20 --seconds 5',
    'predict unet-256 --on gc200 --pipeline auto --units 4 --accumulate 16',
    'predict resnet50 --on gc200 --largest',
    'profile unet-64 --mode train --runs 2000',
    'profile braggnn --on gc200 --mode train --batch 16',
    'machine measure --out {out}/here.toml',
    'scale mlp --ranks 1,2 --steps 20000 --samples 20000',
    'baseline braggnn --input {peaks} --output {out}/fits.h5',
    'report --run {run} --samples 200000 --out {out}/report',
    'sample mcmc --threads 2 --out {out}',
    'sample mcmc --method laplace,hmc --leapfrog 1000 --noise 0.9',
]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGXCPU)
SHORT = (0, 1, 5, 7, 10)


def attempts(walk: Walk) -> list:
    draw, found = random.Random(walk.seed), []
    chosen = [LONG[i] for i in SHORT] if walk.short else LONG
    for each in chosen:
        for number in ([draw.choice(SIGNALS)] if walk.short else SIGNALS):
            found.append(attempt(walk, each, number, draw.uniform(0.1, 1.5 if walk.short else 5)))
    return found


def attempt(walk: Walk, template: str, number: int, after: float) -> Attempt:
    out = walk.fresh('signal')
    arguments = template.format(out=out, peaks=walk.samples['peaks.h5'], run=walk.samples['run'])
    line = walk.line(arguments, out)
    name = signal.Signals(number).name
    return Attempt('signals', f'{name} after {after:.2f} s: {template}', lambda: judge(walk, line, number, after),
                   f'timeout -s {name} {after:.2f} sh -c {line!r}')


def judge(walk: Walk, line: str, number: int, after: float):
    outcome = run(line, after, number, grace=20)
    if not outcome.asked_to_stop:
        return None if outcome.code == 0 else f'ended with {outcome.code} by itself: {outcome.errors.strip()[-200:]}'
    if outcome.killed:
        return 'was not heard for 20 s'
    if outcome.code not in (0, STOPPED):
        return f'ended with {outcome.code}: {outcome.errors.strip()[-200:]}'
    if outcome.seconds_to_stop > patient(walk.patience):
        return f'was heard after {outcome.seconds_to_stop:.1f} s'
    return None
