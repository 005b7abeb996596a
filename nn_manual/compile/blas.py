"""Where a BLAS is: the addresses of its matrix products."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import threadpoolctl

from nn_manual.errors import ConfigError


class Blas(NamedTuple):
    """A library's products: the addresses of cblas_sgemm and cblas_dgemm, and the bits of its integers."""

    name: str
    path: str
    sgemm: int
    dgemm: int
    integer_bits: int


#: How libraries call cblas_?gemm, before and after the letter of the dtype; with integers of 64 bits or 32.
SYMBOLS = (
    ("scipy_cblas_", "gemm64_", 64),
    ("cblas_", "gemm64_", 64),
    ("cblas_", "gemm_64", 64),
    ("scipy_cblas_", "gemm", 32),
    ("cblas_", "gemm", 32),
)


class NoBlas(ConfigError):  # noqa: N818 - says what isn't there
    """No library with products was found."""


def blases() -> list[Blas]:
    """Those that are loaded, numpy's own first."""
    np.dot(np.ones((1, 1)), np.ones((1, 1)))
    found = []
    for library in threadpoolctl.threadpool_info():
        if library["user_api"] == "blas":
            blas = _of(library)
            if blas is not None:
                found.append(blas)
    return sorted(found, key=lambda blas: "numpy" not in blas.path)


def a_blas() -> Blas:
    """The first of them. Raises NoBlas."""
    found = blases()
    if not found:
        raise NoBlas("no BLAS was found whose matrix products a plan could call")
    return found[0]


def _of(library: dict[str, Any]) -> Blas | None:
    loaded = ctypes.CDLL(library["filepath"])
    for before, after, bits in SYMBOLS:
        try:
            single, double = (getattr(loaded, f"{before}{letter}{after}") for letter in "sd")
        except AttributeError:
            continue
        sgemm, dgemm = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (single, double))
        name = f"{library['internal_api']} {library.get('version') or ''}".strip()
        return Blas(name, library["filepath"], sgemm, dgemm, bits)
    return None
