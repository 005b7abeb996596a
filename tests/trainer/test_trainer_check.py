"""The check of steps: which are checked, that all that goes wrong around the layers is caught, and evaluation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from classifiers import classifier, train
from stateful import Center, Drop

from nn_manual.arrays import Array
from nn_manual.data import Examples
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.layers import Layer, Linear, Residual, Tanh
from nn_manual.losses import MSELoss
from nn_manual.model import Sequential
from nn_manual.optim import SGD, ReduceLROnPlateau, StepLR, clipping
from nn_manual.trainer.trainer import Trainer


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_which_steps_are_checked_changes_no_parameter(dtype: str) -> None:
    settings = {"clip_grad_norm": 0.3, "lr_scheduler": StepLR(1, 0.5)}
    trainers = {every: classifier(dtype, check_every=every, **settings) for every in (0, 1, 3)}
    checked = {every: [step.number for step in train(trainers[every], 3) if step.check] for every in trainers}
    assert checked == {0: [], 1: list(range(1, 13)), 3: [3, 6, 9, 12]}
    for trainer in trainers.values():
        assert np.array_equal(trainer.model.param_arena, trainers[0].model.param_arena)
        assert not np.array_equal(trainer.model.param_arena, classifier(dtype, check_every=0).model.param_arena)


def test_a_check_covers_every_tensor_of_the_step() -> None:
    check = train(classifier(), 1)[0].check
    assert check is not None
    # 5 outputs, loss, grad_prediction, 6 parameters' gradients, 4 inner grad_inputs, 6 momentum buffers, 6 parameters
    assert len(check.plan.quantities) == len(check.absolute) == 5 + 1 + 1 + 6 + 4 + 2 * 6


class TestSabotage:
    """What goes wrong around the layers must be caught as well as what goes wrong in them."""

    @pytest.mark.parametrize("every", [1, 3])
    def test_of_clipping(self, monkeypatch: pytest.MonkeyPatch, every: int) -> None:
        def clip_each_element(grad: Array, max_norm: float) -> None:
            np.clip(grad, -max_norm, max_norm, out=grad)

        monkeypatch.setattr(clipping, "clip_grad_norm", clip_each_element)
        with pytest.raises(GradientMismatch, match="clip"):
            train(classifier(clip_grad_norm=0.1, check_every=every))

    def test_of_clipping_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(clipping, "clip_grad_norm", lambda grad, max_norm: None)  # noqa: ARG005
        with pytest.raises(GradientMismatch, match="clip"):
            train(classifier(clip_grad_norm=0.1))

    @pytest.mark.parametrize("every", [1, 3])
    def test_of_the_schedule(self, monkeypatch: pytest.MonkeyPatch, every: int) -> None:
        monkeypatch.setattr(StepLR, "lr", lambda self, initial, epoch: initial * self.gamma**epoch)
        trainer = classifier(lr_scheduler=StepLR(2, 0.1), check_every=every)
        with pytest.raises(GradientMismatch, match=r"scheduler: lr is 0\.01\d*, torch's is 0\.1"):
            train(trainer)
        assert trainer.num_steps == 4  # the first epoch's lr is right

    def test_of_a_schedule_that_counts_steps(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(StepLR, "lr", lambda self, initial, count: initial * self.gamma**count)
        trainer = classifier(lr_scheduler=StepLR(2, 0.1), lr_step="step", check_every=3)
        with pytest.raises(GradientMismatch, match=r"scheduler: lr is 0\.001\d*, torch's is\s+0\.01"):
            train(trainer)
        assert trainer.num_steps == 2  # the third is checked, before it is made

    def test_of_a_schedule_that_watches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(ReduceLROnPlateau, "observe", lambda self, loss: None)  # noqa: ARG005
        trainer = classifier(lr_scheduler=ReduceLROnPlateau(patience=0))
        trainer.start_epoch(0)
        trainer.observe(1.0)
        with pytest.raises(GradientMismatch, match=r"scheduler: best is inf, torch's is 1\.0"):
            trainer.start_epoch(1)

    def test_of_the_optimizer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        step = SGD.step

        def without_momentum(self: SGD) -> None:
            self.vectors["momentum_buffer"][...] = 0
            step(self)

        monkeypatch.setattr(SGD, "step", without_momentum)
        trainer = classifier()
        with pytest.raises(GradientMismatch, match="optimizer"):
            train(trainer)
        assert trainer.num_steps == 2  # the first step has no momentum

    def test_of_a_layer(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Tanh, "backward", lambda self, saved, grad_output: grad_output * (1 - saved))  # noqa: ARG005
        with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(Tanh\): 1\.grad_input"):
            train(classifier())


class Cuts(Drop):
    """Its output in evaluation broadcasts against the targets."""

    def infer(self, input: Array) -> Array:
        return input[:1]


class Doubles(Drop):
    def infer(self, input: Array) -> Array:
        return 2 * input


class DoublesInPlace(Drop):
    def infer(self, input: Array) -> Array:
        input *= 2
        return input


class Overflows(Center):
    """Right, and evaluates to infinity."""

    def infer(self, input: Array) -> Array:
        return super().infer(input) / np.zeros_like(input)

    def infer_reference(self, input: Any, mean: Any) -> Any:
        return super().infer_reference(input, mean) / 0


class TestEvaluationIsCompared:
    @staticmethod
    def trainer(layer: Layer, every: int = 1) -> Trainer:
        model = Sequential(Linear(2, 4), layer, dtype="float64")
        return Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=every)

    @staticmethod
    def data() -> Examples:
        generator = np.random.default_rng(0)
        return Examples(generator.standard_normal((6, 2)), generator.standard_normal((6, 4)))

    @pytest.mark.parametrize(
        ("layer", "words"),
        [
            (Cuts(), r"1 \(Cuts\): infer returned \(1, 4\), torch's in evaluation\s+\(3, 4\)"),
            (Doubles(), r"wrong first in 1 \(Doubles\): 1\.infer"),
            (DoublesInPlace(), r"1 \(DoublesInPlace\): infer wrote into its input"),
        ],
    )
    def test_after_a_checked_step(self, layer: Layer, words: str) -> None:
        trainer, data = self.trainer(layer), self.data()
        trainer.train_step(data.input[:3], data.target[:3])
        with pytest.raises(GradientMismatch, match=words):
            trainer.evaluate(data)

    def test_where_nothing_is_held_out(self) -> None:
        """Whoever calls the model then runs what no evaluation has."""
        with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(Doubles\): 1\.infer"):
            self.trainer(Doubles()).fit(self.data(), epochs=1, batch_size=3, seed=0, verbose=False)

    @pytest.mark.parametrize(("wrap", "label"), [(lambda layer: layer, "1"), (Residual, "1.0")])
    def test_after_a_later_step_of_another_size_which_is_not_checked(self, wrap: Any, label: str) -> None:
        trainer, data = self.trainer(wrap(Doubles()), every=2), self.data()
        for rows in (slice(3), slice(3), slice(2)):
            trainer.train_step(data.input[rows], data.target[rows])
        with pytest.raises(GradientMismatch, match=rf"wrong first in {label} \(Doubles\): {label}\.infer"):
            trainer.evaluate(data)

    def test_not_before_one(self) -> None:
        trainer, data = self.trainer(Doubles(), every=2), self.data()
        trainer.evaluate(data)
        trainer.train_step(*data)
        trainer.evaluate(data)
        trainer.train_step(*data)
        with pytest.raises(GradientMismatch):
            trainer.evaluate(data)

    def test_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        layer = Center()
        trainer, data = self.trainer(layer), self.data()
        for _ in range(2):
            trainer.train_step(*data)
            trainer.evaluate(data)
            monkeypatch.setattr(Center, "infer_reference", None)

    @pytest.mark.parametrize("every", [0, 1])
    def test_infinity_is_not_finite_and_no_mismatch(self, every: int) -> None:
        trainer, data = self.trainer(Overflows(), every), self.data()
        trainer.train_step(*data)
        with np.errstate(divide="ignore"), pytest.raises(NotFiniteError, match="the validation loss is inf at step 1"):
            trainer.evaluate(data)

    @pytest.mark.parametrize("every", [0, 2])
    def test_a_prediction_for_each_example_is_asked_of_every_model(self, every: int) -> None:
        trainer, data = self.trainer(Cuts(), every), self.data()
        trainer.train_step(*data)
        with pytest.raises(ValueError, match=r"^in evaluation, the model makes \(1, 4\) of 6 examples$"):
            trainer.evaluate(data)
