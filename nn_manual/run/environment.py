"""What the last bits of a result can depend on beside the config: versions, the BLAS, its threads, the data."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from nn_manual.arrays import Padded, unpadded
from nn_manual.compile.blas import blas_of
from nn_manual.config import RunConfig
from nn_manual.data import Split

#: Examples that are copied at a time: windows of a text overlap, so a copy of all would be many times the text.
CHUNK = 4096


def versions() -> dict[str, str]:
    """The versions that rounding can depend on, by name."""
    installed = {name: version(name) for name in ("nn_manual", "numpy", "torch")}
    return {**installed, "python": platform.python_version(), "platform": platform.platform()}


def blas() -> dict[str, Any]:
    """The library that numpy multiplies matrices with, its version and kernels, and how many threads it takes."""
    from threadpoolctl import threadpool_info

    np.ones(1).dot(np.ones(1))  # loads it
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    # scipy brings a BLAS of its own, and the libraries come in any order.
    numpys = [library for library in libraries if {"numpy", "numpy.libs"} & {*Path(library["filepath"]).parts[-3:]}]
    names = ("internal_api", "version", "architecture", "num_threads")
    return next(({name: library.get(name) for name in names} for library in (*numpys, *libraries)), {})


def blas_of_compiled_steps(config: RunConfig) -> dict[str, Any]:
    """The BLAS of a compiled run, and its number of threads; nothing for a run that isn't compiled."""
    if config.blas is None or config.threads is None:
        return {}
    return {"compiled_blas": blas_of(config.blas).library, "compiled_threads": config.threads}


def set_blas_threads(num_threads: int) -> None:
    """Let the BLAS use this number of threads from now on."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(num_threads, user_api="blas")


def sha256_of(split: Split) -> str:
    """The SHA-256 of the examples of both parts: shapes, dtypes and values."""
    digest = hashlib.sha256()
    for part in _parts(split):
        digest.update(part)
    return digest.hexdigest()


def _parts(split: Split) -> Iterator[bytes | memoryview]:
    lengths = [part.input.lengths for part in (split.train, split.validation) if isinstance(part.input, Padded)]
    for array in (*split.train, *split.validation, *lengths):
        yield f"{array.dtype} {array.shape}".encode()
        for start in range(0, len(array), CHUNK):
            yield np.ascontiguousarray(unpadded(array[start : start + CHUNK])).data
