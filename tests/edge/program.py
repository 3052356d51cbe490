"""The program, servers that it runs, and ports: what the tests of the service share."""

import json
import random
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from pathlib import Path


def free_port():
    """One that nobody listens at, and that the system gives to no connection while it is not yet taken."""
    least = int(Path('/proc/sys/net/ipv4/ip_local_port_range').read_text().split()[0])
    draw = random.SystemRandom()
    while True:
        port = draw.randrange(10000, least) if least > 11000 else 0
        with socket.socket() as found:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                found.bind(('127.0.0.1', port))
                return found.getsockname()[1]
            except OSError:
                continue


class Served:
    """A server that runs, with what it says."""

    def __init__(self, program, *words, folder, port=0):
        self.process = subprocess.Popen([program, 'serve', *map(str, words), '--http', f'127.0.0.1:{port}'], cwd=folder,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said, self.url = [], None
        for line in self.process.stdout:
            self.said.append(line)
            if line.startswith('ready at '):
                self.url = line.split()[-1]
                break
        if self.url is None:
            raise RuntimeError('did not start: ' + ''.join(self.said) + self.process.stderr.read())

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        out, errors = self.process.communicate(timeout=60)
        return self.process.returncode, ''.join(self.said) + out, errors

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def post(self, path, body=b'', headers=None):
        request = urllib.request.Request(self.url + path, data=body, headers=headers or {}, method='POST')
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as error:
            return error.code, json.load(error)

    def infer(self, model, rows=1, value=0.5):
        port = self.get(f'/v2/models/{model}')['inputs'][0]
        shape = [rows] + port['shape'][1:]
        count = 1
        for extent in shape:
            count *= extent
        body = {'inputs': [{'name': port['name'], 'datatype': 'FP32', 'shape': shape, 'data': [value] * count}]}
        return self.post(f'/v2/models/{model}/infer', json.dumps(body).encode())
