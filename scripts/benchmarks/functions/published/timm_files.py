"""timm's files, without its `__init__`, which imports every model, and without torchvision, which may not load."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from typing import Any


def _without_init(name: str) -> None:
    """Make the files of a package known, and don't run its `__init__`. Raises ModuleNotFoundError."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named {name!r}")
    sys.modules[name] = importlib.util.module_from_spec(spec)


def timm_file(name: str) -> Any:
    """The module `timm.<name>`."""
    for package in ("timm", "timm.layers"):
        if package not in sys.modules:
            _without_init(package)
    # timm does without torchvision where it isn't installed. One that was built for another torch is installed, and
    # raises RuntimeError.
    modules: dict[str, Any] = sys.modules
    hidden = "torchvision" not in modules
    if hidden:
        modules["torchvision"] = None
    try:
        return importlib.import_module(f"timm.{name}")
    finally:
        if hidden:
            del modules["torchvision"]
