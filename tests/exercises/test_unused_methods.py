"""A method that a reader wrote and that nothing calls isn't right by what another one computes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exercise_files import OPEN

from nn_manual import layers, losses, optim
from nn_manual.exercises import check
from nn_manual.exercises.commands.checking import check_file
from nn_manual.exercises.files.started import started
from nn_manual.exercises.kinds.every_exercise import every_exercise, find_exercise
from nn_manual.exercises.running.unused import unused_methods

IN_ITS_PLACE = "is never called, and isn't checked: leave out the method of yours that takes its place"

BOTH = """\
from nn_manual import layers


class Tanh(layers.Tanh):
    def derivative(self, saved):
        return 7 * saved

    def backward(self, saved, grad_output):
        return grad_output * (1 - saved**2)
"""


def test_a_wrong_derivative_beside_a_right_backward_is_not_solved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("it.py").write_text(BOTH)
    verdict = check_file(Path("it.py")).verdict
    assert [row.words for row in verdict.rows] == ["right", "right"]
    assert verdict.explanation == [f"it.py:5: derivative {IN_ITS_PLACE}"]
    assert not verdict.passed
    called = BOTH.replace("(1 - saved**2)", "self.derivative(saved)")
    Path("it.py").write_text(called.replace("7 * saved", "1 - saved**2"))
    assert check_file(Path("it.py")).verdict.passed


class TanhOfBackward(layers.Tanh):
    def derivative(self, saved: Any) -> Any:
        return 1 - saved**2

    def backward(self, saved: Any, grad_output: Any) -> Any:
        return 2 * grad_output * (1 - saved**2)


def test_a_right_derivative_beside_a_wrong_backward() -> None:
    verdict = check(TanhOfBackward)
    assert [row.state for row in verdict.rows] == ["right", "WRONG"]
    line = TanhOfBackward.derivative.__code__.co_firstlineno
    assert verdict.notes == [f"TanhOfBackward:{line}: derivative {IN_ITS_PLACE}"]


class L1OfBackward(losses.L1Loss):
    def derivative(self, saved: Any) -> Any:
        raise NotImplementedError

    def backward(self, saved: Any) -> Any:
        return self.divided(np.sign(saved))


class RNNOfBackward(layers.RNN):
    def one_way_backward(self, *_: Any) -> Any:
        raise NotImplementedError

    def backward(self, saved: Any, grad_output: Any) -> Any:
        ours = object.__new__(layers.RNN)
        vars(ours).update(vars(self))
        return ours.backward(saved, grad_output)


@pytest.mark.parametrize(("own", "never"), [(L1OfBackward, "derivative"), (RNNOfBackward, "one_way_backward")])
def test_of_every_kind_whose_base_has_the_backward(own: type, never: str) -> None:
    verdict = check(own)
    assert not verdict.passed
    assert verdict.explanation[0].endswith(f"{never} {IN_ITS_PLACE}")


class ReLUWithDerivative(layers.ReLU):
    @staticmethod
    def derivative(saved: Any) -> Any:
        return 7 * saved

    def backward(self, saved: Any, grad_output: Any) -> Any:
        return np.where(saved > 0, grad_output, 0)


class StepOfMomentum(optim.StepLR):
    def lr(self, initial_lr: float, count: int) -> float:
        return initial_lr * float(self.gamma) ** (count // self.step_size)

    def momentum(self, initial_momentum: float, count: int) -> float:  # noqa: ARG002 - a reader's
        return 7.0


class NLLOfTarget(losses.NLLLoss):
    backward = losses.NLLLoss.backward

    def backward_target(self, saved: Any) -> Any:
        return saved


@pytest.mark.parametrize(
    ("own", "never"),
    [(ReLUWithDerivative, "derivative"), (StepOfMomentum, "momentum"), (NLLOfTarget, "backward_target")],
)
def test_one_that_is_not_asked_is_noted(own: Any, never: str) -> None:
    verdict = check(own)
    assert [note.partition(": ")[2] for note in verdict.notes] == [f"{never} is never called, and isn't checked"]


@pytest.mark.parametrize("written", [(), ("derivative",), ("forward",)])
def test_what_an_open_method_would_call_is_not_told(
    written: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GELU's forward is open, too, and without it nothing reaches derivative."""
    monkeypatch.chdir(tmp_path)
    text = started(find_exercise("gelu"), "it.py")
    forward, derivative = text.split("    def derivative")
    if "forward" in written:
        forward = forward.replace(OPEN, "        return input * ndtr(input), input\n")
    if "derivative" in written:
        derivative = derivative.replace(OPEN, "        return 7 * saved\n")
    first = "from __future__ import annotations\n"
    text = f"{forward}    def derivative{derivative}".replace(first, f"{first}from scipy.special import ndtr\n")
    Path("it.py").write_text(text)
    verdict = check_file(Path("it.py")).verdict
    assert text.count(OPEN) == 2 - len(written)
    assert "is never called" not in str(verdict)
    assert verdict.rows[-1].words == "not written yet"


def test_an_error_before_it_is_told_alone() -> None:
    class Mine(layers.Tanh):
        def forward(self, input: Any) -> Any:
            raise KeyError(input.shape)

        def derivative(self, saved: Any) -> Any:
            return saved

    verdict = check(Mine)
    assert "derivative" not in str(verdict)


def test_the_class_is_as_it_was_afterwards() -> None:
    before = dict(vars(ReLUWithDerivative))
    exercise = every_exercise().exercises["relu_layer"]
    with unused_methods(exercise, ReLUWithDerivative) as unused:
        assert unused.keys() == {"derivative", "backward"}
        assert ReLUWithDerivative.derivative(2) == 14
        assert unused.keys() == {"backward"}
    assert dict(vars(ReLUWithDerivative)) == before
