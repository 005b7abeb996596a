"""Clipping and optimizers: torch's trajectory, and each way to leave it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from nets import batch, break_gradient, net, replace_method
from slow_cases import crossed
from updates import Clip, Run

from nn_manual import (
    SGD,
    Adam,
    AdamW,
    GradientChecker,
    GradientMismatch,
    Linear,
    MSELoss,
    NotFiniteError,
    Sequential,
    clip_grad_norm,
    clip_grad_value,
)
from nn_manual.arrays import BLOCK_SIZE, DTYPES, Array
from nn_manual.check.compare.comparison import Quantity
from nn_manual.check.compare.tolerances import sum_of_products
from nn_manual.check.judge.step_check import StepCheck
from nn_manual.check.whole_step import update_pieces
from nn_manual.check.whole_step.clipping import compare_clipping
from nn_manual.optim import Clipping, Optimizer
from nn_manual.optim.clipping import NormClipping, ValueClipping
from nn_manual.optim.parts import Run as PartRun


@pytest.fixture(autouse=True, params=[update_pieces.PIECE, 5], ids=["at once", "in pieces"])
def _piece(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of 5 elements, matrices are cut, and biases with 4 are whole."""
    monkeypatch.setattr(update_pieces, "PIECE", request.param)


each_dtype = pytest.mark.parametrize("dtype", DTYPES)

SETTINGS: list[dict[str, Any]] = [
    {},
    {"momentum": 0.9},
    {"momentum": 0.9, "dampening": 0.5},
    {"momentum": 0.9, "nesterov": True, "weight_decay": 0.01},
    {"weight_decay": 0.1},
    {"maximize": True, "momentum": 0.5, "lr": 1e-3},  # a larger one climbs to infinity
    {"momentum": 0.9, "weight_decay": 0.1, "groups": [{"parameters": "*.bias", "weight_decay": 0.0, "momentum": 0.0}]},
    {"optimizer_class": AdamW, "amsgrad": True, "groups": [{"parameters": "2.*", "lr": 0.0, "betas": (0.5, 0.5)}]},
]


@pytest.mark.parametrize(("settings", "every", "dtype"), crossed(SETTINGS, [1, 3], list(DTYPES)), ids=str)
def test_every_step_or_every_third_follows_torch(settings: dict[str, Any], every: int, dtype: str) -> None:
    checked, unchecked = Run(dtype, **settings), Run(dtype, **settings)
    for number in range(1, 22):
        check = checked.step(checked=number % every == 0)
        unchecked.step(checked=False)
        assert (check is not None) == (number % every == 0)
    assert np.array_equal(checked.model.param_arena, unchecked.model.param_arena), "the check changes nothing"
    assert not np.array_equal(checked.model.param_arena, net(dtype).param_arena)


def test_a_checked_step_compares_every_tensor_once_by_name() -> None:
    check = Run(clipping=NormClipping(0.1)).step()
    assert check is not None
    parameters = [f"{i}.{name}" for i in (0, 2, 4) for name in ("weight", "bias")]
    assert [quantity.name for quantity in check.plan.quantities] == [
        *(f"{i}.output" for i in range(5)),
        *("loss", "loss.grad_prediction", "4.grad_weight", "4.grad_bias", "4.grad_input", "3.grad_input"),
        *("2.grad_weight", "2.grad_bias", "2.grad_input", "1.grad_input", "0.grad_weight", "0.grad_bias"),
        "clipped gradient",
        *(f"updated {name}" for name in parameters),
    ]
    assert len(check.absolute) == len(check.scale) == 24
    assert len(check.tensors) == 24
    assert np.all(check.scale > 0)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_parameters_may_be_set_between_checked_steps(momentum: float) -> None:
    run = Run(momentum=momentum)
    for _ in range(3):
        run.step()
        run.model.load_state_dict({name: 2 * value for name, value in run.model.state_dict().items()})
        run.step()
        run.optimizer.lr /= 2


@pytest.mark.parametrize(
    "settings",
    [
        {"lr": np.float32(0.1), "momentum": 0.9, "dampening": np.float32(0.1)},
        {"optimizer_class": Adam, "lr": np.float32(0.1), "eps": np.float32(0.1)},
        {"optimizer_class": Adam, "betas": (np.float32(0.7), np.float32(0.9)), "amsgrad": np.bool_(True)},
        {"optimizer_class": AdamW, "groups": [{"parameters": "2.*", "weight_decay": np.float32(0.3)}]},
        {"momentum": 0.9, "nesterov": np.bool_(True), "maximize": np.bool_(False)},
    ],
    ids=str,
)
def test_settings_may_be_numpys_numbers_and_truths(settings: dict[str, Any]) -> None:
    """Coefficients are computed in float64; torch's fused kernels take True, not 1."""
    run = Run(**settings)
    for _ in range(3):
        run.step()
        run.optimizer.lr = np.float32(0.3)
    assert run.checker.unproven() == ()


def wrong_sgd(change: Callable[[SGD], None]) -> Callable[..., None]:
    def step(right: Callable[[SGD], None], optimizer: SGD) -> None:
        right(optimizer)
        change(optimizer)

    return step


def moves_twice(optimizer: SGD) -> None:
    optimizer.model.param_arena -= optimizer.lr * optimizer.model.grad_arena


def moves_one_parameter_more(optimizer: SGD) -> None:
    optimizer.model.param_arena[-1] *= 1.0001


def forgets_momentum(optimizer: SGD) -> None:
    optimizer.vectors["momentum_buffer"][...] = 0


def decays_momentum(optimizer: SGD) -> None:
    optimizer.vectors["momentum_buffer"] *= np.float32(0.999)


def steps_without_momentum(optimizer: SGD) -> None:
    """The buffer is right, and not used."""
    velocity = optimizer.vectors["momentum_buffer"]
    optimizer.model.param_arena += optimizer.lr * (velocity - optimizer.model.grad_arena)


@pytest.mark.parametrize(
    ("change", "first_seen", "name"),
    [
        (moves_twice, 1, "updated 0.weight"),
        (moves_one_parameter_more, 1, "updated 4.bias"),
        (forgets_momentum, 1, r"0\.weight\.momentum_buffer"),
        (decays_momentum, 1, r"0\.weight\.momentum_buffer"),
        (steps_without_momentum, 2, r"updated 0\.weight"),
    ],
)
def test_a_wrong_step_is_caught_and_named(change: Callable[[SGD], None], first_seen: int, name: str) -> None:
    run = Run(momentum=0.9)
    replace_method(run.optimizer, "step", wrong_sgd(change))
    for _ in range(first_seen - 1):
        run.step()
    with pytest.raises(GradientMismatch, match=f"wrong first in optimizer: {name}") as caught:
        run.step()
    assert all(comparison.layer == "optimizer" for comparison in caught.value.report.comparisons)


def test_setting_parameters_does_not_excuse_a_wrong_momentum() -> None:
    run = Run(momentum=0.9)
    replace_method(run.optimizer, "step", wrong_sgd(forgets_momentum))
    run.step(checked=False)
    run.model.param_arena *= 2
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: 0\.weight\.momentum_buffer"):
        run.step()


def test_a_step_does_not_depend_on_what_was_compared_before() -> None:
    """Parameters, momentum and the count of steps may be set between two steps: torch starts where we do."""
    run = Run(momentum=0.9, dampening=0.5)
    for change in (0.5, -3.0, 0.0):
        run.step()
        run.model.param_arena *= change
        run.optimizer.vectors["momentum_buffer"] *= change
        run.optimizer.num_steps = 0 if change == 0 else run.optimizer.num_steps + 7
        run.step()


def test_a_parameter_that_lands_near_zero_has_the_rounding_of_where_it_came_from() -> None:
    """param - lr * grad is 0 up to rounding. torch rounds once and we round twice, so the two differ."""
    model = Sequential(Linear(1, 1, bias=False))
    optimizer = SGD(model)
    checker = GradientChecker(model, MSELoss(), optimizer)
    smallest = np.inf
    for seed in range(20):
        input, target, model.param_arena[:] = np.random.default_rng(seed).uniform(1, 2, (3, 1, 1)).astype(np.float32)
        with checker.recording():
            checker.run(input, -target)  # a gradient above 0, as the lr must be
            optimizer.lr = float(model.param_arena[0] / model.grad_arena[0])
            optimizer.step()
        checker.compare()
        smallest = min(smallest, abs(model.param_arena[0]))
    assert smallest < 1e-7


def below_the_smallest_normal_number() -> GradientChecker:
    """0.7 * 5 + 0.3 * 10 is 6.5 of the smallest numbers: we add up 3 or 4 and 3, torch adds a part of 5 to 5."""
    smallest = np.float32(2**-149)
    model = Sequential(Linear(1, 1, bias=False))
    model.param_arena[:] = 10 * smallest  # weight decay makes this its gradient
    optimizer = Adam(model, betas=(0.7, 0.999), weight_decay=1.0)
    optimizer.vectors["exp_avg"][:] = 5 * smallest
    optimizer.num_steps = 1
    return GradientChecker(model, MSELoss(), optimizer)


def stepped(checker: GradientChecker) -> StepCheck:
    assert checker.optimizer is not None
    input = np.ones((1, 1), np.float32)
    with checker.recording():
        checker.run(input, input * checker.model.param_arena)
        checker.optimizer.step()
    return checker.compare()


def test_a_state_vector_below_the_smallest_normal_number_is_rounding() -> None:
    checker = below_the_smallest_normal_number()
    assert "0.weight.exp_avg" in stepped(checker).rounding
    assert checker.optimizer is not None
    assert checker.optimizer.vectors["exp_avg"][0] == 6 * np.float32(2**-149)


def test_a_step_that_was_forgotten_is_caught() -> None:
    run = Run()
    replace_method(run.optimizer, "step", lambda *_: None)
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: updated 0\.weight"):
        run.step()


def clips_to_half(grad: Any, max_norm: float) -> None:
    clip_grad_norm(grad, max_norm / 2)


def clips_every_element(grad: Any, max_norm: float) -> None:
    np.clip(grad, -max_norm, max_norm, out=grad)


def clips_every_element_a_little_off(grad: Any, clip_value: float) -> None:
    clip_grad_value(grad, clip_value * (1 + 1e-5))


def does_not_clip(grad: Any, bound: float) -> None:
    pass


WRONG = {
    NormClipping(0.1): [clips_to_half, clips_every_element, does_not_clip],
    ValueClipping(0.01): [clips_to_half, clips_every_element_a_little_off, does_not_clip],
}


@each_dtype
@pytest.mark.parametrize(("clipping", "clip"), [(clipping, clip) for clipping in WRONG for clip in WRONG[clipping]])
def test_wrong_clipping_is_caught_and_named(clipping: Clipping, clip: Clip, dtype: str) -> None:
    with pytest.raises(GradientMismatch, match=f"wrong first in {clipping.key}: clipped gradient"):
        Run(dtype, clipping).step(clip)


@each_dtype
@pytest.mark.parametrize("clipping", [NormClipping(0.01), NormClipping(1e6), ValueClipping(0.01), ValueClipping(1e6)])
def test_right_clipping_passes(clipping: Clipping, dtype: str) -> None:
    run = Run(dtype, clipping, momentum=0.9)
    for _ in range(5):
        run.step()


@pytest.mark.parametrize("name", ["grad_weight", "grad_input"])
def test_clipping_hides_no_wrong_factor(name: str) -> None:
    """Clipped to one norm, a gradient and twice the gradient are the same: so they are compared before."""
    model = Sequential(Linear(3, 4, bias=False), Linear(4, 4, bias=False))
    break_gradient(model.layers[1], name, lambda grad: 2 * grad)
    checker = GradientChecker(model, MSELoss(), clipping=NormClipping(0.01))
    with checker.recording():
        checker.run(*batch())
        clip_grad_norm(model.grad_arena, 0.01)
    with pytest.raises(GradientMismatch, match=rf"wrong first in 1 \(Linear\): 1\.{name}"):
        checker.compare()


@pytest.mark.parametrize(
    ("part", "clips_to", "error", "words"),
    [
        (1.2, 1.0, NotFiniteError, r"^the norm of the gradient overflows: its squares add up to 4\.08e\+38, and"),
        (0.9, 0.5, GradientMismatch, "wrong first in clip_grad_norm: clipped gradient"),
    ],
)
def test_a_norm_that_overflows_for_torch_alone_is_not_finite(
    part: float, clips_to: float, error: type[Exception], words: str
) -> None:
    """We add up squares within a block, here half of this part of the largest number, and torch all of them at once."""
    squares, size = part * float(np.finfo(np.float32).max), 2 * BLOCK_SIZE
    gradient = np.full(size, math.sqrt(squares / size), np.float32)
    clipped = gradient.copy()
    assert clip_grad_norm(clipped, clips_to) == pytest.approx(math.sqrt(squares), rel=1e-3)
    quantities = [Quantity("clipped gradient", "clip_grad_norm", sum_of_products(gradient.dtype, size))]
    with pytest.raises(error, match=words):
        compare_clipping(quantities, clipped, [gradient], NormClipping(1.0))


def test_a_parameter_that_overflows_is_not_finite() -> None:
    run = Run()
    run.optimizer.lr = 3e38
    run.model.param_arena *= 10
    found = r"^updated 0\.weight holds inf at index \(0, 0\)"
    with np.errstate(over="ignore"), pytest.raises(NotFiniteError, match=found):
        run.step()


@pytest.mark.parametrize("member", [0, 1])
def test_settings_may_be_set_before_the_check_is_made(member: int) -> None:
    run = Run(weight_decay=0.1, groups=[{"parameters": "2.bias", "lr": 0.2}])
    run.optimizer.members[member].weight_decay = 0.5
    run.checker = GradientChecker(run.model, MSELoss(), run.optimizer)
    for _ in range(3):
        run.step()


def steps_without_groups(right: Callable[[SGD], None], optimizer: SGD) -> None:
    part = optimizer.parts[1]
    own, part.member = part.member, optimizer
    right(optimizer)
    part.member = own


def test_a_group_whose_settings_are_ignored_is_caught_and_named() -> None:
    run = Run(weight_decay=0.1, groups=[{"parameters": "2.bias", "weight_decay": 0.0}])
    replace_method(run.optimizer, "step", steps_without_groups)
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: updated 2\.bias"):
        run.step()


@pytest.mark.parametrize(("member", "name"), [(0, "weight_decay"), (1, r"groups\.0\.weight_decay")])
def test_a_setting_that_changes_is_no_wrong_formula(member: int, name: str) -> None:
    run = Run(weight_decay=0.1, groups=[{"parameters": "2.bias", "lr": 0.2}])
    run.step()
    run.optimizer.members[member].weight_decay = 0.5
    with pytest.raises(ValueError, match=rf"^SGD\.{name} was 0\.1 and is 0\.5\. In a checked training the lr"):
        run.step()


def test_a_group_of_the_wrong_parameters_is_caught_and_named() -> None:
    run = Run(groups=[{"parameters": "2.bias", "lr": 0.2}])
    for part, block in zip(run.optimizer.parts, [slice(0, 32), slice(32, 56)], strict=True):  # it ends at 36
        part.blocks = [PartRun(block, block)]
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: updated 4\.weight"):
        run.step()


def refuses_float64(right: Callable[[Any], None], optimizer: Any) -> None:
    if optimizer.model.dtype == np.float64:
        raise TypeError("float32\nonly")
    right(optimizer)


def test_an_optimizer_that_raises_in_float64_is_listed() -> None:
    run = Run(momentum=0.9)
    replace_method(run.optimizer, "step", refuses_float64)
    assert run.checker.unproven() == ()
    run.step()
    sentences = (r"optimizer: in float64 its step raises TypeError: float32 only",)
    assert run.checker.unproven() == sentences
    assert run.checker.vacuous() == (), "it was compared in float32"
    later = Run(momentum=0.9)
    later.checker.load_state(run.checker.state())
    assert later.checker.unproven() == sentences


def test_an_optimizer_that_was_compared_in_float64_is_not_listed() -> None:
    run = Run()
    run.step()
    replace_method(run.optimizer, "step", refuses_float64)
    run.step()
    assert run.checker.unproven() == ()
    double = Run("float64")
    replace_method(double.optimizer, "step", lambda right, optimizer: right(optimizer))
    double.step()
    assert double.checker.unproven() == ()


def test_rounding_of_an_optimizer_that_raises_in_float64_is_not_told_from_a_wrong_formula() -> None:
    checker = below_the_smallest_normal_number()
    assert checker.optimizer is not None
    replace_method(checker.optimizer, "step", refuses_float64)
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: 0\.weight\.exp_avg") as caught:
        stepped(checker)
    assert str(caught.value).endswith(r"in float64 the step raises TypeError: float32 only")


@dataclass(eq=False)
class OfDifferences(Optimizer):
    """In float32, `rest` is mostly rounding. The step adds what `square` differs from grad**2, made larger, which is 0
    where it is right, and `step_size`.
    """

    lr: float = 0.1
    factor: float = 1.0
    step_size: float = 0.0

    def check_settings(self) -> None:
        """All are right."""

    def vector_names(self) -> list[str]:
        return ["rest", "square"]

    def coefficients(self, step: int) -> dict[str, float]:  # noqa: ARG002 - all steps are alike
        return {"factor": self.factor, "step_size": self.step_size}

    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        vectors["rest"][...] = (grad + 100) - 100
        vectors["square"][...] = coefficients["factor"] * (grad * grad)
        param += 1e6 * (vectors["square"] - grad * grad) + coefficients["step_size"]

    def reference(
        self, param: Any, grad: Any, vectors: Mapping[str, Any], step: int  # noqa: ARG002
    ) -> tuple[Any, dict[str, Any]]:
        return param, {"rest": (grad + 200) - 200, "square": grad * grad}


def test_a_vector_that_is_off_by_rounding_is_not_called_wrong() -> None:
    Run("float32", optimizer_class=OfDifferences).step()
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: updated 0\.weight") as error:
        Run("float32", optimizer_class=OfDifferences, step_size=0.1).step()
    rows = [line.split() for line in str(error.value).splitlines()]
    assert {row[-1] for row in rows if row and row[0].endswith(".rest")} == {"rounding"}


def test_the_first_wrong_formula_is_named_where_float32_hides_its_error() -> None:
    with pytest.raises(GradientMismatch, match=r"wrong first in optimizer: 0\.weight\.square"):
        Run("float32", optimizer_class=OfDifferences, factor=1 + 5e-7).step()
