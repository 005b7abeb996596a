"""The sizes on which the rows run: small ones, large ones, and those that no block divides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from nn_manual import streams
from nn_manual.functions.callables import is_array
from nn_manual.functions.function_case import FunctionCase, eps_of
from nn_manual.functions.judged_case import judge
from nn_manual.streams import Stream


class Choice(tuple[int, ...]):
    """The only sizes that a dimension may have, the largest last."""


#: The sizes of each dimension: the full one of a dimension that may have any, or a choice.
Sizes: TypeAlias = Mapping[str, int | Choice]

#: In rows that run on small sizes, the dimensions have at most these, in turn. They differ from each other, so that one
#: axis can't be taken for another.
SMALL = (7, 6, 5, 4, 3)

#: Given inputs with more numbers than LARGE in total are cut for the rows, each axis to about CUT, which is past two
#: blocks of 16.
LARGE = 1 << 16
CUT = 33

#: Some rows run on the full size, too, if the inputs have at most MOST numbers, or the dimensions multiply to at most
#: MOST. If not, they run on a smaller size, which has the same remainder by each power of two up to BLOCK.
MOST = 1 << 22
BLOCK = 128

#: The layouts also run on sizes a little past a block, which leave a tail. It is the largest of these blocks with which
#: the sizes multiply to at most LARGE. Of many dimensions, only the last MOST_RAGGED change: features are among them.
BLOCKS, MOST_RAGGED = (128, 32, 16), 4


def small_sizes(sizes: Sizes) -> dict[str, int]:
    """Small sizes; of a choice, the smallest above 1: with one step or none, much would be zero or empty."""
    found = dict[str, int]()
    for i, (name, size) in enumerate(sizes.items()):
        if isinstance(size, Choice):
            found[name] = next((each for each in size if each > 1), size[-1])
        else:
            others = (each for each in SMALL[i % len(SMALL) :] if each <= size and each not in found.values())
            found[name] = next(others, min(size, SMALL[i % len(SMALL)]))
    return found


def full_sizes(sizes: Sizes) -> dict[str, int]:
    """The full size of each dimension."""
    return {name: size[-1] if isinstance(size, Choice) else size for name, size in sizes.items()}


def free_dimensions(sizes: Sizes) -> list[str]:
    """The dimensions that may have any size."""
    return [name for name, size in sizes.items() if not isinstance(size, Choice)]


def ragged_sizes(sizes: Sizes, step: int) -> dict[str, int]:
    """For the free dimensions, sizes a little past a block: by odd multiples of `step`."""
    free = free_dimensions(sizes)[-MOST_RAGGED:]
    found = [{name: block + step * (1 + 2 * i) for i, name in enumerate(free)} for block in BLOCKS]
    return next((ragged for ragged in found if math.prod(ragged.values()) <= LARGE), found[-1])


def large_sizes(sizes: Sizes) -> dict[str, int]:
    """The full sizes, or smaller ones with the same remainders if the full ones are too large."""
    full = full_sizes(sizes)
    if math.prod(full.values()) <= MOST:
        return full
    free = free_dimensions(sizes)
    return {name: _folded(size) if name in free else size for name, size in full.items()}


def cut(case: FunctionCase) -> FunctionCase | None:
    """The first rows and columns of large inputs; None if they are small. Axes of equal length keep an equal length."""
    if _count(case) <= LARGE:
        return None
    lengths = [length for length in lengths_of(case) if length > CUT + len(SMALL)]
    return shortened(case, {length: CUT + i for i, length in enumerate(lengths)})


def cut_if_large(case: FunctionCase) -> FunctionCase:
    """The inputs themselves; if they are too large, their first rows and columns, with the same remainders."""
    if _count(case) <= MOST:
        return case
    lengths = [length for length in lengths_of(case) if length > _folded(length)]
    return shortened(case, {length: _folded(length) + i * BLOCK for i, length in enumerate(lengths)})


def is_steady(case: FunctionCase) -> bool:
    """Whether the reference agrees with itself on inputs that are moved by an eps. A long recurrence with large weights
    doesn't, and there another layout, which rounds in another order, shows nothing. 16 bits need no such test: they are
    judged by the reference's own distance.
    """
    generator = streams.generator(case.seed, Stream.STEADY)

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        signs = torch.as_tensor(generator.integers(2, size=tuple(tensor.shape))).to(tensor) * 2 - 1
        return tensor * (1 + eps_of(tensor.dtype) * signs)

    return case.is_low or judge(replace(case, function=case.reference, layout=moved)).agrees


def _count(case: FunctionCase) -> int:
    return sum(math.prod(leaf.shape) for leaf in case.arguments.leaves if is_array(leaf))


def lengths_of(case: FunctionCase) -> list[int]:
    """The lengths of the inputs' axes, each once, in order."""
    return sorted({length for leaf in case.arguments.leaves if is_array(leaf) for length in leaf.shape})


def _folded(length: int) -> int:
    return min(length, BLOCK + length % BLOCK)


def shortened(case: FunctionCase, shorter: Mapping[int, int]) -> FunctionCase:
    """The first rows and columns of the inputs: an axis gets the length that `shorter` has for its own."""

    def cut(leaf: Any) -> Any:
        if not is_array(leaf):
            return leaf
        part = leaf[tuple(slice(shorter.get(length, length)) for length in leaf.shape)]
        return part.clone() if isinstance(part, torch.Tensor) else part.copy()

    return replace(case, arguments=replace(case.arguments, leaves=tuple(map(cut, case.arguments.leaves))))
