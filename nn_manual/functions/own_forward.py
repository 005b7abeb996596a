"""The reference of a function that has none: its own forward in float64, with differences of it as the gradients."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array
from nn_manual.check.compare.tolerances import CENTRAL_DIFFERENCES, NEGLIGIBLE
from nn_manual.check.twin.by_differences import OperandDifferences, differentiated, judge_by
from nn_manual.functions.arguments import Arguments, arguments_of
from nn_manual.functions.callables import applied, dtype_name, floats, label_of_function
from nn_manual.functions.forward_slopes import (
    KnownSlopes,
    MovedValues,
    Slopes,
    check_digits,
    directions_through,
    parts_of,
    plain_differences,
    slope_of_all,
)
from nn_manual.functions.handwritten import Checked, Handwritten, run_function
from nn_manual.functions.outputs import Outputs
from nn_manual.functions.randomness import NUM_RUNS, IsRandom, varying_output, words
from nn_manual.messages.text import counted
from nn_manual.ops.differences import Directions

#: Where differences are more uncertain, as a fraction of the gradient, they can't judge. A smooth forward has 1e-9.
MOST_UNCERTAIN = 1e-3


class ByDifferences(NamedTuple):
    """What differences can't say of gradients, by their numbers: the error, as a fraction of a gradient that they are
    too uncertain to judge somewhere; a sentence where only the sum of entries that tie is known, and ours is another.
    """

    errors: dict[int, float]
    sums: dict[int, str]


class OwnForward:
    """The forward of a function as a function of float64 tensors that autograd differentiates, by differences.

    At a kink every slope between those left and right is right: of these, the gradient is the one nearest to that which
    stands `beside` it. Raises CannotCompare for a forward that is random, ValueError for one that doesn't compute in
    float64.
    """

    def __init__(
        self, function: Checked, *, as_arrays: bool, known: KnownSlopes | None = None, step: float = 0.0
    ) -> None:
        self.function, self._as_arrays = function, as_arrays and isinstance(function, Handwritten)
        self.__name__ = label_of_function(function)
        self._step = step
        self._known = known or KnownSlopes()
        self._ours: list[Any] | None = None
        self._said = ByDifferences({}, {})

    @property
    def __signature__(self) -> inspect.Signature:  # in which a report finds the names of the inputs
        return inspect.signature(self.function)

    @contextmanager
    def beside(self, ours: list[Any]) -> Iterator[ByDifferences]:
        """A context in which the gradients are compared with these; it says what differences can't."""
        self._ours, self._said = ours, ByDifferences({}, {})
        try:
            yield self._said
        finally:
            self._ours = None

    def with_step(self, step: float) -> OwnForward:
        """The same with differences of this step alone, times the entry's magnitude if that is above 1: for points so
        close to a kink that other steps reach beyond it.
        """
        return OwnForward(self.function, as_arrays=self._as_arrays, step=step)

    def on_leaves(self, arguments: Arguments) -> OwnForward:
        """The same as a function of the leaves of these arguments."""
        own = self.function
        if isinstance(own, Handwritten):
            user_forward = own.forward
            flat: Checked = replace(own, forward=lambda *leaves: arguments.call(user_forward, leaves))
        else:
            called = applied(own)

            def flat(*leaves: Any) -> Any:
                return arguments.call(called, leaves)

        found = OwnForward(flat, as_arrays=self._as_arrays)
        found.__name__ = self.__name__
        return found

    def __call__(self, *positional: Any, **keywords: Any) -> Outputs:
        """The outputs, by name."""
        arguments = arguments_of(self.function, self.function, keywords or positional)
        places = [i for i, leaf in enumerate(arguments.leaves) if floats(leaf)]
        found = self.outputs(arguments, arguments.leaves)
        names = [name for name, output in found.tensors.items() if floats(output)]
        for name in names:
            if dtype_name(found.tensors[name]) != "float64":
                kind = dtype_name(found.tensors[name])
                raise ValueError(f"without a reference, forward must compute in float64: {name} is {kind}")

        def values(operands: Sequence[Array]) -> Array:
            leaves = list(arguments.leaves)
            for place, operand in zip(places, operands, strict=True):
                leaves[place] = torch.from_numpy(operand)
            tensors = self.outputs(arguments, leaves).tensors
            return np.concatenate([tensors[name].detach().numpy().reshape(-1) for name in names])

        of_this_run = MovedValues(values)

        def gradients(operands: list[Array], wanted: list[int], upstream: Array) -> dict[int, Array]:
            if self._step:
                return {i: plain_differences(values, operands, i, upstream, self._step) for i in wanted}
            runs = (self.outputs(arguments, arguments.leaves).tensors for _ in range(NUM_RUNS))
            if name := varying_output(runs, dict.fromkeys(names, 0.0)):
                raise IsRandom(words(self.__name__, name))
            others = [self._as_arrays, *(leaf for leaf in arguments.leaves if not floats(leaf))]
            moved = self._known.moved(self.function, others, operands, of_this_run).around(operands)
            check_digits(moved, operands)
            slopes = self._known.slopes(self.function, others, moved, operands, upstream)
            are_finite = bool(np.isfinite(moved(operands)).all())
            numbered = dict(enumerate(wanted))
            grads = {n: self._gradient(n, slopes, operands, i, are_finite) for n, i in numbered.items()}
            tied = {n: numbered[n] for n, (_, at_kink) in grads.items() if at_kink.any()}
            found = {numbered[n]: grad for n, (grad, _) in grads.items()}
            if len(tied) > 1:  # an entry may tie with one of another input, as in maximum(x, y)
                places = list(tied.values())
                together = slope_of_all(moved, operands, places, upstream)
                own, at_kink = (np.concatenate(each) for each in zip(*(grads[n] for n in tied), strict=True))
                changed = self._with_sum(list(tied), own, at_kink, together)
                found |= dict(zip(places, parts_of(changed, operands, places), strict=True))
            return found

        outputs = [found.tensors[name] for name in names]
        several = differentiated(gradients, outputs, [arguments.leaves[place] for place in places])
        return Outputs(found.tensors | dict(zip(names, several, strict=True)), found.others)

    @staticmethod
    def upstream(grads: Mapping[str, torch.Tensor], outputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """The gradients of the outputs, 0 where an output isn't finite: there differences have no number."""
        return {name: grad.where(outputs[name].isfinite(), 0.0) for name, grad in grads.items()}

    def outputs(self, arguments: Arguments, leaves: Sequence[Any]) -> Outputs:
        """What forward returns for copies of these leaves."""
        own = [leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        if self._as_arrays:
            own = [leaf.numpy() if isinstance(leaf, torch.Tensor) else leaf for leaf in own]
        with np.errstate(all="ignore"), torch.no_grad():
            return run_function(self.function, arguments, own, [False] * len(own)).returned

    def _gradient(
        self, number: int, slopes: Slopes, operands: list[Array], i: int, are_finite: bool
    ) -> tuple[Array, Array]:
        """The gradient of the i-th operand, whose number is that among the wanted ones, and where it is at a kink that
        may tie it to others.
        """
        size, nowhere = operands[i].size, np.zeros(operands[i].size, bool)
        directions = directions_through(size)
        found = slopes(i, directions)
        grad = directions.spread(found.value)
        ours: Any = self._ours[number] if self._ours is not None and number < len(self._ours) else None
        if not (floats(ours) and ours.numel() == size and size):
            return grad, nowhere
        array = ours.detach().double().numpy().reshape(-1)
        # What depends on an output that isn't finite has no number: it is left out. So is a slope without bound.
        left_out = ~np.isfinite(array) & (not are_finite)
        left_out |= np.isinf(array) & (found.error > MOST_UNCERTAIN * np.abs(found.value))[directions.numbers]
        array, off = np.where(left_out, 0.0, array), np.zeros(len(found.value))
        if np.isfinite(array).all():
            along = directions.along(array)
            finding = judge_by(found, along, CENTRAL_DIFFERENCES)
            if finding.error > MOST_UNCERTAIN:
                self._said.errors[number] = finding.error
            is_zero = (finding.reference == 0) & (np.abs(along) <= NEGLIGIBLE * found.terms)
            off = np.where(is_zero, 0.0, finding.reference - along)
            off[directions.numbers[left_out]] = 0.0
            grad = array + directions.spread(off)
        if left_out.any():
            return np.where(left_out, ours.detach().double().numpy().reshape(-1), grad), nowhere
        if off[found.jump > 0].any():  # already one entry at a kink has none of its own slopes
            return grad, nowhere
        at_kink = found.jump[directions.numbers] > 0
        if at_kink.any() and size > 1:  # entries that tie share a slope: their sum is looked at, too
            together = slopes(i, Directions(np.zeros(size, int), np.ones(size), 1))
            grad = self._with_sum([number], grad, at_kink, together)
        return grad, at_kink

    def _with_sum(self, numbers: list[int], grad: Array, at_kink: Array, slope: OperandDifferences) -> Array:
        """The gradient of the operands with these numbers; where its sum is none of the slopes of all entries together,
        those at a kink are changed alike.
        """
        sum_of_grad = grad.sum(keepdims=True)
        off = judge_by(slope, sum_of_grad, CENTRAL_DIFFERENCES).reference - sum_of_grad
        if not np.abs(off) > CENTRAL_DIFFERENCES * np.abs(grad).max() * grad.size:
            return grad
        own = float(grad[at_kink].sum())
        words = (
            f"at ties and kinks, only the sum of {counted(int(at_kink.sum()), 'entry', 'entries')} can be measured: it "
            f"is {own:.6g}, differences give {own + float(off[0]):.6g}, of which each entry has an equal part here"
        )
        self._said.sums.update(dict.fromkeys(numbers, words))
        changed: Array = grad + at_kink * (off / at_kink.sum())
        return changed
