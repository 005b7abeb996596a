"""check_function: what a function does beside computing: what it writes into, and what it keeps from run to run."""

from __future__ import annotations

import signal
import sys
from typing import Any

import numpy as np
import pytest
import torch
from slow_cases import crossed
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint

from nn_manual import check_function
from nn_manual.arrays import Array
from nn_manual.functions.callables import Function
from nn_manual.functions.function_report import FunctionReport

#: What the functions below keep where they must not.
KEPT: dict[str, Any] = {}


def definition(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x > 0, x * x, 0)


def forward(x: Array) -> tuple[Array, Array]:
    return np.where(x > 0, x * x, 0), x


def backward(x: Array, grad_output: Array) -> Array:
    return np.where(x > 0, 2 * x, 0) * grad_output


def forward_saves_the_gradient(x: Array) -> tuple[Array, Any]:
    return forward(x)[0], {"slope": 2 * np.maximum(x, 0)}


def backward_scales_the_saved_gradient(saved: Any, grad_output: Array) -> Array:
    saved["slope"] *= grad_output
    grad: Array = saved["slope"]
    return grad


def backward_returns_one_buffer(x: Array, grad_output: Array) -> Array:
    buffer: Array = KEPT.setdefault("gradient", np.empty_like(x))
    buffer[...] = backward(x, grad_output)
    return buffer


def forward_returns_one_buffer(x: Array) -> tuple[Array, Array]:
    buffer = KEPT.setdefault("output", np.empty_like(x))
    buffer[...] = forward(x)[0]
    return buffer, x


def forward_saves_into_one_buffer(x: Array) -> tuple[Array, Array]:
    buffer = KEPT.setdefault("saved", np.empty_like(x))
    buffer[...] = x
    return forward(x)[0], buffer


def forward_keeps_its_input(x: Array) -> tuple[Array, None]:
    KEPT["x"] = x
    return forward(x)[0], None


def backward_uses_the_kept_input(_: None, grad_output: Array) -> Array:
    return backward(KEPT["x"], grad_output)


def forward_queues_its_input(x: Array) -> tuple[Array, None]:
    KEPT.setdefault("queue", []).append(x)
    return forward(x)[0], None


def backward_takes_from_the_queue(_: None, grad_output: Array) -> Array:
    return backward(KEPT["queue"].pop(), grad_output)


def forward_counts(x: Array) -> tuple[Array, Array]:
    KEPT["count"] = KEPT.get("count", 0) + 1
    return forward(x)[0] * (KEPT["count"] < 2), x


def said(report: FunctionReport) -> str:
    """What kept the values from being compared, and all that is wrong in the rows."""
    return "\n".join([report.problem or "", *(f"{row.name}: {row.note}" for row in report.wrong)])


MISCONDUCT: list[tuple[Function, Function, str]] = [
    (
        forward_saves_the_gradient,
        backward_scales_the_saved_gradient,
        "backward wrote into saved['slope']",
    ),
    (forward, backward_returns_one_buffer, "backward wrote into the grad_x that it returned before"),
    (forward_returns_one_buffer, backward, "forward, run again on other values, overwrote its output"),
    (forward_saves_into_one_buffer, backward, "forward, run again on other values, overwrote saved"),
    (
        forward_keeps_its_input,
        backward_uses_the_kept_input,
        "two forwards first back first: differs when forward ran again, on other values, before backward: "
        "what backward needs must travel in `saved`, not in a global; grad_x, random upstream[2, 0] is 0.62913",
    ),
    (forward_queues_its_input, backward_takes_from_the_queue, "differs when forward ran again, on other values"),
    (forward_counts, backward, "output differs when forward runs twice on the same inputs"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("forward", "backward", "words"), MISCONDUCT)
def test_a_pair_that_misbehaves_is_named(forward: Function, backward: Function, words: str) -> None:
    """It alone has every bad habit of a pair."""
    KEPT.clear()
    report = check_function((forward, backward), definition, [np.random.default_rng(0).standard_normal((4, 3))])
    assert words in said(report)


class Slope(torch.autograd.Function):
    """The gradient is computed in forward; backward scales it as `scale` says."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(2 * x.clamp(min=0))
        context.kept = KEPT["kept"] = x.detach().clone()
        return definition(x)

    @staticmethod
    @once_differentiable
    def backward(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
        return scale(context, grad_output)


def scale(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
    (slope,) = context.saved_tensors
    return torch.mul(slope, grad_output)


def scale_in_place(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
    (slope,) = context.saved_tensors
    return torch.mul(slope, grad_output, out=slope)


def scale_behind_the_back_of_autograd(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
    (slope,) = context.saved_tensors
    slope.numpy()[...] *= grad_output.numpy()
    return torch.clone(slope)


def write_into_an_attribute(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
    (slope,) = context.saved_tensors
    context.kept.zero_()
    return torch.mul(slope, grad_output)


def use_the_last_input(_: Any, grad_output: torch.Tensor) -> torch.Tensor:
    return torch.mul(2 * KEPT["kept"].clamp(min=0), grad_output)


@pytest.mark.slow
@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (scale_in_place, "backward wrote into saved[0]"),
        (scale_behind_the_back_of_autograd, "backward wrote into saved[0]"),
        (write_into_an_attribute, "backward wrote into saved['kept']"),
        (use_the_last_input, "two forwards first back first: differs when forward ran again, on other values"),
    ],
)
def test_an_autograd_function_that_misbehaves_is_named(
    wrong: Function, words: str, deep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It alone has each way in which an autograd.Function misbehaves."""
    def function(x: torch.Tensor) -> torch.Tensor:
        output: torch.Tensor = Slope.apply(3 * x).sin()  # type: ignore[no-untyped-call] # torch has none
        return output

    def reference(x: torch.Tensor) -> torch.Tensor:
        return definition(3 * x).sin()

    checked, right = (function, reference) if deep else (Slope, definition)
    x = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
    assert check_function(checked, right, [x]).passed
    monkeypatch.setitem(globals(), "scale", wrong)
    report = check_function(checked, right, [x])
    assert words in said(report)
    assert not report.passed


def test_other_values_may_be_none_that_the_function_takes() -> None:
    """Rolled and smaller, a matrix has no Cholesky factor any more, and a probability isn't one."""

    def only_probabilities(x: torch.Tensor) -> torch.Tensor:
        if not torch.allclose(x.sum(-1), torch.ones(())):
            raise ValueError("no probabilities")
        return x.log()

    x = torch.rand(4, 3, generator=torch.Generator().manual_seed(0))
    assert check_function(only_probabilities, torch.log, [x / x.sum(-1, keepdim=True)]).passed
    assert check_function(torch.linalg.cholesky, torch.linalg.cholesky, [x.mT @ x + torch.eye(3)]).passed


class Tidy(torch.autograd.Function):
    """x * x. `mess` runs first in its forward."""

    mess: Any = staticmethod(lambda: None)

    @classmethod
    def forward(cls, context: Any, x: torch.Tensor) -> torch.Tensor:
        cls.mess()
        context.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(context: Any, grad_output: torch.Tensor) -> torch.Tensor:
        (x,) = context.saved_tensors
        return torch.mul(2 * x, grad_output)


@pytest.mark.parametrize(
    ("mess", "words"),
    [
        (lambda: torch.set_default_dtype(torch.float64), "get_default_dtype(), which was torch.float32 and "),
        (lambda: torch.set_num_threads(torch.get_num_threads() + 1), "torch.get_num_threads(), which was "),
        (lambda: torch.manual_seed(3), "the seed of torch's generator"),
        (lambda: setattr(sys, "stdout", None), "sys.stdout, which was a stream and became None"),
    ],
)
def test_what_is_set_for_everybody_is_set_back_and_named(
    mess: Any, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Tidy, "mess", staticmethod(mess))
    before = (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled(), sys.stdout)
    torch.manual_seed(1)
    drawn = torch.rand(2)
    torch.manual_seed(1)
    report = check_function(Tidy, lambda x: x * x, [torch.randn(3, generator=torch.Generator().manual_seed(0))])
    assert (torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled(), sys.stdout) == before
    assert torch.equal(torch.rand(2), drawn)
    assert [row.name for row in report.wrong] == ["settings"]
    assert words in report.wrong[0].note


def test_gradients_that_are_switched_off_are_switched_on_again() -> None:
    def switches_off(x: torch.Tensor) -> torch.Tensor:
        torch.set_grad_enabled(False)
        return x * x

    report = check_function(switches_off, lambda x: x * x, [torch.randn(3)])
    assert torch.is_grad_enabled()
    assert "output carries no gradient" in (report.problem or "")


class NoWords(Exception):  # noqa: N818 - it has none
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unheard(BaseException):
    """None that `except Exception` takes."""


RAISED = {
    KeyboardInterrupt(): "RuntimeError: KeyboardInterrupt",
    Unheard("of"): "RuntimeError: Unheard: of",
    NoWords(): "NoWords: whose text raised RuntimeError",
    ValueError("\x1b[31mred"): "ValueError: \\x1b[31mred",
}


@pytest.mark.parametrize(("error", "back"), crossed(list(RAISED), [False, True]))
def test_whatever_is_raised_is_reported(error: BaseException, *, back: bool) -> None:
    def forward(x: Any) -> Any:
        if not back:
            raise error
        return x * x, x

    def backward(*_: Any) -> Any:
        raise error

    x = torch.randn(3)
    problem = check_function((forward, backward), lambda x: x * x, [x]).problem or ""
    assert f"raised {RAISED[error]} at {__file__}:" in problem


def test_ctrl_c_ends_the_check() -> None:
    def interrupted(x: torch.Tensor) -> torch.Tensor:
        signal.raise_signal(signal.SIGINT)
        return x * x

    with pytest.raises(KeyboardInterrupt):
        check_function(interrupted, lambda x: x * x, [torch.randn(3)])


def test_a_checkpoint_that_computes_gradients_in_backward_alone() -> None:
    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * y).sin()

    def wrong(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x * y.detach()).sin()

    def checkpointed(function: Any) -> Any:
        return lambda *inputs: checkpoint(function, *inputs, use_reentrant=True)

    given = [torch.randn(3, 4, generator=torch.Generator().manual_seed(i), dtype=torch.float64) for i in range(2)]
    report = check_function(checkpointed(product), product, given, skip=["kinds", "cost"])
    assert report.passed, report
    notes = {row.name: row.note for row in report.skipped}
    assert notes["twice"] == "torch.utils.checkpoint(use_reentrant=True) has no gradients of gradients"
    failures = check_function(checkpointed(wrong), product, given, skip=["kinds", "cost"]).failures
    assert {failure.name.partition(",")[0] for failure in failures} == {"grad_y"}


def test_what_a_function_always_raises_is_said_once() -> None:
    class Raises(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
            return x.sin()

        @staticmethod
        def backward(*_: Any) -> torch.Tensor:
            raise KeyError("no gradient")

    said = str(check_function(Raises, torch.sin, [torch.ones(3)]))
    assert said.count("no gradient") == 1
    said_again = "the same error as above in 35 rows: grad_output, two forwards, changed, retain_graph, "
    assert said_again in said.replace("\n", " ")
    assert len(said.splitlines()) < 14, said
