"""Asks a served model: python3 client.py http://127.0.0.1:8000 MODEL. Needs numpy alone."""
import json
import sys
import urllib.request

import numpy

url = f'{sys.argv[1]}/v2/models/{sys.argv[2]}'
port = json.load(urllib.request.urlopen(url))['inputs'][0]
rows = numpy.random.default_rng(1).random([4] + port['shape'][1:], dtype='float32')
head = json.dumps({'inputs': [{'name': port['name'], 'datatype': 'FP32', 'shape': rows.shape,
                               'parameters': {'binary_data_size': rows.nbytes}}]}).encode()
request = urllib.request.Request(url + '/infer', data=head + rows.tobytes(),
                                 headers={'Inference-Header-Content-Length': str(len(head))})
answer = json.load(urllib.request.urlopen(request))
for output in answer['outputs']:
    print(output['name'], output['shape'], numpy.array(output['data'], 'float32')[:4])
