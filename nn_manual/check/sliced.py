"""The check of a step that was made slice by slice, on one process or on several.

    slice()         each slice's step is compared as a batch of its own          check/checker.py
    settle()        the processes learn of what one of them has found
    compare_sum()   its part in the loss of the batch, and the sum of the gradients
    compare()       clipping, the optimizer's step, and what the processes have in the end
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array, blocks, carve
from nn_manual.check import tolerances
from nn_manual.check.checker import GradientChecker
from nn_manual.check.comparison import CannotCompare, Comparison, Differences, Pair, Quantity, as_tensor, compare
from nn_manual.check.step.recording import Recording
from nn_manual.check.step.threads import threads_for
from nn_manual.check.update import compare_clipping
from nn_manual.check.verdict.report import GradientReport, StepCheck
from nn_manual.distributed.sliced_step import SlicedStep
from nn_manual.distributed.slices import Part
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.optim import Scheduler


class Found(NamedTuple):
    """What was compared: of each tensor its name, max|ours - torch|, the scale and the tolerance, in lists that JSON
    knows. `rounding` and `not_judged` are those of a StepCheck.
    """

    tensors: list[str]
    figures: list[list[float]]
    rounding: list[str]
    not_judged: list[str]


class SlicedPlan(NamedTuple):
    """What a StepCheck needs of a plan. A slice's tolerances depend on its size: each tensor has that of its worst."""

    tensors: tuple[str, ...]
    tolerances: Array
    dtype: np.dtype[Any]


class SlicedChecker(GradientChecker):
    """Proves the steps of a SlicedStep. Every process proves its own slices, the sum and the update; what one finds,
    all raise. Figures are the worst of all slices.
    """

    def __init__(self, sliced: SlicedStep, scheduler: Scheduler | None = None) -> None:
        self.sliced, self.group = sliced, sliced.group
        with sliced.whole_vectors():
            super().__init__(sliced.model, sliced.loss, sliced.optimizer, scheduler=scheduler)
        self._parts: list[Part] = []
        self._again = False

    @contextmanager
    def recording(self) -> Iterator[Recording]:
        """As of every checker; each slice is watched by itself."""
        assert self.update is not None  # it has an optimizer
        self.twin.anchor(self.model.param_arena)
        with self.sliced.whole_vectors():
            self.update.anchor()
        yield self.recorded

    def begin(self, parts: list[Part], target: Array) -> None:
        """The batch with this target is cut into these parts."""
        self._parts, self._target = parts, target
        self._own: list[Part] = []
        #: Of each own slice the gradients of the parameters, the prediction, and its gradient.
        self._grads, self._predictions, self._grad_predictions = list[Array](), list[Array](), list[Array]()
        self._found: Found | None = None
        self._of_batch: list[Comparison] = []
        self._unclipped_grad: Array | None = None
        self._failed: tuple[int, str] | None = None
        self._last: Part | None = None

    @contextmanager
    def slice(self, part: Part) -> Iterator[None]:
        """The context in which forward, loss, backward and the buffers of a slice run; compared when it ends. Raises
        what `compare` does, where this process is alone.
        """
        try:
            with self.watching():
                yield
            self._compare_slice(part)
        except (GradientMismatch, NotFiniteError) as error:
            self._last = part
            self._keep_batch(error)
            if self.group.size == 1 or self._again:
                raise
            self._failed = self._failed or (part.number, _headline(error))

    def _compare_slice(self, part: Part) -> None:
        recorded = self.recorded
        self._own.append(part)
        self._last = part
        self._grads.append(self.model.grad_arena.copy())
        assert recorded.loss.prediction is not None  # it ran
        assert recorded.loss.grad_prediction is not None
        self._predictions.append(recorded.loss.prediction.copy())
        self._grad_predictions.append(recorded.loss.grad_prediction * recorded.loss.prediction.dtype.type(part.weight))
        if not self.loss.has_value(part.denominator):
            return
        try:
            plan = self.plan()
            with threads_for(plan.num_products):
                proof = self._proof()
                differences = self.judge.differences(proof)
        except CannotCompare as problem:
            raise GradientMismatch(GradientReport((), problem=str(problem))) from None
        too_coarse = self.evidence.add_findings(proof.findings)
        count = len(differences.absolute)
        figures = np.stack([differences.absolute, differences.scale, plan.tolerances[:count]])
        of_slice = Found(list(plan.tensors[:count]), figures.tolist(), sorted(differences.rounding), sorted(too_coarse))
        self._found = of_slice if self._found is None else _worst([self._found, of_slice])

    def _keep_batch(self, error: Exception) -> None:
        """Have a mismatch say in which slice it was: of those that were computed here, the last."""
        if isinstance(error, GradientMismatch) and self._last is not None and self.recorded.first.input is not None:
            error.batch = self.recorded.first.input, self._target[self._last.rows]
            error.first_row = self._last.rows.start

    def settle(self, make_again: Callable[[Part], object]) -> None:
        """Raise, on every process, what one has found in its slices: each makes the slice again and finds it, too."""
        failed = [(*each, rank) for rank, each in enumerate(self.group.gather(self._failed)) if each is not None]
        if not failed:
            return
        number, problem, rank = min(failed)
        self._again = True
        try:
            make_again(self._parts[number])
        finally:
            self._again = False
        problem = f"process {rank}: {problem}. Process {self.group.rank} finds slice {number} right"
        raise GradientMismatch(GradientReport((), problem=problem))

    def compare_sum(self, value: float) -> None:
        """Compare the loss of the batch, its gradient and the sum of the gradients, which the model holds. Raises
        GradientMismatch.
        """
        trailing = next(shape for shape in self.group.gather(self._shape_of_predictions()) if shape is not None)
        gathered = (self._gathered(arrays, tuple(trailing)) for arrays in (self._predictions, self._grad_predictions))
        prediction, grad_prediction = map(np.concatenate, gathered)
        truth, terms, in_order = self._sums()
        if not self.loss.has_value(sum(part.denominator for part in self._parts)):
            return
        self._all_or_none(lambda: self._compare_batch(value, prediction, grad_prediction))
        self._all_or_none(lambda: self._compare_sums(truth, terms, in_order))
        if self.sliced.max_norm is not None:
            self._unclipped_grad = self.model.grad_arena.copy()

    def _shape_of_predictions(self) -> list[int] | None:
        return list(self._predictions[0].shape[1:]) if self._predictions else None

    def _gathered(self, own: list[Array], trailing: tuple[int, ...]) -> list[Array]:
        """Arrays of all slices, in their order."""
        empty = np.zeros((0, *trailing), self.model.dtype)
        return self.group.gather_arrays(np.ascontiguousarray(np.concatenate([empty, *own])))

    def _compare_batch(self, value: float, prediction: Array, grad_prediction: Array) -> None:
        """The loss of the batch, from the predictions of all slices, and its gradient: torch divides by what it finds
        in the whole target.
        """
        theirs = as_tensor(prediction).requires_grad_()
        loss = self.twin.loss_function(theirs, as_tensor(self._target))
        loss.backward()  # type: ignore[no-untyped-call]  # torch's own lack of annotations
        assert theirs.grad is not None  # it needed one
        widest = tolerances.sum_of_products(self.model.dtype, prediction.size)
        ours = np.asarray(value, self.model.dtype)
        pairs = [
            Pair(Quantity("batch.loss", "batch", widest), ours, loss.detach()),
            Pair(Quantity("batch.grad_prediction", "batch", widest), grad_prediction, theirs.grad),
        ]
        self._judge([compare(*pair) for pair in pairs])

    def _sums(self) -> tuple[Array, Array, Array]:
        """Of all slices: the sum of the weighted gradients in float64, that of their magnitudes, and the sum in the
        slices' order in the dtype of the model.
        """
        size, dtype = self.model.grad_arena.size, self.model.dtype
        truth, terms, in_order = np.zeros(size), np.zeros(size), np.zeros(size, dtype)
        for block in blocks(size):
            own = np.array([grad[block] for grad in self._grads], dtype).reshape(-1, block.stop - block.start)
            for part, grad in zip(self._parts, np.concatenate(self.group.gather_arrays(own)), strict=True):
                exact = torch.from_numpy(grad).double() * float(dtype.type(part.weight))
                torch.from_numpy(truth[block]).add_(exact)
                torch.from_numpy(terms[block]).add_(exact.abs())
                in_order[block] += grad * dtype.type(part.weight)
        return truth, terms, in_order

    def _compare_sums(self, truth: Array, terms: Array, in_order: Array) -> None:
        shapes = self.model.parameter_shapes()
        views = [vars(carve(vector, shapes)) for vector in (self.model.grad_arena, truth, terms, in_order)]
        tolerance = tolerances.sum_of_products(self.model.dtype, len(self._parts))
        compared = []
        for name, ours, reference, magnitudes, ordered in zip(shapes, *(view.values() for view in views), strict=True):
            quantity = Quantity(f"summed {name}", "sum over the slices", tolerance, "their sum is")
            in_dtype = torch.from_numpy(reference).to(torch.from_numpy(ours).dtype)
            compared.append(compare(quantity, ours, in_dtype, float(magnitudes.max())))
            is_in_order = self.group.size == 1 or self.sliced.slicing.bitwise
            if is_in_order and compared[-1].passed and not np.array_equal(ours, ordered):
                where = np.unravel_index(np.flatnonzero(ours != ordered)[0], ours.shape)
                problem = f"sum over the slices: summed {name}{list(map(int, where))} is not their sum in order"
                raise GradientMismatch(GradientReport((), problem=f"{problem}, bit for bit"))
        self._judge(compared)

    def _judge(self, compared: list[Comparison]) -> None:
        if not all(comparison.passed for comparison in compared):
            raise GradientMismatch(GradientReport(tuple(compared)))
        self._of_batch += compared

    def _all_or_none(self, compare_own: Callable[[], object]) -> None:
        """Run it, and raise on all processes what it raises on one."""
        own: GradientMismatch | NotFiniteError | None = None
        try:
            compare_own()
        except (GradientMismatch, NotFiniteError) as error:
            self._keep_batch(error)
            own = error
        for rank, problem in enumerate(self.group.gather(own and _headline(own))):
            if problem is not None:
                raise own or GradientMismatch(GradientReport((), problem=f"process {rank}: {problem}"))

    def compare(self) -> StepCheck:
        """Compare clipping and the update, and what the processes have after it. Raises what every checker does."""
        assert self.update is not None  # it has an optimizer
        plan = self.plan() if self._own else None
        updates: list[tuple[list[Quantity], Differences]] = []
        with self.sliced.whole_vectors():
            self._all_or_none(lambda: updates.extend(self._compared_update(plan.update if plan else [])))
        self._all_or_none(lambda: self._compare_processes(self.group.gather(self._digests())))
        found = _worst([Found(*each) for each in self.group.gather(self._found) if each is not None])
        figures = [(each.name, each.absolute, each.scale, each.tolerance) for each in self._of_batch]
        for quantities, (absolute, scale, rounding) in updates:
            found = found._replace(rounding=[*found.rounding, *rounding])
            figures += [
                (quantity.name, float(absolute[i]), float(scale[i]), quantity.tolerance)
                for i, quantity in enumerate(quantities)
            ]
        names = (*found.tensors, *(figure[0] for figure in figures))
        columns = np.concatenate([np.array(found.figures), np.array([figure[1:] for figure in figures]).T], axis=1)
        differences = Differences(columns[0], columns[1], frozenset(found.rounding))
        self.evidence.add(differences)
        check_plan: Any = SlicedPlan(names, columns[2], self.model.dtype)
        return StepCheck(check_plan, differences, frozenset(found.not_judged))

    def _compared_update(self, quantities: list[Quantity]) -> Iterator[tuple[list[Quantity], Differences]]:
        assert self.update is not None  # it has an optimizer
        max_norm = self.sliced.max_norm
        if max_norm is not None:
            assert self._unclipped_grad is not None  # compare_sum has copied it
            tolerance = tolerances.sum_of_products(self.model.dtype, self.model.num_parameters)
            clipping = [Quantity("clipped gradient", "clip_grad_norm", tolerance)]
            yield clipping, compare_clipping(clipping, self.model.grad_arena, [self._unclipped_grad], max_norm)
        if quantities:  # this process had a slice, which says what there is
            yield quantities, self.update.compare(quantities)

    def _digests(self) -> dict[str, str]:
        """What every process must have in the end: of each parameter and buffer, the hash."""
        own = vars(self.model.param) | vars(self.model.buffer)
        return {name: hashlib.blake2b(array.tobytes(), digest_size=8).hexdigest() for name, array in own.items()}

    def _compare_processes(self, digests: list[dict[str, str]]) -> None:
        for rank, others in enumerate(digests):
            for name, digest in others.items():
                if digest != digests[0][name]:
                    problem = f"updated {name} of process {rank} is not that of process 0"
                    raise GradientMismatch(GradientReport((), problem=problem))


def _headline(error: Exception) -> str:
    """What an error says first: the lines up to an empty one."""
    lines = str(error).partition("\n\n")[0].splitlines()
    return " ".join(lines).removeprefix("gradient check failed: ")


def _worst(found: list[Found]) -> Found:
    """Of each tensor, the figures that are nearest to its tolerance."""
    figures = np.array([each.figures for each in found])  # (found, 3, tensors)
    absolute, scale, tolerance = figures.transpose(1, 0, 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        severity = np.where(absolute > 0, absolute / (scale * tolerance), scale * 0)
    worst = np.nan_to_num(severity, nan=np.inf).argmax(axis=0)
    chosen = figures[worst, :, np.arange(figures.shape[2])].T
    # Of what is zero in one slice, another may show that it needn't be.
    chosen[1] = np.where(absolute.max(axis=0) == 0, scale.max(axis=0), chosen[1])
    rounding = sorted({name for each in found for name in each.rounding})
    not_judged = sorted({name for each in found for name in each.not_judged})
    return Found(found[0].tensors, chosen.tolist(), rounding, not_judged)
