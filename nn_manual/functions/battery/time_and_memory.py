"""The row of time and peak memory: forward and backward, beside the reference's."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from nn_manual.check.twin.dispatch import Dispatch
from nn_manual.functions.battery.trial import Run, Trial
from nn_manual.functions.exceptions import naming, raised_by_the_reference
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.handwritten import Checked, run_function
from nn_manual.functions.outputs import check_structure

#: Timed runs after the first run, of which the median counts: at most so many, and none begins after so many seconds.
MOST_RUNS = 20
SECONDS = 1.0


def cost(trial: Trial) -> Iterator[tuple[str, Run]]:
    """One line for engineers: forward and backward at the full size, in the first dtype."""
    if trial.reference is not None:
        yield "", lambda: _cost(trial)


def _cost(trial: Trial) -> str:
    case = trial.at(trial.full_sizes)
    with naming(case.label, "a run"):
        ours, peak = _measured(case, case.function)
    with raised_by_the_reference():
        theirs, their_peak = _measured(case, case.reference)
    times = f"forward and backward {_seconds(ours)}, the reference {_seconds(theirs)}"
    return f"{times}; peak memory of tensors {_size(peak)}, the reference {_size(their_peak)}"


def peak_of_reference(case: FunctionCase) -> int:
    """The most bytes that the tensors of the reference's forward take at once, without the inputs."""
    with raised_by_the_reference():
        return _peak(case, lambda: run_function(case.reference, case.arguments, case.leaves(), case.wants()))


def _measured(case: FunctionCase, function: Checked) -> tuple[float, int]:
    """The seconds of forward and backward, and the most bytes that tensors take at once, without the inputs."""
    with raised_by_the_reference():
        theirs = run_function(case.reference, case.arguments, case.leaves(), case.wants())
    ours = run_function(function, case.arguments, case.leaves(), case.wants())
    check_structure(case.label, ours.returned, theirs.returned)
    differentiable = {name: output.detach() for name, output in theirs.outputs.items() if output.requires_grad}
    del ours, theirs
    _, grad_outputs = next(case.grad_outputs(differentiable))

    def run() -> None:
        run_function(function, case.arguments, case.leaves(), case.wants()).backward(grad_outputs)
        if case.is_on_cuda:
            torch.cuda.synchronize()

    peak = _peak(case, run)
    seconds: list[float] = []
    while len(seconds) < MOST_RUNS and sum(seconds) < SECONDS:
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return median(seconds), peak


def _peak(case: FunctionCase, run: Callable[[], object]) -> int:
    if case.is_on_cuda:
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        run()
        return int(torch.cuda.max_memory_allocated() - before)
    live = _LiveTensors()
    with live:
        run()
    return live.peak


class _LiveTensors(Dispatch):
    """Counts the bytes of the tensors that operations have returned and that still live. Memory that a kernel allocates
    outside of torch doesn't count.
    """

    def __init__(self) -> None:
        super().__init__()
        self.peak, self._now = 0, 0
        self._known: set[int] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in tree_leaves(result):
            if isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided:
                self._count(tensor.untyped_storage())
        return result

    def _count(self, storage: torch.UntypedStorage) -> None:
        key, size = storage._cdata, storage.nbytes()
        if key in self._known:
            return
        self._known.add(key)
        self._now += size
        self.peak = max(self.peak, self._now)
        weakref.finalize(storage, self._forget, key, size)

    def _forget(self, key: int, size: int) -> None:
        self._known.discard(key)
        self._now -= size


def _seconds(seconds: float) -> str:
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.2f} s"


def _size(count: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} GB"
