"""A folder with the user's own modules: they are run anew each time that a config is read."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

#: The modules of the folder that was read last, by name: those that were asked for, and those that they import.
_of_last_folder: dict[str, ModuleType] = {}


class ModuleFolder:
    """Imports modules from `folder` and from where Python looks. What an earlier one has run of its folder is
    forgotten: so changes in a file are seen, and two folders may have modules of one name.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._is_first = True

    def forget_others(self) -> None:
        """Let Python forget what an earlier one has run."""
        if not self._is_first:
            return
        self._is_first = False
        for name, module in _of_last_folder.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
        _of_last_folder.clear()

    def import_module(self, name: str) -> ModuleType:
        """The module of this name. Raises what its code raises."""
        before = set(sys.modules)
        try:
            with self._as_last_place():
                return importlib.import_module(name)
        finally:
            new = {loaded: sys.modules[loaded] for loaded in sys.modules.keys() - before}
            _of_last_folder.update({loaded: module for loaded, module in new.items() if self._has(loaded, module)})

    def _has(self, name: str, module: ModuleType) -> bool:
        """Whether a module, or the package that it is a part of, lies in the folder, and in no environment there."""
        file = getattr(module, "__file__", None)
        if not isinstance(file, str):
            return False
        path = Path(file).resolve()
        return self._folder.resolve() / name.partition(".")[0] in (path.with_suffix(""), *path.parents)

    @contextmanager
    def _as_last_place(self) -> Iterator[None]:
        """The context in which imports also look into the folder, last of all, and leave no bytecode in it: Python
        takes the bytecode of a file that changes within a second for new.
        """
        write_nothing, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        sys.path.append(str(self._folder))
        importlib.invalidate_caches()
        try:
            yield
        finally:
            sys.path.remove(str(self._folder))
            sys.dont_write_bytecode = write_nothing


def forget(top: str) -> None:
    """Let Python forget the module or package of this name, and all that lies in it."""
    for loaded in [loaded for loaded in sys.modules if loaded.partition(".")[0] == top]:
        del sys.modules[loaded]
