"""Every command that the pages and the help print: it runs, or is at work until it is stopped; none is a wrong call."""
import re
import shutil
import sys
import threading
from pathlib import Path

from harness import DONE, FAILED, STOPPED, Attempt, Walk, judged, run
from helptext import all_commands, commands_of, examples_of

# Words that stand for what a reader has: not tried.
PLACEHOLDER = re.compile(r'(?<![\w-])(?!SUPERSTEP)[A-Z]{3,}\b|\.\.\.|[<>\[\]{}]')
# What a page speaks of beside the model at hand, and what a run of another name kept: docs and cli test these.
BESIDE = re.compile(r'robust\.onnx|--config ')
RANKS = 'OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1'

# What speaks of files that a script on one of these pages makes, or a library: docs.your_data, docs.peaks and cli run them.
WITH_FILES_OF_ITS_OWN = {'your-data.md', 'convert.md', 'convert --help', 'custom-operators.md', 'losses.md', 'watch.md', 'watch --help', 'peaks.md', 'peaks --help'}

# Commands whose refusal is what a page shows.
SHOWN_REFUSED = set()


def attempts(walk: Walk) -> list:
    """Commands of a page may use what earlier ones of it wrote: they share a folder and keep their order."""
    found, seen = [], set()
    for where, commands in everything_printed(walk).items():
        page = Page(walk, where)
        for command in commands:
            if command in seen or PLACEHOLDER.search(command) or BESIDE.search(command):
                continue
            seen.add(command)
            if missing := missing_tools(command):
                print(f'note: not tried, for there is no {", ".join(missing)}: superstep {command}', file=sys.stderr)
                continue
            if walk.only not in f'{where}: superstep {command}':
                continue  # not left to others: the next of its page waits for the one before
            found.append(attempt(walk, page, command, where))
            if walk.short:
                break  # a later command of the page may need what this one writes
    return found[::max(1, len(found) // 12)] if walk.short else found


def everything_printed(walk: Walk) -> dict:
    """By where it is printed. How-to pages speak of what their reader is about to add, so those are not tried."""
    printed = {}
    for page in [walk.source / 'README.md', *sorted((walk.source / 'docs').glob('*.md'))]:
        if not page.name.startswith('add-a') and page.name not in WITH_FILES_OF_ITS_OWN:
            printed[page.name] = commands_on(page)
    for command in [''] + all_commands(walk) + commands_of(walk):
        if f'{command} --help' in WITH_FILES_OF_ITS_OWN:
            continue
        printed[f'{command} --help'.strip()] = [without_program(line) for line in examples_of(walk, command)]
    return printed


def missing_tools(command: str) -> list:
    """Programs of the system that a command pipes into, `... | man -l -`, and that are not installed here."""
    tools = [part.split()[0] for part in command.split('|')[1:] if part.split()]
    return [tool for tool in tools if not tool.startswith(('superstep', 'build/')) and shutil.which(tool) is None]


class Page:
    """The folder of a page's commands, made for the first of them, and the order they are run in."""

    def __init__(self, walk: Walk, where: str):
        self.walk, self.where, self.folder, self.last = walk, where, None, None

    def directory(self) -> Path:
        if self.folder is None:
            self.folder = prepared(self.walk, self.where)
        return self.folder

    def next_turn(self):
        before, self.last = self.last, threading.Event()
        return before, self.last


def commands_on(page: Path) -> list:
    """Lines of code, which are indented by four, that begin with the program's name."""
    found = []
    for line in page.read_text().splitlines():
        match = re.match(r'    +(?:\$ )?((?:build/)?superstep .*|mpirun .*superstep .*)', line)
        if match and not match[1].startswith('superstep: '):
            found.append(without_program(re.split(r'\s{2,}|\s#\s', match[1])[0]))
        elif found and re.match(r'    +superstep: error: ', line):
            SHOWN_REFUSED.add(found[-1])
    return found


def without_program(line: str) -> str:
    """ "train mlp", or with ranks "mpirun -n 2 @ train mlp"."""
    line = re.sub(r'\s+', ' ', line.replace('build/superstep', 'superstep')).strip()
    return line[len('superstep '):] if line.startswith('superstep ') else line.replace(' superstep ', ' @ ', 1)


def reduced(command: str) -> str:
    """The same call on little data."""
    command = re.sub(r'--samples (\d{4,})', '--samples 1200', command)
    command = re.sub(r'--epochs \d+', '--epochs 1', command)
    command = re.sub(r'--calibrate \d{3,}', '--calibrate 128', command)
    command = re.sub(r'--shape \S+', '--shape x=-1,16', command)  # of the model at hand
    command = re.sub(r"--(train|freeze) '\S+' ?", '', command)  # names that it does not have
    command = command.replace(' 12 13', ' 1 2').replace('pairs.h5', 'pairs.npz')
    if re.search(r'(^|@ )train ', command):
        command = re.sub(r'--out \S+', '--out a-new-run/', command)  # run/ is there already, for what reads it
        command = re.sub(r'--batch \d{3,}', '--batch 128', command)
    if command.startswith('sample '):
        few = '--chains 2 --warm-up 20 --draws 10'
        few += ' --leapfrog 10' if 'hmc' in command else ''
        few += ' --doublings 4' if 'nuts' in command or '--method' not in command else ''
        few += ' --windows 3' if '--windows' in command else ''
        command = re.sub(r'--(warm-up|draws|leapfrog|windows|chains|threads) \d+ ?', '', command).strip() + ' ' + few
    command = re.sub(r'--tokens 1,306,4658', '--tokens 1,306,46', command)  # the model at hand knows few
    command = re.sub(r'--sizes \S+', '--sizes 4K..64K', command)
    if command.startswith('machine measure'):
        command += ' --probes 1'
    if re.search(r'^predict .*--on \S*box\.toml', command):
        command += ' --extrapolate'  # by the few kernels of that
    if re.match(r'(mpirun .*)?(@ )?bench ', command) and '--seconds' not in command and not re.search('all-reduce|gradients', command):
        command += ' --seconds 0.02'
    return command


def attempt(walk: Walk, page: Page, command: str, where: str) -> Attempt:
    before, mine = page.next_turn()

    def action():
        if before and not walk.short:
            before.wait()
        try:
            line = line_of(walk, command, page.directory())
            shutil.rmtree(page.directory() / 'a-new-run', ignore_errors=True)
            outcome = run(line, 4 if walk.short else 20)
            return judged(outcome, codes_of(command), patience=max(5, walk.patience), stopped=codes_when_stopped(command))
        finally:
            mine.set()
    return Attempt('commands', f'{where}: superstep {command}', action, f'superstep {reduced(command)}')


def codes_of(command: str) -> tuple:
    """The suite of ONNX's backends has cases with a defect of their own (docs/onnx.md): it says so and ends with 1."""
    if command in SHOWN_REFUSED or re.search(r'bad[-\w]*\.(csv|xyz)', command):
        return (FAILED,)
    # A force field that learnt next to nothing may know no crystal at rest; a server has its port taken by another
    # attempt, and its clients ask where nobody may be.
    # Records by number are the reader's own.
    if command.startswith(('onnx test', 'crystal ', 'serve ', 'stream ', 'bench serve ')) or re.match(
            r'(compare|records show) \d+', command):
        return (DONE, FAILED)
    # A device and its plug-in, which the reader has.
    if command.startswith('compile ') or re.search(r'--on (cuda|rocm|oneapi|tpu|tt|metal|pjrt)', command):
        return (DONE, FAILED)
    # The translator is built where Clang's library is installed.
    return (DONE, FAILED) if command.startswith('openmp ') and shutil.which('superstep-cc') is None else (DONE,)


def codes_when_stopped(command: str) -> tuple:
    """The launcher of ranks has its own word for a job that was stopped."""
    return (STOPPED, DONE, FAILED) if 'mpirun' in command or '--ranks' in command else (STOPPED, DONE)


def line_of(walk: Walk, command: str, folder: Path) -> str:
    command = reduced(command)
    own_run = re.match(r'infer (\S+) ', command)
    if own_run and (folder / f'run-{own_run[1]}').exists():
        command = re.sub(r'--weights \S+', f'--weights run-{own_run[1]}', command)
    own_training = re.match(r'train (\S+) ', command)
    if own_training and (folder / f'run-{own_training[1]}').exists():
        command = re.sub(r'--resume run\b', f'--resume run-{own_training[1]}', command)
    if command.startswith('crystal '):
        command = re.sub(r'crystal \S+', 'crystal run-deepmd', command)
        command = re.sub(r'--element \S+ --lattice \S+', '', command)  # it has learnt copper alone
    if command.startswith('mpirun '):
        head, arguments = command.split(' @ ', 1)
        return walk.line(arguments, folder, before=head, environment=RANKS)
    return walk.line(command, folder, environment=RANKS)


# What the pages of a field have beside that: small runs, run-WORKLOAD, and the files that their commands name.
PREPARATIONS = {
    'laboratory.md': (
        'bench gemm --config gemm_k4 --mode infer --seconds 0.05 --no-peak --json primitives.json',
    ),
    'molecular-dynamics.md': (
        'generate schnet --samples 24 --set most=4 --out clusters.xyz',
        'train schnet --data clusters.xyz --set width=8 --set blocks=1 --steps 2 --out water-model',
    ),
    'phase-retrieval.md': (
        'generate autophasenn --set size=32 --samples 3 --out crystals.h5',
        'train autophasenn --set size=32 --set width=2 --samples 8 --batch 2 --steps 1 --out run-autophasenn',
        'infer autophasenn --weights run-autophasenn --input crystals.h5 --output found.h5',
        'infer autophasenn --weights run-autophasenn --input crystals.h5 --refine 2 --output refined.h5',
        'infer autophasenn --weights run-autophasenn --input crystals.h5 --output control.h5',
        'generate ptychonn-64 --set window=32 --samples 36 --out scan.h5',
        'generate ptychonn-64 --set window=32 --samples 36 --out sparse.h5',
        'generate ptychonn-128 --set window=32 --samples 100 --out scan0.h5',
        'generate ptychonn-128 --set window=32 --set first=1 --samples 100 --out scan1.h5',
        'train ptychonn-128 --set window=32 --data scan0.h5 --batch 8 --steps 1 --out run0',
        'train ptychonn-64 --set window=32 --samples 36 --batch 8 --steps 1 --out run-ptychonn-64',
        'infer ptychonn-64 --weights run-ptychonn-64 --input scan.h5 --output windows.h5',
    ),
    'physics.md': (
        'generate ptychonn-64 --set window=32 --samples 36 --out scan.h5',
    ),
    'conductivity.md': (
        'train conductivity --set side=32 --set width=4 --samples 400 --batch 20 --steps 2 --out run-conductivity',
    ),
    'forward-gradients.md': (
        'generate wallmodel --samples 400 --out points.csv',
        'generate wallmodel --samples 400 --out points.h5',
        'train wallmodel --samples 400 --steps 1 --out run-wallmodel',
    ),
    'gravity-waves.md': (
        'generate gravity-wave-drag --samples 60 --out air.h5',
        'train gravity-wave-drag --set width=8 --samples 60 --batch 16 --steps 1 --out run-gravity-wave-drag',
    ),
    'polymers.md': (
        'generate polymer-gcn --samples 200 --out polymers.csv',
        'train polymer-gcn --samples 200 --steps 1 --out run-polymer-gcn',
    ),
    'molecules.md': (
        'generate gin --samples 200 --out molecules.csv',
        'train gin --samples 200 --set width=8 --steps 1 --out run-gin',
    ),
    'water-clusters.md': (
        'generate schnet --set most=4 --samples 30 --out clusters.xyz',
        'train schnet --set most=4 --samples 30 --batch 1 --steps 1 --out run-schnet',
    ),
    'force-fields.md': (
        'generate deepmd --set cells=2 --samples 40 --out copper.xyz',
        'train deepmd --set embedding=4,8 --set axis=4 --set fitting=8,8 --samples 40 --epochs 3 --out run-deepmd',
        'md spc-fw --water 32 --density 1 --relax 0.02 --ensemble nvt --temperature 310 --steps 80 --frame-every 2 --out water/1',
    ),
    'crystal --help': (
        'train deepmd --set embedding=4,8 --set axis=4 --set fitting=8,8 --samples 40 --epochs 3 --out run-deepmd',
    ),
    'reaction-yields.md': (
        'generate yieldgnn --samples 200 --out yields.csv',
        'train yieldgnn --samples 100 --batch 2 --steps 1 --out run-yieldgnn',
    ),
}
WATER = '3\nwater\nO 0 0 0\nH 0.99 0 0\nH -0.39 0.93 0\n'
BAD_WATER = '3\nwater\nO 0 0 0\nH 1 0 0\nH 1 0 0\n'
COPPER = ('4\nLattice="3.6 0 0 0 3.6 0 0 0 3.6" Properties=species:S:1:pos:R:3\n'
          'Cu 0 0 0\nCu 0 1.8 1.8\nCu 1.8 0 1.8\nCu 1.8 1.8 0.1\n')
BAD_COPPER = '2\nplain\nCu 0 0 0\nCu 0 0 0\n'
REACTIONS = ('id,reactant_smiles,solvent_smiles,base_smiles\n'
             'a,Clc1ccc2ncccc2c1.OB(O)c1ccccc1.c1ccc(cc1)P(c1ccccc1)c1ccccc1,CO,[OH-].[Na+]\n')
BAD_REACTIONS = REACTIONS + 'b,CBr.OBQ,CO,\n'
MOLECULES = 'smiles\nCC(=O)Nc1ccc(O)cc1\nc1ccncc1\n'
BAD_MOLECULES = MOLECULES.replace('c1ccncc1', 'CC(=Q)O')
BAD_POLYMERS = 'smiles\n*CC*\n*CC(=Q)*\n'
POLYMERS = 'smiles\n*CC*\n*CC(*)c1ccccc1\n*CC(*)Cl\n'


def prepared(walk: Walk, where: str) -> Path:
    """A folder with the files that examples speak of."""
    folder = walk.fresh('command')
    for command in PREPARATIONS.get(where, ()):
        outcome = run(walk.line(command + ' --quiet', folder), most_seconds=120)
        if outcome.code != DONE:
            raise RuntimeError(f'cannot prepare {where}: superstep {command}: {outcome.errors}')
    if (folder / 'water').exists():  # the page's trajectories, joined
        shutil.copy(folder / 'water/1/trajectory.xyz', folder / 'water.xyz')
    (folder / 'my.csv').write_text(POLYMERS)
    (folder / 'bad.csv').write_text(BAD_POLYMERS)
    (folder / 'my-molecules.csv').write_text(MOLECULES)
    (folder / 'bad-molecules.csv').write_text(BAD_MOLECULES)
    (folder / 'my.xyz').write_text(WATER)
    (folder / 'bad.xyz').write_text(BAD_WATER)
    (folder / 'my-copper.xyz').write_text(COPPER)
    (folder / 'bad-copper.xyz').write_text(BAD_COPPER)
    (folder / 'my-reactions.csv').write_text(REACTIONS)
    (folder / 'bad-reactions.csv').write_text(BAD_REACTIONS)
    if where.startswith('validate'):  # a table as --tables takes them
        (folder / 'measurements').mkdir()
        shutil.copy(walk.source / 'data/published/results.csv', folder / 'measurements')
    if where.startswith('openmp'):
        for source in (walk.source / 'examples/openmp').glob('*.c'):
            shutil.copy(source, folder)
    if where == 'language.md' or where.startswith(('complete', 'answer')):
        models = walk.source / 'tests/language/models'
        shutil.copytree(models, folder, dirs_exist_ok=True)
        shutil.copy(models / 'gguf/model.gguf', folder)
        (folder / 'question.txt').write_text('Once upon a time')
        (folder / 'page.txt').write_text('The beam leaves the ring and meets the crystal. The crystal turns.')
        shutil.copy(models / 'bert/model.safetensors', folder)
        shutil.copy(models / 'bert/cased/vocab.txt', folder)
    if where == 'facility.md' or where.startswith(('place', 'run')):
        shutil.copytree(walk.source / 'examples/facility', folder / 'examples/facility')
        for name in ('hedm.toml', 'beamline.toml'):
            shutil.copy(walk.source / 'examples/facility' / name, folder)
    shutil.copytree(walk.samples['bragg-run'], folder / 'run')
    shutil.copytree(walk.samples['bragg-run'], folder / 'run/braggnn')
    shutil.copy(walk.samples['model.onnx'], folder / 'model.onnx')
    for name, sample in (('peaks.h5', 'peaks.h5'), ('mine.onnx', 'model.onnx'), ('digits.h5', 'digits.h5'), ('mine.json', 'mine.json'),
                         ('etching.json', 'etching.json'), ('measured.csv', 'measured.csv'),
                         ('x.npy', 'x.npy'), ('pairs.npz', 'x.npz'), ('results.json', 'infer.json'),
                         ('old.json', 'infer.json'), ('new.json', 'infer.json'), ('ops.csv', 'cycles.csv'),
                         ('results.csv', 'results.csv'), ('mybox.toml', 'machine.toml'),
                         ('detector.onnx', 'detector.onnx'), ('picture.npy', 'picture.npy')):
        shutil.copy(walk.samples[sample], folder / name)
    return folder
