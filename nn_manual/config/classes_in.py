"""The components that a Python file defines: what `nn-manual check my_losses.py:Huber` names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from nn_manual.config.user_classes import CannotImport, Importer
from nn_manual.config.users_code import kept_streams
from nn_manual.errors import ConfigError
from nn_manual.messages.text import advice, quoted
from nn_manual.registry import KINDS, defined_in, kind_of

#: A Python file, and the class in it, if one is named.
_FILE = re.compile(r"(?P<file>.+\.py)(?::(?P<name>.*))?", re.DOTALL)


def names_classes(text: str) -> bool:
    """Whether it is the name of a Python file, or of a class in one."""
    return _FILE.fullmatch(text) is not None


@kept_streams()
def classes_in(text: str) -> list[type[Any]]:
    """The class that `FILE.py:Class` names, or all components that `FILE.py` defines, those of one kind after those of
    another. Raises ConfigError, with the file, where it can't be imported, or defines none.
    """
    found = _FILE.fullmatch(text)
    assert found is not None  # names_classes has said so
    file, name = Path(found["file"]), found["name"]
    if not file.is_file():
        raise ConfigError(f"{file}: there is no such file")
    importer = Importer(file.absolute().parent)
    try:
        components = {
            own: kind for kind in KINDS for own in defined_in(importer.module(file.stem), kind).values()
        }
        if name is None and not components:
            kinds = ", ".join(kind.__name__ for kind in KINDS)
            raise ConfigError(f"{file}: defines no dataclass that is one of {kinds}")
        if name is not None:
            components = {(own := _named(importer, file, name)): kind_of(own)}
        return [importer.component(kind, f"{own.__module__}:{own.__name__}") for own, kind in components.items()]
    except CannotImport as error:
        raise ConfigError(f"{file}: {error}") from None


def _named(importer: Importer, file: Path, name: str) -> type[Any]:
    """The class of this name in a file. Raises ConfigError where there is none."""
    thing: Any = getattr(importer.module(file.stem), name, None)
    if isinstance(thing, type) and issubclass(thing, tuple(KINDS)):
        return thing
    known = [each for each, own in vars(importer.module(file.stem)).items() if own is not thing and _is_component(own)]
    if thing is None:
        raise ConfigError(f"{file}: has no {quoted(name)}{advice(name, known)}")
    kinds = ", ".join(kind.__name__ for kind in KINDS)
    raise ConfigError(f"{file}: {name} is none of {kinds}: derive it from one of them")


def _is_component(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, tuple(KINDS)) and thing not in KINDS
