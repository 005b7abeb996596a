from nn_manual.config.component_names import named
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.registry import components


def test_a_config_can_name_every_component_and_sequential() -> None:
    assert named(Loss) == components(Loss)
    assert named(Layer) == {**components(Layer), "Sequential": Sequential}
