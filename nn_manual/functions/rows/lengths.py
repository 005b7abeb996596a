"""The sizes on which the rows run: small ones, large ones, and those that no block divides."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import torch

from nn_manual.functions.callables import is_array
from nn_manual.functions.function_case import FunctionCase, eps_of
from nn_manual.functions.judge import judge

#: Of each dimension the sizes that are tried: one that is free, or a choice, the largest last.
Sizes: TypeAlias = Mapping[str, tuple[int, ...]]

#: Sizes of dimensions are at most these in rows that run on small sizes. They differ from each other, so that one axis
#: can't be taken for another.
SMALL = (7, 6, 5, 4, 3)

#: Inputs with more numbers than this in all are cut for the rows, each axis to about the second number, which is past
#: the blocks of 16.
LARGE = 1 << 16
CUT = 33

#: Rows that run on the full size, too, run there up to this many numbers, or dimensions that multiply to it. Of larger
#: ones, they run on a size which blocks of any power of two up to this one divide with the same remainders.
MOST = 1 << 22
BLOCK = 128

#: The layouts run on sizes a little past one of these blocks, too, which have a tail: the largest block with which the
#: sizes multiply to LARGE at most. Of many dimensions, the last few: the features are among them.
BLOCKS, MOST_RAGGED = (128, 32, 16), 4


def small_sizes(sizes: Sizes) -> dict[str, int]:
    """Of a dimension that has a choice, the smallest above 1: much is zero, or nothing, where there is one step or
    none.
    """
    return {
        name: next((size for size in choice if size > 1), choice[-1])
        if len(choice) > 1
        else min(choice[0], SMALL[i % len(SMALL)])
        for i, (name, choice) in enumerate(sizes.items())
    }


def ragged_sizes(sizes: Sizes, step: int) -> dict[str, int]:
    """Of the dimensions that are free, sizes a little past a block, odd ones or multiples of `step` past it."""
    free = _free(sizes)[-MOST_RAGGED:]
    found = [{name: block + step * (1 + 2 * i) for i, name in enumerate(free)} for block in BLOCKS]
    return next((ragged for ragged in found if math.prod(ragged.values()) <= LARGE), found[-1])


def large_sizes(sizes: Sizes) -> dict[str, int]:
    """The largest ones, or smaller ones with the same remainders where those are too large."""
    full = {name: choice[-1] for name, choice in sizes.items()}
    if math.prod(full.values()) <= MOST:
        return full
    free = _free(sizes)
    return {name: _folded(size) if name in free else size for name, size in full.items()}


def cut(case: FunctionCase) -> FunctionCase | None:
    """The first rows and columns of large inputs; None where they are small. Axes of one length keep one length."""
    if _count(case) <= LARGE:
        return None
    lengths = [length for length in _lengths(case) if length > CUT + len(SMALL)]
    return _shortened(case, {length: CUT + i for i, length in enumerate(lengths)})


def cut_if_large(case: FunctionCase) -> FunctionCase:
    """The inputs themselves, or of too large ones as many rows and columns as have the same remainders."""
    if _count(case) <= MOST:
        return case
    lengths = [length for length in _lengths(case) if length > _folded(length)]
    return _shortened(case, {length: _folded(length) + i * BLOCK for i, length in enumerate(lengths)})


def _free(sizes: Sizes) -> list[str]:
    return [name for name, choice in sizes.items() if len(choice) == 1]


def is_steady(case: FunctionCase) -> bool:
    """Whether the reference, on inputs moved by an eps, agrees with itself: a long recurrence of large weights doesn't,
    and there a layout rounds in another order. 16 bits are judged by the reference's own distance anyway.
    """
    generator = torch.Generator().manual_seed(case.seed)

    def moved(tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point():
            return tensor
        signs = torch.randint(2, tensor.shape, generator=generator).to(tensor) * 2 - 1
        return tensor * (1 + eps_of(tensor.dtype) * signs)

    return case.is_low or judge(replace(case, function=case.reference, layout=moved)).agrees


def _count(case: FunctionCase) -> int:
    return sum(math.prod(leaf.shape) for leaf in case.arguments.leaves if is_array(leaf))


def _lengths(case: FunctionCase) -> list[int]:
    return sorted({length for leaf in case.arguments.leaves if is_array(leaf) for length in leaf.shape})


def _folded(length: int) -> int:
    return min(length, BLOCK + length % BLOCK)


def _shortened(case: FunctionCase, shorter: Mapping[int, int]) -> FunctionCase:
    """The first rows and columns of the inputs, as many as `shorter` has for an axis of a length."""

    def cut(leaf: Any) -> Any:
        if not is_array(leaf):
            return leaf
        part = leaf[tuple(slice(shorter.get(length, length)) for length in leaf.shape)]
        return part.clone() if isinstance(part, torch.Tensor) else part.copy()

    return replace(case, arguments=replace(case.arguments, leaves=tuple(map(cut, case.arguments.leaves))))
