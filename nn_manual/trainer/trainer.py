"""The Trainer: epochs of steps, their lrs, their proof, and the loss over other examples.

The file is long because users call the Trainer: half of it says what each setting and each method does.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, SupportsIndex, TypeAlias

from nn_manual.arrays import Array, Padded, check_arrays, unpadded
from nn_manual.compile.blas import BlasName, Choice
from nn_manual.compile.plans import may_compile
from nn_manual.data import Examples, batches, num_batches
from nn_manual.data.batches import check_batches, without_lengths
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Optimizer, ReduceLROnPlateau, Scheduler
from nn_manual.optim.averaging import averaged_weights
from nn_manual.optim.clipping import clipping_of
from nn_manual.step.slices.cut import ONE_SLICE, Slicing
from nn_manual.trainer.compiled_slices import CompiledSlices
from nn_manual.trainer.compiled_steps import CompiledSteps
from nn_manual.trainer.early_stop import EarlyStop
from nn_manual.trainer.finite import FiniteWatch
from nn_manual.trainer.fit import fit
from nn_manual.trainer.freed_memory import keep_freed_memory
from nn_manual.trainer.given_examples import check_finite, examples_of
from nn_manual.trainer.loss_and_accuracy import Evaluation, evaluation_of, mean_loss
from nn_manual.trainer.steps import Step, Steps
from nn_manual.trainer.trainer_settings import COUNTS, check_settings, check_whole_numbers, why_fixed

if TYPE_CHECKING:  # torch is only loaded for a run that is checked
    from nn_manual.check.many_steps.prover import Prover
    from nn_manual.check.whole_step.checker import GradientChecker

#: Inputs and targets, as arrays, or as lists of numbers.
Pair: TypeAlias = tuple[Any, Any]


def _report_unproven(numbers: list[int]) -> None:
    """Say on standard error which steps still wait for their proof when a trainer is no longer used."""
    if numbers:
        steps = f"step {numbers[0]}" if len(numbers) == 1 else f"steps {numbers[0]} to {numbers[-1]}"
        print(f"nn_manual: {steps} never proven: call trainer.flush() after a loop that is left early", file=sys.stderr)


@dataclass(eq=False)
class Trainer:
    """Trains `model` to lower `loss` with `optimizer`, each `check_every`-th step proven against torch (0: none).

        trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1))
        history = trainer.fit(train, validation, epochs=20, batch_size=64)

    or, step by step,

        for epoch in range(20):
            for step in trainer.epoch(train, batch_size=64, seed=0, epoch=epoch):
                ...                                   # step.loss, step.check
            trainer.evaluate(validation)              # .loss, .accuracy

    `train` and `validation` are Examples: inputs (examples, ...) in the model's dtype, and targets as the loss takes
    them; or pairs of arrays or lists, (input, target), which become such. `train_step(input, target)` is one step on a
    batch of your own. `clip_grad_norm` bounds the norm of the whole gradient, `clip_grad_value` each of its numbers;
    one of them may be given. `lr_scheduler` sets the lr of the optimizer and of each of its groups, counted from what
    it was at first: anew each epoch, or each step where `lr_step` is "step". One that watches the validation loss needs
    `trainer.observe(loss)` after each epoch, which `fit` calls.

    `train_step` proves a checked step at once, `epoch` many together, a little later: those wait in `check_memory`
    bytes. `check_threads` threads prove them: by default one, or as many as torch has where the first proofs show that
    this is faster; more than there are cores are slower. `flush()` proves them now. `prover.groups.most` says how many
    are proven at once, and `prover.groups.reason` why each is proven by itself, where it is.

    With `compiled`, the steps of an `epoch` run as machine code, many in one call: when the first of these is yielded,
    all are done, and `num_steps` is the number of the last one. The formulas are the same, but the rounding isn't. A
    smaller last batch, and a step that can't be traced, runs as it is written. `blas`, "numpy", "scipy" or "mkl", says
    whose BLAS multiplies matrices, and `threads` on how many threads. Where one is None, the fastest is measured, once
    on this machine for these products. Long loops run on `loop_threads` threads, by default one for each free core:
    their bits don't depend on it. Raises NoNumba without numba, NoBlas without the BLAS, ConfigError for more
    threads than cores are free.

    `slicing` cuts each batch into slices. One process computes them one after the other, or several processes do so
    side by side. A checked step is then proven at once. With `compiled`, one call of machine code runs forward, loss
    and backward of a slice, and another one clipping and update, for batches as large as the first one of an epoch.

    Raises GradientMismatch where a checked step has a wrong value. Raises NotFiniteError where a loss, a parameter, a
    buffer or what the optimizer keeps overflows: an unchecked step whose loss overflows changes nothing. Raises
    ValueError for settings that are out of range or an optimizer of another model, and ValueError or TypeError for a
    target that the loss does not take: all targets of an epoch are looked at before its first step. Where the loss
    ignores every target of a batch, its mean is over nothing: the gradient is zero, and there is nothing to check. Data
    in which no target counts are a ValueError.

    Between the steps, the parameters may change, and the lr of the optimizer and of its groups. Where steps are
    checked, other settings of the optimizer may not: the next step raises ValueError. The settings of the layers and of
    the loss must stay, too: torch's versions were made with them, and prove a step after later ones were made.

    Of the Trainer's own settings, `lr_step` may change. Where steps aren't checked, `clip_grad_norm`, `clip_grad_value`
    and `lr_scheduler` may, too, and `loss` unless batches are cut into slices. The next step uses the new value; one
    that is out of range raises ValueError or TypeError. To set anything else raises AttributeError: it takes a new
    Trainer.
    """

    model: Sequential
    loss: Loss
    optimizer: Optimizer
    clip_grad_norm: float | None = None
    lr_scheduler: Scheduler | None = None
    check_every: int = 1
    lr_step: Literal["epoch", "step"] = "epoch"
    check_memory: int = 128_000_000
    compiled: bool = False
    blas: BlasName | None = None
    threads: int | None = None
    loop_threads: int | None = None
    slicing: Slicing = ONE_SLICE
    check_threads: int | None = None
    clip_grad_value: float | None = None
    _is_made = False

    def __post_init__(self) -> None:
        check_settings(self)
        keep_freed_memory()
        #: No call of many compiled steps goes beyond a multiple of this number of steps; 0 for no such limit.
        self.stop_every = 0
        #: What makes the steps, one by one.
        self.steps = steps = Steps(self)
        compiled = self.compiled and may_compile(self.model, is_silent=self.slicing.group.rank > 0)
        self._compiled = CompiledSteps(self, steps) if compiled and self.slicing.is_plain else None
        self._compiled_slices: CompiledSlices | None = None
        if compiled and not self.slicing.is_plain:
            steps.train_step.runner = self._compiled_slices = CompiledSlices(self, steps.train_step.runner)
        if self.check_every:
            self._check_steps(steps)
        self._is_made = True

    def _check_steps(self, steps: Steps) -> None:
        """Make what checks the steps."""
        if steps.slices is not None:
            from nn_manual.check.sliced_step.sliced_checker import SlicedChecker

            steps.checker = SlicedChecker(steps.slices, self.clipping, self.lr_scheduler)
        else:
            from nn_manual.check.many_steps.prover import Prover
            from nn_manual.check.whole_step.checker import GradientChecker

            steps.checker = GradientChecker(
                self.model, self.loss, self.optimizer, clipping=self.clipping, scheduler=self.lr_scheduler
            )
            steps.prover = Prover(steps.checker, self.check_memory, self.check_threads)
            weakref.finalize(self, _report_unproven, steps.prover.numbers)

    @property
    def num_steps(self) -> int:
        """How many steps were made."""
        return self.model.num_steps

    @num_steps.setter
    def num_steps(self, number: int) -> None:
        self.model.num_steps = number

    @property
    def checker(self) -> GradientChecker | None:
        """What proves a step; None where no step is checked."""
        return self.steps.checker

    @property
    def clipping(self) -> Clipping | None:
        """How a step clips the gradient, if it does."""
        return clipping_of(self.clip_grad_norm, self.clip_grad_value)

    @property
    def prover(self) -> Prover | None:
        """What proves many steps together; None where each is proven at once."""
        return self.steps.prover

    @property
    def finite(self) -> FiniteWatch:
        """What watches for numbers that are not finite."""
        return self.steps.finite

    def __setattr__(self, name: str, value: object) -> None:
        if name in COUNTS or name.startswith("_") or not self._is_made or name not in vars(self):
            super().__setattr__(name, value)
            return
        before = getattr(self, name)
        is_same = value is before or (isinstance(value, int | float | str) and value == before)
        words = why_fixed(name, is_checked=self.checker is not None, is_plain=self.slicing.is_plain)
        if words and not is_same:
            raise AttributeError(f"{name} {words} when the Trainer was made: it takes a new Trainer")
        super().__setattr__(name, value)
        try:
            check_settings(self)
        except (TypeError, ValueError):
            super().__setattr__(name, before)
            raise

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """What copy and pickle call. The check, slices and compiled steps are tied to the memory of this model."""
        if self.checker is not None or not self.slicing.is_plain or self.compiled:
            raise TypeError(
                "a Trainer that checks, cuts or compiles its steps can't be copied: copy its model with copy.deepcopy, "
                "and make a Trainer of that"
            )
        return super().__reduce_ex__(protocol)

    def step(self, input: Array, target: Array) -> float:
        """One step of gradient descent on a batch, by the formulas, neither counted nor checked; returns the loss
        before it. Raises what `train_step` does for a batch that the model or the loss doesn't take.
        """
        self.steps.check_weights()
        check_arrays(input=input, target=target)
        self.steps.look_at(input, target, input)
        return self.steps.make(input, target)

    def train_step(self, input: Array | Padded, target: Array) -> Step:
        """A step on a batch of your own, checked if it is a `check_every`-th one."""
        self.steps.check_weights()
        self.flush()
        check_arrays(input=input, target=target)
        if not input.size:
            raise ValueError(f"the input is empty, shape {input.shape}: nothing to learn from")
        batch: Any = input
        self.steps.look_at(batch, target, batch)
        return self.steps.one(batch, target, together=False)

    def prepare(self, examples: Examples, batch_size: int) -> Choice:
        """Compile the step of such batches, if steps are compiled. Returns whose BLAS multiplies matrices in it, on how
        many threads: None where that isn't known, since steps run as they are written.
        """
        compiled = self._compiled or self._compiled_slices
        return Choice() if compiled is None else compiled.prepare(without_lengths(examples), batch_size)

    def flush(self) -> None:
        """Prove the steps that wait for their proof. Raises what a checked step does, for the first step that is wrong.
        Model and optimizer then stand at that step.
        """
        self.steps.flush()

    def fit(
        self,
        train: Examples | Pair,
        validation: Examples | Pair | None = None,
        *,
        epochs: int,
        batch_size: int,
        seed: int = 0,
        patience: int | None = None,
        min_delta: float = 0.0,
        verbose: bool = True,
    ) -> list[dict[str, Any]]:
        """Train for so many epochs. After each, evaluate on `validation`, if it is given, and print a line, unless
        `verbose` is false. With a `patience`, stop after so many epochs in which the validation loss fell by no more
        than `min_delta`, and go back to the weights of the best epoch. `seed` gives the order of the examples in each
        epoch.

        Returns a dict for each epoch, as a line of metrics.jsonl has it: epoch, step, train_loss, validation_loss and
        validation_accuracy where there are any, lr, seconds. Raises what `epoch` and `evaluate` do, and ValueError for
        no epochs, no examples, a number that isn't finite, and a patience or ReduceLROnPlateau without validation.
        Without a patience, the model has the weights of the last epoch, whichever was the best.
        """
        check_whole_numbers(epochs=epochs, batch_size=batch_size)
        if patience is not None:
            check_whole_numbers(patience=patience)
        if not min_delta >= 0:
            raise ValueError(f"min_delta must be at least 0, not {min_delta}")
        given = None if validation is None else examples_of(validation, self.model, self.loss)
        if given is None or not len(given.input):
            if patience is not None:
                raise ValueError("patience needs validation examples, whose loss it watches")
            if isinstance(self.lr_scheduler, ReduceLROnPlateau):
                raise ValueError("ReduceLROnPlateau needs validation examples, whose loss it watches")
        stop = EarlyStop(patience, min_delta)
        own = examples_of(train, self.model, self.loss)
        if not len(own.input):
            raise ValueError("there is no example to train on")
        for examples in (train, validation):
            if isinstance(examples, Examples):  # a pair was looked at when it became Examples
                check_finite("input", unpadded(examples.input))
                check_finite("target", examples.target)
        return fit(self, own, given, epochs, batch_size, seed=seed, early_stop=stop, verbose=verbose)

    def epoch(
        self, examples: Examples | Pair, batch_size: int, *, seed: int, epoch: int, first: int = 0
    ) -> Iterator[Step]:
        """The steps of one epoch, which is counted from 0. Each step is made when it is asked for. (seed, epoch) give
        the order of the examples; `first` is the index of the batch to begin with. Checked steps are proven together:
        `check.proven` says whether a step is proven. All are when the epoch ends, and after `flush`. A loop that ends
        early leaves steps without a proof; the next call of the trainer proves them.
        """
        self.steps.check_weights()
        self.flush()
        check_batches(batch_size, first)
        examples = examples_of(examples, self.model, self.loss)
        examples = examples if self.model.lengths_heeded_by else without_lengths(examples)
        self.loss.check_data(examples.target)
        if len(examples.input):
            self.steps.look_at(*examples, examples.input[:batch_size])
        self.start_epoch(epoch)
        if self.prover is not None:
            is_whole = len(examples.input) >= (first + 1) * batch_size  # the last batch, if smaller, is a first again
            start = self.num_steps - first
            end = start + num_batches(len(examples.input), batch_size)
            before, after = (each // self.check_every - start // self.check_every for each in (self.num_steps, end))
            self.prover.begin(before if is_whole else 0, after)
        if self._compiled_slices is not None:
            self._compiled_slices.num_rows = min(batch_size, len(examples.input))
        if self._compiled is None:
            yield from self.steps.each(batches(examples, batch_size, seed, epoch, first))
        else:
            yield from self._compiled.epoch(examples, batch_size, seed=seed, epoch=epoch, first=first)
        self.flush()
        self.check_finite()

    def start_epoch(self, epoch: int) -> None:
        """Set the lrs of an epoch, counted from 0, where the schedule counts epochs. In a loop of your own over
        `train_step`, call this at the start of each epoch.
        """
        if self.lr_step == "epoch":
            self.steps.set_and_compare_scheduled(epoch)

    def observe(self, validation_loss: float) -> None:
        """Show the schedule the validation loss of an epoch that has ended."""
        if self.lr_scheduler is not None:
            if self.checker is not None and self.checker.update is not None:
                self.checker.update.observe(validation_loss)
            self.lr_scheduler.observe(validation_loss)

    def evaluate(self, examples: Examples | Pair, confusion: Array | None = None) -> Evaluation:
        """The loss over all `examples`, as `mean_loss` puts batches together, and the accuracy. Where the targets are
        class indices, their counts by class and predicted class are added to `confusion`, int64 (classes, classes).
        Where the optimizer keeps an average of the weights, the model is evaluated with it.

        Raises GradientMismatch where steps are checked and a layer's `infer` differs from torch's in evaluation, which
        is compared once; ValueError where the model doesn't make equally many predictions for all examples, or where no
        target counts.
        """
        self.flush()
        compare = self.checker.compare_evaluation if self.checker is not None else None
        group = self.slicing.group
        examples = examples_of(examples, self.model, self.loss)
        with self.averaged_weights():
            evaluation = evaluation_of(self.model, self.loss, examples, confusion, after_first=compare, group=group)
        self.steps.check_finite("the validation loss", evaluation.loss)
        return evaluation

    def compare_evaluation(self) -> None:
        """Compare each layer's `infer` with torch's in evaluation, where steps are checked: once, on the batch of the
        last step that was compared. An epoch without an evaluation ends with it. Raises GradientMismatch.
        """
        self.flush()
        if self.checker is not None:
            self.checker.compare_evaluation()

    def mean_loss(self, name: str, batches: Sequence[tuple[float, float]]) -> float:
        """The loss over all batches, each given as (value, denominator): the mean of the values, weighted by the
        denominators, or their sum if the loss is a sum over the examples. A batch whose denominator is 0 is left out of
        a mean. Raises NotFiniteError, with `name`.
        """
        loss = mean_loss(self.loss, batches)
        self.steps.check_finite(name, loss)
        return loss

    def check_finite(self) -> None:
        """Raise NotFiniteError where the last step has left behind a number that isn't finite: in the gradients, in
        what the optimizer keeps, in parameters or buffers.
        """
        self.finite.check(self.num_steps)

    @contextmanager
    def averaged_weights(self) -> Iterator[None]:
        """The context in which the model has the average of its weights, where the optimizer keeps one: see `averaged`.
        Of several processes, all must enter it. In it, a step is refused with a ValueError: what it changes would be
        lost.
        """
        self.flush()
        before, self.steps.has_average = self.steps.has_average, True  # `evaluate` may be called in it
        try:
            with self.whole_vectors(), averaged_weights(self.optimizer):
                yield
        finally:
            self.steps.has_average = before

    def whole_vectors(self, *, changed: bool = False) -> AbstractContextManager[None]:
        """The context in which the optimizer has its whole vectors, where the processes divide them; all must enter it.
        With `changed`, each process then keeps its part of the vectors as they are at its end.
        """
        return self.steps.whole_vectors(changed=changed)
