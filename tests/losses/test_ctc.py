"""The loss of labels in their order: all paths by hand, torch's own loss, repeats, blanks, and what it refuses."""

from __future__ import annotations

import itertools
import re
from typing import Any

import numpy as np
import pytest
import torch
from loss_results import assert_as_torch, our_results, torch_results

from nn_manual import SGD, Conv1d, LogSoftmax, Sequential, Trainer, check_gradients
from nn_manual.arrays import Array
from nn_manual.losses import CTCLoss
from nn_manual.step.slices.cut import Slicing


def read(path: tuple[int, ...], blank: int) -> list[int]:
    """The labels of a path: without its repeats, and then without its blanks."""
    return [label for label, _ in itertools.groupby(path) if label != blank]


def probability(numbers: Array, labels: list[int], blank: int) -> float:
    """The sum over all paths that read so, one after the other. `numbers` are (classes, time)."""
    num_classes, num_times = numbers.shape
    paths = itertools.product(range(num_classes), repeat=num_times)
    read_so = [path for path in paths if read(path, blank) == labels]
    return sum(float(np.exp(numbers[path, np.arange(num_times)].sum())) for path in read_so)


@pytest.mark.parametrize("blank", [0, 1, 2])
@pytest.mark.parametrize("target", [[0, 1, 2, 0], [1, 1, 2, 2], [2, 0, 0, 1], [2, 2, 2, 2], [0, 0, 0, 1]])
def test_the_sum_over_all_paths(blank: int, target: list[int]) -> None:
    """Of numbers that are no log-probabilities: the loss takes any."""
    numbers = np.random.default_rng(blank).standard_normal((1, 3, 6))
    given = np.array([target])
    loss = CTCLoss(blank, "sum", zero_infinity=True)
    labels = [label for label in target if label != blank]
    expected = probability(numbers[0], labels, blank)
    value = our_results(loss, numbers, given)["loss"]
    assert value == (pytest.approx(-np.log(expected), rel=1e-13) if expected else 0)
    assert_as_torch(loss, numbers, given)


def test_by_hand() -> None:
    """Two times, and the label 1: its paths are 1 1, - 1 and 1 -."""
    first, second = [0.5, 0.3, 0.2], [0.25, 0.5, 0.25]
    numbers = np.log(np.array([[first, second]])).swapaxes(1, 2)
    ours = our_results(CTCLoss(), numbers, np.array([[1]]))
    total = 0.3 * 0.5 + 0.5 * 0.5 + 0.3 * 0.25
    assert ours["loss"] == pytest.approx(-np.log(total), rel=1e-15)
    expected = -np.array([[0.25, 0.225, 0], [0.075, 0.4, 0]]).T / total
    np.testing.assert_allclose(ours["grad_prediction"], expected[np.newaxis], rtol=1e-14)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_torchs_own_loss_behind_a_log_softmax(reduction: str, zero_infinity: bool, dtype: str) -> None:
    """There, torch's gradient is that of its value. One example has no label, one repeats its label."""
    generator = np.random.default_rng(0)
    logits = torch.from_numpy(generator.standard_normal((4, 5, 12)).astype(dtype)).requires_grad_()
    target = np.array([[1, 2, 3, 4], [0, 0, 0, 0], [3, 3, 3, 0], [2, 0, 0, 0]])
    numbers = logits.log_softmax(1)
    lengths = torch.full((4,), 12), torch.tensor([4, 0, 3, 1])
    value = torch.nn.CTCLoss(0, reduction, zero_infinity)(numbers.permute(2, 0, 1), torch.from_numpy(target), *lengths)
    value.backward()
    ours = our_results(CTCLoss(0, reduction, zero_infinity), numbers.detach().numpy(), target)
    model = Sequential(LogSoftmax(dim=1), dtype=dtype)
    _, saved = model.forward(logits.detach().numpy())
    grad_input = model.backward(saved, ours["grad_prediction"])
    rounding = 1e-5 if dtype == "float32" else 1e-13
    assert ours["loss"].dtype == dtype
    assert float(ours["loss"]) == pytest.approx(value.item(), rel=rounding)
    assert logits.grad is not None
    np.testing.assert_allclose(grad_input, logits.grad.numpy(), atol=rounding)


def test_torchs_gradient_of_other_numbers_is_not_that_of_its_value() -> None:
    """It has the numbers' exponentials more: that is why a reference stands in for it."""
    numbers = torch.from_numpy(np.random.default_rng(0).standard_normal((1, 3, 4))).requires_grad_()
    torchs = torch.nn.CTCLoss(reduction="sum")(numbers.permute(2, 0, 1), torch.tensor([[1]]), (4,), (1,))
    torchs.backward()
    ours = our_results(CTCLoss(reduction="sum"), numbers.detach().numpy(), np.array([[1]]))
    assert ours["loss"] == pytest.approx(torchs.item(), rel=1e-14)
    assert numbers.grad is not None
    more = numbers.detach().exp().numpy()
    np.testing.assert_allclose(ours["grad_prediction"], numbers.grad.numpy() - more, atol=1e-13)


def test_the_gradient_of_each_time_adds_up_to_minus_the_examples_share() -> None:
    generator = np.random.default_rng(0)
    numbers, target = generator.standard_normal((3, 4, 9)), np.array([[1, 1, 2], [3, 0, 0], [0, 0, 0]])
    grad = our_results(CTCLoss(), numbers, target)["grad_prediction"]
    np.testing.assert_allclose(grad.sum(axis=1), np.repeat([[-1 / 9], [-1 / 3], [-1 / 3]], 9, axis=1), rtol=1e-13)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_long_sequences_stay_finite(dtype: str) -> None:
    """The probability of a path of 500 times is far below the smallest number. The gradient is the exponential of a
    difference of logarithms. Ours stay near 0, and so it keeps more digits than torch's.
    """
    generator = np.random.default_rng(0)
    numbers = -np.log(20) - generator.standard_normal((2, 20, 500)) ** 2
    target = generator.integers(0, 20, (2, 60))
    loss = CTCLoss(reduction="sum")
    ours, theirs = (results(loss, numbers.astype(dtype), target) for results in (our_results, torch_results))
    exact = our_results(loss, numbers, target)
    assert exact["loss"] > 2000
    rounding = float(np.finfo(dtype).eps * exact["loss"])
    assert float(ours["loss"]) == pytest.approx(float(theirs["loss"]), abs=8 * rounding)
    ours_off, theirs_off = (np.abs(each["grad_prediction"] - exact["grad_prediction"]).max() for each in (ours, theirs))
    assert ours_off <= theirs_off / 4
    assert ours_off <= rounding / 8


def test_a_target_that_is_too_long_does_not_count() -> None:
    """1 1 needs three times. The mean is over both examples all the same."""
    numbers, target = np.random.default_rng(0).standard_normal((2, 3, 2)), np.array([[1, 1], [2, 0]])
    ours = our_results(CTCLoss(zero_infinity=True), numbers, target)
    alone = our_results(CTCLoss(), numbers[1:], target[1:])
    assert ours["loss"] == alone["loss"] / 2
    np.testing.assert_array_equal(ours["grad_prediction"][0], np.zeros((3, 2)))
    np.testing.assert_array_equal(ours["grad_prediction"][1], alone["grad_prediction"][0] / 2)
    assert our_results(CTCLoss(), numbers, target)["loss"] == np.inf


def test_blanks_in_the_target_are_no_labels_wherever_they_stand() -> None:
    numbers = np.random.default_rng(0).standard_normal((3, 4, 7))
    with_blanks, without = np.array([[0, 1, 0, 1], [0, 0, 0, 2], [3, 0, 0, 1]]), np.array([[1, 1], [2, 0], [3, 1]])
    ours, same = (our_results(CTCLoss(), numbers, target) for target in (with_blanks, without))
    assert ours["loss"] == pytest.approx(same["loss"], rel=1e-14)
    np.testing.assert_allclose(ours["grad_prediction"], same["grad_prediction"], atol=1e-15)


@pytest.mark.parametrize(
    ("shape", "target"), [((2, 3), (2,)), ((2, 3, 1), (2, 1)), ((2, 3, 4), (2, 0)), ((1, 2, 1), (1, 1))]
)
def test_shapes(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    numbers = np.random.default_rng(0).standard_normal(shape)
    given = np.ones(target, np.int64)
    for loss in (CTCLoss(), CTCLoss(1, "sum"), CTCLoss(zero_infinity=True)):
        loss.check_target(numbers, given)
        assert_as_torch(loss, numbers, given)


def test_no_examples() -> None:
    for target in (np.zeros((0, 2), np.int64), np.zeros((0, 0), np.int64)):
        value, saved = CTCLoss().forward(np.zeros((0, 3, 4)), target)
        assert np.isnan(value)
        assert CTCLoss().backward(saved).shape == (0, 3, 4)
        assert our_results(CTCLoss(reduction="sum"), np.zeros((0, 3, 4)), target)["loss"] == 0


def net() -> Sequential:
    return Sequential(Conv1d(2, 4, 3, padding=1), LogSoftmax(dim=1), dtype="float64", seed=0)


def test_the_check_proves_it_behind_a_net() -> None:
    generator = np.random.default_rng(0)
    for loss in (CTCLoss(), CTCLoss(3, "sum"), CTCLoss(zero_infinity=True)):
        report = check_gradients(net(), loss, generator.standard_normal((5, 2, 9)), generator.integers(0, 4, (5, 4)))
        assert report.passed
        assert not report.vacuous


def test_slices_and_compiled_steps_do_the_same() -> None:
    """And a net learns where the labels stand."""
    generator, ends = np.random.default_rng(0), []
    data = generator.standard_normal((20, 2, 8)), generator.integers(0, 4, (20, 3))
    ways: list[dict[str, Any]] = [{"check_every": 0}, {"slicing": Slicing(3)}, {"compiled": True, "check_every": 2}]
    for settings in ways:
        model = net()
        trainer = Trainer(model, CTCLoss(), SGD(model, lr=0.1), **settings)
        for epoch in range(2):
            list(trainer.epoch(data, 10, seed=0, epoch=epoch))
        ends.append(model.param_arena)
        evaluation = trainer.evaluate(data)
        assert evaluation.accuracy is None  # no label has a place
        assert evaluation.loss == pytest.approx(CTCLoss().forward(model(data[0]), data[1])[0], rel=1e-12)
    for end in ends[1:]:
        np.testing.assert_allclose(end, ends[0], rtol=1e-11)


def test_settings_out_of_range() -> None:
    with pytest.raises(ValueError, match=r"^blank must be at least 0, not -1$"):
        CTCLoss(-1)


@pytest.mark.parametrize(
    ("shape", "target", "message"),
    [
        ((2, 3, 4), [[1.0], [2.0]], "CTCLoss takes int64 class indices as target, not float64"),
        ((2, 3, 4), [1, 2], "CTCLoss takes a prediction (batch, classes, time), and as target indices (batch, "
         "longest), not (2, 3, 4) and int64 (2,)"),
        ((3, 3, 4), [[1], [2]], "CTCLoss takes a prediction (batch, classes, time), and as target indices (batch, "
         "longest), not (3, 3, 4) and int64 (2, 1)"),
        ((3,), 1, "CTCLoss takes a prediction (batch, classes, time), and as target indices (batch, longest), "
         "not (3,) and int64 ()"),
        ((1, 3, 0), [[1]], "CTCLoss takes a prediction of one time at least, not (1, 3, 0)"),
        ((1, 2, 4), [[1]], "CTCLoss: blank must be one of the 2 classes, not 2"),
        ((2, 3, 4), [[1, 0], [0, 3]], "CTCLoss: label 3 at index (1, 1) is outside 0 ... 2"),
        ((1, 3, 4), [[-1]], "CTCLoss: label -1 at index (0, 0) is outside 0 ... 2"),
        ((2, 3, 3), [[1, 0, 1, 2], [1, 1, 0, 2]], "CTCLoss: target 1 needs 4 times for its 3 labels and the blanks "
         "between equal ones, the prediction has 3: with zero_infinity it would not count"),
    ],
)  # fmt: skip - a case in two lines
def test_targets_that_do_not_fit(shape: tuple[int, ...], target: Any, message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=f"^{re.escape(message)}$"):
        CTCLoss(2).check_target(np.zeros(shape), np.array(target))


@pytest.mark.parametrize("zero_infinity", [False, True])
def test_what_is_not_a_number_stays_none(zero_infinity: bool) -> None:
    numbers = np.zeros((2, 3, 4))
    numbers[1, 0, 2] = np.nan
    value, saved = CTCLoss(zero_infinity=zero_infinity).forward(numbers, np.array([[1], [2]]))
    assert np.isnan(value)
    assert np.isnan(CTCLoss().backward(saved)[1]).any()


@pytest.mark.parametrize("unlikely", [-1e4, -1e7, -1e8])
def test_the_gradients_of_a_time_sum_to_minus_its_share_however_unlikely_the_paths_are(unlikely: float) -> None:
    """In float32, too: each path takes one class at each time."""
    numbers = np.full((1, 4, 6), unlikely, np.float32)
    numbers[:, 0] = 0
    grad = our_results(CTCLoss(reduction="sum"), numbers, np.array([[1, 2, 3]]))["grad_prediction"]
    np.testing.assert_allclose(grad.sum(axis=1), -1, rtol=1e-6)
