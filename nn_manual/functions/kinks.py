"""Which gradients are right at a kink: every element of the generalized gradient is.

Clarke's generalized gradient is the convex hull of the gradients at the points close by. Entries whose kinks don't
touch each other may each have any slope between their own two. Entries of one kink, as the equal entries of a maximum,
share it: each has a part, and the parts sum to one. So the entries are divided into those that one kink ties together,
and each group must lie in the hull of the reference's gradients close by.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.optimize
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import Pair
from nn_manual.check.judge.moved import aten
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.own_forward import OwnForward
from nn_manual.functions.pairs import values_of_reference
from nn_manual.functions.sensitivity import as_double

#: How far the points close by lie, as a fraction of the value, or of 1. All is computed in float64. So they lie on both
#: sides of the kink, and where there is none, the gradient is the same up to 1e-9.
STEP = 1e-9
#: So many times further off, the gradients around a kink are the same.
FURTHER = 64.0
#: What is above so many STEPs, as a fraction of the largest gradient, is no rounding, and no curvature.
FAR = 1e3
#: Of so many entries that differ, each is moved alone. Of more, as many are drawn; the others are moved together.
MOST_ALONE = 16
#: How often many entries are moved at random. A kink with two sides shows only one of them once in 2**23 times.
NUM_DRAWS = 24
#: How many random moves find the gradients around a kink of several entries, for each of these, and at least.
DRAWS_EACH = 4
#: What kinks lie behind. Those with kinks of their own, such as relu, may find their slope from what they returned.
SMOOTH = {
    *(aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.mv, aten.dot, aten.convolution),
    *(aten.add, aten.sub, aten.rsub, aten.mul, aten.div, aten.neg, aten.sum, aten.mean, aten.cumsum),
}


def at_kinks(case: FunctionCase, compared: Sequence[Pair], failed: Sequence[Pair]) -> dict[str, str]:
    """For the names of those of `failed` that are an element of the generalized gradient, a sentence that names the
    worst place, and both slopes.
    """
    if isinstance(case.reference, OwnForward):  # it takes kinks into account itself
        return {}
    found = dict[str, str]()
    for suffix in dict.fromkeys(pair.quantity.name.partition(", ")[2] for pair in failed):
        own = {pair.quantity.name: pair for pair in compared if pair.quantity.name.endswith(f", {suffix}")}
        if not suffix or any(not np.isfinite(pair.ours).all() for pair in own.values()):
            continue
        try:
            around = _Around(case, own)
            found |= around.explained([pair.quantity.name for pair in failed if pair.quantity.name in own])
        except Exception as error:  # a reference may raise anything close by, and in float64
            raise_if_nobodys_fault(error)
    return found


class _Around:
    """The reference's gradients around the inputs, under one upstream gradient: all in one vector, beside ours."""

    def __init__(self, case: FunctionCase, pairs: Mapping[str, Pair]) -> None:
        self.case, self.pairs = case, pairs
        self.suffix = next(iter(pairs)).partition(", ")[2]
        named = zip(case.arguments.names, case.leaves(), case.wants(), strict=True)
        self.leaves = {
            name: as_double(leaf) for name, leaf, want in named if want and f"grad_{name}, {self.suffix}" in pairs
        }
        sizes = [as_tensor(leaf).numel() for leaf in self.leaves.values()]
        self.places = dict(zip(self.leaves, np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1]), strict=True))
        self.steps = np.concatenate([self._steps(leaf) for leaf in self.leaves.values()])
        self.ours, self.theirs = (
            np.concatenate([self._values(name, of_ours=of_ours) for name in self.leaves]) for of_ours in (True, False)
        )
        allowed = np.concatenate([np.full(len(places), self._allowed(name)) for name, places in self.places.items()])
        self.differs = np.flatnonzero(np.abs(self.ours - self.theirs) > allowed)
        self.allowed = allowed + FAR * STEP * max(np.abs(each).max(initial=0.0) for each in (self.theirs, self.ours))

    def explained(self, failed: Sequence[str]) -> dict[str, str]:
        """The names of those that lie in the generalized gradient, each with a sentence."""
        moves = _drawn(np.random.default_rng(0), len(self.steps))
        drawn, further = ([self._gradient(move * many) for move in moves] for many in (1.0, FURTHER))
        if np.abs(drawn).max(initial=0.0) > 2 * np.abs(further).max(initial=0.0):
            return {}  # it grows without bound, as that of a root at 0: that is no kink
        self.around = np.array([*drawn, *self._of_habits()])
        low, high = self.around.min(0), self.around.max(0)
        outside = (self.ours < low - self.allowed) | (self.ours > high + self.allowed)
        # Around a kink the gradients lie as far apart further off. Where a function only bends, they lie further apart.
        bends = np.ptp(further, axis=0) > 2 * np.ptp(drawn, axis=0) + self.allowed
        outside[self.differs] |= ((high - low <= self.allowed) | bends)[self.differs]
        wrong = {int(i) for i in np.flatnonzero(outside)}
        if all(wrong.intersection(self._places(name)) for name in failed):
            return {}
        chosen = np.random.default_rng(1).permutation(self.differs)[:MOST_ALONE]
        for group in self._groups([int(i) for i in chosen if int(i) not in wrong]):
            if not self._in_hull(group):
                wrong.update(group)
                if all(wrong.intersection(self._places(name)) for name in failed):
                    return {}
        found = {}
        for name in failed:
            own = set(self._places(name))
            at = [int(i) for i in self.differs if int(i) in own]
            if not wrong.intersection(own) and at:
                worst = max(at, key=lambda i: abs(self.ours[i] - self.theirs[i]))
                found[name] = self._sentence(name, worst, low[worst], high[worst], len(at))
        return found

    def _places(self, name: str) -> list[int]:
        places: list[int] = self.places[name.removeprefix("grad_").partition(", ")[0]].tolist()
        return places

    def _sentence(self, name: str, i: int, low: float, high: float, count: int) -> str:
        tensor = name.removeprefix("grad_").partition(", ")[0]
        index = np.unravel_index(i - self.places[tensor][0], self.pairs[name].ours.shape)
        place = f"{name}[{', '.join(map(str, index))}]" if index else name
        others = f"; so are {count - 1} more of its entries" if count > 1 else ""
        return f"{place} is {self.ours[i]:.6g}, at a kink of the reference with slopes {low:.6g} and {high:.6g}{others}"

    def _groups(self, entries: Sequence[int]) -> Iterator[list[int]]:
        """The entries, each with those that its kink moves, too. A group ends at twice MOST_ALONE: all of them must lie
        in the hull anyway.
        """
        left = list(entries)
        while left:
            group, new = set[int](), {left[0]}
            while new:
                i = new.pop()
                group.add(i)
                jump = np.abs(self._moved(i, 1.0) - self._moved(i, -1.0))
                touched = np.flatnonzero(jump > self.allowed)
                new |= {int(j) for j in touched if j not in group and len(group) + len(new) < 2 * MOST_ALONE}
            yield sorted(group)
            left = [i for i in left if i not in group]

    def _of_habits(self) -> Iterator[Array]:
        """The gradients where all inputs, or the results of all operations, are moved up, or down, and the more, or the
        less, the later they stand: so one-sided slopes are chosen, and the first or the last of equal entries. Random
        moves seldom choose alike at many kinks. And the reference's own choice.
        """
        yield self.theirs
        for way, later in itertools.product((1.0, -1.0), (0.5, -0.5)):
            yield self._gradient(way + later * np.linspace(-1, 1, len(self.steps)))
            yield self._gradient(np.zeros(len(self.steps)), _Shifted(way, later))

    def _in_hull(self, group: list[int]) -> bool:
        """Whether ours is a convex combination of the gradients around, in these entries."""
        points = list(self.around[:, group])
        for drawn in _drawn(np.random.default_rng(2), len(group), max(NUM_DRAWS, DRAWS_EACH * len(group))):
            move = np.zeros(len(self.steps))
            move[group] = drawn
            points.append(self._gradient(move)[group])
        scale = 1 / self.allowed[group]
        vertices = np.unique(np.array(points), axis=0).T * scale[:, None]
        # The weights sum to one: a row of its own, so heavy that nnls leaves no more than a thousandth of it.
        heavy = 1e3 * np.abs(vertices).max(initial=1.0)
        weights, _ = scipy.optimize.nnls(
            np.vstack([vertices, np.full(vertices.shape[1], heavy)]), np.append(self.ours[group] * scale, heavy)
        )
        return bool((np.abs(vertices @ (weights / weights.sum()) - self.ours[group] * scale) <= 1).all())

    def _moved(self, i: int, way: float) -> Array:
        move = np.zeros(len(self.steps))
        move[i] = way
        return self._gradient(move)

    def _gradient(self, move: Array, within: AbstractContextManager[Any] | None = None) -> Array:
        """The reference's gradient where each entry is moved by so many steps, computed within a context."""
        leaves = list(self.case.arguments.leaves)
        for name, places in self.places.items():
            leaf = as_tensor(self.leaves[name])
            step = torch.from_numpy((move * self.steps)[places]).reshape(leaf.shape).to(leaf.device)
            leaves[self.case.arguments.names.index(name)] = leaf + step
        arguments = replace(self.case.arguments, leaves=tuple(leaves))
        with within or nullcontext():
            values = values_of_reference(replace(self.case, arguments=arguments, change=as_double))
        found = []
        for name, places in self.places.items():
            value = values.get(f"grad_{name}, {self.suffix}")
            found.append(np.zeros(len(places)) if value is None else value.numpy().reshape(-1))
        return np.concatenate(found)

    def _values(self, name: str, *, of_ours: bool) -> Array:
        pair = self.pairs[f"grad_{name}, {self.suffix}"]
        array: Array = (pair.ours if of_ours else pair.reference.numpy()).astype(np.float64).reshape(-1)
        return array

    def _allowed(self, name: str) -> float:
        pair = self.pairs[f"grad_{name}, {self.suffix}"]
        return pair.quantity.tolerance * float(np.abs(pair.reference.numpy()).max(initial=0.0))

    @staticmethod
    def _steps(leaf: Array | torch.Tensor) -> Array:
        values = np.abs(as_tensor(leaf).detach().cpu().numpy()).reshape(-1)
        steps: Array = STEP * np.maximum(values, 1.0)
        return steps


class _Shifted(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no types here
    """Moves what the SMOOTH operations return by about a STEP."""

    def __init__(self, way: float, later: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # as above
        self.way, self.later = way, later

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_smooth = func.overloadpacket in SMOOTH and isinstance(result, torch.Tensor)
        if not is_smooth or result.dtype != torch.float64:
            return result
        ramp = torch.linspace(-self.later, self.later, result.numel(), dtype=torch.float64, device=result.device)
        return result + STEP * (self.way + ramp.reshape(result.shape)) * result.abs().clamp(min=1)


def _drawn(generator: np.random.Generator, size: int, count: int = NUM_DRAWS) -> Array:
    """Moves up and down, each by another number of steps: equal entries don't stay equal."""
    moves: Array = generator.choice([-1.0, 1.0], (count, size)) * generator.uniform(0.5, 1, (count, size))
    return moves
