"""Writes seeds of tables by columns and of what is packed: make_column_seeds.py FOLDER (needs pyarrow, NumPy, Pillow)."""

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
from PIL import Image

folder = Path(sys.argv[1])
n = 12
held = io.BytesIO()
Image.fromarray(np.arange(12, dtype='u1').reshape(2, 2, 3)).save(held, 'png')
table = pa.table({
    'f': pa.array(np.arange(n) / 4, pa.float32()), 'i': pa.array([None if i == 5 else i for i in range(n)], pa.int16()),
    'yes': pa.array([i % 3 == 0 for i in range(n)]), 'gaps': pa.array([None if i % 4 == 1 else i / 2 for i in range(n)]),
    'lists': pa.array([[i, i + 1] for i in range(n)]), 'deep': pa.array([[[1., 2.], [3., 4.]]] * n),
    'fixed': pa.array([[i, i, i] for i in range(n)], pa.list_(pa.int8(), 3)),
    'in': pa.array([{'a': i, 'b': [i]} for i in range(n)]), 'image': pa.array([{'bytes': held.getvalue(), 'path': 'a'}] * n),
    'word': pa.array(['ab' * (i % 3) for i in range(n)])})
numbers = table.select(['f', 'i', 'yes', 'gaps'])
pq.write_table(table, folder / 'table.parquet', row_group_size=7)
pq.write_table(table, folder / 'second.parquet', compression='none', data_page_version='2.0')
pq.write_table(table.select(['i', 'f', 'word']), folder / 'encoded.parquet', compression='zstd', use_dictionary=False,
               column_encoding={'i': 'DELTA_BINARY_PACKED', 'f': 'BYTE_STREAM_SPLIT', 'word': 'DELTA_BYTE_ARRAY'})
pq.write_table(pa.table({'word': table['image'].combine_chunks().field('bytes')}), folder / 'lengths.parquet', use_dictionary=False,
               column_encoding={'word': 'DELTA_LENGTH_BYTE_ARRAY'}, compression='lz4')
for name, packing in [('table.arrow', None), ('lz4.arrow', 'lz4'), ('zstd.arrow', 'zstd')]:
    with ipc.new_file(folder / name, table.schema, options=ipc.IpcWriteOptions(compression=packing)) as out:
        out.write_table(table, max_chunksize=7)
views = numbers.append_column('view', table['word'].cast(pa.string_view())).append_column('said', table['word'].dictionary_encode())
with ipc.new_stream(folder / 'stream.arrow', views.schema) as out:
    out.write_table(views)
csv = b'a,b\n' + b''.join(b'%d,%d\n' % (i, i * i) for i in range(40))
(folder / 'table.csv.gz').write_bytes(gzip.compress(csv[:100], mtime=0) + gzip.compress(csv[100:], mtime=0))
(folder / 'table.csv.zst').write_bytes(pa.compress(csv[:100], 'zstd', asbytes=True) + pa.compress(csv[100:], 'zstd', asbytes=True))
