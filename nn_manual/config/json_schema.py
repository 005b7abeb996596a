"""The JSON Schema of a config, by which an editor completes and checks the file while it is written."""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from typing import Any, Literal, TypeAlias, get_args, get_origin, get_type_hints

from nn_manual.config.component_names import REPEAT, named
from nn_manual.config.config_file import plain_of
from nn_manual.config.layer_fields import layer_field, without_none
from nn_manual.config.leaf import adapter
from nn_manual.config.listing import first_sentence, keys, sentences
from nn_manual.config.repeat import MAX_TIMES
from nn_manual.config.run_config import Layers, RunConfig
from nn_manual.config.stand_ins import default
from nn_manual.layers import Layer
from nn_manual.optim import Optimizer
from nn_manual.optim.groups import PATTERN
from nn_manual.registry import KINDS, takes_layers

Schema: TypeAlias = dict[str, Any]

#: The version of JSON Schema that all editors know.
DRAFT = "http://json-schema.org/draft-07/schema#"
#: The name of a class of the user's own, module:Class.
OWN_CLASS = "^[^:]+:[^:]+$"


def schema_text() -> str:
    """The schema, as JSON in a file has it."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def json_schema() -> Schema:
    """The schema of what `load_config` takes: the keys with their types and defaults, and the components by name. It
    can't say whether sizes fit each other, how a number is spelled, and what a class of the user's own takes.
    """
    definitions = {kind.__name__: _component(kind) for kind in KINDS}
    return {"$schema": DRAFT} | _mapping(RunConfig) | {"definitions": definitions}


def _component(kind: type) -> Schema:
    """The forms of a component: a name alone, or a mapping from the name to keyword arguments."""
    known = dict(sorted(named(kind).items()))
    alone = {name: first_sentence(component) for name, component in known.items() if _needs_nothing(component)}
    arguments = {name: _arguments(component) for name, component in known.items()}
    with_arguments: Schema = {"type": "object", "properties": arguments}
    forms: list[Schema] = [with_arguments]
    if alone:
        forms.insert(0, {"enum": list(alone), "enumDescriptions": list(alone.values())})
    if kind is Layer:
        arguments[REPEAT] = _repeat()
    # Only the class says what else it may take, and none is imported for the schema.
    own = {"type": ["object", *(["array"] if kind is Layer else []), "null"]}
    with_arguments["patternProperties"] = {OWN_CLASS: own}
    forms.append({"type": "string", "pattern": OWN_CLASS})
    with_arguments |= {"additionalProperties": False, "minProperties": 1, "maxProperties": 1}
    return {"anyOf": forms}


def _needs_nothing(component: type) -> bool:
    """Whether a component's name alone is enough."""
    return not takes_layers(component) and all(value is not None for _, _, value in keys(component))


def _arguments(component: type) -> Schema:
    """What stands behind a component's name: keyword arguments, nothing if it needs none, or a list of layers."""
    if takes_layers(component):
        return {"description": first_sentence(component)} | _value(Layers)
    return _mapping(component, can_be_null=_needs_nothing(component))


def _repeat() -> Schema:
    times = {"description": "how many copies", "type": "integer", "minimum": 1, "maximum": MAX_TIMES}
    return {
        "description": "Copies of these layers, each with parameters of its own.",
        "type": "object",
        "properties": {"times": times, "layers": _value(Layers)},
        "required": ["times", "layers"],
        "additionalProperties": False,
    }


def _mapping(cls: type, *, can_be_null: bool = False) -> Schema:
    """The keys of a dataclass, each with its type and default in words and the sentences about it."""
    assert is_dataclass(cls)
    hints, its_fields = get_type_hints(cls, include_extras=True), {field.name: field for field in fields(cls)}
    properties: dict[str, Schema] = {}
    for name, words, value in keys(cls):
        described = [words if value is None else f"{words} = {value}", *_sentences_about(cls, name)]
        properties[name] = {"description": "\n\n".join(described)} | _key(cls, name, hints)
        if (value_itself := default(its_fields[name])) is not MISSING:
            properties[name]["default"] = plain_of(value_itself)
    return {
        "description": first_sentence(cls),
        "type": ["object", "null"] if can_be_null else "object",
        "properties": properties,
        "required": [name for name, _, value in keys(cls) if value is None],
        "additionalProperties": False,
    }


def _sentences_about(cls: type, name: str) -> list[str]:
    """The sentences of a class's docstring that name one of its keys."""
    return [sentence for sentence in sentences(cls) if f"`{name}`" in sentence]


def _key(cls: type, name: str, hints: dict[str, Any]) -> Schema:
    if issubclass(cls, Optimizer) and name == "groups":
        return _groups(cls, hints)
    return _value(hints[name])


def _groups(cls: type[Optimizer], hints: dict[str, Any]) -> Schema:
    """An optimizer's groups: each has a pattern of parameter names, and any of the settings."""
    settings = {name: _value(hints[name]) for name in cls.setting_names()}
    group = {
        "type": "object",
        "properties": {PATTERN: {"description": "a pattern of parameter names", "type": "string"}} | settings,
        "required": [PATTERN],
        "additionalProperties": False,
    }
    return {"type": "array", "items": group}


def _value(hint: Any) -> Schema:
    """What a key of this type takes, in the cases of `Builder.value`; pydantic says it of what holds no components."""
    inner = without_none(hint)
    if inner is not hint:
        return {"anyOf": [_value(inner), {"type": "null"}]}
    members = get_args(hint)
    if get_origin(hint) is partial:
        return _value(members[0])
    if (layers := layer_field(hint)) is not None:
        return {"type": "array", "items": _kind(Layer), "minItems": 1} if layers.several else _kind(Layer)
    if hint in KINDS:
        return _kind(hint)
    if get_origin(hint) is list and members[0] in KINDS:
        return {"type": "array", "items": _kind(members[0])}
    if is_dataclass(hint) and isinstance(hint, type):
        return _mapping(hint)
    if get_origin(hint) is Literal:  # pydantic's words for a single value have changed
        return {"enum": list(members)}
    if get_origin(hint) is tuple:  # of members of one type
        return {"type": "array", "items": _value(members[0]), "minItems": len(members), "maxItems": len(members)}
    return _of_plain_values(hint)


@cache
def _of_plain_values(hint: Any) -> Schema:
    return adapter(hint).json_schema()


def _kind(kind: type) -> Schema:
    """A component of this kind. Draft 7 ignores what stands beside a $ref; in an allOf, it counts."""
    return {"allOf": [{"$ref": f"#/definitions/{kind.__name__}"}]}
