"""What may become of a sample, and how two arrays are compared."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.tolerances import SUM_OF_PRODUCTS

#: Ours gives torch's numbers.
EQUAL = "equal"
#: Ours refuses the sample as it is, and gives torch's numbers for it in another form: an example in a batch of one.
ADAPTED = "adapted"
#: A ValueError or TypeError of ours.
REFUSED = "refused"
#: Other numbers, or an error that is no refusal.
DIFFERENT = "DIFFERENT"
#: torch has the class, and ours doesn't.
MISSING = "no class"
#: It isn't one array, and one target for a loss, to one array, or to one number for a loss.
NO_FIT = "no fit"

VERDICTS = EQUAL, ADAPTED, REFUSED, DIFFERENT, MISSING, NO_FIT
#: The part of the samples that fit which must be equal.
WANTED = 0.95

DTYPES = {"float32": torch.float32, "float64": torch.float64}

#: A result by its name.
Results: TypeAlias = dict[str, Array]


class NoFit(Exception):  # noqa: N818 - says what doesn't fit, not that something broke
    """The sample isn't of our contract; the text says why."""


class Refused(Exception):  # noqa: N818 - as above
    """Our class refuses the sample; the text is its message."""


class Verdict(NamedTuple):
    """One of the VERDICTS, and why."""

    word: str
    why: str = ""


def refusing(function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """What it returns. Raises Refused for its ValueError or TypeError."""
    try:
        return function(*arguments, **named)
    except (ValueError, TypeError) as error:
        raise Refused(str(error)) from error


def as_in_a_config(value: Any) -> Any:
    """Lists for tuples and tensors, the name of a function."""
    if torch.is_tensor(value):
        return value.tolist()
    if callable(value):
        return value.__name__
    return [as_in_a_config(each) for each in value] if isinstance(value, tuple | list) else value


def as_array(tensor: torch.Tensor) -> Array:
    """A copy in memory of its own."""
    array: Array = tensor.detach().numpy().copy()
    return array


def difference(
    ours: Mapping[str, Array], torchs: Mapping[str, Array], upstream: float = 0, tolerance: float | None = None
) -> str:
    """What differs first, in words; empty where all results are equal up to the tolerance, by default the check's. Two
    results that are
    not finite are equal if they are the same. `upstream` is the largest number in the upstream gradient: a gradient may
    be much smaller where the formula subtracts nearly equal numbers, as 1 - output**2, and then it is mostly rounding.
    """
    if ours.keys() != torchs.keys():
        return f"ours has {', '.join(ours)}, torch {', '.join(torchs)}"
    for name, expected in torchs.items():
        found = np.asarray(ours[name])
        if (found.shape, found.dtype) != (expected.shape, expected.dtype):
            return f"{name} is {found.dtype} of shape {found.shape}, torch's {expected.dtype} of shape {expected.shape}"
        if expected.dtype.kind != "f":
            if not np.array_equal(found, expected):
                return f"{name} differs"
            continue
        finite = np.isfinite(expected)
        if not np.array_equal(found[~finite], expected[~finite], equal_nan=True):
            return f"{name} differs where torch's isn't finite"
        scale = np.abs(expected[finite]).max(initial=upstream if name.startswith("grad_") else 0)
        worst = np.abs(found[finite] - expected[finite]).max(initial=0)
        if not worst <= (tolerance or SUM_OF_PRODUCTS[expected.dtype.name]) * scale:
            return f"{name} differs by {worst:.1e}, of {scale:.1e}"
    return ""
