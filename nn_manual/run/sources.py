"""The files in which a run's formulas stand: by their SHA-256, a replay knows whether it runs the recorded code."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

from nn_manual.config import RunConfig
from nn_manual.config.user_classes import class_of
from nn_manual.defaults import is_of_package
from nn_manual.model import Sequential
from nn_manual.optim import clip_grad_norm
from nn_manual.step.slices.cut import parts_of
from nn_manual.step.slices.gradient_sum import InOrder
from nn_manual.step.slices.sync_batch_norm import SyncBatchNorm

#: The components that no step runs: they have done their work before, or between two steps.
OUTSIDE_OF_A_STEP = ("data", "initializer", "lr_scheduler")


def sources_of(config: RunConfig) -> dict[str, str]:
    """The SHA-256 of each module's file, by the module's name. These are the modules that define the classes of the
    layers, the loss, the optimizer and the user's own components, and the classes from which they inherit; the modules
    beside them whose functions they use; the code that puts slices together; what takes the place of batch
    normalization; and whatever was imported from `layer_folder`. Python's own modules are left out, and those without a
    file.
    """
    names = {name for name in _module_names(config) if name.partition(".")[0] not in sys.stdlib_module_names}
    files = {name: Path(getattr(sys.modules.get(name), "__file__", None) or "") for name in sorted(names)}
    return {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items() if file.is_file()}


def changed_sources(recorded: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the recorded modules whose file is another one now, or is gone."""
    return [name for name, sha256 in recorded.items() if now.get(name) != sha256]


def _module_names(config: RunConfig) -> Iterator[str]:
    for owner in [*_classes(config), *([SyncBatchNorm] if config.sync_batch_norm else [])]:
        for base in owner.__mro__:
            yield base.__module__
            yield from _beside(base.__module__)
    yield clip_grad_norm.__module__
    if (config.slices or 1) > 1:
        yield from (parts_of.__module__, InOrder.__module__)
    if config.layer_folder is not None:
        yield from _modules_in(config.layer_folder.resolve())


def _classes(config: RunConfig) -> Iterator[type]:
    """The classes whose formulas a step runs, and all of the user's own."""
    yield Sequential
    for path, component in config.components().items():
        own = class_of(component)
        if path not in OUTSIDE_OF_A_STEP or not is_of_package(own):
            yield own


def _beside(name: str) -> Iterator[str]:
    """The modules in the same package that a module has imported, or from which it has functions or classes."""
    package = name.rpartition(".")[0]
    for thing in list(vars(sys.modules[name]).values()) if package and name in sys.modules else ():
        module = thing.__name__ if isinstance(thing, ModuleType) else getattr(thing, "__module__", None)
        if isinstance(module, str) and module.rpartition(".")[0] == package:
            yield module


def _modules_in(folder: Path) -> Iterator[str]:
    """The modules that were imported from the folder itself, not those of an environment that lies in it, say."""
    tops = {path.name.removesuffix(".py") for path in folder.glob("*")}
    for name, module in list(sys.modules.items()):
        top = name.partition(".")[0]
        if top not in tops:  # to resolve the paths of thousands of modules takes a tenth of a second
            continue
        file = Path(getattr(module, "__file__", None) or "").resolve()
        if file == folder / f"{top}.py" or file.is_relative_to(folder / top):
            yield name
