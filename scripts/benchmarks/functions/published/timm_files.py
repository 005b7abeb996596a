"""timm's files without its `__init__`, which imports every model and torchvision; not every torch can load the latter."""

from __future__ import annotations

import importlib.util
import sys


def _without_init(name: str) -> None:
    """A package whose files can be imported, and whose `__init__` doesn't run."""
    spec = importlib.util.find_spec(name)
    if spec is None:
        raise ModuleNotFoundError(f"No module named '{name}'")
    sys.modules[name] = importlib.util.module_from_spec(spec)


for _name in ("timm", "timm.layers"):
    if _name not in sys.modules:
        _without_init(_name)
