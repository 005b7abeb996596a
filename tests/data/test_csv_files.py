"""A .csv that can't be read, or holds what it may not: the message has the place."""

import gzip
import io
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from no_files import NO_FILES
from user_files import CSV, load, message, write

from nn_manual.data import csv_files, csv_records, reading
from nn_manual.errors import DataError


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", ": is empty; the first line of a CSV file names the columns"),
        ("\n\n", ": is empty; the first line of a CSV file names the columns"),
        ("a,class\n", ": has a header and no rows"),
        ("a,a,class\n1,2,0\n", ":1: column 'a' occurs 2 times"),
        ("a,clas\n1,0\n", ": has no column 'class'; did you mean 'clas'?"),
        ("a,b\n1,0\n", ": has no column 'class'; it has 'a', 'b'"),
        ("class\n1\n", ": every column is a target, none is left for the input"),
        ("a,class\n1,0\n2\n", ":3: the header names 2 columns, this row has 1"),
        ("a,class\n1,0\n\n2,1,1\n", ":4: the header names 2 columns, this row has 3"),
        ("a,class\n1,0\nabc,1\n", ":3: column 'a' holds 'abc', not a number"),
        ("a;class\n1,5;0\n", ":2: column 'a' holds '1,5', not a number; a number has a point, and no comma"),
        ("a,class\n1,0\n,1\n", ":3: 1 cell of column 'a' is empty; `missing: mean` or `missing: drop` takes them"),
        ("a,b,class\n1,1,0\n1, ,1\n1,,0\n", ":3: 2 cells of column 'b' are empty; "),
        ("a,class\n1,\n1,1\n", ":2: 1 cell of column 'class' is empty; "),
        ("a,class\n1,0\nnan,1\n", ":3: column 'a' holds 'nan', not a finite number"),
        ("a,class\n-inf,0\n", ":2: column 'a' holds '-inf', not a finite number"),
        ("a,class\n1e999,0\n", ":2: column 'a' holds '1e999', not a finite number"),
        ("a,class\n1,0\n\n2,setosa\n", ":4: column 'class' holds 'setosa', not a number"),
        ("a,class\n1,0\n\n2,1.5\n", ":4: column 'class' holds 1.5, not a class 0, 1, 2, ..."),
        ("a,class\n1,0\n2,-1\n", ":3: column 'class' holds -1, not a class 0, 1, 2, ..."),
        ("a,class\n1,1\n2,2\n", ":3: column 'class' holds class 2, but class 0 doesn't occur"),
        ("a,class\n1,0\n2,255\n3,1\n", ":3: column 'class' holds class 255, but class 2 doesn't occur"),
        ('a,class\n1,0\n"2,1\n3,0\n', ":4: unexpected end of data"),
        ("\x1b[2J,b\n", ": has no column 'class'; it has '\\x1b[2J', 'b'"),
        (b"a,class\n\xff,0\n", ":2: is not UTF-8: byte 0xff"),
        (b"PK\x03\x04\x00\x00", ": has no column 'class'"),
        ("a,class\n1_0,0\n", ":2: column 'a' holds '1_0', not a number"),
        ("a,class\n1,0\n2,\u0661\n", ":3: column 'class' holds '\u0661', not a number"),
        ("a,class\n\uff11,0\n", ":2: column 'a' holds '\uff11', not a number"),
        ("a,class\n1\u00a0000,0\n", ":2: column 'a' holds '1\\xa0000', not a number"),
        ("a,class\n1,0\n\u00a05,0\n", ":3: column 'a' holds '\\xa05', not a number"),
        ("a,class\n5\u202f,0\n", ":2: column 'a' holds '5\\u202f', not a number"),
        ("a,class\n\u3000,0\n", ":2: column 'a' holds '\\u3000', not a number"),
        ("a,class\n5\u200b,0\n", ":2: column 'a' holds '5\\u200b', not a number"),
        ("a,class\n\u28005,0\n", ":2: column 'a' holds '\\u28005', not a number"),
        ("a,class\n\u31645,0\n", ":2: column 'a' holds '\\u31645', not a number"),
        ("a,class\n x ,0\n", ":2: column 'a' holds ' x ', not a number"),
        ("a,class\n1,0\n\ufeff2,0\n", ":3: column 'a' holds '\\ufeff2', not a number"),
        ("\ufeff\ufeffa,class\nx,0\n", ":2: column 'a' holds 'x', not a number"),
        ("a\ufeff,class\nx,0\n", ":2: column 'a\\ufeff' holds 'x', not a number"),
        ("\ufeff\ufeff", ": is empty; the first line of a CSV file names the columns"),
        ("a,class\n0x10,0\n", ":2: column 'a' holds '0x10', not a number"),
        ("a,class\n1\0,0\n", ":2: column 'a' holds '1\\x00', not a number"),
        (f"a,class\n{'9' * 400},0\n", f":2: column 'a' holds '{'9' * 29}...{'9' * 29}', not a finite number"),
        ("a,class\n1e308,0\n1e308,-inf\n", ":3: column 'class' holds '-inf', not a finite number"),
        ("a,class\n1,9007199254740994\n", ":2: column 'class' holds 9007199254740994, not a class 0, 1, 2, ..."),
        ("a,class\r1,0\r2,x\r", ":3: column 'class' holds 'x', not a number"),
        ('a,class\n1,"0"1\n', ":2: ',' expected after '\"'"),
        ("a,class\n \n", ":2: the header names 2 columns, this row has 1"),
        ("a,a,a\n", ":1: column 'a' occurs 3 times"),
        ("a,class,\n1,0\n", ":2: the header names 3 columns, this row has 2"),
        ('a,class\n"' + "x" * 131073, ":2: a cell has more than 131,072 characters"),
        (f"{'x' * 99},b\n", f": has no column 'class'; it has '{'x' * 29}...{'x' * 29}', 'b'"),
        ("a,class\n1,0\n".encode("utf-16"), ":1: is not UTF-8: byte 0xff"),
        ("a,class\n1,é\n".encode("latin-1"), ":2: is not UTF-8: byte 0xe9"),
    ],
)
def test_bad_csv(tmp_path: Path, content: str | bytes, expected: str) -> None:
    assert message(write(tmp_path, content)).startswith(expected)


def test_a_wide_header_is_not_listed_in_full(tmp_path: Path) -> None:
    file = write(tmp_path, ",".join(f"pixel{number}" for number in range(784)) + "\n")
    text = message(file)
    assert text.startswith(": has no column 'class'; it has 'pixel0', 'pixel1', ")
    assert len(text) < 300


def test_missing_file_and_folder(tmp_path: Path) -> None:
    for name in ("file.csv", "file.csv.gz"):
        assert message(tmp_path / name) == ": No such file or directory"
        (tmp_path / name).mkdir()
        assert message(tmp_path / name) == ": Is a directory"


@pytest.mark.parametrize("name", ["file.csv", "some file.csv.gz"])
@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file(tmp_path: Path, make: Callable[[Path], object], words: str, name: str) -> None:
    make(tmp_path / name)
    assert message(tmp_path / name) == f": {words}"


def test_numbers_as_tables_have_them(tmp_path: Path) -> None:
    cells = ["+1", "-0", " 2 ", "\t3", "1e-3", ".5", "5.", "1E2", '" 7"', "1" * 200]
    split = load(write(tmp_path, "a,class\n" + "".join(f"{cell},0\n" for cell in cells)))
    assert split.train.input[:, 0].tolist() == [1, 0, 2, 3, 0.001, 0.5, 5, 100, 7, float("1" * 200)]


def test_other_columns_may_hold_anything(tmp_path: Path) -> None:
    split = load(write(tmp_path, "a,class,text\n1,0,1_0\n2,1,\u0661\n3,0,\0\n4,1,\n"), input="a")
    assert split.train.input[:, 0].tolist() == [1, 2, 3, 4]


def test_finite_numbers_whose_sum_is_not(tmp_path: Path) -> None:
    split = load(write(tmp_path, "a,b,class\n1e308,1e308,0\n-1e308,1e308,1\n"))
    assert split.train.input.tolist() == [[1e308, 1e308], [-1e308, 1e308]]


def test_lines_are_counted_over_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "SLICE_SIZE", 4)
    rows = [f"{row},{row % 2}" for row in range(9)]
    split = load(write(tmp_path, "a,class\n" + "\n\n".join(rows) + "\n"))
    assert split.train.input[:, 0].tolist() == list(range(9))
    assert split.train.target.tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0]
    file = write(tmp_path, "a,class\n" + "\n\n".join([*rows, "9,1.5"]) + "\n")
    assert message(file) == ":20: column 'class' holds 1.5, not a class 0, 1, 2, ..."
    file = write(tmp_path, "a,class\n" + "\n\n".join([*rows[:3], "9,7", *rows[3:], "9,7"]) + "\n")
    assert message(file).startswith(":8: column 'class' holds class 7, but class 2 doesn't occur")


def test_gzipped(tmp_path: Path) -> None:
    content = gzip.compress(CSV.encode())
    split = load(write(tmp_path, content, "file.csv.gz"), input=["height", "age"])
    assert split.train.input.tolist() == [[1.5 * row, row] for row in range(12)]
    file = write(tmp_path, gzip.compress(b"a,class\n1,0\n2,x\n"), "file.csv.gz")
    assert message(file) == ":3: column 'class' holds 'x', not a number"
    for corrupt, expected in [
        (b"a,class\n1,0\n", ": Not a gzipped file (b'a,')"),
        (content[:-9], ": Compressed file ended before the end-of-stream marker was reached"),
        (content[:-8] + b"\0" + content[-7:], ": CRC check failed 0x"),
        (content[:20] + b"\xff" + content[21:], ": Error -3 while decompressing data: "),
    ]:
        assert message(write(tmp_path, corrupt, "file.csv.gz"), input="age").startswith(expected)


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin = io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + CSV.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    split = load(tmp_path / "-", input=["height", "age"])
    assert split.train.input.tolist() == [[1.5 * row, row] for row in range(12)]
    assert not stdin.closed
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,class\n1,2x\n")))
    with pytest.raises(DataError, match=r"^standard input:2: column 'class' holds '2x', not a number$"):
        load(Path("-"))
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match=r"^standard input: is closed$"):
        load(Path("-"))


@pytest.mark.parametrize(
    "content", ["a" * 200, "a,class\n" + "1" * 200, 'a,class\n"' + 100 * "\n", "a,class\n" + '"\n",' * 50]
)
def test_a_row_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setattr(csv_records, "LONGEST_ROW", 99)
    assert message(write(tmp_path, content)).endswith(": a row has more than 99 characters")


def test_many_rows_are_no_long_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_records, "LONGEST_ROW", 99)
    assert len(load(write(tmp_path, "a,class\n" + "1,0\n" * 100)).train.input) == 100


def test_a_bomb_of_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, gzip.compress(b"a,class\n" + bytes(2 << 24)), "file.csv.gz")
    assert message(file) == ":2: a row has more than 16,777,216 characters"
    monkeypatch.setattr(csv_records, "LONGEST_ROW", 2**16)
    tracemalloc.start()
    message(file)
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()


def test_many_columns(tmp_path: Path) -> None:
    num_columns = 50_000  # with a search for each in a list, this took a minute
    header = ",".join(f"x{column}" for column in range(num_columns)) + ",class\n"
    split = load(write(tmp_path, header + "1," * num_columns + "0\n"))
    assert split.train.input.shape == (1, num_columns)


def test_more_numbers_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_files, "SLICE_SIZE", 10)
    monkeypatch.setattr(reading, "machine_memory", lambda: 2**10)
    file = write(tmp_path, "a,class\n" + "1,0\n" * 1000)
    assert message(file) == ": its numbers take 0 GiB, and this machine has 0"


