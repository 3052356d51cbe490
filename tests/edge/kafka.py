"""Frames from a topic of Kafka through a server and its answers to another, beside librdkafka's own mock of a cluster; the
server is killed on the way: every frame has one answer in files."""

import argparse
import random
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import json
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / 'written')]
from keep_written import keep_written  # noqa: E402
from kills import answers_of, metrics_of  # noqa: E402

PROGRAM = MOCK = ''
FAULTS = 'drop=0.01,dup=0.01,corrupt=0.005,reorder=8'


class Kafka(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(keep_written, folder.name, self.id())
        self.folder = Path(folder.name)
        self.mock = subprocess.Popen([MOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(self.mock.communicate)
        self.brokers = self.mock.stdout.readline().strip()

    def serve(self, *words):
        server = subprocess.Popen(
            [PROGRAM, 'serve', 'mlp', '--http', '127.0.0.1:0', '--workers', '1', '--max-batch', '8', '--body', '64K', '--pull',
             f'kafka://{self.brokers}/frames?group=g', '--write', 'out', '--quiet', *words], cwd=self.folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(server.communicate)
        self.addCleanup(server.kill)
        self.assertIn('ready', server.stdout.readline(), 'it did not start')
        return server

    def stream(self, frames, rate=0, form='raw'):
        done = subprocess.run(
            [PROGRAM, 'stream', 'mlp', '--to', f'kafka://{self.brokers}/frames', '--series', 's', '--frames', str(frames), '--rate',
             str(rate), '--format', form, '--faults', FAULTS, '--json', 'sent.json', '--quiet'], cwd=self.folder,
            capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        return metrics_of(self.folder / 'sent.json')

    def wait_for_summary(self):
        for _ in range(1200):
            if (self.folder / 'out/s.json').exists():
                return json.loads((self.folder / 'out/s.json').read_text())
            time.sleep(0.05)
        self.fail('the series has not ended')

    def end(self, server):
        server.send_signal(signal.SIGTERM)
        _, errors = server.communicate(timeout=60)
        self.assertEqual(server.returncode, 0, errors)

    def test_counts_are_the_detectors(self):
        sent = self.stream(3000, form='stream2')
        server = self.serve()
        summary = self.wait_for_summary()
        self.end(server)
        lost = sent['dropped'] + sent['corrupt']
        self.assertEqual((summary['announced'], summary['missing'], summary['duplicate']), (3000, lost, sent['twice']))
        self.assertEqual(summary['outcomes'], {'served': 3000 - lost})

    def test_a_server_that_is_killed_goes_on_where_it_was(self):
        sent, draw = self.stream(3000), random.Random(2)
        lost = sent['dropped'] + sent['corrupt']
        words = ['--journal', 'kept', '--publish', f'kafka://{self.brokers}/answers']
        for _ in range(4):
            server = self.serve(*words)
            time.sleep(draw.uniform(0.05, 1))
            server.kill()
            server.wait()
        server = self.serve(*words)
        summary = self.wait_for_summary()
        self.end(server)
        self.assertEqual((summary['announced'], summary['missing'], summary['seen']), (3000, lost, 3000 - lost))
        self.assertEqual(summary['outcomes'], {'served': 3000 - lost})
        rows = answers_of(self.folder / 'out', summary['files'])
        if rows is not None:
            self.assertEqual(len(rows), 3000 - lost)
            self.assertEqual(len({frame for frame, _ in rows}), 3000 - lost)

    def test_what_is_wrong_is_said(self):
        for words, code, part in ((['--pull', 'kafka://nowhere'], 2, 'no address of a topic'),
                                  (['--pull', 'kafka://127.0.0.1:1/frames'], 1, 'no broker answers')):
            done = subprocess.run([PROGRAM, 'serve', 'mlp', '--http', '127.0.0.1:0', *words, '--for', '1'], cwd=self.folder,
                                  capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn(part, done.stderr)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--mock', required=True)
    options, rest = parser.parse_known_args()
    PROGRAM, MOCK = (str(Path(one).resolve()) for one in (options.program, options.mock))
    unittest.main(argv=[sys.argv[0], *rest], verbosity=1)
