"""The bill of materials: what SPDX 2.3 asks for is there, names are unique, relationships lead somewhere, and it is the same every time."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]


def written(program, hash_seed):
    """What the tool says, with sets and dictionaries of Python in the order of this seed."""
    return subprocess.run([sys.executable, '-B', SOURCE / 'tools/sbom', '--program', program], check=True, capture_output=True, text=True,
                          env=os.environ | {'PYTHONHASHSEED': str(hash_seed)}).stdout


def main():
    text = written(sys.argv[1], 1)
    for seed in (2, 3, 4, 5):
        assert text == written(sys.argv[1], seed), 'two calls say two things'
    document = json.loads(text)
    for member in ('spdxVersion', 'dataLicense', 'SPDXID', 'name', 'documentNamespace', 'creationInfo', 'packages', 'relationships'):
        assert member in document, member
    ids = [package['SPDXID'] for package in document['packages']]
    assert len(ids) == len(set(ids)), 'one id twice'
    for package in document['packages']:
        assert re.fullmatch(r'SPDXRef-[A-Za-z0-9.-]+', package['SPDXID']), package['SPDXID']
        for member in ('name', 'downloadLocation', 'licenseConcluded', 'licenseDeclared', 'copyrightText'):
            assert package.get(member), (package['name'], member)
    for relation in document['relationships']:
        for end in ('spdxElementId', 'relatedSpdxElement'):
            assert relation[end] in ids + ['SPDXRef-DOCUMENT'], relation
    names = {package['name'] for package in document['packages']}
    assert {'superstep', 'libssl-dev', 'nlohmann-json3-dev', 'libgrpc++-dev'} <= names, sorted(names)
    assert re.fullmatch('[0-9a-f]{64}', document['packages'][0]['checksums'][0]['checksumValue'])
    assert str(Path.home()) not in text and str(SOURCE) not in text, 'a path of this machine'


if __name__ == '__main__':
    main()
