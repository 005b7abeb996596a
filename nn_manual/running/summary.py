"""A config's model as a table: layers, shapes, parameters, multiplications, and what each layer is checked against."""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from nn_manual.arrays import DTYPES, Array, Shape, size_of
from nn_manual.compile.program import program
from nn_manual.config import RunConfig, check_sizes
from nn_manual.contract import checked_input_shapes, checked_length
from nn_manual.data import batches
from nn_manual.errors import NNManualError
from nn_manual.layers import Layer
from nn_manual.model import Sequential
from nn_manual.running.loading import load, quiet
from nn_manual.running.trainer import Trainer
from nn_manual.running.training_run import TrainingRun
from nn_manual.ties import Ties
from nn_manual.trace.cost import num_multiplications, peak_memory
from nn_manual.trace.operation import CannotTrace
from nn_manual.trace.step import trace_step

#: Columns of a terminal, and those that a layer's name has at least.
WIDTH, NAME_WIDTH = 80, 12
#: Shapes are followed for two examples: of one alone, batch normalization takes no training step.
NUM_EXAMPLES = 2
HEADER = ("layer", "output", "parameters", "products", "checked against")


class FirstStep(NamedTuple):
    """A trainer that has made no step, and the batch of its first one."""

    trainer: Trainer
    input: Array
    target: Array


class Row(NamedTuple):
    """A layer: its name behind as many blanks as it is deep, and for one example the shape of its output and about how
    many multiplications its forward takes. None stands for what isn't known, or what the layers in it have. `note` is
    what there is to say of `counterpart`, or empty.
    """

    name: str
    output_shape: Shape | None
    num_parameters: int | None
    num_products: int | None
    counterpart: str
    note: str


@quiet
def summary(config: RunConfig) -> str:
    """The table, 80 columns wide, what a step of a run takes, and how the steps are checked.

    Raises DataError where nothing but the data says what shape an example has, and they can't be read, and ConfigError
    where these don't fit the model.
    """
    example_shape = config.data.example_shape
    if example_shape is None:
        split = config.data.load(config.seed, DTYPES[config.dtype])
        check_sizes(config, split)
        example_shape = split.train.input.shape[1:]
    rows: list[Row] = []
    shape: Shape = (NUM_EXAMPLES, *example_shape)
    for index, layer in enumerate(config.model):
        rows += _rows(layer, str(index), shape, depth=0)
        shape = layer.output_shape(shape)
    num_parameters, is_tied = _num_parameters(config)
    num_products = sum(row.num_products or 0 for row in rows)
    cells = [
        HEADER,
        *((row.name, _shown(row.output_shape), _count(row.num_parameters), _count(row.num_products), row.counterpart)
          for row in rows),
        ("total", "", f"{num_parameters:,}", f"{num_products:,}", ""),
    ]  # fmt: skip
    lines = [f"{type(config.data).__name__}: examples of {_shown(example_shape)}", ""]
    lines += [*_aligned(cells), "", "of one example: output, and products, about the multiplications of forward"]
    if is_tied:
        lines.append("a parameter that several layers share counts once in the total")
    notes = (line for row in rows for line in textwrap.wrap(row.note, WIDTH, subsequent_indent="  "))
    step = _first_step(config)
    texts = [*_costs(config, step), f"gradient check: {_how_checked(config, step)}"]
    said = (line for text in texts for line in textwrap.wrap(text, WIDTH, subsequent_indent="  "))
    return "\n".join([*lines, *notes, *said])


def _first_step(config: RunConfig) -> FirstStep | NNManualError:
    """What the run's first step is made with, or why there is none."""
    try:
        split, model = load(config)
        plain = dataclasses.replace(config, compiled=False, blas=None, threads=None)  # nothing is compiled yet
        trainer = TrainingRun(plain, split, model).trainer
        return FirstStep(trainer, *next(batches(split.train, config.batch_size, config.seed, epoch=0)))
    except NNManualError as error:
        return error


def _costs(config: RunConfig, step: FirstStep | NNManualError) -> Iterator[str]:
    """What a step on such a batch keeps alive and multiplies, stated from its trace, and what isn't compiled of it."""
    if isinstance(step, NNManualError):
        yield f"training step: what it takes isn't known: {_first_line(step)}"
        return
    model, loss, optimizer = step.trainer.model, step.trainer.loss, step.trainer.optimizer
    try:
        trace = trace_step(model, loss, optimizer, step.input, step.target, step.trainer.clip_grad_norm)
    except CannotTrace as refusal:
        yield f"training step: what it takes isn't known: {refusal}"
        return
    yield (
        f"training step: a batch of {len(step.input):,} takes {num_multiplications(trace):,} multiplications in "
        f"products, and {peak_memory(trace) / 1e6:.2g} MB beside model, optimizer and batch"
    )
    if config.compiled:
        reasons = "; ".join(f"{each.place}: {each.reason}" for each in program(trace).external)
        yield f"compiled: all but what NumPy runs: {reasons}" if reasons else "compiled: the whole step"


def _how_checked(config: RunConfig, step: FirstStep | NNManualError) -> str:
    """Which steps of a run are checked, and how many of them together: found by one step on the first batch."""
    every = config.gradient_check.every
    if not every:
        return "none"
    steps = "every step" if every == 1 else f"1 step of {every:,}"
    if (config.slices or 1) > 1:
        proven = "proven as one batch" if config.sync_batch_norm else "each proven by itself"
        return f"{steps}, its {config.slices} slices {proven}, and their sum"
    try:
        if isinstance(step, NNManualError):
            raise step
        from nn_manual.check.together.capacity import capacity  # torch

        assert step.trainer.checker is not None  # steps are checked
        with step.trainer.checker.recording():
            step.trainer.step(step.input, step.target)
        found = capacity(step.trainer.checker, config.gradient_check.num_bytes)
    except NNManualError as error:
        return f"{steps}; how many are proven together isn't known: {_first_line(error)}"
    if found.reason:
        return f"{steps}, each proven by itself: {found.reason}"
    return f"{steps}, up to {found.num_steps} proven together in {found.num_bytes / 1e6:.2g} MB"


def _first_line(error: NNManualError) -> str:
    return str(error).partition("\n")[0]


def _rows(layer: Layer, name: str, shape: Shape | None, depth: int) -> Iterator[Row]:
    """The row of a layer, and of those in it."""
    label = f"{'  ' * depth}{name} {type(layer).__name__}"
    children = layer.children()
    output_shape = num_products = num_parameters = None
    if shape is not None:
        try:
            output_shape = _of_one(layer.output_shape(shape))
        except ValueError:  # a composite of the user's needn't state what its layers get
            shape = None
    if not children:
        num_parameters = layer.num_parameters
        if shape is not None:
            products = checked_length(layer, "num_products", layer.num_products(shape)) or 0
            num_products = products // NUM_EXAMPLES
    yield Row(label, output_shape, num_parameters, num_products, *_counterpart(layer, label.strip()))
    shapes: dict[str, Shape] = {}
    if children and shape is not None:
        shapes = checked_input_shapes(layer, shape)
    for child_name, child in children.items():
        yield from _rows(child, child_name, shapes.get(child_name), depth + 1)


def _counterpart(layer: Layer, label: str) -> tuple[str, str]:
    """What a layer is checked against, in a word, and what more there is to say of it."""
    if isinstance(layer, Sequential):
        return "its layers", ""
    from nn_manual.check.twin.layers import Misfit, Source, counterpart_of

    try:
        counterpart = counterpart_of(layer)
    except Misfit as misfit:
        return "nothing", f"{label} can't be checked: {misfit}"
    if counterpart.source is Source.FORWARD:
        return "differences", f"{label} is checked against {counterpart.sentence}"
    return counterpart.name.removeprefix("torch."), ""


def _num_parameters(config: RunConfig) -> tuple[int, bool]:
    """The number of scalars in all parameters, a shared one once; and whether there is one."""
    shapes = Sequential.without_memory(*config.model).parameter_shapes()
    shared = Ties(shapes, [(first, other) for first, other in config.tied]).first_of
    return sum(size_of(shape) for name, shape in shapes.items() if name not in shared), bool(shared)


def _of_one(shape: Shape) -> Shape:
    """The shape that one of NUM_EXAMPLES has: without the batch, unless there are several rows for each example."""
    num_rows = shape[0] // NUM_EXAMPLES
    return shape[1:] if num_rows == 1 else (num_rows, *shape[1:])


def _shown(shape: Shape | None) -> str:
    return "?" if shape is None else "x".join(map(str, shape)) or "1"


def _count(number: int | None) -> str:
    return "" if not number else f"{number:,}"


def _aligned(cells: list[tuple[str, str, str, str, str]]) -> list[str]:
    """The table's lines: names and counterparts to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    widths[0] = max(NAME_WIDTH, min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1)))
    lines = []
    for name, *numbers, counterpart in cells:
        name = name if len(name) <= widths[0] else f"{name[: widths[0] - 3]}..."
        right = [f"{number:>{width}}" for number, width in zip(numbers, widths[1:-1], strict=True)]
        lines.append("  ".join([f"{name:{widths[0]}}", *right, counterpart]).rstrip())
    return lines
