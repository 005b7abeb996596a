"""NPZ: arrays of the user's own archives, read a slice at a time, and never more than they declare."""

from __future__ import annotations

import math
import os
import struct
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from nn_manual.arrays import Padded, Shape
from nn_manual.data.reading import (
    LISTED_NAMES,
    MOST_A_BYTE,
    SLICE_SIZE,
    check_memory,
    check_name,
    reading,
)
from nn_manual.data.tables import BY_UNIQUE, Kind, Part, Table
from nn_manual.data.transform import Names
from nn_manual.errors import DataError
from nn_manual.messages.text import counted, one_line, quoted
from nn_manual.opening import open_file

#: The exceptions of zipfile for an archive that is cut off, damaged or encrypted.
CORRUPT_ARCHIVE = (ValueError, EOFError, RuntimeError, OverflowError, zipfile.BadZipFile, zlib.error, struct.error)

#: numpy's largest number of dimensions.
MAX_DIMENSIONS = 64


class Member(NamedTuple):
    """An array of an archive: only its header has been read. Its numbers begin at `offset`."""

    place: str
    info: zipfile.ZipInfo
    shape: Shape
    is_fortran: bool
    dtype: np.dtype[Any]
    offset: int


def read_npz(file: Path, input: Part, target: Part) -> Table:
    """The arrays that the parts name, one for each, from an .npz file; a target (rows,) is taken as (rows, 1). A target
    without a name is left out.

    Before a number is read, the shapes and dtypes in the headers are compared with the archive's directory, with each
    other and with the machine's memory. Nothing in the file is executed: pickled objects are refused. Raises DataError,
    which names the array and the index.
    """
    with _archive(file) as archive:
        parts = [part for part in (input, target) if part.names]
        members = [_member(file, archive, part) for part in parts]
        _check_shapes(file, members, parts)
        for member, part in zip(members, parts, strict=True):
            _read_array(archive, member, part)
    return Table(input, target, Names())


def names_in(file: Path) -> list[str]:
    """The names of the arrays in an .npz file. Raises DataError."""
    with _archive(file) as archive:
        return [info.filename.removesuffix(".npy") for info in archive.infolist()]


@contextmanager
def _archive(file: Path) -> Iterator[zipfile.ZipFile]:
    with reading(file, *CORRUPT_ARCHIVE), open_file(file) as stream:
        if not zipfile.is_zipfile(stream):
            raise DataError(f"{file}: is not an .npz archive")
        with zipfile.ZipFile(stream) as archive:
            yield archive


def read_padded(file: Path, input: Part, name: str) -> Padded:
    """The input that has been read, with the lengths of its sequences: the array of this name. Raises DataError."""
    lengths, no_target = (Part(names, Kind.LENGTHS, np.dtype(np.int64)) for names in ([name], []))
    read_npz(file, lengths, no_target)
    try:
        return Padded(input.array, lengths.array)
    except ValueError as error:
        raise DataError(f"{file}: array {quoted(name)}: {error}") from None


def _member(file: Path, archive: zipfile.ZipFile, part: Part) -> Member:
    """The array that the part names. Its header is read and compared with the archive's directory."""
    name = part.names[0]
    infos = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    check_name(file, "array", name, list(infos))
    place, info = f"{file}: array {quoted(name)}", infos[name]
    if info.flag_bits & 1:
        raise DataError(f"{place}: is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise DataError(f"{place}: is compressed by method {info.compress_type}; numpy's are stored or deflated")
    with reading(place, *CORRUPT_ARCHIVE), archive.open(info) as stream:
        shape, is_fortran, dtype = _header(place, stream, part.kind)
        offset = stream.tell()
    declared, num_bytes = math.prod(shape) * dtype.itemsize, info.file_size - offset
    if declared != num_bytes:
        raise DataError(
            f"{place}: the header says {shape} of {dtype}, {counted(declared, 'byte')}, the archive has {num_bytes:,}"
        )
    assert archive.fp is not None  # the archive is open
    compressed = min(info.compress_size, os.fstat(archive.fp.fileno()).st_size)
    if info.file_size > compressed * (1 if info.compress_type == zipfile.ZIP_STORED else MOST_A_BYTE):
        raise DataError(f"{place}: {counted(compressed, 'byte')} of the archive can't hold its {info.file_size:,}")
    return Member(place, info, shape, is_fortran, dtype, offset)


def _header(place: str, stream: IO[bytes], kind: Kind) -> tuple[Shape, bool, np.dtype[Any]]:
    """Shape, whether the first index is the fastest, and dtype of an array of real numbers, which are of this kind."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            version = np.lib.format.read_magic(stream)
            if version not in ((1, 0), (2, 0)):
                raise ValueError(f"version {version[0]}.{version[1]}, numbers have 1.0 or 2.0")
            is_1 = version == (1, 0)
            read = np.lib.format.read_array_header_1_0 if is_1 else np.lib.format.read_array_header_2_0
            shape, is_fortran, dtype = read(stream)
        except (zipfile.BadZipFile, zlib.error):  # the archive is damaged: the caller names it
            raise
        # numpy parses the header as a Python dict, and damage can turn it into any text. So many kinds of errors and
        # warnings are possible: Python's parser raises MemoryError for text that is nested too deeply.
        except Exception as error:
            words = one_line(str(error), LISTED_NAMES) or type(error).__name__
            raise DataError(f"{place}: its header can't be read: {words}") from error
    if dtype.kind not in "biuf":
        advice = f": number the classes {BY_UNIQUE}" if kind is Kind.CLASSES else ""
        raise DataError(f"{place} has dtype {one_line(str(dtype), LISTED_NAMES)}, not real numbers{advice}")
    if len(shape) > MAX_DIMENSIONS or any(type(size) is not int or size < 0 for size in shape):
        raise DataError(f"{place} has shape {one_line(str(shape), LISTED_NAMES)}, which no array has")
    return shape, is_fortran, dtype


def _check_shapes(file: Path, members: list[Member], parts: list[Part]) -> None:
    """Raise DataError unless the arrays, the inputs and, if there are any, the targets, have the same number of
    examples, at least one, and fit into memory.
    """
    inputs, targets = members[0], members[-1]
    are_lengths = parts[0].kind is Kind.LENGTHS
    if are_lengths and len(inputs.shape) != 1:
        raise DataError(f"{inputs.place} has shape {inputs.shape}, not (examples,)")
    if are_lengths and inputs.dtype.kind not in "iu":
        raise DataError(f"{inputs.place} has dtype {inputs.dtype}, and lengths are integers")
    if not are_lengths and len(inputs.shape) < 2:
        raise DataError(f"{inputs.place} has shape {inputs.shape}, not (examples, features)")
    if targets.shape[:1] != inputs.shape[:1]:
        raise DataError(
            f"{inputs.place} has {counted(inputs.shape[0], 'example')}, but {quoted(parts[-1].names[0])} has shape "
            f"{targets.shape}"
        )
    for member in members:
        if 0 in member.shape:
            raise DataError(f"{member.place} of shape {member.shape} is empty")
    kept = zip(members, parts, strict=True)
    check_memory(file, sum(math.prod(member.shape) * part.dtype.itemsize for member, part in kept))


def _read_array(archive: zipfile.ZipFile, member: Member, part: Part) -> None:
    """Fill the part's array with the member's numbers."""
    place, info, shape, is_fortran, dtype, offset = member
    part.array = np.empty((shape[0], *part.row_shape(shape[1:])), part.dtype)
    numbers: Any = part.array.T.flat if is_fortran else part.array.reshape(-1)  # in the order of the file
    size = part.array.size
    with reading(place, *CORRUPT_ARCHIVE), archive.open(info) as stream:
        stream.read(offset)
        for start in range(0, size, SLICE_SIZE):
            num_bytes = min(SLICE_SIZE, size - start) * dtype.itemsize
            content = stream.read(num_bytes)
            if len(content) < num_bytes:
                raise EOFError("ends too early")
            with np.errstate(over="ignore"):  # a longdouble that is too large becomes infinite: it is refused
                values = np.frombuffer(content, dtype).astype(np.float64)

            def where(index: int, start: int = start) -> str:
                indices = np.unravel_index(start + index, shape, order="F" if is_fortran else "C")
                return f"{place}[{', '.join(map(str, indices))}]"

            numbers[start : start + len(values)] = part.checked(values, where)
