"""compile_step, compile_slice, compile_update: the plan of a training step, or of a part of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import TypeAlias

from nn_manual.arrays import Array
from nn_manual.compile.blas import MEASURED, Choice, free_cores
from nn_manual.compile.gathering import BATCH, gather_of
from nn_manual.compile.plan import Plan
from nn_manual.compile.program import lowered
from nn_manual.errors import ConfigError
from nn_manual.losses import Loss
from nn_manual.messages.text import counted
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Optimizer
from nn_manual.trace.step import trace_slice, trace_step, trace_update
from nn_manual.trace.trace import Trace
from nn_manual.trace.traced_step import Observe

#: Takes a line for the user.
Report: TypeAlias = Callable[[str], object]


class NoNumba(ConfigError):  # noqa: N818 - says what isn't there
    """numba isn't installed."""


def check_numba() -> None:
    """Raise NoNumba if numba isn't installed."""
    if importlib.util.find_spec("numba") is None:
        raise NoNumba("compiled: true needs numba: pip install 'nn_manual[fast]'")


def compile_step(
    model: Sequential,
    loss: Loss,
    optimizer: Optimizer,
    input: Array,
    target: Array,
    clipping: Clipping | None = None,
    report: Report = print,
    observe: Observe | None = None,
    choice: Choice = MEASURED,
    loop_threads: int | None = None,
) -> Plan:
    """A plan for the step that the optimizer makes next, and those after it, on batches of these shapes and dtypes.

    The arrays that `observe` wants of a step (see trace_step) are in memory after the step: `Plan.results` returns
    them. If `choice` leaves BLAS or threads open, they are measured, once on this machine for these products.
    `loop_threads` is the number of threads on which long loops run: without it, one for each free core.

    Raises NoNumba if numba isn't installed, NoBlas without a BLAS or without the chosen one, and CannotTrace if a
    formula can't be traced. `report` takes a line if something must be compiled, which takes seconds, and if the result
    can't be kept.
    """
    trace = trace_step(model, loss, optimizer, input, target, clipping, observe)
    return compile_trace(trace, model, optimizer, report, choice, loop_threads, gather_of(input[0]))


def compile_slice(
    model: Sequential,
    loss: Loss,
    optimizer: Optimizer,
    input: Array,
    target: Array,
    report: Report = print,
    observe: Observe | None = None,
    choice: Choice = MEASURED,
    loop_threads: int | None = None,
) -> Plan:
    """As `compile_step`, but forward, loss and backward alone, for slices of this shape: parameters don't move."""
    trace = trace_slice(model, loss, optimizer, input, target, observe)
    return compile_trace(trace, model, optimizer, report, choice, loop_threads)


def compile_update(
    model: Sequential,
    loss: Loss,
    optimizer: Optimizer,
    clipping: Clipping | None = None,
    report: Report = print,
    choice: Choice = MEASURED,
    loop_threads: int | None = None,
) -> Plan:
    """As `compile_step`, but clipping and update alone: the plan takes no batch and has no loss."""
    return compile_trace(trace_update(model, loss, optimizer, clipping), model, optimizer, report, choice, loop_threads)


def compile_trace(
    trace: Trace,
    model: Sequential,
    optimizer: Optimizer,
    report: Report = print,
    choice: Choice = MEASURED,
    loop_threads: int | None = None,
    gather: str = "",
) -> Plan:
    """The plan of a traced step. With the kernel `gather`, a step can put its own batch together."""
    check_numba()
    from nn_manual.compile.cache import Folder, Kernels
    from nn_manual.compile.choosing import choose

    step, folder = lowered(trace), Folder(report)
    blas, threads = choose(step.products, choice, folder)
    made = step.program(own_products=True)
    kernels = Kernels(blas.integer_bits, folder)
    missing = kernels.missing(made.kernels | ({gather: BATCH} if gather else {}))
    if missing:
        report(f"compiling {counted(len(missing), 'function')} of the training step, once")
        kernels.compile(missing)
    return Plan(model, optimizer, made, kernels, blas, threads, loop_threads or free_cores(), gather)
