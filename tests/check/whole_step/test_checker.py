"""GradientChecker and check_gradients: what is right passes, what is wrong is caught and named."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nets import Change, batch, break_gradient, net, replace_method
from slow_cases import crossed

from nn_manual import (
    SGD,
    BatchNorm1d,
    CrossEntropyLoss,
    GradientChecker,
    GradientMismatch,
    Layer,
    Linear,
    Loss,
    MSELoss,
    NotFiniteError,
    ReLU,
    Sequential,
    Tanh,
    TraceLoss,
    check_gradients,
)
from nn_manual.arrays import DTYPES, Array
from nn_manual.check.catalogue.upstream import UpstreamLoss
from nn_manual.check.compare.worst import Differences
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import prove
from nn_manual.check.whole_step import checker as checker_module

each_dtype = pytest.mark.parametrize("dtype", DTYPES)

#: Ways to be wrong that any array can suffer.
CHANGES: dict[str, Change] = {
    "twice": lambda grad: 2 * grad,
    "a ten-thousandth more": lambda grad: grad * grad.dtype.type(1.0001),
    "another sign": lambda grad: -grad,
    "the mean": lambda grad: grad / len(grad),
    "1/N lost": lambda grad: grad * len(grad),
    "zero": np.zeros_like,
    "reversed": lambda grad: grad[::-1].copy(),
    "transposed": lambda grad: grad.T.copy() if grad.ndim == 2 and len(set(grad.shape)) == 1 else grad[::-1].copy(),
    "a constant more": lambda grad: grad + np.abs(grad).max() / 1000,
    "without its mean": lambda grad: grad - grad.mean(axis=0),
    "one element": lambda grad: np.where(grad == grad.max(), grad * grad.dtype.type(1.001), grad),
    "one row": lambda grad: np.concatenate([grad[:1] * 2, grad[1:]]),
}

#: Every gradient of `net`, in the order in which they are computed.
GRADIENTS = [
    *("loss.grad_prediction", "loss.grad_target"),
    *("4.grad_weight", "4.grad_bias", "4.grad_input"),
    "3.grad_input",
    *("2.grad_weight", "2.grad_bias", "2.grad_input"),
    "1.grad_input",
    *("0.grad_weight", "0.grad_bias", "0.grad_input"),
]
LABELS = {"loss": "loss", "0": "0 (Linear)", "1": "1 (Tanh)", "2": "2 (Linear)", "3": "3 (ReLU)", "4": "4 (Linear)"}


def train_step(checker: GradientChecker, optimizer: SGD, input: Array, target: Array) -> None:
    with checker.recording():
        checker.run(input, target)
        optimizer.step()


@each_dtype
def test_a_right_model_passes_and_every_tensor_is_compared_once(dtype: str) -> None:
    report = check_gradients(net(dtype), MSELoss(), *batch(dtype))
    assert report.passed, str(report)
    outputs = [f"{i}.output" for i in range(5)]
    assert [comparison.name for comparison in report.comparisons] == [*outputs, "loss", *GRADIENTS]
    assert all(comparison.scale > 0 for comparison in report.comparisons)


@pytest.mark.slow
@each_dtype
@pytest.mark.parametrize("tensor", GRADIENTS)
def test_every_wrong_gradient_is_caught_and_named(tensor: str, dtype: str) -> None:
    """It alone has each gradient of a net wrong in turn."""
    place, name = tensor.split(".")
    for mistake, change in CHANGES.items():
        model, loss = net(dtype), MSELoss()
        break_gradient(loss if place == "loss" else model.layers[int(place)], name, change)
        report = check_gradients(model, loss, *batch(dtype))
        assert not report.passed, mistake
        assert report.problem is None, mistake
        assert (report.failures[0].name, report.failures[0].layer) == (tensor, LABELS[place]), mistake
        assert report.diagnosis, mistake


@pytest.mark.parametrize("tensor", [name for name in GRADIENTS if name not in ("0.grad_input", "loss.grad_target")])
def test_a_training_step_with_a_wrong_gradient_stops_and_names_it(tensor: str) -> None:
    place, name = tensor.split(".")
    model, loss = net(), MSELoss()
    break_gradient(loss if place == "loss" else model.layers[int(place)], name, CHANGES["twice"])
    optimizer = SGD(model, lr=0.1)
    checker = GradientChecker(model, loss, optimizer)
    train_step(checker, optimizer, *batch())
    with pytest.raises(GradientMismatch, match=f"wrong first in .*: {tensor}") as caught:
        checker.compare()
    assert caught.value.report.failures[0].name == tensor


@pytest.mark.parametrize(("place", "dtype"), crossed([*range(5)], list(DTYPES)))
def test_a_wrong_forward_is_caught_and_named(place: int, dtype: str) -> None:
    model = net(dtype)

    def a_thousandth_more(right: Callable[..., Any], layer: Layer, input: Array) -> tuple[Array, Any]:
        output, saved = right(layer, input)
        return output * output.dtype.type(1.001), saved

    replace_method(model.layers[place], "forward", a_thousandth_more)
    report = check_gradients(model, MSELoss(), *batch(dtype))
    assert report.failures[0].name == f"{place}.output"


@pytest.mark.parametrize("loss", [MSELoss(), MSELoss("sum"), TraceLoss()])
def test_a_wrong_loss_value_is_caught(loss: Loss, monkeypatch: pytest.MonkeyPatch) -> None:
    right = loss.forward
    monkeypatch.setattr(loss, "forward", lambda *arguments: (right(*arguments)[0] * 2, right(*arguments)[1]))
    report = check_gradients(net(), loss, *batch())
    assert [failure.name for failure in report.failures] == ["loss"]


def test_a_backward_that_writes_nothing_is_caught_though_the_right_values_lie_there() -> None:
    model = net()
    assert check_gradients(model, MSELoss(), *batch()).passed
    replace_method(model.layers[2], "backward_parameters", lambda *_: None)
    report = check_gradients(model, MSELoss(), *batch())
    assert report.failures[0].name == "2.grad_weight"
    assert "never written" in report.diagnosis


def test_a_setting_that_has_changed_since_is_named() -> None:
    """torch's versions of layers and loss were made with what it was."""
    norm, loss = BatchNorm1d(4), CrossEntropyLoss()
    checker = GradientChecker(Sequential(Linear(3, 4), norm, Linear(4, 4), seed=1), loss)
    input, target = batch()[0], np.arange(4)
    with checker.recording():
        checker.run(input, target)
    checker.compare()
    norm.eps, loss.label_smoothing = 0.5, 0.25
    with checker.recording():
        checker.run(input, target)
    with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(BatchNorm1d\): 1\.output") as caught:
        checker.compare()
    end = "torch's version may still have the former"
    assert caught.value.report.diagnosis.splitlines()[-2:] == [
        f"1 (BatchNorm1d).eps was 1e-05 when the check was made, and is 0.5: {end}",
        f"CrossEntropyLoss.label_smoothing was 0.0 when the check was made, and is 0.25: {end}",
    ]


def test_the_gradients_stay_in_the_model() -> None:
    model, (input, target) = net(), batch()
    check_gradients(model, MSELoss(), input, target)
    after_the_check = model.grad_arena.copy()
    prediction, saved = model.forward(input)
    model.backward(saved, MSELoss().backward(MSELoss().forward(prediction, target)[1]))
    assert np.array_equal(after_the_check, model.grad_arena)


def test_a_nested_model_names_the_innermost_layer() -> None:
    model = Sequential(Linear(3, 4), Sequential(Tanh(), Sequential(Linear(4, 4), Tanh())), Linear(4, 4))
    assert check_gradients(model, MSELoss(), *batch()).passed
    inner = model.layers[1].layers[1].layers[0]  # type: ignore[attr-defined]
    break_gradient(inner, "grad_bias", CHANGES["zero"])
    report = check_gradients(model, MSELoss(), *batch())
    assert (report.failures[0].name, report.failures[0].layer) == ("1.1.0.grad_bias", "1.1.0 (Linear)")
    assert report.diagnosis == "zero everywhere: the gradient was not passed on"


layers = st.lists(st.sampled_from([ReLU, Tanh, Linear]), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(layers, st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 5), st.data())
def test_no_false_alarm(kinds: list[Any], leading: list[int], features: int, data: st.DataObject) -> None:
    """Batch 1, one feature, several leading dimensions, any order of layers, with and without training."""
    dtype, seed = data.draw(st.sampled_from(sorted(DTYPES))), data.draw(st.integers(0, 1000))
    generator, stack, width = np.random.default_rng(seed), [], features
    for kind in kinds:
        if kind is Linear:
            stack.append(Linear(width, width := data.draw(st.integers(1, 5)), data.draw(st.booleans())))
        else:
            stack.append(kind())
    model = Sequential(*stack, seed=seed, dtype=dtype)
    input = generator.standard_normal((*leading, features)).astype(dtype)
    loss: Loss = data.draw(st.sampled_from([MSELoss(), MSELoss("sum"), UpstreamLoss()]))
    target = generator.standard_normal((*leading, width)).astype(dtype)
    report = check_gradients(model, loss, input, target)
    assert report.agrees, str(report)
    num_parameters = len(model.parameter_shapes())
    assert len(report.comparisons) == len(stack) + 1 + 2 + num_parameters + len(stack)
    if num_parameters:
        optimizer = SGD(model, lr=0.1, momentum=0.5)
        checker = GradientChecker(model, loss, optimizer)
        for _ in range(3):
            train_step(checker, optimizer, input, target)
            num_boundaries = len(stack) - 1 - next(i for i, layer in enumerate(stack) if layer.num_parameters)
            assert len(checker.compare().tensors) == len(stack) + 2 + 3 * num_parameters + num_boundaries


def test_a_model_whose_input_misfits_raises_as_forward_does() -> None:
    with pytest.raises(ValueError, match=r"in_features=3 in the last dimension, the input has shape \(4, 5\)"):
        check_gradients(net(), MSELoss(), np.zeros((4, 5), np.float32), np.zeros((4, 4), np.float32))


def test_a_target_that_the_loss_refuses_is_the_losss_own_error() -> None:
    with pytest.raises(ValueError, match=r"label 4 at index 1 is outside 0 \.\.\. 3"):
        check_gradients(net(), CrossEntropyLoss(), batch()[0], np.array([0, 4, 1, 1]))
    with pytest.raises(ValueError, match=r"equal shapes, not prediction \(4, 4\) and target \(4, 1\)") as caught:
        check_gradients(net(), MSELoss(), batch()[0], batch()[1][:, :1])
    assert caught.value.__notes__ == ["raised by MSELoss.check_target"]


def test_an_empty_batch_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^the input is empty, shape \(0, 3\): nothing to check$"):
        check_gradients(net(), MSELoss(), np.zeros((0, 3), np.float32), np.zeros((0, 4), np.float32))


def test_models_without_anything_to_check_are_refused() -> None:
    with pytest.raises(ValueError, match="the model has no layers"):
        GradientChecker(Sequential(), MSELoss())
    with pytest.raises(ValueError, match="the model has no parameters, and without input_grad"):
        GradientChecker(Sequential(ReLU()), MSELoss())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_value_that_is_not_finite_ends_the_step(value: float) -> None:
    model, (input, target) = net(), batch()
    optimizer = SGD(model, lr=0.1)
    checker = GradientChecker(model, MSELoss(), optimizer)
    input[2, 1] = value
    with np.errstate(invalid="ignore"):
        train_step(checker, optimizer, input, target)
    with pytest.raises(NotFiniteError, match=r"0\.output of 0 \(Linear\) holds (nan|-?inf) at index \(2, 0\)"):
        checker.compare()


def test_parameters_that_were_not_finite_before_the_step_are_named() -> None:
    """A step that wasn't checked may have made them so."""
    model, (input, target) = net(), batch()
    vars(model.param)["2.bias"][1] = np.nan
    report = check_gradients(model, MSELoss(), input, target)
    assert report.not_finite == "parameter 2.bias holds nan at index (1,) before the step"


def test_a_value_of_torchs_that_overflows_ends_the_step_as_not_finite() -> None:
    """torch adds up the batch before it divides by the number of classes: more than float32 can hold."""
    model, loss = Sequential(Linear(1, 2, bias=False)), CrossEntropyLoss(label_smoothing=0.1)
    model.param_arena[:] = [1.7e38, 0]
    checker = GradientChecker(model, loss)
    with checker.recording():
        checker.run(np.ones((8, 1), np.float32), np.zeros(8, np.int64))
    assert np.isfinite(checker.recorded.loss.value)
    with pytest.raises(NotFiniteError, match=r"^the loss can't be judged: it is finite, and torch has inf$"):
        checker.compare()


def test_nan_equals_no_nan_in_a_report() -> None:
    input, target = batch()
    input[0] = np.nan
    report: GradientReport = check_gradients(net(), MSELoss(), input, target)
    assert not report.passed
    assert report.failures[0].name == "0.output"
    assert "the reference is not finite at 4 of 16 positions" in report.diagnosis


def test_torchs_tensors_are_gone_before_the_update_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """What follows takes memory of its own, in float64."""
    model, (input, target) = net(), batch()
    checker = GradientChecker(model, MSELoss(), SGD(model, lr=0.1))
    references, are_gone = list[Any](), list[bool]()
    compare_update = checker.compare_update

    def proven(*arguments: Any, **settings: Any) -> Any:
        step = prove(*arguments, **settings)
        references.extend(weakref.ref(pair.reference) for pair in step.pairs)
        return step

    def compared(plan: Plan) -> Differences:
        are_gone.extend(reference() is None for reference in references)
        return compare_update(plan)

    monkeypatch.setattr(checker_module, "prove", proven)
    monkeypatch.setattr(checker, "compare_update", compared)
    with checker.recording():
        checker.run(input, target)
        assert checker.optimizer is not None
        checker.optimizer.step()
    checker.compare()
    assert are_gone
    assert all(are_gone)
