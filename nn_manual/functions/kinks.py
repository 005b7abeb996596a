"""Which gradients are right at a kink: every element of the generalized gradient is.

Clarke's generalized gradient is the convex hull of the gradients at the points close by. Entries whose kinks don't
touch each other may each have any slope between their own two. Entries of one kink, as the equal entries of a maximum,
share it: each has a part, and the parts sum to one. So the entries are divided into those that one kink ties together,
and each group must lie in the hull of the reference's gradients close by.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import scipy.optimize
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import Pair, compare
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.callables import by_autograd, floats
from nn_manual.functions.close_by import NUM_DRAWS, STEP, CloseBy, drawn_moves
from nn_manual.functions.forward_slopes import MOST_SLOPES
from nn_manual.functions.function_case import FunctionCase, unchanged
from nn_manual.functions.own_forward import OwnForward
from nn_manual.functions.pairs import pairs

#: So many times further off, the gradients around a kink are the same.
FURTHER = 64.0
#: What is above so many STEPs, as a fraction of the largest gradient, is no rounding, and no curvature.
FAR = 1e3
#: Of so many entries that differ, each is moved alone. Of more, as many are drawn; the others are moved together.
MOST_ALONE = 16
#: How many random moves find the gradients around a kink of several entries, for each of these, and at least.
DRAWS_EACH = 4
#: How often two entries exchange their moves.
MOST_EXCHANGED = 64
#: How often gradients are added where a plane parts ours from those that are known.
MOST_PLANES = 16


def at_kinks(case: FunctionCase, compared: Sequence[Pair], failed: Sequence[Pair]) -> dict[str, str]:
    """For the names of those of `failed` that are an element of the generalized gradient, a sentence that names the
    worst place, and both slopes.
    """
    is_own = isinstance(case.reference, OwnForward)
    if is_own and any(floats(leaf) and as_tensor(leaf).numel() > MOST_SLOPES for leaf in case.arguments.leaves):
        return {}  # it would take long
    found = dict[str, str]()
    for suffix in dict.fromkeys(pair.quantity.name.partition(", ")[2] for pair in failed):
        own = {pair.quantity.name: pair for pair in compared if pair.quantity.name.endswith(f", {suffix}")}
        if not suffix or any(not np.isfinite(pair.ours).all() for pair in own.values()):
            continue
        try:
            names = [pair.quantity.name for pair in failed if pair.quantity.name in own]
            found |= _Around(case, own).explained(names)
            if not found.keys() >= set(names):
                break  # one that is wrong is enough
        except Exception as error:  # a reference may raise anything close by, and in float64
            raise_if_nobodys_fault(error)
    try:
        return found if len(found) == len(failed) else found | _of_each_output(case, failed)
    except Exception as error:  # as above
        raise_if_nobodys_fault(error)
        return found


def _of_each_output(case: FunctionCase, failed: Sequence[Pair]) -> dict[str, str]:
    """The same where a gradient is a sum over several outputs, and its part of each lies in the generalized gradient of
    this output: autograd adds up such parts. Of x.max() and x.min(), both at the first of equal entries, the sum lies
    in no gradient close by, where the two aren't at one entry.
    """
    if case.alone is not None or case.upstream is not unchanged:
        return {}
    ran = by_autograd(case.reference, case.arguments, case.leaves(), case.wants())
    outputs = frozenset(name for name, output in ran.outputs.items() if output.requires_grad)
    if len(outputs) < 2:
        return {}
    found = dict[str, str]()
    sums = {pair.quantity.name: np.zeros(pair.ours.shape) for pair in failed}
    for name in outputs:
        of_one = replace(case, upstream=torch.zeros_like, alone=outputs - {name}, watched=False)
        compared = list(pairs(of_one))
        wrong = [pair for pair in compared if not compare(*pair).passed]
        kinks = at_kinks(of_one, compared, wrong)
        if len(kinks) < len(wrong):
            return {}
        found |= kinks
        for pair in compared:
            if pair.quantity.name in sums:
                sums[pair.quantity.name] += pair.ours
    if not all(compare(each.quantity, each.ours, torch.from_numpy(sums[each.quantity.name])).passed for each in failed):
        return {}
    return {pair.quantity.name: found[pair.quantity.name] for pair in failed if pair.quantity.name in found}


class _Around:
    """The reference's gradients around the inputs, under one upstream gradient: all in one vector, beside ours."""

    def __init__(self, case: FunctionCase, pairs: Mapping[str, Pair]) -> None:
        self.pairs, self.suffix = pairs, next(iter(pairs)).partition(", ")[2]
        both = zip(case.arguments.names, case.wants(), strict=True)
        names = [name for name, want in both if want and f"grad_{name}, {self.suffix}" in pairs]
        self.close_by = CloseBy(case, self.suffix.removesuffix(" upstream"), names)
        self.places = self.close_by.places
        self.ours, self.theirs = (
            np.concatenate([self._values(name, of_ours=of_ours) for name in names]) for of_ours in (True, False)
        )
        allowed = np.concatenate([np.full(len(places), self._allowed(name)) for name, places in self.places.items()])
        self.differs = np.flatnonzero(np.abs(self.ours - self.theirs) > allowed)
        self.allowed = allowed + FAR * STEP * max(np.abs(each).max(initial=0.0) for each in (self.theirs, self.ours))

    def explained(self, failed: Sequence[str]) -> dict[str, str]:
        """The names of those that lie in the generalized gradient, each with a sentence."""
        close_by, own = self.close_by, {name: set(self._places(name)) for name in failed}
        moves = drawn_moves(np.random.default_rng(0), len(self.ours))
        drawn = [close_by.at(move) for move in moves]
        # And those where ours points to: for a norm at 0 the longest. Differences have no choice of their own.
        habits = [*close_by.of_habits(), *close_by.along(self.ours)]
        known = np.array([*drawn, *habits, *([] if close_by.is_own else [self.theirs])])
        smooth = set(self.differs[(np.ptp(known, axis=0) <= self.allowed)[self.differs]].tolist())
        if all(smooth & places for places in own.values()):
            return {}  # it differs where there is no kink
        exchanged = list(self._exchanged())
        self.around = np.array([*known, *exchanged])
        low, high = self.around.min(0), self.around.max(0)
        outside = (self.ours < low - self.allowed) | (self.ours > high + self.allowed)
        outside[self.differs] |= (high - low <= self.allowed)[self.differs]
        wrong = set(np.flatnonzero(outside).tolist())
        if all(wrong & places for places in own.values()):
            return {}
        further = [close_by.at(move * FURTHER) for move in moves]
        if np.abs(drawn).max(initial=0.0) > 2 * np.abs(further).max(initial=0.0):
            return {}  # it grows without bound, as that of a root at 0: that is no kink
        # Around a kink the gradients lie as far apart further off. Where a function only bends, they lie further apart.
        bends = np.ptp(further, axis=0) > 2 * np.ptp(drawn, axis=0) + self.allowed
        wrong.update(self.differs[bends[self.differs]].tolist())
        if all(wrong & places for places in own.values()):
            return {}
        is_one_of_them = bool((np.abs(exchanged[-1] - self.ours) <= self.allowed).all())  # then it lies in their hull
        chosen = np.random.default_rng(1).permutation([] if is_one_of_them else self.differs)[:MOST_ALONE]
        for group in self._groups([int(i) for i in chosen if int(i) not in wrong]):
            if not self._in_hull(group):
                wrong.update(group)
                if all(wrong & places for places in own.values()):
                    return {}
        found = {}
        for name, places in own.items():
            at = [int(i) for i in self.differs if int(i) in places]
            if not wrong & places and at:
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
                touched = np.flatnonzero(self.close_by.jumps(i) > self.allowed)
                new |= {int(j) for j in touched if j not in group and len(group) + len(new) < 2 * MOST_ALONE}
            yield sorted(group)
            left = [i for i in left if i not in group]

    def _in_hull(self, group: list[int]) -> bool:
        """Whether ours is a convex combination of the gradients around, in these entries. A plane that parts it from
        those that are known may not do so from others: these lie furthest in the direction in which ours is off.
        """
        points = list(self.around[:, group])
        move = np.zeros(len(self.ours))
        for drawn in drawn_moves(np.random.default_rng(2), len(group), max(NUM_DRAWS, DRAWS_EACH * len(group))):
            move[group] = drawn
            points.append(self.close_by.at(move)[group])
        for _ in range(MOST_PLANES):
            move[group] = off = _off_hull(points, self.ours[group], self.allowed[group])
            if (np.abs(off) <= 1).all():
                return True
            points += [gradient[group] for gradient in self.close_by.along(move)]
        return False

    def _exchanged(self) -> Iterator[Array]:
        """Gradients where entries exchange their moves until each has the slope that it has in ours. A sort gives n
        equal entries their places' slopes in one of n! orders: of many, random moves seldom find the order of ours.
        """
        move = np.linspace(-1, 1, len(self.ours))
        for _ in range(MOST_EXCHANGED):
            gradient = self.close_by.at(move)
            yield gradient
            worst = np.argmax(np.abs(gradient - self.ours))
            nearest = np.argmin(np.abs(gradient - self.ours[worst]))
            if nearest == worst:
                return  # no other entry has the slope that this one should have
            move[[worst, nearest]] = move[[nearest, worst]]

    def _values(self, name: str, *, of_ours: bool) -> Array:
        pair = self.pairs[f"grad_{name}, {self.suffix}"]
        array: Array = (pair.ours if of_ours else pair.reference.numpy()).astype(np.float64).reshape(-1)
        return array

    def _allowed(self, name: str) -> float:
        pair = self.pairs[f"grad_{name}, {self.suffix}"]
        return pair.quantity.tolerance * float(np.abs(pair.reference.numpy()).max(initial=0.0))


def _off_hull(points: Iterable[Array], ours: Array, allowed: Array) -> Array:
    """How far ours is from the nearest convex combination of these points, as multiples of what is allowed."""
    vertices = np.unique(np.array([*points]), axis=0).T / allowed[:, None]
    # The weights sum to one: a row of its own, so heavy that nnls leaves no more than a thousandth of it.
    heavy = 1e3 * np.abs(vertices).max(initial=1.0)
    weights, _ = scipy.optimize.nnls(
        np.vstack([vertices, np.full(vertices.shape[1], heavy)]), np.append(ours / allowed, heavy)
    )
    off: Array = ours / allowed - vertices @ (weights / weights.sum())
    return off
