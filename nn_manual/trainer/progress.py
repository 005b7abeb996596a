"""What a person sees of a training: a bar while it works, and a line for each epoch."""

from __future__ import annotations

import sys
import warnings
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Self

import numpy as np
from tqdm import TqdmWarning, tqdm

from nn_manual.messages.text import noted
from nn_manual.run_directory.metrics import BITS
from nn_manual.run_directory.step_line import CheckedStep, record_of
from nn_manual.trainer.steps import Step

if TYPE_CHECKING:  # torch is only loaded for a run that is checked
    from nn_manual.check.judge.step_check import StepCheck
    from nn_manual.check.many_steps.prover import Prover

#: The form of the bar: tqdm's default leaves no room for the loss in 80 columns.
BAR = "{desc} {percentage:3.0f}%|{bar}| {remaining} left{postfix}"


@dataclass
class GradientTally:
    """Counts over the checked steps of a run, and their worst error."""

    num_tensors: int = 0
    num_steps: int = 0
    num_rounding: int = 0
    #: The most steps that are proven together: 1 where they are proven one by one.
    num_together: int = 0
    #: The worst error that rounding hasn't excused, as a line of gradients.jsonl has it; empty before the first.
    worst: dict[str, Any] = field(default_factory=dict)
    worst_severity: float = -1.0

    def add(self, step: int, check: CheckedStep) -> None:
        """Count one checked step."""
        self.num_steps += 1
        self.num_tensors += len(check.tensors)
        self.num_rounding += len(check.rounding)
        severity = check.severity
        if check.rounding:  # what rounding has excused is counted, and is no error
            severity = np.where([name in check.rounding for name in check.tensors], 0, severity)
        worst = int(severity.argmax())
        if severity[worst] > self.worst_severity:
            self.worst_severity, self.worst = float(severity[worst]), record_of(step, check, worst)

    def state(self) -> dict[str, Any]:
        """The counts so far, as JSON has them."""
        return dict(vars(self))

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned."""
        vars(self).update(state)


class CheckedSteps:
    """The checked steps of a training, of which the last ones wait for their proof, and the tally of the others."""

    def __init__(self) -> None:
        self.tally = GradientTally()
        self._waiting: deque[tuple[int, StepCheck]] = deque()

    def add(self, step: Step) -> None:
        """Take note of a step, if it was checked."""
        if step.check is not None:
            self._waiting.append((step.number, step.check))

    def proven(self) -> Iterator[tuple[int, StepCheck]]:
        """The number and the check of each step that has been proven since the last call, in their order. It is then
        counted.
        """
        while self._waiting and self._waiting[0][1].proven:
            number, check = self._waiting.popleft()
            self.tally.add(number, check)
            yield number, check


class RunBar:
    """The bar of a whole run on standard error, with the time that is left, and the lines about the run. There is no
    bar where standard error is a file. In a notebook it is a widget above the lines, if ipywidgets are there. All goes
    to the streams of the run's start: a user's layer may replace them.

        with RunBar(num_epochs, num_steps, tally) as bar:
            for epoch in range(num_epochs):
                for step in bar.over(steps, epoch): ...

    `num_steps` is the number of steps in one epoch, and `first_step` the number that have been made before. With
    `is_silent` there is neither bar nor line.
    """

    def __init__(
        self, num_epochs: int, num_steps: int, tally: GradientTally, first_step: int = 0, *, is_silent: bool = False
    ) -> None:
        self.num_epochs, self.tally, self._is_silent = num_epochs, tally, is_silent
        self._has_headings = self._has_noted = False
        self._out, self._err = sys.stdout, sys.stderr
        # The time that is left comes from the mean speed, in which the evaluations between the epochs count.
        self._bar = _bar_class()(
            total=num_epochs * num_steps,
            initial=first_step,
            smoothing=0,
            leave=False,
            disable=True if is_silent else None,
            bar_format=BAR,
            file=self._err,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if exception[0] is None:  # a widget that isn't full stays: a run that stopped early isn't broken off
            self._bar.total = self._bar.n
        self._bar.close()

    def note(self, text: str) -> None:
        """Print a note on standard error, above the bar."""
        tqdm.write(noted(text, self._err), file=self._err)

    def note_one_by_one(self, prover: Prover | None) -> None:
        """Say on standard error, once, that each step is proven by itself, if a layer is the reason."""
        if prover is not None and prover.groups.is_of_layer and not self._has_noted and not self._is_silent:
            self._has_noted = True
            self.note(f"note: each step is proven by itself, which takes longer: {prover.groups.reason}")

    def say(self, line: str) -> None:
        """Print a line on standard output."""
        if not self._is_silent:
            print(line, file=self._out, flush=True)

    def say_epoch(self, record: Mapping[str, Any], *, is_best: bool) -> None:
        """Print the line of an epoch that has ended; the first has the headings above it."""
        *heading, line = epoch_lines(record, self.num_epochs, is_best=is_best)
        self.say("\n".join([line] if self._has_headings else [*heading, line]))
        self._has_headings = True

    def over(self, steps: Iterator[Step], epoch: int) -> Iterator[Step]:
        """The steps of an epoch, which is counted from 0. After the last one, the bar is cleared until the next step,
        so that other lines can be printed.
        """
        self._bar.set_description_str(epoch_label(epoch + 1, self.num_epochs), refresh=False)
        for step in steps:
            yield step
            worst = f", rounding {of_tolerance(self.tally.worst)} of its bound" if self.tally.worst else ""
            self._bar.set_postfix_str(f"loss {step.loss:.3g}{worst}", refresh=False)
            self._bar.update()
        self._bar.clear()


def _bar_class() -> type[tqdm[NoReturn]]:
    """tqdm's bar for where this runs: as tqdm.auto chooses it, which would load asyncio, too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmWarning)  # it calls itself an experiment, and asks for ipywidgets
        from tqdm.autonotebook import tqdm as chosen
    if chosen is tqdm:
        return tqdm
    from nn_manual.trainer.notebook_bar import NotebookBar

    return NotebookBar


def epoch_label(epoch: int, num_epochs: int) -> str:
    """`epoch  7/20`, the epoch counted from 1."""
    return f"epoch {epoch:{len(str(num_epochs))}}/{num_epochs}"


class _Column(NamedTuple):
    """A column of the epochs' table: the keys of its figure, the last of which that a record has counts, the two lines
    of its heading, its width, and the form of the figure.
    """

    keys: tuple[str, ...]
    upper: str
    lower: str
    width: int
    form: str


COLUMNS = (
    _Column(("train_loss",), "", "train loss", 10, ".4g"),
    _Column(("validation_loss",), "validation", "loss", 10, ".4g"),
    _Column(("validation_accuracy",), "validation", "accuracy", 10, ".2%"),
    _Column(tuple(BITS.values()), "bits a", "character", 9, ".4g"),
    _Column(("lr",), "", "lr", 8, ".3g"),
    _Column(("seconds",), "", "seconds", 7, ".3g"),
)
#: What stands behind the lowest validation loss so far, and what behind others.
BEST, NOT_BEST = " *", "  "


def epoch_lines(record: Mapping[str, Any], num_epochs: int, *, is_best: bool) -> list[str]:
    """A record of metrics.jsonl as a table for the terminal: two lines of headings, and its own."""
    label = f"{record['epoch']:{len(str(num_epochs))}}/{num_epochs}"
    lines = [f"{cell:>{max(len('epoch'), len(label))}}" for cell in ("", "epoch", label)]
    for keys, upper, lower, width, form in COLUMNS:
        values = [record[key] for key in keys if key in record]
        if values:
            has_mark = keys == ("validation_loss",)
            marks = (NOT_BEST, NOT_BEST, BEST if is_best else NOT_BEST) if has_mark else ("", "", "")
            cells = upper, lower, format(values[-1], form)
            lines = [f"{line}  {cell:>{width}}{mark}" for line, cell, mark in zip(lines, cells, marks, strict=True)]
    return [line.rstrip() for line in lines]


def of_tolerance(worst: dict[str, Any]) -> str:
    """The error of a line of gradients.jsonl in percent of what its tolerance allows."""
    return f"{100 * worst['relative'] / worst['tolerance']:.3g}%"
