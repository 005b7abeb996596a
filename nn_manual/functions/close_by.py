"""The gradients of a reference at points close to the inputs, on all sides of a kink. All is computed in float64."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.judge.moved import aten
from nn_manual.check.twin.dispatch import Dispatch
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.own_forward import OwnForward
from nn_manual.functions.pairs import values_of_reference
from nn_manual.functions.sensitivity import as_double

#: How far the points close by lie, as a fraction of the value, or of 1. So they lie on both sides of the kink, and
#: where there is none, the gradient is the same up to 1e-9.
STEP = 1e-9
#: So far they lie where the gradients are differences of forward, and so many times smaller are the steps of these:
#: they are good to 1e-9 then.
OWN_STEP, FINER = 1e-5, 64.0
#: There, what is not moved is moved by this fraction, too: a difference right at a kink is no gradient.
ASIDE = 0.01
#: How often many entries are moved at random. A kink with two sides shows only one of them once in 2**23 times.
NUM_DRAWS = 24
#: At so many random points, besides the inputs themselves, it is tried what a move of one entry touches.
NUM_BASES = 2
#: What kinks lie behind. Those with kinks of their own, such as relu, may find their slope from what they returned.
SMOOTH = {
    *(aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.mv, aten.dot, aten.convolution),
    *(aten.add, aten.sub, aten.rsub, aten.mul, aten.div, aten.neg, aten.sum, aten.mean, aten.cumsum),
}


class CloseBy:
    """The gradients of all inputs that want one, behind each other in one vector, under one kind of upstream gradient.
    `places` has their positions there, by the inputs' names.
    """

    def __init__(self, case: FunctionCase, kind: str, names: Sequence[str]) -> None:
        self.is_own = isinstance(case.reference, OwnForward)
        if isinstance(case.reference, OwnForward):
            case = replace(case, reference=case.reference.with_step(OWN_STEP / FINER))
        self.case, self.kind = case, kind
        named = dict(zip(case.arguments.names, case.leaves(), strict=True))
        self.leaves = {name: as_tensor(as_double(named[name])).detach() for name in names}
        values = [np.abs(leaf.cpu().numpy()).reshape(-1) for leaf in self.leaves.values()]
        ends = np.cumsum([len(each) for each in values])
        self.places = dict(zip(names, np.split(np.arange(ends[-1]), ends[:-1]), strict=True))
        self.steps = (OWN_STEP if self.is_own else STEP) * np.maximum(np.concatenate(values), 1.0)
        self.ramp = np.linspace(-1, 1, len(self.steps))

    def at(self, move: Array, within: AbstractContextManager[Any] | None = None) -> Array:
        """The gradient where each entry is moved by so many steps, computed within a context. From that of differences,
        which lie further off, and from the one half as far, the gradient follows at the kink itself.
        """
        if not self.is_own:
            return self._at(move, within)
        move = np.where(move == 0, ASIDE * (2 + self.ramp), move)
        return 2 * self._at(move / 2) - self._at(move)

    def _at(self, move: Array, within: AbstractContextManager[Any] | None = None) -> Array:
        leaves = list(self.case.arguments.leaves)
        for name, places in self.places.items():
            leaf = self.leaves[name]
            step = torch.from_numpy((move * self.steps)[places]).reshape(leaf.shape).to(leaf.device)
            leaves[self.case.arguments.names.index(name)] = leaf + step
        arguments = replace(self.case.arguments, leaves=tuple(leaves))
        with within or nullcontext():
            values = values_of_reference(replace(self.case, arguments=arguments, change=as_double), self.kind)
        found = []
        for name, places in self.places.items():
            value = values.get(f"grad_{name}, {self.kind} upstream")
            found.append(np.zeros(len(places)) if value is None else value.numpy().reshape(-1))
        return np.concatenate(found)

    def along(self, direction: Array) -> list[Array]:
        """The gradients on both ends of a direction."""
        move = direction / (np.abs(direction).max(initial=0.0) or 1.0)
        return [self.at(move), self.at(-move)]

    def of_habits(self) -> Iterator[Array]:
        """The gradients where all inputs, or the results of all operations, are moved up, or down, and the more, or the
        less, the later they stand: so one-sided slopes are chosen, and the first or the last of equal entries. Random
        moves seldom choose alike at many kinks.
        """
        for way, later in itertools.product((1.0, -1.0), (0.5, -0.5)):
            yield self.at(way + later * self.ramp)
            if not self.is_own:
                yield self.at(np.zeros(len(self.steps)), _Shifted(way, later))

    def jumps(self, i: int) -> Array:
        """How far a move of this entry changes the gradients, at most, at the inputs and at points around them. It goes
        less far down than up: one as far changes nothing else in a norm.
        """
        found = []
        for base in (np.zeros(len(self.steps)), *drawn_moves(np.random.default_rng(3), len(self.steps), NUM_BASES)):
            up, down = base.copy(), base.copy()
            up[i], down[i] = 1, -0.5
            found.append(np.abs(self.at(up) - self.at(down)))
        most: Array = np.max(found, axis=0)
        return most


class _Shifted(Dispatch):
    """Moves what the SMOOTH operations return by about a STEP."""

    def __init__(self, way: float, later: float) -> None:
        super().__init__()
        self.way, self.later = way, later

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_smooth = func.overloadpacket in SMOOTH and isinstance(result, torch.Tensor)
        if not is_smooth or result.dtype != torch.float64:
            return result
        ramp = torch.linspace(-self.later, self.later, result.numel(), dtype=torch.float64, device=result.device)
        return result + STEP * (self.way + ramp.reshape(result.shape)) * result.abs().clamp(min=1)


def drawn_moves(generator: np.random.Generator, size: int, count: int = NUM_DRAWS) -> Array:
    """Moves up and down, each by another number of steps: equal entries don't stay equal."""
    moves: Array = generator.choice([-1.0, 1.0], (count, size)) * generator.uniform(0.5, 1, (count, size))
    return moves
