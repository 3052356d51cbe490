"""Estimators with the interface of scikit-learn: in a Pipeline, a GridSearchCV, a cross-validation.

    from superstep.sklearn import SuperstepRegressor
    fitted = SuperstepRegressor(hidden_layer_sizes=(64, 64)).fit(X, y)

Needs scikit-learn 1.6 or later: ``pip install superstep[sklearn]``.
"""

from __future__ import annotations

import os
import pathlib
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy

try:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils import check_random_state
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:
    raise ImportError("superstep.sklearn needs scikit-learn 1.6 or later: pip install 'scikit-learn>=1.6'") from error

from . import _core
from .errors import InvalidArgument, NotFound
from .models import Model, PathLike, Session
from .words import TrainingPrecision

__all__ = ["SuperstepClassifier", "SuperstepRegressor"]

_largest_batch = 256  # rows of a call that predicts


@contextmanager
def _as_file(onnx: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="superstep-") as folder:
        path = pathlib.Path(folder) / "model.onnx"
        path.write_bytes(onnx)
        yield str(path)


class _Compiled:
    """The trained network, compiled when a row is first asked about; in a pickle it is not, and so it is compiled again."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._lock = threading.Lock()

    def session(self, onnx: bytes, precision: TrainingPrecision, threads: int) -> Session:
        with self._lock:
            if self._session is None:
                with _as_file(onnx) as file:
                    model = Model(file)
                    self._session = model.compile(batch=model.fixed_batch or _largest_batch, precision=precision,
                                                  threads=threads)
            return self._session

    def __reduce__(self) -> Any:
        return _Compiled, ()


class _Scale:
    """Columns of mean 0 and deviation 1; a column without spread stays where it is."""

    def __init__(self, values: numpy.ndarray) -> None:
        self.mean = values.mean(axis=0, dtype=numpy.float64)
        spread = values.std(axis=0, dtype=numpy.float64)
        self.spread = numpy.where(spread > 0, spread, 1.0)

    def there(self, values: numpy.ndarray) -> numpy.ndarray:
        scaled: numpy.ndarray = ((values - self.mean) / self.spread).astype(numpy.float32)
        return scaled

    def back(self, values: numpy.ndarray) -> numpy.ndarray:
        scaled: numpy.ndarray = values * self.spread + self.mean
        return scaled


class _Network(BaseEstimator):  # type: ignore[misc]
    """What both estimators are: a network that is trained on rows."""

    def __init__(self, model: PathLike | None = None, *, hidden_layer_sizes: Sequence[int] = (64, 64), activation: str = "relu",
                 optimizer: str = "adam", learning_rate: float = 1e-3, batch_size: int = 32, max_iter: int = 200,
                 tol: float = 1e-4, n_iter_no_change: int = 10, standardize: bool = True, precision: TrainingPrecision = "f32",
                 threads: int = 1, random_state: Any = None, verbose: bool = False) -> None:
        self.model = model
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.standardize = standardize
        self.precision = precision
        self.threads = threads
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self) -> None:
        for name in ("batch_size", "max_iter", "n_iter_no_change"):
            if int(getattr(self, name)) < 1:
                raise InvalidArgument("is below 1", name)
        if not self.learning_rate > 0:
            raise InvalidArgument("is not above 0", "learning_rate")

    def _first_network(self, features: int, outputs: int, seed: int) -> bytes:
        """The user's file, or dense layers with first weights of this seed."""
        if self.model is not None:
            try:
                return pathlib.Path(os.fspath(self.model)).read_bytes()
            except OSError as error:
                raise NotFound("cannot be read", os.fspath(self.model), "give the path of an ONNX file") from error
        with tempfile.TemporaryDirectory(prefix="superstep-") as folder:
            file = pathlib.Path(folder) / "model.onnx"
            _core.write_dense_network(file, [features, *map(int, self.hidden_layer_sizes), outputs], self.activation, seed)
            return file.read_bytes()

    def _train(self, X: numpy.ndarray, y: numpy.ndarray, outputs: int, loss: str) -> None:
        """Trains on rows that are scaled already; leaves the trained network in ``onnx_``."""
        self._check_parameters()
        random = check_random_state(self.random_state)
        seed = int(random.randint(numpy.iinfo(numpy.int32).max))
        batch = min(int(self.batch_size), len(X))
        with _as_file(self._first_network(X.shape[1], outputs, seed)) as file:
            model = Model(file, loss=loss, seed=seed)
            batch = model.fixed_batch or batch
            trainer = model.trainer(batch=batch, optimizer=self.optimizer, learning_rate=self.learning_rate,
                                    precision=self.precision, threads=self.threads)
            if len(trainer.inputs) != 2:
                raise InvalidArgument(f"takes {', '.join(map(str, trainer.inputs))}: one input and one target are needed", "model")
            values = [_shaped(array, port) for array, port in zip((X, y), trainer.inputs, strict=True)]
            self.loss_curve_ = self._epochs(trainer, values, batch, random)
            model.take_parameters(trainer)
            trained = pathlib.Path(file).with_name("trained.onnx")
            model.write_onnx(trained)
            self.onnx_ = trained.read_bytes()
        self.n_iter_ = len(self.loss_curve_)
        self._compiled = _Compiled()

    def _epochs(self, trainer: Any, values: list[numpy.ndarray], batch: int, random: Any) -> list[float]:
        """Passes over the rows, each in an order of its own; the last batch is filled up with rows from the front of the order."""
        rows, losses, best, since = len(values[0]), [], numpy.inf, 0
        for epoch in range(int(self.max_iter)):
            order = random.permutation(rows)
            order = numpy.resize(order, -(-rows // batch) * batch)
            steps = [trainer.step(*(value[order[i:i + batch]] for value in values)) for i in range(0, len(order), batch)]
            losses.append(float(numpy.mean(steps)))
            if self.verbose:
                print(f"epoch {epoch + 1}: loss {losses[-1]:.6g}")
            since = 0 if losses[-1] < best - self.tol else since + 1
            best = min(best, losses[-1])
            if since >= int(self.n_iter_no_change):
                break
        return losses

    def _outputs(self, X: Any) -> numpy.ndarray:
        """What the network gives for rows, as they were scaled when it was trained."""
        check_is_fitted(self, "onnx_")
        X = validate_data(self, X, reset=False, dtype=numpy.float64)
        session = self._compiled.session(self.onnx_, self.precision, self.threads)
        rows = self._scale.there(X) if self._scale is not None else X.astype(numpy.float32)
        return numpy.asarray(session.map(_shaped(rows, session.inputs[0])), dtype=numpy.float64)

    def save_onnx(self, file: PathLike) -> None:
        """Writes the trained network. Its inputs are scaled rows where `standardize` is set: ``scale_`` says how."""
        check_is_fitted(self, "onnx_")
        pathlib.Path(os.fspath(file)).write_bytes(self.onnx_)

    @property
    def scale_(self) -> tuple[numpy.ndarray, numpy.ndarray] | None:
        """Mean and deviation of the columns of X, which are taken from them first; None: X is used as it is."""
        check_is_fitted(self, "onnx_")
        return None if self._scale is None else (self._scale.mean, self._scale.spread)


def _shaped(rows: numpy.ndarray, port: Any) -> numpy.ndarray:
    """Rows in the shape and type of a port: features become channels, rows and columns where the network has them."""
    inner = tuple(port.shape[1:])
    if int(numpy.prod(inner)) != int(numpy.prod(rows.shape[1:])):
        raise InvalidArgument(f"a row has {int(numpy.prod(rows.shape[1:]))} values", f"'{port.name}'", f"a row of it is {port}")
    return numpy.ascontiguousarray(rows.reshape(len(rows), *inner).astype(port.dtype, copy=False))


class SuperstepRegressor(RegressorMixin, _Network):  # type: ignore[misc]
    """A network that gives numbers, trained here.

    Args:
        model: an ONNX file with one input and one output, trained from the weights that it has; None: dense layers.
        hidden_layer_sizes: of dense layers.
        activation: between them: ``"relu"``, ``"silu"``, ``"gelu"``.
        optimizer, precision, threads: as of ``Model.trainer``.
        learning_rate: of every step.
        batch_size: rows per step; fewer where there are fewer.
        max_iter: passes over the data.
        tol, n_iter_no_change: it ends where the mean loss of a pass has not fallen by `tol` for so many passes.
        standardize: columns of X, and of y, are brought to mean 0 and deviation 1 first, and answers back.
        random_state: of first weights and of the order of rows: the same gives the same bits on as many threads.
        verbose: print the loss of every pass.

    Attributes:
        onnx_: the trained network, the bytes of an ONNX file (``save_onnx``).
        loss_curve_: mean loss of each pass.
        n_iter_: passes made.
        n_features_in_: columns of X.
    """

    def fit(self, X: Any, y: Any) -> SuperstepRegressor:
        """Trains on rows X [n, features] and y [n] or [n, outputs]."""
        X, y = validate_data(self, X, y, dtype=numpy.float64, multi_output=True, y_numeric=True)
        self._flat = y.ndim == 1
        wanted = y.reshape(len(y), -1)
        self._scale = _Scale(X) if self.standardize else None
        self._target_scale = _Scale(wanted) if self.standardize else None
        rows = self._scale.there(X) if self._scale else X.astype(numpy.float32)
        wanted = self._target_scale.there(wanted) if self._target_scale else wanted.astype(numpy.float32)
        self._train(rows, wanted, wanted.shape[1], "mse")
        return self

    def predict(self, X: Any) -> numpy.ndarray:
        """Numbers of rows X: [n] or [n, outputs], as y was."""
        found = self._outputs(X)
        found = found.reshape(len(found), -1)
        if self._target_scale is not None:
            found = self._target_scale.back(found)
        return found.ravel() if self._flat else found

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class SuperstepClassifier(ClassifierMixin, _Network):  # type: ignore[misc]
    """A network that tells classes apart, trained here by cross-entropy.

    Arguments and attributes are those of ``SuperstepRegressor``; the output of a `model` of one's own is a value per class, before a
    softmax, in the order of ``classes_`` (sorted labels).
    """

    def fit(self, X: Any, y: Any) -> SuperstepClassifier:
        """Trains on rows X [n, features] and labels y [n]."""
        X, y = validate_data(self, X, y, dtype=numpy.float64)
        check_classification_targets(y)
        self.classes_, numbers = numpy.unique(y, return_inverse=True)
        self._scale = _Scale(X) if self.standardize else None
        rows = self._scale.there(X) if self._scale else X.astype(numpy.float32)
        self._train(rows, numbers.astype(numpy.int64), len(self.classes_), "cross_entropy")
        return self

    def decision_function(self, X: Any) -> numpy.ndarray:
        """Logarithms of probabilities up to a constant: [n, classes]; of two classes the difference, [n]."""
        found = self._outputs(X)
        return found[:, 1] - found[:, 0] if found.shape[1] == 2 else found

    def predict_proba(self, X: Any) -> numpy.ndarray:
        """Probabilities: [n, classes]."""
        found = self._outputs(X)
        found = numpy.exp(found - found.max(axis=1, keepdims=True))
        chances: numpy.ndarray = found / found.sum(axis=1, keepdims=True)
        return chances

    def predict(self, X: Any) -> numpy.ndarray:
        """Labels: [n]."""
        found = self._outputs(X)
        labels: numpy.ndarray = self.classes_[found.argmax(axis=1)]
        return labels
