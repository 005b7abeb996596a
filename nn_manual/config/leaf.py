"""A value that holds no components: a number, a bool, text, a path, or a list of those."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import MISSING
from functools import cache, reduce
from pathlib import Path
from types import GenericAlias
from typing import Any, get_args, get_origin

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from nn_manual.config.yaml_tree import Errors, Node, Place, becomes_infinite, becomes_zero, plain
from nn_manual.errors import ConfigError
from nn_manual.messages.text import quoted

#: Our words for pydantic's kinds of errors; pydantic's own words stand for the other kinds.
EXPECTED = {
    "int_type": "an integer",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "keys and values",
    "is_instance_of": "a path",  # pathlib.Path is the only class among the types
    "greater_than": "above {gt:g}",
    "greater_than_equal": "at least {ge:g}",
}
_NUMBERS = {EXPECTED["int_type"], EXPECTED["float_type"]}

#: Each integer of a config but a seed counts something. No machine has so many bytes, and no run so many steps.
MAX_COUNT = 2**40

#: Text that YAML, Python or a user's eye takes for a number.
_ALMOST_A_NUMBER = re.compile(r"[-+]?\.?([0-9][0-9_:.eE+-]*|0[xo][0-9a-fA-F]+|inf|nan)", re.IGNORECASE)
_ALMOST_A_BOOL = re.compile(r"yes|no|on|off|y|n|true|false", re.IGNORECASE)


def read_leaf(hint: Any, name: str, node: Node, folder: Path, errors: Errors) -> Any:
    """The value of `node`, which is that of the key `name`, as the type `hint`; MISSING where it has errors, which are
    recorded.

    pydantic checks the types strictly: only an int may stand for a float. The tree has made sure that floats are
    finite. A relative path counts from `folder`.
    """
    if get_origin(hint) is tuple:
        return _read_tuple(get_args(hint), name, node, folder, errors)
    value = plain(node)
    if Path in (hint, *get_args(hint)) and isinstance(value, str) and value:  # an empty text is no path
        value = path_in(folder, value)
    try:
        result = adapter(hint).validate_python(value)
        if name != "seed" and (largest := _largest_integer(result)) > MAX_COUNT:
            errors.add(node.name_place, f"{name} must be at most {MAX_COUNT}, not {largest}")
            return MISSING
        return result
    except ValidationError as error:
        # Each member of a union has errors of its own. Those deepest in a list or a mapping belong to the member that
        # was meant. Several errors at one place become one, with several expectations.
        found_at = [(_steps(fault, node), fault) for fault in error.errors()]
        depth = max(len(steps) for steps, _ in found_at)
        faults: dict[tuple[int | str, ...], tuple[Place, str, Any, list[str]]] = {}  # those of an override share one
        for steps, fault in found_at:
            if len(steps) == depth:
                faulty = reduce(lambda parent, step: parent.value[step], steps, node)
                label = name + "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in steps)
                expectations = faults.setdefault(tuple(steps), (faulty.name_place, label, faulty.value, []))[3]
                expected = EXPECTED.get(fault["type"], fault["msg"].removeprefix("Input should be "))
                expected = _forms(hint) or expected
                expectations.append(expected.format(**fault.get("ctx", {})))
        for place, label, found, expectations in faults.values():
            message = f"{label} must be {' or '.join(dict.fromkeys(expectations))}, not {describe(found)}"
            errors.add(place, message + _spelling_hint(found, expectations))
        return MISSING


def _forms(hint: Any) -> str:
    """The forms that a text may have, if its type says them: "like `1 epoch` or `500 steps`". Words about all of them,
    in the type, too, come first.
    """
    about = getattr(hint, "__metadata__", ())
    forms = " or ".join(f"`{form}`" for info in about for form in getattr(info, "examples", None) or ())
    return ", ".join([*(info for info in about if isinstance(info, str)), f"like {forms}"]) if forms else ""


def path_in(folder: Path, text: str) -> Path:
    """The path that a config writes as UTF-8 text. The system may use another encoding for its names."""
    return folder / os.fsdecode(text.encode("utf-8", "surrogatepass"))


def text_of(path: Path) -> str:
    """What a config writes for a path. Raises ConfigError where its bytes are no UTF-8."""
    try:
        return os.fsencode(path).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: a config can't hold this path: it is not UTF-8") from None


def _read_tuple(members: tuple[Any, ...], name: str, node: Node, folder: Path, errors: Errors) -> Any:
    """A list of as many values as a tuple has members, which are all of one type; of any number for `tuple[int, ...]`.
    """
    values = read_leaf(GenericAlias(list, members[:1]), name, node, folder, errors)
    if values is MISSING:
        return MISSING
    if members[1:] != (...,) and len(values) != len(members):
        errors.add(node.name_place, f"{name} must be a list of {len(members)}, not of {len(values)}")
        return MISSING
    return tuple(values)


def describe(value: Any) -> str:
    """A value as errors cite it."""
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, list | dict):
        return f"{'a' if value else 'an empty'} {'list' if isinstance(value, list) else 'mapping'}"
    return repr(value)


def described(value: Any, needed: Mapping[str, Any]) -> str:
    """The same of what stands where keys and values are needed; of a list, also the needed key that it goes under.
    `needed` has the type of each key.
    """
    is_its_list = isinstance(value, list) and [get_origin(hint) for hint in needed.values()] in ([list], [tuple])
    return describe(value) + (f": it goes under {quoted(next(iter(needed)))}" if is_its_list else "")


@cache
def adapter(hint: Any) -> TypeAdapter[Any]:
    """pydantic's validation of a type; raises PydanticUserError for one that it can't validate."""
    return TypeAdapter(hint, config=ConfigDict(strict=True))


def _steps(fault: ErrorDetails, node: Node) -> list[int | str]:
    """The indices and keys, through lists and mappings, from the value to the fault in it; pydantic's names of union
    members are left out.
    """
    steps = []
    for step in fault["loc"]:
        if isinstance(step, int) or (isinstance(node.value, dict) and step in node.value):
            node = node.value[step]
            steps.append(step)
    return steps


def _largest_integer(value: Any) -> int:
    """The largest magnitude of the integers in a value; 0 where it has none."""
    if isinstance(value, list | tuple):
        return max(map(_largest_integer, value), default=0)
    return abs(value) if isinstance(value, int) else 0


def _spelling_hint(found: Any, expectations: list[str]) -> str:
    """How bools and numbers are written, where `found` may be meant as one; else nothing."""
    if isinstance(found, float) and abs(found) >= 2**63 and EXPECTED["int_type"] in expectations:
        return "; integers have at most 64 bits"
    if not isinstance(found, str):
        return ""
    if EXPECTED["bool_type"] in expectations and _ALMOST_A_BOOL.fullmatch(found):
        return "; only these two words, in lower case and without quotes, are bools"
    if not _NUMBERS.isdisjoint(expectations) and becomes_zero(found):
        return "; it is so near to 0 that it would become 0"
    if not _NUMBERS.isdisjoint(expectations) and becomes_infinite(found):
        return "; it is so large that it would become infinite"
    if not _NUMBERS.isdisjoint(expectations) and _ALMOST_A_NUMBER.fullmatch(found):
        return "; numbers are decimal, finite and without quotes: 10, 0.5, 1e-3"
    return ""
