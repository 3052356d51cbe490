"""A server for a long time: series after series with faults through a journal, requests beside them, swaps and ways back.
Every account must be exact, every request answered, and the server's memory flat within 2 %.

python3 tests/edge/soak.py --program build/superstep --minutes 60 [--out soak.json] 
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from kills import metrics_of  # noqa: E402
from program import free_port  # noqa: E402

FAULTS = 'drop=0.01,dup=0.01,corrupt=0.005,reorder=8'


def superstep(program, folder, *words):
    done = subprocess.run([program, *map(str, words)], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f'{words}: {done.stderr}')


class Soak:
    def __init__(self, program, folder, options):
        self.program, self.folder, self.options, self.port = program, folder, options, free_port()
        self.frames = self.requests = self.refused = self.swaps = self.series = 0
        self.memory, self.wrong, self.over = [], [], threading.Event()
        for seed in (1, 2):
            superstep(program, folder, 'train', 'braggnn', '--samples', 600, '--steps', 4, '--batch', 64, '--seed', seed, '--out',
                      f'version-{seed}', '--quiet')
        os.symlink('version-1', folder / 'run')
        (folder / 'tokens').write_text('correct-horse change\n')
        self.server = subprocess.Popen(
            [program, 'serve', 'run', '--http', '127.0.0.1:0', '--pull', f'tcp://127.0.0.1:{self.port}', '--write', 'out',
             '--journal', 'kept', '--body', '1M', '--queue', '512', '--workers', '1', '--quiet', '--token-file', 'tokens'],
            cwd=folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.url = self.server.stdout.readline().split()[-1]
        self.begun = time.monotonic()

    def post(self, path, body=b''):
        request = urllib.request.Request(self.url + path, data=body, method='POST', headers={'Authorization': 'Bearer correct-horse'})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def resident(self):
        text = Path(f'/proc/{self.server.pid}/status').read_text()
        return {name: int(re.search(rf'^{name}:\s+(\d+) kB$', text, re.M)[1]) * 1024 for name in ('VmRSS', 'RssAnon')}

    def watch(self):
        while not self.over.wait(self.options.every):
            self.memory.append([time.monotonic() - self.begun, *self.resident().values()])

    def ask(self):
        values = [0.5] * 121
        body = json.dumps({'inputs': [{'name': 'patch', 'datatype': 'FP32', 'shape': [1, 1, 11, 11], 'data': values}]}).encode()
        while not self.over.wait(0.05):
            try:
                self.post('/v2/models/run/infer', body)
                self.requests += 1
            except urllib.error.HTTPError as error:
                if error.code != 429:  # the stream has filled the queue: said to the client, as the page has it
                    raise
                self.refused += 1

    def swap(self):
        """The other version answers, or the one before again, in turn."""
        while not self.over.wait(self.options.swap):
            if self.swaps % 3 == 2:
                self.post('/v2/models/run/rollback')
            else:
                other = 'version-2' if os.readlink(self.folder / 'run') == 'version-1' else 'version-1'
                os.symlink(other, self.folder / 'run.new')
                os.rename(self.folder / 'run.new', self.folder / 'run')
                self.post('/v2/repository/models/run/load')
            self.swaps += 1

    def guarded(self, what):
        def run():
            try:
                what()
            except Exception as error:  # noqa: BLE001: whatever it was is what is wrong
                if not self.over.is_set():
                    self.wrong.append(f'{what.__name__}: {error!r}')
        thread = threading.Thread(target=run)
        thread.start()
        return thread

    def one_series(self):
        name = f's{self.series}'
        superstep(self.program, self.folder, 'stream', 'braggnn', '--acknowledge', '--to', f'tcp://127.0.0.1:{self.port}',
                  '--series', name, '--frames', self.options.frames, '--rate', self.options.rate, '--faults', FAULTS, '--seed',
                  self.series, '--json', 'sent.json', '--quiet', '--patience', 60)
        file = self.folder / 'out' / f'{name}.json'
        for _ in range(1200):
            if file.exists():
                break
            time.sleep(0.05)
        summary, sent = json.loads(file.read_text()), metrics_of(self.folder / 'sent.json')
        lost = sent['dropped'] + sent['corrupt']
        found = (summary['announced'], summary['missing'], summary['outcomes'])
        wanted = (self.options.frames, lost, {'served': self.options.frames - lost})
        if found != wanted:
            self.wrong.append(f'{name}: {found} instead of {wanted}')
        for answers in summary['files']:
            (self.folder / 'out' / answers).unlink()
        file.unlink()
        self.series += 1
        self.frames += sent['sent']

    def run(self):
        threads = [self.guarded(what) for what in (self.watch, self.ask, self.swap)]
        try:
            while not self.wrong and time.monotonic() - self.begun < 60 * self.options.minutes:
                self.one_series()
        finally:
            self.over.set()
            for thread in threads:
                thread.join()
            seconds = time.monotonic() - self.begun
            self.server.send_signal(signal.SIGTERM)
            _, errors = self.server.communicate(timeout=60)
        if self.server.returncode:
            self.wrong.append(f'the server ended with {self.server.returncode}: {errors}')
        return seconds

    def growth(self, which):
        """Of the last quarter's mean over the second quarter's: the first is the filling of buffers."""
        values = [sample[which] for sample in self.memory]
        quarter = len(values) // 4
        if quarter < 3:
            return None
        return sum(values[-quarter:]) / sum(values[quarter:2 * quarter]) - 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--minutes', type=float, default=60)
    parser.add_argument('--frames', type=int, default=20000, help='of a series')
    parser.add_argument('--rate', type=float, default=1000)
    parser.add_argument('--swap', type=float, default=60, help='seconds from one change of versions to the next')
    parser.add_argument('--every', type=float, default=5, help='seconds from one look at the memory to the next')
    parser.add_argument('--out', help='a file of JSON with what came of it')
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        soak = Soak(str(Path(options.program).resolve()), Path(name), options)
        seconds = soak.run()
    grown, anonymous = soak.growth(1), soak.growth(2)
    if grown is not None and options.minutes >= 10 and grown > 0.02:
        soak.wrong.append(f'memory has grown by {100 * grown:.1f} %')
    said = {'seconds': seconds, 'frames': soak.frames, 'series': soak.series, 'requests': soak.requests, 'refused': soak.refused, 'swaps': soak.swaps,
            'grown': grown, 'grown_anonymous': anonymous, 'memory': soak.memory, 'wrong': soak.wrong}
    if options.out:
        Path(options.out).write_text(json.dumps(said) + '\n')
    print(f'{seconds:.0f} s: {soak.frames:,.0f} frames in {soak.series} series, {soak.requests:,} requests ({soak.refused} refused), {soak.swaps} swaps'
          + ('' if grown is None else f', memory {soak.memory[-1][1] / 1e6:.1f} MB, {100 * grown:+.2f} %'))
    for wrong in soak.wrong:
        print(f'soak: {wrong}')
    return 1 if soak.wrong else 0


if __name__ == '__main__':
    sys.exit(main())
