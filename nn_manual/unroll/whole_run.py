"""The whole run, at the end of the script: the arrays that it reads, and the lines that train."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.config import RunConfig
from nn_manual.data import Examples, num_batches
from nn_manual.errors import ConfigError
from nn_manual.layers import (
    CausalSelfAttention,
    Dropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    Layer,
    MultiheadAttention,
    StochasticDepth,
)
from nn_manual.layers.composite import descendants
from nn_manual.layers.with_noise import draws
from nn_manual.model import Sequential
from nn_manual.optim import ReduceLROnPlateau
from nn_manual.streams import Stream
from nn_manual.trace.step_arrays import flat_buffers
from nn_manual.unroll.script import Script
from nn_manual.unroll.sections import comment
from nn_manual.unroll.syntax import Name

#: The layers whose masks the script can draw, and their fields for the probability of a 0.
MASKED: dict[type[Layer], str] = {
    **dict.fromkeys((Dropout, Dropout1d, Dropout2d, Dropout3d, StochasticDepth), "p"),
    **dict.fromkeys((CausalSelfAttention, MultiheadAttention), "dropout"),
}

RANDOM = """\

def random(layer, step, shape):
    # Uniform in [0, 1): a function of the seed, the layer and the step.
    key = np.random.SeedSequence({seed}, spawn_key=({stream},)).generate_state(2, np.uint64)
    philox = np.random.Philox(key=key, counter=np.array([0, 0, step, layer], np.uint64))
    return np.random.Generator(philox).random(shape, np.float32)
"""


def check_run(config: RunConfig, script: Script, model: Sequential) -> None:
    """Raise ConfigError for a run that a script can't make by itself."""
    if isinstance(config.lr_scheduler, ReduceLROnPlateau):
        raise ConfigError("--run: ReduceLROnPlateau watches the validation loss, which the script doesn't compute")
    layers = dict(descendants(model))
    for name in script.given.arguments:
        if name.layer and type(layers[name.layer]) not in MASKED:
            layer = f"{name.layer} ({type(layers[name.layer]).__name__})"
            raise ConfigError(f"--run: the script can't draw the random numbers of layer {layer}")


def _masks(config: RunConfig, script: Script, model: Sequential, rows: str) -> Iterator[str]:
    """The lines that draw the masks of a step."""
    layers = dict(descendants(model))
    drawing = [name for name, layer in layers.items() if draws(layer)]
    for name, view in script.given.arguments.items():
        if name.layer:
            layer = layers[name.layer]
            p = getattr(layer, MASKED[type(layer)])
            of_batch = isinstance(layer, StochasticDepth) and layer.mode == "batch"
            shape = f"({1 if of_batch else rows}, {', '.join(map(str, view.shape[1:]))})"
            kept = f"random({drawing.index(name.layer)}, step, {shape}) >= {p}"
            yield f"{name} = (({kept}) * {0 if p == 1 else f'(1 / (1 - {p}))'}).astype(np.{config.dtype})"


def arrays_of(config: RunConfig, script: Script, model: Sequential, train: Examples) -> dict[str, Array]:
    """The arrays that the script reads: the examples, the initial parameters and buffers, and what the schedule
    moves.
    """
    buffer, counters = flat_buffers(model)
    arrays = {"input": train.input, "target": train.target, "param": model.param_arena}
    arrays |= {"buffer": buffer} if buffer.size else {}
    arrays |= {"counters": counters} if counters.size else {}
    if config.lr_scheduler is not None:
        scheduler, (counts, _) = config.new_scheduler(), config.num_counts(len(train.input))
        assert scheduler is not None
        for name, (member, setting) in script.settings.scheduled(scheduler).items():
            values = [scheduler.scheduled(member.scheduled, count) for count in range(counts)]
            arrays[str(name)] = np.array([getattr(each, setting) for each in values])
    return arrays


def run_lines(
    config: RunConfig, script: Script, arguments: list[Name], model: Sequential, train: Examples, file: str
) -> Iterator[str]:
    """The last lines of the script."""
    num_examples, size = len(train.input), config.batch_size
    count = num_batches(num_examples, size)
    names = [str(name) for name in arguments]
    scheduled = [str(name) for name in script.settings.scheduled(config.lr_scheduler)]
    epochs = f"{config.epochs} epoch" + "s" * (config.epochs > 1)
    steps = f"{count} step" + "s" * (count > 1)
    masks = list(_masks(config, script, model, "len(batch)" if count > 1 else "len(inputs)"))
    if masks:
        yield from ["", *RANDOM.format(seed=config.seed, stream=int(Stream.NOISE)).splitlines()]
    yield from ("", "")
    yield 'if __name__ == "__main__":'
    yield f"    {comment(f'The run: {epochs} of {steps}. {file} has what it begins with.')}"
    if "np.exp(" in " ".join(map(str, (part for line in script.lines for part in line.parts))):
        yield '    np.seterr(over="ignore")  # where exp overflows, a division by infinity gives the 0 that is wanted'
    yield '    run = np.load(Path(__file__).with_suffix(".npz"))'
    yield '    inputs, targets, param = run["input"], run["target"], run["param"]'
    for name in ("buffer", "counters"):
        if name in names:
            yield f'    {name} = run["{name}"]'
    yield from (f"    {name} = np.zeros_like(param)" for name in script.vectors)
    yield from (f'    {name}s = run["{name}"].tolist()' for name in scheduled)
    by_step = scheduled and config.lr_step == "step"
    counts = "step" in names or by_step or masks
    if counts:
        yield "    step = 0"
    yield f"    for epoch in range({config.epochs}):"
    if scheduled and not by_step:
        yield f"        {', '.join(scheduled)} = {', '.join(f'{name}s[epoch]' for name in scheduled)}"
    indent = " " * 8
    if count > 1:
        key = f"({int(Stream.SHUFFLE)}, epoch)"
        yield f"        generator = np.random.default_rng(np.random.SeedSequence({config.seed}, spawn_key={key}))"
        yield f"        order = generator.permutation({num_examples})"
        yield f"        for start in range(0, {num_examples}, {size}):"
        indent += " " * 4
        yield f"{indent}batch = order[start:start + {size}]"
    if by_step:
        yield f"{indent}{', '.join(scheduled)} = {', '.join(f'{name}s[step]' for name in scheduled)}"
    if counts:
        yield f"{indent}step += 1"
    yield from (f"{indent}{line}" for line in masks)
    rows = "[batch]" if count > 1 else ""
    of_batch = {"input": f"inputs{rows}", "target": f"targets{rows}"}
    given: list[Any] = [of_batch.get(name, name) for name in names]
    yield f"{indent}loss = train_step({', '.join(given)})"
    yield f"{indent}print(float(loss))"
