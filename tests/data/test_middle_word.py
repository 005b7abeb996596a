"""Windows of words and the word in their middle."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from nn_manual.arrays import Array
from nn_manual.data import MiddleWord, Names, Transform
from nn_manual.data.text import python_manual
from nn_manual.errors import DataError

FLOAT32 = np.dtype(np.float32)


def written(folder: Path, content: str) -> Path:
    file = folder / "text.txt"
    file.write_bytes(content.encode())
    return file


def words_of(array: Array, classes: tuple[str, ...] | None) -> list[str]:
    assert classes is not None
    return [" ".join(classes[index] for index in np.atleast_1d(row)) for row in array]


def test_neighbours_and_the_word_between_them(tmp_path: Path) -> None:
    # 10 words for training, 5 for validation. Of b, c and d, which stand twice in training, the first two stay.
    file = written(tmp_path, "The b, the c? the B the c'd d -- c the rare b the!")
    split = MiddleWord(file, radius=1, num_words=3, validation_fraction=1 / 3).load(0, FLOAT32)
    classes = split.transform.names.classes
    assert classes == ("the", "b", "c")
    assert split.num_classes == 3
    assert words_of(split.train.input, classes) == ["the the", "b c", "the the", "c b", "the the", "b c"]
    assert words_of(split.train.target, classes) == ["b", "the", "c", "the", "b", "the"]
    # "rare" isn't there: so b is beside the.
    assert words_of(split.validation.input, classes) == ["c b", "the the"]
    assert words_of(split.validation.target, classes) == ["the", "b"]
    for array in (*split.train, *split.validation):
        assert array.dtype == np.int64
        assert array.flags.c_contiguous


def test_the_words_of_training_are_taken(tmp_path: Path) -> None:
    trained = Transform(names=Names(classes=("b", "x", "a")))
    split = MiddleWord(written(tmp_path, "a a b c a a"), radius=1, validation_fraction=0).load(0, FLOAT32, trained)
    assert split.num_classes == 3
    assert split.train.input.tolist() == [[2, 0], [2, 2], [0, 2]]
    assert split.train.target.tolist() == [2, 0, 2]
    with pytest.raises(ValueError, match=r"^is a text, but the classes of training have no names$"):
        MiddleWord(tmp_path / "text.txt").load(0, FLOAT32, Transform())


def test_the_manual_of_python() -> None:
    data = MiddleWord()
    first, second = data.load(0, FLOAT32), data.load(1, np.dtype(np.float64))
    words = re.findall(r"\w+", python_manual().lower())
    num_train = len(words) - round(0.1 * len(words))
    classes = first.transform.names.classes
    assert classes is not None
    assert first.num_classes == len(classes) == 1000
    known = [[word for word in part if word in classes] for part in (words[:num_train], words[num_train:])]
    counts = Counter(known[0])
    assert [counts[word] for word in classes] == sorted(counts.values(), reverse=True)
    for part, own, other in zip(first[:2], known, second[:2], strict=True):
        assert part.input.shape == (len(own) - 4, *(data.example_shape or ()))
        assert words_of(part.target[:50], classes) == own[2:52]
        assert words_of(part.input[:1], classes) == [" ".join(own[:2] + own[3:5])]
        assert np.array_equal(part.input, other.input)  # whatever the seed and the dtype
        assert np.array_equal(part.target, other.target)


def test_without_validation(tmp_path: Path) -> None:
    split = MiddleWord(written(tmp_path, "a b c"), radius=1, validation_fraction=0).load(0, FLOAT32)
    assert split.validation.input.shape == (0, 2)
    assert split.validation.target.shape == (0,)
    assert split.validation.input.dtype == split.validation.target.dtype == np.int64
    assert split.num_classes == 3  # fewer than num_words


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the training part has 0 words of the 0 most frequent ones, but a window of radius=2 takes 5"),
        ("a b c d", "the training part has 4 words of the 4 most frequent ones, but a window of radius=2 takes 5"),
        (
            "a b c d e f g h i j",
            "the validation part has 0 words of the 9 most frequent ones, but a window of radius=2 takes 5",
        ),
    ],
)
def test_texts_that_are_too_short(tmp_path: Path, content: str, message: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(DataError, match=f"^{re.escape(f'{file}: {message}')}$"):
        MiddleWord(file).load(0, FLOAT32)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"radius": 0}, "radius must be at least 1, not 0"),
        ({"num_words": 0}, "num_words must be at least 1, not 0"),
        ({"validation_fraction": 1.0}, "validation_fraction must be .*"),
    ],
)
def test_settings_out_of_range(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}"):
        MiddleWord(**settings)  # type: ignore[arg-type]  # on purpose
