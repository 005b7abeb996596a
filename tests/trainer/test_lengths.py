"""Lengths beside the array: through batches, slices, the check, a replayed step and a resumed run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.reliability.kills import end_of
from mismatches import mismatch
from slow_cases import crossed
from stopped_runs import stopped

from nn_manual import (
    Adam,
    AdaptiveAvgPool1d,
    BatchNorm1d,
    Conv1d,
    CrossEntropyLoss,
    Dropout,
    Flatten,
    GradientMismatch,
    Linear,
    MSELoss,
    Padded,
    PaddedLSTM,
    PaddedTimePool,
    Permute,
    Residual,
    Sequential,
    Trainer,
    Unflatten,
    check_gradients,
)
from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.cases import layer_cases
from nn_manual.config import load_config
from nn_manual.data import Examples
from nn_manual.errors import ConfigError, DataError
from nn_manual.layers import Layer, LayerWithLengths
from nn_manual.layers.recurrent import Recurrent
from nn_manual.run.loading import check, load
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run_directory.weights import read_weights
from nn_manual.step.slices.cut import Slicing
from nn_manual.use.evaluate import evaluate
from nn_manual.use.load_run import load_run
from nn_manual.use.replay import replay

NUM_EXAMPLES, TIME = 24, 6
KEPT = (
    "{}, and the data's sequences have 6: the lengths belong to the data's times, which the layers before it must keep"
)


def examples(dtype: str = "float64") -> Examples:
    """A class for each time that counts."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, TIME, NUM_EXAMPLES, endpoint=True)
    target = generator.integers(0, 2, (NUM_EXAMPLES, TIME))
    target[np.arange(TIME) >= lengths[:, np.newaxis]] = -100  # cross-entropy leaves these out
    return Examples(Padded(generator.standard_normal((NUM_EXAMPLES, TIME, 3)).astype(dtype), lengths), target)


def net(dtype: str = "float64") -> Sequential:
    layers = Linear(3, 3), PaddedLSTM(3, 4), Dropout(0.2), Linear(4, 2), Flatten(0, 1)
    return Sequential(*layers, seed=1, dtype=dtype)


def trained(model: Sequential, **settings: Any) -> tuple[Trainer, list[float]]:
    trainer = Trainer(model, CrossEntropyLoss(), Adam(model, lr=0.01), **settings)
    data = examples(model.dtype.name)
    epochs = (trainer.epoch(data, 8, seed=0, epoch=epoch) for epoch in range(4))
    return trainer, [step.loss for epoch in epochs for step in epoch]


@pytest.mark.parametrize(
    "settings",
    [{}, {"check_memory": 0}, {"check_every": 3}, {"slicing": Slicing(2)}, {"slicing": Slicing(2), "check_every": 0}],
    ids=["together", "one by one", "each third", "sliced", "sliced, unchecked"],
)
def test_every_way_of_a_step_is_the_same(settings: dict[str, Any]) -> None:
    """Batches are shuffled, and cut: each sequence keeps its length."""
    plain, losses = trained(net(), check_every=0)
    trainer, others = trained(net(), **settings)
    np.testing.assert_allclose(others, losses, rtol=1e-12)
    np.testing.assert_allclose(trainer.model.param_arena, plain.model.param_arena, rtol=1e-9)
    assert trainer.evaluate(examples()).loss == pytest.approx(plain.evaluate(examples()).loss, rel=1e-12)


def test_slices_that_run_side_by_side_are_compared_with_the_lengths_of_all() -> None:
    losses, synchronized = [], Slicing(3, sync_batch_norm=True)
    for settings in ({"check_every": 0}, {"slicing": synchronized, "check_every": 0}, {"slicing": synchronized}):
        model = Sequential(BatchNorm1d(TIME), *net().layers, seed=1, dtype="float64")
        losses.append(trained(model, **settings)[1])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-12)
    np.testing.assert_allclose(losses[2], losses[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (
            [Unflatten(1, [2, 3]), Flatten(0, 1)],
            "2 (PaddedLSTM) gets 4 sequences for each 2 of the data, to which the lengths belong",
        ),
        ([Unflatten(1, [1, 6]), Flatten(2), Linear(18, 3)], KEPT.format("3 (PaddedLSTM) gets 1 time")),
    ],
)
def test_sequences_that_another_layer_has_reshaped(layers: list[Layer], message: str) -> None:
    model = Sequential(*layers, PaddedLSTM(3, 4), seed=1, dtype="float64")
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        model(examples().input)


def test_times_that_another_layer_has_changed() -> None:
    """Whatever the lengths are: whether a step raises doesn't depend on its batch. A model of a Trainer, of a check and
    of an evaluation refuses the same. Layers that keep the number of times, or give it back, are taken.
    """
    short = Padded(examples().input.array, np.ones(NUM_EXAMPLES, np.int64))
    target = np.zeros((NUM_EXAMPLES, 2))
    for layers, words in (
        ((Permute([0, 2, 1]), Conv1d(3, 3, 2), Permute([0, 2, 1]), PaddedLSTM(3, 2)), "3 (PaddedLSTM) gets 5 times"),
        ((Permute([0, 2, 1]), Residual(PaddedLSTM(6, 6)), Linear(6, 2)), "1.0 (PaddedLSTM) gets 3 times"),
    ):
        model = Sequential(*layers, PaddedTimePool(), seed=1, dtype="float64")
        trainer = Trainer(model, MSELoss(), Adam(model), check_every=0)
        message = f"^{re.escape(KEPT.format(words))}$"
        before = model.param_arena.copy()
        for call in (
            lambda model=model: model(short),
            lambda model=model: model.forward(short),
            lambda trainer=trainer: trainer.train_step(short, target),
            lambda trainer=trainer: trainer.evaluate((short, target)),
            lambda model=model: check_gradients(model, MSELoss(), short, target),
        ):
            with pytest.raises(ValueError, match=message):
                call()
        np.testing.assert_array_equal(model.param_arena, before)
    same = Permute([0, 2, 1]), Conv1d(3, 3, 2), AdaptiveAvgPool1d(TIME), Permute([0, 2, 1]), PaddedTimePool()
    model = Sequential(*same, seed=1, dtype="float64")
    assert model(short).shape == (NUM_EXAMPLES, 3)
    with pytest.raises(ValueError, match=r"^4 \(PaddedTimePool\) gets 6 times, and the data's sequences have 9: "):
        model(Padded(np.zeros((2, 9, 3)), np.array([1, 2])))


def test_a_model_that_heeds_lengths_is_not_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    _, losses = trained(net(), check_every=0)
    _, others = trained(net(), check_every=0, compiled=True)
    assert others == losses
    assert capsys.readouterr().err == "note: this model isn't compiled: 1 (PaddedLSTM) heeds lengths\n"


@pytest.mark.slow
def test_one_that_does_not_is_compiled() -> None:
    """Without lengths. It alone compiles a layer that could take lengths, and does not."""
    data = examples()

    def flat_net() -> Sequential:
        return Sequential(Linear(3, 2), Flatten(0, 1), seed=1, dtype="float64")

    for slicing in (Slicing(1), Slicing(2)):
        model = flat_net()
        trainer = Trainer(model, CrossEntropyLoss(), Adam(model), compiled=True, slicing=slicing)
        losses = [step.loss for step in trainer.epoch(data, 8, seed=0, epoch=0)]
        other = flat_net()
        expected = Trainer(other, CrossEntropyLoss(), Adam(other), check_every=0).epoch(data, 8, seed=0, epoch=0)
        np.testing.assert_allclose(losses, [step.loss for step in expected], rtol=1e-12)


@dataclass(eq=False)
class LastTime(LayerWithLengths):
    """The last time that counts, (batch, time, size) to (batch, size)."""

    def parameter_shapes(self) -> dict[str, Shape]:
        return {}

    def output_shape(self, input_shape: Shape) -> Shape:
        return input_shape[0], input_shape[2]

    def forward(self, input: Array) -> tuple[Array, Any]:
        last = np.arange(len(input)), self.noise.lengths - 1
        return input[last], (input.shape, last)

    def infer(self, input: Array) -> Array:
        return self.forward(input)[0]

    def backward(self, saved: Any, grad_output: Array) -> Array:
        shape, last = saved
        grad_input = np.zeros(shape, grad_output.dtype)
        grad_input[last] = grad_output
        return grad_input

    def reference(self, input: Any, lengths: Any) -> Any:
        return input[list(range(len(input))), lengths.long() - 1]

    infer_reference = reference

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        return [(cls(), (4, 3, 2))]


class OffByOne(LastTime):
    """Sequences of two times or more end a time too early."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        last = np.arange(len(input)), np.maximum(self.noise.lengths - 2, 0)
        return input[last], (input.shape, last)


class Looking(LastTime):
    """Its backward asks for the lengths of the last forward, whichever that was."""

    def backward(self, saved: Any, grad_output: Array) -> Array:
        shape, (rows, _) = saved
        return super().backward((shape, (rows, self.noise.lengths - 1)), grad_output)


class WritesLengths(LastTime):
    """Lengthens the sequences for itself, in the memory of all."""

    def forward(self, input: Array) -> tuple[Array, Any]:
        self.noise.lengths[:] = input.shape[1]
        return super().forward(input)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_layer_of_ones_own(dtype: str) -> None:
    """Its reference gets the lengths, in training and, for it has an `infer`, in evaluation."""
    model = Sequential(PaddedLSTM(3, 4), LastTime(), Linear(4, 2), seed=1, dtype=dtype)
    data = examples(dtype)._replace(target=np.random.default_rng(1).standard_normal((NUM_EXAMPLES, 2)).astype(dtype))
    assert check_gradients(model, MSELoss(), *data).passed
    trainer = Trainer(model, MSELoss(), Adam(model))
    for epoch in range(2):
        list(trainer.epoch(data, 10, seed=0, epoch=epoch))
    trainer.evaluate(data)


def test_lengths_travel_in_what_is_saved() -> None:
    """Another forward may run before the backward."""
    model = Sequential(PaddedLSTM(3, 4), LastTime(), Linear(4, 2), seed=1, dtype="float64")
    data, other = examples().input, Padded(examples().input.array, np.full(NUM_EXAMPLES, 2))
    ends = []
    for between in (None, other):
        output, saved = model.forward(data)
        if between is not None:
            model(between)
        model.backward(saved, np.ones_like(output))
        ends.append(model.grad_arena.copy())
    np.testing.assert_array_equal(ends[1], ends[0])
    model = Sequential(PaddedLSTM(3, 4), Looking(), Linear(4, 2), seed=1, dtype="float64")
    report = check_gradients(model, MSELoss(), data, np.zeros((NUM_EXAMPLES, 2)))
    assert "1 (Looking): backward uses what another forward left behind" in " ".join(str(report).split())


def test_a_sequential_inside_another_takes_lengths_by_itself() -> None:
    inner = Sequential(PaddedLSTM(3, 4))
    outer = Sequential(inner, Flatten(), Linear(4 * TIME, 2), seed=1, dtype="float64")
    alone = Sequential(PaddedLSTM(3, 4), dtype="float64")
    alone.param_arena[...] = inner.param_arena
    data = examples().input
    other = Padded(data.array, np.full(NUM_EXAMPLES, 2))
    outer(data)
    np.testing.assert_array_equal(inner(other), alone(other))


def test_no_layer_changes_the_lengths_of_another() -> None:
    """Those of the caller aren't shared, and stay writable."""
    model = Sequential(PaddedLSTM(3, 4), WritesLengths(), PaddedLSTM(4, 4), seed=1, dtype="float64")
    data = examples().input
    before = data.lengths.copy()
    with pytest.raises(ValueError, match=r"^assignment destination is read-only$"):
        model(data)
    np.testing.assert_array_equal(data.lengths, before)
    data.lengths[:] = 1
    np.testing.assert_array_equal(model.layers[0].noise.lengths, before)


def test_a_wrong_one_is_found() -> None:
    model = Sequential(PaddedLSTM(3, 4), OffByOne(), Linear(4, 2), seed=1, dtype="float64")
    data = examples()._replace(target=np.zeros((NUM_EXAMPLES, 2)))
    assert not check_gradients(model, MSELoss(), *data).passed

    class WrongInEvaluation(LastTime):
        def infer(self, input: Array) -> Array:
            return np.array(input[:, -1])

    model = Sequential(PaddedLSTM(3, 4), WrongInEvaluation(), Linear(4, 2), seed=1, dtype="float64")
    trainer = Trainer(model, MSELoss(), Adam(model))
    list(trainer.epoch(data, 10, seed=0, epoch=0))
    with pytest.raises(GradientMismatch, match=r"wrong first in 1 \(WrongInEvaluation\): 1\.infer"):
        trainer.evaluate(data)


def wrong_backward(self: PaddedLSTM, saved: Any, grad_output: Array) -> Array:
    """The upstream gradient of the padding counts."""
    _, of_layers = saved
    return Recurrent.backward(self, of_layers, grad_output)


@pytest.mark.parametrize(("memory", "slicing"), crossed([0, 64_000_000], [Slicing(1), Slicing(2)]))
def test_the_batch_of_a_mismatch_has_its_lengths(
    monkeypatch: pytest.MonkeyPatch, memory: int, slicing: Slicing
) -> None:
    monkeypatch.setattr(PaddedLSTM, "backward", wrong_backward)
    model = Sequential(PaddedLSTM(3, 4), Linear(4, 2), seed=1, dtype="float64")
    data = examples()._replace(target=np.random.default_rng(1).standard_normal((NUM_EXAMPLES, TIME, 2)))
    trainer = Trainer(model, MSELoss(), Adam(model), check_memory=memory, slicing=slicing)
    with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(PaddedLSTM\)") as caught:
        list(trainer.epoch(data, 8, seed=0, epoch=0))
    assert caught.value.batch is not None
    input, _ = caught.value.batch
    assert isinstance(input, Padded)
    for array, length in zip(input.array, input.lengths, strict=True):
        (row,) = (row for row, other in enumerate(data.input.array) if np.array_equal(array, other))
        assert data.input.lengths[row] == length


CONFIG = """\
seed: 3
data: {Arrays: {file: sequences.npz, input: x, target: y, task: regression, lengths: num_times}}
batch_size: 8
epochs: 3
model:
  - PaddedLSTM: {input_size: 3, hidden_size: 4}
  - Linear: {in_features: 4, out_features: 1}
loss: MSELoss
optimizer: {Adam: {lr: 0.01}}
gradient_check: {every: 1}
"""


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    generator = np.random.default_rng(0)
    x, y = (generator.standard_normal((25, TIME, size)) for size in (3, 1))
    np.savez(tmp_path / "sequences.npz", x=x, y=y, num_times=generator.integers(1, TIME, 25, endpoint=True))
    (tmp_path / "run.yaml").write_text(CONFIG)
    return tmp_path / "run.yaml"


class TestRuns:
    def test_a_run_ends_as_one_that_was_stopped(self, config_path: Path, tmp_path: Path) -> None:
        run(load_config(config_path), tmp_path / "whole")
        stopped(config_path, tmp_path / "run", 4)
        resume(tmp_path / "run")
        assert end_of(tmp_path / "run") == end_of(tmp_path / "whole")

    @pytest.mark.slow
    def test_a_mismatch_is_replayed(
        self, config_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It alone replays a step with lengths."""
        with monkeypatch.context() as context:
            context.setattr(PaddedLSTM, "backward", wrong_backward)
            found = mismatch(tmp_path / "run", config_path.read_text())
        bundle = tmp_path / "run" / "mismatch-step-1"
        assert read_weights(bundle / "tensors.safetensors")["lengths"].dtype == np.int64
        assert replay(bundle).report is None
        monkeypatch.setattr(PaddedLSTM, "backward", wrong_backward)
        again = replay(bundle).report
        assert again is not None
        assert again.comparisons == found.report.comparisons

    def test_predictions_heed_the_lengths(self, config_path: Path, tmp_path: Path) -> None:
        run(load_config(config_path), tmp_path / "run")
        trained_run, generator = load_run(tmp_path / "run"), np.random.default_rng(1)
        array = generator.standard_normal((5, TIME, 3))
        whole, half = (trained_run.predict(Padded(array, np.full(5, length))) for length in (TIME, TIME // 2))
        np.testing.assert_array_equal(whole[:, : TIME // 2], half[:, : TIME // 2])
        assert (half[:, TIME // 2 :] == half[0, -1]).all()  # the bias
        assert (whole[:, TIME // 2 :] != half[:, TIME // 2 :]).all()

    def test_an_evaluation_on_data_without_lengths_is_refused(self, config_path: Path, tmp_path: Path) -> None:
        run(load_config(config_path), tmp_path / "run")
        trained_run = load_run(tmp_path / "run")
        message = r"sequences\.npz: doesn't fit the run: 0 \(PaddedLSTM\) needs the length of each sequence: an input "
        with pytest.raises(DataError, match=message):
            evaluate(trained_run, tmp_path / "run", ["data.Arrays.lengths=null"])

    @pytest.mark.parametrize(
        ("override", "message"),
        [
            ("data.Arrays.lengths=null", r"^.*run\.yaml:6:5: PaddedLSTM needs the length of each sequence, and "),
            ("data.Arrays.standardize=true", "standardize must be false with lengths: the padding would count$"),
        ],
    )
    def test_what_does_not_fit(self, config_path: Path, override: str, message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            load(load_config(config_path, [override]))

    def test_a_layer_that_does_not_get_the_times_of_the_data(self, config_path: Path, tmp_path: Path) -> None:
        """The model is a list with a Sequential in it, whose place is another than that of the layer."""
        turn = "    - Permute: {dims: [0, 2, 1]}\n"
        inner = f"  - Sequential:\n{turn}    - PaddedLSTM: {{input_size: 6, hidden_size: 6}}\n{turn}"
        text = CONFIG[: CONFIG.index("  - PaddedLSTM")] + inner + CONFIG[CONFIG.index("  - Linear") :]
        config_path.write_text(text.replace("in_features: 4", "in_features: 3"))
        message = r"^.*run\.yaml:8:7: PaddedLSTM gets 3 times, and the data's sequences have 6: the lengths belong to"
        for start in (load, check, lambda config: run(config, tmp_path / "run")):
            with pytest.raises(ConfigError, match=message):
                start(load_config(config_path))
        assert not (tmp_path / "run").exists()

    def test_an_evaluation_and_a_prediction_on_other_times(self, config_path: Path, tmp_path: Path) -> None:
        """What gives the training's times back gives other data's no more."""
        turn = "  - Permute: {dims: [0, 2, 1]}\n"
        fixed = f"{turn}  - AdaptiveAvgPool1d: {{output_size: 6}}\n{turn}"
        place = CONFIG.index("  - PaddedLSTM")
        config_path.write_text(CONFIG[:place] + fixed + CONFIG[place:])
        run(load_config(config_path), tmp_path / "run")
        trained_run, zeros = load_run(tmp_path / "run"), np.zeros((4, 9, 3))
        words = r"3 \(PaddedLSTM\) gets 6 times, and the data's sequences have 9: "
        with pytest.raises(ValueError, match=f"^{words}"):
            trained_run.predict(Padded(zeros, np.full(4, 2)))
        np.savez(tmp_path / "longer.npz", x=zeros, y=zeros[:, :, :1], num_times=np.full(4, 2))
        with pytest.raises(DataError, match=rf"longer\.npz: doesn't fit the run: {words}"):
            evaluate(trained_run, tmp_path / "run", [f"data.Arrays.file={tmp_path / 'longer.npz'}"])

    @pytest.mark.parametrize(("values", "dtype"), [([True] * 25, "bool"), ([2.0] * 25, "float64")])
    def test_lengths_are_integers(self, config_path: Path, values: list[Any], dtype: str) -> None:
        file = config_path.parent / "sequences.npz"
        with np.load(file) as arrays:
            np.savez(file, **({**arrays} | {"num_times": np.array(values)}))
        message = rf"sequences\.npz: array 'num_times' has dtype {dtype}, and lengths are integers$"
        with pytest.raises(DataError, match=message):
            load(load_config(config_path))

    def test_small_unsigned_lengths(self, config_path: Path) -> None:
        file = config_path.parent / "sequences.npz"
        with np.load(file) as arrays:
            np.savez(file, **({**arrays} | {"num_times": arrays["num_times"].astype(np.uint8)}))
        split, _ = load(load_config(config_path))
        assert isinstance(split.train.input, Padded)
        assert split.train.input.lengths.max() == TIME

    @pytest.mark.parametrize(("heeds", "num_notes"), [(False, 1), (True, 0)])
    def test_a_note_says_once_that_lengths_are_not_heeded(
        self, config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], *, heeds: bool, num_notes: int
    ) -> None:
        if not heeds:
            config_path.write_text(CONFIG.replace("PaddedLSTM: {", "LSTM: {batch_first: true, "))
        run(load_config(config_path), tmp_path / "run")
        note = (
            "note: the lengths in the data aren't heeded by 0 (LSTM): padding counts as other numbers do there. "
            "PaddedLSTM would heed them\n"
        )
        assert capsys.readouterr().err.count(note) == num_notes


def test_what_is_rounding_is_seen_to_be() -> None:
    """The step is made again in float64, with its lengths: among these cases some are beyond the tolerance."""
    ended = list(layer_cases(PaddedLSTM(3, 3, bias=False), (3, 3, 3), "float32", 0))
    assert len(ended) > 40
    assert [case for case in ended if case.failure is not None] == []
