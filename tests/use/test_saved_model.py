"""A model in one file: what is read back computes the same, and what is no such file is named."""

from __future__ import annotations

import copy
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import every_component
import numpy as np
import pytest
import safetensors.numpy

from nn_manual import (
    BatchNorm1d,
    ConstantPad2d,
    Linear,
    MaxPool2d,
    ReLU,
    Residual,
    Sequential,
    Tanh,
    load_model,
    save_model,
)
from nn_manual.arrays import Array, Shape
from nn_manual.errors import ConfigError, DataError
from nn_manual.layers import Layer


@every_component.each("layer, shape", every_component.LAYERS)
def test_each_layer(layer: Layer, shape: Shape, tmp_path: Path) -> None:
    model, [(input, _)] = every_component.of_layer(layer, shape, "float64", 1)
    save_model(model, tmp_path / "model.safetensors")
    read = load_model(str(tmp_path / "model.safetensors"))
    assert read.dtype == np.float64
    assert list(read.state_dict()) == list(model.state_dict())
    assert np.array_equal(read(input), model(input), equal_nan=True)


def test_shared_parameters_and_layers_in_layers(tmp_path: Path) -> None:
    layers = Linear(4, 4), Residual(Linear(4, 4), BatchNorm1d(4)), Sequential(Tanh(), ReLU()), Linear(4, 4)
    model = Sequential(*layers, tied=[("0.weight", "3.weight")], seed=1)
    input = np.random.default_rng(0).standard_normal((5, 4), np.float32)
    model.update_buffers(model.forward(input)[1])
    save_model(model, tmp_path / "model.safetensors")
    read = load_model(tmp_path / "model.safetensors")
    assert read.ties.names == model.ties.names
    assert np.array_equal(read(input), model(input))


def test_settings_from_numpy_and_infinite_ones(tmp_path: Path) -> None:
    """A config has no infinity, and a model that was made in Python may."""
    of_numpy: list[Any] = [(np.int64(1), 1, 0, 0), np.int32(2)]
    layers = ConstantPad2d(of_numpy[0], -np.inf), MaxPool2d(of_numpy[1], stride=1), ConstantPad2d(1, np.nan)
    save_model(Sequential(*layers, ConstantPad2d(1, math.inf)), tmp_path / "model.safetensors")
    read = load_model(tmp_path / "model.safetensors")
    input = np.random.default_rng(0).standard_normal((2, 1, 3, 3), np.float32)
    assert np.array_equal(read(input), Sequential(*map(copy.deepcopy, read.layers))(input), equal_nan=True)
    first, second, third, last = map(vars, read.layers)
    assert (first["value"], second["kernel_size"], last["value"]) == (-math.inf, 2, math.inf)
    assert math.isnan(third["value"])


MODULE = """
from dataclasses import dataclass
from nn_manual.layers import Tanh

@dataclass(eq=False)
class Warmer(Tanh):
    factor: float = 1.0
    def forward(self, input):
        output, saved = super().forward(input)
        return self.factor * output, saved
"""


def test_a_layer_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "saved_layers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    from saved_layers import Warmer  # type: ignore[import-not-found]  # written above

    save_model(Sequential(Linear(2, 2), Warmer(2.5)), tmp_path / "model.safetensors")
    read = load_model(tmp_path / "model.safetensors", tmp_path)
    assert read.layers[1].factor == 2.5  # type: ignore[attr-defined]  # Warmer's
    monkeypatch.undo()
    del sys.modules["saved_layers"]
    with pytest.raises(ConfigError, match="no module 'saved_layers' in ") as raised:
        load_model(tmp_path / "model.safetensors", tmp_path / "nowhere")
    assert raised.value.__notes__ == ["load_model's layer_folder is the folder with the modules of your own layers"]


def test_a_layer_without_settings_that_are_known(tmp_path: Path) -> None:
    class Plain(Layer):
        def forward(self, input: Array) -> tuple[Array, None]:
            return input, None

        def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's signature
            return grad_output

    with pytest.raises(TypeError, match=r"^Plain is no dataclass, which has its settings"):
        save_model(Sequential(Linear(2, 2), Plain()), tmp_path / "model.safetensors")
    for wrong, words in (
        (type("Plainer", (Tanh,), {}), r"^Plainer is no dataclass"),
        (dataclass(eq=False)(type("Mine", (Tanh,), {"__module__": "__main__"})), "^Mine is defined in __main__"),
        (dataclass(eq=False)(type("Elsewhere", (Tanh,), {})), "^the class is called Elsewhere, and module .* has no"),
    ):
        with pytest.raises(TypeError, match=words):
            save_model(Sequential(wrong()), tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())


def test_what_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(DataError, match=r"model\.safetensors: can't be read: No such file or directory$"):
        load_model(path)
    path.write_bytes(b"PK")
    with pytest.raises(DataError, match=r"model\.safetensors: is not a safetensors file$"):
        load_model(path)
    path.write_bytes(safetensors.numpy.save({"0.weight": np.zeros((2, 2))}))
    with pytest.raises(DataError, match=r"has weights and no layers: it wasn't written by save_model$"):
        load_model(path)
    layers = {"nn_manual": "model: [{Linear: {in_features: 2, out_features: 2}}]"}
    path.write_bytes(safetensors.numpy.save({"0.weight": np.zeros((2, 2))}, layers))
    with pytest.raises(DataError, match=r"the weights don't fit the layers: missing parameter '0\.bias'"):
        load_model(path)
    path.write_bytes(safetensors.numpy.save({"0.weight": np.zeros((2, 2))}, {"nn_manual": "model: [Linaer]"}))
    with pytest.raises(ConfigError, match=r"model\.safetensors:1:9: unknown layer 'Linaer'"):
        load_model(path)
