"""The steps of a training, one by one: each has its number, its lr, and who watches it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from nn_manual.arrays import Array, Shape, placeholder
from nn_manual.errors import GradientMismatch, NotFiniteError, is_from_outside
from nn_manual.losses import Loss
from nn_manual.messages import notebook
from nn_manual.optim.scheduling import move_scheduled
from nn_manual.step.slices.sliced_batch import SlicedBatch
from nn_manual.step.train_step import TrainStep
from nn_manual.step.watch import Watch
from nn_manual.trainer.finite import FiniteWatch
from nn_manual.trainer.trainer_settings import TrainerSettings

if TYPE_CHECKING:  # torch is only loaded for a run that is checked
    from nn_manual.check.judge.step_check import StepCheck
    from nn_manual.check.many_steps.prover import Prover
    from nn_manual.check.whole_step.checker import GradientChecker

#: Inputs, an array or Padded, and their targets.
Batch: TypeAlias = tuple[Any, Array]
#: Makes a step, as Steps.make does, and returns the loss.
Make: TypeAlias = Callable[[Array, Array, "Watch | None"], float]

#: What a step that nobody watches runs in.
_UNWATCHED = nullcontext()


class Step(NamedTuple):
    """A step that was made: its number, counted from 1, its loss, how many examples it had, the denominator of the loss
    where that is a mean, and the check if it was checked. A mean over nothing is NaN, and its denominator is 0.
    """

    number: int
    loss: float
    num_examples: int
    denominator: float
    check: StepCheck | None

    def _repr_html_(self) -> str:
        """A row of a table, in a notebook."""
        check = "not checked" if self.check is None else str(self.check)
        row = notebook.Row((f"{self.number:,}", f"{self.loss:.4g}", f"{self.num_examples:,}", check))
        return notebook.page(notebook.table(("step", "loss", "examples", "check"), [row], ">>><"))


class Watcher(Protocol):
    """Watches a step while it is made, and compares it: a GradientChecker at once, a Prover many together, later."""

    @property
    def watch(self) -> Watch:
        """What the step reports to."""

    def recording(self, input: Array) -> AbstractContextManager[object]:
        """The context in which the step on `input` must run."""

    def compare(self) -> StepCheck:
        """The check of the step that has run. Raises GradientMismatch or NotFiniteError, perhaps for an earlier step.
        """

    def skip(self) -> None:
        """Take note that the step that has run has no loss, and so nothing to compare."""


class Steps:
    """Makes the steps of one training. `model.num_steps` counts them."""

    def __init__(self, settings: TrainerSettings) -> None:
        self.settings, self.model, self.optimizer = settings, settings.model, settings.optimizer
        self.model.num_steps = 0
        own = settings.model, settings.loss, settings.optimizer
        #: None where one process takes the whole batch at once.
        self.slices = None if settings.slicing.is_plain else SlicedBatch(*own, settings.slicing)
        self.train_step = TrainStep(*own, self.slices)
        self.train_step.not_finite = self._check_loss
        self.finite = FiniteWatch(settings.model, settings.optimizer, self.whole_vectors)
        #: What proves a step at once, and what proves many steps together; None where no step is proven in this way.
        self.checker: GradientChecker | None = None
        self.prover: Prover | None = None
        #: Whether the model has the average of its weights, in whose place its own will come again.
        self.has_average = False
        #: What a schedule begins with.
        self._initial = [member.scheduled for member in settings.optimizer.members]
        #: The shape of the last input that was looked at, and an array like the model's prediction for it.
        self._input_shape: Shape | None = None
        self._prediction = placeholder((), self.model.dtype)

    def check_weights(self) -> None:
        """Raise ValueError where a step would be lost."""
        if self.has_average:
            raise ValueError("a step within averaged_weights() would be lost: the model gets its own weights back")

    def look_at(self, inputs: Array, targets: Array, input: Array) -> None:
        """Raise TypeError or ValueError where the model or the loss doesn't take these inputs and targets; the first
        step is on `input`.
        """
        model, loss = self.model, self.settings.loss
        model.check_dtype(input)
        model.check_values(inputs)
        if self.slices is not None:
            loss.check_slices(targets)
        if self._input_shape != input.shape:
            self._prediction = placeholder(model.output_shape(input.shape), model.dtype)
            self._input_shape = input.shape
        check_targets(loss, inputs, targets, input, self._prediction)

    def make(self, input: Array, target: Array, watch: Watch | None = None) -> float:
        """Make a step, by the formulas or by the plans of slices; returns the loss. It is neither counted nor compared.
        """
        if self.settings.loss is not self.train_step.loss:
            self.train_step.take_loss(self.settings.loss)
        self.train_step.clipping = self.settings.clipping
        return self.train_step(input, target, watch)

    def _watcher(self, *, together: bool) -> Watcher | None:
        """Who watches the next step, or None; `together` lets it be proven with others."""
        every = self.settings.check_every
        if not every or (self.model.num_steps + 1) % every:
            return None
        return self.prover if together and self.prover is not None else self.checker

    def one(self, input: Array, target: Array, *, together: bool, make: Make | None = None) -> Step:
        """Make the next step, by `make` or else by the formulas."""
        model, loss, watcher = self.model, self.settings.loss, self._watcher(together=together)
        if self.settings.lr_step == "step":
            self._set_scheduled_of_step(is_watched=watcher is not None)
        num_updates = self.optimizer.num_steps
        model.num_steps += 1
        try:
            with _UNWATCHED if watcher is None else watcher.recording(input):
                value = (make or self.make)(input, target, None if watcher is None else watcher.watch)
            denominator = loss.denominator(target)
            has_value = loss.has_value(denominator)
            check = watcher.compare() if watcher is not None and has_value else None
            if watcher is not None and not has_value:
                watcher.skip()
        except GradientMismatch as mismatch:
            mismatch.batch = mismatch.batch or (input, target)
            raise
        except NotFiniteError as error:
            self.flush()  # an earlier step that is wrong comes first
            raise self._placed(error) from None
        except BaseException:  # a batch that is refused, that a layer raises at or that Ctrl-C ends is no step
            if self.optimizer.num_steps == num_updates:
                model.num_steps -= 1
            raise
        # The check came first: it says whether a wrong formula is why a value isn't finite.
        if self.slices is not None:
            self.finite.suspects = self.slices.share_suspicion(self.finite.suspects)
        if self.finite.suspects or (has_value and not math.isfinite(value)):
            self.flush()
        if has_value:
            self.check_finite("the loss", value)
        if self.finite.suspects:
            self.finite.check(model.num_steps)
        return Step(model.num_steps, value, len(input), denominator, check)

    def each(self, batches: Iterable[Batch], make: Make | None = None) -> Iterator[Step]:
        """The steps on these batches, proven together. If a step raises, the steps before it are proven first."""
        for input, target in batches:
            try:
                step = self.one(input, target, together=True, make=make)
            except BaseException as error:
                if not is_from_outside(error):
                    self.flush()
                raise
            yield step

    def flush(self) -> None:
        """Prove the steps that wait for their proof. Raises what a checked step does, for the first step that is wrong.
        Model and optimizer then stand at that step.
        """
        if self.prover is not None and self.prover.numbers:
            try:
                self.prover.flush()
            except NotFiniteError as error:
                raise self._placed(error) from None

    def set_scheduled(self, count: int) -> None:
        """Set what a schedule moves, of the optimizer and its groups, after `count` epochs or steps."""
        if self.settings.lr_scheduler is not None:
            move_scheduled(self.optimizer, self._initial, self.settings.lr_scheduler, count)

    def set_and_compare_scheduled(self, count: int) -> None:
        """The same, and compare them with torch's where steps are checked. Raises GradientMismatch."""
        self.set_scheduled(count)
        if self.settings.lr_scheduler is not None and self.checker is not None and self.checker.update is not None:
            self.checker.update.compare_schedule(count)

    def whole_vectors(self, *, changed: bool = False) -> AbstractContextManager[None]:
        """The context in which the optimizer has its whole vectors, where the processes divide them; all must enter it.
        With `changed`, each process then keeps its part of the vectors as they are at its end.
        """
        return nullcontext() if self.slices is None else self.slices.whole_vectors(changed=changed)

    def _set_scheduled_of_step(self, *, is_watched: bool) -> None:
        if not is_watched:
            self.set_scheduled(self.model.num_steps)
            return
        try:
            self.set_and_compare_scheduled(self.model.num_steps)
        except GradientMismatch:
            self.flush()  # an earlier step that is wrong comes first
            raise

    def check_finite(self, name: str, value: float) -> None:
        """Raise NotFiniteError where a value isn't finite."""
        if not math.isfinite(value):
            raise NotFiniteError(f"{name} is {value} at step {self.model.num_steps}")

    def _check_loss(self, value: float, input: Array, target: Array) -> None:
        self.finite.check_loss(self.settings.loss, value, input, target, self.model.num_steps)

    def _placed(self, error: NotFiniteError) -> NotFiniteError:
        """The error with the step that the model stands at: it may be an earlier one than the last that was made."""
        return NotFiniteError(f"{error} at step {self.model.num_steps}")


def check_targets(loss: Loss, inputs: Array, targets: Array, input: Array, prediction: Array) -> None:
    """Raise ValueError or TypeError where the loss doesn't take the targets of the inputs. `prediction` is the model's
    for `input`, which is some of the inputs.
    """
    if inputs is not input:
        num_predictions = len(inputs) * len(prediction) // len(input)  # a model may make several of each example
        prediction = placeholder((num_predictions, *prediction.shape[1:]), prediction.dtype)
    loss.check_target(prediction, targets)
