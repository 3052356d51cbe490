"""Files that jax2onnx makes of functions of JAX, and arrays of JAX. Skipped without jax and jax2onnx."""
import warnings

import numpy
import pytest
from support import error_of

jax = pytest.importorskip("jax")
jax2onnx = pytest.importorskip("jax2onnx")

import jax.numpy as jnp

import superstep


def weights(*shape):
    return numpy.random.default_rng(sum(shape)).normal(0, shape[0] ** -0.5, shape).astype(numpy.float32)


DENSE = weights(12, 16), weights(16, 12), weights(12, 5)
KERNEL = weights(3, 3, 2, 4)


def perceptron(x):
    hidden = jax.nn.gelu(x @ DENSE[0]) @ DENSE[1]
    mean = hidden.mean(-1, keepdims=True)
    scaled = (hidden + x - mean) * jax.lax.rsqrt(((hidden - mean) ** 2).mean(-1, keepdims=True) + 1e-5)
    return jax.nn.softmax(scaled @ DENSE[2])


def attention(x):
    scores = jnp.einsum("bqd,bkd->bqk", x, x) / jnp.sqrt(jnp.float32(x.shape[-1]))
    return jnp.einsum("bqk,bkd->bqd", jax.nn.softmax(scores, axis=-1), x)


def convolution(x):
    y = jax.lax.conv_general_dilated(x, KERNEL, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return jnp.tanh(y).sum((1, 2))


FUNCTIONS = [(perceptron, (4, 12)), (attention, (2, 7, 8)), (convolution, (2, 9, 9, 2))]


@pytest.fixture
def opened(tmp_path):
    def open_function(function, shape):
        file = tmp_path / f"{function.__name__}.onnx"
        jax2onnx.to_onnx(function, [shape], return_mode="file", output_path=str(file))
        return superstep.load(file, threads=1)
    return open_function


@pytest.mark.parametrize(("function", "shape"), FUNCTIONS, ids=[function.__name__ for function, _ in FUNCTIONS])
def test_gives_what_jax_gives(opened, function, shape):
    session = opened(function, shape)
    x = jax.random.normal(jax.random.key(1), shape, jnp.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", superstep.CopyWarning)
        found = session(x)
    assert isinstance(found, jax.Array) and found.dtype == jnp.float32
    assert float(jnp.abs(found - function(x)).max()) < 1e-5
    assert (numpy.asarray(found) == session(numpy.asarray(x))).all()


def test_arrays_of_other_types_and_shapes_are_refused(opened):
    session = opened(perceptron, (4, 12))
    name = session.inputs[0].name
    with error_of(superstep.InvalidArgument, f"'{name}'", "not f16"):
        session(jnp.zeros((4, 12), jnp.float16))
    with error_of(superstep.InvalidArgument, f"'{name}'", "not bf16"):
        session(jnp.zeros((4, 12), jnp.bfloat16))
    with error_of(superstep.InvalidArgument, r"not f32\[3,12\]"):
        session(jnp.zeros((3, 12), jnp.float32))
    with error_of(superstep.InvalidArgument, f"'{name}'", "no array|cannot be read"):
        jax.jit(session)(jnp.zeros((4, 12), jnp.float32))


def test_results_stay_when_the_session_is_called_again(opened):
    session = opened(perceptron, (4, 12))
    first = session(jnp.ones((4, 12), jnp.float32))
    kept = numpy.array(first)
    session(jnp.zeros((4, 12), jnp.float32))
    assert (numpy.asarray(first) == kept).all()
