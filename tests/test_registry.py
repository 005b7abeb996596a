from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from nn_manual.layers import Layer, Linear, Tanh
from nn_manual.optim import SGD, Scheduler
from nn_manual.registry import KINDS, components, defined_in


def test_the_concrete_classes_that_a_room_exports() -> None:
    assert components(Layer)["Linear"] is Linear
    assert components(SGD) == {"SGD": SGD}
    assert set(components(Scheduler)) >= {"StepLR", "CosineAnnealingLR", "ConstantLR"}
    for kind in KINDS:
        assert components(kind)
        assert all(issubclass(thing, kind) and not name.startswith("_") for name, thing in components(kind).items())
    assert all(kind.__name__ not in components(kind) for kind in KINDS if kind is not SGD)


def test_what_a_module_imports_and_what_is_private_is_not_defined_in_it() -> None:
    @dataclass(eq=False)
    class Mine(Tanh):
        pass

    Mine.__module__ = "my_layers"
    module = ModuleType("my_layers")
    vars(module).update({"Mine": Mine, "_Private": Mine, "Tanh": Tanh, "Layer": Layer, "number": 3})
    assert defined_in(module, Layer) == {"Mine": Mine}
