"""Writes seeds of compressed frames as detectors send them: python3 make_stream_seeds.py FOLDER. Needs numpy, h5py,
bitshuffle and lz4: the chunk that the HDF5 filter writes is what a detector sends. Pixel i is 37 i mod 251."""
import struct
import sys
import tempfile
from pathlib import Path

import bitshuffle.h5
import h5py
import lz4.block
import numpy


def head(major, value):
    if value < 24:
        return bytes([major << 5 | value])
    for more, (width, form) in enumerate([(1, '>B'), (2, '>H'), (4, '>I'), (8, '>Q')]):
        if value < 1 << 8 * width:
            return bytes([major << 5 | 24 + more]) + struct.pack(form, value)


def text(value):
    return head(3, len(value)) + value.encode()


def message(pixels, tag, method, packed):
    array = head(6, 40) + head(4, 2) + head(4, pixels.ndim) + b''.join(head(0, extent) for extent in pixels.shape)
    array += head(6, tag) + head(6, 56500) + head(4, 3) + text(method) + head(0, pixels.itemsize) + head(2, len(packed)) + packed
    return (head(5, 4) + text('type') + text('image') + text('series_unique_id') + text('scan-1') + text('image_id') +
            head(0, 3) + text('data') + head(5, 1) + text('threshold_1') + array)


def by_filter(pixels, block):
    """The chunk that the filter writes."""
    with tempfile.NamedTemporaryFile(suffix='.h5') as file:
        with h5py.File(file.name, 'w') as h5:
            h5.create_dataset('x', data=pixels, chunks=pixels.shape, compression=bitshuffle.h5.H5FILTER,
                              compression_opts=(block, bitshuffle.h5.H5_COMPRESS_LZ4))
        with h5py.File(file.name) as h5:
            return h5['x'].id.read_direct_chunk((0,) * pixels.ndim)[1]


def by_blocks(pixels, block):
    data = pixels.tobytes()
    packed = struct.pack('>QI', len(data), block)
    for at in range(0, len(data), block):
        part = data[at:at + block]
        small = lz4.block.compress(part, store_size=False)
        packed += struct.pack('>I', min(len(small), len(part))) + (small if len(small) < len(part) else part)
    return packed


folder = Path(sys.argv[1])
for name, tag in (('u1', 64), ('u2', 69), ('u4', 70), ('f4', 85)):
    for shape in ((5, 7), (130, 101)):
        pixels = (numpy.arange(numpy.prod(shape)) * 37 % 251).astype('<' + name).reshape(shape)
        for method, packed in (('bslz4', by_filter(pixels, 0)), ('lz4', by_blocks(pixels, 4096))):
            (folder / f'{method}_{name}_{shape[0]}').write_bytes(message(pixels, tag, method, packed))
