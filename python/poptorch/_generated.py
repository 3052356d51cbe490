"""`python -m poptorch data NAME --to FOLDER`: data sets drawn here, in the files of the well-known ones.

For trying scripts where nothing can be downloaded: the layouts, sizes and number of classes are those of the real data,
the contents are drawn by the computer. Accuracies on them say that a program works, and nothing about the real data.
"""

import argparse
import io
import json
import os
import pathlib
import sys

_NOTE = "generated.txt"


def _mnist(train, test, seed):
    from . import _drawn_pictures as pictures
    return pictures.idx_files(pictures.digits, train, test, seed)


def _fashion(train, test, seed):
    from . import _drawn_pictures as pictures
    return pictures.idx_files(pictures.clothes, train, test, seed)


def _cifar10(train, test, seed):
    from . import _drawn_pictures as pictures
    return pictures.cifar_files(train, test, seed)


# Molecules that are placed together: their arrays stay in the cache.
_TOGETHER = 128


def _qm9(train, test, seed):
    import torch

    from ._drawn_molecules import molecules
    made = []
    for begin in range(0, train, _TOGETHER):
        for arrays in molecules(begin, min(begin + _TOGETHER, train), seed):
            made.append({name: value if isinstance(value, str) else torch.from_numpy(value)
                         for name, value in arrays.items()})
        if sys.stderr.isatty():
            print(f"\r{len(made):,} of {train:,} molecules", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    held = io.BytesIO()
    torch.save(made, held)
    yield "qm9_v3.pt", held.getvalue()


class _DataSet:
    """One data set: its name, the folder of its files below the root, samples by default, what it shows."""

    def __init__(self, name, folder, train, test, make, what, use):
        self.name, self.folder, self.train, self.test = name, folder, train, test
        self.make, self.what, self.use = make, what, use


DATA_SETS = {made.name: made for made in (
    _DataSet("MNIST", "MNIST/raw", 60000, 10000, _mnist, "digits, 28 x 28", "torchvision.datasets.MNIST(FOLDER)"),
    _DataSet("FashionMNIST", "FashionMNIST/raw", 60000, 10000, _fashion, "clothes, 28 x 28",
             "torchvision.datasets.FashionMNIST(FOLDER)"),
    _DataSet("CIFAR10", "cifar-10-batches-py", 50000, 10000, _cifar10, "things in color, 32 x 32",
             "torchvision.datasets.CIFAR10(FOLDER), after poptorch.data.accept"),
    _DataSet("QM9", "raw", 130831, 0, _qm9, "molecules of up to nine heavy atoms",
             "torch_geometric.datasets.QM9(FOLDER), without rdkit"),
)}


class Refused(Exception):
    """Data that cannot be written, with what to do."""


def find(name):
    """The data set of this name, in any case and with or without hyphens. Refused: another name."""
    plain = name.lower().replace("-", "").replace("_", "")
    for known in DATA_SETS.values():
        if known.name.lower() == plain:
            return known
    raise Refused(f"there is no data set '{name}': {', '.join(DATA_SETS)}")


def write(name, folder, samples=None, seed=0, replace=False):
    """Writes a data set's files below `folder` and returns the folder that has them.

    Args:
        samples: of the training set; the test set has a sixth (a fifth for CIFAR10) as many, at least 10. None: as many as
            the real one.
        replace: overwrite what was generated before. Files that were not generated are never overwritten.

    Refused: files that are there already, a folder that cannot be written.
    """
    data_set = find(name)
    if samples is not None and samples < 1:
        raise Refused(f"--samples {samples}: at least 1")
    train = samples or data_set.train
    test = 0 if not data_set.test else max(10, train * data_set.test // data_set.train)
    target = pathlib.Path(folder).expanduser() / data_set.folder
    _check_target(target, replace)
    try:
        target.mkdir(parents=True, exist_ok=True)
        # The note first: what stands beside it was generated, also when this is stopped half way.
        (target / _NOTE).write_text(f"Drawn by `python -m poptorch data {data_set.name}`, seed {seed}: not the real data.\n")
        for file_name, held in data_set.make(train, test, seed):
            half = target / f".{file_name}.part"
            half.write_bytes(held)
            os.replace(half, target / file_name)
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}") from None
    return target


def _check_target(target, replace):
    if not target.is_dir() or not any(target.iterdir()):
        return
    if not (target / _NOTE).exists():
        raise Refused(f"{target} has files that were not generated: give another folder to --to")
    if not replace:
        raise Refused(f"{target} has generated data already: --replace writes them anew")


def accept(folder):
    """Lets torchvision's CIFAR10 take generated files, whose sums of bytes it compares with the real ones.

    Returns whether there are such files below `folder`.
    """
    listed = pathlib.Path(folder).expanduser() / DATA_SETS["CIFAR10"].folder / "generated.json"
    if not listed.is_file():
        return False
    sums = json.loads(listed.read_text())
    from torchvision.datasets import CIFAR10
    CIFAR10.train_list = [[name, sums[name]] for name in sorted(sums) if name.startswith("data_batch")]
    CIFAR10.test_list = [["test_batch", sums["test_batch"]]]
    CIFAR10.meta = {"filename": "batches.meta", "key": "label_names", "md5": sums["batches.meta"]}
    return True


def parser():
    """The command line."""
    sets = "\n".join(f"  {made.name:13} {made.what}; {made.train:,}" + (f" and {made.test:,}" if made.test else "") +
                     f"\n{'':16}{made.use}" for made in DATA_SETS.values())
    made = argparse.ArgumentParser(
        "python -m poptorch data", formatter_class=argparse.RawDescriptionHelpFormatter, description=__doc__.split("\n\n")[0]
        .split(": ", 1)[1].capitalize() + "\n\nFor trying scripts where nothing can be downloaded. The files have the names, "
        "layouts and sizes of the\nreal ones, so that torchvision and PyTorch Geometric read them; what they show is drawn by "
        "the computer.\nAn accuracy on them says that a program works, and nothing about the real data.",
        epilog=f"data sets (samples for training and for testing):\n{sets}\n\nexamples:\n"
               "  python -m poptorch data MNIST --to ~/.torch/datasets\n"
               "  python -m poptorch data QM9 --to data/QM9 --samples 2000\n\n"
               "The same seed and number of samples give the same bytes. poptorch.data.accept(FOLDER) lets torchvision\n"
               "take CIFAR10's generated files, whose sums it compares; the others need nothing.")
    made.add_argument("name", metavar="NAME", help=", ".join(DATA_SETS))
    made.add_argument("--to", metavar="FOLDER", required=True, help="root folder of the data set, as scripts give it")
    made.add_argument("--samples", metavar="N", type=int, help="samples for training (as many as the real data set)")
    made.add_argument("--seed", metavar="S", type=int, default=0, help="another seed draws other samples (0)")
    made.add_argument("--replace", action="store_true", help="overwrite what was generated there before")
    return made


def main(arguments):
    """Status 0: written, 1: it could not be, 2: the call was wrong."""
    options = parser().parse_args(arguments)
    if options.seed < 0:
        parser().error("--seed: a number from 0")
    try:
        find(options.name)
    except Refused as error:
        parser().error(str(error))
    try:
        target = write(options.name, options.to, options.samples, options.seed, options.replace)
    except Refused as error:
        print(f"poptorch data: {error}", file=sys.stderr)
        return 1
    print(target)
    return 0
