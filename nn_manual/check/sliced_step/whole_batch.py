"""A batch whose slices ran side by side, put together again: as if the whole of it had gone through the layers.

What a layer received and returned in the slices, on all processes, is gathered and laid end to end. So torch's own
layers, on the whole batch, are what it is compared with.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.judge.report import mismatch_for
from nn_manual.check.sliced_step.batch_loss import LossOfBatch
from nn_manual.check.step.calls import CallFailed, LayerCalls
from nn_manual.check.step.recording import Recording
from nn_manual.errors import GradientMismatch
from nn_manual.step.slices.cut import BatchPart
from nn_manual.step.slices.process_group import ProcessGroup

#: What a layer receives and returns in a step.
ARRAYS = ("input", "output", "grad_output", "grad_input")
#: How often each of its methods runs.
COUNTS = ("num_forwards", "num_backwards", "num_updates")
#: What it is given back, which must be what forward had saved.
GIVEN_BACK = ("saved_again", "saved_for_update")


def gather_batch(
    whole: Recording, own: Sequence[Recording], loss: LossOfBatch, shared: Collection[str], group: ProcessGroup
) -> None:
    """Fill the recording of a model with what ran in the slices: `own` has those of this process, of its copies of the
    model. `shared` are the names of the uses of shared parameters: for these, the arena has only the sums. All
    processes must call it.
    """
    #: Arrays by their bytes: so what one layer returned is the very array that the next one received.
    known: dict[bytes, Array] = {}

    def same(array: Array) -> Array:
        described = f"{array.dtype} {array.shape} ".encode()
        return known.setdefault(hashlib.blake2b(described + array.tobytes()).digest(), array)

    for position, calls in enumerate(whole.layers):
        calls.clear()
        slices = [recording.layers[position] for recording in own]
        for name in ARRAYS:
            batch = gathered_if_any([getattr(each, name) for each in slices], group)
            setattr(calls, name, None if batch is None else same(batch))
        _take_conduct(calls, [_conduct_of(each) for each in slices], group)
        for name, grad in calls.grads.items():
            if f"{calls.item.name}.{name}" in shared:
                grad[...] = gathered([each.grads[name][np.newaxis] for each in slices], group).sum(axis=0)
    whole.loss.clear()
    whole.loss.value, whole.loss.target = loss.prediction.dtype.type(loss.value), loss.target
    whole.loss.prediction, whole.loss.grad_prediction = same(loss.prediction), same(loss.grad_prediction)


def gathered(own: Sequence[Array], group: ProcessGroup) -> Array:
    """Arrays of all slices, end to end: `own` are this process's, and some process has one. All must call it."""
    arrays = gathered_if_any(own, group)
    assert arrays is not None
    return arrays


def gathered_lengths(own: Sequence[Recording], group: ProcessGroup) -> Array:
    """The lengths of the sequences of all slices, end to end; a layer heeds them. All must call it."""
    return gathered([recording.lengths for recording in own if recording.lengths is not None], group)


def gathered_if_any(own: Sequence[Array | None], group: ProcessGroup) -> Array | None:
    """The same, or None where no process has one."""
    arrays = [array for array in own if array is not None]
    described = [str(arrays[0].dtype), list(arrays[0].shape[1:])] if arrays else None
    known = next((each for each in group.gather(described) if each is not None), None)
    if known is None:
        return None
    empty = np.zeros((0, *known[1]), known[0])
    return np.concatenate(group.gather_arrays(np.ascontiguousarray(np.concatenate([empty, *arrays]))))


def name_process(mismatch: GradientMismatch, parts: Sequence[BatchPart], num_own: int) -> None:
    """Let a mismatch say which process computed the row of its worst place; each had `num_own` slices of the batch."""
    for failure in mismatch.report.failures[:1]:
        num_rows = parts[-1].rows.stop
        if failure.name.endswith((".output", ".grad_input")) and failure.shape[0] % num_rows == 0:
            row = failure.index[0] * num_rows // failure.shape[0]  # a layer may have several for each example
            (number,) = (part.number for part in parts if part.rows.start <= row < part.rows.stop)
            mismatch.add_note(f"that is row {row} of the batch, which process {number // num_own} computed")


def raised_in(recordings: Sequence[Recording], failed: CallFailed) -> BaseException:
    """What to raise after a layer in one of the slices has, or the loss."""
    for recording in recordings:
        for calls in recording.layers:
            if calls.failure is not None:
                return mismatch_for(f"{calls.label}: {calls.failure}")
    return failed.error


def _conduct_of(calls: LayerCalls) -> dict[str, Any]:
    """How a layer was run in one slice, as JSON has it."""
    counts = {name: getattr(calls, name) for name in COUNTS}
    is_saved = {name: getattr(calls, name) is calls.saved for name in GIVEN_BACK}
    return {"place": calls.place, "only_parameters": calls.only_parameters, **counts, **is_saved}


def _take_conduct(calls: LayerCalls, own: list[dict[str, Any]], group: ProcessGroup) -> None:
    """Note how a layer was run in the whole batch: a count is the one, of those in the slices, that is farthest from 1.
    """
    slices = [each for of_process in group.gather(own) for each in of_process]
    calls.place, calls.only_parameters = slices[0]["place"], slices[0]["only_parameters"]
    for name in COUNTS:
        setattr(calls, name, max((each[name] for each in slices), key=lambda count: abs(count - 1)))
    calls.saved = object()
    for name in GIVEN_BACK:
        setattr(calls, name, calls.saved if all(each[name] for each in slices) else object())
