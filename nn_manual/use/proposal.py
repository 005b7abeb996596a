"""What a new config proposes: its lines, each with a comment that says why."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from nn_manual.arrays import Shape, size_of
from nn_manual.config.config_file import dump_yaml
from nn_manual.messages.text import counted

#: The features between the two Linears: enough for tables, and few enough to train in seconds.
HIDDEN = 64
#: A comment begins at this column, or two behind a longer line.
COMMENTS = 44
#: A line with its comment is no longer.
WIDTH = 100


class Line(NamedTuple):
    """A line of the config, and the comment behind it, if any."""

    text: str
    comment: str = ""


def in_yaml(value: Any) -> str:
    """A value as YAML has it, on one line."""
    return dump_yaml(value, on_one_line=True).strip().removesuffix("...").strip()


def commented(lines: Iterable[Line]) -> Iterator[str]:
    """The lines with their comments, which stand below each other; a long one stands above its line."""
    for text, comment in lines:
        line = f"{text:{COMMENTS - 2}}  # {comment}" if comment else text
        if len(line) > WIDTH and comment:
            indent = " " * (len(text) - len(text.lstrip())) + "# "
            yield from textwrap.wrap(comment, WIDTH, initial_indent=indent, subsequent_indent=indent)
            line = text
        yield line


def of_examples(
    data: Mapping[str, tuple[Any, str]],
    input_shape: Shape,
    num_outputs: int,
    *,
    is_classification: bool,
    holds_out: bool,
) -> Iterator[Line]:
    """The config for a data set of the class Arrays: its fields, each with a comment, the shape of an example, and the
    number of classes, or of values to predict; and whether a part is held out.
    """
    yield Line("data:")
    yield Line("  Arrays:")
    for name, (value, comment) in data.items():
        yield Line(f"    {name}: {in_yaml(value)}", comment)
    yield Line("batch_size: 32")
    if holds_out:
        yield Line("epochs: 100", "at most: it ends when the held-out part gets no better")
        yield Line("early_stopping: {patience: 20}", "the best weights are kept")
    else:
        yield Line("epochs: 100")
    yield Line("model:")
    if len(input_shape) > 1:
        yield Line("  - Flatten", f"{' x '.join(map(str, input_shape))} numbers become one row")
    inputs, outputs = counted(size_of(input_shape), "number"), "class" if is_classification else "value"
    yield Line(f"  - Linear: {{in_features: {size_of(input_shape)}, out_features: {HIDDEN}}}", f"{inputs} an example")
    yield Line("  - ReLU")
    comment = f"one number for each {outputs}"
    yield Line(f"  - Linear: {{in_features: {HIDDEN}, out_features: {num_outputs}}}", comment)
    yield Line(f"loss: {'CrossEntropyLoss' if is_classification else 'MSELoss'}", _why(is_classification))
    yield Line("optimizer: {AdamW: {lr: 3e-3, weight_decay: 0.01}}", "if the loss rises or jumps, try a smaller lr")


def _why(is_classification: bool) -> str:
    return "of the probabilities of the classes" if is_classification else "the mean of squared errors"
