"""Spirals and LinearTeacher."""

import math
from typing import Any

import numpy as np
import pytest

from nn_manual.data import Brackets, Dataset, LinearTeacher, Spirals, Transform

FLOAT64 = np.dtype(np.float64)


@pytest.mark.parametrize("dataset", [Spirals(), LinearTeacher(), Brackets()])
def test_determined_by_the_seed(dataset: Dataset) -> None:
    first, again, other = dataset.load(1, FLOAT64), dataset.load(1, FLOAT64), dataset.load(2, FLOAT64)
    for part, same, different in zip(first.train, again.train, other.train, strict=True):
        assert np.array_equal(part, same)
        assert not np.array_equal(part, different)
    assert len(first.train.input) == 800
    assert len(first.validation.input) == 200
    assert first.train.input.shape[1:] == dataset.example_shape


def test_spirals_lie_on_their_arms() -> None:
    spirals = Spirals(num_examples=90, num_classes=3, turns=1.5, noise=0.0, validation_fraction=0.0)
    split = spirals.load(0, FLOAT64)
    assert (split.num_classes, spirals.num_classes, spirals.example_shape) == (3, 3, (2,))
    assert np.bincount(split.train.target).tolist() == [30, 30, 30]
    radius = np.hypot(*split.train.input.T)
    assert radius.min() >= 0.1 - 1e-15  # one rounding
    assert radius.max() < 1
    # The angle of the definition, without arctan2: both coordinates have its cosine and sine.
    angle = 2 * math.pi * (1.5 * radius + split.train.target / 3)
    # An error of 1e-16 in the radius is one of 2 pi 1.5 times that in the angle.
    np.testing.assert_allclose(split.train.input[:, 0], radius * np.cos(angle), rtol=0, atol=1e-14)
    np.testing.assert_allclose(split.train.input[:, 1], radius * np.sin(angle), rtol=0, atol=1e-14)


def test_noise_of_spirals() -> None:
    quiet, noisy = (Spirals(num_examples=2000, noise=noise, validation_fraction=0) for noise in (0.0, 0.05))
    difference = noisy.load(0, FLOAT64).train.input - quiet.load(0, FLOAT64).train.input
    # The std of 4000 normal numbers has a relative standard error of 1 / sqrt(8000) = 1.1%; five of them.
    assert difference.std() == pytest.approx(0.05, rel=0.056)


def test_linear_teacher_is_linear() -> None:
    teacher = LinearTeacher(num_examples=200, in_features=4, out_features=3, noise=0.0, validation_fraction=0.0)
    train, _, num_classes, transform = teacher.load(0, FLOAT64)
    assert transform == Transform()
    assert num_classes is None
    assert (train.input.shape, train.target.shape) == ((200, 4), (200, 3))
    with_ones = np.hstack([train.input, np.ones((200, 1))])
    weight_and_bias = np.linalg.lstsq(with_ones, train.target)[0]
    # Exactly linear but for the rounding of sums of five terms and of the least squares.
    np.testing.assert_allclose(with_ones @ weight_and_bias, train.target, rtol=0, atol=1e-13)
    assert abs(weight_and_bias).min() > 1e-3  # no weight and no bias is missing


def test_noise_of_linear_teacher() -> None:
    quiet, noisy = (
        LinearTeacher(num_examples=2000, out_features=2, noise=noise, validation_fraction=0.0) for noise in (0.0, 0.5)
    )
    difference = noisy.load(0, FLOAT64).train.target - quiet.load(0, FLOAT64).train.target
    # As for the spirals: 4000 numbers, five standard errors.
    assert difference.std() == pytest.approx(0.5, rel=0.056)
    assert abs(difference.mean()) < 5 * 0.5 / math.sqrt(4000)


@pytest.mark.parametrize(
    ("dataset", "field", "value"),
    [
        (Spirals, "num_classes", 1),
        (Spirals, "num_examples", 1),
        (Spirals, "turns", -1.0),
        (Spirals, "turns", math.inf),
        (Spirals, "noise", -0.1),
        (Spirals, "validation_fraction", 1.0),
        (LinearTeacher, "num_examples", 0),
        (Brackets, "num_examples", 0),
        (Brackets, "length", 0),
        (Brackets, "validation_fraction", 1.0),
        (LinearTeacher, "in_features", 0),
        (LinearTeacher, "out_features", -1),
        (LinearTeacher, "noise", math.nan),
        (LinearTeacher, "validation_fraction", -0.5),
    ],
)
def test_field_out_of_range(dataset: type[Dataset], field: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{field} must be .*, not {value}$"):
        dataset(**{field: value})


def test_brackets_are_paired_as_removing_pairs_pairs_them() -> None:
    """Another way: while there is an opening bracket whose next bracket closes, the two are a pair and go."""
    data = Brackets(num_examples=200, length=12, validation_fraction=0.0)
    split = data.load(0, FLOAT64)
    assert (split.num_classes, data.example_shape, split.transform.names.classes) == (2, (12,), ("alone", "paired"))
    assert split.train.input.dtype == split.train.target.dtype == np.int64
    assert np.unique(split.train.input).tolist() == [0, 1, 2]
    for row, target in zip(split.train.input, split.train.target, strict=True):
        left = [place for place in range(12) if row[place]]
        paired: set[int] = set()
        while found := [k for k in range(len(left) - 1) if row[left[k]] == 1 and row[left[k + 1]] == 2]:
            paired |= {left[found[0]], left[found[0] + 1]}
            del left[found[0] : found[0] + 2]
        assert set(np.flatnonzero(target).tolist()) == paired
