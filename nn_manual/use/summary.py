"""A config's model as a table, and what its training takes.

The table says what each layer is checked against. Below it stands the memory that the model takes, and what a step
takes, if one is made to find out. All else follows from the shapes: no model is made, and nothing of its size.
"""

from __future__ import annotations

from collections.abc import Iterator

from nn_manual.arrays import DTYPES
from nn_manual.config import RunConfig, check_sizes
from nn_manual.data.checked import loaded
from nn_manual.data.reading import machine_memory
from nn_manual.messages.text import one_line, wrapped
from nn_manual.model import Sequential
from nn_manual.model.summary import NUM_EXAMPLES, LayerRow, ModelSummary, rows_of, shown
from nn_manual.run.loading import check_limits, quiet
from nn_manual.run.needed_memory import Sizes, in_bytes, sizes_of
from nn_manual.use.measuring import measured, steps_checked

#: The most parameters with which a step is made without --measure: with more, it may take gigabytes and minutes.
MOST_MEASURED = 1_000_000
#: Words for the numbers that a training keeps.
NUMBERS = ("parameters", "gradients", "the optimizer's vectors")


@quiet
def summary(config: RunConfig, *, measure: bool = False) -> str:
    """The table, 80 columns wide, the memory that a training takes, what a step of a run takes, and how the steps are
    checked. A step is made to find out what only a step can show, if the model is small or with `measure`.

    If only the data say what shape an example has, they are read: raises DataError where this fails, and ConfigError
    where the data don't fit the model, and for threads and memory of the check that this machine doesn't have.
    """
    check_limits(config)
    example_shape, split = config.data.example_shape, None
    if example_shape is None:
        split = loaded(config.data, config.seed, DTYPES[config.dtype])
        check_sizes(config, split)
        example_shape = split.train.input.shape[1:]
    layers = {str(index): layer for index, layer in enumerate(config.model)}
    rows = tuple(rows_of(layers, (NUM_EXAMPLES, *example_shape)))
    counterparts, sizes = list(map(_counterpart, rows)), sizes_of(config)
    last = "checked against", [word for word, _ in counterparts]
    table = ModelSummary(rows, sizes.parameters, sizes.is_tied, is_followed=True, last=last)
    lines = [f"{type(config.data).__name__}: examples of {shown(example_shape)}", "", *str(table).splitlines()]
    lines += (line for _, note in counterparts for line in wrapped(note))
    texts = [_memory(config, sizes)]
    texts += measured(config, split) if measure or sizes.parameters <= MOST_MEASURED else _not_measured(config)
    said = (line for text in texts for line in wrapped(text))
    return "\n".join(map(one_line, [*lines, *said]))


def _counterpart(row: LayerRow) -> tuple[str, str]:
    """What a layer is checked against, in a word, and what more there is to say about it."""
    if isinstance(row.layer, Sequential):
        return "its layers", ""
    from nn_manual.check.twin.layers import Source, counterpart_of
    from nn_manual.check.twin.modules import CannotStandIn

    try:
        counterpart = counterpart_of(row.layer)
    except CannotStandIn as misfit:
        return "nothing", f"{row.name.strip()} can't be checked: {misfit}"
    if counterpart.source is Source.FORWARD:
        return "differences", f"{row.name.strip()} is checked against {counterpart.sentence}"
    return counterpart.name.removeprefix("torch."), ""


def _memory(config: RunConfig, sizes: Sizes) -> str:
    """The memory that these numbers take, and a warning if the machine has less."""
    numbers = (sizes.parameters, sizes.gradients, sizes.vectors)
    needed, itemsize = sum(numbers), DTYPES[config.dtype].itemsize
    said = [f"{in_bytes(number * itemsize)} of {what}" for number, what in zip(numbers, NUMBERS, strict=True) if number]
    text = f"memory: {', '.join(said) or 'none'}"
    if needed * itemsize > machine_memory():
        text += f"; this machine has {in_bytes(machine_memory())}"
    return text


def _not_measured(config: RunConfig) -> Iterator[str]:
    """Sentences that say what isn't known without a step, and how to make one."""
    unknown = ["what a step multiplies and keeps in memory"]
    if config.compiled:
        unknown.append("what of it is compiled")
    if config.gradient_check.every:
        unknown.append("how many steps are proven together, and in how much memory")
    yield (
        f"not measured above {MOST_MEASURED:,} parameters: {'; '.join(unknown)}. --measure makes a step to find out, "
        "which takes the time and the memory of one"
    )
    yield f"gradient check: {steps_checked(config)}"
