"""Small files of every kind that the program reads, made by the program itself or written here."""
import json
import struct
import sys
from pathlib import Path

from detector import detector
from harness import Walk, run

RUN = 'train mlp --samples 600 --steps 6 --batch 64 --threads 1 --quiet --out run'
BRAGG_RUN = 'train braggnn --samples 600 --steps 6 --batch 64 --threads 1 --quiet --out bragg-run'


def make(walk: Walk) -> None:
    """Fills walk.samples: name -> file or folder."""
    folder = walk.folder / 'samples'
    folder.mkdir()
    write_arrays(folder)
    (folder / 'cycles.csv').write_text('kind,tiles,cycles,m,n,k\nmatmul,1472,1000,64,64,64\n')
    (folder / 'results.csv').write_text('workload,machine,metric,value\nbraggnn,gc200,throughput,1000\n')
    (folder / 'machine.toml').write_bytes((walk.source / 'machines/gc200.toml').read_bytes())
    steps = [
        (RUN, ['run']),
        (BRAGG_RUN, ['bragg-run']),
        ('generate braggnn --samples 600 --out peaks.h5 --quiet', ['peaks.h5']),
        ('generate image-autoencoder --samples 200 --out digits.h5 --quiet', ['digits.h5']),
        ('generate tad-ald --samples 6 --out measured.csv --quiet', ['measured.csv']),
        ('infer run/model.onnx --input x.npy --batch 4 --output y.npz --threads 1 --quiet', ['y.npz']),
        ('infer run/model.onnx --input x.npy --batch 4 --output y.safetensors --threads 1 --quiet', ['y.safetensors']),
        ('bench mlp --mode infer --batch 1 --seconds 0.01 --threads 1 --quiet --json results.json', []),
        ('infer mlp --weights run --batch 64 --samples 64 --threads 1 --quiet --json infer.json', ['infer.json']),
    ]
    for arguments, makes in steps:
        made(walk, folder, arguments, makes)
    walk.samples.update({name: folder / name for name in (
        'x.npy', 'x.npz', 'cycles.csv', 'results.csv', 'machine.toml', 'detector.onnx', 'picture.npy')})
    walk.samples['model.onnx'] = folder / 'run/model.onnx'
    make_problems(walk, folder)
    if not walk.short:
        make_generated(walk, folder)


def make_problems(walk: Walk, folder: Path) -> None:
    """What `superstep design` is asked: a case with a simulator, and the same as somebody measures it."""
    example = run(walk.line('design ald --example', folder))
    if example.code != 0:
        raise SystemExit(f'walk: {example.errors.strip()}')  # such as a program without those beside it
    case = json.loads(example.output)
    measured = {name: value for name, value in case.items() if name not in ('process', 'noise', 'curve', 'cycles')}
    measured['target'] = {'curve': [2.4] + [3.1] * (case['cycles'] - 1)}
    for name, problem in (('mine.json', case), ('etching.json', measured)):
        walk.samples[name] = folder / name
        walk.samples[name].write_text(json.dumps(problem))


def made(walk: Walk, folder: Path, arguments: str, makes: list) -> bool:
    outcome = run(walk.line(arguments, folder), most_seconds=120)
    if outcome.code != 0 and makes:
        raise RuntimeError(f'cannot make a sample: superstep {arguments}: {outcome.errors}')
    walk.samples.update({name: folder / name for name in makes})
    return outcome.code == 0


def make_generated(walk: Walk, folder: Path) -> None:
    """The file or folder of every generator, by the generator's name."""
    listing = run(walk.line('list generators', folder)).output.splitlines()[2:]
    for name in [line.split()[0] for line in listing if line.strip()]:
        out = folder / f'{name}.data'
        outcome = run(walk.line(f'generate {name} --samples 4 --out {out} --quiet', folder), most_seconds=60)
        if outcome.code == 0 and out.exists():
            walk.samples[f'generated {name}'] = out
        else:
            print(f'note: no sample of {name}: {outcome.errors.strip()}', file=sys.stderr)


def npy(values: list, *shape: int) -> bytes:
    """f32 in version 1.0 of the format."""
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header += ' ' * (63 - (10 + len(header)) % 64) + '\n'
    return b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode() + struct.pack(f'<{len(values)}f', *values)


def write_arrays(folder: Path) -> None:
    import zipfile
    (folder / 'detector.onnx').write_bytes(detector())
    (folder / 'picture.npy').write_bytes(npy([(7 * i) % 23 - 11 for i in range(16 * 16)], 1, 1, 16, 16))
    rows = [((7 * i) % 23) / 23 for i in range(64 * 16)]
    (folder / 'x.npy').write_bytes(npy(rows, 64, 16))
    with zipfile.ZipFile(folder / 'x.npz', 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('x.npy', npy(rows, 64, 16))
        archive.writestr('y.npy', npy(rows[:64], 64, 1))
