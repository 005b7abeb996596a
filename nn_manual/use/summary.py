"""A config's model as a table.

Layers, shapes, parameters, multiplications, and what each layer is checked against; the memory that the model takes;
and what a step takes, if one is made to find out. All else follows from the shapes: no model is made, and nothing of
its size.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from nn_manual.arrays import DTYPES, Shape, size_of
from nn_manual.config import RunConfig, check_sizes
from nn_manual.data.reading import machine_memory
from nn_manual.layers import Layer
from nn_manual.layers.base import num_parameters
from nn_manual.messages import one_line
from nn_manual.model import Sequential
from nn_manual.model.contract import checked_input_shapes, checked_length
from nn_manual.model.ties import Ties
from nn_manual.run.loading import quiet
from nn_manual.use.measuring import measured, steps_checked

#: Columns of a terminal, and the fewest of them for a layer's name.
WIDTH, NAME_WIDTH = 80, 12
#: Shapes are followed for two examples, because batch normalization doesn't take a single one in training.
NUM_EXAMPLES = 2
#: The most parameters with which a step is made without --measure: with more, it may take gigabytes and minutes.
MOST_MEASURED = 1_000_000
#: Words for the numbers that a training keeps.
NUMBERS = ("parameters", "gradients", "the optimizer's vectors")
HEADER = ("layer", "output", "parameters", "products", "checked against")


class Sizes(NamedTuple):
    """How many numbers a training keeps: the parameters, a shared one once; the gradients, with one for each use of a
    shared parameter beside their sum; and the optimizer's vectors.
    """

    parameters: int
    gradients: int
    vectors: int
    is_tied: bool


class LayerRow(NamedTuple):
    """A layer: its name, indented by its depth, and for one example the shape of its output and about how many
    multiplications its forward takes. None stands for what isn't known, or what is in the rows of its inner layers.
    `note` says more about `counterpart`, or is empty.
    """

    name: str
    output_shape: Shape | None
    num_parameters: int | None
    num_products: int | None
    counterpart: str
    note: str


@quiet
def summary(config: RunConfig, *, measure: bool = False) -> str:
    """The table, 80 columns wide, the memory that a training takes, what a step of a run takes, and how the steps are
    checked. A step is made to find out what only a step can show, if the model is small or with `measure`.

    If only the data say what shape an example has, they are read: raises DataError where this fails, and ConfigError
    where the data don't fit the model.
    """
    example_shape, split = config.data.example_shape, None
    if example_shape is None:
        split = config.data.load(config.seed, DTYPES[config.dtype])
        check_sizes(config, split)
        example_shape = split.train.input.shape[1:]
    rows: list[LayerRow] = []
    shape: Shape = (NUM_EXAMPLES, *example_shape)
    for index, layer in enumerate(config.model):
        rows += _rows(layer, str(index), shape, depth=0)
        shape = layer.output_shape(shape)
    sizes = _sizes(config)
    num_products = sum(row.num_products or 0 for row in rows)
    cells = [
        HEADER,
        *((row.name, _shown(row.output_shape), _count(row.num_parameters), _count(row.num_products), row.counterpart)
          for row in rows),
        ("total", "", f"{sizes.parameters:,}", f"{num_products:,}", ""),
    ]  # fmt: skip
    lines = [f"{type(config.data).__name__}: examples of {_shown(example_shape)}", ""]
    lines += [*_aligned(cells), "", "of one example: output, and products, about the multiplications of forward"]
    if sizes.is_tied:
        lines.append("a parameter that several layers share counts once in the total")
    notes = (line for row in rows for line in textwrap.wrap(row.note, WIDTH, subsequent_indent="  "))
    texts = [_memory(config, sizes)]
    texts += measured(config, split) if measure or sizes.parameters <= MOST_MEASURED else _not_measured(config)
    said = (line for text in texts for line in textwrap.wrap(text, WIDTH, subsequent_indent="  "))
    return "\n".join(map(one_line, [*lines, *notes, *said]))


def _rows(layer: Layer, name: str, shape: Shape | None, depth: int) -> Iterator[LayerRow]:
    """The row of a layer, and the rows of the layers in it."""
    label = f"{'  ' * depth}{name} {type(layer).__name__}"
    children = layer.children()
    output_shape = num_products = own_parameters = None
    if shape is not None:
        try:
            output_shape = _of_one(layer.output_shape(shape))
        except ValueError:  # a user's composite needn't state what its layers get
            shape = None
    if not children:
        own_parameters = num_parameters(layer)
        if shape is not None:
            products = checked_length(layer, "num_products", layer.num_products(shape)) or 0
            num_products = products // NUM_EXAMPLES
    yield LayerRow(label, output_shape, own_parameters, num_products, *_counterpart(layer, label.strip()))
    shapes: dict[str, Shape] = {}
    if children and shape is not None:
        shapes = checked_input_shapes(layer, shape)
    for child_name, child in children.items():
        yield from _rows(child, child_name, shapes.get(child_name), depth + 1)


def _counterpart(layer: Layer, label: str) -> tuple[str, str]:
    """What a layer is checked against, in a word, and what more there is to say about it."""
    if isinstance(layer, Sequential):
        return "its layers", ""
    from nn_manual.check.twin.layers import Source, counterpart_of
    from nn_manual.check.twin.modules import CannotStandIn

    try:
        counterpart = counterpart_of(layer)
    except CannotStandIn as misfit:
        return "nothing", f"{label} can't be checked: {misfit}"
    if counterpart.source is Source.FORWARD:
        return "differences", f"{label} is checked against {counterpart.sentence}"
    return counterpart.name.removeprefix("torch."), ""


def _sizes(config: RunConfig) -> Sizes:
    """How many numbers a training of this config keeps."""
    shapes = Sequential.without_memory(*config.model).parameter_shapes()
    ties = Ties(shapes, [(first, other) for first, other in config.tied])
    own = sum(size_of(shape) for name, shape in shapes.items() if name not in ties.first_of)
    of_uses = sum(len(names) * size_of(shapes[first]) for first, names in ties.names.items())
    vectors = config.optimizer(Sequential(), groups=[]).vector_names()  # groups have no vectors of their own
    return Sizes(own, own + of_uses, len(vectors) * own, bool(ties.names))


def _memory(config: RunConfig, sizes: Sizes) -> str:
    """The memory that these numbers take, and a warning if the machine has less."""
    numbers = (sizes.parameters, sizes.gradients, sizes.vectors)
    needed, itemsize = sum(numbers), DTYPES[config.dtype].itemsize
    said = [f"{_bytes(number * itemsize)} of {what}" for number, what in zip(numbers, NUMBERS, strict=True) if number]
    text = f"memory: {', '.join(said) or 'none'}"
    if needed * itemsize > machine_memory():
        text += f"; this machine has {_bytes(machine_memory())}"
    return text


def _not_measured(config: RunConfig) -> Iterator[str]:
    """Sentences that say what isn't known without a step, and how to make one."""
    unknown = ["what a step multiplies and keeps in memory"]
    if config.compiled:
        unknown.append("what of it is compiled")
    if config.gradient_check.every:
        unknown.append("how many steps are proven together")
    yield (
        f"not measured above {MOST_MEASURED:,} parameters: {'; '.join(unknown)}. --measure makes a step to find out, "
        "which takes the time and the memory of one"
    )
    yield f"gradient check: {steps_checked(config)}"


def _bytes(number: int) -> str:
    """A number of bytes in MB, or in GB from 1000 MB on: with two digits, or with all digits before the point."""
    size, unit = (number / 1e6, "MB") if number < 1e9 else (number / 1e9, "GB")
    return f"{size:,.0f} {unit}" if size >= 100 else f"{size:.2g} {unit}"


def _of_one(shape: Shape) -> Shape:
    """The shape for one of NUM_EXAMPLES examples: without the batch, unless an example has several rows."""
    num_rows = shape[0] // NUM_EXAMPLES
    return shape[1:] if num_rows == 1 else (num_rows, *shape[1:])


def _shown(shape: Shape | None) -> str:
    return "?" if shape is None else "x".join(map(str, shape)) or "1"


def _count(number: int | None) -> str:
    return "" if not number else f"{number:,}"


def _aligned(cells: list[tuple[str, str, str, str, str]]) -> list[str]:
    """The lines of the table: names and counterparts are aligned to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    widths[0] = max(NAME_WIDTH, min(widths[0], WIDTH - sum(widths[1:]) - 2 * (len(widths) - 1)))
    lines = []
    for name, *numbers, counterpart in cells:
        name = name if len(name) <= widths[0] else f"{name[: widths[0] - 3]}..."
        right = [f"{number:>{width}}" for number, width in zip(numbers, widths[1:-1], strict=True)]
        lines.append("  ".join([f"{name:{widths[0]}}", *right, counterpart]).rstrip())
    return lines
