"""About how much memory a run needs, from shapes alone: the model, a step, its proof and the plan of compiled steps."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from nn_manual.arrays import DTYPES, Shape, size_of
from nn_manual.check.many_steps.ring_memory import LARGEST_STEP, proven_alone
from nn_manual.config import RunConfig
from nn_manual.data import num_batches
from nn_manual.data.reading import machine_memory
from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.model import Sequential
from nn_manual.model.summary import NUM_EXAMPLES, rows_of
from nn_manual.model.ties import Ties

#: A step keeps the outputs of its layers, and what backward needs beside them: 0.9 to 1.8 times as much again in the
#: nets of config/ but lstm.yaml, whose loop keeps five times its outputs.
OF_OUTPUTS = 1.5
#: torch itself, once it is imported and has run a step. Measured: 270 MB with torch 2.13 for a processor alone.
TORCH_ITSELF = 270_000_000
#: A trace, its proof and the plan's constants take so many vectors as long as the parameters: measured on GPTs of 45
#: and 124 million parameters.
VECTORS_OF_PLAN = 5


class Sizes(NamedTuple):
    """How many numbers a training keeps: the parameters, a shared one once; the gradients, with one for each use of a
    shared parameter beside their sum; and the optimizer's vectors.
    """

    parameters: int
    gradients: int
    vectors: int
    is_tied: bool


class Needed(NamedTuple):
    """Bytes: of parameters, gradients and the optimizer's vectors; of a step beside them; of what its proof takes more
    at its peak: torch, and a step that is proven by itself, as the first one is, or those that wait to be proven
    together; and of the plan while it is made.
    """

    model: int
    step: int
    proof: int
    plan: int


def sizes_of(config: RunConfig) -> Sizes:
    """How many numbers a training of this config keeps."""
    shapes = Sequential.without_memory(*config.model).parameter_shapes()
    ties = Ties(shapes, [(first, other) for first, other in config.tied])
    own = sum(size_of(shape) for name, shape in shapes.items() if name not in ties.first_of)
    of_uses = sum(len(names) * size_of(shapes[first]) for first, names in ties.names.items())
    vectors = config.new_optimizer(Sequential(), groups=[]).vector_names()  # groups have no vectors of their own
    return Sizes(own, own + of_uses, len(vectors) * own, bool(ties.names))


def needed_memory(config: RunConfig, input_shape: Shape) -> Needed:
    """What a run of this config needs, about, with training inputs of this shape."""
    sizes, itemsize = sizes_of(config), DTYPES[config.dtype].itemsize
    batch_size = min(config.batch_size, input_shape[0])
    outputs, compared = (number * batch_size * itemsize for number in _numbers(config, input_shape[1:]))
    step = round(OF_OUTPUTS * outputs)
    plan = step + itemsize * VECTORS_OF_PLAN * sizes.parameters
    return Needed(
        model=itemsize * (sizes.parameters + sizes.gradients + sizes.vectors),
        step=step,
        proof=_of_proof(config, sizes, compared, input_shape[0]) - step if config.gradient_check.every else 0,
        plan=plan if config.compiled else 0,
    )


def _of_proof(config: RunConfig, sizes: Sizes, compared: int, num_examples: int) -> int:
    """The bytes of a step and of all that its proof takes, from those of what is compared beside parameters."""
    itemsize, check = DTYPES[config.dtype].itemsize, config.gradient_check
    tensors = compared + sizes.gradients * itemsize
    vectors = sizes.vectors * itemsize
    alone = proven_alone(tensors, sizes.parameters * itemsize, vectors)
    is_kept = tensors + sizes.parameters * itemsize + vectors <= LARGEST_STEP
    of_epoch = num_batches(num_examples, config.batch_size) // check.every
    together = min(check.num_bytes, of_epoch * alone) if is_kept else 0
    return TORCH_ITSELF + max(alone, together)


def _numbers(config: RunConfig, example_shape: Shape) -> tuple[int, int]:
    """How many numbers all layers together put out for one example, and how many the check compares: these outputs and
    their gradients, those of composites too, and what passes from a composite to its layers. 0 where nobody knows.
    """
    layers = {str(index): layer for index, layer in enumerate(config.model)}
    try:
        rows = list(rows_of(layers, (NUM_EXAMPLES, *example_shape)))
    except Exception as error:  # only a check asks a user's layer for all of this, and an estimate must end no run
        raise_if_nobodys_fault(error)
        return 0, 0
    known = [(row, size_of(row.output_shape)) for row in rows if row.output_shape is not None]
    # A layer in a composite has an input of its own there, about as large as its output.
    return (
        sum(size for row, size in known if not row.layer.children()),
        sum(2 * size * (2 if row.name.startswith(" ") else 1) for row, size in known),
    )


def note_of_memory(config: RunConfig, input_shape: Shape) -> str | None:
    """What a run needs, and which settings lower it, where the machine has less; else None."""
    needed, memory = needed_memory(config, input_shape), machine_memory()
    if sum(needed) <= memory:
        return None
    return (
        f"note: this run needs about {in_bytes(sum(needed))} of memory, and this machine has {in_bytes(memory)}: "
        f"{', '.join(_parts(needed))}"
    )


def _parts(needed: Needed) -> Iterator[str]:
    yield f"{in_bytes(needed.model)} for the model and its optimizer"
    yield f"{in_bytes(needed.step)} for a step, less with a smaller batch_size"
    if needed.proof:
        yield f"{in_bytes(needed.proof)} for its proof, none with gradient_check.every=0"
    if needed.plan:
        yield f"{in_bytes(needed.plan)} for compiling it, none with compiled=false"


def in_bytes(number: int) -> str:
    """A number of bytes in MB, or in GB from 1000 MB on: with two digits, or with all digits before the point."""
    size, unit = (number / 1e6, "MB") if number < 1e9 else (number / 1e9, "GB")
    return f"{size:,.0f} {unit}" if size >= 100 else f"{size:.2g} {unit}"
