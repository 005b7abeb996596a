"""Kernels on disk, each under a hash of all that its machine code depends on: a kernel that is found is the right one.

A kernel is a Python file in a folder of its own, beside its machine code. Models share kernels that are the same.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

from nn_manual.compile.blas import free_cores
from nn_manual.errors import raise_if_out_of_memory

#: The environment variable with the folder of kernels; by default it is in the user's cache directory.
DIRECTORY = "NN_MANUAL_CACHE"

HEADER = '''"""{title}

Written by nn_manual.
"""

from numba import boolean as b1, cfunc, float32 as f4, float64 as f8, int8 as i1, int16 as i2, int32 as i4, int64 as i8
from numba import njit, uint8 as u1, uint16 as u2, uint32 as u4, uint64 as u8

from nn_manual.compile.elementary import *
from nn_manual.compile.gemm import f4_product_{bits} as f4_product, f8_product_{bits} as f8_product
from nn_manual.compile.intrinsics import *
from nn_manual.compile.tiles import *

INFINITY, NAN = float("inf"), float("nan")

'''


def directory() -> Path:
    """The folder of all kernels."""
    if os.environ.get(DIRECTORY):
        return Path(os.environ[DIRECTORY])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "nn_manual"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "nn_manual"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nn_manual"


@functools.cache
def _basis() -> bytes:
    """A hash of what all kernels depend on: the files of this folder, numba, Python and the processor."""
    import llvmlite.binding
    import numba

    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    processor = llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()
    for part in (numba.__version__, llvmlite.__version__, platform.python_version(), *processor):
        digest.update(part.encode() + b"\0")
    return digest.digest()


#: A process that helps to compile gets at least so many functions. It takes half a second to start, as long as three
#: functions take to compile.
SHARE = 6


class Folder:
    """The folder where files stay from run to run: the folder of all kernels or, if nobody can write there, a temporary
    one of this process. `report` takes one line if something can't be used.
    """

    def __init__(self, report: Callable[[str], object]) -> None:
        self._report = report
        self._folder: Path | None = None

    def path(self, name: str) -> Path:
        """The path of a file in the folder."""
        if self._folder is None:
            self._folder = self._writable()
        return self._folder / name

    def _writable(self) -> Path:
        folder = directory()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError as error:
            self.say(f"compiled code is kept for this run alone: {error}")
        own = Path(tempfile.mkdtemp())
        weakref.finalize(self, shutil.rmtree, own, ignore_errors=True)
        return own

    def say(self, line: str) -> None:
        """Report a line; only the first one is reported."""
        report, self._report = self._report, _nothing
        report(line)


def _nothing(line: Any) -> None:
    """Ignore a line."""


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all. Its own folder is made."""
    path.parent.mkdir(exist_ok=True)
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


class Kernels:
    """Compiles kernels, or finds them in the folder, and keeps them loaded."""

    def __init__(self, integer_bits: int, folder: Folder) -> None:
        self.integer_bits, self._folder = integer_bits, folder
        self._entries: dict[str, Any] = {}

    def missing(self, kernels: Mapping[str, str]) -> dict[str, str]:
        """The texts among these that must still be compiled, with their titles."""
        return {text: title for text, title in kernels.items() if not self._path(self._name(text)).exists()}

    def compile(self, kernels: Mapping[str, str]) -> None:
        """Compile these texts, each with its title. If there are many, and free cores, other processes help. Whatever
        they didn't compile, `address` compiles later.
        """
        count = min(free_cores(), len(kernels) // SHARE)
        paths = {kernel: self._path(self._name(kernel)) for kernel in kernels}
        order = sorted(kernels, key=len)  # each process gets long texts and short ones
        if count > 1:
            for kernel in order:
                write(paths[kernel], self._titled(kernel, kernels[kernel]))
        helpers = [_helper([paths[kernel] for kernel in order[i::count]]) for i in range(1, count)]
        try:
            for kernel in order[:: max(count, 1)]:
                self.address(kernel, kernels[kernel])
            for helper in helpers:
                helper.wait()
        finally:
            for helper in helpers:
                helper.kill()
                helper.wait()

    def address(self, kernel: str, title: str) -> int:
        """The address of a kernel's machine code. `title` goes to its file: it says for which formulas it was compiled
        first.
        """
        if kernel not in self._entries:
            self._entries[kernel] = self._loaded(self._name(kernel), self._titled(kernel, title))
        address: int = self._entries[kernel].address
        return address

    def _titled(self, kernel: str, title: str) -> str:
        return self._text(kernel).replace("{title}", title, 1)

    def _text(self, kernel: str) -> str:
        return HEADER.format(title="{title}", bits=self.integer_bits) + kernel

    def _name(self, kernel: str) -> str:
        return f"kernel_{hashlib.sha256(_basis() + self._text(kernel).encode()).hexdigest()[:24]}"

    def _path(self, name: str) -> Path:
        return self._folder.path(name) / f"{name}.py"  # beside thousands of others, its machine code is found slowly

    def _loaded(self, name: str, text: str) -> Any:
        path = self._path(name)
        if is_new := not path.exists():
            write(path, text)
        try:
            return _compiled(path).entry
        except Exception as error:
            raise_if_out_of_memory(error)
            if is_new:
                raise
            reason = str(error) if isinstance(error, _Damaged) else f"{type(error).__name__}: {error}"
            self._folder.say(f"a kernel in {path.parent} is damaged and compiled anew: {reason}")
            for old in _machine_code(path):
                old.unlink(missing_ok=True)
            write(path, text)
            return _compiled(path).entry


class _Damaged(Exception):  # noqa: N818 - says what happened
    """A file of a kernel has changed since it was written."""


def _compiled(path: Path) -> ModuleType:
    """The module of a kernel. Raises _Damaged if its machine code has changed since it was compiled: the processor
    would run it anyway. Code without a hash, which a killed process may leave, is compiled again. If two processes
    compile the same, one may take the other's code for such, and remove it: what was compiled then serves this process
    alone.
    """
    hash_path, code = path.with_suffix(".sha256"), _machine_code(path)
    if code and hash_path.exists():
        if hash_path.read_text(encoding="ascii") == _hash(code):
            return _module(path)
        hash_path.unlink()
        raise _Damaged("its machine code has changed")
    for old in code:
        old.unlink(missing_ok=True)
    module = _module(path)
    with suppress(FileNotFoundError):
        write(hash_path, _hash(_machine_code(path)))
    return module


def _machine_code(path: Path) -> list[Path]:
    """The files of a kernel's machine code: numba's index and code, without the temporary files of other processes."""
    return sorted(found for kind in ("nbi", "nbc") for found in path.parent.glob(f"__pycache__/{path.stem}.*.{kind}"))


def _hash(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def _module(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


def _helper(paths: Sequence[Path]) -> subprocess.Popen[bytes]:
    """A process that compiles these files."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-P", "-m", __name__, *map(str, paths)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        _compiled(Path(argument))
