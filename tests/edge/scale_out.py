"""Several servers behind one stream: every frame is in one server's account, and what the accounts say together is what the
detector says it sent; also when one of them is killed."""

import argparse
import json
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / 'written')]
from keep_written import keep_written  # noqa: E402
from kills import metrics_of  # noqa: E402
from program import free_port  # noqa: E402

PROGRAM = ''
FAULTS = 'drop=0.01,dup=0.01,corrupt=0.005,reorder=8'


class Server:
    def __init__(self, folder, name, port, *words):
        self.process = subprocess.Popen(
            [PROGRAM, 'serve', 'mlp', '--http', '127.0.0.1:0', '--workers', '1', '--max-batch', '8', '--queue', '64', '--body',
             '16K', '--pull', f'tcp://127.0.0.1:{port}', '--write', name, '--shared', *words], cwd=folder,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith('ready at '):
                self.url = line.split()[-1]
                break
        else:
            raise RuntimeError('did not start: ' + self.process.stderr.read())

    def frames(self):
        with urllib.request.urlopen(self.url + '/metrics', timeout=30) as answer:
            text = answer.read().decode()
        return {name: int(re.search(rf'^superstep_frames_{name} (\d+)$', text, re.M)[1]) for name in ('received_total', 'waiting')}

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        _, errors = self.process.communicate(timeout=60)
        return self.process.returncode, errors


class ScaleOut(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(keep_written, folder.name, self.id())
        self.folder, self.port, self.servers = Path(folder.name), free_port(), {}

    def start(self, name, *words):
        self.servers[name] = server = Server(self.folder, name, self.port, *words)
        self.addCleanup(server.process.communicate)
        self.addCleanup(server.process.kill)

    def detector(self, frames, rate, *words):
        process = subprocess.Popen(
            [PROGRAM, 'stream', 'mlp', '--to', f'tcp://127.0.0.1:{self.port}', '--series', 's', '--frames', str(frames), '--rate',
             str(rate), '--faults', FAULTS, '--json', 'sent.json', '--quiet', *words], cwd=self.folder, stderr=subprocess.PIPE,
            text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def wait_until_quiet(self, names):
        """Until nothing waits and nothing has come for half a second."""
        before, since = None, time.monotonic()
        while time.monotonic() - since < 0.5:
            now = [self.servers[name].frames() for name in names]
            if now != before or any(one['waiting'] for one in now):
                before, since = now, time.monotonic()
            time.sleep(0.05)
        return before

    def joint(self, names, code=0):
        done = subprocess.run([PROGRAM, 'account', *names, '--json', 'joint.json'], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        result = json.loads((self.folder / 'joint.json').read_text())
        result = result.get('results', [result])[0]
        return metrics_of(self.folder / 'joint.json'), result['config']['missing_ranges']['s'], done.stdout

    def test_two_to_four_servers_have_every_frame_once(self):
        for count in (2, 3, 4):
            with self.subTest(servers=count):
                names = [f'of{count}-{i}' for i in range(count)]
                self.port = free_port()
                for name in names:
                    self.start(name)
                self.assertEqual(self.detector(8000, 8000).wait(120), 0)
                counts = self.wait_until_quiet(names)
                for one in counts:
                    self.assertGreater(one['received_total'], 100, 'the frames go round')
                for name in names:
                    self.assertEqual(self.servers[name].end()[0], 0)
                sent, (joint, ranges, said) = metrics_of(self.folder / 'sent.json'), self.joint(names)
                lost = sent['dropped'] + sent['corrupt']
                self.assertEqual(joint['received'], sent['sent'])
                self.assertEqual(joint['corrupt'], sent['corrupt'])
                self.assertEqual((joint['s_announced'], joint['s_missing'], joint['s_seen']), (8000, lost, 8000 - lost))
                # A frame that is sent twice may come to two servers: it is twice in one account, or once in two.
                self.assertEqual(joint['s_again'] + joint['s_duplicate'], sent['twice'])
                self.assertEqual(joint['s_answered'], 8000 - lost)
                self.assertEqual(sum(last - first + 1 for first, last in ranges), lost)
                self.assertIn('missing of s:', said)

    def test_one_that_is_killed_is_in_the_account_with_its_answers(self):
        names = ['one', 'two', 'three']
        for name in names:
            self.start(name)
        detector = self.detector(12000, 6000)
        while not list((self.folder / 'two').glob('*.h5')):
            time.sleep(0.02)
        self.servers['two'].end(signal.SIGKILL)
        self.assertEqual(detector.wait(120), 0)
        self.wait_until_quiet(['one', 'three'])
        for name in ('one', 'three'):
            self.assertEqual(self.servers[name].end()[0], 0)
        sent, (joint, ranges, said) = metrics_of(self.folder / 'sent.json'), self.joint(names)
        lost = sent['dropped'] + sent['corrupt']
        self.assertGreater(joint['s_missing'], lost, 'what the killed one had in memory is missing, and is said to be')
        self.assertEqual(joint['s_answered'], joint['s_seen'])
        if joint['s_announced']:  # the one that was killed may have been the one that heard of it
            self.assertEqual(joint['s_seen'] + joint['s_missing'], 12000)
        self.assertEqual(sum(last - first + 1 for first, last in ranges), joint['s_missing'])
        self.assertRegex(said, r'two +s +[\d,]+ +0 +[\d,]+ +0 +[\d,]+ +no')

    def test_with_journals_nothing_is_lost_with_one_that_is_killed(self):
        def words(name):
            return '--journal', f'kept-{name}', '--stall', '1.5'
        names = ['one', 'two', 'three']
        for name in names:
            self.start(name, *words(name))
        detector = self.detector(6000, 4000, '--acknowledge', '--patience', '60')
        while self.servers['two'].frames()['received_total'] < 500:
            time.sleep(0.02)
        self.servers['two'].end(signal.SIGKILL)
        time.sleep(0.3)
        self.start('two', *words('two'))
        self.assertEqual(detector.wait(120), 0)
        sent = metrics_of(self.folder / 'sent.json')
        for _ in range(200):
            if all((self.folder / name / 's.json').exists() for name in names):
                break
            time.sleep(0.05)
        for name in names:
            self.assertEqual(self.servers[name].end()[0], 0)
        joint, _, _ = self.joint(names)
        lost = sent['dropped'] + sent['corrupt']
        self.assertEqual((joint['s_announced'], joint['s_missing'], joint['s_seen']), (6000, lost, 6000 - lost))
        self.assertEqual(joint['s_answered'], 6000 - lost)

    def test_accounts_that_do_not_add_up_are_said_to(self):
        for name in ('one', 'two'):
            self.start(name)
        self.assertEqual(self.detector(2000, 8000).wait(120), 0)
        self.wait_until_quiet(['one', 'two'])
        for name in ('one', 'two'):
            self.servers[name].end()
        self.joint(['one', 'two'])
        file = self.folder / 'one/s.json'
        account = json.loads(file.read_text())
        account['outcomes']['served'] -= 1
        file.write_text(json.dumps(account))
        done = subprocess.run([PROGRAM, 'account', 'one', 'two'], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn('one: ', done.stderr)
        for wrong, code in ((['one', 'one'], 2), (['nowhere'], 1)):
            done = subprocess.run([PROGRAM, 'account', *wrong], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, code, done.stderr)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    options, rest = parser.parse_known_args()
    PROGRAM = str(Path(options.program).resolve())
    unittest.main(argv=[sys.argv[0], *rest], verbosity=1)
