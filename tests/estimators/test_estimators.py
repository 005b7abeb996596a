"""A classifier and a regressor: the nets that they train, in pipelines and searches, and what they refuse."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from nn_manual import SGD, GradientMismatch, Linear, ManualClassifier, ManualRegressor, ReLU, Sequential, Tanh
from nn_manual.arrays import Array
from nn_manual.errors import NotFiniteError
from nn_manual.layers import Layer
from nn_manual.losses import CrossEntropyLoss
from nn_manual.optim import Adam
from nn_manual.trainer.trainer import Trainer


class WrongTanh(Tanh):
    """Its derivative is too large by a hundredth."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return super().backward(saved, grad_output) * np.float32(1.01)


def points(num_examples: int = 60, num_classes: int = 3) -> tuple[Array, Array]:
    random = np.random.default_rng(0)
    labels = random.integers(0, num_classes, num_examples)
    return np.eye(num_classes)[labels] * 3 + random.standard_normal((num_examples, num_classes)), labels


def test_it_trains_what_a_trainer_does() -> None:
    X, labels = points()
    names = np.array(["sea", "air", "land"])  # in the order of the alphabet, these are 2, 0, 1
    own = ManualClassifier((8,), epochs=3, batch_size=16, lr=0.01, random_state=5).fit(X, names[labels])
    assert own.classes_.tolist() == ["air", "land", "sea"]
    seed = int(np.random.RandomState(5).randint(2**31 - 1))
    model = Sequential(Linear(3, 8), ReLU(), Linear(8, 3), seed=seed, dtype="float64")
    trainer = Trainer(model, CrossEntropyLoss(), Adam(model, lr=0.01))
    target = np.array([2, 0, 1])[labels]
    history = trainer.fit((X, target), epochs=3, batch_size=16, seed=seed, verbose=False)
    assert own.model_.param_arena.tobytes() == model.param_arena.tobytes()
    assert [record["train_loss"] for record in own.history_] == [record["train_loss"] for record in history]
    prediction = model(X)
    exponential = np.exp(prediction)
    np.testing.assert_allclose(np.exp(own.predict_log_proba(X)), own.predict_proba(X), 1e-12)
    np.testing.assert_allclose(own.predict_proba(X), exponential / exponential.sum(axis=1, keepdims=True), 1e-12)
    assert own.predict(X).tolist() == own.classes_[prediction.argmax(axis=1)].tolist()


def test_a_regressor_takes_one_target_or_several() -> None:
    random = np.random.default_rng(1)
    X = random.standard_normal((50, 2)).astype(np.float32)
    y = X @ np.array([[1.0, 2.0], [3.0, -1.0]])
    several = ManualRegressor((16,), epochs=100, batch_size=10, lr=0.01, random_state=0).fit(X, y)
    assert several.model_.dtype == np.float32
    assert several.predict(X).shape == (50, 2)
    assert several.score(X, y) > 0.98
    one = ManualRegressor((), epochs=100, batch_size=10, lr=0.05, random_state=0).fit(X, y[:, 0])
    assert one.predict(X).shape == (50,)
    # The data are without noise; Adam stops some 1e-4 beside their coefficients.
    np.testing.assert_allclose(one.model_.state_dict()["0.weight"], [[1, 3]], rtol=1e-3)


@pytest.mark.slow
def test_in_pipelines_and_searches() -> None:
    """It alone runs them on real data."""
    wine = load_wine(return_X_y=True)
    settings: dict[str, Any] = {"lr": 0.01, "epochs": 20, "batch_size": 16, "random_state": 0}
    classifier = make_pipeline(StandardScaler(), ManualClassifier((16,), **settings))
    assert cross_val_score(classifier, *wine, cv=3).mean() > 0.93
    grid = {"manualclassifier__hidden_layer_sizes": [(1,), (16,)]}
    search = GridSearchCV(classifier, grid, cv=3).fit(*wine)
    assert search.best_params_["manualclassifier__hidden_layer_sizes"] == (16,)
    net = make_pipeline(StandardScaler(), ManualRegressor((16,), **settings))
    regressor = TransformedTargetRegressor(net, transformer=StandardScaler())
    assert cross_val_score(regressor, *load_diabetes(return_X_y=True), cv=3).mean() > 0.4


def test_layers_and_an_optimizer_of_ones_own() -> None:
    def layers(num_inputs: int, num_outputs: int) -> Sequence[Layer]:
        return Linear(num_inputs, 4), Tanh(), Linear(4, num_outputs)

    own = ManualClassifier(layers=layers, optimizer=SGD, lr=0.5, epochs=20, random_state=0).fit(*points())
    assert [type(layer) for layer in own.model_.layers] == [Linear, Tanh, Linear]
    assert own.score(*points()) > 0.9


@pytest.mark.slow
def test_a_wrong_gradient_ends_fit() -> None:
    """It alone has a wrong gradient in a fit."""
    with pytest.raises(GradientMismatch, match="WrongTanh"):
        ManualClassifier((4,), WrongTanh, epochs=1).fit(*points())
    ManualClassifier((4,), WrongTanh, epochs=1, check_every=0).fit(*points())


def test_a_patience_keeps_the_best_weights() -> None:
    X, labels = points()
    own = ManualClassifier((), lr=5.0, epochs=30, patience=2, validation_fraction=0.3, batch_size=8, random_state=0)
    own.fit(X, labels)
    losses = [record["validation_loss"] for record in own.history_]
    assert len(losses) < 30
    assert losses.index(min(losses)) == len(losses) - 3
    assert sum(np.bincount(labels)) == 60
    last = own.history_[-1]["step"] / len(losses)
    assert last == 6  # 42 examples are trained on, by 8


def test_it_is_silent_unless_it_is_verbose(capsys: pytest.CaptureFixture[str]) -> None:
    ManualClassifier((4,), epochs=1, random_state=0).fit(*points())
    assert capsys.readouterr() == ("", "")
    ManualClassifier((4,), epochs=1, random_state=0, verbose=True).fit(*points())
    assert capsys.readouterr().out.splitlines()[-1].split()[0] == "1/1"


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "epochs must be at least 1, not 0"),
        ({"batch_size": 2.5}, TypeError, "batch_size must be an integer, not 2.5"),
        ({"hidden_layer_sizes": (0,)}, ValueError, "0"),
        ({"lr": -1.0}, ValueError, "lr"),
        ({"activation": "tanh"}, TypeError, "^activation must be a class such as Tanh, .*, not 'tanh'$"),
        ({"optimizer": "adam"}, TypeError, r"^optimizer must be a class such as Adam, .*, not 'adam'$"),
        ({"layers": [Linear(3, 3)]}, TypeError, "^layers must be a function"),
        ({"patience": 2, "validation_fraction": 1.5}, ValueError, "^validation_fraction must be above 0 and below 1"),
        ({"layers": lambda num_inputs, _: [Linear(num_inputs, 2)]}, ValueError, r"^the layers make \(2,\) of"),
        ({"layers": lambda num_inputs, _: [Linear(num_inputs, 4)]}, ValueError, "and 3 numbers are needed$"),
        ({"layers": lambda *_: None}, TypeError, "^layers made None, and must make a list of layers$"),
        ({"optimizer": lambda *_, **__: None}, TypeError, "^optimizer made None, and must make an Optimizer of nn_man"),
        ({"check_every": 1.5}, TypeError, "^check_every must be an integer, not 1.5$"),
    ],
)
def test_what_is_refused(settings: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ManualClassifier(**settings).fit(*points())


@pytest.mark.slow
def test_a_fit_that_fails_changes_nothing() -> None:
    """It alone fails in every way that a fit can."""
    X, labels = points()
    own = ManualClassifier((4,), epochs=1, random_state=0)
    own.set_params(activation=WrongTanh)
    with pytest.raises(GradientMismatch):
        own.fit(X, labels)
    with pytest.raises(NotFittedError):
        own.predict(X)
    own.set_params(activation=Tanh).fit(X, np.array(["a", "b", "c"])[labels])
    before = own.predict_proba(X)
    own.set_params(activation=WrongTanh)
    with pytest.raises(GradientMismatch):
        own.fit(np.hstack([X, X]), labels)
    assert own.classes_.tolist() == ["a", "b", "c"]
    assert np.array_equal(own.predict_proba(X), before)


def test_a_fit_of_a_regressor_that_fails_changes_nothing() -> None:
    X, _ = points()
    own = ManualRegressor((4,), epochs=1, random_state=0).fit(X, X[:, 0])
    before = own.predict(X)
    own.set_params(lr=-1.0)
    with pytest.raises(ValueError, match="lr"):
        own.fit(np.hstack([X, X]), X)
    assert np.array_equal(own.predict(X), before)


def test_a_rare_class_is_named() -> None:
    X, labels = points()
    names = np.array(["a", "b", "c"], dtype=object)[labels]
    names[0] = "rare"
    with pytest.raises(ValueError, match=r"^class 'rare' has one example: with a patience, "):
        ManualClassifier(patience=2, epochs=1).fit(X, names)


def test_outputs_that_overflow() -> None:
    own = ManualClassifier((), epochs=1, random_state=0).fit(*points())
    own.model_.param_arena[...] = 10
    with np.errstate(over="ignore", invalid="ignore"), pytest.raises(NotFiniteError, match="for example 1, counted"):
        own.predict(np.array([[0, 0, 0], [1e308, 1e308, 1e308]]))


def test_one_class_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^y has one class alone, 'a': there is nothing to tell apart$"):
        ManualClassifier().fit([[0.0], [1.0]], ["a", "a"])


@pytest.mark.slow
def test_without_checks_torch_is_not_loaded() -> None:
    """It alone trains an estimator in a process of its own."""
    code = """
import sys
from nn_manual import ManualRegressor
ManualRegressor((2,), epochs=1, check_every=0).fit([[0.0], [1.0]], [0.0, 1.0])
print("torch" in sys.modules)
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"
