"""Every command that the pages and the help print: it runs, or is at work until it is stopped; none is a wrong call."""
import re
import shutil
from pathlib import Path

from harness import DONE, Attempt, Walk, judged, run
from helptext import all_commands, commands_of, examples_of

# Words that stand for what a reader has: not tried.
PLACEHOLDER = re.compile(r'(?<![\w-])(?!SUPERSTEP)[A-Z]{3,}\b|\.\.\.|[<>\[\]{}]')
RANKS = 'OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1'


def attempts(walk: Walk) -> list:
    found = {}
    for page in [walk.source / 'README.md', *sorted((walk.source / 'docs').glob('*.md'))]:
        for command in commands_on(page):
            found.setdefault(command, page.name)
    for command in [''] + all_commands(walk) + commands_of(walk):
        for example in examples_of(walk, command):
            found.setdefault(without_program(example), f'{command} --help'.strip())
    chosen = [(command, where) for command, where in found.items() if not PLACEHOLDER.search(command)]
    if walk.short:
        chosen = chosen[::max(1, len(chosen) // 12)]
    return [attempt(walk, command, where) for command, where in chosen]


def commands_on(page: Path) -> list:
    """Lines of code blocks (indented, or fenced) that begin with the program's name."""
    found = []
    for line in page.read_text().splitlines():
        line = line.strip()
        line = re.sub(r'^\$ ', '', line)
        if not re.match(r'(build/)?superstep |mpirun .*superstep ', line):
            continue
        line = re.split(r'\s{2,}|\s#\s', line)[0]
        found.append(without_program(line))
    return found


def without_program(line: str) -> str:
    """ "train mlp", or with ranks "mpirun -n 2 @ train mlp"."""
    line = re.sub(r'\s+', ' ', line.replace('build/superstep', 'superstep')).strip()
    return line[len('superstep '):] if line.startswith('superstep ') else line.replace(' superstep ', ' @ ', 1)


def reduced(command: str) -> str:
    """The same call on little data."""
    command = re.sub(r'--samples (\d{4,})', '--samples 1200', command)
    command = re.sub(r'--epochs \d+', '--epochs 1', command)
    command = re.sub(r'--sizes \S+', '--sizes 4K..64K', command)
    if re.match(r'(mpirun .*)?(@ )?bench ', command) and '--seconds' not in command and 'all-reduce' not in command:
        command += ' --seconds 0.02'
    return command


def attempt(walk: Walk, command: str, where: str) -> Attempt:
    def action():
        folder = prepared(walk)
        wrong = judged(run(line_of(walk, command, folder), 4 if walk.short else 20), codes=(DONE,), patience=5)
        shutil.rmtree(folder, ignore_errors=True)
        return wrong
    return Attempt('commands', f'{where}: superstep {command}', action, f'superstep {reduced(command)}')


def line_of(walk: Walk, command: str, folder: Path) -> str:
    command = reduced(command)
    if command.startswith('mpirun '):
        head, arguments = command.split(' @ ', 1)
        return walk.line(arguments, folder, before=head, environment=RANKS)
    return walk.line(command, folder, environment=RANKS)


def prepared(walk: Walk) -> Path:
    """A folder with the files that examples speak of."""
    folder = walk.fresh('command')
    shutil.copytree(walk.samples['run'], folder / 'run')
    shutil.copy(walk.samples['model.onnx'], folder / 'model.onnx')
    for name, sample in (('peaks.h5', 'peaks.h5'), ('x.npy', 'x.npy'), ('pairs.npz', 'x.npz'), ('results.json', 'infer.json'),
                         ('old.json', 'infer.json'), ('new.json', 'infer.json'), ('ops.csv', 'cycles.csv'),
                         ('results.csv', 'results.csv'), ('mybox.toml', 'machine.toml')):
        shutil.copy(walk.samples[sample], folder / name)
    return folder
