"""Standardising, and what is kept of it."""

import json

import numpy as np

from nn_manual.data import Names, Standardization, Transform


def test_by_the_training_part() -> None:
    standardization = Standardization.of([np.array([[1.0, 10.0], [3.0, 30.0]])])
    assert standardization.mean.tolist() == [2, 20]
    assert standardization.std.tolist() == [1, 10]  # the population's
    assert standardization.apply(np.array([[2.0, 50.0]])).tolist() == [[0, 3]]


def test_constant_column_is_divided_by_1() -> None:
    # Ten times 0.1, summed down a column and divided by 10, is not 0.1: the std is 1.4e-17 and not 0.
    train = np.full((10, 2), 0.1)
    assert (train.std(axis=0) > 0).all()
    standardization = Standardization.of([train])
    assert standardization.std.tolist() == [1, 1]
    assert abs(standardization.apply(train)).max() < 1e-16  # the rounding of the mean, a few units of the last place
    # The rounding of 2.1 - 0.1.
    np.testing.assert_allclose(standardization.apply(np.array([[2.1, 0.1]])), [[2, 0]], rtol=0, atol=1e-15)


def test_numbers_whose_squares_are_0() -> None:
    standardization = Standardization.of([np.array([[1e-170], [3e-170]])])
    assert standardization.std.tolist() == [1]


def test_in_slices() -> None:
    train = np.array([[1.0, 7.0], [3.0, 7.0], [8.0, 7.0], [0.0, 7.0], [3.0, 7.0]])
    standardization = Standardization.of([train[:0], train[:2], train[2:2], train[2:]])
    assert standardization.mean.tolist() == [3, 7]
    assert standardization.std.tolist() == [np.sqrt(38 / 5), 1]
    # Each slice is constant, and the column isn't.
    assert Standardization.of([train[:2], train[2:4] + 4]).std[1] == 2


def test_as_json_reads_back_to_the_same_bits() -> None:
    array = np.random.default_rng(0).standard_normal((5, 2, 3))
    single = Standardization(np.array(0.1), np.array(1 / 3))
    transform = Transform(Standardization.of([array]), single, Names(("a", "b"), None, ("x", "y")))
    read = json.loads(json.dumps(transform.as_json()))
    assert np.array_equal(read["input"]["mean"], array.mean(axis=0))
    assert np.array_equal(read["input"]["std"], array.std(axis=0))
    assert read["target"] == {"mean": 0.1, "std": 1 / 3}
    assert read["names"] == {"input": ["a", "b"], "target": None, "classes": ["x", "y"]}
    nothing = {"input": None, "target": None, "names": {"input": None, "target": None, "classes": None}}
    assert Transform().as_json() == nothing
