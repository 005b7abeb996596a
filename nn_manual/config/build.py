"""From the tree to validated objects, collecting every error on the way."""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_origin

from nn_manual.config.component_names import REPEAT, beside, named, unknown
from nn_manual.config.contracts import check_contract
from nn_manual.config.layer_fields import LayerField, layer_field, without_none
from nn_manual.config.leaf import describe, described, read_leaf
from nn_manual.config.repeat import layers_of
from nn_manual.config.stand_ins import (
    Unfinished,
    default,
    has_errors,
    is_of_stand_in,
    nearest_node,
    replaced,
    stand_ins_of,
    type_hints,
)
from nn_manual.config.user_classes import CannotImport, Importer, is_import_path
from nn_manual.config.yaml_tree import MAX_ERRORS, Errors, Node, Place
from nn_manual.errors import ComponentError, raise_if_nobodys_fault, words_of
from nn_manual.layers import Layer
from nn_manual.messages.text import advice, quoted
from nn_manual.messages.users_lines import place_in
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.optim.groups import PATTERN, Group, Groups
from nn_manual.registry import KINDS, takes_layers


class Builder:
    """Makes objects of nodes. An object that can't be made is MISSING, and the reason is in `errors`.

    `path` is the dotted path of the object, as in an override; `places` gets the place of each component, by its path.
    Relative paths of files count from `folder`; `importer` imports the user's own classes.
    """

    def __init__(self, folder: Path, importer: Importer, errors: Errors) -> None:
        self.folder = folder
        self.importer = importer
        self.errors = errors
        self.places: dict[str, Place] = {}

    def arguments(self, cls: type, label: str, node: Node, path: str = "", **given: Any) -> dict[str, Any]:
        """The keyword arguments for `cls`: those in `node` that are valid by themselves, and those in `given`."""
        hints = type_hints(cls, include_extras=True)
        known = {field.name: field for field in fields(cls) if field.init and field.name not in given}
        needed = {name: hints[name] for name, field in known.items() if default(field) is MISSING}
        if not isinstance(node.value, dict):
            self.errors.add(node.name_place, f"{label} takes keys and values, not {described(node.value, needed)}")
            return given
        missing = [name for name in needed if name not in node.value]
        if missing:
            self.errors.add(node.name_place, f"{label} needs {' and '.join(missing)}")
        arguments = dict(given)
        for name, child in node.value.items():
            if name not in known:
                self.errors.add(child.name_place, f"unknown key {quoted(name)} in {label}{advice(name, known)}")
                continue
            child_path = f"{path}.{name}".lstrip(".")
            if issubclass(cls, Optimizer) and name == "groups":
                value = self.groups(cls, hints, child, child_path)
            else:
                value = self.value(hints[name], name, child, child_path)
            if value is not MISSING:
                arguments[name] = value
        return arguments

    def construct(self, cls: type, label: str, node: Node, path: str, **given: Any) -> Any:
        """`cls` called with the keyword arguments in `node`.

        A __post_init__ raises ValueError for the first field that is out of range. The message begins with the field's
        name, or with the path to a part of it: "groups.0.lr". To find the other errors, too, `cls` is called again:
        such a field, like one that had an error before, gets what stands in for it, and such a part is taken out.
        """
        if takes_layers(cls):
            return self.composite(cls, label, node, path)
        num_errors = len(self.errors.found)
        arguments = self.arguments(cls, label, node, path, **given)
        if not isinstance(node.value, dict):
            return MISSING
        arguments = {name: value for name, value in arguments.items() if not has_errors(value)}
        stand_ins = stand_ins_of(cls)
        found = {name for name in node.value if name in stand_ins and name not in arguments}
        arguments = stand_ins | arguments
        while MISSING not in arguments.values() and len(found) < MAX_ERRORS:
            try:
                thing = cls(**arguments)
            except ValueError as error:
                name = str(error).partition(" ")[0]
                if name in found or is_of_stand_in(str(error), label, found):  # there is no value to go on with
                    break
                self.errors.add(nearest_node(node, name).name_place, str(error))
                found.add(name)
                if not replaced(arguments, stand_ins, name):
                    break
            else:
                return thing if len(self.errors.found) == num_errors else MISSING
        return MISSING

    def composite(self, cls: Any, label: str, node: Node, path: str) -> Any:
        """The object of a class whose arguments are layers; Unfinished where some of these have errors."""
        layers = self.layers(label, node, path)
        if layers is MISSING:
            return MISSING
        if has_errors(layers):
            return Unfinished(label, layers)
        try:
            return cls.without_memory(*layers) if cls is Sequential else cls(*layers)
        except ValueError as error:
            self.errors.add(node.name_place, str(error))
            return MISSING

    def value(self, hint: Any, name: str, node: Node, path: str) -> Any:
        """What `node` holds, as a value of the type `hint`."""
        inner = without_none(hint)
        if node.value is None and inner is not hint:
            return None
        if get_origin(inner) is partial:
            return self.optimizer(get_args(inner)[0], node, path)
        if (field := layer_field(inner)) is not None:
            return self.layer_field(field, name, node, path)
        if inner in KINDS:
            return self.component(inner, node, path)
        if get_origin(inner) is list and get_args(inner)[0] in KINDS:
            return self.list_of_components(get_args(inner)[0], name, node, path)
        if is_dataclass(inner) and isinstance(inner, type):
            self.places[path] = node.name_place
            return self.construct(inner, name, node, path)
        if isinstance(node.value, list):
            self.places |= {f"{path}.{index}": item.place for index, item in enumerate(node.value)}
        return read_leaf(hint, name, node, self.folder, self.errors)

    def layer_field(self, field: LayerField, name: str, node: Node, path: str) -> Any:
        """The layer or the layers of a composite's field, with MISSING in the place of those of another class."""
        if not field.several:
            return self.of_class(field, name, self.component(Layer, node, path), node)
        layers = self.layers(name, node, path)
        if layers is MISSING:
            return MISSING
        return [self.of_class(field, name, *item) for item in zip(layers, node.value, strict=True)]

    def of_class(self, field: LayerField, name: str, layer: Any, node: Node) -> Any:
        """The layer; MISSING where it isn't of the field's class."""
        if not isinstance(layer, Layer) or isinstance(layer, field.layer_class):
            return layer
        self.errors.add(node.place, f"{name} takes {field.layer_class.__name__}, not {type(layer).__name__}")
        return MISSING

    def component(self, kind: type, node: Node, path: str, **given: Any) -> Any:
        """The component that `node` describes: by its name, or by a mapping from its name to its keyword arguments."""
        label = KINDS[kind].label
        if node.is_faulty:  # the layers in such a Repeat may have errors of their own
            for index, item in enumerate(layers_of(node)):
                self.component(kind, item, f"{path}.{REPEAT}.{index}")
            return MISSING
        if isinstance(node.value, str):
            name, place, arguments = node.value, node.place, Node({}, node.place, node.place)
        elif isinstance(node.value, dict) and node.value:
            (name, arguments), *others = node.value.items()
            place = arguments.name_place
            if arguments.value is None:
                arguments = Node({}, place, place)
            if others:
                other, child = others[0]
                by_override = not child.name_place.line
                self.errors.add(child.name_place, beside(kind, name, other, path, by_override=by_override))
                return MISSING
        else:
            message = f"{label} takes a name, or a name with keyword arguments, not {describe(node.value)}"
            self.errors.add(node.name_place, message)
            return MISSING
        self.places[path] = place
        if is_import_path(name):
            return self.users_own(kind, name, place, arguments, f"{path}.{name}", **given)
        if name not in named(kind):
            self.errors.add(place, unknown(kind, name))
            return MISSING
        return self.construct(named(kind)[name], name, arguments, f"{path}.{name}", **given)

    def users_own(self, kind: type, name: str, place: Place, arguments: Node, path: str, **given: Any) -> Any:
        """A component of the user's own class, whose code may raise anything."""
        try:
            component = self.construct(self.importer.component(kind, name), name, arguments, path, **given)
            if component is not MISSING:
                check_contract(component)
        except (CannotImport, ComponentError) as error:
            self.errors.add(place, str(error))
        except BaseException as error:  # as said
            raise_if_nobodys_fault(error)
            self.errors.add(place, f"{name} raised {words_of(error)}{place_in(self.importer.folder, error)}")
        else:
            return component
        return MISSING

    def optimizer(self, kind: type, node: Node, path: str) -> Any:
        """The optimizer as a partial: its model is built later. Its settings are checked on a model without layers."""
        optimizer = self.component(kind, node, path, model=Sequential())
        if optimizer is MISSING:
            return MISSING
        names = [*optimizer.setting_names(), "groups"]
        return partial(optimizer.__class__, **{name: getattr(optimizer, name) for name in names})

    def groups(self, cls: Any, hints: dict[str, Any], node: Node, path: str) -> Any:
        """An optimizer's groups, as `Optimizer` takes them. Its constructor checks the ranges."""
        if not isinstance(node.value, list):
            self.errors.add(node.name_place, f"groups takes a list of groups, not {describe(node.value)}")
            return MISSING
        known = {PATTERN: str, **{name: hints[name] for name in cls.setting_names()}}
        groups: Groups = []
        for index, item in enumerate(node.value):
            self.places[f"{path}.{index}"] = item.place
            groups.append({PATTERN: "*"} | self.group(known, item, f"{path}.{index}"))
        return groups

    def group(self, known: dict[str, Any], node: Node, path: str) -> Group:
        """The valid entries of a group. `known` has the type of each key."""
        if not isinstance(node.value, dict):
            self.errors.add(node.place, f"a group takes keys and values, not {describe(node.value)}")
            return {}
        if PATTERN not in node.value:
            self.errors.add(node.place, f"a group needs {PATTERN}, a pattern of parameter names")
        values = {}
        for name, child in node.value.items():
            if name not in known:
                self.errors.add(child.name_place, f"unknown key {quoted(name)} in a group{advice(name, known)}")
                continue
            values[name] = self.value(known[name], name, child, f"{path}.{name}")
        return {name: value for name, value in values.items() if value is not MISSING}

    def list_of_components(self, kind: type, label: str, node: Node, path: str) -> Any:
        """A list of components; MISSING where one of them has an error."""
        if not isinstance(node.value, list):
            self.errors.add(node.name_place, f"{label} takes a list, not {describe(node.value)}")
            return MISSING
        items = [self.component(kind, item, f"{path}.{index}") for index, item in enumerate(node.value)]
        return MISSING if MISSING in items else items

    def layers(self, label: str, node: Node, path: str) -> Any:
        """A list of layers, with MISSING in the place of each that has errors."""
        if not isinstance(node.value, list) or not node.value:
            self.errors.add(node.name_place, f"{label} takes a list of layers, not {describe(node.value)}")
            return MISSING
        return [self.component(Layer, item, f"{path}.{index}") for index, item in enumerate(node.value)]
