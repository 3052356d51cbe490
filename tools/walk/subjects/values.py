"""Extreme values of every option of every command, as `--help` lists them."""
import pathlib
import random
import shlex

from harness import Attempt, Walk, judged, run
from helptext import all_commands, options_of

VALUES = ['0', '-1', '-0.0', '1e999', '-inf', 'nan', '', ' ', 'abc', '99999999999999999999999', '9223372036854775807', '-5',
          '0.5', '1e-320', '2147483648', 'a=b', '=', 'x=', '/nowhere/at/all', '/', '/dev/null', 'é\x01', '-' * 3, ',', '1,',
          'auto', 'x' * 5000]
MODELS = pathlib.Path(__file__).resolve().parents[3] / 'tests/language/models'
FACILITY = pathlib.Path(__file__).resolve().parents[3] / 'examples/facility'
# A cheap call of each command, that an option is added to; what is not here is called without arguments.
CALLS = {
    'train': 'mlp --samples 600 --steps 2 --batch 64',
    'infer': 'mlp --samples 64 --batch 64',
    'sample': 'mcmc --set units=2 --set window=40 --set ahead=5 --chains 1 --warm-up 20 --draws 10 --doublings 4',
    'profile': 'mlp --runs 3',
    'graph': 'mlp',
    'predict': 'mlp --on gc200',
    'place': f'{FACILITY}/force-field.toml --on {FACILITY}/server.toml --draws 2 --placements 20',
    'run': f'{FACILITY}/force-field.toml --on {FACILITY}/server.toml --items 1 --speed 1e6 --out {{folder}}/ran',
    'advise': 'mlp --on gc200',
    'generate': 'braggnn --samples 16 --out {folder}/peaks.h5',
    'crystal': '{run} --lattice 4',
    'peaks': '{peaks} --method centroid --threshold 4000',
    'design': 'ald --out {folder}/design',
    'baseline': 'braggnn --input {peaks} --set method=centroid',
    'bench': 'mlp --mode infer --batch 1 --seconds 0.01',
    'serve': 'mlp --http 127.0.0.1:0 --for 0.1',
    'stream': 'mlp --frames 4 --to tcp://127.0.0.1:* --patience 0.1',
    'account': '{folder}',
    'demo': 'edge --points 100 --scans 1 --first-epochs 1 --epochs 1 --out {folder}/demo',
    'scale': 'mlp --ranks 1 --steps 2 --samples 600 --repeat 1',
    'md': 'lennard-jones --lattice fcc:Ar:5.4:2 --set cutoff=5 --steps 3 --out {folder}/md',
    'search': 'mlp --samples 600 --epochs 1 --batch 64 --set learning-rate=1e-3,1e-2 --trials 1 --threads 1 --out {folder}/search',
    'study': 'list',
    'workflow': 'conductivity --options',
    'complete': f'{MODELS}/llama --prompt "Once" --most 3',
    'answer': f'{MODELS}/bert --context "The crystal turns." --question "What turns?"',
    'convert': '{peaks} {folder}/out.tar --array patch',
    'show': '{peaks} --out {folder}/page.html',
    'report': '--run {run} --samples 100 --out {folder}/report',
    'validate': '{cycles}',
    'compare': '{json} {json}',
    'compare-numerics': 'mlp --with f16 --batch 4',
    'machine measure': '--out {folder}/here.toml --probes 1',
    'machine system': '--out {folder}/system.json',
    'onnx check': '{model}',
    'onnx export': 'mlp --out {folder}/model.onnx',
    'records show': 'last',
    'records import': '{json}',
}


def attempts(walk: Walk) -> list:
    draw, found = random.Random(walk.seed), []
    for command in all_commands(walk):
        for option in options_of(walk, command):
            values = VALUES if option.takes_value else ['x']
            found += [(command, option, value) for value in values]
        found += [(command, None, value) for value in VALUES]
    if walk.short:
        found = draw.sample(found, min(len(found), 40))
    return [attempt(walk, *each) for each in found]


def attempt(walk: Walk, command: str, option, value: str) -> Attempt:
    folder = walk.fresh('value')
    call = CALLS.get(command, '').format(folder=folder, peaks=walk.samples['peaks.h5'], run=walk.samples['run'],
                                         cycles=walk.samples['cycles.csv'], json=walk.samples['infer.json'],
                                         model=walk.samples['model.onnx'])
    if option is None:
        given = f'{shlex.quote(value)}'  # in place of what the command takes
        call = ''
    else:
        given = option.name + (f'={shlex.quote(value)}' if option.takes_value else '')
    line = walk.line(f'{command} {call} {given}', folder, before='prlimit --as=6442450944 --fsize=268435456')
    return Attempt('values', f'{command} {option.name if option else ""} {value[:40]!r}',
                   lambda: judged(run(line, 6), patience=walk.patience), line)
