"""Generated files on disk, and what decides whether one is still right.

A file's name is a hash of all that its text and its machine code depend on: so a file is right or isn't found. numba
keeps the machine code in a folder beside it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

#: Where plans are kept; the user's cache directory by default.
DIRECTORY = "NN_MANUAL_CACHE"
#: The package, whose files formulas are in.
PACKAGE = Path(__file__).parent.parent


def directory() -> Path:
    """The folder of all plans."""
    if os.environ.get(DIRECTORY):
        return Path(os.environ[DIRECTORY])
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "nn_manual"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home())) / "nn_manual"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "nn_manual"


def stamp_of(text: str, files: Iterable[Path] = ()) -> str:
    """A hash of a source's text, and of all else that its machine code depends on: this folder's files, the `files` of
    the formulas, numba and the processor.
    """
    import llvmlite.binding
    import numba

    digest = hashlib.sha256(text.encode())
    for path in sorted({*Path(__file__).parent.glob("*.py"), *files}):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    processor = llvmlite.binding.get_host_cpu_name(), llvmlite.binding.get_host_cpu_features().flatten()
    for part in (numba.__version__, np.__version__, platform.python_version(), *processor):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()[:32]


def loaded(text: str, stamp: str, names: Iterable[str], report: Any) -> ModuleType:
    """The module of a generated source, compiled: that of the cache, or a new one. `report` takes a line where the
    cache can't be used.
    """
    path = directory() / f"step_{stamp}.py"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            _write(path, text)
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(f"{path.parent} can't be written")
    except (OSError, UnicodeDecodeError) as error:
        report(f"the plan is compiled for this run alone: {error}")
        return _in_temporary_folder(text, stamp)
    try:
        return _module(path)
    except Exception as error:  # noqa: BLE001 - whatever a damaged file raises: what is wrong with the text, comes again
        report(f"the plan in the cache is damaged, it is compiled anew: {error}")
        for old in path.parent.glob(f"__pycache__/step_{stamp}*"):
            old.unlink(missing_ok=True)
        sys.modules.pop(path.stem, None)
        return _module(path)


def _in_temporary_folder(text: str, stamp: str) -> ModuleType:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"step_{stamp}.py"
        _write(path, text)
        return _module(path)


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    beside = path.with_suffix(f".{os.getpid()}")
    beside.write_text(text, encoding="utf-8")
    beside.replace(path)


def _module(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module
