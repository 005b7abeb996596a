"""What bundle.yaml says of a step that differed from torch's."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from nn_manual.config.tree import Errors, Place, plain, read_tree
from nn_manual.errors import ConfigError, DataError
from nn_manual.run_directory.files import read_file


@dataclass(frozen=True)
class Bundle:
    """What bundle.yaml holds. `lrs` are the optimizer's and those of its groups. `found` says what was wrong;
    `layer` and `tensor` are where it was wrong first, empty for a step that could not be compared. `tolerances` are
    fractions of the norm, by dtype; `sources` has the SHA-256 of each module that the formulas stood in, by its name.
    """

    step: int
    lrs: list[float]
    found: str
    layer: str
    tensor: str
    tolerances: dict[str, float]
    versions: dict[str, str]
    sources: dict[str, str]
    sha256: str


def read_bundle(path: Path) -> Bundle:
    """The file that `dump_yaml` made of a Bundle. Raises DataError, naming `path`."""
    errors = Errors()
    try:
        tree = read_tree(read_file(path).decode(), partial(Place, str(path)), errors)
        errors.raise_if_any()
        return TypeAdapter(Bundle).validate_python(tree and plain(tree))
    except (UnicodeDecodeError, ConfigError, ValidationError) as error:
        raise DataError(f"{path}: is no whole description of a bundle: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        fault = error.errors()[0]
        return f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}"
    return str(error).partition("\n")[0]


def versions() -> dict[str, str]:
    """What rounding can depend on."""
    installed = {name: version(name) for name in ("nn_manual", "numpy", "torch")}
    return {**installed, "python": platform.python_version(), "platform": platform.platform()}
