"""An .npz that can't be read, or holds what it may not: the message has the place."""

import io
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from no_files import NO_FILES
from user_files import X, Y, changed, load, message, write, write_npz

from nn_manual.data import npz_files, reading
from nn_manual.errors import DataError


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def header(text: str, version: bytes = b"\x01\x00") -> bytes:
    """The beginning of an .npy that says so."""
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text.encode()


def declaring(shape: str, descr: str = "'<f4'", fortran_order: str = "False") -> bytes:
    """The header of such an array."""
    return header(f"{{'descr': {descr}, 'fortran_order': {fortran_order}, 'shape': {shape}}}")


def message_of(folder: Path, x: bytes, method: int = zipfile.ZIP_STORED) -> str:
    """What is said of an archive whose member x.npy holds these bytes, with their right checksum."""
    file = folder / "file.npz"
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("x.npy", x)
        archive.writestr("y.npy", npy(Y))
    return message(file, input="x", target="y")


@pytest.mark.parametrize(
    ("arrays", "expected"),
    [
        ({"inputs": X, "y": Y}, ": has no array 'x'; it has 'inputs', 'y'"),
        ({"x": X, "yy": Y}, ": has no array 'y'; did you mean 'yy'?"),
        ({"x": changed(X, (2, 0, 1), np.nan), "y": Y}, ": array 'x'[2, 0, 1] holds nan, not a finite number"),
        ({"x": changed(X, (3, 2, 0), -np.inf), "y": Y}, ": array 'x'[3, 2, 0] holds -inf, not a finite number"),
        ({"x": X, "y": changed(Y, (1,), np.inf)}, ": array 'y'[1] holds inf, not a finite number"),
        ({"x": X, "y": changed(Y, (1,), 0.5)}, ": array 'y'[1] holds 0.5, not a class 0, 1, 2, ..."),
        ({"x": X, "y": Y - 1}, ": array 'y'[0] holds -1, not a class 0, 1, 2, ..."),
        (
            {"x": X, "y": Y + 1},
            ": array 'y'[1] holds class 2, but class 0 doesn't occur: classes are counted from 0 without gaps; number "
            "them with np.unique(y, return_inverse=True); num_classes allows gaps",
        ),
        ({"x": X, "y": changed(Y, (1,), -100)}, ": array 'y'[1] holds -100, not a class 0, 1, 2, ..."),
        ({"x": X, "y": np.eye(4) - 1}, ": array 'y'[0, 1] holds -1, not a class 0, 1, 2, ... or -100"),
        (
            {"x": X, "y": np.eye(4) * 9},
            ": array 'y'[0, 0] holds class 9, but class 1 doesn't occur: classes are counted from 0 without gaps, and "
            "-100 stands for none; num_classes allows gaps",
        ),
        ({"x": X, "y": np.full((4, 2), -100)}, ": array 'y' holds -100 alone, so no target counts"),
        (
            {"x": X, "y": changed(np.full((4, 2, 2), -100), (2, 0, 1), 2**53)},
            ": array 'y'[2, 0, 1] holds class 9007199254740992, but class 1 doesn't occur",
        ),
        ({"x": X[:3], "y": Y}, ": array 'x' has 3 examples, but 'y' has shape (4,)"),
        ({"x": X, "y": np.float64(1)}, ": array 'x' has 4 examples, but 'y' has shape ()"),
        ({"x": Y, "y": Y}, ": array 'x' has shape (4,), not (examples, features)"),
        ({"x": X[:0], "y": Y[:0]}, ": array 'x' of shape (0, 3, 2) is empty"),
        ({"x": X[:, :0], "y": Y}, ": array 'x' of shape (4, 0, 2) is empty"),
        (
            {"x": X, "y": np.array(["a", "b", "c", "d"])},
            ": array 'y' has dtype <U1, not real numbers: number the classes with np.unique(y, return_inverse=True)",
        ),
        ({"x": X * 1j, "y": Y}, ": array 'x' has dtype complex64, not real numbers"),
        ({"x": X, "y": np.array([0, None])}, ": array 'y' has dtype object, not real numbers: number the classes with"),
    ],
)
def test_bad_npz(tmp_path: Path, arrays: dict[str, Any], expected: str) -> None:
    assert message(write_npz(tmp_path, **arrays), input="x", target="y").startswith(expected)


@pytest.mark.parametrize(
    ("arrays", "task", "expected"),
    [
        ({"x": np.array([["a"], ["b"]]), "y": Y[:2]}, "classification", ": array 'x' has dtype <U1, not real numbers"),
        ({"x": X, "y": np.array(list("abcd"))}, "regression", ": array 'y' has dtype <U1, not real numbers"),
    ],
)
def test_texts_that_are_no_classes(tmp_path: Path, arrays: dict[str, Any], task: str, expected: str) -> None:
    """To number them would be no way out."""
    assert message(write_npz(tmp_path, **arrays), input="x", target="y", task=task) == expected


def test_the_way_out_of_names_and_gaps(tmp_path: Path) -> None:
    """What the messages advise makes classes that load."""
    _, y = np.unique(["cat", "ape", "dog", "ape"], return_inverse=True)
    assert load(write_npz(tmp_path, x=X, y=y), input="x", target="y").num_classes == 3


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


def test_missing_file_and_folder(tmp_path: Path) -> None:
    assert message(tmp_path / "file.npz", input="x") == ": No such file or directory"
    (tmp_path / "file.npz").mkdir()
    assert message(tmp_path / "file.npz", input="x") == ": Is a directory"


@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file(tmp_path: Path, make: Callable[[Path], object], words: str) -> None:
    make(tmp_path / "file.npz")
    assert message(tmp_path / "file.npz", input="x") == f": {words}"


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (b"", "its header can't be read: EOF: reading magic string, expected 8 bytes got 0"),
        (b"garbage, and more of it", "its header can't be read: the magic string is not correct"),
        (npy(X)[:50], "its header can't be read: EOF: reading array header, expected 118 bytes got 40"),
        (header("{'descr'"), "its header can't be read: ("),
        (header("1if 2else 3"), "its header can't be read: "),
        (header("'\\d'"), "its header can't be read: "),
        (header("(" * 9000), "its header can't be read: "),
        (header("-" * 9000 + "1"), "its header can't be read: "),
        (declaring("(4, 3L)"), "its header can't be read: Reading `.npy`"),
        (declaring("(4, 3)", "'zz'"), "its header can't be read: descr is not a"),
        (declaring("(4, 3)", "'2\x01<f8'"), 'its header can\'t be read: format number 1 of "2\\x01<f8"'),
        (header("{[]: 1}"), "its header can't be read: "),
        (declaring("(4, 3)", fortran_order="1"), "its header can't be read: fortran_order is"),
        (declaring("(-4, -3)"), "has shape (-4, -3), which no array has"),
        (declaring("(4, True)"), "has shape (4, True), which no array"),
        (declaring(f"({'1,' * 65})"), "has shape (1, 1, 1,"),
        (declaring("(4, 3)", "'|O'"), "has dtype object, not real numbers"),
        (declaring("(4, 3)", "[('a', '<f4')]"), "has dtype [('a', '<f4')], not"),
        (declaring("(4, 3)", "'<M8[s]'"), "has dtype datetime64[s], not real"),
        (header("", b"\x03\x00"), "its header can't be read: version 3.0, numbers have 1.0 or 2.0"),
        (header("", b"\x09\x00"), "its header can't be read: version 9.0, numbers have 1.0 or 2.0"),
        (npy(X) + b"\0", "the header says (4, 3, 2) of float32, 96 bytes, the archive has 97"),
        (npy(X)[:-1], "the header says (4, 3, 2) of float32, 96 bytes, the archive has 95"),
        (
            declaring("(99999999999, 99999999999)", "'<f8'"),
            "the header says (99999999999, 99999999999) of float64, 79,999,999,998,400,000,000,008 bytes, the arch",
        ),
    ],
)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_damaged_member(tmp_path: Path, x: bytes, expected: str, method: int) -> None:
    text = message_of(tmp_path, x, method).removeprefix(": array 'x'")
    assert text.removeprefix(":").lstrip().startswith(expected)
    assert len(text) < 400


@pytest.mark.parametrize(("method", "number"), [(zipfile.ZIP_BZIP2, 12), (zipfile.ZIP_LZMA, 14)])
def test_other_compression(tmp_path: Path, method: int, number: int) -> None:
    expected = f": array 'x': is compressed by method {number}; numpy's are stored or deflated"
    assert message_of(tmp_path, npy(X), method) == expected


def patched(content: bytes, place: int, value: bytes) -> bytes:
    """`content` with a field of its first member changed in the archive's directory."""
    start = content.index(b"PK\x01\x02") + place
    return content[:start] + value + content[start + len(value) :]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda content: patched(content, 8, b"\x01\0"), "array 'x': is encrypted"),
        (lambda content: patched(content, 10, b"\x63\0"), "array 'x': is compressed by method 99"),
        (lambda content: patched(content, 16, b"\0\0\0\0"), "array 'x': Bad CRC-32 for file 'x.npy'"),
        (
            lambda content: patched(content, 24, struct.pack("<I", 2**31)),
            "array 'x': the header says (4, 3, 2) of float32, 96 bytes, the archive has 2,147,483,520",
        ),
        (lambda content: patched(content, 42, struct.pack("<I", 2**31)), "array 'x': "),
        (lambda content: patched(content, 46, b"z.npy"), "has no array 'x'; it has 'z', 'y'"),
        (lambda content: content.replace(b"x.npy", b"\x1b.npy"), "has no array 'x'; it has '\\x1b', 'y'"),
        (lambda content: content[:-30], "is not an .npz archive"),
        (lambda content: content[200:], "array 'x': Invalid argument"),
    ],
)
def test_damaged_archive(tmp_path: Path, change: Callable[[bytes], bytes], expected: str) -> None:
    content = write_npz(tmp_path, x=X, y=Y).read_bytes()
    text = message(write(tmp_path, change(content), "file.npz"), input="x", target="y")
    assert expected in text
    assert len(text) < 400


def test_what_numpy_warns_of_is_refused_in_silence(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert "as it was created on Python 2" in message_of(tmp_path, declaring("(4, 3L)"))
    assert caught == []


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_the_checksum_of_a_large_member(tmp_path: Path, method: int) -> None:
    file = tmp_path / "file.npz"
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("x.npy", npy(np.arange(800_000.0).reshape(4, -1)))
        archive.writestr("y.npy", npy(Y))
    write(tmp_path, patched(file.read_bytes(), 16, bytes(4)), "file.npz")
    assert message(file, input="x", target="y") == ": array 'x': Bad CRC-32 for file 'x.npy'"


def test_no_members(tmp_path: Path) -> None:
    file = tmp_path / "file.npz"
    zipfile.ZipFile(file, "w").close()
    assert message(file, input="x", target="y") == ": has no array 'x'; it has none"


def test_a_member_that_ends_too_early(tmp_path: Path) -> None:
    """Its checksum is that of what is there."""
    content = write_npz(tmp_path, x=X, y=Y).read_bytes()
    directory = content.index(b"PK\x01\x02")
    x = content[content.index(b"\x93NUMPY") :][: 128 + 96]
    short = x[:-8]
    crc = struct.pack("<I", zlib.crc32(short))
    compressed = zlib.compressobj(wbits=-15)
    deflated = compressed.compress(short) + compressed.flush()
    assert len(deflated) < len(x)
    start = content.index(b"\x93NUMPY")
    content = content[:start] + deflated.ljust(len(x), b"\0") + content[start + len(x) :]
    for place, value in ((10, b"\x08\0"), (16, crc), (20, struct.pack("<I", len(deflated)))):
        content = patched(content, place, value)
    assert content.index(b"PK\x01\x02") == directory
    file = write(tmp_path, content, "file.npz")
    assert message(file, input="x", target="y") == ": array 'x': ends too early"


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_more_than_the_archive_can_hold(tmp_path: Path, method: int) -> None:
    """Header and directory agree on 2 GB, and the archive has no numbers at all."""
    file = tmp_path / "file.npz"
    x = declaring("(4, 125000000)")
    with zipfile.ZipFile(file, "w", method) as archive:
        archive.writestr("x.npy", x)
        archive.writestr("y.npy", npy(Y))
        compressed = archive.infolist()[0].compress_size
    content = patched(file.read_bytes(), 24, struct.pack("<I", 2_000_000_000 + len(x)))
    text = message(write(tmp_path, content, "file.npz"), input="x", target="y")
    assert text == f": array 'x': {compressed} bytes of the archive can't hold its {2_000_000_000 + len(x):,}"


def test_more_numbers_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_npz(tmp_path, x=np.zeros((4, 2**20), np.float32), y=Y)
    monkeypatch.setattr(reading, "machine_memory", lambda: 2**25 - 1)
    assert message(file, input="x", target="y") == ": its numbers take 0 GiB, and this machine has 0"


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("compress", [False, True])
def test_layouts_and_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, order: Any, compress: bool
) -> None:
    monkeypatch.setattr(npz_files, "SLICE_SIZE", 5)
    x = np.asarray(X, order=order)
    file = tmp_path / "file.npz"
    (np.savez_compressed if compress else np.savez)(file, x=x, y=Y)
    assert np.array_equal(load(file, input="x", target="y").train.input, X)
    np.savez(file, x=np.asarray(changed(X, (3, 0, 1), np.nan), order=order), y=Y)
    assert message(file, input="x", target="y") == ": array 'x'[3, 0, 1] holds nan, not a finite number"


@pytest.mark.parametrize("dtype", ["<f2", ">f4", "<f16", "|b1", "|i1", ">u8", "<i2"])
def test_dtypes(tmp_path: Path, dtype: str) -> None:
    values = (X % 2).astype(dtype)
    split = load(write_npz(tmp_path, x=values, y=Y), input="x", target="y")
    assert np.array_equal(split.train.input, X % 2)


def test_a_longdouble_beyond_float64(tmp_path: Path) -> None:
    values = X.astype(np.longdouble)
    values[1, 2, 0] = np.longdouble("1e4000")
    text = message(write_npz(tmp_path, x=values, y=Y), input="x", target="y")
    assert text == ": array 'x'[1, 2, 0] holds inf, not a finite number"
