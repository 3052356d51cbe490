"""Estimators: what scikit-learn's own checks ask, pipelines and searches, pickles, and what is refused."""
import pickle

import numpy
import pytest

import superstep

sklearn = pytest.importorskip("sklearn", minversion="1.6")
from sklearn.base import clone  # noqa: E402
from sklearn.datasets import load_diabetes, load_iris  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import check_estimator  # noqa: E402

from superstep.sklearn import SuperstepClassifier, SuperstepRegressor  # noqa: E402


@pytest.mark.parametrize("kind", [SuperstepRegressor, SuperstepClassifier])
def test_passes_the_checks_of_scikit_learn(kind):
    check_estimator(kind(random_state=0))


def test_learns_what_a_line_does_not():
    x = numpy.linspace(-3, 3, 400)[:, None]
    y = numpy.sin(2 * x[:, 0])
    fitted = SuperstepRegressor(random_state=0, max_iter=300, n_iter_no_change=40).fit(x, y)
    assert fitted.score(x, y) > 0.98
    assert fitted.predict(x).shape == (400,) and fitted.n_features_in_ == 1
    assert fitted.loss_curve_[-1] < 0.1 * fitted.loss_curve_[0] and fitted.n_iter_ == len(fitted.loss_curve_)
    both = SuperstepRegressor(random_state=0, max_iter=5).fit(x, numpy.stack([y, -y], 1))
    assert both.predict(x).shape == (400, 2)


def test_a_seed_gives_the_same_bits():
    x, y = load_diabetes(return_X_y=True)
    first, second, other = (SuperstepRegressor(random_state=seed, max_iter=3).fit(x, y).predict(x) for seed in (3, 3, 4))
    assert (first == second).all() and (first != other).any()


def test_stands_in_pipelines_searches_and_cross_validation():
    x, y = load_iris(return_X_y=True)
    names = numpy.array(["setosa", "versicolor", "virginica"])[y]
    line = make_pipeline(StandardScaler(), SuperstepClassifier(max_iter=60, random_state=0))
    assert cross_val_score(line, x, names, cv=3).mean() > 0.9
    search = GridSearchCV(line, {"superstepclassifier__hidden_layer_sizes": [(4,), (32, 32)],
                                 "superstepclassifier__optimizer": ["adam"]}, cv=2, n_jobs=2).fit(x, names)
    assert search.best_score_ > 0.9 and search.predict(x[:1])[0] == "setosa"
    chances = search.predict_proba(x)
    assert chances.shape == (150, 3) and numpy.allclose(chances.sum(axis=1), 1)


def test_takes_a_model_of_ones_own(tmp_path):
    file = tmp_path / "own.onnx"
    SuperstepRegressor(hidden_layer_sizes=(8,), max_iter=1, random_state=0).fit(numpy.eye(4), numpy.arange(4.0)).save_onnx(file)
    x = numpy.random.default_rng(0).normal(size=(200, 4))
    own = SuperstepRegressor(file, max_iter=100, learning_rate=0.01, random_state=0)
    assert clone(own).fit(x, x[:, 0]).score(x, x[:, 0]) > 0.9
    with pytest.raises(superstep.Error, match="3"):
        own.fit(x[:, :3], x[:, 0])


def test_is_pickled_with_what_it_learned():
    x, y = load_iris(return_X_y=True)
    fitted = SuperstepClassifier(max_iter=5, random_state=0).fit(x, y)
    again = pickle.loads(pickle.dumps(fitted))
    assert (again.decision_function(x) == fitted.decision_function(x)).all()
    joblib = pytest.importorskip("joblib")
    assert len(joblib.Parallel(2)(joblib.delayed(fitted.predict)(x[i:i + 10]) for i in (0, 50))) == 2


@pytest.mark.parametrize("given, word", [({"batch_size": 0}, "batch_size"), ({"learning_rate": -1.0}, "learning_rate"),
                                         ({"activation": "step"}, "relu, silu, gelu"), ({"hidden_layer_sizes": (0,)}, "width"),
                                         ({"optimizer": "newton"}, "newton"), ({"model": "none.onnx"}, "none.onnx")])
def test_what_is_wrong_is_an_error_with_its_cure(given, word):
    with pytest.raises(superstep.Error, match=word):
        SuperstepRegressor(**given).fit(numpy.eye(4), numpy.arange(4.0))
