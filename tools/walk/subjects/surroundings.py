"""Odd environments: the work is done; limits too tight for it: an error of ours."""
import os

from harness import DONE, FAILED, MEBI, Attempt, Walk, judged, run

WORK = [
    'list',
    'generate braggnn --samples 64 --out {folder}/peaks.h5',
    'train mlp --samples 600 --steps 4 --batch 64 --threads 4 --no-out',
    'infer mlp --samples 64 --batch 64 --threads 4',
    'predict mlp --on gc200',
    'bench mlp --mode infer --batch 1 --seconds 0.01 --threads 4',
    'baseline braggnn --input {peaks} --set method=centroid --threads 4',
    'show {peaks} --out {folder}/page.html',
]
# What makes no difference: the work is done all the same.
HARMLESS = {
    'no HOME': 'env -u HOME', 'HOME is a file': 'env HOME=/dev/null', 'HOME is not there': 'env HOME=/nowhere/at/all',
    'no TERM': 'env -u TERM', 'an odd TERM': 'env TERM=no-such-terminal', 'no PATH': 'env -u PATH',
    'an empty environment': 'env -i', 'Turkish': 'env LC_ALL=tr_TR.UTF-8', 'German': 'env LC_ALL=de_DE.UTF-8',
    'no such locale': 'env LC_ALL=xx_YY', 'OpenMP disturbed': 'env OMP_NUM_THREADS=many', 'one processor': 'taskset -c 0',
    'no temporary folder': 'env TMPDIR=/nowhere', 'narrow terminal': 'env COLUMNS=1', 'nice': 'nice -n 19',
}
# What may be too little: an error, or less than was asked for.
TIGHT = {
    f'{limit} of memory': f'prlimit --as={size * MEBI}' for limit, size in
    (('100 MiB', 100), ('200 MiB', 200), ('400 MiB', 400), ('1 GiB', 1024))
} | {f'{count} open files': f'prlimit --nofile={count}' for count in (4, 5, 6, 8, 12, 16, 32)
     } | {f'a stack of {size} kB': f'prlimit --stack={size * 1024}' for size in (256, 1024)
          } | {'no core, no locked memory': 'prlimit --core=0 --memlock=0'}
# Streams that are closed or full.
STREAMS = {'closed input': '<&-', 'closed errors': '2>&-', 'full errors': '2>/dev/full',
           'closed output': '>&-', 'all closed': '<&- >&- 2>&-'}
OTHER_USER = 54321  # nobody's processes count as this one's


def attempts(walk: Walk) -> list:
    work = WORK[:1] + WORK[2:4] if walk.short else WORK
    found = []
    for name, before in pick(walk, HARMLESS, ('no HOME', 'an empty environment')):
        found += [attempt(walk, name, each, before=before, codes=(DONE,)) for each in work]
    for name, before in pick(walk, TIGHT, ('200 MiB of memory', '8 open files')):
        found += [attempt(walk, name, each, before=before) for each in work]
    for name, after in pick(walk, STREAMS, ('closed output', 'full errors')):
        codes = (DONE,) if 'output' not in name and 'all' not in name else (DONE, FAILED)
        found += [attempt(walk, name, each, after=after, codes=codes, silent='errors' in name or 'all' in name)
                  for each in work]
    found += [attempt(walk, 'a folder that is gone', each, gone=True) for each in work]
    if os.geteuid() == 0:
        for count in ((2,) if walk.short else (1, 2, 3, 4, 8)):
            before = f'prlimit --nproc={count} setpriv --reuid={OTHER_USER} --clear-groups'
            found += [attempt(walk, f'{count} threads allowed', each, before=before) for each in work]
        before = f'setpriv --reuid={OTHER_USER} --clear-groups'
        found += [attempt(walk, 'a folder that is read-only', each, before=before, codes=(DONE,))
                  for each in work]
    return found


def pick(walk: Walk, table: dict, short: tuple) -> list:
    return [(name, value) for name, value in table.items() if not walk.short or name in short]


def attempt(walk: Walk, name: str, template: str, before: str = '', after: str = '', codes=(DONE, FAILED),
            silent: bool = False, gone: bool = False) -> Attempt:
    folder, where = walk.fresh('odd'), walk.fresh('odd')
    where.chmod(0o755)
    home = f'{folder}/home'
    folder.chmod(0o777)
    arguments = template.format(folder=folder, peaks=walk.samples['peaks.h5'])
    # `env -i` would lose a home that is set in front of it.
    keeps_home = 'HOME' in before or before == 'env -i'
    environment = f'SUPERSTEP_HOME={home}' if not keeps_home else 'SUPERSTEP_HOME= '
    setup = 'rmdir "$PWD" && ' if gone else ''
    line = walk.line(arguments, where, before=before, after=after, environment=environment, setup=setup)

    def action():
        outcome = run(line, 60)
        if outcome.asked_to_stop:
            return 'was still at work after 60 s'
        if silent and outcome.code in codes:
            return None  # nobody could hear the error
        wrong = judged(outcome, codes=codes)
        if wrong is None and not gone and any(where.iterdir()):
            return f'wrote into the folder it was started in: {", ".join(sorted(path.name for path in where.iterdir()))}'
        return wrong
    return Attempt('surroundings', f'{name}: {template}', action, line)
