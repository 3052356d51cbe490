"""Whatever is given in place of a value, the answer is a superstep.Error that names it."""
import numpy
import pytest

import superstep

MLP = {"samples": 64, "batch": 16, "threads": 1, "progress": False}


@pytest.mark.parametrize("name, call", [
    ("batch", lambda: superstep.Model("mlp").compile(batch=1.5)),
    ("precision", lambda: superstep.Model("mlp").compile(precision=8)),
    ("threads", lambda: superstep.Model("mlp").compile(threads="two")),
    ("memory_limit", lambda: superstep.Model("mlp").compile(memory_limit=-1)),
    ("calibration|mapping", lambda: superstep.Model("mlp").compile(calibration=3)),
    ("optimizer", lambda: superstep.Model("mlp").trainer(optimizer=3)),
    ("learning_rate", lambda: superstep.Model("mlp").trainer(learning_rate="fast")),
    ("seed", lambda: superstep.Model("mlp", seed=-1)),
    ("options", lambda: superstep.Model("mlp", options=5)),
    ("what", lambda: superstep.Model(3)),
    ("what", lambda: superstep.load(None)),
    ("folder", lambda: superstep.Model.from_run(7)),
    ("steps", lambda: superstep.train("mlp", steps="a", **MLP)),
    ("epochs", lambda: superstep.train("mlp", epochs="many", **MLP)),
    ("batch", lambda: superstep.train("mlp", steps=1, **(MLP | {"batch": 0.5}))),
    ("recipe", lambda: superstep.train("mlp", recipe=1, steps=1, **MLP)),
    ("model", lambda: superstep.train(5, steps=1, **MLP)),
    ("'x'", lambda: superstep.load("mlp", threads=1).map([[1.0] * 16])),
    ("'x'", lambda: superstep.load("mlp", threads=1)([[1.0] * 16])),
])
def test_is_refused_by_its_name(name, call):
    with pytest.raises(superstep.Error, match=name) as refused:
        call()
    assert "bad_cast" not in str(refused.value)


def test_numbers_of_numpy_are_numbers():
    session = superstep.load("mlp", batch=numpy.int64(2), threads=numpy.int32(1))
    assert session.plan.batch == 2
