"""Targets are looked at once, and evaluation in slices gives what the whole gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from classifiers import BATCH, classifier, examples

from nn_manual.arrays import Array, Shape
from nn_manual.data import Examples
from nn_manual.layers import Embedding, Flatten, Identity, Linear, Tanh
from nn_manual.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CrossEntropyLoss,
    Loss,
    MSELoss,
    MultiLabelSoftMarginLoss,
    TraceLoss,
)
from nn_manual.model import Sequential
from nn_manual.optim import SGD
from nn_manual.trainer import evaluation_slices as slices
from nn_manual.trainer.trainer import Trainer


def record_sizes(trainer: Trainer) -> list[int]:
    """How many examples each later call of the model gets."""
    sizes: list[int] = []
    infer = type(trainer.model).infer

    def recording(input: Array) -> Any:
        sizes.append(len(input))
        return infer(trainer.model, input)

    trainer.model.infer = recording  # type: ignore[method-assign, assignment]  # stands in for it on this model alone
    return sizes


def in_slices(trainer: Trainer, monkeypatch: pytest.MonkeyPatch, size: int) -> list[int]:
    """Evaluate so many examples at a time; how many those are."""
    shape: Shape = (1, 2)
    num_elements = 0
    for layer in trainer.model.layers:
        shape = layer.output_shape(shape)
        num_elements += shape[1]
    monkeypatch.setattr(slices, "EVALUATION_BYTES", size * num_elements * trainer.model.dtype.itemsize)
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
        with pytest.raises(ValueError, match=r"not \(6, 4\) and int64 \(5,\)"):
            trainer.train_step(input, target[:5])
        with pytest.raises(TypeError, match=r"takes int64 class indices as target, or .* float64, not float32"):
            trainer.train_step(input, target.astype(np.float32))

    def test_as_many_as_inputs(self) -> None:
        data = Examples(examples(30).input, examples(31).target)
        for work in (
            lambda: list(classifier().epoch(data, BATCH, seed=0, epoch=0)),
            lambda: classifier().evaluate(data),
        ):
            with pytest.raises(ValueError, match=r"not \(30, 4\) and int64 \(31,\)"):
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
            monkeypatch.setattr(slices, "EVALUATION_BYTES", int(allowed * bytes_of_one))
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
        with pytest.raises(ValueError, match=r"^CrossEntropyLoss ignores every target of the data$"):
            trainer.evaluate(data)
        with pytest.raises(ValueError, match=r"^CrossEntropyLoss ignores every target of the data$"):
            next(trainer.epoch(data, BATCH, seed=0, epoch=0))
        assert trainer.num_steps == 0

    def test_of_positions_and_of_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A language model, whose predictions are rows of their own, and the same with the classes along axis 1."""
        generator = np.random.default_rng(0)
        tokens, target = generator.integers(0, 4, (2, 30, 5))
        target[0], target[7, 2:] = -100, -100
        layers = [Embedding(4, 3), Flatten(0, 1), Linear(3, 4)]
        model = Sequential(*layers, seed=0, dtype="float64")
        rows = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1))
        prediction = model(tokens)
        assert prediction.shape == (150, 4)
        is_right = prediction.argmax(axis=1).reshape(30, 5) == target
        expected = is_right.sum() / (target != -100).sum()
        loss = CrossEntropyLoss().forward(prediction, target.ravel())[0]
        in_slices(rows, monkeypatch, 7)
        assert rows.evaluate(Examples(tokens, target)) == pytest.approx((loss, expected), rel=1e-14)
        for step in rows.epoch(Examples(tokens, target), 8, seed=0, epoch=0):
            assert step.check is not None
            assert step.num_examples in (8, 6)
        positions = Sequential(Linear(5, 5, bias=False), dtype="float64")
        positions.load_state_dict({"0.weight": np.eye(5)})
        input = prediction.reshape(30, 5, 4).swapaxes(1, 2).copy()
        dense = Trainer(positions, CrossEntropyLoss(), SGD(positions, lr=0.1))
        assert dense.evaluate(Examples(input, target)) == pytest.approx((loss, expected), rel=1e-14)
        assert dense.train_step(input, target).check is not None

    def test_probabilities_have_no_accuracy(self) -> None:
        trainer, input = classifier(), examples(30).input
        target = np.full((30, 4), 0.25)
        assert trainer.train_step(input, target).check is not None
        evaluation = trainer.evaluate(Examples(input, target))
        assert evaluation == (CrossEntropyLoss().forward(trainer.model(input), target)[0], None)

    @pytest.mark.parametrize("loss", [BCEWithLogitsLoss(), MultiLabelSoftMarginLoss(), BCEWithLogitsLoss("sum")])
    def test_logits_of_labels_are_right_on_their_side_of_0(
        self, monkeypatch: pytest.MonkeyPatch, loss: Loss
    ) -> None:
        model = Sequential(Linear(2, 3), dtype="float64")
        trainer = Trainer(model, loss, SGD(model), check_every=0)
        input = examples(30).input
        target = (np.random.default_rng(0).random((30, 3)) < 0.5).astype(np.float64)
        in_slices(trainer, monkeypatch, 7)
        evaluation = trainer.evaluate(Examples(input, target))
        right = np.abs(1 / (1 + np.exp(-model(input))) - target) < 0.5
        assert evaluation.accuracy == right.mean()
        assert 0.2 < right.mean() < 0.8
        target[29, 2] = 0.5  # in the last slice: a probability, so none of them is a label
        assert trainer.evaluate(Examples(input, target)).accuracy is None

    def test_probabilities_of_labels_are_right_on_their_side_of_a_half(self) -> None:
        model = Sequential(Identity(), dtype="float64")
        trainer = Trainer(model, BCELoss(), SGD(model), check_every=0)
        probabilities = np.array([[0.4, 0.6], [0.9, 0.2], [0.5, 0.51]])
        target = np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]])
        assert trainer.evaluate(Examples(probabilities, target)).accuracy == 0.5

    def test_weights_are_those_of_the_whole_set(self, monkeypatch: pytest.MonkeyPatch) -> None:
        trainer = classifier(check_every=0)
        trainer.loss = CrossEntropyLoss(weight=[0.1, 5, 1, 2])
        data = examples(30)
        in_slices(trainer, monkeypatch, 7)
        whole = trainer.loss.forward(trainer.model(data.input), data.target)[0]
        assert trainer.evaluate(data).loss == pytest.approx(whole, rel=1e-14)

    def test_a_sum_has_what_smoothing_gives_to_targets_of_weight_0(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """The second slice has such targets alone."""
        trainer = classifier(check_every=0)
        trainer.loss = CrossEntropyLoss("sum", 0.1, [1, 1, 0, 2])
        data = examples(30)
        data.target[7:14] = 2
        in_slices(trainer, monkeypatch, 7)
        whole = trainer.loss.forward(trainer.model(data.input), data.target)[0]
        assert trainer.evaluate(data).loss == pytest.approx(whole, rel=1e-14)

    def test_a_mean_weighs_by_examples_and_a_sum_adds(self) -> None:
        model = Sequential(Linear(2, 1))
        batches = [(1.0, 3), (5.0, 1)]
        assert Trainer(model, MSELoss(), SGD(model), check_every=0).mean_loss("", batches) == 2
        assert Trainer(model, MSELoss("sum"), SGD(model), check_every=0).mean_loss("", batches) == 6
