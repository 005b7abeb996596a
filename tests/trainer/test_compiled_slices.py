"""Compiled steps whose batches are cut into slices: what the plain ones compute, proven, the same bits every time."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nn_manual import (
    SGD,
    AdamW,
    BatchNorm1d,
    CrossEntropyLoss,
    Dropout,
    GradientMismatch,
    LayerNorm,
    Linear,
    ReLU,
    Residual,
    Sequential,
    StepLR,
    Trainer,
)
from nn_manual.arrays import Array
from nn_manual.compile import plan
from nn_manual.data import Examples
from nn_manual.errors import NotFiniteError
from nn_manual.layers import Layer
from nn_manual.step.slices.cut import Slicing

BETWEEN: dict[str, Layer] = {
    "relu": ReLU(),
    "children": Residual(LayerNorm(16), Linear(16, 16)),
    "buffers": BatchNorm1d(16),
    "buffers inside": Residual(Linear(16, 16, bias=False), BatchNorm1d(16)),
}


def examples(count: int = 110) -> Examples:
    """Batches of 34, of which the last has 8; some targets don't count."""
    generator = np.random.default_rng(0)
    input = generator.standard_normal((count, 6), np.float32)
    target = np.abs(input[:, :4]).argmax(axis=1)
    target[::7] = -100
    return Examples(input, target)


def trained(
    *, between: str = "relu", num_slices: int = 4, num_epochs: int = 2, data: Examples | None = None, **settings: Any
) -> tuple[Trainer, list[float]]:
    """A trainer after its epochs, and the losses."""
    model = Sequential(Linear(6, 16, bias=False), copy.deepcopy(BETWEEN[between]), Dropout(0.2), Linear(16, 4), seed=0)
    own: dict[str, Any] = {"check_every": 0, "compiled": True, "slicing": Slicing(num_slices, bitwise=True)}
    own |= {"lr_scheduler": StepLR(step_size=3, gamma=0.9), "lr_step": "step"}
    trainer = Trainer(model, CrossEntropyLoss(weight=[1, 2, 3, 4]), AdamW(model, lr=0.01), **(own | settings))
    given = data or examples()
    return trainer, [
        step.loss for epoch in range(num_epochs) for step in trainer.epoch(given, 34, seed=0, epoch=epoch)
    ]


@pytest.fixture
def rows_run(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rows of each slice that a plan has run; 0 for an update."""
    rows: list[int] = []
    run = plan.Plan.run

    def noted(self: plan.Plan, inputs: Array, *others: Any) -> plan.Done:
        rows.append(inputs.shape[1])
        return run(self, inputs, *others)

    monkeypatch.setattr(plan.Plan, "run", noted)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("between", BETWEEN)
@pytest.mark.parametrize("settings", [{}, {"clip_grad_norm": 0.1}, {"check_every": 1}, {"check_every": 2}], ids=str)
def test_the_steps_are_those_of_plain_slices(between: str, settings: dict[str, Any], rows_run: list[int]) -> None:
    """Dropout, weights of classes, ignored targets, slices of two sizes, a smaller last batch, a schedule of steps."""
    compiled, losses = trained(between=between, **settings)
    assert rows_run.count(0) == 2 * 3
    assert set(rows_run) == {9, 8, 0}
    plain, expected = trained(between=between, **(settings | {"compiled": False}))
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    for name, array in plain.model.state_dict().items():
        np.testing.assert_allclose(compiled.model.state_dict()[name], array, rtol=0, atol=2e-5, err_msg=name)
    assert compiled.optimizer.num_steps == plain.optimizer.num_steps == 8
    assert compiled.model.first_row == 0


@pytest.mark.slow
@pytest.mark.parametrize("between", ["relu", "children"])
def test_the_steps_are_those_of_the_whole_batch(between: str) -> None:
    """It alone compares compiled slices with the whole batch."""
    sliced, losses = trained(between=between, check_every=1)
    whole, expected = trained(between=between, slicing=Slicing())
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(sliced.model.param_arena, whole.model.param_arena, rtol=0, atol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("between", BETWEEN)
def test_a_check_changes_no_bit(between: str) -> None:
    """It alone compares checked compiled slices with unchecked ones."""
    plain, checked = (trained(between=between, check_every=every)[0] for every in (0, 1))
    for name, array in plain.model.state_dict().items():
        assert np.array_equal(checked.model.state_dict()[name], array), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("0.output", r"0 \(Linear\).*output"),
        ("3.grad_output", "3"),
        ("loss.grad_prediction", "grad_prediction"),
        ("param", "updated 0.weight"),
    ],
)
def test_a_wrong_value_of_the_plan_is_found(wrong: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One number is wrong by a hundredth in the second slice of the first step, or after its update.
    It alone has a wrong value in a compiled slice.
    """
    results, run, count = plan.Plan.results, plan.Plan.run, iter(range(100))

    def faulty(self: plan.Plan, *given: Any) -> dict[str, Array]:
        arrays = results(self, *given)
        if wrong in arrays and next(count) == 1:
            arrays[wrong].reshape(-1)[1] += 0.01
        return arrays

    def faulty_update(self: plan.Plan, inputs: Array, *others: Any) -> plan.Done:
        done = run(self, inputs, *others)
        if wrong == "param" and not inputs.size:
            self.model.param_arena[1] += 0.01
        return done

    monkeypatch.setattr(plan.Plan, "results", faulty)
    monkeypatch.setattr(plan.Plan, "run", faulty_update)
    with pytest.raises(GradientMismatch, match=message):
        trained(check_every=1)


@pytest.mark.slow
def test_buffers_that_what_was_kept_moves_wrongly_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What moves the buffers is the plan's mean and variance. It alone keeps wrong buffers for compiled slices."""
    results = plan.Plan.results

    def faulty(self: plan.Plan, *given: Any) -> dict[str, Array]:
        arrays = results(self, *given)
        return arrays | {name: array * 1.01 for name, array in arrays.items() if name.startswith("kept")}

    monkeypatch.setattr(plan.Plan, "results", faulty)
    with pytest.raises(GradientMismatch, match="running_"):
        trained(between="buffers", check_every=1)


@pytest.mark.parametrize("check_every", [0, 1])
def test_a_value_that_is_not_finite_ends_the_run_as_it_does_without_a_plan(check_every: int) -> None:
    input, target = examples()
    input = input.copy()
    input[60, 3] = np.inf
    ends = []
    for compiled in (True, False):
        with pytest.raises(NotFiniteError) as caught, np.errstate(invalid="ignore", over="ignore"):
            trained(data=Examples(input, target), compiled=compiled, check_every=check_every)
        ends.append(str(caught.value))
    assert ends[0] == ends[1]


def test_slices_of_which_nothing_counts() -> None:
    """The mean over nothing has a gradient of zero; the other slices weigh the more."""
    input, target = examples(34)
    target[:] = -100
    target[:9] = 1
    data = Examples(input, target)
    compiled, losses = trained(data=data, num_epochs=3)
    plain, expected = trained(data=data, num_epochs=3, compiled=False)
    np.testing.assert_allclose(losses, expected, rtol=1e-5)
    np.testing.assert_allclose(compiled.model.param_arena, plain.model.param_arena, rtol=0, atol=2e-5)


class Opaque(BatchNorm1d):
    """Saves something that no plan can take apart."""

    torch_class = "BatchNorm1d"

    def forward(self, input: Array) -> tuple[Array, Any]:
        output, saved = super().forward(input)
        return output, SimpleNamespace(arrays=saved)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        return super().backward(saved.arrays, grad_output)

    def update_buffers(self, saved: Any) -> None:
        super().update_buffers(saved.arrays)


def test_what_cannot_be_compiled_is_said_once_and_runs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, rows_run: list[int]
) -> None:
    monkeypatch.setitem(BETWEEN, "opaque", Opaque(16))
    trainer, losses = trained(between="opaque")
    _, expected = trained(between="buffers", compiled=False)
    assert losses == expected
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: this model isn't compiled: ")
    assert "a layer with buffers saves a" in line
    assert rows_run == []
    assert trainer.optimizer.num_steps == 8


def test_with_bitwise_nothing_is_measured() -> None:
    trainer, _ = trained()
    assert trainer._compiled_slices is not None
    assert trainer._compiled_slices.plans.choice == ("numpy", 1)


def test_sync_batch_norm_is_refused() -> None:
    """But for a batch in one piece, which has nothing to wait for."""
    trained(between="buffers", slicing=Slicing(1, sync_batch_norm=True), num_epochs=1)
    with pytest.raises(ValueError, match="one of compiled and sync_batch_norm must go"):
        trained(between="buffers", slicing=Slicing(2, sync_batch_norm=True))


@pytest.mark.slow
def test_groups_have_settings_of_their_own_and_shared_parameters_are_sums() -> None:
    """It alone has groups and shared parameters in compiled slices."""
    def final(*, compiled: bool) -> Array:
        layers = Linear(6, 6), ReLU(), Linear(6, 6), Linear(6, 4)
        model = Sequential(*layers, seed=0, tied=[("0.weight", "2.weight")])
        groups: Any = [{"parameters": "*.bias", "weight_decay": 0.0, "lr": 0.3}]
        optimizer = SGD(model, lr=0.1, momentum=0.9, weight_decay=0.01, groups=groups)
        trainer = Trainer(model, CrossEntropyLoss(), optimizer, compiled=compiled, slicing=Slicing(3))
        for _ in trainer.epoch(examples(), 34, seed=0, epoch=0):
            pass
        return model.param_arena

    np.testing.assert_allclose(final(compiled=True), final(compiled=False), rtol=0, atol=1e-5)
