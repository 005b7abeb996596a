"""The figures of a classification and of a regression, beside numbers by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

from nn_manual.use.scores import ClassScores, LabelScores, TargetScores, roc_auc


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
        "target               R2           MAE          RMSE",
        "u                 0.750       0.66667        0.8165",
        "v                 0.000        13.333        14.142",
        "all 2 targets     0.375             7        10.017",
    ]
    assert scores.of_all == pytest.approx((0.375, 7, math.sqrt((2 / 3 + 200) / 2)), rel=1e-15)
    of_all = TargetScores.of(prediction[:, :1], target[:, :1]).lines(["u"])
    assert of_all == ["target        R2           MAE          RMSE", "u          0.750       0.66667        0.8165"]


def test_all_targets_as_scikit_learn_computes_them() -> None:
    prediction, target = np.random.default_rng(0).normal(size=(2, 9, 5))
    r2, mae, rmse = TargetScores.of(prediction, target).of_all
    assert r2 == pytest.approx(r2_score(target, prediction), rel=1e-12)
    assert mae == pytest.approx(mean_absolute_error(target, prediction), rel=1e-12)
    assert rmse == pytest.approx(root_mean_squared_error(target.ravel(), prediction.ravel()), rel=1e-12)


@pytest.mark.parametrize(
    ("count", "more"), [(12, []), (13, ["... and 1 more target"]), (429, ["... and 417 more targets"])]
)
def test_of_many_targets_the_first_have_lines(count: int, more: list[str]) -> None:
    target = np.arange(3.0)[:, np.newaxis] + np.zeros(count)
    lines = TargetScores.of(target + 1, target).lines([f"output_{number}" for number in range(count)])
    assert [line.split()[0] for line in lines[1:13]] == [f"output_{number}" for number in range(12)]
    assert lines[13:-1] == more
    assert lines[-1] == f"all {count} targets    -0.500             1             1"


def test_of_many_labels_the_first_have_lines() -> None:
    target = np.zeros((4, 14))
    target[:, 0] = 1
    lines = LabelScores.of(target, target).lines([f"label_{number}" for number in range(14)])
    assert lines[12:] == [
        "label_11     1.000      0.000    0.000    0.000           0",
        "... and 2 more labels",
        "mean         1.000      0.071    0.071    0.071",
    ]


def test_bad_predictions_leave_blanks_between_the_columns() -> None:
    prediction, target = np.array([[-1234.0, 5e5], [1.0, -5e5]]), np.array([[0.0, 1.0], [1.0, 3.0]])
    assert TargetScores.of(prediction, target).lines(["output_0", "output_1"]) == [
        "target               R2           MAE          RMSE",
        "output_0      -3.05e+06           617        872.57",
        "output_1       -2.5e+11         5e+05         5e+05",
        "all 2 targets -1.25e+11    2.5031e+05    3.5355e+05",
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
