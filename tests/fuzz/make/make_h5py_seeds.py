#!/usr/bin/env python3
"""Writes small HDF5 files as h5py and pandas write them, each with another part of the format: what fuzz_hdf5
starts from. make_h5py_seeds.py FOLDER; needs h5py, hdf5plugin, pandas and tables."""
import sys
import warnings

import h5py
import hdf5plugin
import numpy as np
import pandas as pd

folder = sys.argv[1] if len(sys.argv) > 1 else "."


def create(name, **options):
    return h5py.File(f"{folder}/{name}", "w", **options)


counts = (np.arange(6 * 8 * 8) ** 2 % 1009).astype("u2").reshape(6, 8, 8)

with create("h5py_strings") as f:
    f.attrs["name"] = "scan 7"
    f.attrs["long"] = "sample holder, " * 20
    f.attrs["fixed"] = np.bytes_("as bytes")
    f["names"] = ["alanine", "x", ""]
    f["names"].attrs["unit"] = "none"
    f["fixed"] = np.array([b"ab", b"c"])
    f["ragged"] = np.array([np.arange(3), np.arange(5)], dtype=object).astype(h5py.vlen_dtype("i4"))

with create("h5py_chunks") as f:
    f.create_dataset("gzip", data=counts, chunks=(1, 8, 8), compression="gzip")
    f.create_dataset("all", data=counts, chunks=(2, 4, 4), compression="gzip", shuffle=True, fletcher32=True)
    f.create_dataset("lzf", data=counts, chunks=(3, 8, 8), compression="lzf")
    f.create_dataset("scaled", data=counts, chunks=(3, 8, 8), scaleoffset=0)
    f.create_dataset("grows", data=counts, maxshape=(None, None, 8), chunks=(2, 4, 8))

with create("h5py_bitshuffle") as f:
    f.create_dataset("entry/data/data", data=counts, chunks=(1, 8, 8), **hdf5plugin.Bitshuffle(cname="lz4"))

with create("h5py_types") as f:
    f["big"] = np.arange(6, dtype=">i4").reshape(2, 3)
    f["half"] = np.array([0.5, -2], "f2")
    f["mask"] = np.array([True, False])
    f["wave"] = np.array([1 + 2j, 3 - 4j], "c8")
    f["table"] = np.array([(1, 2.5, b"one"), (2, 3.5, b"two")], dtype=[("a", "i4"), ("b", "f8"), ("c", "S4")])
    f["pair"] = np.zeros(2, dtype=[("x", "f4", (2, 3))])
    f["level"] = np.array([1, 0], dtype=h5py.enum_dtype({"LOW": 0, "HIGH": 1}, "i1"))
    f["empty"] = h5py.Empty("f4")
    f["point"] = f["big"].ref
    f.attrs["flag"] = True
    f.attrs["scale"] = 0.5
    f.attrs["list"] = np.arange(4)

with create("h5py_links") as f:
    f["a/b/c/data"] = counts[0]
    f["soft"] = h5py.SoftLink("/a/b/c/data")
    f["nowhere"] = h5py.SoftLink("/a/x")
    f["outside"] = h5py.ExternalLink("h5py_types", "/big")
    f["hard"] = f["a/b"]
    f["a/b/up"] = f["a"]
    for i in range(12):
        f[f"many/{i}"] = i

with create("h5py_latest", libver="latest") as f:
    f["x"] = np.arange(5.0)
    f.create_dataset("chunks", data=counts, chunks=(1, 8, 8), maxshape=(None, 8, 8), compression="gzip")
    f.create_dataset("both", data=counts, chunks=(2, 4, 4), maxshape=(None, None, 8))
    for i in range(12):
        f.attrs[f"attribute {i}"] = "text" * i
    for i in range(12):
        f[f"group/{i}"] = np.float32(i)

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    frame = pd.DataFrame({"AUC": np.array([0.25, 0.75], "f4"), "dose": np.array([1.0, 2.0]), "Sample": ["x", "yy"]})
    with pd.HDFStore(f"{folder}/pandas_frames", "w", complevel=9, complib="zlib") as store:
        store.append("y", frame, expectedrows=2)
