"""Hostile frames at the doors of `serve`: it answers on with the same bits, keeps to its memory, and counts every one."""
import json
import random
import re
import socket
import struct
import subprocess
import threading
import time
import urllib.request
from pathlib import Path

from harness import MEBI, Attempt, Walk

FRAMES = 300
MEMORY = 700 * MEBI  # of the whole program, with --memory 64M
BASE = {'inputs': [{'name': 'patch', 'datatype': 'FP32', 'shape': [1, 1, 11, 11], 'data': [0.5] * 121}]}


def attempts(walk: Walk) -> list:
    rounds = 1 if walk.short else max(2, walk.count // 4)
    found = []
    for number in range(rounds):
        for kind, draw_frame in KINDS.items():
            seed = walk.seed * 1000 + number
            found.append(Attempt('doors', f'{kind}, seed {seed}', lambda d=draw_frame, s=seed: judge(walk, d, s),
                                 f'python3 tools/walk --subject doors --only {kind!r} --seed {walk.seed} --count {walk.count}'))
    return found


# --- frames: bytes to send, and how the connection is left

def head(draw, length, extra='', method='POST', path='/v2/models/m/infer'):
    return f'{method} {path} HTTP/1.1\r\nHost: localhost\r\n{extra}Content-Length: {length}\r\n\r\n'.encode()


def deep_json(draw):
    levels = draw.choice([60, 70, 1000, 50_000, 200_000])
    opening, closing = draw.choice([('[', ']'), ('{"a":', '}'), ('[{"a":', '}]')])
    nest = opening * levels + '1' + closing * draw.choice([levels, 0])
    where = draw.choice(['{"parameters":%s,"inputs":[]}', '{"inputs":%s}', '%s', '{"inputs":[{"name":"patch","datatype":"FP32","shape":[1,1,11,11],"data":%s}]}',
                         '{"outputs":[{"name":"ploc","parameters":%s}],"inputs":[]}', '{"id":%s}'])
    body = (where % nest).encode()
    return head(draw, len(body)) + body


def long_json(draw):
    count = draw.choice([1000, 100_000, 1_500_000])
    element = draw.choice(['0', '0.5', '1e3', '[]', '"a"', 'null', '{}'])
    body = ('{"%s":[%s]}' % (draw.choice(['inputs', 'outputs', 'parameters', 'x']), ','.join([element] * count))).encode()
    return head(draw, len(body)) + body


def mutated_json(draw):
    body = bytearray(json.dumps(BASE).encode())
    for _ in range(draw.randrange(1, 6)):
        at = draw.randrange(len(body))
        what = draw.randrange(3)
        if what == 0:
            body[at] = draw.randrange(256)
        elif what == 1:
            del body[at:at + draw.randrange(1, 20)]
        else:
            body[at:at] = bytes(draw.randrange(256) for _ in range(draw.randrange(1, 8)))
    return head(draw, len(body), draw.choice(['', '', f'Inference-Header-Content-Length: {draw.choice([0, 5, len(body), 10**30, -1])}\r\n'])) + bytes(body)


def smuggled(draw):
    coding = draw.choice(['chunked', 'chunked, chunked', 'identity', 'xchunked', 'gzip', ' chunked', 'Chunked', 'chunked;q=1'])
    headers = draw.sample([f'Transfer-Encoding: {coding}\r\n', f'Content-Length: {draw.choice(["5", "05", "+5", "5,5", "-1", "", "99999999999999999999999"])}\r\n',
                           'Transfer-Encoding : chunked\r\n', 'Transfer-Encoding:\tchunked\r\n', 'Content-Length: 6\r\n', 'X: a\r\n b\r\n', 'Host: evil\r\n'],
                          draw.randrange(1, 5))
    return (b'POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n' + ''.join(headers).encode() +
            b'\r\n0\r\n\r\nPOST /v2/models/m/rollback HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n')


def broken_heads(draw):
    whole = b'GET /v2/models/m HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n'
    data = bytearray(whole)
    for _ in range(draw.randrange(1, 5)):
        data[draw.randrange(len(data))] = draw.randrange(256)
    return draw.choice([bytes(data), bytes(draw.randrange(256) for _ in range(draw.randrange(1, 2000))), b'GET / HTTP/1.1\r\n' + b'a' * 100_000,
                        b'\x16\x03\x01' + bytes(200), b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', whole[:draw.randrange(len(whole))]])


def left_early(draw):
    body = json.dumps(BASE).encode() * draw.choice([1, 1, 200])
    frame = head(draw, draw.choice([len(body), len(body) + 1, 60_000_000])) + body
    return frame[:draw.randrange(1, len(frame))]


def pipelined(draw):
    body = json.dumps(BASE).encode()
    good = head(draw, len(body)) + body
    return b''.join(draw.choice([good, b'GET /v2 HTTP/1.1\r\nHost: localhost\r\n\r\n', b'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n',
                                 b'HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n', head(draw, 0, path='/v2/models/m/rollback')]) for _ in range(draw.randrange(2, 30)))


KINDS = {'deep JSON': deep_json, 'long JSON': long_json, 'mutated JSON': mutated_json, 'two ways to end': smuggled, 'broken heads': broken_heads,
         'left early': left_early, 'one after the other': pipelined}


# --- the server

class Server:
    def __init__(self, walk: Walk, folder: Path):
        line = walk.line('serve m=braggnn --http 127.0.0.1:0 --memory 64M --body 16M --header-time 2 --json served.json', folder)
        self.process = subprocess.Popen(['/bin/sh', '-c', line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.said = ''
        for said in self.process.stdout:
            self.said += said
            if said.startswith('ready at '):
                self.port = int(said.rsplit(':', 1)[1])
                return
        raise RuntimeError('did not start: ' + self.process.stderr.read())

    def answer(self):
        request = urllib.request.Request(f'http://127.0.0.1:{self.port}/v2/models/m/infer', data=json.dumps(BASE).encode())
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.read()

    def memory(self):
        text = Path(f'/proc/{self.process.pid}/status').read_text()
        return int(re.search(r'VmHWM:\s+(\d+) kB', text)[1]) * 1024

    def end(self):
        self.process.terminate()
        out, errors = self.process.communicate(timeout=60)
        return self.process.returncode, self.said + out, errors


def send(port, frame, draw):
    with socket.socket() as client:
        client.settimeout(5)
        client.connect(('127.0.0.1', port))
        if draw.random() < 0.2:  # a reset in place of an end
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        try:
            client.sendall(frame)
            if draw.random() < 0.6:
                client.shutdown(socket.SHUT_WR)
                while client.recv(65536):
                    pass
        except OSError:
            pass


def judge(walk: Walk, draw_frame, seed: int):
    draw, folder = random.Random(seed), walk.fresh('doors')
    server = Server(walk, folder)
    try:
        first = server.answer()
        frames = 40 if walk.short else FRAMES
        heavy = draw_frame in (deep_json, long_json)
        slices = [random.Random(draw.random()) for _ in range(4)]

        def work(own):
            for _ in range(frames // (8 if heavy else 4)):
                send(server.port, draw_frame(own), own)
        threads = [threading.Thread(target=work, args=(own,)) for own in slices]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if server.process.poll() is not None:
                return f'ended with {server.process.returncode}: {server.process.stderr.read()[-200:]}'
            time.sleep(0.02)
        if server.answer() != first:
            return 'answers with other bits than before'
        if server.memory() > MEMORY:
            return f'took {server.memory() / MEBI:.0f} MiB'
        code, said, errors = server.end()
    finally:
        if server.process.poll() is None:
            server.process.kill()
    if code != 0:
        return f'ended with {code}: {errors.strip()[-200:]}'
    metrics = {name: of['value'] for name, of in json.loads((folder / 'served.json').read_text())['metrics'].items()}
    if metrics['http_requests'] != metrics['http_answered'] + metrics['http_refused'] + metrics['http_unanswered']:
        return f'does not add up: {metrics}'
    return None
