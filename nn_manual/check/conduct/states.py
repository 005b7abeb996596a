"""How a layer treats what it has beside its parameters: random numbers, buffers, and what a step leaves behind."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.conduct.layer_copy import LayerCopy
from nn_manual.check.conduct.unchanged import Unchanged
from nn_manual.defaults import defines
from nn_manual.layers.with_lengths import LENGTHS
from nn_manual.layers.with_noise import LayerWithNoise
from nn_manual.streams import RowGenerator

NOT_DETERMINISTIC = "is not deterministic: run twice on the same"

#: Two steps may draw the same noise by chance, if it is a small mask. So many steps hardly do.
NUM_DRAWS = 16


def check_draw_noise(copy: LayerCopy) -> None:
    """Raise CannotCompare for a draw_noise that replaces an array, or whose numbers the generator doesn't determine."""
    if not isinstance(copy.layer, LayerWithNoise):
        return
    own = copy.layer.noise
    first, again = (_drawn(copy, own, step=0) for _ in range(2))
    if different := copy.different(first, again):
        words = f"draw_noise {NOT_DETERMINISTIC} generator, {different} differs"
        raise copy.calls.fault("draw_noise", f"{words}: draw from the generator alone")
    if any(np.ptp(array) for array in first.values() if array.size):
        others = (_drawn(copy, own, step) for step in range(1, NUM_DRAWS))
        if not any(copy.different(first, other) for other in others):
            raise copy.calls.fault("draw_noise", "draw_noise draws the same in every step: draw from the generator")
    copy.layer.noise = own


def _drawn(copy: LayerCopy, own: SimpleNamespace, step: int) -> dict[str, Array]:
    """New arrays like the layer's own, as draw_noise fills them in a step."""
    noise = {name: np.zeros_like(array) for name, array in vars(own).items() if name != LENGTHS}
    copy.layer.noise = SimpleNamespace(**vars(own) | noise)
    copy.run("draw_noise", RowGenerator(0, 0, step))
    for name, array in noise.items():
        if vars(copy.layer.noise).get(name) is not array:
            raise copy.replaced("draw_noise", f"noise.{name}")
    return {f"noise.{name}": array for name, array in noise.items()}


def check_update_buffers(copy: LayerCopy, saved: Any) -> None:
    """Raise CannotCompare for an update_buffers that replaces a buffer, or writes into anything else."""
    buffers = copy.arrays("buffer")
    if not buffers:
        return
    before = {name: buffer.copy() for name, buffer in buffers.items()}
    grads = Unchanged(copy.calls.label, copy.arrays("grad"))
    copy.run("update_buffers", saved)
    copy.check_written("update_buffers", grads)
    for name, buffer in buffers.items():
        buffer[...] = before[name]


def check_infer(copy: LayerCopy, input: Array, other: Array) -> None:
    """Raise CannotCompare for an infer that writes into anything, isn't deterministic, or computes from more than the
    input, the parameters and the buffers. `copy.kept` has `input`; `other` is one that the layer takes, too.
    """
    if not defines(type(copy.layer), "infer"):
        return
    grads = Unchanged(copy.calls.label, copy.arrays("grad"))
    inferred = copy.run("infer", input)
    copy.check_written("infer", grads)
    if not isinstance(inferred, np.ndarray):
        raise copy.calls.fault("infer", f"infer must return an array, it returned {type(inferred).__name__}")
    returned = Unchanged(copy.calls.label, {"what infer returned": inferred})
    if not copy.same(inferred, copy.run("infer", input)):
        raise copy.calls.fault("infer", f"infer {NOT_DETERMINISTIC}, its output differs")
    copy.run("forward", other)
    with suppress(CannotCompare):  # the layer may not take equal rows
        copy.run("forward", np.array(np.broadcast_to(input[:1], input.shape)))
    with copy.noise_of_nobody(but_lengths=True):
        if not copy.same(inferred, copy.run("infer", input)):
            words = "infer uses what a training step left behind, its noise or something on the layer"
            raise copy.calls.fault("infer", f"{words}: it may use its input, parameters and buffers")
    copy.run("infer", other)
    copy.check_kept("infer", "run again on other values, it overwrote", returned)
