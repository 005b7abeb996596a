"""A model as a table: its layers, the shapes of their outputs, their parameters and their multiplications.

All of it follows from the shapes: no layer needs memory for it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nn_manual.arrays import Shape
from nn_manual.layers.base import Layer, num_parameters
from nn_manual.messages import notebook
from nn_manual.messages.text import WIDTH, one_line
from nn_manual.model.contract import checked_input_shapes, checked_length

#: The fewest columns of a terminal for a layer's name, and for the last column if it needs as many.
NAME_WIDTH, LAST_WIDTH = 12, 24
#: Shapes are followed for two examples, because batch normalization doesn't take a single one in training.
NUM_EXAMPLES = 2
OF_ONE_EXAMPLE = "of one example: output, and products, about the multiplications of forward"
OF_SHARED = "a parameter that several layers share counts once in the total"


class LayerRow(NamedTuple):
    """A layer: its name, indented by its depth, and for one example the shape of its output and about how many
    multiplications its forward takes. None stands for what isn't known, or what is in the rows of its inner layers.
    """

    layer: Layer
    name: str
    output_shape: Shape | None
    num_parameters: int | None
    num_products: int | None


@dataclass(frozen=True, repr=False)
class ModelSummary:
    """The table of a model's layers. str() is for a terminal of 80 columns.

    Where `is_followed`, an input's shape is known, and so are outputs and multiplications. The last column has a
    heading and a text for each row.
    """

    rows: tuple[LayerRow, ...]
    num_parameters: int
    is_tied: bool
    is_followed: bool
    last: tuple[str, Sequence[str]]

    def __str__(self) -> str:
        notes = self._notes()
        return "\n".join(map(one_line, [*_aligned(self._cells()), *([""] if notes else []), *notes]))

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The same in a notebook."""
        headings, *rows = self._cells()
        alignments = f"<{'>' * (len(headings) - 2)}<"
        table = notebook.table(headings, map(notebook.Row, rows), alignments)
        return notebook.page(table, *map(notebook.words, self._notes()))

    def _cells(self) -> list[tuple[str, ...]]:
        """The headings, a row for each layer, and the total."""
        heading, texts = self.last
        num_products = sum(row.num_products or 0 for row in self.rows)
        cells: list[tuple[str, ...]] = [("layer", "output", "parameters", "products", heading)]
        for row, text in zip(self.rows, texts, strict=True):
            numbers = shown(row.output_shape), _count(row.num_parameters), _count(row.num_products)
            cells.append((row.name, *numbers, text))
        cells.append(("total", "", f"{self.num_parameters:,}", f"{num_products:,}", ""))
        return cells if self.is_followed else [(cell[0], cell[2], cell[4]) for cell in cells]

    def _notes(self) -> list[str]:
        notes = ((OF_ONE_EXAMPLE, self.is_followed), (OF_SHARED, self.is_tied))
        return [note for note, applies in notes if applies]


def summary_of(
    layers: Mapping[str, Layer], num_parameters: int, input_shape: Shape | None, *, is_tied: bool
) -> ModelSummary:
    """What Sequential.summary returns."""
    if input_shape is not None:
        _check_shape(input_shape)
        try:
            rows = tuple(rows_of(layers, (NUM_EXAMPLES, *input_shape[1:])))
        except ValueError as error:
            advice = "the number of examples comes first, as in array.shape"
            raise ValueError(f"input_shape {tuple(input_shape)} doesn't fit the model: {error}; {advice}") from error
    else:
        rows = tuple(rows_of(layers, None))
    shapes = tuple(map(parameters_shown, rows))
    return ModelSummary(rows, num_parameters, is_tied, input_shape is not None, ("shapes", shapes))


def _check_shape(input_shape: Shape) -> None:
    """Raise TypeError where this is no shape of an input."""
    is_shape = isinstance(input_shape, tuple | list) and bool(input_shape)
    if not is_shape or not all(isinstance(size, int | np.integer) for size in input_shape):
        raise TypeError(f"input_shape must be the shape of an input, such as (64, 2), not {input_shape!r}")


def rows_of(layers: Mapping[str, Layer], input_shape: Shape | None) -> Iterator[LayerRow]:
    """The rows of layers that are run one after the other, and of the layers in them. `input_shape` is that of
    NUM_EXAMPLES examples. Raises ValueError where a layer doesn't take the output of the one before it.
    """
    for name, layer in layers.items():
        yield from _rows(layer, name, input_shape, depth=0)
        input_shape = None if input_shape is None else layer.output_shape(input_shape)


def _rows(layer: Layer, name: str, shape: Shape | None, depth: int) -> Iterator[LayerRow]:
    """The row of a layer, and the rows of the layers in it."""
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
    yield LayerRow(layer, f"{'  ' * depth}{name} {type(layer).__name__}", output_shape, own_parameters, num_products)
    shapes: dict[str, Shape] = {}
    if children and shape is not None:
        shapes = checked_input_shapes(layer, shape)
    for child_name, child in children.items():
        yield from _rows(child, child_name, shapes.get(child_name), depth + 1)


def parameters_shown(row: LayerRow) -> str:
    """The names and shapes of a layer's parameters: "weight 8x2, bias 8"; empty for a layer that is made of others."""
    shapes = {} if row.layer.children() else row.layer.parameter_shapes()
    return ", ".join(f"{name} {shown(shape)}" for name, shape in shapes.items())


def shown(shape: Shape | None) -> str:
    """A shape as the table has it: "1x28x28"."""
    return "?" if shape is None else "x".join(map(str, shape)) or "1"


def _of_one(shape: Shape) -> Shape:
    """The shape for one of NUM_EXAMPLES examples: without the batch, unless an example has several rows."""
    num_rows = shape[0] // NUM_EXAMPLES
    return shape[1:] if num_rows == 1 else (num_rows, *shape[1:])


def _count(number: int | None) -> str:
    return "" if not number else f"{number:,}"


def _aligned(cells: Sequence[tuple[str, ...]]) -> list[str]:
    """The lines of the table: numbers are aligned to the right, the first and the last column to the left. A long text
    in the last column takes several lines, and a word that is wider than this column stands below, further to the left.
    """
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = WIDTH - sum(widths[1:-1]) - 2 * (len(widths) - 1)
    last_width = min(widths[-1], max(room - widths[0], LAST_WIDTH))
    name_width = max(NAME_WIDTH, min(widths[0], room - last_width))
    lines = []
    for name, *numbers, last in cells:
        name = name if len(name) <= name_width else f"{name[: name_width - 3]}..."
        right = [f"{number:>{width}}" for number, width in zip(numbers, widths[1:-1], strict=True)]
        left = "  ".join([f"{name:{name_width}}", *right])
        # No-break spaces keep the name of a parameter and its shape together.
        held = last.replace(" ", "\xa0").replace(",\xa0", ", ")
        wrapped = textwrap.wrap(held, last_width, break_long_words=False, break_on_hyphens=False) or [""]
        if len(wrapped[0]) > last_width:
            wrapped.insert(0, "")
        lines.append(f"{left}  {wrapped[0]}".rstrip())
        lines += [" " * min(len(left) + 2, WIDTH - len(text)) + text for text in wrapped[1:]]
    return [line.replace("\xa0", " ") for line in lines]
