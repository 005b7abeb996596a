"""The one list of components: a new one needs nothing but its export."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

import _nn_manual_pytest_plugin
import nn_manual
from nn_manual import layers
from nn_manual.arrays import Array
from nn_manual.check.catalogue import catalogue
from nn_manual.config import load_config
from nn_manual.layers import Layer, Linear, Tanh
from nn_manual.optim import SGD, Optimizer, Scheduler
from nn_manual.registry import KINDS, components, defined_in


def test_the_concrete_classes_that_a_room_exports() -> None:
    assert components(Layer)["Linear"] is Linear
    assert components(Optimizer)["SGD"] is SGD
    assert set(components(Optimizer)) >= {"SGD", "Adam", "AdamW"}
    assert set(components(Scheduler)) >= {
        *("StepLR", "CosineAnnealingLR", "ConstantLR", "LinearLR", "SequentialLR", "ReduceLROnPlateau"),
    }
    for kind in KINDS:
        assert components(kind)
        assert all(issubclass(thing, kind) and not name.startswith("_") for name, thing in components(kind).items())
    assert all(kind.__name__ not in components(kind) for kind in KINDS)


def test_what_a_module_imports_and_what_is_private_is_not_defined_in_it() -> None:
    @dataclass(eq=False)
    class Mine(Tanh):
        pass

    Mine.__module__ = "my_layers"
    module = ModuleType("my_layers")
    vars(module).update({"Mine": Mine, "_Private": Mine, "Tanh": Tanh, "Layer": Layer, "number": 3})
    assert defined_in(module, Layer) == {"Mine": Mine}


@pytest.fixture
def doubled(monkeypatch: pytest.MonkeyPatch) -> type[Layer]:
    """A new activation, which nothing but `layers` names."""

    @dataclass(eq=False)
    class Doubled(Layer):
        def forward(self, input: Array) -> tuple[Array, None]:
            return 2 * input, None

        def backward(self, _: None, grad_output: Array) -> Array:
            return 2 * grad_output

    Doubled.__module__ = "nn_manual.layers.doubled"
    monkeypatch.setattr(layers, "Doubled", Doubled, raising=False)
    monkeypatch.setattr(layers, "__all__", [*layers.__all__, "Doubled"])
    return Doubled


def test_exporting_an_activation_is_all_there_is_to_adding_one(
    doubled: type[Layer], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert components(Layer)["Doubled"] is doubled
    assert nn_manual.Doubled is doubled
    assert "Doubled" in nn_manual.__all__

    config = tmp_path / "doubled.yaml"
    parts = "data: {Spirals: {num_examples: 20}}, loss: CrossEntropyLoss, model: [Doubled], optimizer: SGD"
    config.write_text(f"{{batch_size: 5, epochs: 1, {parts}}}")
    assert isinstance(load_config(config).model[0], doubled)

    monkeypatch.setattr(catalogue, "entry", lambda name, *_: catalogue.Entry(name, "", 0, 0, 0, None, ""))
    assert "Doubled() of 4x3" in [entry.component for entry in catalogue.catalogue().entries]
    assert "Doubled()-4x3-float32-random" in _nn_manual_pytest_plugin._cases("nn_manual.layers")
