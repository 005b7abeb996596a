"""`unroll`: a config's training step, or its whole run, as a script."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.config import RunConfig
from nn_manual.data import Examples, batches, num_batches
from nn_manual.errors import ConfigError, raise_if_nobodys_fault, words_of
from nn_manual.messages.text import counted, one_line, print_note
from nn_manual.optim import Optimizer
from nn_manual.run.init_from import start_from_file
from nn_manual.run.loading import load, quiet
from nn_manual.run_directory import files
from nn_manual.trace.step_arrays import given
from nn_manual.trace.trace import CannotTrace
from nn_manual.trainer.steps import Batch
from nn_manual.trainer.trainer import Trainer
from nn_manual.unroll.page import arguments, page
from nn_manual.unroll.script import Script, script_of
from nn_manual.unroll.sections import Subject
from nn_manual.unroll.values import with_values
from nn_manual.unroll.whole_run import arrays_of, check_run, run_lines


class Unrolled(NamedTuple):
    """The text of a script, and the arrays that it reads from a file."""

    text: str
    arrays: dict[str, Array]


@quiet
def unroll(config: RunConfig, name: str, *, run: str = "", values: bool = False) -> Unrolled:
    """The script of a config, which is called `name`. With `run`, the name of the file of arrays beside the script, it
    makes the whole run. With `values`, the values of the first step stand beside its lines.

    Raises ConfigError if a layer, a loss or an optimizer can't be traced, if batches are cut into slices, or if the run
    needs something that a script doesn't have; and the errors of `load`.
    """
    if (config.slices or 1) > 1:
        raise ConfigError(f"unroll: slices must be 1, not {config.slices}: the script has the batch in one piece")
    if config.ema is not None:
        raise ConfigError("unroll: ema must be null: the script has the steps, and no average of the weights")
    split, model = load(config)
    for note in start_from_file(config, split, model):
        print_note(note)
    optimizer, train = config.optimizer(model), split.train
    kind = "indices" if train.target.dtype.kind == "i" else "probabilities"
    subject = Subject(name, model, config.loss, optimizer, kind, config.lr_scheduler, config.clipping)
    num_steps = config.epochs * num_batches(len(train.input), config.batch_size)
    try:
        pair = _batches(train, config)
        script, text = proven_script(subject, pair, num_steps)
    except CannotTrace as error:
        raise ConfigError(str(error)) from None
    if values:
        return Unrolled(_page_with_values(text, script, subject, pair[0]), {})
    if not run:
        return Unrolled(text, {})
    check_run(config, script, model)
    lines = list(run_lines(config, script, arguments(script, subject), model, train, run))
    return Unrolled(page(script, subject, lines), arrays_of(config, script, model, train))


def proven_script(subject: Subject, pair: Sequence[Batch], num_steps: int) -> tuple[Script, str]:
    """A script that does what the step does, bit for bit, for both of these batches, and in the last of `num_steps`
    steps; and its page. The first of the two is the larger. Raises CannotTrace as `trace_step` does, and ConfigError if
    there is no such script.
    """
    reason = "a formula does something else for each size of the batch"
    for script in script_of(subject.model, subject.loss, subject.optimizer, pair[0], subject.clipping):
        text = page(script, subject)
        steps = [*((each, 1) for each in pair), (pair[-1], num_steps)]
        differences = [_difference(text, script, subject, *each) for each in steps]
        if not any(differences):
            return script, text
        reason = next(filter(None, differences))
    raise ConfigError(f"unroll: {reason}")


def _batches(train: Examples, config: RunConfig) -> tuple[Batch, Batch]:
    """The first batch, and one of the size of the last."""
    in_order = batches(train, config.batch_size, config.seed, epoch=0)
    first = next(in_order)
    num_last = len(train.input) % config.batch_size or config.batch_size
    last = first if len(first.input) < config.batch_size else Examples(*(array[:num_last] for array in first))
    if len(first.input) < 3:
        raise ConfigError(f"unroll needs batches of 3 examples at least, not {len(first.input)}")
    return first, last


def _difference(text: str, script: Script, subject: Subject, batch: Batch, number: int) -> str:
    """What the script computes differently in the step with this number, "" if nothing."""
    model, loss, optimizer = copy.deepcopy((subject.model, subject.loss, subject.optimizer))
    clipping = subject.clipping
    settings: dict[str, Any] = {} if clipping is None else {clipping.key: clipping.bound}
    trainer = Trainer(model, loss, optimizer, check_every=0, **settings)
    trainer.num_steps = subject.model.num_steps + 1  # a new trainer counts from 0
    if number > 1:  # behind a step, so that the optimizer's vectors aren't zeros
        trainer.step(*batch)
        model.param_arena[...] = subject.model.param_arena
        optimizer.num_steps = number - 1
    before = {name: np.array(array) for name, array in given(model, optimizer, *batch).items()}
    arguments_of_step = _arguments(script, subject, optimizer, before)
    space: dict[str, Any] = {"__name__": "step"}
    where = f", in step {number}" if number > 1 else ""
    try:
        exec(compile(text, "<the script>", "exec"), space)
        found = space["train_step"](**arguments_of_step)
    except BaseException as error:  # a user's layer may do anything; another try may be right
        raise_if_nobodys_fault(error)
        return f"for {counted(len(batch[0]), 'example')} the script ends with {words_of(error)}{where}"
    expected = trainer.step(*batch)
    after = given(model, optimizer, *batch)
    names = ["param", "buffer", "counters", *optimizer.vectors]
    wrong = [name for name in names if before[name].tobytes() != after[name].tobytes()]
    if float(found) != expected or wrong:
        what = ", ".join(["the loss"] * (float(found) != expected) + wrong)
        return f"for {counted(len(batch[0]), 'example')} the script computes another {what} than the step{where}"
    return ""


def _arguments(script: Script, subject: Subject, optimizer: Optimizer, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """The arguments of train_step for the optimizer's next step, which is given these arrays."""
    scheduled = script.settings.scheduled(subject.scheduler)
    values: dict[str, Any] = {str(name): getattr(member.scheduled, own) for name, (member, own) in scheduled.items()}
    values |= {"step": optimizer.num_steps + 1} | {_given_name(name): array for name, array in arrays.items()}
    return {str(name): values[str(name)] for name in arguments(script, subject)}


def _page_with_values(text: str, script: Script, subject: Subject, batch: Batch) -> str:
    """The page with the values of the first step on this batch, and torch's gradients."""
    from nn_manual.check.whole_step.gradients import reference_gradients

    model, loss, optimizer = copy.deepcopy((subject.model, subject.loss, subject.optimizer))
    model.num_steps += 1  # as a trainer counts the first step
    arrays = {name: np.array(array) for name, array in given(model, optimizer, *batch).items()}
    gradients = reference_gradients(model, loss, *batch)
    return with_values(text, _arguments(script, subject, optimizer, arrays), gradients)


def _given_name(name: str) -> str:
    layer, is_noise, local = name.partition(".noise.")
    return f"{local}_{layer.replace('.', '_')}" if is_noise else name.replace(".", "_")


def check_output(output: Path | None, config_file: Path, config: RunConfig, *, has_arrays: bool) -> None:
    """Raise ConfigError where the script, or the file beside it that `has_arrays`, would replace a file that the run
    reads.
    """
    if output is None:
        return
    written = [output, output.with_suffix(".npz")] if has_arrays else [output]
    parts = [part for part in (config.data.source, config.init_from) if is_dataclass(part)]
    values = (getattr(part, field.name) for part in parts for field in fields(part))
    for read in (config_file, *(value for value in values if isinstance(value, Path))):
        for file in written:
            if read.exists() and file.exists() and file.samefile(read):
                raise ConfigError(f"--output {output}: {file} is read by the run, and would be lost")


def write(unrolled: Unrolled, output: Path | None) -> None:
    """Write a script to a file, with its arrays in a file beside it; without a file, print it."""
    if output is None:
        print(unrolled.text, end="")
        return
    if unrolled.arrays:
        stream = io.BytesIO()
        np.savez_compressed(stream, **unrolled.arrays)  # type: ignore[arg-type]
        files.write_atomically(output.with_suffix(".npz"), stream.getvalue())
    files.write_atomically(output, unrolled.text.encode())
    print(one_line(str(output)))

