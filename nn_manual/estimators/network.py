"""What a classifier and a regressor have in common: their settings, and the training of a net."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from nn_manual.arrays import Array
from nn_manual.layers import Layer, Linear, ReLU
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Adam, Optimizer
from nn_manual.trainer.evaluation_slices import outputs_of
from nn_manual.trainer.trainer import Trainer


class Network(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """The base of ManualClassifier, whose docstring has the settings, and of ManualRegressor."""

    #: The loss that is lowered; its class, since a setting of scikit-learn's estimators is an argument of __init__.
    _loss: ClassVar[type[Loss]]

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] = (100,),
        activation: Callable[[], Layer] = ReLU,
        *,
        layers: Callable[[int, int], Sequence[Layer]] | None = None,
        optimizer: Callable[..., Optimizer] = Adam,
        lr: float = 0.001,
        batch_size: int = 200,
        epochs: int = 200,
        patience: int | None = None,
        validation_fraction: float = 0.1,
        check_every: int = 1,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.layers = layers
        self.optimizer = optimizer
        self.lr = lr
        self.batch_size = batch_size
        self.epochs = epochs
        self.patience = patience
        self.validation_fraction = validation_fraction
        self.check_every = check_every
        self.random_state = random_state
        self.verbose = verbose

    @contextmanager
    def _unchanged_by_failure(self) -> Iterator[None]:
        """The context of a `fit`. One that fails leaves the estimator as it was: scikit-learn first sets what X has."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _train(
        self, input: Array, target: Array, num_outputs: int, stratify: Array | None
    ) -> tuple[Sequential, list[dict[str, Any]]]:
        """A new model, trained, and the figures of its epochs: `model_` and `history_`."""
        random = check_random_state(self.random_state)
        seed, validation = int(random.randint(2**31 - 1)), None
        if self.patience is not None:
            if not 0 < self.validation_fraction < 1:
                raise ValueError(f"validation_fraction must be above 0 and below 1, not {self.validation_fraction}")
            input, held_out, target, held_out_target = train_test_split(
                input, target, test_size=self.validation_fraction, random_state=random, stratify=stratify
            )
            validation = held_out, held_out_target
        model = Sequential(*self._layers(input.shape[1], num_outputs), seed=seed, dtype=input.dtype)
        if (shape := model.output_shape((2, input.shape[1]))) != (2, num_outputs):
            raise ValueError(f"the layers make {shape[1:]} of an example, and {num_outputs} numbers are needed")
        _check_callable("optimizer", self.optimizer, "a class such as Adam, or a function (model, lr)")
        optimizer = self.optimizer(model, lr=self.lr)
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"optimizer made {optimizer!r}, and must make an Optimizer of nn_manual")
        trainer = Trainer(model, self._loss(), optimizer, check_every=self.check_every)
        history = trainer.fit(
            (input, target),
            validation,
            epochs=self.epochs,
            batch_size=self.batch_size,
            seed=seed,
            patience=self.patience,
            verbose=self.verbose,
        )
        return model, history

    def _layers(self, num_inputs: int, num_outputs: int) -> Sequence[Layer]:
        if self.layers is not None:
            _check_callable("layers", self.layers, "a function (num_inputs, num_outputs) that returns layers")
            layers = self.layers(num_inputs, num_outputs)
            if not isinstance(layers, tuple | list):
                raise TypeError(f"layers made {layers!r}, and must make a list of layers")
            return layers
        _check_callable("activation", self.activation, "a class such as Tanh, or a function without arguments")
        made, width = list[Layer](), num_inputs
        for size in np.atleast_1d(self.hidden_layer_sizes).tolist():
            made += [Linear(width, size), self.activation()]
            width = size
        return [*made, Linear(width, num_outputs)]

    def _outputs(self, X: Any) -> Array:  # noqa: N803 - scikit-learn's name
        """What the net puts out, (examples, outputs). Raises NotFiniteError for a number that overflows."""
        check_is_fitted(self)
        dtype = self.model_.dtype
        input = np.ascontiguousarray(validate_data(self, X, dtype=[dtype], reset=False))
        return outputs_of(self.model_, input)


def _check_callable(name: str, value: object, wanted: str) -> None:
    """Raise TypeError for a setting that can't be called, such as the names that MLPClassifier takes."""
    if not callable(value):
        raise TypeError(f"{name} must be {wanted}, not {value!r}")
