"""Disks that are full and places that cannot be written: an error, nothing half written."""
import os
import subprocess
from pathlib import Path

from harness import DONE, FAILED, WRONG_CALL, Attempt, Walk, judged, run
from helptext import all_commands, commands_of

# What writes, into {to}, a file or folder of a place without space.
WRITERS = [
    'generate braggnn --samples 20000 --out {to}/peaks.h5',
    'train mlp --samples 600 --steps 20 --batch 64 --out {to}/run',
    'infer mlp --samples 20000 --output {to}/y.h5',
    'infer mlp --samples 20000 --output {to}/y.npz',
    'show {peaks} --out {to}/page.html',
    'profile mlp --runs 3 --out {to}/profile',
    'report --run {run} --samples 500 --out {to}/report',
    'onnx export braggnn --out {to}/model.onnx',
    'bench mlp --mode infer --batch 1 --seconds 0.01 --json {to}/out.json',
    'baseline braggnn --input {peaks} --set method=centroid --output {to}/fits.h5',
]
PRINTERS = ['list', 'list machines', 'list operators', 'list targets', 'list generators', 'list baselines', 'graph mlp',
            'predict mlp', 'records list', 'generate', 'baseline', 'onnx check {model}', 'generate braggnn --options',
            '--help', '--version', 'help train']


def attempts(walk: Walk) -> list:
    full = FullDisk(walk)
    found = [attempt(walk, each, full) for each in (WRITERS[:3] if walk.short else WRITERS)]
    printers = PRINTERS[:3] + PRINTERS[-3:] if walk.short else PRINTERS
    printers = printers + [f'{command} --help' for command in ([] if walk.short else all_commands(walk))]
    return found + [printed(walk, each) for each in printers]


class FullDisk:
    """A file system of 256 kB where one can be mounted; elsewhere a limit on the size of files."""

    def __init__(self, walk: Walk):
        self.folder, self.before = walk.fresh('full'), ''
        mounted = os.geteuid() == 0 and subprocess.run(
            ['mount', '-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', self.folder], capture_output=True).returncode == 0
        if not mounted:
            self.before = 'prlimit --fsize=65536'
        self.mounted = mounted

    def clean(self):
        subprocess.run(f'rm -rf {self.folder}/* {self.folder}/.[!.]*', shell=True, check=False)

    def __del__(self):
        if self.mounted:
            subprocess.run(['umount', '-l', self.folder], capture_output=True, check=False)


def attempt(walk: Walk, template: str, full: FullDisk) -> Attempt:
    arguments = template.format(to=full.folder, peaks=walk.samples['peaks.h5'], run=walk.samples['run'])
    line = walk.line(arguments + ' --threads 1', walk.folder, before=full.before)

    def action():
        full.clean()
        wrong = judged(run(line, 120), codes=(FAILED, DONE))
        left = [str(path) for path in Path(full.folder).rglob('*') if 'partial' in path.name or 'tmp' in path.name]
        full.clean()
        return wrong or (f'left behind: {left}' if left else None)
    return Attempt('disks', f'no space: {template}', action, line)


def printed(walk: Walk, template: str) -> Attempt:
    line = walk.line(template.format(model=walk.samples['model.onnx']), walk.folder, after='> /dev/full')

    def action():
        outcome = run(line)
        if outcome.code == 0:
            return 'ended with 0 though nothing could be printed'
        return judged(outcome, codes=(FAILED,))
    return Attempt('disks', f'{template} > /dev/full', action, line)
