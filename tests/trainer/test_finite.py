"""A number that isn't finite is found in the step that makes it, with its tensor, its layer and its first index."""

from __future__ import annotations

import numpy as np
import pytest

from nn_manual import SGD, Adam, BatchNorm1d, Layer, Linear, MSELoss, ReLU, Sequential, Trainer
from nn_manual.arrays import Array
from nn_manual.errors import NotFiniteError
from nn_manual.layers import CausalSelfAttention, SpectralNorm
from nn_manual.model.initializers import Constant
from nn_manual.trainer.finite import not_finite_in_step

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


def words_of(trainer: Trainer, input: Array) -> str:
    """What the error of a step says."""
    with trainer.finite.watching(), pytest.raises(NotFiniteError) as caught:
        trainer.train_step(input.astype(np.float32), np.zeros((len(input), 1), np.float32))
    return str(caught.value)


def test_an_output_on_the_way_to_the_loss() -> None:
    model = Sequential(Linear(2, 2, bias=False), Sequential(Linear(2, 1)), initializer=Constant(1.0))
    vars(model.param)["1.0.weight"][...] = 3e38
    before = model.param_arena.copy()
    trainer = Trainer(model, MSELoss(), SGD(model), check_every=0)
    words = words_of(trainer, np.array([[0, 0], [9, 9]]))
    assert words == "1.0.output of 1.0 (Linear) holds inf at index (1, 0) at step 1"
    assert np.array_equal(model.param_arena, before)  # it can be looked at


def test_a_gradient_is_named_before_what_it_spoils() -> None:
    model = Sequential(Linear(1, 1, bias=False), Linear(1, 1, bias=False), initializer=Constant(1.0))
    trainer = Trainer(model, MSELoss(), SGD(model, momentum=0.9), check_every=0)
    vars(model.param)["1.weight"][...] = 1e-20
    assert words_of(trainer, np.full((1, 1), 3e38)).startswith("1.grad_weight of 1 (Linear) holds inf at index (0, 0)")


def test_what_the_optimizer_keeps() -> None:
    """Adam would stand still from then on."""
    model = Sequential(Linear(1, 1, bias=False), initializer=Constant(1.0))
    trainer = Trainer(model, MSELoss(), Adam(model), check_every=0)
    words = words_of(trainer, np.full((1, 1), 1e11))
    assert words == "0.weight.exp_avg_sq of 0 (Linear) holds inf at index (0, 0) at step 1"


def test_a_buffer() -> None:
    model = Sequential(BatchNorm1d(1))
    trainer = Trainer(model, MSELoss(), SGD(model), check_every=0)
    words = words_of(trainer, np.array([[1e20], [-1e20]]))
    assert words == "0.running_var of 0 (BatchNorm1d) holds inf at index (0,) at step 1"


@pytest.mark.parametrize(
    ("layer", "found"),
    [
        (CausalSelfAttention(2, 1), "0.grad_out_proj.weight of 0 (CausalSelfAttention) holds nan at index (0, 0)"),
        (SpectralNorm(Linear(2, 2)), "0.grad_parametrizations.weight.original of 0 (SpectralNorm) holds nan at index "),
    ],
)
def test_a_parameter_whose_own_name_has_points(layer: Layer, found: str) -> None:
    model = Sequential(layer)
    (name,) = (name for name in vars(model.grad) if name.endswith((".out_proj.weight", ".original")))
    vars(model.grad)[name][...] = np.nan
    assert str(not_finite_in_step(model, SGD(model))).startswith(found)


def test_outside_of_watching_the_next_loss_shows_it() -> None:
    model = Sequential(Linear(1, 1, bias=False), initializer=Constant(1.0))
    trainer = Trainer(model, MSELoss(), SGD(model, lr=1e38), check_every=0)
    input, target = np.full((1, 1), 1e2, np.float32), np.zeros((1, 1), np.float32)
    trainer.train_step(input, target)
    with pytest.raises(NotFiniteError) as caught:
        trainer.train_step(input, target)
    found = "updated 0.weight of 0 (Linear) holds -inf at index (0, 0) since step 1, found at step 2"
    assert str(caught.value) == found


def test_what_overflows_on_the_way_to_a_finite_number_is_no_error() -> None:
    """As in a sigmoid: 1 / (1 + exp(1000)) is 0."""
    model = Sequential(Linear(1, 1, bias=False), Overflowing(), initializer=Constant(1.0))
    trainer = Trainer(model, MSELoss(), SGD(model), check_every=0)
    with trainer.finite.watching():
        trainer.train_step(np.ones((1, 1), np.float32), np.zeros((1, 1), np.float32))


class Overflowing(ReLU):
    def forward(self, input: Array) -> tuple[Array, Array]:
        assert np.exp(np.full(1, 1000, np.float32)) == np.inf
        return super().forward(input)
