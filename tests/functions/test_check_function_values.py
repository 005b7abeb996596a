"""check_function: what counts as an array, and what is refused."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import check_function
from nn_manual.arrays import Array
from nn_manual.functions.battery.families import FAMILIES
from nn_manual.functions.callables import Function


def square(x: torch.Tensor) -> torch.Tensor:
    return x**2


def values(*shape: int, dtype: str = "float64") -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(dtype)


@pytest.mark.slow
@pytest.mark.parametrize("as_input", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_number_is_an_array_of_no_dimensions(as_input: Function, dtype: str) -> None:
    """A loss: its output is a number, and so are one of its inputs and the gradient for that.
    It alone has inputs and outputs of no dimensions.
    """

    def loss(x: Any, temperature: Any) -> tuple[Any, Any]:
        return (temperature * x**2).mean(), (x, temperature)

    def grads(saved: Any, grad_output: Any) -> tuple[Any, Any]:
        x, temperature = saved
        return 2 * x * temperature * grad_output / 12, (x**2).mean() * grad_output

    def definition(x: torch.Tensor, temperature: torch.Tensor) -> torch.Tensor:
        return (temperature * x**2).mean()

    inputs = [as_input(values(4, 3, dtype=dtype)), as_input(np.array(1.5, dtype))]
    assert check_function(definition, definition, inputs).passed
    report = check_function((loss, grads), definition, inputs)
    assert report.passed
    assert [c.shape for c in report.comparisons] == [(), (4, 3), (), (4, 3), ()]
    thrice = (loss, lambda saved, grad: (grads(saved, grad)[0], 3 * grad))
    wrong = check_function(thrice, definition, inputs, skip=[*FAMILIES])
    assert [c.name for c in wrong.failures] == [f"grad_temperature, {kind} upstream" for kind in ("random", "negative")]
    of_sum = check_function((lambda x, t: (4 * loss(x, t)[0], (x, t)), grads), definition, inputs, skip=[*FAMILIES])
    assert of_sum.diagnosis == "4 times the reference: the batch size"


def test_gradients_are_compared_as_they_were_returned() -> None:
    """A gradient that the second backward overwrites is not the first one's."""
    buffer = np.empty((4, 3))

    def into_buffer(saved: Any, grad_output: Any) -> Any:
        buffer[...] = 2 * saved * grad_output
        return buffer

    report = check_function((lambda x: (x**2, x), into_buffer), square, [values(4, 3)])
    assert report.agrees
    notes = {row.name: row.note for row in report.wrong}
    assert notes["writes returned"] == "backward wrote into the grad_x that it returned before"


def test_what_is_complex_is_refused() -> None:
    x, z = values(3), values(3) + 1j
    with pytest.raises(TypeError, match="z is complex128: floating inputs must be"):
        check_function(lambda x, z: x * abs(z), lambda x, z: x * abs(z), [x, z])
    with pytest.raises(TypeError, match="output of the reference is complex128"):
        check_function(lambda x: x * 1j, lambda x: x * 1j, [x])
    report = check_function(lambda x: x * 1j, square, [x])
    assert report.problem == "<lambda>: output is complex128, the reference's float64"


def test_what_is_no_array_is_named() -> None:
    x = values(3)
    problem = check_function(lambda x: x, lambda x: (x, None), [x]).problem
    assert problem == "<lambda>: 1 output, the reference has 2"
    problem = check_function(lambda x: {"y": x}, square, [x]).problem
    assert problem == "<lambda>: returned output['y'] where the reference has a tensor"
    problem = check_function((lambda x: (x**2, x), lambda *_: "none"), square, [x]).problem or ""
    assert problem.endswith("grad_x is str, not an array of numbers")


@dataclass
class Result:
    value: Any
    others: Any = None
    name: str = "result"


def test_what_stands_beside_the_tensors_is_the_same() -> None:
    def right(x: torch.Tensor) -> Result:
        return Result(x.sin(), {"both": [x.cos(), None], "how": torch.float32})

    report = check_function(right, right, [values(3)])
    assert report.passed, report
    assert [c.name for c in report.comparisons][:2] == ["output.value", "output.others['both'][0]"]
    wrong: list[tuple[Any, str]] = [
        (lambda x: Result(x.sin(), {"both": [x.cos(), x], "how": torch.float32}), "['both'][1] is a Tensor, the "),
        (lambda x: Result(x.sin(), {"both": [x.cos(), None], "how": None}), "['how'] is None, the reference's a dtype"),
        (lambda x: Result(x.sin(), {"both": [None, x.cos()], "how": torch.float32}), "['both'][0] is None, the "),
    ]
    for function, words in wrong:
        report = check_function(function, right, [values(3)])
        assert f"<lambda>: output.others{words}" in (report.problem or "")
        assert not report.wrong  # the rows say nothing more
    renamed = check_function(lambda x: replace(right(x), name="other"), right, [values(3)])
    assert renamed.problem == "<lambda>: output.name is 'other', the reference's 'result'"
    assert check_function(lambda x: {"a": x, "b": None}, lambda x: {"b": None, "a": 1 * x}, [values(3)]).passed


def test_an_empty_tensor_among_others_is_right() -> None:
    report = check_function(lambda *both: torch.cat(both), lambda a, b: torch.cat([a, b]), [values(0, 3), values(2, 3)])
    assert report.passed, report
    assert {c.name.partition(",")[0] for c in report.comparisons} == {"output", "grad_b"}


def test_views_of_every_kind_are_arrays() -> None:
    """What numpy code returns: broadcast, read-only, reversed; and torch's sparse gradients."""
    frozen = values(4, 3)
    frozen.flags.writeable = False
    assert check_function(
        (lambda x: (x.sum(), x), lambda x, grad: np.broadcast_to(grad, x.shape)), lambda x: x.sum(), [frozen]
    ).passed
    assert check_function((lambda x: (x[::-1], 0), lambda _, grad: grad[::-1]), lambda x: x.flip(0), [frozen]).passed

    def lookup(weight: torch.Tensor, *, sparse: bool = False) -> torch.Tensor:
        return torch.nn.functional.embedding(torch.tensor([0, 2, 2]), weight, sparse=sparse)

    assert check_function(lambda weight: lookup(weight, sparse=True), lookup, [frozen]).passed


@pytest.mark.parametrize("options", [{}, {"tolerance": 1e-2}])
def test_integers_are_compared_exactly(options: dict[str, Any]) -> None:
    """Also large ones, of which 1 is less than the tolerance of floating numbers."""

    def largest(x: torch.Tensor, start: int) -> Any:
        value, index = x.max(-1)
        return value, index + start

    def off(x: torch.Tensor, start: int) -> Any:
        value, index = largest(x, start)
        return value, index + 1

    x = torch.randn(4, 5)
    for start in (0, 120_000, 2**53):
        assert check_function(largest, largest, [x, start], only=["settings"], **options).passed
    for start in (0, 120_000):
        report = check_function(off, largest, [x, start], only=["settings"], **options)
        assert [failure.name for failure in report.failures] == ["output 1"]
    ones = torch.ones(1, 1)
    report = check_function(off, largest, [ones, 2**53], only=["settings"], **options)
    assert report.problem == f"off: output 1[0] is {2**53 + 1}, the reference's {2**53}"
