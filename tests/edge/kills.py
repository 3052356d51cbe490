"""A server with a journal, killed (kill -9) at random instants while a detector sends and waits for acknowledgements: in the
end every frame has one answer, the same as without kills, and the account is exact.

python3 tests/edge/kills.py --program build/superstep --count 200 --seed 7    kills in all; ctest runs a few
"""

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / 'written')]
from keep_written import keep_written  # noqa: E402
from program import free_port  # noqa: E402

FRAMES = 4000
FAULTS = 'drop=0.01,dup=0.01,corrupt=0.005,reorder=8'


def metrics_of(file):
    result = json.loads(file.read_text())
    return {name: of['value'] for name, of in result.get('results', [result])[0]['metrics'].items()}


def answers_of(folder, files):
    """Frame and answer of every row, where h5py is installed; else nothing."""
    try:
        import h5py
    except ImportError:
        return None
    rows = []
    for name in files:
        with h5py.File(folder / name) as file:
            outputs = sorted(set(file) - {'frame', 'version'})
            values = [file[one][...].tobytes() for one in outputs]
            frames = file['frame'][...]
            size = [len(one) // len(frames) for one in values]
            rows += [(int(frame), b''.join(value[i * n:(i + 1) * n] for value, n in zip(values, size)))
                     for i, frame in enumerate(frames)]
    return rows


class Trial:
    def __init__(self, program, folder, rate):
        self.program, self.folder, self.port = program, folder, free_port()
        self.detector = subprocess.Popen(
            [program, 'stream', 'mlp', '--acknowledge', '--to', f'tcp://127.0.0.1:{self.port}', '--series', 's', '--frames',
             str(FRAMES), '--rate', str(rate), '--faults', FAULTS, '--patience', '60', '--json', 'sent.json', '--quiet'],
            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def serve(self, **streams):
        return subprocess.Popen([self.program, 'serve', 'mlp', '--http', '127.0.0.1:0', '--workers', '1', '--max-batch', '8',
                                 '--pull', f'tcp://127.0.0.1:{self.port}', '--write', 'out', '--body', '64K', '--journal', 'kept',
                                 '--quiet'], cwd=self.folder, text=True, **streams)

    def finish(self):
        """A last server, left alone. What is wrong with what came of it; nothing: None."""
        server = self.serve(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        code = self.detector.wait(120)
        if code != 0:
            server.kill()
            return f'the detector ended with {code}: {self.detector.stderr.read()}'
        for _ in range(600):
            if (self.folder / 'out/s.json').exists():
                break
            time.sleep(0.05)
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=60)
        if server.returncode != 0:
            return f'the last server ended with {server.returncode}: {errors}'
        return self.wrong()

    def wrong(self):
        summary, sent = json.loads((self.folder / 'out/s.json').read_text()), metrics_of(self.folder / 'sent.json')
        lost = sent['dropped'] + sent['corrupt']
        wanted = {'announced': FRAMES, 'missing': lost, 'seen': FRAMES - lost, 'outcomes': {'served': FRAMES - lost}}
        found = {name: summary[name] for name in wanted}
        if found != wanted:
            return f'{found} instead of {wanted}'
        rows = answers_of(self.folder / 'out', summary['files'])
        if rows is not None:
            frames = [frame for frame, _ in rows]
            if len(set(frames)) != len(frames) or len(frames) != FRAMES - lost:
                return f'{len(frames)} answers to {len(set(frames))} frames instead of {FRAMES - lost}'
        left = [path.name for path in (self.folder / 'kept').glob('*.journal')]
        if len(left) > 1:
            return f'segments without use are left: {left}'
        self.rows = None if rows is None else dict(rows)
        return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--count', type=int, default=8, help='kills in all')
    parser.add_argument('--seed', type=int, default=1)
    options = parser.parse_args()
    program, draw, kills, trials, reference = str(Path(options.program).resolve()), random.Random(options.seed), 0, 0, None
    while kills < options.count or trials == 0:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            trial = Trial(program, folder, 0 if trials == 0 else draw.choice([600, 1500, 4000]))
            for _ in range(0 if trials == 0 else min(5, options.count - kills)):
                server = trial.serve(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(draw.uniform(0, 1.2))
                server.kill()
                server.wait()
                kills += 1
            wrong = trial.finish()
            if wrong is None and reference is not None and trial.rows != reference:
                wrong = 'other answers than without kills'
            if wrong:
                print(f'trial {trials} of seed {options.seed}, after {kills} kills: {wrong}')
                return 1
            reference, trials = trial.rows, trials + 1
            keep_written(folder, 'tests/edge/kills.py')
    print(f'{kills} kills in {trials - 1} series of {FRAMES} frames: every frame has one answer'
          f'{"" if reference is None else ", the same as without kills"}, every account is exact')
    return 0


if __name__ == '__main__':
    sys.exit(main())
