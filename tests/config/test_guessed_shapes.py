"""Shapes before the data is seen: a Linear says how many features there are, and not how many dimensions."""

from __future__ import annotations

import pytest

from nn_manual.arrays import Shape
from nn_manual.config.guessed_shapes import GuessedShape, output_shape_of, shape_behind
from nn_manual.layers import LSTM, BatchNorm1d, Flatten, Layer, Linear, LogSoftmax, Permute, ReLU, TimePool

GUESSED = GuessedShape((16, 2))


@pytest.mark.parametrize("layer", [Linear(2, 4), ReLU()])
def test_a_layer_that_leaves_more_dimensions_as_they_are(layer: Layer) -> None:
    found = output_shape_of(layer, GUESSED)
    assert isinstance(found, GuessedShape)
    assert found == layer.output_shape((16, 2))


@pytest.mark.parametrize("layer", [TimePool(), LSTM(2, 3, batch_first=True), LogSoftmax(2), Permute([0, 2, 1])])
def test_a_layer_that_takes_more_dimensions_alone(layer: Layer) -> None:
    assert output_shape_of(layer, GUESSED) is None
    with pytest.raises(ValueError, match=r"\(16, 2\)"):
        output_shape_of(layer, (16, 2))


def test_a_layer_that_makes_features_of_other_dimensions() -> None:
    assert output_shape_of(Flatten(), GUESSED) is None
    assert output_shape_of(Flatten(), (16, 2)) == (16, 2)


def test_a_layer_that_takes_no_more_dimensions() -> None:
    found: Shape = output_shape_of(BatchNorm1d(2), GUESSED)
    assert found == (16, 2)
    assert not isinstance(found, GuessedShape)


class Tabular(ReLU):
    """Raises another error for more dimensions than two."""

    def output_shape(self, input_shape: Shape) -> Shape:
        return {2: input_shape}[len(input_shape)]


def test_a_layer_of_ones_own_that_raises_another_error_for_more_dimensions() -> None:
    found = output_shape_of(Tabular(), GUESSED)
    assert found == (16, 2)
    assert not isinstance(found, GuessedShape)


def test_other_features_fit_no_number_of_dimensions() -> None:
    with pytest.raises(ValueError, match=r"^Linear takes in_features=3 in the last dimension, the input has shape"):
        output_shape_of(Linear(3, 4), GUESSED)


def test_behind_a_layer_that_does_not_fit() -> None:
    for shape in (None, GUESSED):
        found = shape_behind(Linear(3, 4), shape, 16)
        assert found == (16, 4)
        assert isinstance(found, GuessedShape)
    assert shape_behind(Linear(3, 4), (16, 5, 2), 16) == (16, 5, 4)
    assert shape_behind(ReLU(), None, 16) is None
