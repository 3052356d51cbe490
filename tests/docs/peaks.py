"""The page of peaks (docs/peaks.md): its commands work on frames that are made here, and its columns are the tables'.

    python3 tests/docs/peaks.py PROGRAM
"""

import csv
import json
import pathlib
import re
import subprocess
import sys
import tempfile

PAGE = pathlib.Path(__file__).resolve().parents[2] / 'docs/peaks.md'
PREPARATIONS = (
    'generate braggnn --set mode=frames --set frame_height=160 --set frame_width=170 --set peaks_per_frame=2 --set rocking=1 '
    '--set threshold=0 --set dead=0.001 --samples 12 --out scan.h5',
    'generate braggnn --set mode=frames --set frame_height=160 --set frame_width=170 --set peaks_per_frame=0 --set threshold=0 '
    '--samples 3 --out dark.h5',
    'train braggnn --samples 400 --epochs 1 --out run',
)
# What the page generates and trains takes minutes: those files are the small ones from above.
MADE_SMALL = ('superstep generate', 'superstep train')


def run(program: str, folder: str, line: str) -> str:
    done = subprocess.run(f'{program} {line}', shell=True, cwd=folder, text=True, timeout=300, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env={'SUPERSTEP_HOME': f'{folder}/home', 'PATH': '/usr/bin:/bin'})
    if done.returncode != 0:
        sys.exit(f'superstep {line}\nended with {done.returncode}:\n{done.stdout}')
    return done.stdout


def commands(page: str) -> list:
    lines = [line[4:].split('  ')[0] for line in page.splitlines() if line.startswith('    superstep ')]
    return [line for line in lines if not line.startswith(MADE_SMALL)]


def columns(page: str, title: str) -> list:
    """The first cells of the table behind a heading."""
    part = page.split(f'## {title}\n')[1].split('\n## ')[0]
    return [cell for row in re.findall(r'^\| (`[^|]*`) \|', part, re.M) for cell in re.findall('`([a-z_]+)`', row)]


def main() -> None:
    program = str(pathlib.Path(sys.argv[1]).resolve())
    page = PAGE.read_text()
    with tempfile.TemporaryDirectory() as folder:
        for line in PREPARATIONS:
            run(program, folder, line + ' --quiet')
        tried = commands(page)
        for line in tried:
            run(program, folder, line.removeprefix('superstep '))
        run(program, folder, 'peaks scan.h5 --method centroid --omega-step 0.5 --out all.json --quiet')
        run(program, folder, 'peaks scan.h5 --method centroid --omega-step 0.5 --out all.csv --quiet')
        tables = json.loads(pathlib.Path(folder, 'all.json').read_text())
        header = next(csv.reader(pathlib.Path(folder, 'all.csv').open()))
    shown = {name: columns(page, title) for name, title in (('reflections', 'The table of reflections'),
                                                           ('spots', 'The table of spots'))}
    for name, said in shown.items():
        if sorted(said) != sorted(tables[name]):
            sys.exit(f'{name}: the page has {sorted(said)}, the file {sorted(tables[name])}')
    if [cell.split('(')[0] for cell in header] != shown['reflections']:
        sys.exit(f'the page has {shown["reflections"]}, the text {header}')
    if len(tried) < 6:
        sys.exit(f'only {len(tried)} commands are on the page')
    print(f'{len(tried)} commands and {len(header)} columns are as the page has them')


if __name__ == '__main__':
    main()
