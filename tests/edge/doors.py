#!/usr/bin/env python3
"""The doors of the program: TLS and identities, tokens, proxies in front, the way it stops; and weights that are what they were.

    tests/edge/doors.py --program build/superstep [TEST]

Certificates are made by openssl, proxies are nginx and HAProxy: what is not installed is left out with a word."""

import argparse
import json
import os
import resource
import select
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]
from program import Served, free_port  # noqa: E402

PROGRAM = ''
KEY = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1')  # what clients of gRPC take, too


def superstep(*words, folder, timeout=120):
    return subprocess.run([PROGRAM, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=timeout)


class OfDoors(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def served(self, *words, port=0):
        return Served(PROGRAM, *words, folder=self.folder, port=port)

    def train(self, run='run', seed=1):
        done = superstep('train', 'mlp', '--samples', 600, '--steps', 4, '--batch', 64, '--seed', seed, '--out', run, '--quiet',
                         folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)

    def openssl(self, *words):
        subprocess.run(['openssl', *words], cwd=self.folder, check=True, capture_output=True)

    def make_certificates(self):
        """An authority `ca`, a server's and a client's certificate of it."""
        self.openssl('req', '-x509', *KEY, '-nodes', '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=ca')
        for name in ('server', 'client'):
            self.openssl('req', *KEY, '-nodes', '-keyout', f'{name}.key', '-out', f'{name}.csr', '-subj', f'/CN={name}')
            (self.folder / f'{name}.ext').write_text('subjectAltName=DNS:localhost,IP:127.0.0.1\n')
            self.openssl('x509', '-req', '-in', f'{name}.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile',
                         f'{name}.ext', '-out', f'{name}.pem')


def status_of(url, headers=None, body=None, context=None):
    """The status, or the kind of what went wrong."""
    request = urllib.request.Request(url, data=body, headers=headers or {})
    try:
        with urllib.request.urlopen(request, timeout=30, context=context) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code
    except (urllib.error.URLError, OSError) as error:
        return type(error).__name__


@unittest.skipUnless(shutil.which('openssl'), 'openssl is not installed')
class Tls(OfDoors):
    def test_https_and_clients_certificates(self):
        self.make_certificates()
        context = ssl.create_default_context(cafile=self.folder / 'ca.pem')
        with self.served('mlp', '--tls-cert', 'server.pem', '--tls-key', 'server.key') as served:
            self.assertTrue(served.url.startswith('https://'), served.url)
            self.assertEqual(status_of(served.url + '/v2', context=context), 200)
            self.assertEqual(status_of(served.url + '/v2', context=ssl.create_default_context()), 'URLError')
            self.assertNotEqual(status_of(served.url.replace('https', 'http') + '/v2'), 200)
            old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            old.load_verify_locations(self.folder / 'ca.pem')
            old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
            self.assertEqual(status_of(served.url + '/v2', context=old), 'URLError')
            # Long answers and bodies, one after the other over one connection.
            body = json.dumps({'inputs': []}).encode() + b' ' * 3_000_000
            self.assertEqual(status_of(served.url + '/v2/models/mlp/infer', body=body, context=context), 400)
            code, said, errors = served.end()
            self.assertEqual(code, 0, errors)
            self.assertIn('no_tls', said)
        with self.served('mlp', '--tls-cert', 'server.pem', '--tls-key', 'server.key', '--tls-client-ca', 'ca.pem') as served:
            self.assertNotEqual(status_of(served.url + '/v2', context=context), 200)
            context.load_cert_chain(self.folder / 'client.pem', self.folder / 'client.key')
            self.assertEqual(status_of(served.url + '/v2', context=context), 200)

    def test_clients_of_ours_come_in_with_tokens_and_certificates(self):
        self.make_certificates()
        (self.folder / 'tokens').write_text('# of the beamline\nasker-token read,infer beamline\n')
        (self.folder / 'tokens').chmod(0o600)
        port = free_port()
        over_grpc = 'without gRPC' not in superstep('bench', 'serve', 'grpc://127.0.0.1:1/m', '--seconds', 0.1, folder=self.folder).stderr
        with self.served('m=mlp', '--tls-cert', 'server.pem', '--tls-key', 'server.key', '--tls-client-ca', 'ca.pem', '--token-file', 'tokens', '--protect',
                         'read,infer', *(['--grpc', f'127.0.0.1:{port}'] if over_grpc else [])) as served:
            def bench(url, *words):
                return superstep('bench', 'serve', url, '--seconds', 0.3, '--concurrency', 2, *words, folder=self.folder)
            whole = ['--token-file', 'tokens', '--tls-ca', 'ca.pem', '--tls-cert', 'client.pem', '--tls-key', 'client.key']
            for url in [served.url.replace('127.0.0.1', 'localhost')] + ([f'grpcs://localhost:{port}/m'] if over_grpc else []):
                done = bench(url, *whole)
                self.assertEqual(done.returncode, 0, (url, done.stderr))
                self.assertIn('2 at a time', done.stdout)
                for left_out in (0, 2, 4):
                    words = whole[:left_out] + whole[left_out + (2 if left_out < 4 else 4):]
                    self.assertEqual(bench(url, *words).returncode, 1, words)
            self.assertEqual(bench(served.url.replace('https', 'http'), *whole).returncode, 2, 'certificates, in the clear')
            self.assertEqual(bench(served.url, *whole[:-2]).returncode, 2, 'a certificate without its key')
        with self.served('m=mlp', '--tls-cert', 'server.pem', '--tls-key', 'server.key', '--token-file', 'tokens', '--protect', 'read,infer') as served:
            client = Path(__file__).resolve().parents[2] / 'examples/serving/client.py'
            try:
                import numpy  # noqa: F401
            except ImportError:
                return
            done = subprocess.run([sys.executable, client, served.url, 'm', 'tokens', 'ca.pem'], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotEqual(subprocess.run([sys.executable, client, served.url, 'm'], cwd=self.folder, capture_output=True).returncode, 0)

    def test_what_is_no_certificate_is_named(self):
        self.make_certificates()
        (self.folder / 'text').write_text('no certificate\n')
        for words, code, part in ((['--tls-cert', 'server.pem'], 2, '--tls-key'), (['--tls-key', 'server.key'], 2, '--tls-cert'),
                                  (['--tls-client-ca', 'ca.pem'], 2, '--tls-cert'),
                                  (['--tls-cert', 'text', '--tls-key', 'server.key'], 1, 'text'),
                                  (['--tls-cert', 'server.pem', '--tls-key', 'client.key'], 1, 'client.key'),
                                  (['--tls-cert', 'server.pem', '--tls-key', 'server.key', '--tls-client-ca', 'text'], 1, 'text'),
                                  (['--tls-cert', 'absent', '--tls-key', 'server.key'], 1, 'absent'),
                                  (['--protect', 'read'], 2, '--token-file'), (['--protect', 'all'], 2, 'read, infer, change')):
            done = superstep('serve', 'mlp', *words, '--for', '0.1', '--http', '127.0.0.1:0', folder=self.folder)
            self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
            self.assertIn(part, done.stderr, words)

    def test_grpc_over_tls(self):
        try:
            import grpc
        except ImportError:
            self.skipTest('grpcio is not installed')
        self.make_certificates()
        port = free_port()
        (self.folder / 'tokens').write_text('reader-token read\n')
        with self.served('mlp', '--grpc', f'127.0.0.1:{port}', '--tls-cert', 'server.pem', '--tls-key', 'server.key', '--token-file', 'tokens',
                         '--protect', 'read'):
            credentials = grpc.ssl_channel_credentials((self.folder / 'ca.pem').read_bytes())
            with grpc.secure_channel(f'localhost:{port}', credentials) as channel:
                call = channel.unary_unary('/inference.GRPCInferenceService/ServerMetadata')
                with self.assertRaises(grpc.RpcError) as refused:
                    call(b'', timeout=20)
                self.assertEqual(refused.exception.code(), grpc.StatusCode.UNAUTHENTICATED)
                self.assertIn(b'superstep', call(b'', timeout=20, metadata=(('authorization', 'Bearer reader-token'),)))
            with grpc.insecure_channel(f'localhost:{port}') as channel, self.assertRaises(grpc.RpcError):
                channel.unary_unary('/inference.GRPCInferenceService/ServerLive')(b'', timeout=3)


class Stops(OfDoors):
    def test_a_lame_duck_loses_no_request_of_who_looks(self):
        with self.served('mlp', '--lame-duck', 1.5) as served:
            answered, failures, over = 0, [], threading.Event()

            def ask():
                nonlocal answered
                while not over.is_set():
                    if status_of(served.url + '/v2/health/ready') != 200:
                        return
                    status, answer = served.infer('mlp')
                    answered += status == 200
                    if status != 200:
                        failures.append(answer)
            clients = [threading.Thread(target=ask) for _ in range(3)]
            for client in clients:
                client.start()
            time.sleep(0.3)
            served.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            self.assertEqual(status_of(served.url + '/v2/health/ready'), 503)
            self.assertEqual(status_of(served.url + '/v2/models/mlp/ready'), 503)
            self.assertEqual(served.infer('mlp')[0], 200, 'it still answers')
            for client in clients:
                client.join()
            self.assertEqual(failures, [])
            out, errors = served.process.communicate(timeout=60)
            self.assertEqual(served.process.returncode, 0, errors)
            self.assertIn('all that was taken in was answered', out)

    def test_the_account_says_what_was_refused_and_lost(self):
        with self.served('mlp', '--access-log', 'access', '--json', 'served.json') as served:
            host, port = served.url[7:].split(':')
            for _ in range(20):
                with socket.create_connection((host, int(port))) as client:
                    client.sendall(b'POST /v2/models/mlp/infer HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 5\r\n\r\n')
                    client.recv(1000)
            with socket.create_connection((host, int(port))) as client:
                client.sendall(b'POST /v2/models/mlp/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\n{')
                time.sleep(0.1)
            code, said, errors = served.end()
        self.assertEqual(code, 0, errors)
        self.assertIn('20 host with status 421', said)
        self.assertIn('1 requests have no answer', said)
        ends = [json.loads(line).get('end') for line in (self.folder / 'access').read_text().splitlines()]
        self.assertEqual((ends.count('host'), ends.count('lost')), (20, 1))
        metrics = json.loads((self.folder / 'served.json').read_text())['metrics']
        self.assertEqual(metrics['http_refused']['value'], 20)
        self.assertEqual(metrics['http_unanswered']['value'], 1)

    def test_it_warns_of_open_doors(self):
        done = superstep('serve', 'mlp', '--http', '*:0', '--for', '0.1', folder=self.folder)
        self.assertIn('whoever reaches this server', done.stderr)
        (self.folder / 'tokens').write_text('some-token-1\n')
        done = superstep('serve', 'mlp', '--http', '*:0', '--for', '0.1', '--token-file', 'tokens', '--protect', 'read,infer', folder=self.folder)
        self.assertNotIn('whoever reaches', done.stderr)
        self.assertIn('in the clear', done.stderr)
        done = superstep('serve', 'mlp', '--http', '127.0.0.1:0', '--for', '0.1', folder=self.folder)
        self.assertNotIn('whoever reaches', done.stderr)

    def test_signals_of_batch_systems_stop_in_order(self):
        for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGXCPU, signal.SIGTERM):
            folder = f'run-{int(number)}'
            work = subprocess.Popen([PROGRAM, 'train', 'mlp', '--samples', '600', '--epochs', '100000', '--out', folder, '--quiet'], cwd=self.folder,
                                    stderr=subprocess.PIPE, text=True)
            for _ in range(600):
                if list((self.folder / folder).glob('metrics.jsonl')):
                    break
                time.sleep(0.05)
            for _ in range(3 if number != signal.SIGTERM else 1):  # as often as they say it
                work.send_signal(number)
                time.sleep(0.02)
            _, errors = work.communicate(timeout=60)
            self.assertEqual(work.returncode, 130, errors)
            self.assertTrue(list((self.folder / folder / 'checkpoints').glob('step-*.safetensors')), errors)

    def test_a_signal_at_the_very_start_ends_as_later(self):
        """While the libraries of the program begin: one that takes long is put before them."""
        compiler = shutil.which('cc') or shutil.which('gcc')
        if not compiler:
            self.skipTest('there is no C compiler')
        (self.folder / 'slow.c').write_text('#include <fcntl.h>\n#include <unistd.h>\n'
                                            '__attribute__((constructor)) static void slow(void) { close(creat("begun", 0600)); sleep(30); }\n')
        subprocess.run([compiler, '-shared', '-fPIC', '-o', 'slow.so', 'slow.c'], cwd=self.folder, check=True)
        work = subprocess.Popen([PROGRAM, 'train', 'mlp', '--samples', '6000', '--epochs', '1000', '--quiet'], cwd=self.folder,
                                env=dict(os.environ, LD_PRELOAD=str(self.folder / 'slow.so')), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not (self.folder / 'begun').exists():
            time.sleep(0.005)
        work.terminate()
        self.assertEqual(work.wait(60), 130)


    def test_limits_that_are_too_tight_are_named(self):
        def limited(which, soft):
            return lambda: resource.setrlimit(which, (soft, resource.getrlimit(which)[1]))
        for words, limit, part in ((['serve', 'mlp', '--http', '127.0.0.1:0', '--for', '0.1'], limited(resource.RLIMIT_NOFILE, 4), 'ulimit -n'),
                                   (['serve', 'mlp', '--http', '127.0.0.1:0', '--for', '0.1'], limited(resource.RLIMIT_NOFILE, 5), 'ulimit -n'),
                                   (['train', 'mlp', '--samples', '600', '--steps', '2'], limited(resource.RLIMIT_STACK, 128 << 10), 'ulimit -s')):
            done = subprocess.run([PROGRAM, *words], cwd=self.folder, preexec_fn=limit, capture_output=True, text=True, timeout=60)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(part, done.stderr)
            self.assertNotIn('internal error', done.stderr)


# Peers of another house: pyzmq, which makes keys, certificates and connections of its own.
PYZMQ = """
import json, os, sys, time
import zmq, zmq.auth
what, folder, address, own, other, series = (sys.argv[1:] + ['s'])[:6]
if what == 'keys':
    for name in (own, other):
        zmq.auth.create_certificates(folder, name)
    sys.exit()
context = zmq.Context()
socket = context.socket({'push': zmq.PUSH, 'subscribe': zmq.SUB}[what])
socket.linger = 2000
if own != '-':
    socket.curve_publickey, socket.curve_secretkey = zmq.auth.load_certificate(os.path.join(folder, own + '.key_secret'))
    socket.curve_serverkey = zmq.auth.load_certificate(os.path.join(folder, other + '.key'))[0]
socket.connect(address)
if what == 'push':
    head = {'protocol': 'superstep-frame/1', 'type': 'frame', 'series': series, 'frame': 0, 'shape': [1, 11, 11], 'dtype': 'f32'}
    for number in range(5):
        socket.send_multipart([json.dumps(dict(head, frame=number)).encode(), bytes(4 * 121)])
    socket.send_multipart([json.dumps({'protocol': 'superstep-frame/1', 'type': 'end', 'series': series}).encode()])
else:
    socket.subscribe(b'')
    print('listens', flush=True)
    while True:
        print(json.loads(socket.recv_multipart()[0])['protocol'], flush=True)
"""


def python_with_zmq():
    """An interpreter that has pyzmq: this one, or that of tools/setup-oracles."""
    for python in (sys.executable, Path(PROGRAM).parent / 'oracles/bin/python'):
        if Path(python).exists() and subprocess.run([python, '-c', 'import zmq; assert zmq.has("curve")'], capture_output=True).returncode == 0:
            return python
    return None


@unittest.skipUnless(shutil.which('openssl'), 'openssl is not installed')
class Curve(OfDoors):
    def make_keys(self, *names):
        for name in names:
            self.openssl('genpkey', '-algorithm', 'X25519', '-out', f'{name}.key')
            self.openssl('pkey', '-in', f'{name}.key', '-pubout', '-out', f'{name}.pub')

    def pyzmq(self, *words, **how):
        process = subprocess.Popen([python_with_zmq(), '-c', PYZMQ, words[0], self.folder, *words[1:]], cwd=self.folder, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how)
        self.addCleanup(lambda: (process.kill(), process.wait(), process.stdout.close(), process.stderr.close()))
        return process

    def detector(self, port, *words, frames=20):
        return superstep('stream', 'braggnn', '--frames', frames, '--rate', 0, '--to', f'tcp://127.0.0.1:{port}', '--patience', 4, *words,
                         folder=self.folder)

    def test_a_stream_with_keys_has_every_frame(self):
        self.make_keys('detector', 'server', 'viewer')
        frames, answers = free_port(), free_port()
        with self.served('braggnn', '--pull', f'tcp://127.0.0.1:{frames}', '--publish', f'tcp://127.0.0.1:{answers}', '--write', 'answers', '--journal', 'kept',
                         '--curve-key', 'server.key', '--curve-server', 'detector.pub', '--curve-clients', 'detector.pub') as served:
            done = superstep('stream', 'braggnn', '--frames', 50, '--rate', 200, '--to', f'tcp://127.0.0.1:{frames}', '--answers',
                             f'tcp://127.0.0.1:{answers}', '--acknowledge', '--curve-key', 'detector.key', '--curve-server', 'server.pub',
                             '--curve-clients', 'server.pub', folder=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn('answers to 50, none to 0', done.stdout)
            code, said, errors = served.end()
        self.assertEqual(code, 0, errors)
        self.assertNotIn('no key that is known', said)
        self.assertNotIn('was refused', errors)

    def test_strangers_send_and_hear_nothing(self):
        self.make_keys('detector', 'server', 'other')
        port = free_port()
        with self.served('braggnn', '--pull', f'tcp://127.0.0.1:{port}', '--write', 'answers', '--curve-key', 'server.key', '--curve-server',
                         'detector.pub') as served:
            # In the clear, with another key than the server knows, and one that does not know the server's.
            for words in ([], ['--curve-key', 'other.key', '--curve-clients', 'server.pub'], ['--curve-key', 'detector.key', '--curve-clients', 'other.pub']):
                done = self.detector(port, *words)
                self.assertEqual(done.returncode, 1, words)
                self.assertIn('nobody has taken a frame', done.stderr)
            done = self.detector(port, '--curve-key', 'detector.key', '--curve-clients', 'server.pub')
            self.assertEqual(done.returncode, 0, done.stderr)
            for _ in range(200):
                if (self.folder / 'answers/series.json').exists():
                    break
                time.sleep(0.05)
            code, said, errors = served.end()
        self.assertEqual(code, 0, errors)
        self.assertIn('no key that is known', said)
        self.assertIn('--curve-server', errors, 'who connects is told why there is none')
        self.assertEqual(json.loads((self.folder / 'answers/series.json').read_text())['received'], 20)

    def test_what_is_no_key_or_no_use_is_named(self):
        self.make_keys('server', 'detector')
        (self.folder / 'text').write_text('no key\n')
        pull, listen = ['--pull', 'tcp://127.0.0.1:1', '--write', 'w'], ['--pull', 'tcp://*:*', '--write', 'w']
        for words, code, part in ((['--curve-key', 'server.key'], 2, '--pull'), ([*pull, '--curve-server', 'detector.pub'], 2, '--curve-key'),
                                  ([*pull, '--curve-key', 'server.key'], 2, '--curve-server'), ([*listen, '--curve-key', 'server.key'], 2, '--curve-clients'),
                                  ([*pull, '--curve-key', 'server.key', '--curve-server', 'detector.pub', '--curve-clients', 'detector.pub'], 2, 'nobody connects'),
                                  ([*listen, '--curve-key', 'server.key', '--curve-server', 'detector.pub', '--curve-clients', 'detector.pub'], 2, 'nothing connects'),
                                  ([*pull, '--curve-key', 'text', '--curve-server', 'detector.pub'], 1, 'no secret key'),
                                  ([*pull, '--curve-key', 'server.pub', '--curve-server', 'detector.pub'], 1, 'no secret key'),
                                  ([*pull, '--curve-key', 'server.key', '--curve-server', 'detector.key'], 1, 'no public key'),
                                  ([*listen, '--curve-key', 'server.key', '--curve-clients', 'text'], 1, 'text: line 1'),
                                  ([*pull, '--curve-key', 'absent', '--curve-server', 'detector.pub'], 1, 'absent'),
                                  (['--pull', 'kafka://127.0.0.1:1/t', '--write', 'w', '--curve-key', 'server.key'], 2, 'ZeroMQ')):
            done = superstep('serve', 'braggnn', *words, '--for', '0.1', '--http', '127.0.0.1:0', folder=self.folder)
            self.assertEqual(done.returncode, code, (words, done.stdout, done.stderr))
            self.assertIn(part, done.stderr, words)

    def test_with_keys_and_sockets_of_pyzmq(self):
        if not python_with_zmq():
            self.skipTest('pyzmq is not installed')
        self.assertEqual(self.pyzmq('keys', '-', 'server', 'beamline').wait(60), 0)
        self.assertEqual(self.pyzmq('keys', '-', 'stranger', 'nobody').wait(60), 0)
        frames, answers = free_port(), free_port()
        with self.served('braggnn', '--pull', 'tcp://*:' + str(frames), '--publish', 'tcp://*:' + str(answers), '--write', 'answers', '--curve-key',
                         'server.key_secret', '--curve-clients', 'beamline.key') as served:
            heard = self.pyzmq('subscribe', f'tcp://127.0.0.1:{answers}', 'beamline', 'server')
            strangers = [self.pyzmq('subscribe', f'tcp://127.0.0.1:{answers}', *keys) for keys in (('stranger', 'server'), ('-', '-'))]
            for listener in (heard, *strangers):
                self.assertEqual(listener.stdout.readline(), 'listens\n')
            for keys in (('stranger', 'server'), ('-', '-')):
                self.assertEqual(self.pyzmq('push', f'tcp://127.0.0.1:{frames}', *keys).wait(60), 0)
            for attempt in range(60):  # what is published before the listener has shaken hands is lost
                self.assertEqual(self.pyzmq('push', f'tcp://127.0.0.1:{frames}', 'beamline', 'server', f's{attempt}').wait(60), 0)
                if select.select([heard.stdout], [], [], 1)[0]:
                    break
            self.assertEqual(heard.stdout.readline(), 'superstep-answer/1\n')
            for _ in range(600):  # both of the listeners without a key that is known
                with urllib.request.urlopen(served.url + '/metrics', timeout=30) as answer:
                    refused = [line for line in answer.read().decode().splitlines() if line.startswith('superstep_stream_connections_refused_total')]
                if int(refused[0].split()[-1]) >= 2:
                    break
                time.sleep(0.1)
            for listener in strangers:
                listener.kill()
                self.assertEqual(listener.stdout.read(), '')
            code, said, errors = served.end()
        self.assertEqual(code, 0, errors)
        self.assertGreaterEqual(int(refused[0].split()[-1]), 2)
        self.assertIn('is not among those of --curve-clients', errors)
        self.assertIn(f's{attempt}.json', [file.name for file in (self.folder / 'answers').iterdir()])
        self.assertFalse((self.folder / 'answers/s.json').exists(), 'of strangers')
        self.assertNotIn('whoever reaches tcp', errors)

    def test_open_streams_are_warned_of(self):
        done = superstep('serve', 'braggnn', '--pull', 'tcp://*:*', '--publish', 'tcp://*:*', '--for', '0.1', '--http', '127.0.0.1:0', folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('may send frames', done.stderr)
        self.assertIn('may read answers', done.stderr)
        (self.folder / 'tokens').write_text('some-token-1\n')
        (self.folder / 'tokens').chmod(0o644)
        done = superstep('serve', 'mlp', '--token-file', 'tokens', '--for', '0.1', '--http', '127.0.0.1:0', folder=self.folder)
        self.assertIn('everybody on this machine may read tokens', done.stderr)


class Renewals(OfDoors):
    def hangup(self, served, part):
        served.process.send_signal(signal.SIGHUP)
        for line in served.process.stderr:
            if part in line:
                return line
        self.fail('nothing was said of ' + part)

    def test_tokens_are_read_anew(self):
        tokens = self.folder / 'tokens'
        tokens.write_text('first-token\n')
        tokens.chmod(0o600)
        with self.served('mlp', '--token-file', 'tokens', '--protect', 'read') as served:
            def status(token):
                return status_of(served.url + '/v2', headers={'Authorization': f'Bearer {token}'})
            self.assertEqual((status('first-token'), status('other-token')), (200, 401))
            tokens.write_text('other-token\n')
            self.assertIn('as the file says now', self.hangup(served, '--token-file'))
            self.assertEqual((status('first-token'), status('other-token')), (401, 200))
            tokens.write_text('short\n')
            self.assertIn('as before', self.hangup(served, '--token-file'))
            self.assertEqual((status('first-token'), status('other-token')), (401, 200), 'what cannot be read changes nothing')

    @unittest.skipUnless(shutil.which('openssl'), 'openssl is not installed')
    def test_certificates_are_read_anew_while_it_answers(self):
        self.make_certificates()
        first = ssl.create_default_context(cafile=self.folder / 'ca.pem')
        with self.served('mlp', '--tls-cert', 'server.pem', '--tls-key', 'server.key') as served:
            host, port = served.url[8:].split(':')
            kept = first.wrap_socket(socket.create_connection((host, int(port))), server_hostname='localhost')
            ask = b'GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n'
            kept.sendall(ask)
            self.assertIn(b' 200 ', kept.recv(4096))
            self.make_certificates()
            second = ssl.create_default_context(cafile=self.folder / 'ca.pem')
            self.assertEqual((status_of(served.url + '/v2', context=first), status_of(served.url + '/v2', context=second)), (200, 'URLError'))
            self.assertIn('as the file says now', self.hangup(served, '--tls-cert'))
            self.assertEqual((status_of(served.url + '/v2', context=first), status_of(served.url + '/v2', context=second)), ('URLError', 200))
            (self.folder / 'server.key').write_text('none\n')
            self.assertIn('as before', self.hangup(served, '--tls-cert'))
            self.assertEqual(status_of(served.url + '/v2', context=second), 200)
            kept.sendall(ask)
            self.assertIn(b' 200 ', kept.recv(4096), 'who is connected stays so')
            kept.close()
            self.assertEqual(served.end()[0], 0)

    def test_silent_connections_over_grpc_give_their_descriptors_to_who_asks(self):
        if 'without gRPC' in superstep('bench', 'serve', 'grpc://127.0.0.1:1/m', '--seconds', 0.1, folder=self.folder).stderr:
            self.skipTest('built without gRPC')
        port = free_port()
        with self.served('m=mlp', '--grpc', f'127.0.0.1:{port}') as served:
            pid = served.process.pid
            taken = len(os.listdir(f'/proc/{pid}/fd'))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (taken + 40, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
            silent = [socket.create_connection(('127.0.0.1', port), timeout=20) for _ in range(150)]
            time.sleep(1)
            asked = superstep('bench', 'serve', f'grpc://127.0.0.1:{port}/m', '--seconds', 0.2, '--concurrency', 2, folder=self.folder)
            self.assertEqual(asked.returncode, 0, asked.stderr)
            for each in silent:
                each.close()
            code, said, errors = served.end()
            self.assertEqual(code, 0, errors)
            self.assertIn('connections ended as made_room', said)

    @unittest.skipUnless(shutil.which('openssl'), 'openssl is not installed')
    def test_grpc_takes_renewed_certificates_without_a_word(self):
        """The gRPC library watches the files itself: a signal is not needed."""
        if 'without gRPC' in superstep('bench', 'serve', 'grpc://127.0.0.1:1/m', '--seconds', 0.1, folder=self.folder).stderr:
            self.skipTest('built without gRPC')
        self.make_certificates()
        shutil.copy(self.folder / 'ca.pem', self.folder / 'first.pem')
        port = free_port()
        with self.served('m=mlp', '--tls-cert', 'server.pem', '--tls-key', 'server.key', '--grpc', f'127.0.0.1:{port}') as served:
            def reached(authority):
                return superstep('bench', 'serve', f'grpcs://localhost:{port}/m', '--seconds', 0.1, '--concurrency', 1, '--tls-ca', authority,
                                 folder=self.folder).returncode == 0
            self.assertTrue(reached('first.pem'))
            self.make_certificates()
            for _ in range(60):
                if reached('ca.pem'):
                    break
                time.sleep(0.5)
            self.assertTrue(reached('ca.pem'), 'who trusts the new authority alone')
            self.assertFalse(reached('first.pem'), 'who trusts the old authority alone')
            self.assertEqual(served.end()[0], 0)

    @unittest.skipUnless(shutil.which('openssl'), 'openssl is not installed')
    def test_it_is_reached_under_the_names_of_its_certificate(self):
        self.make_certificates()
        (self.folder / 'server.ext').write_text('subjectAltName=DNS:edge.example.org,DNS:*.lab.example.org,IP:127.0.0.1\n')
        self.openssl('x509', '-req', '-in', 'server.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'server.ext',
                     '-out', 'server.pem')
        context = ssl.create_default_context(cafile=self.folder / 'ca.pem')
        with self.served('mlp', '--tls-cert', 'server.pem', '--tls-key', 'server.key') as served:
            for name, status in (('edge.example.org', 200), ('a.lab.example.org', 200), ('a.b.lab.example.org', 421), ('lab.example.org', 421), ('evil.example', 421)):
                self.assertEqual(status_of(served.url + '/v2', headers={'Host': name}, context=context), status, name)


class Weights(OfDoors):
    def damage(self, file, change):
        """One tensor's bytes, changed by `change(bytearray, begin, end)`; the header stays as it is."""
        data = bytearray(file.read_bytes())
        length = int.from_bytes(data[:8], 'little')
        header = json.loads(data[8:8 + length])
        places = {name: [8 + length + offset for offset in entry['data_offsets']] + [entry['dtype'], entry['shape']]
                  for name, entry in header.items() if name != '__metadata__'}
        change(data, places)
        file.write_bytes(data)
        return header

    def best(self, run='run'):
        return self.folder / run / 'best.safetensors'

    def newest(self, run='run'):
        files = [self.best(run)] if self.best(run).exists() else sorted((self.folder / run / 'checkpoints').glob('*.safetensors'))[-1:]
        return files[0]

    def damage_all(self, run, change):
        for file in [self.best(run)] * self.best(run).exists() + list((self.folder / run / 'checkpoints').glob('*.safetensors')):
            self.damage(file, change)

    def refused(self, part, run='run'):
        for words in (['infer', 'mlp', '--weights', run], ['serve', run, '--http', '127.0.0.1:0', '--for', '0.1']):
            done = superstep(*words, folder=self.folder)
            self.assertEqual(done.returncode, 1, (words, done.stdout, done.stderr))
            self.assertIn(part, done.stderr, words)

    def test_one_flipped_bit_is_seen(self):
        self.train()
        largest = []

        def flip(data, places):
            begin, end = max(places.values(), key=lambda place: place[1] - place[0])[:2]
            largest.append(end - begin)
            data[(begin + end) // 2] ^= 1
        self.damage_all('run', flip)
        self.assertGreater(largest[0], 1000)
        self.refused('SHA-256')

    def test_two_exchanged_tensors_are_seen(self):
        self.train()

        def exchange(data, places):
            alike = {}
            for name, (begin, end, *kind) in sorted(places.items()):
                other = alike.setdefault((end - begin, str(kind)), (begin, end))
                if other != (begin, end) and data[begin:end] != data[other[0]:other[1]]:
                    data[begin:end], data[other[0]:other[1]] = data[other[0]:other[1]], data[begin:end]
                    return
            self.fail('no two tensors of one shape')
        self.damage_all('run', exchange)
        self.refused('SHA-256')

    def without_digest(self, file, change=lambda data, places: None):
        self.damage(file, change)
        data = file.read_bytes()
        length = int.from_bytes(data[:8], 'little')
        header = json.loads(data[8:8 + length])
        del header['__metadata__']['sha256']
        text = json.dumps(header).encode()
        text += b' ' * (-len(text) % 8)
        file.write_bytes(len(text).to_bytes(8, 'little') + text + data[8 + length:])

    def test_runs_of_older_versions_are_served_with_a_word(self):
        self.train()
        for file in [self.best()] * self.best().exists() + list((self.folder / 'run' / 'checkpoints').glob('*.safetensors')):
            self.without_digest(file)
        done = superstep('infer', 'mlp', '--weights', 'run', folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn('no digest', done.stderr)
        with self.served('run') as served:
            self.assertIn('no digest', served.end()[2])

    def test_weights_that_are_no_numbers_or_all_zero_are_refused(self):
        for value, part in ((b'\x00\x00\xc0\x7f', 'not finite'), (b'\x00\x00\x80\x7f', 'not finite'), (b'\x00\x00\x00\x00', 'all weights are zero')):
            self.train('run-' + value.hex())

            def fill(data, places, value=value):
                for begin, end, kind, _ in places.values():
                    if kind == 'F32':
                        data[begin:end] = value * ((end - begin) // 4)
            run = 'run-' + value.hex()
            for file in [self.best(run)] * self.best(run).exists() + list((self.folder / run / 'checkpoints').glob('*.safetensors')):
                self.without_digest(file, fill)
            self.refused(part, run)

    def test_a_swap_to_damaged_weights_changes_nothing(self):
        self.train()
        (self.folder / 'tokens').write_text('correct-horse change\n')
        with self.served('m=run', '--token-file', 'tokens') as served:
            first = served.infer('m')[1]

            def flip(data, places):
                data[max(places.values(), key=lambda place: place[1] - place[0])[0]] ^= 1
            self.damage_all('run', flip)
            status, answer = served.post('/v2/repository/models/m/load', headers={'Authorization': 'Bearer correct-horse'})
            self.assertGreaterEqual(status, 400)
            self.assertIn('SHA-256', answer['error'])
            self.assertEqual(served.infer('m')[1], first)

    def test_a_model_file_is_held_against_the_digest_beside_it(self):
        done = superstep('onnx', 'export', 'mlp', '--out', 'model.onnx', folder=self.folder)
        self.assertEqual(done.returncode, 0, done.stderr)
        import hashlib
        digest = hashlib.sha256((self.folder / 'model.onnx').read_bytes()).hexdigest()
        (self.folder / 'model.onnx.sha256').write_text(f'{digest}  model.onnx\n')
        with self.served('model.onnx') as served:
            self.assertEqual(served.end()[0], 0)
        (self.folder / 'model.onnx.sha256').write_text(f'{digest[:-1]}{"0" if digest[-1] != "0" else "1"}  model.onnx\n')
        done = superstep('serve', 'model.onnx', '--http', '127.0.0.1:0', '--for', '0.1', folder=self.folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('another SHA-256', done.stderr)

    @unittest.skipUnless(shutil.which('openssl'), 'openssl is not installed')
    def test_what_nobody_signed_is_not_served(self):
        done = superstep('train', 'mlp', '--samples', 600, '--epochs', 1, '--batch', 64, '--out', 'run', '--quiet', folder=self.folder)
        self.assertTrue(self.best().exists(), done.stderr)
        openssl = lambda *words: subprocess.run(['openssl', *words], cwd=self.folder, check=True, capture_output=True)  # noqa: E731
        for name in ('key', 'other'):
            openssl('genpkey', '-algorithm', 'ed25519', '-out', f'{name}.pem')
            openssl('pkey', '-in', f'{name}.pem', '-pubout', '-out', f'{name}.pub')

        def sign(*files):
            import hashlib
            lines = [f'{hashlib.sha256((self.folder / "run" / name).read_bytes()).hexdigest()}  {name}\n' for name in files]
            (self.folder / 'run/SHA256SUMS').write_text(''.join(lines))
            openssl('pkeyutl', '-sign', '-rawin', '-inkey', 'key.pem', '-in', 'run/SHA256SUMS', '-out', 'run/SHA256SUMS.sig')

        def serve(key='key.pub'):
            return superstep('serve', 'run', '--http', '127.0.0.1:0', '--for', '0.1', '--verify-key', key, folder=self.folder)

        def refused(part, key='key.pub'):
            done = serve(key)
            self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
            self.assertIn(part, done.stderr)
        refused('is not signed')
        sign('config.json', 'best.safetensors')
        self.assertEqual(serve().returncode, 0, serve().stderr)
        refused('is no signature', 'other.pub')
        refused('no public key', 'key.pem')
        config = (self.folder / 'run/config.json').read_text()
        (self.folder / 'run/config.json').write_text(config + ' ')
        refused('not what was signed')
        (self.folder / 'run/config.json').write_text(config)
        sign('best.safetensors')
        refused('says nothing of config.json')
        sign('config.json', 'best.safetensors')
        (self.folder / 'run/SHA256SUMS').write_text((self.folder / 'run/SHA256SUMS').read_text() + '\n')
        refused('is no signature')

    def test_a_version_that_answers_otherwise_is_not_served(self):
        self.train()
        test = self.folder / 'run/selftest.safetensors'
        whole = test.read_bytes()
        with self.served('run') as served:
            self.assertEqual(served.end()[0], 0)
        test.write_bytes(whole[:-1] + bytes([whole[-1] ^ 64]))
        done = superstep('serve', 'run', '--http', '127.0.0.1:0', '--for', '0.1', folder=self.folder)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn('self-test', done.stderr)

    def test_what_the_training_did_not_have_is_told(self):
        self.train()
        ranges = json.loads((self.folder / 'run/inputs.json').read_text())['inputs']
        (name, of), = ranges.items()
        self.assertLess(of['low'], of['high'])
        with self.served('m=run') as served:
            self.assertEqual(served.infer('m', value=(of['low'] + of['high']) / 2)[0], 200)
            for _ in range(3):
                self.assertEqual(served.infer('m', value=of['high'] + (of['high'] - of['low']))[0], 200)
            with urllib.request.urlopen(served.url + '/metrics', timeout=30) as answer:
                self.assertIn('superstep_outside_training_rows_total{model="m"} 3', answer.read().decode())
            code, _, errors = served.end()
        self.assertEqual(code, 0, errors)
        self.assertEqual(errors.count('outside of the range'), 2, errors)  # at the first, and the count at the end
        self.assertIn('3 rows had inputs outside', errors)

    def test_nan_in_is_told_when_it_comes_out(self):
        with self.served('mlp') as served:
            port = served.get('/v2/models/mlp')['inputs'][0]
            count = 1
            for extent in port['shape'][1:]:
                count *= extent
            for value, binary in ((b'\x00\x00\xc0\x7f', True), (b'\x00\x00\x00\x00', True)):
                head = json.dumps({'parameters': {'binary_data_output': binary},
                                   'inputs': [{'name': port['name'], 'datatype': 'FP32', 'shape': [1] + port['shape'][1:],
                                               'parameters': {'binary_data_size': 4 * count}}]}).encode()
                request = urllib.request.Request(served.url + '/v2/models/mlp/infer', data=head + value * count,
                                                 headers={'Inference-Header-Content-Length': str(len(head))})
                with urllib.request.urlopen(request, timeout=30) as answer:
                    self.assertEqual(answer.status, 200)
            code, _, errors = served.end()
        self.assertEqual(code, 0, errors)
        self.assertIn('1 rows had NaN or infinity in', errors)


NGINX = """
daemon off; error_log stderr; pid {folder}/nginx.pid;
events {{ }}
http {{
  access_log off; client_body_temp_path {folder}; proxy_temp_path {folder}; fastcgi_temp_path {folder}; uwsgi_temp_path {folder};
  scgi_temp_path {folder}; client_max_body_size 64m;
  server {{
    listen 127.0.0.1:{port};
    location / {{ proxy_pass http://127.0.0.1:{backend}; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_request_buffering off; }}
  }}
}}
"""
HAPROXY = """
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{port}
  default_backend back
backend back
  option httpchk
  http-check send meth GET uri /v2/health/ready ver HTTP/1.1 hdr Host localhost
  http-request set-header Host localhost
  server one 127.0.0.1:{backend} check inter 200
"""


class Proxies(OfDoors):
    def behind(self, name, command, text):
        if not shutil.which(name):
            self.skipTest(f'{name} is not installed')
        (self.folder / 'tokens').write_text('correct-horse change\n')
        with self.served('mlp', '--token-file', 'tokens', '--peer-connections', 1024) as served:
            backend, port = int(served.url.rsplit(':', 1)[1]), free_port()
            (self.folder / f'{name}.conf').write_text(text.format(folder=self.folder, port=port, backend=backend))
            proxy = subprocess.Popen([word.format(folder=self.folder) for word in command], cwd=self.folder, stderr=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL)
            try:
                url = f'http://127.0.0.1:{port}'
                for _ in range(200):
                    if status_of(url + '/v2/health/ready') == 200:
                        break
                    time.sleep(0.05)
                self.assertEqual(status_of(url + '/v2/health/ready'), 200)
                direct, served.url = served.url, url
                self.assertEqual(served.infer('mlp', rows=200)[0], 200)
                self.assertEqual(served.post('/v2/models/mlp/rollback')[0], 401, 'a token, whatever stands in front')
                self.assertEqual(status_of(url + '/v2', headers={'Host': 'evil.example'}) in (200, 421), True)
                # What the server refuses ends here, and is no request of somebody else's.
                with socket.create_connection(('127.0.0.1', port)) as client:
                    client.sendall(b'POST /v2/models/mlp/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\n'
                                   b'GET /v2/models/mlp HTTP/1.1\r\nHost: localhost\r\n\r\n')
                    client.settimeout(20)
                    said = b''
                    while piece := client.recv(65536):
                        said += piece
                        if b'\r\n\r\n' in said:
                            break
                    self.assertIn(said.split(b' ')[1][:1], (b'4', b'5'), said)
                served.url = direct
            finally:
                proxy.terminate()
                proxy.wait(20)

    def test_behind_nginx(self):
        self.behind('nginx', ['nginx', '-p', '{folder}', '-c', '{folder}/nginx.conf', '-e', 'stderr'], NGINX)

    def test_behind_haproxy(self):
        self.behind('haproxy', ['haproxy', '-f', '{folder}/haproxy.conf', '-q'], HAPROXY)


def main():
    global PROGRAM
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--program', required=True)
    arguments, rest = parser.parse_known_args()
    PROGRAM = os.path.abspath(arguments.program)
    unittest.main(argv=[sys.argv[0], *rest])


if __name__ == '__main__':
    main()
