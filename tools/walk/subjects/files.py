"""What is no file, or has no end, for every option that takes one: pipes, devices, sockets, folders, sparse files, bombs."""
import random
import shlex
import socket
import struct
import zipfile
import zlib
from pathlib import Path

from harness import MEBI, Attempt, Walk, judged, patient, run
from helptext import all_commands, options_of
from subjects.values import CALLS

MEMORY = 1500 * MEBI  # of anything that is refused
# Options that read, by the endings that their readers know.
ENDINGS = {'--input': ('.npy', '.npz', '.h5', '.csv', '.xyz', '.tif', '.idx', '.gz'), '--data': ('.h5', '.csv', '.xyz', '.npz', '.gz'),
           '--weights': ('.safetensors', '.gguf', '.pt', '.onnx'), '--structure': ('.xyz',), '--positions': ('.csv',), '--output': ('.npy', '.h5', '.csv'),
           '--out': ('.h5', '.csv', '.html'), '--regression': ('.h5',)}
# What a command takes in a place of its own, by the call without it.
PLACES = {'show': '{} --out page.html', 'serve': '{} --http 127.0.0.1:0 --for 0.1', 'graph': '{}', 'onnx check': '{}', 'infer': '{} --input x.npy',
          'compare': '{0} {0}', 'records import': '{}', 'account': '{}', 'validate': '{}', 'predict': '{} --on gc200', 'stream': '{} --to tcp://127.0.0.1:* --patience 0.1',
          'complete': '{} --prompt Once --most 3', 'crystal': '{} --lattice 4', 'answer': '{} --context a --question b', 'machine check': '{}', 'peaks': '{} --method centroid', 'place': '{0} --on {0}', 'run': '{0} --on {0} --out ran'}
PLACE_ENDINGS = ('.onnx', '.h5', '.npy', '.npz', '.csv', '.safetensors', '.gguf', '.json', '.toml', '.tif')
KINDS = ('fifo', 'zero', 'socket', 'folder', 'sparse')


def make(kind: str, path: Path) -> None:
    if kind == 'fifo':
        import os
        os.mkfifo(path)
    elif kind == 'zero':
        path.symlink_to('/dev/zero')
    elif kind == 'socket':
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(path))
    elif kind == 'folder':
        path.mkdir()
    elif kind == 'sparse':
        with path.open('wb') as file:
            file.truncate(40 << 30)


def bombs(folder: Path) -> dict:
    """Files of some MB that say, or are, some GB."""
    zeros = zlib.compressobj(9, zlib.DEFLATED, 31)
    (folder / 'images.gz').write_bytes(zeros.compress(struct.pack('>HBB3I', 0, 8, 3, 4000, 1000, 1000) + bytes(64 * MEBI)) + zeros.flush())
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1048576, 1024), }"
    header += ' ' * (63 - (10 + len(header)) % 64) + '\n'
    with zipfile.ZipFile(folder / 'bomb.npz', 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open('x.npy', 'w', force_zip64=True) as entry:
        entry.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.encode())
        piece = bytes(64 * MEBI)
        for _ in range(64):
            entry.write(piece)
    (folder / 'huge.npy').write_bytes(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header.replace('1048576', '9999999').encode() + bytes(1000))
    return {name: folder / name for name in ('images.gz', 'bomb.npz', 'huge.npy')}


def attempts(walk: Walk) -> list:
    found = []
    for command in all_commands(walk):
        for option in options_of(walk, command):
            if option.kind.startswith(('FILE', 'DIR', 'PATH', 'MODEL', 'FOLDER')):
                endings = ENDINGS.get(option.name, ('',))
                found += [(command, option.name, kind, ending) for kind in KINDS for ending in endings]
        if command in PLACES:
            found += [(command, '', kind, ending) for kind in KINDS for ending in PLACE_ENDINGS]
    if walk.short:
        found = random.Random(walk.seed).sample(found, min(len(found), 30))
    return [attempt(walk, *each) for each in found] + ([] if walk.short else of_bombs(walk))


def call_of(walk: Walk, command: str, folder: Path) -> str:
    return CALLS.get(command, '').format(folder=folder, peaks=walk.samples['peaks.h5'], run=walk.samples['run'], cycles=walk.samples['cycles.csv'],
                                         json=walk.samples['infer.json'], model=walk.samples['model.onnx'])


def judge(line: str, folder: Path):
    """Done, or refused, by itself: what waits for ever was not refused before work began."""
    outcome = run(line, patient(20))
    if outcome.asked_to_stop:
        return f'was still at it after {outcome.seconds - outcome.seconds_to_stop:.0f} s'
    return judged(outcome, memory=MEMORY)


def attempt(walk: Walk, command: str, option: str, kind: str, ending: str) -> Attempt:
    folder = walk.fresh('file')
    name = f'{kind}{ending}'
    if option:
        words = f'{call_of(walk, command, folder)} {option}={name}'
    else:
        words = PLACES[command].format(name)
    line = walk.line(f'{command} {words}', folder, before='prlimit --as=8589934592 --fsize=268435456')

    def action():
        make(kind, folder / name)
        (folder / 'x.npy').write_bytes(walk.samples['x.npy'].read_bytes())
        return judge(line, folder)
    return Attempt('files', f'{command} {option} {name}', action, line)


def of_bombs(walk: Walk) -> list:
    files = bombs(walk.fresh('bombs'))
    found = []
    for name, path in files.items():
        for words in (f'show {shlex.quote(str(path))} --out page.html', f'infer {walk.samples["model.onnx"]} --input {path} --output y.npy',
                      f'train mlp --data {path} --steps 2 --out run'):
            folder = walk.fresh('bomb')
            line = walk.line(words, folder, before='prlimit --fsize=268435456')
            found.append(Attempt('files', f'{words.split()[0]} {name}', lambda line=line, folder=folder: judge(line, folder), line))
    return found
