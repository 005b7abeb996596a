"""A user's own layer, named in a config by its import path: `my_layers:Softplus` is class Softplus of my_layers.py."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import get_type_hints

from pydantic.errors import PydanticUserError

from nn_manual.config.component_names import named
from nn_manual.config.layer_fields import layer_field
from nn_manual.config.leaf import adapter
from nn_manual.config.module_folder import ModuleFolder, forget
from nn_manual.errors import (
    ConfigError,
    NNManualError,
    last_line,
    notes_of,
    out_of_memory,
    raise_if_nobodys_fault,
    words_of,
)
from nn_manual.layers import Layer
from nn_manual.messages.text import advice, quoted
from nn_manual.opening import module_not_a_file


class CannotImport(Exception):  # noqa: N818 - says what happened; the builder adds the place and makes it an error
    """There is no such layer, and the text says why."""


def is_import_path(name: str) -> bool:
    """Whether a layer's name is `module:Class`. The name of a built-in layer has no colon."""
    return ":" in name


def import_path(layer_class: type[Layer]) -> str:
    """The name of a layer in a config: the class's own name for one of the package's, `module:Class` for any other."""
    name = layer_class.__name__
    return name if named(Layer).get(name) is layer_class else f"{layer_class.__module__}:{name}"


def why_not_found(layer_class: type[Layer]) -> str:
    """Why the class isn't what its import path names, in words; empty where it is."""
    module, name = layer_class.__module__, layer_class.__name__
    found = getattr(sys.modules.get(module), name, None)
    if found is layer_class or import_path(layer_class) == name:
        return ""
    count = "another" if isinstance(found, type) else "no"
    return (
        f"the class is called {name}, and module {module} has {count} class of that name: give it the name under which "
        "the module has it (as_layer takes name=)"
    )


class Importer:
    """Imports layers from the modules in `folder` and from installed packages; each module once.

    Each Importer runs a module that lies in `folder` anew, and those of the folder that it imports: so changes in their
    files are seen, and two folders may have modules of one name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._own = folder, ModuleFolder(folder)
        self._modules: dict[str, ModuleType] = {}

    @property
    def is_used(self) -> bool:
        """Whether a layer has been imported."""
        return bool(self._modules)

    def layer_class(self, path: str) -> type[Layer]:
        """The class that `module:Class` names. Raises CannotImport where it can't be imported, and where it is no layer
        whose keyword arguments a config can hold.
        """
        module_name, _, class_name = path.partition(":")
        if not all(part.isidentifier() for part in [*module_name.split("."), class_name]):
            raise CannotImport(f"{quoted(path)} is no import path: a layer of one's own is named module:Class")
        module = self._module(module_name)
        if not hasattr(module, class_name):
            known = [name for name, thing in vars(module).items() if _is_layer(thing)]
            raise CannotImport(f"module {quoted(module_name)} has no {quoted(class_name)}{advice(class_name, known)}")
        thing = getattr(module, class_name)
        if not _is_layer(thing):
            raise CannotImport(f"{path} is not a Layer: derive it from nn_manual.layers.Layer")
        if "__dataclass_fields__" not in vars(thing):
            raise CannotImport(f"{path} is not a dataclass: write @dataclass(eq=False) above the class")
        if missing := sorted(thing.__abstractmethods__):
            raise CannotImport(f"{path} lacks {' and '.join(missing)}, which every layer has")
        _check_fields(path, thing)
        layer_class: type[Layer] = thing
        return layer_class

    def _module(self, name: str) -> ModuleType:
        if name not in self._modules:
            self._modules[name] = self._import(name)
        return self._modules[name]

    def _import(self, name: str) -> ModuleType:
        if problem := module_not_a_file(self.folder, name):
            raise CannotImport(problem)
        self._own.forget_others()
        top = name.partition(".")[0]
        if PathFinder.find_spec(top, [str(self.folder)]) is not None:
            self._refuse_hidden(top)
            if not any(loaded.partition(".")[0] == top for loaded in self._modules):
                forget(top)
        try:
            return self._own.import_module(name)
        except BaseException as error:  # a module's code may raise anything
            raise_if_nobodys_fault(error)
            if isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}."):
                modules = sorted(path.stem for path in self.folder.glob("*.py") if path.is_file())
                hint = advice(name, modules) if modules else ""
                raise CannotImport(
                    f"no module {quoted(name)} in {self.folder}, and none of that name is installed{hint}"
                ) from None
            raise CannotImport(_describe(error, self.folder)) from None

    def _refuse_hidden(self, top: str) -> None:
        """Raise CannotImport for a module of the folder that has the same name as an installed one."""
        elsewhere = [path for path in sys.path if Path(path).resolve() != self.folder.resolve()]
        installed = PathFinder.find_spec(top, elsewhere)
        # One without an origin is a mere folder of that name, which Python would take last.
        if top in sys.stdlib_module_names or (installed is not None and installed.origin is not None):
            raise CannotImport(f"module {quoted(top)} in {self.folder} has the name of an installed one: rename it")


@contextmanager
def reported(model: Iterable[Layer], folder: Path | None, *, checked: bool) -> Iterator[None]:
    """The context in which an error in a model becomes a ConfigError that begins with file:line. `model` has the
    layers, some of which may be the user's own.

    Where the error is not raised in their code, but in code that used what they returned, a note names these layers.
    `checked` says whether each step is compared with torch's, as this mostly names the layer. If memory is short, a
    note names the line of their code that asked for it.
    """
    try:
        with kept_streams():
            yield
    except NNManualError:
        raise
    except BaseException as error:  # a user's own layer may raise anything
        if out_of_memory(error) is not None and folder is not None and (place := last_line(error, folder)) is not None:
            error.add_note(f"asked for at {place}")
        raise_if_nobodys_fault(error)
        classes = [type(layer) for layer in model]
        theirs = [owner.__name__ for owner in classes if not owner.__module__.startswith("nn_manual.")]
        # Python turns a StopIteration that leaves a generator into an error that says less.
        first = error.__cause__ if isinstance(error.__cause__, StopIteration) else error
        placed = ConfigError(_describe(first, folder))
        if folder is None or last_line(first, folder) is None:
            if not theirs or isinstance(error, OSError):
                raise
            advice = "" if checked else ": gradient_check.every=1 names the layer"
            placed.add_note(f"{' or '.join(theirs)} may have returned it{advice}")
        for note in notes_of(error):
            placed.add_note(note)
        raise placed from error


@contextmanager
def kept_streams() -> Iterator[None]:
    """A context for the user's code. After it, standard output and standard error are the same streams as before."""
    before = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def _is_layer(thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, Layer) and thing is not Layer


def _check_fields(path: str, layer_class: type[Layer]) -> None:
    """Raise CannotImport for a field without a type, or of a type that YAML can't write."""
    try:
        hints = get_type_hints(layer_class, include_extras=True)
    except BaseException as error:  # annotations are code
        raise_if_nobodys_fault(error)
        raise CannotImport(f"{path}: its fields' types: {words_of(error)}") from None
    assert is_dataclass(layer_class)
    for field in fields(layer_class):
        if layer_field(hints[field.name]) is not None:
            continue
        try:
            adapter(hints[field.name])
        except PydanticUserError:
            hint = inspect.formatannotation(hints[field.name])
            raise CannotImport(f"{path}: a config can't hold its field {field.name}, of type {hint}") from None


def _describe(error: BaseException, folder: Path | None) -> str:
    """file:line and the error. The line is where a module can't be parsed, or else the last line that ran; in `folder`,
    if one of its lines ran.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}: {type(error).__name__}: {error.msg}"
    place = last_line(error, folder) if folder else None
    if place is None:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{frame.filename}:{frame.lineno}"
    return f"{place}: {words_of(error)}"
