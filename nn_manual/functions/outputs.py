"""What a function returns: tensors in lists, dicts and dataclasses, each with a name, and the values beside them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.arguments import as_tensor
from nn_manual.messages.text import counted, quoted

#: Arrays and plain numbers, which become tensors: a function may return a loss as a plain number.
NUMBERS = np.ndarray | np.generic | int | float | complex

#: How the name of a module's buffer begins among its outputs.
BUFFER = "buffer "


class Outputs(NamedTuple):
    """What a function returned, by name: the `tensors`, and the `others`, such as None."""

    tensors: dict[str, torch.Tensor]
    others: dict[str, Any]


def named_outputs(returned: Any) -> Outputs:
    """Everything that a function returned, by name: `output` where it is a tensor, `output 0` and so on in a list or
    tuple, `output['key']` in a dict, `output.field` in a dataclass. Arrays and numbers become tensors.
    """
    if isinstance(returned, Outputs):
        return returned
    if isinstance(returned, list | tuple):
        found = dict(both for i, each in enumerate(returned) for both in flat(each, f"output {i}"))
    else:
        found = dict(flat(returned, "output"))
    tensors = {name: as_tensor(each) for name, each in found.items() if isinstance(each, NUMBERS | torch.Tensor)}
    return Outputs(tensors, {name: each for name, each in found.items() if name not in tensors})


def flat(thing: Any, name: str) -> Iterator[tuple[str, Any]]:
    """The items of lists, tuples, dicts and dataclasses, each with the name of its place; or the thing itself."""
    if isinstance(thing, Mapping):
        for key, each in thing.items():
            yield from flat(each, f"{name}[{key!r}]")
    elif isinstance(thing, list | tuple):
        for i, each in enumerate(thing):
            yield from flat(each, f"{name}[{i}]")
    elif is_dataclass(thing) and not isinstance(thing, type):
        for field in fields(thing):
            yield from flat(getattr(thing, field.name), f"{name}.{field.name}")
    else:
        yield name, thing


def check_structure(label: str, ours: Outputs, theirs: Outputs) -> None:
    """Raise CannotCompare if the function returned another structure than its reference, or other values beside the
    tensors. A tuple may stand for a list, and a dict may have another order.
    """
    own, other = ({**each.tensors, **each.others} for each in (ours, theirs))
    if len(own) != len(other):
        raise CannotCompare(f"{label}: {counted(len(own), 'output')}, the reference has {len(other)}")
    if own.keys() != other.keys():
        first, instead = (next(name for name in one if name not in two) for one, two in ((own, other), (other, own)))
        called = {"output": "a tensor", "output 0": "a list or tuple of one"} if len(own) == 1 else {}
        first, instead = (called.get(name, name) for name in (first, instead))
        raise CannotCompare(f"{label}: returned {first} where the reference has {instead}")
    for name in {**ours.others, **theirs.others}:
        if not _equal(own[name], other[name]):
            raise CannotCompare(f"{label}: {name} is {_shown(own[name])}, the reference's {_shown(other[name])}")


def _equal(one: Any, other: Any) -> bool:
    """Whether both have one type and are equal; two values of a type without __eq__ count as equal."""
    if type(one) is not type(other):
        return False
    return "__eq__" not in {name for kind in type(one).__mro__[:-1] for name in vars(kind)} or bool(one == other)


def _shown(thing: Any) -> str:
    return repr(thing) if thing is None else quoted(thing) if isinstance(thing, str) else f"a {type(thing).__name__}"
