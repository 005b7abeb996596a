"""The numbers of an optimizer of one's own, as expressions of its settings and the step."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from nn_manual import Linear, MSELoss, Sequential
from nn_manual.arrays import DTYPES, Array
from nn_manual.errors import ConfigError
from nn_manual.layers import Layer
from nn_manual.optim import ConstantLR, Optimizer
from nn_manual.trainer.trainer import Trainer
from nn_manual.unroll.command import proven_script
from nn_manual.unroll.sections import Subject


@dataclass(eq=False)
class Warmed(Optimizer):
    """Gradient descent whose lr grows at first: coefficients without a docstring, with branches and calls."""

    lr: float = 0.1
    warmup: int = 10
    limit: float = 0.0

    def check_settings(self) -> None:
        """Any will do."""

    def vector_names(self) -> list[str]:
        return []

    def coefficients(self, step: int) -> dict[str, float]:
        grown = min(1.0, float(step) / 10) if self.warmup else 1.0
        rate = self.lr * grown
        if self.limit > 0:
            rate = max(self.limit, rate)
        return {"rate": abs(rate), "shrink": 1 - self.lr * math.sqrt(step)}

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        assert not vectors
        param *= coefficients["shrink"]
        param -= coefficients["rate"] * grad


class LooksAtTheStep(Warmed):
    def coefficients(self, step: int) -> dict[str, float]:
        return {"rate": self.lr if step < 5 else self.lr / 2, "shrink": 1.0}


class Loops(Warmed):
    def coefficients(self, step: int) -> dict[str, float]:
        rate = self.lr
        for _ in range(step):
            rate *= 0.9
        return {"rate": rate, "shrink": 1.0}


class Selects(Warmed):
    """np.where and np.sqrt give NumPy's float64, which is stronger than float32. `late` is 0 in the first 5 steps."""

    def coefficients(self, step: int) -> dict[str, float]:
        root = np.sqrt(step)
        late = np.where(step > 5, self.lr * root, 0)
        return {"rate": max(self.lr / 3, root / 999), "late": late, "shrink": float(np.sqrt(0.9))}

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        assert not vectors
        c = coefficients
        param *= c["shrink"]
        param -= grad * (c["rate"] + c["late"] / (abs(grad) + c["rate"]))


class Multiplies(Warmed):
    """The update computes with coefficients alone, in the parameters' dtype."""

    def coefficients(self, step: int) -> dict[str, float]:
        return {"rate": self.lr / step, "shrink": 1 - self.lr / 7}

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        assert not vectors
        c = coefficients
        param *= np.sqrt(c["shrink"]) * (1 - c["rate"] * c["shrink"])
        param -= c["rate"] * np.where(grad > 0, c["shrink"], c["rate"]) * grad


#: The sizes of the first batch and of the last one.
SIZES = 6, 3


def batch() -> tuple[Array, Array]:
    """The input and the target of the largest batch."""
    input, target = np.random.default_rng(0).standard_normal((2, SIZES[0], 3), np.float32)
    return input, target


def page_of(optimizer: Warmed, num_steps: int = 20, scheduler: ConstantLR | None = None) -> str:
    input, target = (array.astype(optimizer.model.dtype) for array in batch())
    subject = Subject("a test", optimizer.model, MSELoss(), optimizer, "probabilities", scheduler)
    return proven_script(subject, [(input[:size], target[:size]) for size in SIZES], num_steps)[1]


@pytest.mark.parametrize("optimizer_class", [Selects, Multiplies])
@pytest.mark.parametrize("dtype", DTYPES)
def test_each_step_s_bits_are_those_of_the_rounded_coefficients(optimizer_class: type[Warmed], dtype: str) -> None:
    model = Sequential(Linear(3, 3), seed=0, dtype=dtype)
    input, target = (array.astype(dtype) for array in batch())
    optimizer, space = optimizer_class(model), dict[str, Any]()
    exec(page_of(optimizer), space)
    trainer, param = Trainer(model, MSELoss(), optimizer, check_every=0), model.param_arena.copy()
    for step in range(1, 11):
        loss = space["train_step"](input, target, param, step)
        assert float(loss) == trainer.step(input, target)
        assert param.tobytes() == model.param_arena.tobytes(), step


def test_numpy_s_numbers_become_python_s() -> None:
    page = page_of(Selects(Sequential(Linear(3, 3), seed=0)))
    lines = [line.strip() for line in page.splitlines()]
    assert "param *= float(np.sqrt(0.9))" in lines
    assert "late = np.where(step > 5, lr * root, 0)" in lines
    assert any("* (float(max(lr / 3, root / 999)) + float(late) /" in line for line in lines)


class Renames(Warmed):
    """Variables that have the names of settings, of what the step is given, and of the dictionary's keys."""

    def coefficients(self, step: int) -> dict[str, float]:
        lr = self.lr
        lr = lr / (1 + step)
        param = lr * self.lr
        limit2 = param + self.warmup / 99
        limit = 2 * limit2
        rate = self.lr + lr + param + limit + self.limit
        return {"rate": rate * lr * self.lr * param * limit2, "shrink": 1 - rate / 3}


@pytest.mark.parametrize("scheduler", [None, ConstantLR()])
def test_variables_have_names_of_their_own(scheduler: ConstantLR | None) -> None:
    page = page_of(Renames(Sequential(Linear(3, 3), seed=0), limit=0.03), scheduler=scheduler)
    lines = [line.strip() for line in page.splitlines()]
    start = lines.index("# Renames")
    assert lines[start + 1 : start + 7] == [
        "lr2 = lr / (1 + step)",
        "param2 = lr2 * lr",
        "limit2 = param2 + 10 / 99",
        "limit3 = 2 * limit2",
        "rate = lr + lr2 + param2 + limit3 + limit",
        "rate2 = rate * lr2 * lr * param2 * limit2",
    ]
    assert "param *= 1 - rate / 3" in lines
    assert ("lr = 0.1" in lines) == (scheduler is None)


@dataclass(eq=False)
class WithSetting(Layer):
    """output     = rate * input
    grad_input = rate * grad_output
    """

    rate: float = 0.7

    def forward(self, input: Array) -> tuple[Array, None]:
        return self.rate * input, None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's signature
        result: Array = self.rate * grad_output
        return result


def test_a_layer_s_setting_of_a_variable_s_name_gets_another_one() -> None:
    model = Sequential(Linear(3, 3), WithSetting(), seed=0)
    lines = [line.strip() for line in page_of(Warmed(model)).splitlines()]
    assert "rate = 0.7" in lines
    assert "output_1 = rate * output_0" in lines
    assert "rate2 = lr * grown" in lines


class CountsByItself(Warmed):
    """What it counts is no state, and no number of the step: the script can't know it."""

    num_moves: ClassVar[int] = 0

    def coefficients(self, step: int) -> dict[str, float]:  # noqa: ARG002 - the contract's signature
        return {"rate": self.lr / (1 + self.num_moves), "shrink": 1.0}

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        super().move(param, grad, vectors, coefficients)
        vars(self)["num_moves"] = self.num_moves + 1


def test_the_last_step_of_the_run_is_proven_too() -> None:
    optimizer = CountsByItself(Sequential(Linear(3, 3), seed=0))
    page_of(optimizer, num_steps=1)
    message = r"^unroll: for 3 examples the script computes another param than the step, in step 2$"
    with pytest.raises(ConfigError, match=message):
        page_of(optimizer, num_steps=2)


@pytest.mark.parametrize(
    ("settings", "lines"),
    [
        ({}, ("grown = min(1.0, float(step) / 10)", "rate = lr * grown")),
        ({"limit": 0.05}, ("grown = min(1.0, float(step) / 10)", "rate = max(limit, rate)")),
        ({"warmup": 0}, ("grown = 1.0", "rate = lr * grown")),
    ],
)
def test_calls_and_branches_on_settings(settings: dict[str, Any], lines: tuple[str, ...]) -> None:
    page = page_of(Warmed(Sequential(Linear(3, 3), seed=0), **settings))
    own = [line.strip() for line in page.splitlines()]
    assert all(line in own for line in lines), page
    assert any("abs(rate)" in line for line in own)
    assert any("1 - lr * math.sqrt(step)" in line for line in own)


class SaysItTwice(Warmed):
    def coefficients(self, step: int) -> dict[str, float]:  # noqa: ARG002 - the contract's signature
        rate = shrink = self.lr
        return {"rate": rate, "shrink": shrink}


class AssignsTwo(Warmed):
    def coefficients(self, step: int) -> dict[str, float]:
        rate, shrink = self.lr, 1 / step
        return {"rate": rate, "shrink": shrink}


class BranchesOnTheStep(Warmed):
    def coefficients(self, step: int) -> dict[str, float]:
        rate = self.lr
        if self.warmup:
            rate = 0.5 * rate
            if step < 5:
                rate = 0.5 * rate
        return {"rate": rate, "shrink": 1.0}


class ReturnsManyLines(Warmed):
    def coefficients(self, step: int) -> dict[str, float]:
        return {
            "rate": self.lr,
            "shrink": sum([1, step]),
        }


@pytest.mark.parametrize(
    ("optimizer_class", "line"),
    [(LooksAtTheStep, 1), (Loops, 2), (SaysItTwice, 1), (AssignsTwo, 1), (BranchesOnTheStep, 4), (ReturnsManyLines, 3)],
)
def test_a_line_that_is_too_complicated_is_named(optimizer_class: type[Warmed], line: int) -> None:
    line += optimizer_class.coefficients.__code__.co_firstlineno
    message = re.escape(
        f"unroll: {optimizer_class.__name__}.coefficients, test_coefficients.py:{line}: too complicated for a script. "
        "Each line may assign one variable, or return the numbers, by arithmetic of settings and the step, with "
        "functions of math and np. It may branch on settings, but not on the step"
    )
    with pytest.raises(ConfigError, match=f"^{message}$"):
        page_of(optimizer_class(Sequential(Linear(3, 3), seed=0)))
