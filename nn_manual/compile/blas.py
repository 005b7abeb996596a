"""The BLAS libraries that a plan can call: numpy's, SciPy's and MKL's."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import threadpoolctl

from nn_manual.errors import ConfigError

#: The packages whose BLAS a plan can call.
BlasName: TypeAlias = Literal["numpy", "scipy", "mkl"]


class Choice(NamedTuple):
    """A BLAS and a number of threads; None means that it must still be measured."""

    blas: BlasName | None = None
    threads: int | None = None


#: Both must be measured.
MEASURED = Choice()


@dataclass(frozen=True)
class Blas:
    """The BLAS library of a package: the addresses of cblas_sgemm and cblas_dgemm, the bits of its integers, and the
    number of threads that it used when it was found. `library` is its name, its version and its kernels.
    """

    name: BlasName
    library: str
    sgemm: int
    dgemm: int
    integer_bits: int
    num_threads: int
    _controller: Any

    @contextmanager
    def threads(self, count: int) -> Iterator[None]:
        """In this context its products use `count` threads."""
        before = self._controller.num_threads
        if before == count:
            yield
            return
        self._controller.set_num_threads(count)
        try:
            yield
        finally:
            self._controller.set_num_threads(before)


#: What libraries call cblas_?gemm: the name before and after the letter of the dtype, and the bits of integers.
SYMBOLS = (
    ("scipy_cblas_", "gemm64_", 64),
    ("cblas_", "gemm64_", 64),
    ("cblas_", "gemm_64", 64),
    ("scipy_cblas_", "gemm", 32),
    ("cblas_", "gemm", 32),
)

#: The argument of mkl_cbwr_set for the processor's own kernels, and for an order of a sum's terms that depends on sizes
#: and threads alone: the place of an array in memory must not change the last bits.
MKL_CBWR_AUTO = 2


class NoBlas(ConfigError):  # noqa: N818 - says what isn't there
    """No BLAS was found, or not the one that was asked for."""


def blas_of(name: BlasName) -> Blas:
    """The BLAS of a package. Raises NoBlas if there is none; the message lists the others."""
    found = _FINDERS[name]()
    if found is None:
        others = ", ".join(other for other in _FINDERS if other != name and _FINDERS[other]())
        how = "; pip install 'nn_manual[mkl]' brings it" if name == "mkl" else ""
        raise NoBlas(f"blas is {name}, which isn't there{how}; at hand: {others or 'none'}")
    return found


def blases() -> list[Blas]:
    """All BLAS libraries that were found, numpy's first. Raises NoBlas if there is none."""
    found = [blas for blas in (find() for find in _FINDERS.values()) if blas is not None]
    if not found:
        raise NoBlas("no BLAS was found whose matrix products a plan could call")
    return found


def free_cores() -> int:
    """How many threads may run at once: one for each core that this process may use, but not more than OMP_NUM_THREADS.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return min(cores, int(limit)) if limit.isdecimal() and int(limit) else cores


def check_choice(choice: Choice) -> None:
    """Raise NoBlas if the BLAS isn't there, and ConfigError for more threads than free cores."""
    if choice.blas is not None:
        blas_of(choice.blas)
    check_threads("threads", choice.threads)


def check_threads(name: str, count: int | None) -> None:
    """Raise ConfigError for more threads than free cores; `name` is the setting's."""
    if count is not None and not 1 <= count <= free_cores():
        why = " (OMP_NUM_THREADS counts)" if os.environ.get("OMP_NUM_THREADS") else ""
        raise ConfigError(f"{name} must be 1 to {free_cores()}, the cores that are free{why}, not {count}")


def _numpys() -> Blas | None:
    np.dot(np.ones((1, 1)), np.ones((1, 1)))  # loads the library
    own = _loaded("numpy")
    return _made("numpy", own[0] if own else next(iter(_loaded()), None))


def _scipys() -> Blas | None:
    """SciPy's; None if SciPy uses numpy's."""
    import_module("scipy.linalg")
    return _made("scipy", next(iter(_loaded("scipy")), None))


def _mkls() -> Blas | None:
    """The BLAS of the mkl wheel."""
    try:
        files = metadata.files("mkl") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if "mkl_rt" in file.name and not file.name.endswith((".a", ".lib")):
            path = Path(str(file.locate())).resolve()
            try:
                library = ctypes.CDLL(str(path))
            except OSError:
                continue
            library.MKL_CBWR_Set(MKL_CBWR_AUTO)
            library.MKL_Set_Dynamic(0)  # use as many threads as set, never fewer
            return _made("mkl", next((each for each in _loaded() if Path(each.filepath).resolve() == path), None))
    return None


_FINDERS: dict[BlasName, Callable[[], Blas | None]] = {"numpy": _numpys, "scipy": _scipys, "mkl": _mkls}


def _loaded(package: str = "") -> list[Any]:
    """The BLAS libraries that this process has loaded; with `package`, only those of this package."""
    libraries = [each for each in threadpoolctl.ThreadpoolController().lib_controllers if each.user_api == "blas"]
    return [each for each in libraries if not package or {package, f"{package}.libs"} & {*Path(each.filepath).parts}]


def _made(name: BlasName, controller: Any) -> Blas | None:
    if controller is None:
        return None
    loaded = ctypes.CDLL(controller.filepath)
    for before, after, bits in SYMBOLS:
        try:
            single, double = (getattr(loaded, f"{before}{letter}{after}") for letter in "sd")
        except AttributeError:
            continue
        sgemm, dgemm = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in (single, double))
        words = (controller.internal_api, controller.version, getattr(controller, "architecture", None))
        library = " ".join(word for word in words if word)
        return Blas(name, library, sgemm, dgemm, bits, controller.num_threads, controller)
    return None
