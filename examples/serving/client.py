"""Asks a served model: python3 client.py http://127.0.0.1:8000 MODEL [TOKEN_FILE [CA.pem]]. Needs numpy alone."""
import json
import ssl
import sys
import urllib.request

import numpy

url, token, ca = f'{sys.argv[1]}/v2/models/{sys.argv[2]}', *(sys.argv[3:] + [None, None])[:2]
headers = {'Authorization': 'Bearer ' + open(token).read().split()[0]} if token else {}
trust = ssl.create_default_context(cafile=ca) if url.startswith('https') else None


def ask(where, data=None, more={}):
    return json.load(urllib.request.urlopen(urllib.request.Request(where, data, headers | more), context=trust))


port = ask(url)['inputs'][0]
rows = numpy.random.default_rng(1).random([4] + port['shape'][1:], dtype='float32')
head = json.dumps({'inputs': [{'name': port['name'], 'datatype': 'FP32', 'shape': rows.shape,
                               'parameters': {'binary_data_size': rows.nbytes}}]}).encode()
answer = ask(url + '/infer', head + rows.tobytes(), {'Inference-Header-Content-Length': str(len(head))})
for output in answer['outputs']:
    print(output['name'], output['shape'], numpy.array(output['data'], 'float32')[:4])
