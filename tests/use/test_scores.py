"""The figures of a classification and of a regression, beside numbers by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nn_manual.use.scores import ClassScores, TargetScores, roc_auc


def test_each_class_by_hand() -> None:
    scores = ClassScores.of(np.array([[3, 1, 0], [2, 4, 0], [0, 0, 0]]))
    assert scores.classes == (0, 1)  # the third neither occurs nor is predicted
    assert scores.precision.tolist() == [3 / 5, 4 / 5]
    assert scores.recall.tolist() == [3 / 4, 4 / 6]
    assert scores.num_targets.tolist() == [4, 6]
    f1 = [2 * 3 / 9, 2 * 4 / 11]
    np.testing.assert_allclose(scores.f1, f1, rtol=1e-15)
    np.testing.assert_allclose(scores.mean, [0.7, (3 / 4 + 2 / 3) / 2, sum(f1) / 2], rtol=1e-15)
    np.testing.assert_allclose(scores.weighted_mean, [0.72, 0.7, (4 * f1[0] + 6 * f1[1]) / 10], rtol=1e-15)


def test_a_class_that_is_never_predicted_and_one_that_does_not_occur() -> None:
    scores = ClassScores.of(np.array([[0, 2, 0], [0, 0, 0], [0, 0, 1]]))
    assert scores.classes == (0, 1, 2)
    assert scores.precision.tolist() == [0, 0, 1]
    assert scores.recall.tolist() == [0, 0, 1]
    assert scores.num_targets.tolist() == [2, 0, 1]


def test_a_long_name_leaves_the_line_in_80_columns() -> None:
    lines = ClassScores.of(np.array([[10**7, 0], [0, 1]])).lines(["a\nb" + "x" * 100, "short"])
    assert max(map(len, lines)) == 79
    assert lines[1].startswith(r"a\nbxxxx")
    assert lines[1].endswith("10,000,000")


def test_targets_by_hand() -> None:
    prediction = np.array([[1.0, 10.0], [2.0, 10.0], [6.0, 40.0]])
    target = np.array([[1.0, 20.0], [3.0, 20.0], [5.0, 20.0]])
    scores = TargetScores.of(prediction, target)
    assert scores.r2.tolist() == [1 - 2 / 8, 0]
    np.testing.assert_allclose(scores.mae, [2 / 3, 40 / 3], rtol=1e-15)
    np.testing.assert_allclose(scores.rmse, [math.sqrt(2 / 3), math.sqrt(200)], rtol=1e-15)
    assert scores.lines(["u", "v"]) == [
        "target        R2           MAE          RMSE",
        "u          0.750       0.66667        0.8165",
        "v          0.000        13.333        14.142",
    ]


def test_bad_predictions_leave_blanks_between_the_columns() -> None:
    prediction, target = np.array([[-1234.0, 5e5], [1.0, -5e5]]), np.array([[0.0, 1.0], [1.0, 3.0]])
    assert TargetScores.of(prediction, target).lines(["output_0", "output_1"]) == [
        "target          R2           MAE          RMSE",
        "output_0 -3.05e+06           617        872.57",
        "output_1  -2.5e+11         5e+05         5e+05",
    ]


def test_constant_targets() -> None:
    """Near 0.1 and 7.3, the mean of equal numbers isn't that number."""
    target = np.full((10, 3), [0.1, 7.3, 7.3])
    prediction = target.copy()
    prediction[0, 2] += 1e-9
    assert TargetScores.of(prediction, target).r2.tolist() == [1, 1, 0]
    assert np.isnan(TargetScores.of(prediction[:1], target[:1]).r2).all()


@pytest.mark.parametrize(
    ("scores", "expected"),
    [([0.1, 0.4, 0.35, 0.8], 0.75), ([3.0, 3.0, 3.0, 3.0], 0.5), ([1.0, 2.0, 3.0, 4.0], 1.0)],
)
def test_the_area_under_the_roc_curve(scores: list[float], expected: float) -> None:
    assert roc_auc(np.array(scores), np.array([0, 0, 1, 1])) == expected


def test_one_class_alone_has_no_curve() -> None:
    assert roc_auc(np.array([1.0, 2.0]), np.array([1, 1])) is None
