"""Named arrays as safetensors files: the weights of a run, and the arrays of its checkpoints."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.errors import DataError
from nn_manual.opening import open_file
from nn_manual.run_directory.files import read_file, write_atomically
from nn_manual.run_directory.no_safetensors import problem_of


def write_weights(path: Path, weights: Mapping[str, Array]) -> str:
    """Write named arrays as a safetensors file, atomically; returns the SHA-256 of the file, in hexadecimal.

    The names are torch's (`0.weight`), so `safetensors.torch.load_file` gives a state dict. The format has no
    checksum and a flipped bit mostly loads as another number: keep the digest (summary.json's `model_sha256`)
    and pass it to `read_weights`. Raises DataError where the file can't be written.
    """
    data = weights_as_bytes(weights)
    write_atomically(path, data)
    return hashlib.sha256(data).hexdigest()


def weights_as_bytes(weights: Mapping[str, Array]) -> bytes:
    """Named arrays in the safetensors format."""
    import safetensors.numpy

    # safetensors reads an array's memory from its first byte on, whatever its strides.
    return safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in weights.items()})


def read_weights(path: Path, sha256: str | None = None) -> dict[str, Array]:
    """The named arrays of a safetensors file.

    Raises DataError, naming the file, if it can't be read, is not of this format, holds a dtype that numpy lacks,
    or has another SHA-256 than the one given.
    """
    return parse_weights(path, read_file(path), sha256)


def parse_weights(path: Path, data: bytes, sha256: str | None = None) -> dict[str, Array]:
    """The named arrays of the safetensors file `path`, whose bytes are `data`; raises what `read_weights` does."""
    import safetensors
    import safetensors.numpy

    if sha256 is not None and (found := hashlib.sha256(data).hexdigest()) != sha256:
        raise DataError(f"{path}: is corrupt: its SHA-256 is {found}, recorded was {sha256}")
    try:
        return safetensors.numpy.load(data)
    except safetensors.SafetensorError as error:
        raise DataError(f"{path}: {problem_of(io.BytesIO(data))}") from error
    except KeyError as error:  # safetensors.numpy looks the dtype up in a table
        raise DataError(f"{path}: holds the dtype {error}, which numpy does not have") from error


#: NumPy's dtypes by the format's names; what no model holds is left out.
DTYPES = {name: np.dtype(f"{name[0].lower()}{int(name[1:]) // 8}") for name in ("F16", "F32", "F64", "I32", "I64")}


@dataclass
class WeightsFile:
    """A safetensors file whose tensors are read one by one: shapes by name, and the format's names of their dtypes."""

    shapes: dict[str, Shape]
    dtypes: dict[str, str]
    opened: Any  # safetensors.safe_open has no types

    def read(self, name: str) -> Array:
        """The tensor of this name."""
        tensor: Array = self.opened.get_tensor(name)
        return tensor


@contextmanager
def opened_weights(path: Path) -> Iterator[WeightsFile]:
    """Open a safetensors file that is too large to be in memory twice. Raises DataError, naming it, if it can't be read
    or is not of this format.
    """
    import safetensors

    try:
        open_file(path).close()
        opened = safetensors.safe_open(path, framework="numpy")
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: can't be read: {getattr(error, 'strerror', None) or error}") from error
    except safetensors.SafetensorError as error:
        with open_file(path) as closed:
            raise DataError(f"{path}: {problem_of(closed)}") from error
    with opened as file:
        slices = {name: file.get_slice(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
        shapes = {name: tuple(each.get_shape()) for name, each in slices.items()}
        dtypes = {name: each.get_dtype() for name, each in slices.items()}
        yield WeightsFile(shapes, dtypes, file)
