"""Epochs of compiled steps: the same steps, in calls of many."""

from __future__ import annotations

import copy
import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from nn_manual import (
    GELU,
    SGD,
    AdamW,
    BatchNorm1d,
    CausalSelfAttention,
    CrossEntropyLoss,
    Dropout,
    LayerNorm,
    Linear,
    MSELoss,
    ReLU,
    Residual,
    Sequential,
    StepLR,
    Tanh,
    Trainer,
)
from nn_manual.arrays import Array
from nn_manual.compile import plan
from nn_manual.compile.boundaries import Boundaries
from nn_manual.compile.compile_step import NoNumba
from nn_manual.compile.step_copies import Copies
from nn_manual.data import Examples
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.layers import Layer
from nn_manual.step.slices.cut import Slicing
from nn_manual.trainer import compiled_steps as running_compiled
from nn_manual.trainer.compiled_steps import CompiledSteps


def examples(count: int = 330) -> Examples:
    generator = np.random.default_rng(0)
    input = generator.standard_normal((count, 6), np.float32)
    return Examples(input, np.abs(input[:, :4]).argmax(axis=1))


def new_trainer(*, compiled: bool, between: Layer | None = None, **settings: Any) -> Trainer:
    model = Sequential(Linear(6, 16), between or ReLU(), Dropout(0.2), Linear(16, 4), seed=0)
    own: dict[str, Any] = {"check_every": 0, "lr_scheduler": StepLR(step_size=7, gamma=0.9), "lr_step": "step"}
    return Trainer(model, CrossEntropyLoss(), AdamW(model, lr=0.01), compiled=compiled, **(own | settings))


def trained(trainer: Trainer, data: Examples, num_epochs: int = 2) -> list[tuple[int, float, int, float, bool]]:
    """Number, loss, examples, denominator of each step, and whether it was checked."""
    return [
        (*step[:4], step.check is not None)
        for epoch in range(num_epochs)
        for step in trainer.epoch(data, 32, seed=0, epoch=epoch)
    ]


@pytest.fixture
def num_run(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many steps each call of a plan has."""
    calls: list[int] = []
    run = plan.Plan.run

    def counted(self: plan.Plan, inputs: Array, *others: Any) -> plan.Done:
        calls.append(len(inputs))
        return run(self, inputs, *others)

    monkeypatch.setattr(plan.Plan, "run", counted)
    return calls


@pytest.mark.parametrize("check_every", [0, 5])
@pytest.mark.parametrize("clip_grad_norm", [None, 0.5])
def test_the_steps_are_those_of_a_plain_trainer(check_every: int, clip_grad_norm: float | None) -> None:
    """With a smaller last batch, random masks, a schedule that counts steps, and checked steps between."""
    plain, compiled = (
        new_trainer(compiled=is_compiled, check_every=check_every, clip_grad_norm=clip_grad_norm)
        for is_compiled in (False, True)
    )
    expected, steps = trained(plain, examples()), trained(compiled, examples())
    assert [step[:1] + step[2:] for step in steps] == [step[:1] + step[2:] for step in expected]
    np.testing.assert_allclose([step[1] for step in steps], [step[1] for step in expected], rtol=1e-5)
    np.testing.assert_allclose(compiled.model.param_arena, plain.model.param_arena, atol=1e-5)
    assert compiled.optimizer.num_steps == compiled.num_steps == compiled.model.num_steps == 22
    assert compiled.optimizer.lr == plain.optimizer.lr


PLANS = {
    "relu": ReLU(),
    "children": Residual(LayerNorm(16), Linear(16, 16), Tanh()),
    "buffers": BatchNorm1d(16),
}


@pytest.mark.slow
@pytest.mark.parametrize("clip_grad_norm", [None, 0.05])
@pytest.mark.parametrize("between", PLANS)
def test_what_ran_is_proven(between: str, clip_grad_norm: float | None, num_run: list[int]) -> None:
    """All but the smaller last steps are the plan's: the first, too, which the checker looks at alone."""
    trainer = new_trainer(
        compiled=True, check_every=1, between=copy.deepcopy(PLANS[between]), clip_grad_norm=clip_grad_norm
    )
    steps = [step for epoch in range(2) for step in trainer.epoch(examples(), 32, seed=0, epoch=epoch)]
    checks = [step.check for step in steps]
    assert all(check is not None and check.proven for check in checks)
    assert num_run == [1] * (2 * 10)


@pytest.mark.parametrize("num_slices", [1, 2])
def test_a_layer_that_could_take_random_numbers_and_takes_none_is_proven(num_slices: int) -> None:
    """Nothing binds noise before the first step of a plan."""
    model = Sequential(CausalSelfAttention(8, 2), Linear(8, 2), seed=0)
    slicing = Slicing(num_slices=num_slices)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), compiled=True, slicing=slicing)
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((8, 5, size), np.float32) for size in (8, 2))
    checks = [step.check for step in trainer.epoch(Examples(input, target), 4, seed=0, epoch=0)]
    assert [check.proven for check in checks if check is not None] == [True, True]


def test_steps_of_a_regression_are_proven(num_run: list[int]) -> None:
    """Their loss has a gradient of the target, too, which no step of training computes."""
    model = Sequential(Linear(6, 16), Tanh(), Linear(16, 3), seed=0)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), compiled=True)
    data = Examples(examples(96).input, np.random.default_rng(1).standard_normal((96, 3), np.float32))
    checks = [step.check for step in trainer.epoch(data, 32, seed=0, epoch=0)]
    assert all(check is not None and check.proven for check in checks)
    assert num_run == [1, 1, 1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("0.output", r"0 \(Linear\).*output"),
        ("3.grad_output", "3"),
        ("loss.grad_prediction", "grad_prediction"),
        ("param", "updated 0.weight"),
        ("exp_avg", "exp_avg"),
    ],
)
@pytest.mark.parametrize("step", [1, 3])
def test_a_wrong_value_of_the_plan_is_found(
    wrong: str, message: str, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number of a tensor is wrong by a hundredth, in the first step, which is proven by itself, or in the third."""
    results, count = plan.Plan.results, iter(range(100))

    def faulty(self: plan.Plan, *given: Any) -> dict[str, Array]:
        arrays = results(self, *given)
        if next(count) == step - 1:
            arrays |= {"param": self.model.param_arena, **self.optimizer.vectors}
            arrays[wrong].reshape(-1)[1] += 0.01
        return arrays

    monkeypatch.setattr(plan.Plan, "results", faulty)
    trainer = new_trainer(compiled=True, check_every=1)
    with pytest.raises(GradientMismatch, match=message):
        trained(trainer, examples())
    assert trainer.num_steps == step


@pytest.mark.parametrize(("position", "message"), [(0, "updated 0.weight"), (1, "exp_avg"), (3, "0.output")])
def test_a_wrong_value_among_steps_of_one_call_is_found(
    position: int, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the third step of a call leaves is wrong by a hundredth: it is named, and all stands as it was then."""
    run, wrong = plan.Plan.run, list[int]()

    def faulty(self: plan.Plan, *given: Any) -> plan.Done:
        done, copies = run(self, *given), given[-1]
        if isinstance(copies, Copies) and len(done.losses) > 5 and not wrong:
            wrong.append(self.optimizer.num_steps + 3)
            copies.after[position][1][2].reshape(-1)[1] += 0.01
        return done

    monkeypatch.setattr(plan.Plan, "run", faulty)
    trainer = new_trainer(compiled=True, check_every=1, lr_scheduler=None, lr_step="epoch")
    with pytest.raises(GradientMismatch, match=message):
        trained(trainer, examples(3200))
    assert [trainer.num_steps] == [trainer.optimizer.num_steps] == wrong


def test_checked_steps_run_in_few_calls(num_run: list[int]) -> None:
    """And are those that run alone: a schedule of steps has each of them made so."""
    together, alone = (
        new_trainer(compiled=True, check_every=1, lr_scheduler=None if lr_step == "epoch" else StepLR(1000, 0.5),
                    lr_step=lr_step)
        for lr_step in ("epoch", "step")
    )
    steps, num_calls = trained(together, examples(3300)), len(num_run)
    assert steps == trained(alone, examples(3300))
    np.testing.assert_array_equal(together.model.param_arena, alone.model.param_arena)
    assert num_calls < len(num_run) / 5


def test_most_steps_run_in_few_calls(num_run: list[int]) -> None:
    trained(new_trainer(compiled=True), examples(3200), 1)
    assert sum(num_run) == 100
    assert len(num_run) < 10  # a few steps, whose time decides how many come then


@pytest.mark.parametrize("seconds", [0.01, 0.41, 60.0])
def test_steps_between_checked_ones_are_not_recorded_however_long_they_take(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call takes so many seconds by the clock: it is one of a step where that is more than a call may take."""
    recorded, fill = list[int](), Boundaries.fill

    def counted(self: Boundaries, *given: Any) -> None:
        recorded.append(trainer.num_steps)
        fill(self, *given)

    monkeypatch.setattr(Boundaries, "fill", counted)
    clock = SimpleNamespace(perf_counter=itertools.count(0, seconds).__next__)
    monkeypatch.setattr(running_compiled, "time", clock)
    trainer = new_trainer(compiled=True, check_every=5)
    steps = trained(trainer, examples(480), 1)
    assert [step[0] for step in steps if step[-1]] == recorded == [5, 10, 15]


def test_calls_end_at_multiples() -> None:
    trainer = new_trainer(compiled=True)
    trainer.stop_every = 6
    ends = {trainer.num_steps for _ in trainer.epoch(examples(3200), 32, seed=0, epoch=0)}
    assert set(range(6, 100, 6)) <= ends


def test_a_number_that_isnt_finite_is_named_by_the_formulas() -> None:
    data = examples()
    data.input[47, 3] = np.inf
    plain, compiled = new_trainer(compiled=False), new_trainer(compiled=True)
    messages = []
    for trainer in (plain, compiled):
        with pytest.raises(NotFiniteError) as error, np.errstate(all="ignore"):
            trained(trainer, data)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert plain.num_steps == compiled.num_steps


@pytest.mark.slow
@pytest.mark.parametrize("num_slices", [1, 2])
@pytest.mark.parametrize(
    ("part", "name", "value"),
    [
        ("optimizer", "weight_decay", 0.5),
        ("optimizer", "maximize", True),
        ("group", "maximize", True),
        ("loss", "label_smoothing", 0.3),
        ("layer", "approximate", "tanh"),
    ],
)
def test_a_setting_that_changes_between_epochs_counts(part: str, name: str, value: object, num_slices: int) -> None:
    """It alone sees a plan that is kept though a setting has changed."""
    losses = {}
    for compiled in (False, True):
        model = Sequential(Linear(6, 16), GELU(), Linear(16, 4), seed=0)
        optimizer = SGD(model, lr=0.1, groups=[{"parameters": "*.bias", "lr": 0.5}])
        parts = {"optimizer": optimizer, "group": optimizer.members[1], "layer": model.layers[1]}
        parts["loss"] = loss = CrossEntropyLoss()
        slicing = Slicing(num_slices)
        trainer = Trainer(model, loss, optimizer, check_every=0, compiled=compiled, slicing=slicing)
        first = trained(trainer, examples(320), 1)
        setattr(parts[part], name, value)
        losses[compiled] = [step[1] for step in first + trained(trainer, examples(320), 1)]
    np.testing.assert_allclose(losses[True], losses[False], rtol=3e-6)


def test_a_target_out_of_range_is_refused_before_a_step() -> None:
    data = examples()
    data.target[300] = 4
    trainer = new_trainer(compiled=True)
    before = trainer.model.param_arena.copy()
    with pytest.raises(ValueError, match=r"label 4 at index \(?300"):
        trained(trainer, data)
    np.testing.assert_array_equal(trainer.model.param_arena, before)


class Branches(Layer):
    """What can't be traced."""

    def forward(self, input: Array) -> tuple[Array, None]:
        if input.sum() > 1e9:
            return input * 2, None
        return input * 1, None

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - a layer's
        return grad_output * 1


def test_what_cant_be_traced_runs_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    trainer = new_trainer(compiled=True, between=Branches())
    expected = trained(new_trainer(compiled=False, between=Branches()), examples())
    assert trained(trainer, examples()) == expected
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("note: this model isn't compiled: 1 (Branches).forward, test_compiled_steps.py:")
    assert isinstance(trainer._compiled, CompiledSteps)
    assert "the value of an array decides what comes next" in trainer._compiled.plans.reason


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # noqa: ARG005
    with pytest.raises(NoNumba, match=r"^compiled: true needs numba: pip install 'nn_manual\[fast\]'$"):
        new_trainer(compiled=True)


def test_the_gradient_of_each_use_of_a_shared_parameter_is_proven(num_run: list[int]) -> None:
    model = Sequential(Linear(6, 6), Tanh(), Linear(6, 6), Linear(6, 4), seed=0, tied=[("0.weight", "2.weight")])
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), compiled=True)
    checks = [step.check for step in trainer.epoch(examples(96), 32, seed=0, epoch=0)]
    assert all(check is not None and check.proven for check in checks)
    assert num_run == [1, 1, 1]
