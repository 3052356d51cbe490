"""Seeds of databases of LMDB, as python-lmdb writes them: python3 make_lmdb_seeds.py tests/fuzz/seeds/sample_source"""

import io
import json
import os
import sys
import tempfile
import zlib

import lmdb
import numpy as np

random = np.random.default_rng(3)
x = random.standard_normal((6, 4)).astype("f4")


def npz(**arrays):
    held = io.BytesIO()
    np.savez(held, **arrays)
    return held.getvalue()


def row(i):
    positions = random.random((3, 3)).round(3)
    packed = lambda array, kind: {"__ndarray__": [list(array.shape), kind, array.ravel().tolist()]}
    row = {"numbers": packed(np.array([8, 1, 1]), "int64"), "positions": packed(positions, "float64"), "energy": -float(i),
           "forces": packed(random.random((3, 3)).round(3), "float64"), "pbc": packed(np.array([False] * 3), "bool")}
    return zlib.compress(json.dumps(row).encode())


def write(name, values):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, name)
        base = lmdb.open(path, subdir=False, map_size=1 << 20, lock=False)
        with base.begin(write=True) as out:
            for key, value in values:
                out.put(key, value)
        base.close()
        # The map is as large as it may become: what no transaction has used is cut off.
        pages = lmdb.open(path, subdir=False, readonly=True, lock=False)
        size = pages.stat()["psize"] * (pages.info()["last_pgno"] + 1)
        pages.close()
        open(os.path.join(sys.argv[1], name), "wb").write(open(path, "rb").read()[:size])


write("arrays.mdb", [(str(i).encode(), npz(x=x[i], label=np.int64(i % 3))) for i in range(6)] + [(b"__len__", b"6")])
write("rows.mdb", [(str(i + 1).encode(), row(i)) for i in range(4)] + [(b"nextid", b"5")])
# One level more than a page of leaves, and a value that has pages of its own.
write("levels.mdb", [(f"{i:03}".encode(), json.dumps({"x": [i, i + 0.5] * (600 if i == 7 else 1), "k": i}).encode()) for i in range(200)])
