"""Named arrays as safetensors files: the weights of a run, and the arrays of its checkpoints."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nn_manual.arrays import Array
from nn_manual.errors import DataError
from nn_manual.run_directory.files import read_file, write_atomically


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
        raise DataError(f"{path}: is not a whole safetensors file: {error}") from error
    except KeyError as error:  # safetensors.numpy looks the dtype up in a table
        raise DataError(f"{path}: holds the dtype {error}, which numpy does not have") from error
