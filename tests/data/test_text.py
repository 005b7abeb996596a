"""Text: windows of characters, the vocabulary, and texts that can't be used."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from no_files import NO_FILES

from nn_manual.data import Text, batches, reading
from nn_manual.data.text import read_text
from nn_manual.errors import DataError

FLOAT32 = np.dtype(np.float32)


def written(folder: Path, content: str | bytes) -> Path:
    """A file of these characters, or of these bytes."""
    file = folder / "text.txt"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


def test_windows_and_their_targets_one_character_on(tmp_path: Path) -> None:
    # 14 characters for training, 6 for validation.
    text = "badcabbage cafe" + "decade"[:5]
    split = Text(written(tmp_path, text), context=4, stride=3, validation_fraction=0.3).load(0, FLOAT32)
    classes = split.transform.names.classes
    assert classes == (" ", "a", "b", "c", "d", "e", "f", "g")
    assert split.num_classes == 8

    def words(array: np.ndarray) -> list[str]:
        return ["".join(classes[index] for index in row) for row in array]

    # Windows begin at 0, 3, 6 and 9: one at 9 takes the characters up to 13, the last of the training part.
    assert words(split.train.input) == ["badc", "cabb", "bage", "e ca"]
    assert words(split.train.target) == ["adca", "abba", "age ", " caf"]
    assert words(split.validation.input) == ["edec"]
    assert words(split.validation.target) == ["deca"]
    for array in (*split.train, *split.validation):
        assert array.dtype == np.int64


def test_the_parts_are_the_head_and_the_tail(tmp_path: Path) -> None:
    text = "ab" * 50
    split = Text(written(tmp_path, text), context=1, stride=1, validation_fraction=0.25).load(0, FLOAT32)
    assert (len(split.train.input), len(split.validation.input)) == (74, 24)  # one less than characters
    assert split.train.input[:, 0].tolist() == [0, 1] * 37
    assert split.validation.input[:, 0].tolist() == [1, 0] * 12  # character 75 is a b


def test_windows_side_by_side_are_contiguous_views_and_overlapping_ones_take_no_memory(tmp_path: Path) -> None:
    file = written(tmp_path, "abcdefgh" * 100)
    beside = Text(file, context=16, stride=16).load(0, FLOAT32).train
    assert beside.input.flags.c_contiguous
    assert beside.target.flags.c_contiguous
    overlapping = Text(file, context=16, stride=1).load(0, FLOAT32).train
    assert overlapping.input.shape == (704, 16)
    assert overlapping.input.strides == overlapping.target.strides == (8, 8)
    assert np.shares_memory(overlapping.input, overlapping.target)
    for batch in batches(overlapping, 100, seed=0, epoch=0):
        assert batch.input.flags.c_contiguous
        assert not np.shares_memory(batch.input, overlapping.input)
        assert np.array_equal(batch.target[:, :-1], batch.input[:, 1:])


def test_without_validation(tmp_path: Path) -> None:
    split = Text(written(tmp_path, "ab\U0010ffffab"), context=4, validation_fraction=0).load(0, FLOAT32)
    assert split.train.input.tolist() == [[0, 1, 2, 0]]
    assert split.train.target.tolist() == [[1, 2, 0, 1]]
    assert split.transform.names.classes == ("a", "b", "\U0010ffff")  # the last that there is
    assert split.validation.input.shape == split.validation.target.shape == (0, 4)
    assert split.validation.input.dtype == np.int64


def test_the_seed_and_the_dtype_change_nothing(tmp_path: Path) -> None:
    text = Text(str(written(tmp_path, "abcab" * 40)), context=8, stride=8)  # type: ignore[arg-type]  # a str is welcome
    first, second = text.load(0, FLOAT32), text.load(1, np.dtype(np.float64))
    for array, same in zip((*first.train, *first.validation), (*second.train, *second.validation), strict=True):
        assert np.array_equal(array, same)
    assert text.example_shape == first.train.input.shape[1:] == (8,)
    assert text.num_classes is None


def test_line_ends_the_byte_order_mark_and_characters_of_four_bytes(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbfa\r\nb\rc\n\r\xf0\x9f\x8c\x8d"
    assert read_text(written(tmp_path, content)) == "a\nb\nc\n\n\N{EARTH GLOBE EUROPE-AFRICA}"


def test_the_manual_of_python() -> None:
    from pydoc_data.topics import topics

    split = Text(context=32, stride=32).load(0, FLOAT32)
    text = "\n".join(text for _, text in sorted(topics.items()))
    num_train = len(text) - round(0.1 * len(text))
    assert len(split.train.input) == (num_train - 1) // 32
    assert len(split.validation.input) == (len(text) - num_train - 1) // 32
    classes = split.transform.names.classes
    assert classes == tuple(sorted(set(text)))
    assert "".join(classes[index] for index in split.train.input[:100].ravel()) == text[:3200]
    assert "".join(classes[index] for index in split.validation.target[0]) == text[num_train + 1 : num_train + 33]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"caf\xe9 au lait", "is not UTF-8: byte 0xe9 at offset 3, invalid continuation byte"),
        (b"\xef\xbb\xbf" + b"x" * 2000 + b"\xff", "is not UTF-8: byte 0xff at offset 2,003, invalid start byte"),
        (
            "",
            "the training part has 0 characters, but one window of context=8 takes 9, with its last target",
        ),
        (
            "a",
            "the training part has 1 character, but one window of context=8 takes 9, with its last target",
        ),
        (
            "a" * 8,
            "the training part has 7 characters, but one window of context=8 takes 9, with its last target",
        ),
        (
            "a" * 80,
            "the validation part has 8 characters, but one window of context=8 takes 9, with its last target",
        ),
        (
            "ab" * 90 + "abcabdabcéabbbbbbbbb",
            "the validation part, from character 180 on, has characters that training didn't have: "
            "'c' at offset 182, 'd' at offset 185, 'é' at offset 189",
        ),
        (
            "a" * 180 + "bcdefghijkkkkkkkkkkk",
            "the validation part, from character 180 on, has characters that training didn't have: "
            "'b' at offset 180, 'c' at offset 181, 'd' at offset 182, 'e' at offset 183, 'f' at offset 184, "
            "'g' at offset 185, 'h' at offset 186, 'i' at offset 187, 'j' at offset 188, 'k' at offset 189",
        ),
        (
            "a" * 180 + "bcdefghijklmnopqrstu",
            "the validation part, from character 180 on, has characters that training didn't have: "
            "'b' at offset 180, 'c' at offset 181, 'd' at offset 182, 'e' at offset 183, 'f' at offset 184, "
            "'g' at offset 185, 'h' at offset 186, 'i' at offset 187, 'j' at offset 188, 'k' at offset 189 and 10 more",
        ),
    ],
)
def test_a_text_that_cannot_be_used(tmp_path: Path, content: str | bytes, message: str) -> None:
    file = written(tmp_path, content)
    with pytest.raises(DataError) as raised:
        Text(file, context=8, stride=8).load(0, FLOAT32)
    assert str(raised.value) == f"{file}: {message}"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="embedded null") as of_python:  # its words depend on its version
        (tmp_path / "a\0b").stat()
    for file, problem in (
        (tmp_path / "none.txt", "No such file or directory"),
        (tmp_path, "Is a directory"),
        (tmp_path / "a\0b", str(of_python.value)),
    ):
        with pytest.raises(DataError) as raised:
            Text(file).load(0, FLOAT32)
        assert str(raised.value) == f"{file}: {problem}".replace("\0", "\\x00")


@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    make(tmp_path / "text.txt")
    with pytest.raises(DataError) as raised:
        Text(tmp_path / "text.txt").load(0, FLOAT32)
    assert str(raised.value) == f"{tmp_path / 'text.txt'}: {words}"


def test_a_file_larger_than_the_memory(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    with file.open("wb") as stream:
        stream.truncate(2**43)
    memory = reading.machine_memory() / 2**30
    with pytest.raises(DataError) as caught:
        Text(file).load(0, FLOAT32)
    assert str(caught.value) == f"{file}: its numbers take 8,192 GiB, and this machine has {memory:,.0f}"


def test_more_characters_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = written(tmp_path, "a" * 101)
    monkeypatch.setattr(reading, "machine_memory", lambda: 800)  # an index takes 8 bytes
    with pytest.raises(DataError) as caught:
        Text(file, context=4).load(0, FLOAT32)
    assert str(caught.value) == f"{file}: its numbers take 0 GiB, and this machine has 0"


def test_the_manual_without_a_training_part() -> None:
    with pytest.raises(DataError, match=r"^pydoc_data.topics: the training part has 0 characters"):
        Text(validation_fraction=0.9999999).load(0, FLOAT32)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"context": 0}, "context must be at least 1, not 0"),
        ({"stride": -1}, "stride must be at least 1, not -1"),
        ({"validation_fraction": 1.0}, "validation_fraction must be at least 0 and less than 1, not 1.0"),
    ],
)
def test_settings_out_of_range(settings: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011 - the whole message is compared below
        Text(**settings)  # type: ignore[arg-type]  # one of them is a float
    assert str(raised.value) == message
