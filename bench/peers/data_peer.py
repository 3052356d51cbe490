#!/usr/bin/env python3
"""PyTorch's DataLoader or webdataset as a peer: reads batches of samples on command (README.md).

    data_peer.py --reader dataloader|webdataset [--batch N] [--threads N] FILE_OR_FOLDER...

dataloader: folders of pictures, npy and npz (mapped into memory where they can be), HDF5, CSV and Parquet, shuffled, with as many
workers as threads. webdataset: tar archives of npy, cls, and pictures, with as many workers, no more than there are archives. Pictures
are brought to the size of the first.
"""
import argparse
import io
import os
import pathlib

import protocol

PICTURES = {".jpg", ".jpeg", ".jpe", ".png", ".tif", ".tiff", ".webp"}


def pixels_of(opened, size=None):
    import numpy
    from PIL import Image
    picture = Image.open(opened).convert("RGB")
    if size and picture.size != size:
        picture = picture.resize(size)
    return numpy.asarray(picture).transpose(2, 0, 1)


class Pictures:
    def __init__(self, paths):
        from PIL import Image
        self.paths = paths
        self.size = Image.open(paths[0]).size

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, row):
        return pixels_of(self.paths[row], self.size)


class Arrays:
    """Arrays of one length, by name; those of HDF5 are opened in each worker."""

    def __init__(self, arrays=None, hdf5=None):
        self.arrays, self.hdf5 = arrays and self.longest(arrays), hdf5
        self.length = max(len(each) for each in self.opened().values())
        if hdf5:
            self.arrays = None

    def longest(self, arrays):
        found = {name: each for name, each in arrays.items() if each.shape}
        rows = max(len(each) for each in found.values())
        return {name: each for name, each in found.items() if len(each) == rows}

    def opened(self):
        if self.arrays is None:
            import h5py
            found = {}
            h5py.File(self.hdf5, "r").visititems(lambda name, each: found.update({name: each} if hasattr(each, "shape") else {}))
            self.arrays = self.longest(found)
        return self.arrays

    def __len__(self):
        return self.length

    def __getitem__(self, row):
        return {name: each[row] for name, each in self.opened().items()}


def table_of(path):
    import numpy
    import pandas
    frame = pandas.read_parquet(path) if path.suffix == ".parquet" else pandas.read_csv(path)
    numbers = frame.select_dtypes("number")
    return Arrays({name: numpy.ascontiguousarray(numbers[name].to_numpy()) for name in numbers})


def dataset_of(paths):
    import numpy
    files = [path for given in paths for path in (sorted(given.rglob("*")) if given.is_dir() else [given])]
    pictures = [path for path in files if path.suffix.lower() in PICTURES]
    if pictures:
        return Pictures(pictures)
    path = files[0]
    if len(files) > 1:
        protocol.absent("several files are read by webdataset alone")
    if path.suffix == ".npy":
        return Arrays({"array": numpy.load(path, mmap_mode="r")})
    if path.suffix == ".npz":
        return Arrays(dict(numpy.load(path)))
    if path.suffix in (".h5", ".hdf5", ".nxs"):
        return Arrays(hdf5=path)
    if path.suffix in (".csv", ".parquet"):
        return table_of(path)
    protocol.absent("no Dataset is written here for %s" % path.name)


def endless(loader):
    while True:
        yield from loader


def dataloader(paths, batch, threads):
    import torch
    from torch.utils.data import DataLoader
    loader = DataLoader(dataset_of(paths), batch_size=batch, shuffle=True, num_workers=threads, drop_last=True, persistent_workers=True)
    if len(loader) == 0:
        protocol.absent("there are fewer samples than a batch")
    return endless(loader), "PyTorch %s DataLoader" % torch.__version__


def decoded(key, data):
    import numpy
    kind = key.rsplit(".", 1)[-1].lower()
    if kind == "npy":
        return numpy.load(io.BytesIO(data))
    if kind in ("cls", "id"):
        return int(data)
    return pixels_of(io.BytesIO(data)) if "." + kind in PICTURES else None


def webdataset(paths, batch, threads):
    import webdataset
    from torch.utils.data import DataLoader

    def sample(values):
        own = {key: decoded(key, data) for key, data in values.items() if not key.startswith("__")}
        return {key: value for key, value in own.items() if value is not None}

    if not all(path.suffix == ".tar" for path in paths):
        protocol.absent("webdataset reads tar archives")
    shards = webdataset.WebDataset([str(path) for path in paths], shardshuffle=False, empty_check=False).shuffle(4096, initial=batch).map(sample)
    loader = DataLoader(shards, batch_size=batch, num_workers=min(threads, len(paths)), drop_last=True, persistent_workers=True)
    return endless(loader), "webdataset %s" % webdataset.__version__


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reader", choices=["dataloader", "webdataset"], required=True)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    protocol.claim_output()
    try:
        batches, name = {"dataloader": dataloader, "webdataset": webdataset}[arguments.reader](arguments.paths, arguments.batch, arguments.threads)
        next(batches)
    except ImportError as error:
        protocol.absent(error)
    except Exception as error:
        protocol.fail("%s: %s" % (type(error).__name__, error))
    protocol.serve({"contender": name, "pid": os.getpid()}, lambda: next(batches))


if __name__ == "__main__":
    main()
