"""Lines that differ in their numbers alone become loops; numbers that depend on the batch become its size."""

from __future__ import annotations

import pytest

from nn_manual.unroll.batch import Differs, merged
from nn_manual.unroll.loops import CodeLine, in_list, rolled
from nn_manual.unroll.syntax import render
from nn_manual.unroll.wrapping import wrapped


def looped(*lines: str) -> list[str]:
    items = rolled([(CodeLine(0, (line,)),) for line in lines])
    return ["    " * depth + render(parts) for item in items for depth, parts in item]


def test_steps_and_what_stands_around_them() -> None:
    lines = ["x[0] = 1", *(f"y[{t}] = x[{t + 1}] * {2 * t}" for t in range(5)), "z = y[5:6]"]
    assert looped(*lines) == ["x[0] = 1", "for i in range(5):", "    y[i] = x[i + 1] * (2 * i)", "z = y[5:6]"]


def test_downwards() -> None:
    assert looped(*(f"y[{t}] += y[{t + 1}]" for t in reversed(range(4)))) == [
        "for i in reversed(range(4)):",
        "    y[i] += y[i + 1]",
    ]


def test_several_lines_and_a_loop_in_a_loop() -> None:
    lines = [line for n in range(3) for line in (f"a = b[{n}]", *(f"c[{n}, {i}:{i + 4}] += a[{i}]" for i in range(3)))]
    assert looped(*lines) == [
        "for t in range(3):",
        "    a = b[t]",
        "    for i in range(3):",
        "        c[t, i:i + 4] += a[i]",
    ]


def test_pieces_of_which_the_last_is_shorter() -> None:
    ends = [(0, 9), (9, 18), (18, 20)]
    lines = [line for a, b in ends for line in (f"p = np.zeros(({b - a}, 3))", f"y[{a}:{b}] = f(p, x[{a}:{b}])")]
    assert looped(*lines) == [
        "for start in range(0, 20, 9):",
        "    p = np.zeros((min(9, 20 - start), 3))",
        "    y[start:start + 9] = f(p, x[start:start + 9])",
    ]


def test_places_of_a_window_and_any_numbers() -> None:
    assert looped(*(f"y[{i}:{i + 4}, {j}:{j + 4}] += c[{3 * i + j}]" for i in range(2) for j in range(3))) == [
        "for i, j in np.ndindex(2, 3):",
        "    y[i:i + 4, j:j + 4] += c[3 * i + j]",
    ]
    assert looped(*(f"p[{a}:{b}] *= 2" for a, b in [(0, 4), (7, 9), (11, 30), (31, 40)])) == [
        "for start, stop in ((0, 4), (7, 9), (11, 30), (31, 40)):",
        "    p[start:stop] *= 2",
    ]


def test_what_is_said_twice_stays() -> None:
    lines = ["y[0] = x[0]", "y[1] = x[1]", "z = f(y)"]
    assert looped(*lines) == lines


def test_a_list() -> None:
    parts = in_list([(f"x[{i}:{i + 3}, {j}:{j + 3}]",) for i in range(2) for j in range(2)])
    assert parts is not None
    assert render(parts) == "x[i:i + 3, j:j + 3] for i, j in np.ndindex(2, 2)"
    assert in_list([("x[0]",), ("x[1]",)]) is None


def test_numbers_that_follow_the_batch() -> None:
    own, other = [("np.arange(0, 640, 10)",), ("x / 128 + 5",)], [("np.arange(0, 630, 10)",), ("x / 126 + 5",)]
    texts = [render(parts) for parts in merged(own, other, 64, 63)]
    assert texts == ["np.arange(0, 10 * batch, 10)", "x / (2 * batch) + 5"]
    for different in ("y[7]", "x[9]", "x[7] + 1"):
        with pytest.raises(Differs):
            merged([("x[7]",)], [(different,)], 64, 63)
    with pytest.raises(Differs):
        merged([("x[63]",)], [("x[62]",)], 64, 63)


def test_long_lines_are_broken_within_brackets() -> None:
    line = f"total = np.concatenate([grad.ravel() for grad in ({', '.join(f'grad_weight_{i}' for i in range(9))})])"
    first, *others = wrapped(line, 4)
    assert first.endswith(",")
    assert all(other.startswith("    ") for other in others)
    assert " ".join([first, *(other.strip() for other in others)]) == line
    many = f"{', '.join(f'grad_weight_{i}' for i in range(9))} = linear_backward(input)"
    assert wrapped(many, 4)[0].startswith("(grad_weight_0, ")
    compile("\n".join(wrapped(many, 4)), "", "exec")
