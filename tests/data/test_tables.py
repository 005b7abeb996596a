"""A .csv or an .npz that can't be read, or holds what it may not: the message has the place."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from user_files import X, Y, changed, load, message, write, write_npz

from nn_manual.errors import DataError


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", ": is empty; the first line of a CSV file names the columns"),
        ("\n\n", ": is empty; the first line of a CSV file names the columns"),
        ("a,class\n", ": has a header and no rows"),
        ("a,a,class\n1,2,0\n", ":1: column 'a' is there 2 times"),
        ("a,clas\n1,0\n", ": has no column 'class'; did you mean 'clas'?"),
        ("a,b\n1,0\n", ": has no column 'class'; it has 'a', 'b'"),
        ("class\n1\n", ": every column is a target, none is left for the input"),
        ("a,class\n1,0\n2\n", ":3: the header names 2 columns, this row has 1"),
        ("a,class\n1,0\n\n2,1,1\n", ":4: the header names 2 columns, this row has 3"),
        ("a,class\n1,0\nabc,1\n", ":3: column 'a' holds 'abc', not a number"),
        ("a,class\n1,0\n,1\n", ":3: column 'a' holds '', not a number"),
        ("a,class\n1,0\nnan,1\n", ":3: column 'a' holds 'nan', not a finite number"),
        ("a,class\n-inf,0\n", ":2: column 'a' holds '-inf', not a finite number"),
        ("a,class\n1e999,0\n", ":2: column 'a' holds '1e999', not a finite number"),
        ("a,class\n1,0\n\n2,setosa\n", ":4: column 'class' holds 'setosa', not a number"),
        ("a,class\n1,0\n\n2,1.5\n", ":4: column 'class' holds 1.5, not a class 0, 1, 2, ..."),
        ("a,class\n1,0\n2,-1\n", ":3: column 'class' holds -1.0, not a class 0, 1, 2, ..."),
        ("a,class\n1,1\n2,2\n", ":3: column 'class' holds class 2, but class 0 is nowhere"),
        ("a,class\n1,0\n2,255\n3,1\n", ":3: column 'class' holds class 255, but class 2 is nowhere"),
        ('a,class\n1,0\n"2,1\n3,0\n', ":4: unexpected end of data"),
        ("\x1b[2J,b\n", ": has no column 'class'; it has '\\x1b[2J', 'b'"),
        (b"a,class\n\xff,0\n", ":2: is not UTF-8: byte 0xff"),
        (b"PK\x03\x04\x00\x00", ": has no column 'class'"),
    ],
)
def test_bad_csv(tmp_path: Path, content: str | bytes, expected: str) -> None:
    assert message(write(tmp_path, content)).startswith(expected)


def test_a_wide_header_is_not_listed_in_full(tmp_path: Path) -> None:
    file = write(tmp_path, ",".join(f"pixel{number}" for number in range(784)) + "\n")
    text = message(file)
    assert text.startswith(": has no column 'class'; it has 'pixel0', 'pixel1', ")
    assert len(text) < 300


def test_missing_file(tmp_path: Path) -> None:
    for name in ("nowhere.csv", "nowhere.npz"):
        assert message(tmp_path / name, input="x") == ": No such file or directory"


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    for name in ("folder.csv", "folder.npz"):
        (tmp_path / name).mkdir()
        assert message(tmp_path / name, input="x") == ": Is a directory"


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"inputs": X, "y": Y}, ": has no array 'x'; it has 'inputs', 'y'"),
        ({"x": X, "yy": Y}, ": has no array 'y'; did you mean 'yy'?"),
        ({"x": changed(X, (2, 0, 1), np.nan), "y": Y}, ": array 'x'[2, 0, 1] holds nan, not a finite number"),
        ({"x": changed(X, (3, 2, 0), -np.inf), "y": Y}, ": array 'x'[3, 2, 0] holds -inf, not a finite number"),
        ({"x": X, "y": changed(Y, (1,), np.inf)}, ": array 'y'[1] holds inf, not a finite number"),
        ({"x": X, "y": changed(Y, (1,), 0.5)}, ": array 'y'[1] holds 0.5, not a class 0, 1, 2, ..."),
        ({"x": X, "y": Y - 1}, ": array 'y'[0] holds -1.0, not a class 0, 1, 2, ..."),
        ({"x": X, "y": Y + 1}, ": array 'y'[1] holds class 2, but class 0 is nowhere"),
        ({"x": X, "y": np.eye(4)}, ": the classes have shape (4, 4), not (examples,)"),
        ({"x": X[:3], "y": Y}, ": array 'x' has 3 examples, but 'y' has shape (4,)"),
        ({"x": X, "y": np.float64(1)}, ": array 'x' has 4 examples, but 'y' has shape ()"),
        ({"x": Y, "y": Y}, ": array 'x' has shape (4,), not (examples, features)"),
        ({"x": X[:0], "y": Y[:0]}, ": array 'x' of shape (0, 3, 2) is empty"),
        ({"x": X[:, :0], "y": Y}, ": array 'x' of shape (4, 0, 2) is empty"),
        ({"x": X, "y": np.array(["a", "b", "c", "d"])}, ": array 'y' has dtype <U1, not real numbers"),
        ({"x": X * 1j, "y": Y}, ": array 'x' has dtype complex64, not real numbers"),
        ({"x": X, "y": np.array([0, None])}, ": array 'y' has dtype object, not real numbers"),
    ],
)
def test_bad_npz(tmp_path: Path, arrays: dict[str, Any], expected: str) -> None:
    assert message(write_npz(tmp_path, **arrays), input="x", target="y").startswith(expected)


@pytest.mark.parametrize("content", [b"", b"age,class\n1,2\n", b"\x80\x04K\x01."])
def test_not_an_archive(tmp_path: Path, content: bytes) -> None:
    file = write(tmp_path, content, "file.npz")
    assert message(file, input="x", target="y") == ": is not an .npz archive"


def test_cut_off_and_flipped_archives(tmp_path: Path) -> None:
    content = write_npz(tmp_path, x=X, y=Y).read_bytes()
    file = write(tmp_path, content[: len(content) // 2], "file.npz")
    assert message(file, input="x", target="y") == ": is not an .npz archive"
    random = np.random.default_rng(0)
    num_refused = 0
    for _ in range(300):
        corrupt = bytearray(content)
        corrupt[random.integers(len(content))] ^= 1 << random.integers(8)
        write(tmp_path, bytes(corrupt), "file.npz")
        try:
            load(file, input="x", target="y")
        except DataError as error:
            num_refused += 1
            assert str(error).startswith(str(file))  # noqa: PT017 - some flips are in bytes that nobody reads
    assert num_refused > 150  # the arrays, which the checksums cover, and their names are most of the file
