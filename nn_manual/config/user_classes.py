"""A user's own class in a config, named by its import path: `my_layers:Softplus` is class Softplus of my_layers.py.

A layer, a loss, an optimizer, a schedule, an initializer and a data set are named, imported and looked at alike. What
an object of each kind must do beside that is in contracts.py.
"""

from __future__ import annotations

import inspect
import sys
from dataclasses import fields, is_dataclass
from functools import partial
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, cast, get_args, get_origin, get_type_hints

from pydantic.errors import PydanticUserError

from nn_manual.config.component_names import named
from nn_manual.config.layer_fields import layer_field, without_none
from nn_manual.config.leaf import adapter
from nn_manual.config.module_folder import ModuleFolder, forget
from nn_manual.config.users_code import placed_words
from nn_manual.errors import raise_if_nobodys_fault, words_of
from nn_manual.messages.text import advice, quoted
from nn_manual.opening import module_not_a_file
from nn_manual.registry import KINDS, kind_of


class CannotImport(Exception):  # noqa: N818 - says what happened; the builder adds the place and makes it an error
    """There is no such class, and the text says why."""


def is_import_path(name: str) -> bool:
    """Whether a component's name is `module:Class`. The name of a built-in one has no colon."""
    return ":" in name


def import_path(component: type) -> str:
    """The name of a component in a config: the class's own name for one of the package's, else `module:Class`."""
    name = component.__name__
    return name if named(kind_of(component)).get(name) is component else f"{component.__module__}:{name}"


def class_of(component: Any) -> type:
    """The class of a component of a config; an optimizer is a partial, because it is made later."""
    return cast(type, component.func if isinstance(component, partial) else type(component))


def why_not_found(component: type) -> str:
    """Why the class isn't what its import path names, in words; empty where it is."""
    module, name = component.__module__, component.__name__
    found = getattr(sys.modules.get(module), name, None)
    if found is component or import_path(component) == name:
        return ""
    count = "another" if isinstance(found, type) else "no"
    return (
        f"the class is called {name}, and module {module} has {count} class of that name: give it the name under which "
        "the module has it (as_layer takes name=)"
    )


class Importer:
    """Imports classes from the modules in `folder` and from installed packages; each module once.

    Each Importer runs a module that lies in `folder` anew, and those of the folder that it imports: so changes in their
    files are seen, and two folders may have modules of one name.
    """

    def __init__(self, folder: Path) -> None:
        self.folder, self._own = folder, ModuleFolder(folder)
        self._modules: dict[str, ModuleType] = {}

    @property
    def is_used(self) -> bool:
        """Whether a class has been imported."""
        return bool(self._modules)

    def component(self, kind: type, path: str) -> type[Any]:
        """The class of this kind that `module:Class` names. Raises CannotImport where it can't be imported, and where
        it is none of this kind whose keyword arguments a config can hold.
        """
        module_name, _, class_name = path.partition(":")
        if not all(part.isidentifier() for part in [*module_name.split("."), class_name]):
            raise CannotImport(f"{quoted(path)} is no import path: a class of one's own is named module:Class")
        module = self.module(module_name)
        if not hasattr(module, class_name):
            known = [name for name, thing in vars(module).items() if _is_of(kind, thing)]
            raise CannotImport(f"module {quoted(module_name)} has no {quoted(class_name)}{advice(class_name, known)}")
        thing = getattr(module, class_name)
        if not _is_of(kind, thing):
            raise CannotImport(_of_another_kind(path, kind, thing))
        if "__dataclass_fields__" not in vars(thing):
            raise CannotImport(f"{path} is not a dataclass: write @dataclass(eq=False) above the class")
        if missing := sorted(thing.__abstractmethods__):
            raise CannotImport(f"{path} lacks {' and '.join(missing)}, which every {KINDS[kind].label} has")
        _check_fields(path, kind, thing)
        component: type[Any] = thing
        return component

    def module(self, name: str) -> ModuleType:
        """The module of this name. Raises CannotImport where it can't be imported."""
        if name not in self._modules:
            self._modules[name] = self._import(name)
        return self._modules[name]

    def _import(self, name: str) -> ModuleType:
        if problem := module_not_a_file(self.folder, name):
            raise CannotImport(problem)
        self._own.forget_others()
        top = name.partition(".")[0]
        file, package = self.folder / f"{top}.py", self.folder / top / "__init__.py"
        if file.is_file() and package.is_file():  # Python would take the package
            raise CannotImport(f"{file} and {package} are both the module {quoted(top)}: rename one of them")
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
            raise CannotImport(placed_words(error, self.folder)) from None

    def _refuse_hidden(self, top: str) -> None:
        """Raise CannotImport for a module of the folder that has the same name as an installed one."""
        elsewhere = [path for path in sys.path if Path(path).resolve() != self.folder.resolve()]
        installed = PathFinder.find_spec(top, elsewhere)
        # One without an origin is a mere folder of that name, which Python would take last.
        if top in sys.stdlib_module_names or (installed is not None and installed.origin is not None):
            raise CannotImport(f"module {quoted(top)} in {self.folder} has the name of an installed one: rename it")


def _is_of(kind: type, thing: object) -> bool:
    return isinstance(thing, type) and issubclass(thing, kind) and thing is not kind


def _of_another_kind(path: str, kind: type, thing: object) -> str:
    """What is wrong with something that isn't of this kind, in words."""
    others = [other.__name__ for other in KINDS if _is_of(other, thing)]
    base = f"{KINDS[kind].module.__name__}.{kind.__name__}"
    how = f"it derives from {others[0]}" if others else f"derive it from {base}"
    return f"{path} is no {kind.__name__}: {how}"


def _check_fields(path: str, kind: type, component: type) -> None:
    """Raise CannotImport for a field without a type, or of a type that YAML can't write."""
    try:
        hints = get_type_hints(component, include_extras=True)
    except BaseException as error:  # annotations are code
        raise_if_nobodys_fault(error)
        raise CannotImport(f"{path}: its fields' types: {words_of(error)}") from None
    assert is_dataclass(component)
    of_kind = getattr(kind, "__dataclass_fields__", {})  # an optimizer's model isn't written, its groups are
    for field in fields(component):
        if field.name in of_kind or _holds_components(hints[field.name]):
            continue
        try:
            adapter(hints[field.name])
        except PydanticUserError:
            hint = inspect.formatannotation(hints[field.name])
            raise CannotImport(f"{path}: a config can't hold its field {field.name}, of type {hint}") from None


def _holds_components(hint: Any) -> bool:
    """Whether a field of this type holds components: layers, or one or several of another kind."""
    inner = without_none(hint)
    return layer_field(inner) is not None or (get_args(inner)[0] if get_origin(inner) is list else inner) in KINDS
