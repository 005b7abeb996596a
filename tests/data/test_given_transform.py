"""Data sets that are loaded with the transform of another training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from user_files import CSV, FLOAT64, write, write_npz

from nn_manual.data import (
    MNIST,
    Arrays,
    Brackets,
    Dataset,
    Diabetes,
    Digits,
    FashionMNIST,
    Iris,
    LinearTeacher,
    MiddleWord,
    Names,
    Reconstruction,
    Spirals,
    Standardization,
    Text,
    Transform,
)
from nn_manual.errors import DataError
from nn_manual.registry import components

from .test_idx import write_part


def arrays(file: Path, **fields: Any) -> Arrays:
    defaults: dict[str, Any] = {"target": "class", "task": "classification", "standardize": True}
    return Arrays(file, **(defaults | fields))


@pytest.fixture
def data_sets(tmp_path: Path) -> list[Dataset]:
    pixels = np.random.default_rng(0).integers(0, 256, (7, 28, 28), dtype=np.uint8)
    write_part(tmp_path, "train", pixels[:5], np.arange(5))
    write_part(tmp_path, "t10k", pixels[5:], np.array([9, 0]))
    csv = write(tmp_path, CSV)
    npz = write_npz(tmp_path, x=np.arange(24.0).reshape(8, 3), y=np.arange(8.0))
    return [
        *(Digits(), Iris(), Diabetes(), Spirals(num_examples=20), LinearTeacher(num_examples=20), MNIST(tmp_path)),
        *(Reconstruction(Digits()), Brackets(num_examples=20)),
        arrays(csv, input=["height", "age"]),
        arrays(npz, input="x", target="y", task="regression"),
        Text(write(tmp_path, "some text, and some text", "text.txt"), context=2, validation_fraction=0.2),
        MiddleWord(write(tmp_path, "a b a c b a d b a b", "words.txt"), radius=1, num_words=2, validation_fraction=0.4),
    ]


def test_every_data_set_is_in_the_list(data_sets: list[Dataset]) -> None:
    """FashionMNIST reads the files that MNIST does."""
    assert {type(data) for data in data_sets} | {FashionMNIST} == set(components(Dataset).values())


def test_their_own_one_changes_nothing(data_sets: list[Dataset]) -> None:
    for data in data_sets:
        first = data.load(0, FLOAT64)
        again = data.load(0, FLOAT64, first.transform)
        for part, other in zip(first[:2], again[:2], strict=True):
            assert np.array_equal(part.input, other.input)
            assert np.array_equal(part.target, other.target)
        assert again.num_classes == first.num_classes
        assert again.transform.as_json() == first.transform.as_json()


def test_the_numbers_are_those_of_the_given_one(data_sets: list[Dataset]) -> None:
    """Not of one that a data set makes itself, nor of none."""
    for data in data_sets:
        first = data.load(0, FLOAT64)
        if first.train.input.dtype.kind != "f":
            continue
        own = first.transform.input  # images have one mean for all pixels
        shape = first.train.input.shape[1:] if own is None else own.mean.shape
        mean, std = np.full(shape, 3.0), np.full(shape, 4.0)
        plain, given = (
            data.load(0, FLOAT64, first.transform._replace(input=one)).train.input
            for one in (None, Standardization(mean, std))
        )
        assert np.array_equal(given, (plain - 3) / 4), data


def test_a_target_of_classes_is_of_integers(data_sets: list[Dataset]) -> None:
    for data in data_sets:
        split = data.load(0, FLOAT64)
        is_of_classes = split.num_classes is not None
        assert (split.train.target.dtype == np.int64) == is_of_classes, data


def test_images_by_the_mean_of_others(data_sets: list[Dataset]) -> None:
    (images,) = (data for data in data_sets if isinstance(data, MNIST))
    plain = images.load(0, FLOAT64, Transform()).train.input
    assert set(np.unique(plain)) <= set(range(256))
    given = Transform(Standardization(np.array(10.0), np.array(4.0)))
    assert np.array_equal(images.load(0, FLOAT64, given).train.input, (plain - 10) / 4)


def test_a_text_by_the_characters_of_another(tmp_path: Path) -> None:
    text = Text(write(tmp_path, "abca"), context=3, validation_fraction=0.0)
    split = text.load(0, FLOAT64, Transform(names=Names(classes=("c", "b", "x", "a"))))
    assert (split.train.input.tolist(), split.train.target.tolist()) == ([[3, 1, 0]], [[1, 0, 3]])
    assert (split.num_classes, split.transform.names.classes) == (4, ("c", "b", "x", "a"))
    with pytest.raises(DataError, match=r": the text has characters that training didn't have: 'b' at offset 1$"):
        text.load(0, FLOAT64, Transform(names=Names(classes=("c", "a"))))
    for classes in (None, ("a", "bc")):
        with pytest.raises(ValueError, match=r"^is a text, but the classes of training aren't characters$"):
            text.load(0, FLOAT64, Transform(names=Names(classes=classes)))


def test_a_csv_by_the_columns_and_classes_of_another(tmp_path: Path) -> None:
    data = arrays(write(tmp_path, "b,class,a,other\n10,2,1,x\n20,0,2,y\n"), validation_fraction=0.0)
    of_input = Standardization(np.array([0.0, 10.0]), np.array([1.0, 10.0]))
    split = data.load(0, FLOAT64, Transform(of_input, None, Names(("a", "b"), ("class",), ("x", "y", "z"))))
    assert split.train.input.tolist() == [[1, 0], [2, 1]]
    assert split.train.target.tolist() == [2, 0]  # class 1 needn't occur
    assert (split.num_classes, split.transform.names.classes) == (3, ("x", "y", "z"))
    with pytest.raises(DataError, match=r":2: column 'class' holds class 2, training had 2 classes$"):
        data.load(0, FLOAT64, Transform(of_input, None, Names(("a", "b"), ("class",), ("x", "y"))))


def test_indices_are_not_standardised(tmp_path: Path) -> None:
    given = Transform(Standardization(np.array([1.0, 1.0]), np.array([2.0, 2.0])), None, Names(("a", "b")))
    data = arrays(write(tmp_path, "a,b,class\n3,5,0\n"), integer_input=True, standardize=False)
    assert data.load(0, FLOAT64, given).train.input.tolist() == [[3, 5]]
