"""What is asked of a server (docs/serve-goals.md), measured: the engine alone and the server in the same run.

python3 bench/edge/goals.py --program build/superstep floor http frames    parts by name; --list names them
"""

import argparse
import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / 'tests' / 'edge'))
from program import Served, free_port  # noqa: E402


def processor():
    text = Path('/proc/cpuinfo').read_text()
    return re.search(r'^model name\s*: (.*)$', text, re.M)[1], len(os.sched_getaffinity(0))


class Bench:
    def __init__(self, program, folder, options):
        self.program, self.folder, self.seconds, self.workers = program, folder, options.seconds, options.workers

    def call(self, *words, check=True):
        done = subprocess.run([self.program, *map(str, words)], cwd=self.folder, capture_output=True, text=True)
        if check and done.returncode:
            raise RuntimeError(f'{words}: {done.stdout}{done.stderr}')
        return done

    def metrics(self, *words, check=True, nth=0):
        """Of a command with --json."""
        file = self.folder / 'result.json'
        self.call(*words, '--json', file, check=check)
        results = json.loads(file.read_text())
        results = results.get('results', [results])
        return {name: of['value'] for name, of in results[nth]['metrics'].items()}

    def loads(self, url, *words, seconds=None):
        """The metrics of each load of bench serve."""
        file = self.folder / 'load.json'
        self.call('bench', 'serve', url, *words, '--seconds', seconds or self.seconds, '--format', 'json', '--out', file, '--no-record')
        results = json.loads(file.read_text())
        return [{name: of['value'] for name, of in one['metrics'].items()} for one in results.get('results', [results])]

    def floor(self, model, batch, threads=1, options=()):
        """Seconds of a call of the engine alone, now."""
        file = self.folder / 'floor.json'
        words = [word for option in options for word in ('--set', option)]
        self.call('bench', model, '--mode', 'infer', '--batch', batch, '--no-peak', '--no-record', '--seconds', 2, '--threads', threads,
                  '--format', 'json', '--out', file, *words)
        result = json.loads(file.read_text())
        metrics = result.get('results', [result])[0]['metrics']
        return batch / metrics['throughput']['value']

    def serve(self, *words):
        return Served(self.program, *words, folder=self.folder)

    def wide(self, served):
        """Until plans of every number of rows are there, and nothing is computed: what follows a start is not what is measured."""
        before = None
        for _ in range(600):
            now = served.process.pid, Path(f'/proc/{served.process.pid}/stat').read_text().split()[13]
            if now == before:
                return
            before = now
            time.sleep(0.5)


def us(seconds):
    return f'{seconds * 1e6:,.0f} us' if seconds < 1e-2 else f'{seconds * 1e3:,.1f} ms'


def latencies(load):
    return ', '.join(f'{name} {us(load["latency_" + name])}' for name in ('p50', 'p99', 'p999', 'max') if 'latency_' + name in load)


def measure_floor(b):
    for model, batch, options in (('braggnn', 1, ()), ('braggnn', 64, ()), ('ptychonn-64', 8, ()), ('ptychonn-128', 8, ())):
        seconds = b.floor(model, batch, options=options)
        yield f'{model}, {batch} a call, a thread', '', f'{us(seconds)}, {batch / seconds:,.0f}/s'


def measure_http(b):
    floor = b.floor('braggnn', 1)
    with b.serve('braggnn', '--workers', 1, '--quiet') as served:
        b.wide(served)
        load = b.loads(served.url)[0]
    yield ('a patch by HTTP, one kept connection', f'p50 {us(floor + 90e-6)}, p99 {us(floor + 300e-6)}',
           f'{latencies(load)}; floor {us(floor)}')


def measure_grpc(b):
    floor, port = b.floor('braggnn', 1), free_port()
    with b.serve('braggnn', '--workers', 1, '--grpc', f'127.0.0.1:{port}', '--quiet') as served:
        b.wide(served)
        load = b.loads(f'grpc://127.0.0.1:{port}/braggnn')[0]
    yield 'the same over gRPC', f'p50 {us(floor + 250e-6)}', f'{latencies(load)}; floor {us(floor)}'


def hops(b):
    """What libzmq takes of a frame's way to a server and of its answer's way back."""
    done = subprocess.run([Path(b.program).parent / 'bench/edge/bench_hops', str(int(1000 * b.seconds))], capture_output=True, text=True)
    return '; '.join(' '.join(line.split()) for line in done.stdout.splitlines())


def measure_frames(b):
    floor = b.floor('braggnn', 1)
    yield 'ZeroMQ alone, nothing computed', '', hops(b)
    for arrive in ('constant', 'poisson'):
        pull, publish = free_port(), free_port()
        with b.serve('braggnn', '--workers', 1, '--pull', f'tcp://127.0.0.1:{pull}', '--publish', f'tcp://127.0.0.1:{publish}',
                     '--quiet') as served:
            b.wide(served)
            sent = b.metrics('stream', 'braggnn', '--to', f'tcp://127.0.0.1:{pull}', '--answers', f'tcp://127.0.0.1:{publish}',
                             '--format', 'raw', '--rate', 1000, '--frames', int(1000 * b.seconds), '--arrive', arrive)
        yield (f'a patch over ZeroMQ, published, 1,000/s {arrive}', f'p50 {us(floor + 80e-6)}, p99 {us(floor + 250e-6)}',
               f'{latencies(sent)}; floor {us(floor)}; {sent["unanswered"]:.0f} unanswered, detector late p99 {us(sent["lateness_p99"])}')


def measure_poisson(b):
    floor = b.floor('braggnn', 1)
    with b.serve('braggnn', '--workers', 1, '--quiet') as served:
        b.wide(served)
        for rate in (1000, 3000):
            load = b.loads(served.url, '--request-rate', rate)[0]
            yield f'Poisson arrivals, {rate:,}/s', f'p99 {us(4 * floor + 300e-6)}', f'{latencies(load)}; floor {us(floor)}'


def measure_rows(b):
    with b.serve('braggnn', '--workers', 1, '--quiet') as served:
        b.wide(served)
        floor = b.floor('braggnn', 64)
        load = b.loads(served.url, '--rows', 64, '--concurrency', 2)[0]
        again = b.floor('braggnn', 64)
    floor = min(floor, again)
    yield ('requests of 64 patches, one worker', '85 %',
           f'{load["rows_rate"]:,.0f} patches/s, {100 * load["rows_rate"] * floor / 64:.0f} % of the engine\'s {64 / floor:,.0f}')


def write_npy(file, code, shape, values):
    head = f"{{'descr': '{code}', 'fortran_order': False, 'shape': {shape}, }}"
    head += ' ' * (63 - (len(head) + 10) % 64) + '\n'
    file.write_bytes(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(head)) + head.encode() + values)


def measure_receive(b):
    """Frames that the model does not take are received, read and counted, and nothing else."""
    for code, bytes_each, side, goal in (('<u2', 2, 128, '40,000/s'), ('|u1', 1, 512, '5,000/s'), ('<u4', 4, 1024, 'the limit')):
        size = side * side * bytes_each
        different = max(2, min(64, (32 << 20) // size))
        write_npy(b.folder / 'frames.npy', code, (different, side, side), bytes(i * 37 % 251 for i in range(4096)) * (different * size // 4096))
        for form in ('raw', 'stream2'):
            pull = free_port()
            with b.serve('mlp', '--workers', 1, '--pull', f'tcp://127.0.0.1:{pull}', '--json', 'served.json', '--quiet') as served:
                frames = int(max(200, min(400_000, 8e9 / size)))
                sent = b.metrics('stream', 'frames.npy', '--to', f'tcp://127.0.0.1:{pull}', '--rate', 0, '--frames', frames, '--format', form)
                served.end()
            counted = json.loads((b.folder / 'served.json').read_text())
            counted = counted.get('results', [counted])[0]['metrics']['frames_unfitting']['value']
            rate = sent['frames_rate']
            yield (f'receive and count {side} x {side} {code[1:]}, {form}', goal,
                   f'{rate:,.0f}/s, {rate * size / 1e9:.2f} GB/s; {counted:,.0f} of {frames:,} counted')


def scan(b, workload, window, points):
    file = b.folder / f'{workload}.h5'
    sets = ['--set', f'window={window}', '--set', 'scan=spiral', '--set', f'points={points}', '--set', 'photons=1e6']
    b.call('generate', workload, *sets, '--samples', points, '--out', file, '--quiet')
    b.call('train', workload, '--set', f'window={window}', '--data', file, '--steps', 2, '--batch', 8, '--out', f'run-{workload}', '--quiet')
    return file


def measure_ptychography(b, workload, window, share):
    points = 963
    file = scan(b, workload, window, points)
    for workers in b.workers:
        floor = b.floor(workload, 8)
        pull = free_port()
        with b.serve(f'run-{workload}', '--workers', workers, '--max-batch', 8, '--pull', f'tcp://127.0.0.1:{pull}', '--write',
                     f'out-{workers}', '--scale', 'log', '--stitch', 'pixel=10nm,crop=12', '--queue', 64, '--quiet') as served:
            b.wide(served)
            one = workers * 8 / floor
            frames = int(max(points, one * b.seconds))
            begun = time.monotonic()
            detector = subprocess.Popen([b.program, 'stream', file, '--dataset', 'diff', '--to', f'tcp://127.0.0.1:{pull}', '--rate', '0',
                                         '--frames', str(frames), '--series', 's', '--quiet'], cwd=b.folder)
            page = 0
            while not (b.folder / f'out-{workers}/s.json').exists():
                served.get('/live/state')
                page += 1
                time.sleep(0.5)
            seconds = time.monotonic() - begun
            detector.wait()
            served.end()
        rate = frames / seconds
        yield (f'{workload} stitched, shown and written, {workers} workers, {seconds:.0f} s', f'{share} % of the engine',
               f'{rate:,.0f} frames/s, {100 * rate / one:.0f} % of {workers} x {8 / floor:,.0f}')


def measure_ptychonn64(b):
    yield from measure_ptychography(b, 'ptychonn-64', 64, 85)


def measure_ptychonn128(b):
    yield from measure_ptychography(b, 'ptychonn-128', 128, 83)


def learner_does(served):
    return served.get('/learn')['state']


def peaks(b, name, count, seed, *sets):
    b.call('generate', 'braggnn', *[word for one in sets for word in ('--set', one)], '--samples', count, '--seed', seed, '--out', name,
           '--quiet')


WIDER = ('sigma_low=1.04', 'sigma_high=2.6')  # by 30 %


def measure_training(b):
    peaks(b, 'first.h5', 8000, 1)
    peaks(b, 'scan.h5', 8000, 2, *WIDER)
    b.call('train', 'braggnn', '--data', 'first.h5', '--epochs', 3, '--batch', 64, '--out', 'run', '--quiet')
    pull = free_port()
    with b.serve('run', '--workers', 2, '--pull', f'tcp://127.0.0.1:{pull}', '--scale', 'unit', '--write', 'out', '--learn', 'learnt',
                 '--learn-epochs', 400, '--budget', 600, '--quiet') as served:
        b.wide(served)
        seconds = min(b.seconds, 20)

        def both():
            return b.loads(served.url, '--request-rate', 500, seconds=seconds)[0], b.loads(served.url, '--concurrency', 4, '--rows', 16, seconds=seconds)[0]
        idle = both()
        b.call('stream', 'scan.h5', '--dataset', 'patch', '--to', f'tcp://127.0.0.1:{pull}', '--frames', 8000, '--different', 8000, '--rate', 0, '--quiet')
        while learner_does(served) != 'trains':
            if learner_does(served) == 'failed':
                raise RuntimeError(served.get('/learn'))
            time.sleep(0.05)
        busy = both()
        still = learner_does(served)
        served.end()
    yield ('training in the background: Poisson 500/s', f'p99 {us(2 * idle[0]["latency_p99"])}',
           f'{latencies(busy[0])}; idle {latencies(idle[0])}; then it {still}')
    yield ('training in the background: throughput', '60 %',
           f'{busy[1]["rows_rate"]:,.0f} patches/s, {100 * busy[1]["rows_rate"] / idle[1]["rows_rate"]:.0f} % of {idle[1]["rows_rate"]:,.0f} idle')


def measure_drift(b):
    peaks(b, 'first.h5', 20000, 1)
    peaks(b, 'scan.h5', 4000, 2, *WIDER)
    peaks(b, 'fresh.h5', 20000, 3, *WIDER)
    peaks(b, 'judge.h5', 4000, 4, *WIDER)
    for data, out in (('first.h5', 'run'), ('fresh.h5', 'fresh')):
        b.call('train', 'braggnn', '--data', data, '--epochs', 10, '--batch', 64, '--seed', 1, '--out', out, '--quiet')
    pull = free_port()
    with b.serve('run', '--workers', 1, '--pull', f'tcp://127.0.0.1:{pull}', '--scale', 'unit', '--write', 'out', '--learn', 'learnt',
                 '--learn-epochs', 10, '--quiet') as served:
        b.call('stream', 'scan.h5', '--dataset', 'patch', '--to', f'tcp://127.0.0.1:{pull}', '--frames', 4000, '--different', 4000, '--rate', 1000, '--quiet')
        begun = time.monotonic()
        while time.monotonic() - begun < 200:
            events = served.get('/learn')['events']
            if any(event['event'] in ('swapped', 'rejected', 'failed') for event in events):
                break
            time.sleep(0.1)
        seconds = time.monotonic() - begun
        served.end()
    newest = (b.folder / 'learnt/current').resolve() / 'run'
    errors = {}
    for name, run in (('before', 'run'), ('after', newest), ('fresh', 'fresh')):
        found = b.metrics('infer', 'braggnn', '--weights', run, '--input', 'judge.h5')
        errors[name] = {metric: round(value, 4) for metric, value in found.items() if re.search('error|distance|p50|mean', metric)}
    yield ('from drift to better weights, BraggNN, widths + 30 %', '60 s, error within 10 % of a fresh model\'s',
           f'{seconds:.1f} s from the end of the scan; {errors}; events {[event["event"] for event in events]}')


def measure_start(b):
    for model, goal in (('braggnn', '0.3 s'), ('ptychonn-128', '1 s')):
        times = []
        for _ in range(5):
            begun = time.monotonic()
            with b.serve(model, '--quiet'):
                times.append(time.monotonic() - begun)
        yield f'start to ready, {model}', goal, f'{min(times):.2f} to {max(times):.2f} s'


def measure_decode(b):
    done = subprocess.run([Path(b.program).parent / 'bench/edge/bench_unpack'], capture_output=True, text=True, check=True)
    for line in done.stdout.splitlines():
        yield 'decoding', '1 GB/s a core', line


PARTS = {'floor': measure_floor, 'http': measure_http, 'grpc': measure_grpc, 'frames': measure_frames, 'poisson': measure_poisson,
         'rows': measure_rows, 'receive': measure_receive, 'decode': measure_decode, 'ptychonn-64': measure_ptychonn64,
         'ptychonn-128': measure_ptychonn128, 'start': measure_start, 'training': measure_training, 'drift': measure_drift}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', default='build/superstep')
    parser.add_argument('--seconds', type=float, default=20, help='of every load')
    parser.add_argument('--workers', type=lambda text: [int(word) for word in text.split(',')], default=[1, 2],
                        help='of the parts with pictures, one after the other')
    parser.add_argument('--list', action='store_true')
    parser.add_argument('parts', nargs='*')
    options = parser.parse_args()
    if options.list:
        print('\n'.join(PARTS))
        return 0
    for part in options.parts or PARTS:
        with tempfile.TemporaryDirectory() as name:
            bench = Bench(str(Path(options.program).resolve()), Path(name), options)
            for what, goal, found in PARTS[part](bench):
                print(f'{part}: {what} | {goal} | {found}', flush=True)
    name, cores = processor()
    print(f'on {cores} cores of {name}, load {os.getloadavg()[0]:.1f}, {time.strftime("%d %B %Y")}')
    return 0


if __name__ == '__main__':
    sys.exit(main())
