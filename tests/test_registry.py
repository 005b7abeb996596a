from nn_manual.layers import Layer, Linear
from nn_manual.model import Sequential
from nn_manual.optim import SGD, Scheduler
from nn_manual.registry import KINDS, nearest, registry


def test_a_registry_holds_the_concrete_classes_of_its_module() -> None:
    assert registry(Layer)["Linear"] is Linear
    assert registry(Layer)["Sequential"] is Sequential
    assert registry(SGD) == {"SGD": SGD}
    assert set(registry(Scheduler)) >= {"StepLR", "CosineAnnealingLR", "ConstantLR"}
    for kind in KINDS:
        assert registry(kind)
        assert all(issubclass(thing, kind) and not name.startswith("_") for name, thing in registry(kind).items())
    assert all(kind.__name__ not in registry(kind) for kind in KINDS if kind is not SGD)


def test_nearest() -> None:
    assert nearest("relu", ["Linear", "ReLU"]) == "; did you mean 'ReLU'?"
    assert nearest("out_feature", ["in_features", "out_features"]) == "; did you mean 'out_features'?"
    assert nearest("xyz", ["lr", "momentum"]) == "; known: lr, momentum"
    assert nearest("xyz", []) == "; it has none"
