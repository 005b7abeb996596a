"""What is no bundle, or none of a step that can be run, is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mismatches import mismatch, rewrite, wrong_from_step, wrong_tanh

from nn_manual.errors import ConfigError, DataError
from nn_manual.layers import Tanh
from nn_manual.run_directory.weights import read_weights
from nn_manual.use.replay import replay


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle to copy and spoil."""
    directory = tmp_path_factory.mktemp("wrong") / "run"
    with pytest.MonkeyPatch.context() as monkeypatch:
        wrong_from_step(monkeypatch, 2, Tanh, "backward", wrong_tanh)
        mismatch(directory)
    return directory / "mismatch-step-2"


def flip_a_bit(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-3] ^= 4
    path.write_bytes(data)


def replace(old: str, new: str) -> Callable[[Path], None]:
    def replace(path: Path) -> None:
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return replace


@pytest.mark.parametrize(
    ("file", "spoil", "error", "message"),
    [
        ("bundle.yaml", Path.unlink, DataError, "bundle.yaml: can't be read: No such file"),
        ("config.yaml", Path.unlink, DataError, "config.yaml: is missing from the bundle"),
        ("tensors.safetensors", Path.unlink, DataError, "tensors.safetensors: can't be read: No such file"),
        ("tensors.safetensors", flip_a_bit, DataError, "tensors.safetensors: is corrupt: its SHA-256 is "),
        ("bundle.yaml", lambda path: path.write_bytes(b"\xff"), DataError, "description of a bundle: 'utf-8' codec"),
        ("bundle.yaml", lambda path: path.write_text(""), DataError, "is no whole description of a bundle: "),
        ("bundle.yaml", lambda path: path.write_text("step: ["), DataError, "is no whole description of a bundle: "),
        ("bundle.yaml", replace("step: 2", "step: two"), DataError, 'bundle.yaml: "step" is "two", expected a 64-bit'),
        ("bundle.yaml", replace("step: 2", "step: 0"), DataError, 'bundle.yaml: "step" is 0, expected at least 1'),
        ("bundle.yaml", replace("lrs: [", "lrs: [true, "), DataError, '"lrs.0" is true, expected a number'),
        ("bundle.yaml", replace("lrs:", "rates:"), DataError, 'bundle.yaml: "lrs" is missing'),
        ("bundle.yaml", replace("lrs: [", "lrs: [1.0, "), DataError, "has 2 lrs, config.yaml asks for 1"),
        ("bundle.yaml", replace("float32: ", "float16: "), DataError, "bundle.yaml: has no tolerance for float32"),
        ("config.yaml", replace("dtype: float32", "dtype: float64"), DataError, "is float64, its input float32"),
        ("config.yaml", replace("out_features: 8", "out_features: 9"), ConfigError, "in_features=8"),
        ("config.yaml", replace("s: 8", "s: 9"), DataError, "tensors.safetensors: doesn't fit config.yaml: parameter"),
        ("config.yaml", replace("seed: 0", "seed: -1"), ConfigError, "config.yaml:1:1: seed must be at least 0"),
    ],
)
def test_what_is_no_bundle(
    bundle: Path, tmp_path: Path, file: str, spoil: Callable[[Path], None], error: type[Exception], message: str
) -> None:
    spoilt = shutil.copytree(bundle, tmp_path / "spoilt")
    spoil(spoilt / file)
    with pytest.raises(error) as caught:
        replay(spoilt)
    assert message in str(caught.value)
    assert str(spoilt) in str(caught.value)
    assert not hasattr(caught.value, "__notes__")  # nothing about layers of one's own, of which there are none


def test_tensors_of_a_bundle_that_lacks_some(bundle: Path, tmp_path: Path) -> None:
    """Whole by its checksum, and still not what a step needs."""
    spoilt = shutil.copytree(bundle, tmp_path / "spoilt")
    tensors = read_weights(bundle / "tensors.safetensors")

    def without(name: str) -> str:
        rewrite(spoilt, {other: tensor for other, tensor in tensors.items() if other != name})
        with pytest.raises(DataError) as caught:
            replay(spoilt)
        return str(caught.value).partition("config.yaml: ")[2]

    assert without("target") == "there is no target"
    assert without("parameter 0.bias") == "missing parameter '0.bias' in the state dict"
    assert without("momentum_buffer 2.bias") == "missing parameter '2.bias' in the state dict"


def test_tensors_of_a_bundle_that_fit_no_step(bundle: Path, tmp_path: Path) -> None:
    """Whole by its checksum, and the loss or the model refuses them."""
    spoilt = shutil.copytree(bundle, tmp_path / "spoilt")
    tensors = read_weights(bundle / "tensors.safetensors")

    def with_other(name: str, tensor: Any) -> str:
        rewrite(spoilt, {**tensors, name: tensor})
        with pytest.raises(DataError) as caught:
            replay(spoilt)
        return str(caught.value).partition("config.yaml: ")[2]

    input, target = tensors["input"], tensors["target"]
    assert with_other("input", input.astype(np.float64)) == "the model is float32, its input float64"
    assert with_other("input", input[:3]) == (
        "CrossEntropyLoss takes a prediction (batch, classes, ...), and as target indices (batch, ...) or "
        "probabilities in the prediction's shape, not (3, 2) and int64 (16,)"
    )
    assert with_other("target", target * 0 + 2) == "CrossEntropyLoss: label 2 at index 0 is outside 0 ... 1"
    assert with_other("target", target.astype(np.float64)) == (
        "CrossEntropyLoss takes int64 class indices as target, or probabilities in the prediction's dtype, float32, "
        "not float64"
    )
