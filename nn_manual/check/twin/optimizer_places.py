"""Where the parameters of an optimizer lie, and in which group each is."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import NamedTuple

from nn_manual.arrays import Shape, size_of
from nn_manual.defaults import defines
from nn_manual.optim import Optimizer


class Place(NamedTuple):
    """Where a parameter of torch's lies in our vectors, the number of its group, from 1, and its shape."""

    where: slice
    group: int
    shape: Shape


def places(optimizer: Optimizer) -> Iterator[Place]:
    """Where the parameters lie, and in which group each is: found here anew, without the optimizer's own search, so
    that this is checked as well.
    """
    shapes = optimizer.model.parameter_shapes()
    ends = list(accumulate((size_of(shape) for shape in shapes.values()), initial=0))
    is_one = optimizer.is_elementwise and not defines(optimizer, "reference")  # a reference is of one parameter
    if is_one and not optimizer.groups:
        yield Place(slice(0, ends[-1]), 0, (ends[-1],))
        return
    for (name, shape), start, stop in zip(shapes.items(), ends, ends[1:], strict=False):
        own_shape = (stop - start,) if is_one else shape
        yield Place(slice(start, stop), group_of(optimizer, name), own_shape)


def group_of(optimizer: Optimizer, name: str) -> int:
    """The number of the group that a parameter is in, from 1; 0 where it is in none."""
    matching = [i for i, group in enumerate(optimizer.groups, 1) if fnmatchcase(name, group["parameters"])]
    return min(matching, default=0)
