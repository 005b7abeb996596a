"""A sample of random programs: their kernels' texts, run by Python, give what the programs give."""

from __future__ import annotations

import numpy as np
from benchmarks.tracing.drawing import draw_program
from benchmarks.tracing.interpreted import differs
from benchmarks.tracing.programs import Program

#: These take some seconds; `scripts/benchmark.py trace compiled` runs 2,000.
SAMPLE = range(1_000_000, 1_000_040)


def test_a_sample_is_the_same() -> None:
    for seed in SAMPLE:
        drawn = draw_program(seed)
        difference, _ = differs(drawn)
        assert not difference, f"seed {seed}: {difference}\n{drawn}"


def test_what_was_found() -> None:
    """A product into a larger array; (1, n) assigned to (n,); a mask in where= and another as a factor."""
    numbers, flags = np.arange(1.0, 5), np.array([True, False, True, True])
    for lines in (
        ["v = a * 1", "np.matmul(v, v, out=v)"],
        ["v = np.zeros_like(a)", "v[:] = a.reshape(1, 4) > 2"],
        ["v = np.zeros_like(c)", "np.multiply(c, b, out=v, where=c > 1)"],
        ["v = a.sum()", "w = v.sum(axis=None)", "x = v.argmax()", "y = np.dot(a, v)"],
    ):
        drawn = Program(lines, {"a": numbers, "b": flags, "c": np.arange(4)})
        assert differs(drawn)[0] == ""
