"""The rows of two runs on the same inputs, also in sizes for which a kernel splits its work."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
import torch.utils.deterministic

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.battery.dimensions import case_of_sizes, raise_if_much_memory
from nn_manual.functions.battery.lengths import free_dimensions
from nn_manual.functions.battery.one_run import back_of, forward_of, same_bits
from nn_manual.functions.battery.trial import Run, Skip, Trial, Wrong, on_all_sizes
from nn_manual.functions.callables import is_array
from nn_manual.functions.exceptions import naming
from nn_manual.functions.function_case import FunctionCase
from nn_manual.functions.judged_case import judge

#: Past the usual block; past a large one; and so long that a small matrix has more than the 32,768 numbers from which
#: torch splits an operation among threads. Who splits work and adds up in no fixed order differs in the last bits.
LARGER = (257, 1025, 8193)
#: Once a size takes so many seconds of the processor, longer ones are skipped: one 8 times as long may take 64 times.
MOST_SECONDS = 0.05
#: How many pairs of runs must agree under torch's switch, and how many must be right: threads don't always differ.
TIMES = 3


def determinism(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Two runs on the same inputs agree to the last bit; on a device, within rounding. A function that is random by
    design takes a seed or a mask.
    """
    yield "", lambda: _on_all_sizes(trial)
    seconds = dict[str, float]()
    for name in free_dimensions(trial.sizes):
        for size in LARGER:
            yield f"{name}={size}", lambda name=name, size=size: _long(trial, name, size, seconds)  # type: ignore[misc] # defaults


def _on_all_sizes(trial: Trial) -> str | None:
    notes: list[str | None] = []
    on_all_sizes(trial, lambda case: notes.append(_deterministic(case)))
    return next(filter(None, notes), None)


def _long(trial: Trial, name: str, size: int, seconds: dict[str, float]) -> str | None:
    """`seconds` are those that the size before it took, by dimension."""
    if seconds.get(name, 0) > MOST_SECONDS:
        raise Skip(f"the size before took over {MOST_SECONDS} s")
    raise_if_much_memory(trial, name, size)
    case = case_of_sizes(trial, {name: size})
    start = time.process_time()
    try:
        return _deterministic(case)
    except CannotCompare as problem:  # the rows of sizes say that it is wrong, unless nobody wants them
        raise Skip(str(problem)) from problem
    finally:
        seconds[name] = time.process_time() - start


def _deterministic(case: FunctionCase) -> str | None:
    """Some of torch's own operations add up in no fixed order, unless torch's switch forbids it: a function that is
    made of them is right, and gets a note. So is a kernel on a device whose runs are all right within rounding: blocks
    that add to one number take turns as they come, and no switch forbids it.
    """
    with naming(case.label, "a run"):
        different = _differing(case)
        if different is None:
            return None
        with _deterministic_algorithms():
            is_torchs = not any(_differing(case) for _ in range(TIMES))
    words = f"{different} differs when it runs twice on the same inputs"
    if is_torchs:
        return f"{words}, unless torch.use_deterministic_algorithms(True) is set"
    if case.is_on_cuda and all(judge(case).agrees for _ in range(TIMES)):
        return f"{words}, by no more than rounding"
    raise Wrong(f"{words}; a function that is random by design takes a seed or a mask")


def _differing(case: FunctionCase) -> str | None:
    """The name of the first output or gradient that isn't the same in two runs."""
    ran, again = forward_of(case), forward_of(case)
    outputs, others = ({n: o for n, o in run.outputs.items() if is_array(o)} for run in (ran, again))
    outputs = {name: output.detach().clone() for name, output in outputs.items()}
    grads, other_grads = back_of(case, ran), back_of(case, again)
    different = [name for name, output in outputs.items() if not same_bits(output, others[name].detach())]
    pairs = zip(case.floating, grads, other_grads, strict=True)
    different += [f"grad_{name}" for name, grad, other in pairs if not same_bits(grad, other)]
    return next(iter(different), None)


@contextmanager
def _deterministic_algorithms() -> Iterator[None]:
    """A context in which torch's operations are deterministic. The switch also fills memory that an operation leaves
    as it is: this is off here, since it would hide a function that reads such memory.
    """
    filled = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined] # torch has no types here
    mode = torch.get_deterministic_debug_mode()
    torch.use_deterministic_algorithms(mode=True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined] # as above
    try:
        yield
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = filled  # type: ignore[attr-defined] # as above
        torch.set_deterministic_debug_mode(mode)
