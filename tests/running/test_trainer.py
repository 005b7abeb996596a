"""The training step by hand, epochs of it, and that the check of a step covers all that the step does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from comparing import assert_equal
from stateful import Averaged, Center, Drop

from nn_manual.arrays import Array, Shape
from nn_manual.data import Examples
from nn_manual.errors import GradientMismatch, NotFiniteError
from nn_manual.layers import Layer, Linear, ReLU, Tanh
from nn_manual.losses import CrossEntropyLoss, Loss, MSELoss, TraceLoss
from nn_manual.model import Sequential
from nn_manual.optim import SGD, ReduceLROnPlateau, StepLR
from nn_manual.running import trainer as trainer_module
from nn_manual.running.trainer import Step, Trainer

BATCH = 8


def examples(num_examples: int = 30, dtype: str = "float64") -> Examples:
    """Points of the plane and the quadrant that each lies in."""
    input = np.random.default_rng(0).standard_normal((num_examples, 2)).astype(dtype)
    return Examples(input, ((input[:, 0] > 0) + 2 * (input[:, 1] > 0)).astype(np.int64))


def classifier(dtype: str = "float64", **settings: Any) -> Trainer:
    model = Sequential(Linear(2, 6), Tanh(), Linear(6, 5), ReLU(), Linear(5, 4), dtype=dtype)
    return Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1, momentum=0.9), **settings)


def train(trainer: Trainer, num_epochs: int = 2) -> list[Step]:
    data = examples(dtype=str(trainer.model.dtype))
    return [step for epoch in range(num_epochs) for step in trainer.epoch(data, BATCH, seed=0, epoch=epoch)]


def test_a_step_is_its_formula() -> None:
    model = Sequential(Linear(3, 2), dtype="float64")
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((4, 3)), generator.standard_normal((4, 2))
    weight, bias = model.layers[0].param.weight.copy(), model.layers[0].param.bias.copy()
    difference = input @ weight.T + bias - target
    step = Trainer(model, MSELoss(), SGD(model, lr=0.5)).train_step(input, target)
    assert (step.number, step.num_examples) == (1, 4)
    assert step.loss == pytest.approx((difference**2).mean(), rel=1e-15)
    assert_equal(model.layers[0].param.weight, weight - 0.5 * 2 / 8 * difference.T @ input)
    assert_equal(model.layers[0].param.bias, bias - 0.5 * 2 / 8 * difference.sum(axis=0))


@pytest.mark.parametrize("every", [0, 1])
def test_buffers_move_before_the_parameters(every: int) -> None:
    model = Sequential(Averaged(2), dtype="float64")
    weight = model.param_arena.copy()
    input = np.random.default_rng(0).standard_normal((3, 2))
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.5), check_every=every)
    trainer.train_step(input, input)
    assert_equal(model.layers[0].buffer.average, weight / 2)
    second = model.param_arena.copy()
    assert not np.array_equal(weight, second)
    trainer.train_step(input, input)
    assert_equal(model.layers[0].buffer.average, weight / 4 + second / 2)


def test_an_epoch_takes_every_example_once_the_last_batch_smaller() -> None:
    steps = train(classifier(check_every=0))
    assert [step.number for step in steps] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [step.num_examples for step in steps] == 2 * [8, 8, 8, 6]
    assert [step.denominator for step in steps] == 2 * [8, 8, 8, 6]
    assert steps[-1].loss < steps[0].loss


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


def test_the_schedule_counts_from_the_optimizers_own_lr() -> None:
    trainer = classifier(lr_scheduler=StepLR(2, 0.1))
    lrs = []
    for epoch in range(5):
        list(trainer.epoch(examples(), BATCH, seed=0, epoch=epoch))
        lrs.append(trainer.optimizer.lr)
    assert lrs == pytest.approx([0.1, 0.1, 0.01, 0.01, 0.001], rel=1e-15)


def test_each_group_follows_the_schedule_from_its_own_lr() -> None:
    model = Sequential(Linear(2, 4), dtype="float64")
    optimizer = SGD(model, lr=0.1, groups=[{"parameters": "*.bias", "lr": 0.4}])
    trainer = Trainer(model, CrossEntropyLoss(), optimizer, lr_scheduler=StepLR(2, 0.5))
    lrs = []
    for epoch in range(4):
        list(trainer.epoch(examples(), BATCH, seed=0, epoch=epoch))
        lrs.append([member.lr for member in optimizer.members])
    assert lrs == [[0.1, 0.4], [0.1, 0.4], [0.05, 0.2], [0.05, 0.2]]


@pytest.mark.parametrize("every", [1, 3])
def test_a_schedule_may_count_steps(every: int) -> None:
    trainer = classifier(lr_scheduler=StepLR(3, 0.5), lr_step="step", check_every=every)
    lrs = []
    for epoch in range(2):
        for _ in trainer.epoch(examples(), BATCH, seed=0, epoch=epoch):
            lrs.append(trainer.optimizer.lr)
    assert lrs == [0.1, 0.1, 0.1, 0.05, 0.05, 0.05, 0.025, 0.025]


def test_a_schedule_sees_the_losses_that_it_is_shown() -> None:
    trainer = classifier(lr_scheduler=ReduceLROnPlateau(patience=1, factor=0.5))
    lrs = []
    for epoch, loss in enumerate([3.0, 2.0, 2.0, 2.5, 1.0, 1.0]):
        list(trainer.epoch(examples(), BATCH, seed=0, epoch=epoch))
        lrs.append(trainer.optimizer.lr)
        trainer.observe(loss)
    assert lrs == [0.1, 0.1, 0.1, 0.1, 0.05, 0.05]


def test_clipping_bounds_the_gradient() -> None:
    trainer = classifier(clip_grad_norm=0.01)
    train(trainer, 1)
    assert np.linalg.norm(trainer.model.grad_arena) == pytest.approx(0.01, rel=1e-3)  # torch's 1e-6 beside the norm


class TestSabotage:
    """What goes wrong around the layers must be caught as well as what goes wrong in them."""

    @pytest.mark.parametrize("every", [1, 3])
    def test_of_clipping(self, monkeypatch: pytest.MonkeyPatch, every: int) -> None:
        def clip_each_element(grad: Array, max_norm: float) -> None:
            np.clip(grad, -max_norm, max_norm, out=grad)

        monkeypatch.setattr(trainer_module, "clip_grad_norm", clip_each_element)
        with pytest.raises(GradientMismatch, match="clip"):
            train(classifier(clip_grad_norm=0.1, check_every=every))

    def test_of_clipping_left_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(trainer_module, "clip_grad_norm", lambda grad, max_norm: None)  # noqa: ARG005
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
        with pytest.raises(GradientMismatch, match=r"scheduler: lr is 0\.001\d*, torch's is\s0\.01"):
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
            (Cuts(), r"1 \(Cuts\): infer returned \(1, 4\), torch's in evaluation\s\(3, 4\)"),
            (Doubles(), r"wrong first in 1 \(Doubles\): 1\.infer"),
            (DoublesInPlace(), r"1 \(DoublesInPlace\): infer wrote into its input"),
        ],
    )
    def test_after_a_checked_step(self, layer: Layer, words: str) -> None:
        trainer, data = self.trainer(layer), self.data()
        trainer.train_step(data.input[:3], data.target[:3])
        with pytest.raises(GradientMismatch, match=words):
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


def record_sizes(trainer: Trainer) -> list[int]:
    """How many examples each later call of the model gets."""
    sizes: list[int] = []
    infer = type(trainer.model).infer

    def recording(input: Array) -> Any:
        sizes.append(len(input))
        return infer(trainer.model, input)

    trainer.model.infer = recording  # type: ignore[method-assign]  # stands in for it on this model alone
    return sizes


def in_slices(trainer: Trainer, monkeypatch: pytest.MonkeyPatch, size: int) -> list[int]:
    """Evaluate so many examples at a time; how many those are."""
    shape: Shape = (1, 2)
    num_elements = 0
    for layer in trainer.model.layers:
        shape = layer.output_shape(shape)
        num_elements += shape[1]
    monkeypatch.setattr(trainer_module, "EVALUATION_BYTES", size * num_elements * trainer.model.dtype.itemsize)
    return record_sizes(trainer)


def record_targets(loss: Loss) -> list[int]:
    """How many targets the loss is asked about at a time, from now on."""
    asked: list[int] = []
    check_target = loss.check_target

    def recording(prediction: Array, target: Array) -> None:
        asked.append(len(target))
        check_target(prediction, target)

    loss.check_target = recording  # type: ignore[method-assign]  # stands in for it on this loss alone
    return asked


class TestTargets:
    """The loss is asked about each target once: of a data set about all together, of a batch of one's own about it."""

    @pytest.mark.parametrize("every", [0, 1])
    def test_each_is_looked_at_once(self, every: int) -> None:
        trainer = classifier(check_every=every)
        data, asked = examples(30), record_targets(trainer.loss)
        list(trainer.epoch(data, BATCH, seed=0, epoch=0))
        assert asked == [30]
        trainer.evaluate(data)
        assert asked == [30, 30]
        trainer.train_step(data.input[:5], data.target[:5])
        assert asked == [30, 30, 5]

    @pytest.mark.parametrize("every", [0, 1])
    def test_a_wrong_one_is_named_by_its_place_in_the_data(self, every: int) -> None:
        trainer = classifier(check_every=every)
        data = examples(30)
        data.target[21] = 4
        message = r"^CrossEntropyLoss: label 4 at index 21 is outside 0 \.\.\. 3"
        with pytest.raises(ValueError, match=message):
            list(trainer.epoch(data, BATCH, seed=0, epoch=0))
        with pytest.raises(ValueError, match=message):
            trainer.evaluate(data)
        assert np.array_equal(trainer.model.param_arena, classifier().model.param_arena)  # nothing was trained

    @pytest.mark.parametrize("every", [0, 1])
    def test_of_a_batch_of_ones_own(self, every: int) -> None:
        trainer = classifier(check_every=every)
        input, target = examples(6)
        with pytest.raises(ValueError, match=r"label -1 at index 3 is outside 0 \.\.\. 3"):
            trainer.train_step(input, np.array([0, 1, 2, -1, 0, 4]))
        with pytest.raises(ValueError, match=r"not \(6, 4\) and \(5,\)"):
            trainer.train_step(input, target[:5])
        with pytest.raises(TypeError, match="takes int64 class indices as target, not float64"):
            trainer.train_step(input, target * 1.0)

    def test_as_many_as_inputs(self) -> None:
        data = Examples(examples(30).input, examples(31).target)
        for work in (
            lambda: list(classifier().epoch(data, BATCH, seed=0, epoch=0)),
            lambda: classifier().evaluate(data),
        ):
            with pytest.raises(ValueError, match=r"not \(30, 4\) and \(31,\)"):
                work()


class TestEvaluate:
    def test_slices_give_the_whole(self, monkeypatch: pytest.MonkeyPatch) -> None:
        trainer = classifier(check_every=0)
        data = examples(30)
        whole = trainer.evaluate(data)
        prediction = trainer.model(data.input)
        assert whole.loss == CrossEntropyLoss().forward(prediction, data.target)[0]
        assert whole.accuracy == (prediction.argmax(axis=1) == data.target).mean()
        sizes = in_slices(trainer, monkeypatch, 7)
        sliced = trainer.evaluate(data)
        assert sizes == [7, 7, 7, 7, 2]
        assert sliced.accuracy == whole.accuracy
        assert sliced.loss == pytest.approx(whole.loss, rel=1e-14)

    @pytest.mark.parametrize("loss", [MSELoss(), MSELoss("sum"), TraceLoss()])
    def test_a_regression_has_no_accuracy(self, monkeypatch: pytest.MonkeyPatch, loss: Loss) -> None:
        model = Sequential(Linear(2, 1), dtype="float64")
        trainer = Trainer(model, loss, SGD(model), check_every=0)
        data = Examples(examples().input, examples().input[:, :1] ** 2)
        in_slices(trainer, monkeypatch, 7)
        evaluation = trainer.evaluate(data)
        assert evaluation.accuracy is None
        assert evaluation.loss == pytest.approx(loss.forward(model(data.input), data.target)[0], rel=1e-14)

    def test_activations_stay_within_the_bytes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = Sequential(Linear(2, 6), Sequential(Tanh(), Linear(6, 4)), dtype="float64")
        trainer = Trainer(model, MSELoss(), SGD(model), check_every=0)
        data = Examples(examples(100).input, np.zeros((100, 4)))
        bytes_of_one = 8 * (6 + 6 + 4)
        for allowed, expected in [(100, 100), (50, 50), (33.5, 33), (1, 1), (0.5, 1)]:
            monkeypatch.setattr(trainer_module, "EVALUATION_BYTES", int(allowed * bytes_of_one))
            sizes = record_sizes(trainer)
            trainer.evaluate(data)
            assert sizes[0] == expected
            assert sum(sizes) == 100

    def test_what_is_ignored_counts_nowhere(self, monkeypatch: pytest.MonkeyPatch) -> None:
        trainer = classifier(check_every=0)
        data = examples(30)
        data.target[[0, 1, 2, 3, 4, 5, 6, 11]] = -100  # a whole slice of it
        kept = Examples(data.input[data.target >= 0], data.target[data.target >= 0])
        expected = trainer.evaluate(kept)
        in_slices(trainer, monkeypatch, 7)
        found = trainer.evaluate(data)
        assert found.loss == pytest.approx(expected.loss, rel=1e-14)
        assert found.accuracy == expected.accuracy
        data.target[:] = -100
        with pytest.raises(NotFiniteError, match=r"^the validation loss is nan at step 0$"):
            trainer.evaluate(data)

    def test_weights_are_those_of_the_whole_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        trainer = classifier(check_every=0)
        trainer.loss = CrossEntropyLoss(weight=[0.1, 5, 1, 2])
        data = examples(30)
        in_slices(trainer, monkeypatch, 7)
        whole = trainer.loss.forward(trainer.model(data.input), data.target)[0]
        assert trainer.evaluate(data).loss == pytest.approx(whole, rel=1e-14)

    def test_a_mean_weighs_by_examples_and_a_sum_adds(self) -> None:
        model = Sequential(Linear(2, 1))
        batches = [(1.0, 3), (5.0, 1)]
        assert Trainer(model, MSELoss(), SGD(model), check_every=0).mean_loss("", batches) == 2
        assert Trainer(model, MSELoss("sum"), SGD(model), check_every=0).mean_loss("", batches) == 6


class TestNotFinite:
    """Overflow is an error of its own, checked or not."""

    @pytest.mark.parametrize("every", [0, 1])
    @pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
    def test_loss(self, every: int) -> None:
        model = Sequential(Linear(2, 1))
        trainer = Trainer(model, MSELoss(), SGD(model), check_every=every)
        with pytest.raises(NotFiniteError, match=r"^the loss is inf at step 1$"):
            trainer.train_step(np.ones((2, 2), np.float32), np.full((2, 1), 1e30, np.float32))

    @pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
    def test_the_last_step_of_an_epoch(self) -> None:
        # The loss and the gradient are finite: only the step overflows, and no later loss could show it.
        model = Sequential(Linear(2, 1))
        trainer = Trainer(model, MSELoss(), SGD(model, lr=1e38), check_every=0)
        data = Examples(np.full((2, 2), 1e3, np.float32), np.ones((2, 1), np.float32))
        with pytest.raises(NotFiniteError, match=r"^the largest magnitude in 0\.weight is inf at step 1$"):
            list(trainer.epoch(data, 2, seed=0, epoch=0))

    @pytest.mark.parametrize("loss", [MSELoss(), MSELoss("sum")])
    def test_the_losses_of_an_epoch_together(self, loss: Loss) -> None:
        # A mean of finite losses is finite, a sum of them need not be.
        model = Sequential(Linear(2, 1), dtype="float64")
        trainer = Trainer(model, loss, SGD(model), check_every=0)
        batches = 3 * [(1.5e308, 2)]
        if loss.reduction == "mean":
            assert trainer.mean_loss("the training loss", batches) == pytest.approx(1.5e308)
        else:
            with pytest.raises(NotFiniteError, match=r"^the training loss is inf at step 0$"):
                trainer.mean_loss("the training loss", batches)


class TestSettings:
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"check_every": -1}, "check_every must be at least 0, not -1"),
            ({"clip_grad_norm": 0.0}, "clip_grad_norm must be above 0, not 0.0"),
            ({"clip_grad_norm": math.nan}, "clip_grad_norm must be above 0, not nan"),
            ({"lr_step": "batch"}, "lr_step must be epoch or step, not batch"),
            (
                {"lr_step": "step", "lr_scheduler": ReduceLROnPlateau()},
                "lr_step must be epoch with ReduceLROnPlateau: a validation loss comes once an epoch",
            ),
        ],
    )
    def test_out_of_range(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=f"^{message}$"):
            classifier(**settings)

    def test_the_optimizer_of_another_model(self) -> None:
        model, other = Sequential(Linear(2, 1)), Sequential(Linear(2, 1))
        with pytest.raises(ValueError, match="another model"):
            Trainer(model, MSELoss(), SGD(other))


@pytest.mark.parametrize("every", [1, 2])
def test_epochs_may_be_run_again(every: int) -> None:
    """A schedule follows the epoch that is asked for, and torch's goes back with it."""
    trainer = classifier(lr_scheduler=StepLR(1, 0.5), check_every=every)
    for _ in range(2):
        train(trainer)
    assert trainer.num_steps > 4
