"""compile_step: a training step as machine code, and Plan, which runs many of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array
from nn_manual.compile.blas import Blas, a_blas
from nn_manual.compile.cache import PACKAGE, loaded, stamp_of
from nn_manual.compile.source import Program, is_of_step, program
from nn_manual.compile.workspace import ALIGNMENT
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.trace.operation import Operation, Trace, View, array_of
from nn_manual.trace.step import given, trace_step


class Done(NamedTuple):
    """The losses of the steps that were made. Where these are fewer than were asked for, the loss or the gradient of
    the next one isn't finite: it has written its gradient, and moved nothing.
    """

    losses: Array
    num_steps: int


class NoNumba(Exception):  # noqa: N818 - says what isn't there
    """numba isn't installed."""


class Plan:
    """Runs steps of one shape on the model's own memory. See compile_step."""

    def __init__(self, model: Sequential, optimizer: Optimizer, made: Program, module: Any, blas: Blas) -> None:
        self.model, self.optimizer, self.program, self.blas = model, optimizer, made, blas
        self._pieces = [getattr(module, piece) if isinstance(piece, str) else piece for piece in made.pieces]
        memory = np.zeros(made.num_bytes + ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % ALIGNMENT
        self._workspace = memory[start:]
        self._constants = [np.ascontiguousarray(constant) for constant in made.constants]

    def run(self, inputs: Array, targets: Array, of_steps: Mapping[str, Array]) -> Done:
        """The steps of these batches, (steps, ...) each; `of_steps` has the coefficients of the updates, (steps,), and
        the random numbers, (steps, ...), by the names that the trace gives them.
        """
        num_steps = len(inputs)
        arrays = {"input": inputs, "target": targets, **of_steps}
        losses = np.empty(num_steps)
        table = self._table(arrays, losses)
        if len(self._pieces) == 1:
            done = self._pieces[0](0, num_steps, table.ctypes.data)
            return Done(losses[:done], done)
        for step in range(num_steps):
            for piece in self._pieces:
                if isinstance(piece, Operation):
                    self._run(piece, arrays, step)
                elif piece(step, step + 1, table.ctypes.data) == step:
                    return Done(losses[:step], step)
        return Done(losses, num_steps)

    def _table(self, arrays: Mapping[str, Array], losses: Array) -> Array:
        """The addresses that the pieces read."""
        kept = persistent(self.model, self.optimizer)
        addresses = {name: array.ctypes.data for name, array in kept.items()}
        num_steps = len(losses)
        for name in self.program.of_steps:
            array = arrays[name]
            if len(array) != num_steps or not array.flags.c_contiguous:
                raise ValueError(f"{name} must be contiguous, of {num_steps} steps")
            addresses[name] = array.ctypes.data
        addresses |= {"losses": losses.ctypes.data, "workspace": self._workspace.ctypes.data}
        addresses |= {"f4_gemm": self.blas.sgemm, "f8_gemm": self.blas.dgemm}
        addresses |= {f"constant {i}": constant.ctypes.data for i, constant in enumerate(self._constants)}
        return np.array([addresses[entry] for entry in self.program.entries], np.int64)

    def _run(self, operation: Operation, arrays: Mapping[str, Array], step: int) -> None:
        raise NotImplementedError(operation.name)


def persistent(model: Sequential, optimizer: Optimizer) -> dict[str, Array]:
    """What stays from step to step, by the names that a trace gives it."""
    arrays = {"param": model.param_arena, "grad": model.grad_arena, **optimizer.vectors}
    arrays |= {f"{name}.grad of this use": grad for name, grad in model.ties.use_grads.items()}
    counts = model.counter_names()
    buffers = vars(model.buffer)
    for kind, names in (("buffer", [name for name in buffers if name not in counts]), ("counters", list(counts))):
        if names:
            arrays[kind] = buffers[names[0]]  # the others lie behind it
    return arrays


def compile_step(
    model: Sequential,
    loss: Loss,
    optimizer: Optimizer,
    input: Array,
    target: Array,
    max_norm: float | None = None,
    report: Callable[[str], object] = print,
) -> Plan:
    """A plan for the step that the optimizer makes next, and those after it, on batches of these shapes and dtypes.

    Raises NoNumba where numba isn't installed, NoBlas without a BLAS, and CannotTrace where a formula can't be traced.
    """
    trace = trace_step(model, loss, optimizer, input, target, max_norm)
    return compile_trace(trace, model, optimizer, report)


def compile_trace(
    trace: Trace, model: Sequential, optimizer: Optimizer, report: Callable[[str], object] = print
) -> Plan:
    """The plan of a step that has been traced."""
    try:
        import numba  # noqa: F401 - found out before anything is made
    except ImportError:
        raise NoNumba("compiled: true needs numba: pip install 'nn_manual[fast]'") from None
    blas = a_blas()
    made = program(trace, blas.integer_bits)
    files = {PACKAGE.parent / operation.place.file for operation in trace.operations}
    stamp = stamp_of(made.text, (path for path in files if path.is_file()))
    names = [piece for piece in made.pieces if isinstance(piece, str)]
    return Plan(model, optimizer, made, loaded(made.text, stamp, names, report), blas)


__all__ = ["Done", "NoNumba", "Plan", "View", "array_of", "compile_step", "compile_trace", "given", "is_of_step", "persistent"]
