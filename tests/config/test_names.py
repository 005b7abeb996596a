from nn_manual.config.names import named, nearest
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.registry import components


def test_a_config_can_name_every_component_and_sequential() -> None:
    assert named(Loss) == components(Loss)
    assert named(Layer) == {**components(Layer), "Sequential": Sequential}


def test_nearest() -> None:
    assert nearest("relu", ["Linear", "ReLU"]) == "; did you mean 'ReLU'?"
    assert nearest("out_feature", ["in_features", "out_features"]) == "; did you mean 'out_features'?"
    assert nearest("xyz", ["lr", "momentum"]) == "; known: lr, momentum"
    assert nearest("xyz", []) == "; it has none"
