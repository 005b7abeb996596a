"""Batch normalization by the statistics of all slices: what torch makes of the whole batch."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from composites import WRAP

from nn_manual import (
    SGD,
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    CrossEntropyLoss,
    Dropout,
    Flatten,
    GradientMismatch,
    Linear,
    MSELoss,
    NotFiniteError,
    ReLU,
    Residual,
    Sequential,
    Trainer,
    cli,
)
from nn_manual.arrays import Array, Shape
from nn_manual.layers import LayerWithBuffers
from nn_manual.step.slices.batch_statistics import BatchStatistics
from nn_manual.step.slices.cut import Slicing, parts_of
from nn_manual.step.slices.process_group import ProcessGroup
from nn_manual.step.slices.sync_batch_norm import SyncBatchNorm, synchronized_copy

RNG = np.random.default_rng(0)
INPUT, TARGET = RNG.normal(size=(50, 8)) + 3, RNG.integers(0, 5, 50)
TARGET[3:9] = -100


def trained(num_slices: int, check_every: int, *, dtype: str = "float64", **settings: Any) -> tuple[Trainer, Any]:
    """A trainer after some steps on one batch, and the last one. With what depends on the place of a slice."""
    layers = Linear(8, 6), BatchNorm1d(6), ReLU(), Dropout(0.2)
    branch = Residual(Linear(6, 6), BatchNorm1d(6, momentum=None, affine=False), ReLU())
    model = Sequential(*layers, branch, Linear(6, 5), seed=1, dtype=dtype)
    loss, optimizer = CrossEntropyLoss(weight=[1, 2, 3, 4, 0.5]), SGD(model, lr=0.1, momentum=0.9)
    slicing = Slicing(num_slices, sync_batch_norm=True)
    trainer = Trainer(model, loss, optimizer, check_every=check_every, slicing=slicing, **settings)
    return trainer, [trainer.train_step(INPUT.astype(dtype), TARGET) for _ in range(5)][-1]


@pytest.mark.parametrize(
    ("layer", "name", "value"),
    [("1", "eps", 0.5), ("1", "momentum", 0.9), ("3", "p", 0.7), ("4.1", "eps", 0.5), ("loss", "label_smoothing", 0.3)],
)
def test_a_setting_that_changes_between_steps_counts(layer: str, name: str, value: float) -> None:
    """As it does where the whole batch runs at once."""
    found = []
    for num_slices in (1, 3):
        trainer, _ = trained(num_slices, 0)
        parts: dict[str, Any] = {**dict(trainer.model.named_layers()), "loss": trainer.loss}
        setattr(parts[layer], name, value)
        trainer.train_step(INPUT, TARGET)
        trainer.train_step(INPUT, TARGET)
        found.append([trainer.model.param_arena, *vars(trainer.model.buffer).values()])
    for whole, sliced in zip(*found, strict=True):
        np.testing.assert_allclose(sliced, whole, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("num_slices", [2, 7, 50, 60])
@pytest.mark.parametrize("check_every", [0, 1])
def test_slices_train_as_the_whole_batch_does(num_slices: int, check_every: int) -> None:
    """Slices of one example, too, and more slices than examples; the buffers as well."""
    whole, last = trained(1, 0)
    sliced, last_of_slices = trained(num_slices, check_every)
    np.testing.assert_allclose(last_of_slices.loss, last.loss, rtol=1e-12)
    for name, array in whole.model.state_dict().items():
        np.testing.assert_allclose(sliced.model.state_dict()[name], array, rtol=1e-12, atol=1e-12, err_msg=name)


def test_a_check_changes_no_bit_and_compares_the_whole_batch() -> None:
    plain, _ = trained(4, 0, dtype="float32", clip_grad_norm=0.1)
    checked, last = trained(4, 1, dtype="float32", clip_grad_norm=0.1)
    for name, array in plain.model.state_dict().items():
        assert np.array_equal(checked.model.state_dict()[name], array), name
    names = last.check.tensors
    assert names.index("1.running_var") < names.index("4.1.grad_input") < names.index("batch.loss")
    assert names.index("batch.loss") < names.index("summed 0.weight") < names.index("clipped gradient")
    assert last.check.severity.max() < 0.2


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (BatchNorm1d(3, eps=0.1), (11, 3)),
        (BatchNorm1d(3, affine=False), (11, 3, 2)),
        (BatchNorm2d(3, momentum=None), (11, 3, 2, 4)),
        (BatchNorm3d(3), (11, 3, 2, 1, 2)),
    ],
    ids=str,
)
def test_it_is_torchs_batch_norm_of_the_whole_batch(layer: Any, shape: tuple[int, ...]) -> None:
    """Output, gradients and buffers of 3 slices side by side, against torch.nn.functional.batch_norm."""
    rng = np.random.default_rng(1)
    input, grad_output = rng.normal(3, 2, shape), rng.normal(size=shape)
    model = Sequential(layer, dtype="float64")
    for parameter in vars(model.param).values():
        parameter[...] = rng.normal(size=3)
    parts = parts_of(MSELoss("sum"), input, 3)
    statistics = BatchStatistics(3, ProcessGroup())
    copies = [synchronized_copy(model, statistics, position) for position in range(3)]
    outputs, grad_inputs = np.zeros(shape), np.zeros(shape)

    def run(position: int) -> None:
        rows, copied = parts[position].rows, copies[position]
        outputs[rows], saved = copied.forward(input[rows])
        grad_inputs[rows] = copied.backward(saved, grad_output[rows])
        copied.update_buffers(saved)

    statistics.begin(parts, parts)
    statistics.lockstep.run([partial(run, position) for position in range(3)])

    theirs = torch.from_numpy(input).requires_grad_()
    torchs = getattr(torch.nn, type(layer).__name__)(
        3, eps=layer.eps, momentum=layer.momentum, affine=layer.affine, dtype=torch.float64
    )
    parameters = dict(torchs.named_parameters())
    for name, parameter in parameters.items():
        parameter.data = torch.from_numpy(model.state_dict()[f"0.{name}"].copy())
    output = torchs(theirs)
    output.backward(torch.from_numpy(grad_output))
    assert theirs.grad is not None
    np.testing.assert_allclose(outputs, output.detach().numpy(), atol=1e-13)
    np.testing.assert_allclose(grad_inputs, theirs.grad.numpy(), atol=1e-13)
    for name, parameter in parameters.items():
        assert parameter.grad is not None
        summed = sum(vars(copied.grad)[f"0.{name}"] for copied in copies)
        np.testing.assert_allclose(summed, parameter.grad.numpy(), atol=1e-13)
    for name, buffer in torchs.named_buffers():
        np.testing.assert_allclose(model.state_dict()[f"0.{name}"], buffer.numpy(), atol=1e-14)


def test_a_copy_shares_parameters_and_buffers_and_has_gradients_of_its_own() -> None:
    model = Sequential(Residual(Linear(3, 3), BatchNorm1d(3)), seed=1)
    copied = synchronized_copy(model, BatchStatistics(1, ProcessGroup()), 0)
    layer = copied.layers[0].layers[1]  # type: ignore[attr-defined]  # it is a Residual
    assert isinstance(layer, SyncBatchNorm)
    assert np.shares_memory(copied.param_arena, model.param_arena)
    assert np.shares_memory(layer.buffer.running_mean, model.layers[0].layers[1].buffer.running_mean)  # type: ignore[attr-defined]  # as above
    assert not np.shares_memory(copied.grad_arena, model.grad_arena)


@pytest.mark.parametrize(
    ("fault", "tensor"),
    [("forward", "1.output"), ("backward", "4.1.grad_input"), ("buffers", "1.running_mean"), ("share", "1.output")],
)
def test_a_wrong_formula_is_found(fault: str, tensor: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice weighing the same, too, and buffers that move once a slice."""
    shares, backward = BatchStatistics.shares, SyncBatchNorm.backward
    if fault == "forward":
        monkeypatch.setattr(SyncBatchNorm, "_affine", lambda _, normalized: 1.001 * normalized)
    if fault == "backward":
        monkeypatch.setattr(SyncBatchNorm, "backward", lambda *given: 1.001 * backward(*given))
    if fault == "share":
        monkeypatch.setattr(BatchStatistics, "shares", lambda batch, dtype: shares(batch, dtype) * 0 + 1 / 3)
    if fault == "buffers":
        monkeypatch.setattr(
            SyncBatchNorm, "update_buffers", lambda layer, saved: layer._move(*saved[2:], layer._num_values(saved[0]))
        )
    with pytest.raises(GradientMismatch, match=rf"wrong first in (1|4.1) \(BatchNorm1d\): {tensor}"):
        trained(3, 1)


@pytest.mark.parametrize("check_every", [0, 1])
@pytest.mark.parametrize("sync_batch_norm", [False, True])
def test_a_number_that_is_not_finite_is_named(check_every: int, sync_batch_norm: bool) -> None:
    model = Sequential(Linear(2, 2), BatchNorm1d(2), Linear(2, 1), seed=1)
    slicing = Slicing(2, sync_batch_norm=sync_batch_norm)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=check_every, slicing=slicing)
    input = np.array([[0, 1], [1, 2], [2, 3], [3, np.nan]], np.float32)
    message = r"^0.output of 0 \(Linear\) holds nan at index \([13], 0\) at step 1$"
    with np.errstate(all="ignore"), pytest.raises(NotFiniteError, match=message):
        trainer.train_step(input, np.ones((4, 1), np.float32))


class Raising(ReLU):
    """A ReLU that doesn't take 2 examples."""

    torch_class = "ReLU"

    def forward(self, input: Array) -> tuple[Array, Any]:
        if len(input) == 2:
            raise ValueError("not two")
        return super().forward(input)


@pytest.mark.parametrize(
    ("check_every", "error", "message"),
    [(0, ValueError, "^not two$"), (1, GradientMismatch, r"1 \(Raising\): forward raised ValueError: not two")],
)
def test_a_layer_that_raises_in_one_slice_is_named(check_every: int, error: type[Exception], message: str) -> None:
    model = Sequential(Linear(2, 2), Raising(), BatchNorm1d(2), Linear(2, 1), seed=1)
    slicing = Slicing(2, sync_batch_norm=True)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=check_every, slicing=slicing)
    with pytest.raises(error, match=message):
        trainer.train_step(np.ones((5, 2), np.float32), np.ones((5, 1), np.float32))


def test_a_shared_parameter_has_the_sum_of_its_uses() -> None:
    """Each use is compared, too."""
    results = []
    for num_slices, check_every in ((1, 0), (3, 1)):
        layers = Linear(5, 5, bias=False), BatchNorm1d(5), ReLU(), Linear(5, 5)
        model = Sequential(*layers, seed=1, dtype="float64", tied=[("0.weight", "3.weight")])
        slicing = Slicing(num_slices, sync_batch_norm=True)
        trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1), check_every=check_every, slicing=slicing)
        steps = [trainer.train_step(INPUT[:, :5], TARGET) for _ in range(3)]
        results.append(model.param_arena)
    np.testing.assert_allclose(results[1], results[0], rtol=0, atol=1e-13)
    assert steps[-1].check is not None
    assert {"0.grad_weight", "3.grad_weight", "0.grad_weight + 3.grad_weight"} <= set(steps[-1].check.tensors)


def test_a_single_value_in_the_batch_is_refused() -> None:
    model = Sequential(BatchNorm1d(2), Flatten(), Linear(2, 1), dtype="float64")
    slicing = Slicing(2, sync_batch_norm=True)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=0, slicing=slicing)
    with pytest.raises(ValueError, match=r"^0 \(BatchNorm1d\) needs more than 1 value for each feature"):
        trainer.train_step(np.ones((1, 2)), np.ones((1, 1)))


CONFIG = """\
data: {Spirals: {num_examples: 50, validation_fraction: 0.2}}
batch_size: 20
slices: 20
epochs: 2
model:
  - Linear: {in_features: 2, out_features: 8, bias: false}
  - wrap:Wrap:
      inner: {BatchNorm1d: {num_features: 8}}
  - BatchNorm1d: {num_features: 8}
  - Linear: {in_features: 8, out_features: 2}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1}}
gradient_check: {every: 1}
"""


def test_a_run_in_slices_of_one_example(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With a batch normalization in a composite of the user's, too; every step is proven."""
    path = tmp_path / "run.yaml"
    path.write_text(CONFIG)
    (tmp_path / "wrap.py").write_text(WRAP)
    assert cli.main(["train", str(path), "--run-dir", str(tmp_path / "by_slice")]) == 2
    problem = "BatchNorm1d needs more than 1 value for each feature in a training step, the input has shape (1, 8)"
    assert capsys.readouterr().err == f"nn-manual: {path}:9:5: {problem}, in a slice of a batch of an epoch\n"
    assert cli.main(["train", str(path), "sync_batch_norm=true", "--run-dir", str(tmp_path / "run")]) == 0
    checked = json.loads((tmp_path / "run" / "summary.json").read_text())["gradient_check"]
    # A second normalization takes the first one's bias away again.
    unproven = "1.inner (BatchNorm1d): 1.inner.grad_bias is zero in theory and rounding alone"
    assert (checked["steps"], checked["unproven"], checked["vacuous"]) == (4, [unproven], [])


class Centered(LayerWithBuffers):
    """Subtracts the mean of the batch, and keeps it."""

    def buffer_shapes(self) -> dict[str, Shape]:
        return {"running_mean": (4,)}

    def forward(self, input: Array) -> tuple[Array, Array]:
        mean = input.mean(axis=0)
        return input - mean, mean

    def update_buffers(self, saved: Array) -> None:
        self.buffer.running_mean[...] = saved

    def backward(self, saved: Array, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's signature
        grad_input: Array = grad_output - grad_output.mean(axis=0)
        return grad_input


def test_another_layer_with_buffers_is_refused() -> None:
    """It would take the mean of its slice, and be called wrong beside the whole batch."""
    model = Sequential(Linear(4, 4), Residual(Centered()), BatchNorm1d(4))
    words = r"^sync_batch_norm must be false: 1\.0 \(Centered\) keeps buffers, and only BatchNorm1d, BatchNorm2d and"
    with pytest.raises(ValueError, match=words):
        Trainer(model, MSELoss(), SGD(model), slicing=Slicing(2, sync_batch_norm=True))
    Trainer(model, MSELoss(), SGD(model), slicing=Slicing(2))
    plain = Sequential(Linear(4, 4), BatchNorm1d(4))
    Trainer(plain, MSELoss(), SGD(plain), slicing=Slicing(2, sync_batch_norm=True))
