"""The claim of an update: a right one agrees in float64, a wrong one doesn't, whatever float32 hides of it."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import SGD, Linear, Sequential
from nn_manual.check.compare.comparison import CannotCompare, Quantity
from nn_manual.check.compare.tolerances import UPDATE
from nn_manual.check.compare.worst import beyond_tolerance
from nn_manual.check.judge.verdict import explained, judged
from nn_manual.check.twin.optimizers import UpdateInputs, state_of, tensors_of
from nn_manual.check.whole_step.update_claim import UpdateClaim

NAMES = ("0.weight.momentum_buffer", "0.bias.momentum_buffer", "updated 0.weight", "updated 0.bias")
QUANTITIES = [Quantity(name, "optimizer", UPDATE["float32"]) for name in NAMES]


class Wrong(SGD):
    """Its step goes a thousandth too far."""

    def step(self) -> None:
        super().step()
        self.model.param_arena -= self.model.param_arena.dtype.type(1e-3 * self.lr) * self.model.grad_arena


class OnlyInFloat32(SGD):
    """It doesn't run in float64."""

    def step(self) -> None:
        if self.model.param_arena.dtype == np.float64:
            raise TypeError("float32 alone")
        super().step()


#: The check looks for torch's class of the same name.
Wrong.__name__ = OnlyInFloat32.__name__ = "SGD"


def claim_of(kind: type[SGD], lr: float) -> UpdateClaim:
    model = Sequential(Linear(3, 2))
    generator = np.random.default_rng(0)
    model.param_arena[...] = generator.standard_normal(8)
    model.grad_arena[...] = generator.standard_normal(8)
    optimizer = kind(model, lr=lr, momentum=0.9)
    inputs = UpdateInputs(state_of(optimizer).map(np.copy), model.grad_arena.copy(), [optimizer.scheduled], 0)
    optimizer.step()
    return UpdateClaim(optimizer, inputs, QUANTITIES, tensors_of(state_of(optimizer), optimizer))


def test_a_right_step_agrees() -> None:
    claim = claim_of(SGD, 0.1)
    assert [pair.quantity.name for pair in claim.pairs] == list(NAMES)
    assert not beyond_tolerance(claim.pairs)
    again = claim.in_float64()
    assert again.dtype == np.float64
    assert {pair.quantity.tolerance for pair in again.pairs} == {UPDATE["float64"]}
    assert not beyond_tolerance(again.pairs)


@pytest.mark.parametrize(("lr", "shows_in_float32"), [(0.1, True), (1e-6, False)])
def test_a_wrong_step_shows_in_float64(lr: float, shows_in_float32: bool) -> None:
    claim = claim_of(Wrong, lr)
    failed = beyond_tolerance(claim.pairs)
    assert bool(failed) == shows_in_float32
    found = judged(claim, failed)
    assert [pair.quantity.name for pair in found.wrong] == ["updated 0.weight", "updated 0.bias"]
    assert not found.rounding
    again = claim.in_float64()
    assert not explained(again, beyond_tolerance(again.pairs))


def test_what_does_not_run_in_float64_is_said() -> None:
    with pytest.raises(CannotCompare, match="TypeError: float32 alone"):
        claim_of(OnlyInFloat32, 0.1).in_float64()
