"""What the tests of the package share."""
import numpy
import pytest

import superstep


def filled(port, phase=0.0):
    """An array for a port, with different elements."""
    count = int(numpy.prod(port.shape, dtype=int))
    if port.dtype.kind in "iub":
        return (numpy.arange(count) % 2).astype(port.dtype).reshape(port.shape)
    return numpy.sin(phase + 0.1 * numpy.arange(count)).astype(port.dtype).reshape(port.shape)


def error_of(kind, *words):
    """A context in which an error of this kind is raised, with these words in what it says."""
    return pytest.raises(kind, match="(?s)" + "".join(f"(?=.*(?:{word}))" for word in words))


@pytest.fixture(scope="session")
def mlp_file(tmp_path_factory):
    """An ONNX file: a perceptron with an open batch."""
    file = tmp_path_factory.mktemp("files") / "mlp.onnx"
    superstep.Model("mlp").write_onnx(file)
    return file
