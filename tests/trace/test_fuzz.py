"""A sample of random programs: traced, and replayed on other values, they give what they give without a trace."""

from __future__ import annotations

import numpy as np
from benchmarks.tracing.drawing import draw_program
from benchmarks.tracing.fuzz import differs, same_bits
from benchmarks.tracing.programs import Program

#: These take a second; `scripts/benchmark.py trace fuzz` runs 100,000.
SAMPLE = range(1_000_000, 1_000_060)


def test_a_sample_is_repeated() -> None:
    for seed in SAMPLE:
        program = draw_program(seed)
        assert not differs(program), f"seed {seed}\n{program}"


def test_what_was_found() -> None:
    """A view that NumPy makes from an address alone, and an empty view of it."""
    lines = ["v = np.lib.stride_tricks.sliding_window_view(a + 1, 2)", "w = v[1:1]", "x = v[:1]"]
    program = Program(lines, {"a": np.ones(3)})
    assert not differs(program)


def test_a_seed_determines_a_program() -> None:
    one, other = draw_program(3), draw_program(3)
    assert str(one) == str(other)
    assert all(same_bits(one.inputs[name], other.inputs[name]) for name in "abc")
    assert str(one) != str(draw_program(4))


def test_there_are_loops_in_the_sample() -> None:
    assert sum("over_time" in str(draw_program(seed)) for seed in SAMPLE) >= 5


def test_bits_are_compared() -> None:
    assert same_bits(np.array([np.nan, 0.0]), np.array([-np.nan, 0.0]))
    assert not same_bits(np.array([0.0]), np.array([-0.0]))
    assert not same_bits(np.array([1.0]), np.array([np.nextafter(1.0, 2.0)]))
    assert not same_bits(np.array([1.0]), np.array([1.0], np.float32))
