"""The trace of a training step (forward, loss, backward, buffers, clipping, update), or of a part of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nn_manual.arrays import Array
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Optimizer
from nn_manual.trace.comparing import check_same
from nn_manual.trace.numpy_replay import replay
from nn_manual.trace.proving import check_replay, check_state, sums_of
from nn_manual.trace.step_arrays import given, given_to_update
from nn_manual.trace.substitution import take_others
from nn_manual.trace.trace import Trace
from nn_manual.trace.traced_step import Observe, TracedSlice, TracedStep, TracedUpdate


def trace_step(
    model: Sequential,
    loss: Loss,
    optimizer: Optimizer,
    input: Array,
    target: Array,
    clipping: Clipping | None = None,
    observe: Observe | None = None,
) -> Trace:
    """The trace of the step that the optimizer makes next, on a batch of these shapes and dtypes; `clipping` is
    what the step does to the gradient. The model doesn't change: the step runs on copies, and once more on other
    values. There it must do the same operations, and the replay of the trace must give, bit for bit, what the step
    gives without a trace.

    The step is given, by name: "param", "input", "target"; each vector of the optimizer ("momentum_buffer"); "buffer"
    and "counters", flat; random numbers ("0.noise.mask"); the coefficients of the update of each group ("0.step_size").
    It writes "param", "grad", the vectors, "buffer" and "counters". Its result is "loss".

    With `observe` there are other results, too. `observe` gets the model and the loss that run, and returns the context
    in which forward and backward run. The context gives a function: from what the model saved it makes a dict of
    arrays.

    Raises CannotTrace if a formula branches on a value, uses an array that isn't the step's, or does something in one
    step that it doesn't do in the next.
    """
    step = TracedStep(model, loss, optimizer, clipping, observe)
    return _proven(step, given(step.model, step.optimizer, input, target))


def trace_slice(
    model: Sequential, loss: Loss, optimizer: Optimizer, input: Array, target: Array, observe: Observe | None = None
) -> Trace:
    """As `trace_step`, but forward, loss and backward alone, on a slice of a batch: the slice writes "grad" and nothing
    else that stays.
    """
    step = TracedSlice(model, loss, optimizer, None, observe)
    return _proven(step, given(step.model, step.optimizer, input, target, with_update=False))


def trace_update(model: Sequential, loss: Loss, optimizer: Optimizer, clipping: Clipping | None = None) -> Trace:
    """As `trace_step`, but clipping and update alone. The trace has no result."""
    step = TracedUpdate(model, loss, optimizer, clipping)
    arrays = {"param": step.model.param_arena, "grad": step.model.grad_arena} | given_to_update(step.optimizer)
    return _proven(step, arrays)


def _proven(step: TracedStep, arrays: Mapping[str, Array]) -> Trace:
    """The trace of a step on these arrays, after the proof that it holds for other values, too. The arrays are written
    to: copies of them could exceed the memory.
    """
    originals = {name: array.copy() for name, array in arrays.items() if name not in step.originals} | step.originals
    recorded = step.record(arrays)
    step.move_settings()
    take_others(arrays, originals)
    state = step.state()
    again = step.record(arrays)
    check_same(recorded.trace, again.trace, recorded.origins)
    check_state(state, step.state())
    take_others(arrays, originals)
    with np.errstate(all="ignore"):
        replayed = sums_of(replay(recorded.trace, arrays, in_place=True))
    take_others(arrays, originals)
    after = sums_of(step.plain(arrays))
    check_replay(replayed, after, arrays, lambda: step.record(arrays, keeps_sums=True))
    return recorded.trace
