"""A step made again in float64, on a copy of the model that serves many steps."""

from __future__ import annotations

import numpy as np
import pytest
from stateful import Drop, model_of

from nn_manual import SGD, BatchNorm1d, Layer, Linear, MSELoss, ReLU, Sequential
from nn_manual.arrays import Array
from nn_manual.check.compare.worst import beyond_tolerance
from nn_manual.check.judge import in_float64 as again
from nn_manual.check.judge.in_float64 import Again
from nn_manual.check.step.proof import Proof
from nn_manual.check.whole_step.checker import GradientChecker


@pytest.fixture
def checker() -> GradientChecker:
    model = Sequential(Linear(3, 4, bias=False), BatchNorm1d(4), ReLU(), Linear(4, 2), seed=0)
    return GradientChecker(model, MSELoss(), SGD(model, lr=0.1))


def step_of(checker: GradientChecker, seed: int) -> Proof:
    """A step on a batch of its own, from where the last one ended."""
    generator = np.random.default_rng(seed)
    input, target = (generator.standard_normal((8, size)).astype("float32") for size in (3, 2))
    with checker.recording():
        checker.run(input, target)
        assert checker.optimizer is not None
        checker.optimizer.step()
    checker.compare()
    return checker.proof()


def made_again(judge: Again, step: Proof, checker: GradientChecker) -> dict[str, Array]:
    return {pair.quantity.name: pair.ours.copy() for pair in judge(step, checker.judge._made_twins()[0]).pairs}


def test_the_copy_stands_where_the_step_began(checker: GradientChecker) -> None:
    for seed in range(3):
        step = step_of(checker, seed)
        found = made_again(checker.judge._again, step, checker)
        fresh = made_again(Again(checker.model, checker.loss, input_grad=False), step, checker)
        assert found.keys() == fresh.keys()
        for name, values in found.items():
            assert values.dtype == np.float64
            np.testing.assert_array_equal(values, fresh[name])


def test_the_model_is_copied_where_more_than_numbers_has_changed(
    checker: GradientChecker, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = list[int]()
    in_float64 = again.in_float64

    def counted(model: Sequential, param: Array, buffers: dict[str, Array]) -> Sequential:
        copied.append(len(copied))
        return in_float64(model, param, buffers)

    monkeypatch.setattr(again, "in_float64", counted)
    judge, layer = Again(checker.model, checker.loss, input_grad=False), checker.model.layers[2]
    for seed in range(3):
        made_again(judge, step_of(checker, seed), checker)
    assert len(copied) == 1
    forward = layer.forward
    monkeypatch.setattr(layer, "forward", lambda input: forward(input))
    made_again(judge, step_of(checker, 3), checker)
    assert len(copied) == 2


@pytest.mark.parametrize("base", [Drop, Layer])
def test_torch_has_the_noise_of_the_step_that_is_made_again(base: type[Layer]) -> None:
    """1 / 0.7 isn't a number of float32: the mask of the step is another one in float64. Without `reference`, the layer
    is compared with differences of its own forward.
    """
    own = {name: method for name, method in vars(Drop).items() if name != "reference"}
    model = model_of(type("Masked", (base,), own)(p=0.3))
    checker = GradientChecker(model, MSELoss())
    generator = np.random.default_rng(0)
    input, target = (generator.standard_normal((8, size)).astype("float32") for size in (3, 4))
    with checker.recording():
        checker.run(input, target)
    step = checker.proof()
    again = checker.judge._again(step, checker.judge._made_twins()[0])
    assert set(np.unique(again.recorded.layers[1].layer.noise.mask)) == {0, 1 / 0.7}
    assert beyond_tolerance(again.pairs) == []
