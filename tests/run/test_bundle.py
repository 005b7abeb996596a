"""A step that differed, kept: what its bundle holds, and what keeps it from being written."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from mismatches import EVERYTHING, mismatch, wrong_from_step, wrong_tanh
from runs import GROWING, names

from nn_manual.config import load_config
from nn_manual.errors import DataError
from nn_manual.layers import Linear, Tanh
from nn_manual.model import Sequential
from nn_manual.optim import StepLR
from nn_manual.run import bundle
from nn_manual.run.bundle import read_bundle
from nn_manual.run.sources import sources_of
from nn_manual.run_directory.weights import read_weights
from nn_manual.use.replay import replay


def test_what_a_bundle_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_from_step(monkeypatch, 5, Tanh, "backward", wrong_tanh)
    mismatch(tmp_path / "run", EVERYTHING)
    kept = tmp_path / "run" / "mismatch-step-5"
    tensors = read_weights(kept / "tensors.safetensors")
    parameters = {"0.weight": (8, 2), "0.bias": (8,), "2.weight": (2, 8), "2.bias": (2,)}
    assert {name: tensor.shape for name, tensor in tensors.items()} == {
        "input": (16, 2),
        "target": (16,),
        **{f"{kind} {name}": shape for kind in ("parameter", "momentum_buffer") for name, shape in parameters.items()},
        "grad_output 0 (Linear)": (16, 8),
        "grad_output 1 (Tanh)": (16, 8),
        "grad_output 2 (Linear)": (16, 2),
    }
    described = read_bundle(kept / "bundle.yaml")
    assert (described.step, described.lrs) == (5, [0.25])
    assert described.tolerances == {"float32": 1e-5, "float64": 1e-12}
    assert (described.layer, described.tensor) == ("1 (Tanh)", "1.grad_input")
    assert set(described.versions) == {"nn_manual", "numpy", "torch", "python", "platform"}
    assert described.sources == sources_of(load_config(kept / "config.yaml"))
    assert (kept / "config.yaml").read_bytes() == (tmp_path / "run" / "config.yaml").read_bytes()


def test_the_parameters_are_those_before_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Step 2 begins where step 1, which was right, has led: param = initial - lr * momentum_buffer."""
    wrong_from_step(monkeypatch, 2, Tanh, "backward", wrong_tanh)
    mismatch(tmp_path / "run")
    recorded = read_weights(tmp_path / "run" / "mismatch-step-2" / "tensors.safetensors")
    initial = Sequential(Linear(2, 8), Tanh(), Linear(8, 2), seed=0).state_dict()
    for name, param in initial.items():
        moved = param - np.float32(0.5) * recorded[f"momentum_buffer {name}"]
        assert np.array_equal(recorded[f"parameter {name}"], moved)
        assert not np.array_equal(param, moved)


def test_a_schedule_is_not_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StepLR, "lr", lambda self, initial_lr, epoch: initial_lr * 0.9**epoch)  # noqa: ARG005
    found = mismatch(tmp_path / "run", EVERYTHING)
    assert found.__notes__[-2] == "it can't be replayed: it was not found in a step"
    assert names(tmp_path / "run") == [*GROWING, "summary.json"]


def test_a_full_disk_hides_no_mismatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, weights: object) -> str:  # noqa: ARG001 - write_weights' signature
        raise DataError(f"{path.name}: can't be written: No space left on device")

    monkeypatch.setattr(bundle, "write_weights", full)
    monkeypatch.setattr(Tanh, "backward", wrong_tanh)
    found = mismatch(tmp_path / "run")
    note = "it can't be replayed: tensors.safetensors: can't be written: No space left on device"
    assert found.__notes__[-2] == note
    assert names(tmp_path / "run") == [*GROWING, "summary.json"]


def test_a_run_in_the_place_of_its_bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = tmp_path / "my run"
    wrong_from_step(monkeypatch, 5, Tanh, "backward", wrong_tanh)
    mismatch(directory)
    with pytest.raises(DataError) as caught:
        replay(directory)
    assert str(caught.value) == (
        f"{directory}: is no bundle; did you mean --replay '{directory}/mismatch-step-5'?"
    )
    (directory / "mismatch-step-5").rename(directory / "mismatch-step-17")
    shutil.copytree(directory / "mismatch-step-17", directory / "again")
    with pytest.raises(DataError, match=r"did you mean --replay '\S+ run/again' or '\S+ run/mismatch-step-17'\?$"):
        replay(directory)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("nowhere", "no such bundle"),
        ("file", "is no bundle directory"),
        ("empty", "is no bundle, and holds none: no step of it differed from torch's"),
    ],
)
def test_no_bundle(tmp_path: Path, name: str, problem: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError) as caught:
        replay(tmp_path / name)
    assert str(caught.value) == f"{tmp_path / name}: {problem}"
