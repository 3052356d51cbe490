"""The program as a service: what it prints, how it ends, kills at any moment, clients of other houses."""

import argparse
import html
import json
import os
import random
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).resolve().parents[1] / 'written')]
from keep_written import keep_written  # noqa: E402
from program import Served, free_port  # noqa: E402

PROGRAM = CLIENT = ''
SOURCE = Path(__file__).resolve().parents[2]


def superstep(*words, folder, timeout=120):
    return subprocess.run([PROGRAM, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=timeout)


class OfService(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(keep_written, folder.name, self.id())
        self.folder = Path(folder.name)

    def served(self, *words, folder=None, port=0):
        return Served(PROGRAM, *words, folder=folder or self.folder, port=port)

    def train(self, run='run', seed=1):
        done = superstep('train', 'mlp', '--samples', 600, '--steps', 4, '--batch', 64, '--seed', seed, '--out', run,
                         '--quiet', folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)


class Requests(OfService):
    """Over HTTP and gRPC: answers, the end, versions, clients of other houses."""

    def test_a_run_is_served_until_it_is_asked_to_stop(self):
        self.train()
        with self.served('numbers=run', '--json', 'served.json') as served:
            status, answer = served.infer('numbers', rows=3)
            self.assertEqual(status, 200, answer)
            self.assertEqual(answer['outputs'][0]['shape'][0], 3)
            status, answer = served.infer('numbers', rows=100000 // 100 * 5)
            self.assertEqual(status, 413, answer)
            code, said, errors = served.end()
        self.assertEqual(code, 0, errors)
        self.assertIn('all that was taken in was answered', said)
        self.assertNotIn('initial weights', errors)
        result = json.loads((self.folder / 'served.json').read_text())
        result = result.get('results', [result])[0]
        metrics = result['metrics']
        self.assertEqual(metrics['numbers_requests_served']['value'], 1)
        self.assertEqual(metrics['numbers_requests_invalid']['value'], 1)

    def test_what_waits_is_answered_before_the_end(self):
        with self.served('mlp', '--workers', 1, '--max-batch', 1) as served:
            host, port = served.url[7:].split(':')
            name = served.get('/v2/models/mlp')['inputs'][0]
            shape = [2000] + name['shape'][1:]
            count = 2000
            for extent in name['shape'][1:]:
                count *= extent
            head = json.dumps({'parameters': {'binary_data_output': True},
                               'inputs': [{'name': name['name'], 'datatype': 'FP32', 'shape': shape,
                                           'parameters': {'binary_data_size': 4 * count}}]}).encode()
            message = (f'POST /v2/models/mlp/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(head) + 4 * count}\r\n'
                       f'Inference-Header-Content-Length: {len(head)}\r\n\r\n').encode() + head + bytes(4 * count)
            asked = [socket.create_connection((host, int(port))) for _ in range(2)]
            for connection in asked:
                connection.sendall(message)
            for _ in range(1000):
                account = served.get('/v2/models/mlp/stats')['model_stats'][0]['account']
                if account['received']['requests'] == 2:
                    break
                time.sleep(0.005)
            code, said, errors = served.end()
            for connection in asked:
                answer = connection.recv(300)
                self.assertTrue(answer.startswith(b'HTTP/1.1 200'), answer)
                connection.close()
        self.assertEqual(code, 0, said + errors)

    def test_versions_are_swapped_and_rolled_back_while_it_serves(self):
        self.train(seed=1)
        (self.folder / 'tokens').write_text('correct-horse change operator\n')
        with self.served('m=run', '--token-file', 'tokens', '--audit-log', 'audit') as served:
            token = {'Authorization': 'Bearer correct-horse'}
            first = served.get('/v2/models/m')['versions'][0]
            failures, over = [], threading.Event()

            def keep_asking():
                while not over.is_set():
                    status, answer = served.infer('m', rows=2)
                    if status != 200:
                        failures.append(answer)
            clients = [threading.Thread(target=keep_asking) for _ in range(4)]
            for client in clients:
                client.start()
            os.rename(self.folder / 'run', self.folder / 'old')
            self.train(seed=2)
            self.assertEqual(served.post('/v2/repository/models/m/load')[0], 401)
            status, answer = served.post('/v2/repository/models/m/load', headers=token)
            self.assertEqual((status, answer.get('changed')), (200, True), answer)
            self.assertNotEqual(answer['version'], first)
            status, answer = served.post('/v2/models/m/rollback', headers=token)
            self.assertEqual((status, answer['version']), (200, first))
            over.set()
            for client in clients:
                client.join()
            self.assertEqual(failures, [])
            self.assertEqual(served.end()[0], 0)
        changes = [json.loads(line) for line in (self.folder / 'audit').read_text().splitlines()]
        self.assertEqual([change['outcome'].split(':')[0] for change in changes], ['refused', 'done', 'done'])
        self.assertEqual(changes[1]['token'], 'operator')

    def test_a_hangup_has_it_read_its_models_anew(self):
        self.train(seed=1)
        (self.folder / 'tokens').write_text('correct-horse change operator\n')
        with self.served('m=run', '--token-file', 'tokens', '--audit-log', 'audit') as served:
            token = {'Authorization': 'Bearer correct-horse'}
            first = served.get('/v2/models/m')['versions'][0]
            os.rename(self.folder / 'run', self.folder / 'old')
            self.train(seed=2)
            served.process.send_signal(signal.SIGHUP)
            for _ in range(400):
                if served.get('/v2/models/m')['versions'][0] != first:
                    break
                time.sleep(0.05)
            self.assertNotEqual(served.get('/v2/models/m')['versions'][0], first)
            digest = served.get('/v2/models/m/config')['parameters']['sha256']['string_value']
            self.assertTrue(digest.startswith(served.get('/v2/models/m')['versions'][0]))
            code, _, errors = served.end()
            self.assertEqual(code, 0, errors)
            self.assertIn('m: version', errors)

    def test_wrong_calls_say_so(self):
        for words, code, part in ((['nothing-of-the-kind'], 2, 'nothing-of-the-kind'), (['mlp', 'mlp'], 2, 'this name'),
                                  (['mlp', '--http', '8000'], 2, 'HOST:PORT'), (['mlp', '--precision', 'int8'], 2, 'int8'),
                                  (['mlp', '--token-file', 'none'], 1, 'none'), (['mlp', '--write', 'x'], 2, '--pull'),
                                  (['mlp', '--pull', 'x'], 2, 'tcp://'), (['mlp', '--journal', 'x'], 2, '--pull'),
                                  (['mlp', '--pull', 'tcp://127.0.0.1:9', '--journal', 'x'], 2, '--write'),
                                  (['mlp', '--pull', 'tcp://127.0.0.1:9', '--stitch', 'crop=12'], 1, '--stitch'),
                                  (['mlp', '--pull', 'tcp://127.0.0.1:9', '--learn', 'x'], 1, 'folder'), (['missing.onnx'], 1, 'missing.onnx')):
            done = superstep('serve', *words, '--for', '0.1', *([] if '--http' in words else ['--http', '127.0.0.1:0']),
                             folder=self.folder)
            self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
            self.assertIn(part, done.stderr)

    def test_a_client_of_another_house_over_grpc(self):
        try:
            import numpy
            import tritonclient.grpc as triton
        except ImportError:
            self.skipTest('tritonclient is not installed: pip install tritonclient[grpc]')
        port = free_port()
        try:
            served = self.served('braggnn', '--grpc', f'127.0.0.1:{port}')
        except RuntimeError as error:
            self.assertIn('built without gRPC', str(error))
            self.skipTest('this program was built without gRPC')
        with served:
            client = triton.InferenceServerClient(f'127.0.0.1:{port}')
            self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready('braggnn'))
            self.assertEqual(client.get_server_metadata().name, 'superstep')
            configuration = client.get_model_config('braggnn').config
            self.assertEqual((configuration.name, configuration.max_batch_size), ('braggnn', 64))
            self.assertEqual((configuration.input[0].name, list(configuration.input[0].dims)), ('patch', [1, 11, 11]))
            self.assertEqual(configuration.output[0].data_type, 11)  # TYPE_FP32
            self.assertEqual(client.get_model_repository_index().models[0].state, 'READY')
            self.assertEqual(client.get_inference_statistics('braggnn').model_stats[0].inference_count, 0)
            metadata = client.get_model_metadata('braggnn')
            self.assertEqual(list(metadata.inputs[0].shape), [-1, 1, 11, 11])
            rows = numpy.random.default_rng(1).random((5, 1, 11, 11), dtype=numpy.float32)
            given = triton.InferInput(metadata.inputs[0].name, rows.shape, 'FP32')
            given.set_data_from_numpy(rows)
            result = client.infer('braggnn', [given], request_id='9')
            self.assertEqual(result.get_response().id, '9')
            answer = result.as_numpy(metadata.outputs[0].name)
            self.assertEqual(answer.shape, (5, 2))
            over_http = served.post('/v2/models/braggnn/infer', json.dumps({'inputs': [{
                'name': 'patch', 'datatype': 'FP32', 'shape': [5, 1, 11, 11], 'data': rows.ravel().tolist()}]}).encode())[1]
            numpy.testing.assert_array_equal(answer.ravel(), numpy.float32(over_http['outputs'][0]['data']))
            streamed, came = [], threading.Event()

            def take(result, error):
                streamed.append((result, error))
                if len(streamed) == 3:
                    came.set()
            client.start_stream(take)
            for name in ('braggnn', 'nothing', 'braggnn'):
                client.async_stream_infer(name, [given])
            self.assertTrue(came.wait(30))
            client.stop_stream()
            numpy.testing.assert_array_equal(streamed[0][0].as_numpy('ploc'), answer)
            self.assertIn('nothing', str(streamed[1][1]))
            numpy.testing.assert_array_equal(streamed[2][0].as_numpy('ploc'), answer)
            with self.assertRaises(triton.InferenceServerException if hasattr(triton, 'InferenceServerException') else Exception) as caught:
                client.infer('nothing', [given])
            self.assertIn('NOT_FOUND', str(caught.exception))
            self.assertEqual(served.end()[0], 0)

    def test_a_client_of_another_house(self):
        try:
            import numpy
            import tritonclient.http as triton
        except ImportError:
            self.skipTest('tritonclient is not installed: pip install tritonclient[http]')
        with self.served('braggnn') as served:
            client = triton.InferenceServerClient(served.url[7:])
            self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready('braggnn'))
            metadata = client.get_model_metadata('braggnn')
            rows = numpy.random.default_rng(1).random((5, 1, 11, 11), dtype=numpy.float32)
            answers = []
            for binary in (True, False):
                given = triton.InferInput(metadata['inputs'][0]['name'], rows.shape, 'FP32')
                given.set_data_from_numpy(rows, binary_data=binary)
                wanted = [triton.InferRequestedOutput(metadata['outputs'][0]['name'], binary_data=binary)]
                for outputs in (None, wanted):
                    result = client.infer('braggnn', [given], outputs=outputs, request_id='9')
                    self.assertEqual(result.get_response()['id'], '9')
                    answers.append(result.as_numpy(metadata['outputs'][0]['name']))
            for answer in answers:
                self.assertEqual(answer.shape, (5, 2))
                numpy.testing.assert_array_equal(answer, answers[0])
            self.assertEqual(client.get_model_repository_index()[0]['state'], 'READY')
            self.assertGreater(client.get_inference_statistics('braggnn')['model_stats'][0]['inference_count'], 0)
            self.assertEqual(client.get_model_config('braggnn')['max_batch_size'], 64)
            with self.assertRaises(triton.InferenceServerException if hasattr(triton, 'InferenceServerException') else Exception):
                client.infer('nothing', [given])


class Frames(OfService):
    """A detector's frames, as they are counted and shown."""

    def test_frames_are_counted_as_the_detector_counts_them(self):
        for form in ('stream2', 'raw'):
            port = free_port()
            with self.served('mlp', '--pull', f'tcp://127.0.0.1:{port}', '--write', form, '--json',
                             'served.json') as served:
                sent = superstep('stream', 'mlp', '--to', f'tcp://127.0.0.1:{port}', '--rate', 20000, '--frames', 20000,
                                 '--format', form, '--faults', 'drop=0.01,dup=0.01,corrupt=0.005,reorder=8', '--json',
                                 'sent.json', folder=self.folder)
                self.assertEqual(sent.returncode, 0, sent.stderr)
                for _ in range(600):
                    if (self.folder / form / 'series.json').exists():
                        break
                    time.sleep(0.05)
                code, said, errors = served.end()
            self.assertEqual(code, 0, said + errors)
            metrics = [json.loads((self.folder / name).read_text()) for name in ('sent.json', 'served.json')]
            sent, served = [{name: of['value'] for name, of in one.get('results', [one])[0]['metrics'].items()}
                            for one in metrics]
            self.assertEqual(served['frames_received'], sent['sent'])
            self.assertEqual(served['frames_corrupt'], sent['corrupt'])
            self.assertEqual(served['frames_duplicate'], sent['twice'])
            self.assertEqual(served['frames_missing'], sent['dropped'] + sent['corrupt'])
            self.assertEqual(served['frames_served'], 20000 - sent['dropped'] - sent['corrupt'])

    def scan(self, name, points=300):
        done = superstep('generate', 'ptychonn-128', '--set', 'window=32', '--set', f'points={points}', '--samples', points,
                         '--out', name, '--quiet', folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_scan_is_shown_while_it_runs(self):
        self.scan('scan.h5')
        done = superstep('train', 'ptychonn-128', '--set', 'window=32', '--data', 'scan.h5', '--epochs', 1, '--out', 'run',
                         '--quiet', folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        port = free_port()
        with self.served('run', '--pull', f'tcp://127.0.0.1:{port}', '--write', 'out', '--scale', 'log', '--stitch',
                    'pixel=10nm,crop=12,mean=kept') as served:
            detector = subprocess.Popen([PROGRAM, 'stream', 'scan.h5', '--dataset', 'diff', '--to', f'tcp://127.0.0.1:{port}',
                                         '--series', 'scan', '--frames', '1200', '--rate', '100', '--quiet'],
                                        cwd=self.folder, stderr=subprocess.DEVNULL)
            self.addCleanup(detector.wait)
            self.addCleanup(detector.kill)
            for _ in range(400):
                if served.get('/live/state')['added'] > 20:
                    break
                time.sleep(0.05)
            self.assertGreater(served.get('/live/state')['added'], 20)
            if shutil.which('chromium'):
                dom = subprocess.run(['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run',
                                      f'--user-data-dir={self.folder}/profile', '--virtual-time-budget=4000', '--dump-dom',
                                      served.url + '/live'], capture_output=True, text=True, timeout=100).stdout
                self.assertRegex(dom, r'series scan: [1-9]\d* windows')
                self.assertIn('/live/mean.png?', dom)
                self.assertNotIn('-figure" hidden', dom)
                self.assertTrue(re.search(r'class="scale" style="width: [\d.]+%;">[125]0* (nm|um)<', dom))
                self.assertTrue(re.search(r'<span>\w*phase\w*, rad</span>', dom))
                self.assertRegex(dom, r'<td>served</td><td>[1-9]')
            detector.kill()
            self.assertEqual(served.end()[0], 0)
        self.assertTrue((self.folder / 'out/scan.cxi').exists() and (self.folder / 'out/scan.tiff').exists())


class Kills(OfService):
    """kill -9 at any moment."""

    def test_a_server_that_is_killed_comes_back(self):
        """kill -9 at random moments under load: the next start answers with the same version."""
        draw, versions = random.Random(3), set()
        for _ in range(12):
            with self.served('mlp') as served:
                versions.add(served.infer('mlp')[1]['model_version'])
                load = subprocess.Popen([PROGRAM, 'bench', 'serve', served.url, '--concurrency', '4', '--seconds', '5',
                                         '--no-record'], cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(draw.uniform(0, 0.6))
                served.process.kill()
                self.assertNotEqual(load.wait(60), 0, 'a client hears of it')
        self.assertEqual(len(versions), 1)

    def test_killed_while_it_writes_it_leaves_whole_files(self):
        draw = random.Random(5)
        for attempt in range(12):
            folder = self.folder / str(attempt)
            folder.mkdir()
            port = free_port()
            with self.served('mlp', '--pull', f'tcp://127.0.0.1:{port}', '--write', 'out', '--quiet', folder=folder) as served:
                detector = subprocess.Popen([PROGRAM, 'stream', 'mlp', '--to', f'tcp://127.0.0.1:{port}', '--rate', '0',
                                             '--frames', '300000', '--series', 's', '--patience', '1', '--quiet'],
                                            cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(draw.uniform(0.1, 1.5))
                served.process.kill()
                detector.wait(90)
            for file in (folder / 'out').glob('*.h5'):
                shown = superstep('show', file, '--out', folder / 'page.html', folder=folder)
                self.assertEqual(shown.returncode, 0, shown.stderr)


class Learning(OfService):
    """superstep demo edge, small."""

    def test_it_learns_while_it_measures(self):
        """superstep demo edge, small: whole cycles of labels, training, gate, swap; the report; an exact account."""
        done = superstep('demo', 'edge', '--out', 'demo', '--points', 200, '--scans', 2, '--first-epochs', 2, '--epochs', 2,
                         '--json', 'demo.json', folder=self.folder, timeout=280)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads((self.folder / 'demo.json').read_text())
        metrics = {name: of['value'] for name, of in result.get('results', [result])[0]['metrics'].items()}
        self.assertEqual((metrics['frames_served'], metrics['frames_missing']), (400, 0))
        events = [json.loads(line) for line in (self.folder / 'demo/learnt/events.jsonl').read_text().splitlines()]
        names = [event['event'] for event in events]
        self.assertEqual(names.count('labelled'), 2, names)
        self.assertEqual(names.count('trained'), 2, names)
        self.assertEqual(names.count('accepted') + names.count('rejected'), 2, names)
        for event in events:
            if event['event'] == 'swapped':
                manifest = json.loads((self.folder / 'demo/learnt/versions' / event['to'] / 'manifest.json').read_text())
                self.assertEqual(manifest['parent'], event['from'])
                self.assertTrue(manifest['sha256'].startswith(event['to']))
        self.assertIn('without learning', (self.folder / 'demo/report.html').read_text())


class Page(OfService):
    """What docs/serve.md shows."""

    def test_the_clients_of_the_page(self):
        with self.served('braggnn') as served:
            host, port = served.url[7:].split(':')
            done = subprocess.run([CLIENT, host, port, 'braggnn', 'patch', '1', '11', '11'], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertEqual(json.loads(done.stdout)['outputs'][0]['shape'], [1, 2])
            done = subprocess.run([CLIENT, host, port, 'braggnn', 'patch', '1', '11', '12'], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            try:
                import numpy  # noqa: F401
            except ImportError:
                self.skipTest('the client in Python needs numpy')
            done = subprocess.run([sys.executable, SOURCE / 'examples/serving/client.py', served.url, 'braggnn'],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue(done.stdout.startswith('ploc [4, 2] ['), done.stdout)

    def test_the_line_of_shell_on_the_page_of_a_server(self):
        """Pasted as it stands there, for a model of one input and one of several."""
        if not shutil.which('curl'):
            self.skipTest('curl is not installed')
        def words(line, port):
            return line.replace('\\\n', ' ').replace(port, 'localhost:8000').split()

        shown = re.search(r'^    (\(printf .*\n.*)$', (SOURCE / 'docs/serve.md').read_text(), re.M)[1]
        with self.served('run=braggnn', 'several=uno') as served:
            with urllib.request.urlopen(served.url + '/', timeout=30) as answer:
                lines = re.findall(r'<pre>(\(printf .*?)</pre>', answer.read().decode(), re.S)
            self.assertEqual(len(lines), 2)
            self.assertEqual(words(html.unescape(lines[0]), served.url[7:]), words(shown, 'localhost:8000'), 'docs/serve.md shows it')
            for name, line in zip(('run', 'several'), lines):
                done = subprocess.run(['sh', '-c', html.unescape(line)], capture_output=True, text=True, timeout=60)
                said = json.loads(done.stdout)
                self.assertEqual(said.get('model_name'), name, said)
                self.assertEqual(said['outputs'][0]['shape'][0], 1)
            self.assertEqual(served.end()[0], 0)

    def test_the_dashboard_asks_for_what_is_counted(self):
        dashboard = json.loads((SOURCE / 'examples/serving/grafana.json').read_text())
        targets = [target['expr'] for panel in dashboard['panels'] for target in panel['targets']]
        asked = {name for text in targets for name in re.findall(r'superstep_\w+', text)}
        labels = {name for text in targets for name in re.findall(r'(\w+)(?:=~|!=|=)"', text)}
        labels |= {name for text in targets for names in re.findall(r' by \(([^)]*)\)', text) for name in names.split(', ')}
        self.assertGreaterEqual(len(asked), 6)
        with self.served('mlp', '--pull', f'tcp://127.0.0.1:{free_port()}', '--write', 'answers') as served:
            served.infer('mlp')
            with urllib.request.urlopen(served.url + '/metrics', timeout=30) as answer:
                text = answer.read().decode()
        self.assertEqual(asked - set(re.findall(r'^(superstep_\w+)[{ ]', text, re.M)), set())
        self.assertEqual(labels - set(re.findall(r'[{,](\w+)="', text)), set())

    def test_the_commands_of_the_page(self):
        """In their order, on ports that are free here."""
        page = (SOURCE / 'docs/serve.md').read_text()
        commands = [line.strip() for line in page.splitlines() if re.match(r'    (superstep|curl) ', line)]
        self.assertGreaterEqual(len(commands), 8)
        ports, server, said = {'8000': free_port(), '8001': free_port(), '31001': free_port()}, None, ''
        for command in commands:
            if any(word in command for word in ('--shared', 'kafka://', 'superstep account')):
                continue  # several servers, and a cluster: scale_out.py, kafka.py
            command = re.sub('|'.join(ports), lambda there: str(ports[there[0]]), command)
            program, *words = shlex.split(command)
            if program == 'superstep' and words[0] == 'serve':
                if server:
                    self.assertEqual(server.end()[0], 0)
                server = self.served(*words[1:], port=ports['8000'])
                self.addCleanup(server.__exit__)
                continue
            if program == 'superstep' and words[0] == 'stream':
                words += ['--to', f'tcp://127.0.0.1:{ports["31001"]}']  # the page goes by what both have as their default
            if program == 'curl' and not shutil.which('curl'):
                continue
            done = subprocess.run([PROGRAM if program == 'superstep' else program, *words], cwd=self.folder,
                                  capture_output=True, text=True, timeout=200)
            self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
            said += done.stdout
        for _ in range(600):
            if (self.folder / 'answers/series.json').exists():
                break
            time.sleep(0.05)
        code, table, errors = server.end()
        self.assertEqual(code, 0, table + errors)
        self.assertTrue((self.folder / 'answers/series-0001.h5').exists())
        sent = dict(re.findall(r'(dropped|twice|corrupt) ([\d,]*\d)', said))
        received = table[table.index('stream'):].splitlines()
        counts = dict(zip(received[0].split(), received[2].split()))
        self.assertEqual(counts['duplicate'], sent['twice'])
        self.assertEqual(counts['corrupt'], sent['corrupt'])
        self.assertEqual(int(counts['missing']), int(sent['dropped']) + int(sent['corrupt']))


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--program', required=True)
    parser.add_argument('--client', required=True)
    options, rest = parser.parse_known_args()
    PROGRAM, CLIENT = (str(Path(one).resolve()) for one in (options.program, options.client))
    unittest.main(argv=[sys.argv[0], *rest], verbosity=2)  # says how far it is where it is ended
