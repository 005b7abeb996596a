"""Standardising, and what is kept of it."""

import json
import re
from typing import Any

import numpy as np
import pytest

from nn_manual.data import Names, Standardization, Transform

NO_NUMBERS = '"input.mean" must be a finite number, or lists of them of one length'
NO_STRINGS = "must be a list of strings or null"


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


def test_undo_is_the_way_back() -> None:
    standardization = Standardization(np.array([2.0, 20.0]), np.array([1.0, 10.0]))
    assert standardization.undo(np.array([[0.0, 3.0]])).tolist() == [[2, 50]]


def test_examples_of_another_shape() -> None:
    standardization = Standardization(np.zeros(2), np.ones(2))
    for shape in [(4, 3), (4, 1), (4,), (4, 2, 2)]:
        words = f"an example has shape {shape[1:]}, one of training had (2,)"
        with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
            standardization.apply(np.zeros(shape))
    single = Standardization(np.array(1.0), np.array(2.0))  # of images: one for all pixels
    assert single.apply(np.full((1, 3), 5.0)).tolist() == [[2, 2, 2]]


def test_from_json_is_the_way_back() -> None:
    array = np.random.default_rng(0).standard_normal((5, 2, 3))
    single = Standardization(np.array(0.1), np.array(1 / 3))
    for transform in (
        Transform(Standardization.of(array), single, Names(("a", "b"), None, ("x", "y"))),
        Transform(None, None, Names(None, ("t",), None)),
        Transform(categories=(("a", ("x", "y")),), filled=np.array([0.5, 1 / 3]), has_named_classes=True),
        Transform(),
    ):
        read = Transform.from_json(json.loads(json.dumps(transform.as_json())))
        assert read.as_json() == transform.as_json()
        assert (read.categories, read.has_named_classes) == (transform.categories, transform.has_named_classes)
        assert read.names == transform.names
        for part, written in zip(read[:2], transform[:2], strict=True):
            assert (part is None) == (written is None)
            if part is not None and written is not None:
                assert np.array_equal(part.mean, written.mean)
                assert np.array_equal(part.std, written.std)
                assert part.mean.dtype == part.std.dtype == np.float64


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": None}, '"names" must be an object'),
        ({"names": {"input": None, "target": None}}, '"names.classes" is missing'),
        ({"names": {"input": "ab", "target": None, "classes": None}}, f'"names.input" {NO_STRINGS}'),
        ({"names": {"input": [], "target": None, "classes": None}}, f'"names.input" {NO_STRINGS}'),
        ({"names": {"input": None, "target": [1], "classes": None}}, f'"names.target" {NO_STRINGS}'),
        ({"names": {"input": None, "target": None, "classes": ["a", "a"]}}, '"names.classes" has a name twice'),
        ({"categories": []}, '"categories" must be an object'),
        ({"categories": {"a": None}}, '"categories.a" must be a list of strings'),
        ({"categories": {"a": [1]}}, f'"categories.a" {NO_STRINGS}'),
        ({"has_named_classes": "yes"}, '"has_named_classes" must be true or false'),
        ({"filled": ["a"]}, '"filled" must be a finite number, or lists of them of one length'),
        ({"input": 3}, '"input" must be an object or null'),
        ({"input": {"mean": [1]}}, '"input.std" is missing'),
        ({"target": {"mean": [1], "std": [1, 1]}}, '"target.mean" has shape (1,), "target.std" (2,)'),
        ({"target": {"mean": [1, 1], "std": [1, 0]}}, '"target.std" must be above 0, not 0.0'),
        *(
            ({"input": {"mean": mean, "std": [1]}}, NO_NUMBERS)
            for mean in (["a"], None, [None], [], [[1], [1, 2]], [True], {"a": 1}, [1e400], 10**400)
        ),
    ],
)
def test_what_is_no_transform(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Transform.from_json(Transform().as_json() | changes)


@pytest.mark.parametrize("key", ["input", "target", "names"])
def test_a_missing_part(key: str) -> None:
    content = Transform().as_json()
    del content[key]
    with pytest.raises(ValueError, match=f'^"{key}" is missing$'):
        Transform.from_json(content)
