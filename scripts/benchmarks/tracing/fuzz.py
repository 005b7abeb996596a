"""Random programs, traced and replayed on other values: the replay must give what the program gives, bit for bit."""

from __future__ import annotations

import sys
import time

import numpy as np

from benchmarks.tracing.drawing import draw_program
from benchmarks.tracing.programs import Program
from nn_manual.arrays import Array
from nn_manual.trace.comparing import check_same
from nn_manual.trace.numpy_replay import replay
from nn_manual.trace.trace import CannotTrace, Trace
from nn_manual.trace.tracer import Tracer

NUM_PROGRAMS = 100_000
#: Seconds between two lines on the terminal.
PAUSE = 10


def main() -> int:
    """Run all programs. Returns 1 if one differs, else 0."""
    start = said = time.perf_counter()
    num_loops, wrong = 0, 0
    for seed in range(NUM_PROGRAMS):
        program = draw_program(seed)
        difference = differs(program)
        num_loops += any("over_time" in line for line in program.lines)
        if difference:
            wrong += 1
            print(f"seed {seed}: {difference}\n{program}\n")
        if time.perf_counter() - said > PAUSE:
            said = time.perf_counter()
            print(f"{seed + 1:,} programs, {wrong} wrong", file=sys.stderr)
    seconds = time.perf_counter() - start
    print(f"{NUM_PROGRAMS:,} programs, {num_loops:,} of them with loops, in {seconds:.0f} s: {wrong} differ")
    return 1 if wrong else 0


def differs(program: Program) -> str:
    """How the replay differs from the program, on other values; empty if it doesn't."""
    others = program.other_inputs(1)
    try:
        trace = traced(program, program.inputs)
        check_same(trace, traced(program, others), {})
    except CannotTrace as refusal:
        return str(refusal)
    expected = program.run({name: array.copy() for name, array in others.items()})
    with np.errstate(all="ignore"):
        found = replay(trace, others)
    for name, array in expected.items():
        if not same_bits(found[name], np.asarray(array)):
            return f"{name} is {found[name]!r}, not {array!r}"
    return ""


def traced(program: Program, inputs: dict[str, Array]) -> Trace:
    """The trace of a program."""
    with Tracer({}) as tracer:
        arrays = program.run({name: tracer.give(name, array.copy()) for name, array in inputs.items()})
        tracer.check()
        return tracer.trace(arrays)


def same_bits(one: Array, other: Array) -> bool:
    """Whether both are the same: 0 isn't -0, but NaN is NaN."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    if one.dtype.kind != "f":
        return one.tobytes() == other.tobytes()
    nan = np.isnan(one)
    return np.array_equal(nan, np.isnan(other)) and np.where(nan, 0, one).tobytes() == np.where(nan, 0, other).tobytes()
