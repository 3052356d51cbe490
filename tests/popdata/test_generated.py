"""Generated data sets: files that the libraries read, the same bytes each time, something to learn."""

import subprocess
import sys

import numpy as np
import pytest

from poptorch import _drawn_molecules as drawn
from poptorch import _drawn_pictures as pictures
from poptorch import data
from poptorch.__main__ import main


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("name", list(data.DATA_SETS))
def test_the_same_seed_gives_the_same_bytes(name, tmp_path):
    first, second, other = (data.write(name, tmp_path / str(number), samples=12, seed=seed)
                            for number, seed in enumerate((3, 3, 4)))
    assert files(first) == files(second)
    assert all(files(first)[file] != held for file, held in files(other).items() if "meta" not in file)


def test_a_smaller_set_begins_like_a_larger_one():
    labels = np.arange(1300) % 10
    assert np.array_equal(pictures.digits(labels, 5)[:1000], pictures.digits(labels[:1000], 5))


def test_a_molecule_does_not_depend_on_those_beside_it():
    alone, among = drawn.molecules(7, 8, 1)[0], drawn.molecules(0, 20, 1)[7]
    assert all(np.array_equal(alone[name], among[name]) for name in alone)


def test_torchvision_reads_digits_and_clothes(tmp_path):
    torchvision = pytest.importorskip("torchvision")
    for kind in (torchvision.datasets.MNIST, torchvision.datasets.FashionMNIST):
        data.write(kind.__name__, tmp_path, samples=50)
        train, test = kind(tmp_path, download=True), kind(tmp_path, train=False, download=True)
        assert len(train) == 50 and len(test) == 10
        assert train.data.shape == (50, 28, 28) and sorted(set(train.targets.tolist())) == list(range(10))


def test_torchvision_takes_cifar_when_told(tmp_path):
    torchvision = pytest.importorskip("torchvision")
    kind = torchvision.datasets.CIFAR10
    kept = kind.train_list, kind.test_list, kind.meta
    assert not data.accept(tmp_path)
    data.write("cifar-10", tmp_path, samples=53)
    try:
        with pytest.raises(RuntimeError):
            kind(tmp_path)
        assert data.accept(tmp_path)
        train, test = kind(tmp_path, download=True), kind(tmp_path, train=False)
        assert train.data.shape == (53, 32, 32, 3) and len(test) == 10 and train.classes[8] == "ship"
    finally:
        kind.train_list, kind.test_list, kind.meta = kept


def test_pytorch_geometric_reads_molecules(tmp_path):
    pytest.importorskip("torch_geometric")
    try:
        import rdkit  # noqa: F401
        pytest.skip("with rdkit QM9 is read from other files")
    except ImportError:
        pass
    from torch_geometric.datasets import QM9
    data.write("QM9", tmp_path, samples=20)
    read = QM9(str(tmp_path))
    assert len(read) == 20 and read.num_features == 11
    first = read[0]
    assert first.y.shape == (1, 19) and first.pos.shape == (first.num_nodes, 3)
    assert first.edge_attr.shape == (first.num_edges, 4)


def test_a_network_learns_the_digits():
    """Near the class means in pixels two thirds are right; guessing is a tenth."""
    labels = pictures.labels_of(1500, 1)
    drawn = pictures.digits(labels, 1).reshape(1500, -1).astype(np.float32)
    means = np.stack([drawn[:1000][labels[:1000] == digit].mean(0) for digit in range(10)])
    nearest = ((drawn[1000:, None] - means) ** 2).sum(-1).argmin(1)
    right = (nearest == labels[1000:]).mean()
    assert 0.5 < right < 0.99, right


def test_molecules_are_molecules():
    for made in drawn.molecules(0, 40, 0):
        numbers, edges = made["z"], made["edge_index"]
        orders = made["edge_attr"] @ np.array([1, 2, 3, 0])
        bound = np.zeros(len(numbers))
        np.add.at(bound, edges[0], orders)
        assert np.array_equal(bound, [{1: 1, 6: 4, 7: 3, 8: 2, 9: 1}[number] for number in numbers]), "valences"
        assert (numbers > 1).sum() <= 9
        lines = made["pos"][edges[0]] - made["pos"][edges[1]]
        wanted = [drawn._length(*numbers[edge], order) for edge, order in zip(edges.T, orders)]
        assert np.abs(np.linalg.norm(lines, axis=1) / wanted - 1).max() < 0.25
        assert np.isfinite(made["y"]).all()
        assert np.allclose(made["y"][0, 4], made["y"][0, 3] - made["y"][0, 2], atol=1e-5), "the gap"


def test_what_is_there_is_not_overwritten(tmp_path, capsys):
    assert main(["data", "MNIST", "--to", str(tmp_path), "--samples", "10"]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "MNIST" / "raw")
    assert main(["data", "MNIST", "--to", str(tmp_path), "--samples", "10"]) == 1
    assert "--replace" in capsys.readouterr().err
    assert main(["data", "MNIST", "--to", str(tmp_path), "--samples", "20", "--replace"]) == 0
    real = tmp_path / "FashionMNIST" / "raw"
    real.mkdir(parents=True)
    (real / "train-images-idx3-ubyte").write_bytes(b"real")
    for more in ([], ["--replace"]):
        assert main(["data", "FashionMNIST", "--to", str(tmp_path), *more]) == 1
        assert "were not generated" in capsys.readouterr().err
    (tmp_path / "file").write_text("")
    assert main(["data", "QM9", "--to", str(tmp_path / "file"), "--samples", "1"]) == 1
    assert "cannot be written" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", [["data", "ImageNet", "--to", "x"], ["data", "MNIST"],
                                   ["data", "MNIST", "--to", "x", "--seed", "-1"], ["dat"], []])
def test_wrong_calls(wrong):
    try:
        status = main(wrong)
    except SystemExit as ended:
        status = ended.code
    assert status == 2


def test_help_names_every_data_set(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["data", "--help"])
    text = capsys.readouterr().out
    assert ended.value.code == 0 and all(name in text for name in data.DATA_SETS) and "example" in text
    done = subprocess.run([sys.executable, "-W", "ignore", "-m", "poptorch", "--help"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 0 and "data" in done.stdout
