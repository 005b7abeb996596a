"""The types of a composite's fields: one layer or several, of any class or of one."""

from __future__ import annotations

from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

from nn_manual.layers import Layer


class LayerField(NamedTuple):
    """A field that holds layers of a class: one, or several."""

    layer_class: type[Layer]
    several: bool


def layer_field(hint: Any) -> LayerField | None:
    """What layers a field of this type holds: `Layer`, `Linear | None`, `list[Layer]` or `tuple[Layer, ...]`. None for
    a field of another type.
    """
    inner = without_none(hint)
    several = get_origin(inner) is list or (get_origin(inner) is tuple and get_args(inner)[1:] == (...,))
    member = get_args(inner)[0] if several else inner
    return LayerField(member, several) if isinstance(member, type) and issubclass(member, Layer) else None


def without_none(hint: Any) -> Any:
    """`thing` for `thing | None`, any other type as it is."""
    if get_origin(hint) in (Union, UnionType) and type(None) in get_args(hint):
        return Union[tuple(member for member in get_args(hint) if member is not type(None))]  # noqa: UP007 - of a tuple
    return hint
