"""Layers that are made of layers in a config: Residual, a user's own, and Repeat."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nn_manual import Linear, ReLU, Residual, Sequential
from nn_manual.config import RunConfig, dump_config, load_config
from nn_manual.config.yaml_tree import Node
from nn_manual.errors import ConfigError

from .conftest import VALID, ErrorsOf, valid_but

BLOCKS = """\
from dataclasses import dataclass

from nn_manual import Layer, Linear


@dataclass(eq=False)
class Gate(Layer):
    value: Layer
    gates: list[Layer]
    power: int = 1

    def forward(self, input): ...
    def backward(self, saved, grad_output): ...


@dataclass(eq=False)
class Narrow(Layer):
    first: Linear
    others: list[Linear] | None = None
    last: Layer | None = None

    def forward(self, input): ...
    def backward(self, saved, grad_output): ...
"""

OF_32 = "Linear: {in_features: 32, out_features: 32}"


def with_layers(*layers: str) -> str:
    return VALID.replace("  - ReLU\n", "".join(f"  - {layer}\n" for layer in layers))


@pytest.fixture
def load(tmp_path: Path) -> object:
    """The config that the text describes, beside a module `blocks`."""

    def load(text: str, *overrides: str) -> RunConfig:
        (tmp_path / "blocks.py").write_text(BLOCKS)
        (tmp_path / "run.yaml").write_text(text)
        return load_config(tmp_path / "run.yaml", overrides)

    return load


def test_a_residual(load) -> None:  # type: ignore[no-untyped-def]  # of a fixture that takes any number of overrides
    text = with_layers(f"Residual: [{OF_32}, Residual: [Tanh], Sequential: [ReLU]]")
    config = load(text, "model.1.Residual.0.Linear.bias=false")
    residual = config.model[1]
    assert isinstance(residual, Residual)
    linear, inner, sequential = residual.layers
    assert isinstance(linear, Linear)
    assert not linear.bias
    assert isinstance(inner, Residual)
    assert isinstance(sequential, Sequential)
    assert list(config.named_layers()) == [
        "model.0", "model.1", "model.1.Residual.0", "model.1.Residual.1", "model.1.Residual.1.Residual.0",
        "model.1.Residual.2.Sequential.0", "model.2",
    ]  # fmt: skip - a list of paths
    model = config.new_model()
    assert list(model.state_dict()) == ["0.weight", "0.bias", "1.0.weight", "2.weight", "2.bias"]
    assert not any(hasattr(layer, "param") for layer in config.named_layers().values())
    again = load(dump_config(config))
    assert dump_config(again) == dump_config(config)
    np.testing.assert_array_equal(again.new_model().param_arena, model.param_arena)


def test_a_composite_of_ones_own(load) -> None:  # type: ignore[no-untyped-def]  # as above
    arguments = f"value: {{{OF_32}}}, gates: [Tanh, Sequential: [ReLU, Tanh]], power: 2"
    config = load(with_layers(f"blocks:Gate: {{{arguments}}}"))
    gate = config.model[1]
    assert list(gate.children()) == ["value", "gates.0", "gates.1"]
    assert gate.power == 2
    assert list(config.named_layers())[1:5] == [
        "model.1", "model.1.blocks:Gate.value", "model.1.blocks:Gate.gates.0",
        "model.1.blocks:Gate.gates.1.Sequential.0",
    ]  # fmt: skip - a list of paths
    assert dump_config(load(dump_config(config))) == dump_config(config)


def test_fields_of_one_class_and_fields_that_may_be_empty(load) -> None:  # type: ignore[no-untyped-def]  # as above
    config = load(with_layers(f"blocks:Narrow: {{first: {{{OF_32}}}}}"))
    assert list(config.model[1].children()) == ["first"]
    assert dump_config(load(dump_config(config))) == dump_config(config)
    arguments = f"first: {{{OF_32}}}, others: [{OF_32}, {OF_32}], last: Tanh"
    config = load(with_layers(f"blocks:Narrow: {{{arguments}}}"))
    assert list(config.model[1].children()) == ["first", "others.0", "others.1", "last"]
    assert dump_config(load(dump_config(config))) == dump_config(config)
    with pytest.raises(ConfigError) as caught:
        load(with_layers(f"blocks:Narrow: {{first: Tanh, others: [{OF_32}, ReLU, RLU], last: 3}}"))
    assert [error.partition("run.yaml:")[2] for error in str(caught.value).splitlines()] == [
        "8:28: first takes Linear, not Tanh",
        "8:88: others takes Linear, not ReLU",
        "8:94: unknown layer 'RLU'; did you mean 'ReLU'?",
        "8:100: layer takes a name, or a name with keyword arguments, not 3",
    ]


def test_repeat_stands_for_copies(load) -> None:  # type: ignore[no-untyped-def]  # as above
    text = with_layers(f"Repeat: {{times: 3, layers: [{OF_32}, ReLU]}}")
    config = load(text, "model.3.Linear.bias=false")
    assert [type(layer) for layer in config.model] == [Linear, *[Linear, ReLU] * 3, Linear]
    assert [layer.bias for layer in config.model if isinstance(layer, Linear)] == [True, True, False, True, True]
    assert "Repeat" not in dump_config(config)
    first, second = (config.new_model().state_dict()[name] for name in ("1.weight", "3.weight"))
    assert not np.array_equal(first, second)
    assert len(load(text, "model.1.Repeat.times=1").model) == 4
    nested = with_layers("Repeat: {times: 2, layers: [Residual: [Repeat: {times: 2, layers: [ReLU]}]]}")
    assert [len(layer.layers) for layer in load(nested).model if isinstance(layer, Residual)] == [2, 2]


@pytest.mark.parametrize(
    ("layer", "errors"),
    [
        ("Repeat: {times: 0, layers: [ReLU]}", ["8:14: times must be an integer from 1 to 1000, not 0"]),
        ("Repeat: {times: 1.5, layers: []}", [
            "8:14: times must be an integer from 1 to 1000, not 1.5",
            "8:26: Repeat takes a list of layers, not an empty list",
        ]),
        ("Repeat: {times: 2}", ["8:5: Repeat needs layers"]),
        ("Repeat", ["8:5: Repeat needs times and layers"]),
        ("Repeat: [ReLU]", ["8:5: Repeat needs times and layers"]),
        ("Repaet: {times: 3, layers: [ReLU]}", ["8:5: unknown layer 'Repaet'; did you mean 'Repeat'?"]),
        ("Repeat: {times: 999, layers: [Repeat: {times: 999, layers: [ReLU]}]}",
         ["8:14: the copies have more than 100,000 names, keys and values: is there a digit too many?"]),
        # Only the Repeat at fault is blamed: not those around it, nor what is made of its layers.
        (f"{'Repeat: {times: 999, layers: [' * 4}ReLU{']}' * 4}",
         ["8:74: the copies have more than 100,000 names, keys and values: is there a digit too many?"]),
        (f"{'Repeat: {times: 3, layers: [' * 3}Repeat: {{times: 0, layers: [ReLU]}}{']}' * 3}",
         ["8:98: times must be an integer from 1 to 1000, not 0"]),
        ("Residual: [Sequential: [Repeat: {times: 2}]]", ["8:29: Repeat needs layers"]),
        (f"Repeat: {{times: 0, layers: [{OF_32}, RLU, Repeat: {{times: 2, layers: [Tnh]}}]}}", [
            "8:14: times must be an integer from 1 to 1000, not 0",
            "8:78: unknown layer 'RLU'; did you mean 'ReLU'?",
            "8:111: unknown layer 'Tnh'; did you mean 'Tanh'?",
        ]),
        ("Repeat: {times: 2, layers: [RLU, Repeat: [ReLU]]}", [
            "8:33: unknown layer 'RLU'; did you mean 'ReLU'?", "8:38: Repeat needs times and layers"
        ]),
        ("Residual: [ReLU, Tahn, Embedding: {num_embeddings: 3, embedding_dim: 2}]", [
            "8:22: unknown layer 'Tahn'; did you mean 'Tanh'?",
            "8:28: Embedding takes integers alone, and the layer before it makes none",
        ]),
        ("Repeat: {times: 3, layers: [RLU]}", ["8:33: unknown layer 'RLU'; did you mean 'ReLU'?"]),
        ("Repeat: {time: 3, layers: [ReLU]}", [
            "8:5: Repeat needs times", "8:14: unknown key 'time' in Repeat; did you mean 'times'?"
        ]),
        ("Residual: []", ["8:5: Residual takes a list of layers, not an empty list"]),
        ("Residual", ["8:5: Residual takes a list of layers, not an empty mapping"]),
        ("Residual: [Linear: {in_features: 32, out_features: 8}]", [
            "8:5: Residual adds its input of shape (64, 32) to its layers' output of shape (64, 8)"
        ]),
        ("Residual: [Linear: {in_features: 31, out_features: 32}]", [
            "8:16: Linear takes in_features=31 in the last dimension, the input has shape (64, 32)"
        ]),
        ("Residual: [Sequential: [Tnh], Relu]", [
            "8:29: unknown layer 'Tnh'; did you mean 'Tanh'?", "8:35: unknown layer 'Relu'; did you mean 'ReLU'?"
        ]),
    ],
)  # fmt: skip - a table
def test_errors_are_reported_where_they_stand_and_once(errors_of: ErrorsOf, layer: str, errors: list[str]) -> None:
    assert errors_of(valid_but(8, f"  - {layer}")) == [f"run.yaml:{error}" for error in errors]


def test_nothing_is_said_of_what_stands_behind_a_repeat_at_fault(errors_of: ErrorsOf) -> None:
    """How many copies there would be isn't known: an override of a layer behind it may be right."""
    error = "run.yaml:8:14: times must be an integer from 1 to 1000, not 0"
    narrow = "Linear: {in_features: 32, out_features: 7}"
    text = valid_but(8, f"  - Repeat: {{times: 0, layers: [{narrow}, Linear: {{in_features: 7, out_features: 32}}]}}")
    assert errors_of(text) == [error]
    assert errors_of(text, "model.4.Linear.bias=false", "model.1=ReLU", "model.0.Linear.bias=0", "seed=-1") == [
        error,
        "override 'model.0.Linear.bias=0': bias must be true or false, not 0",
        "override 'seed=-1': seed must be at least 0, not -1",
    ]
    text = valid_but(8, "  - Repeat: {times: 600, layers: [Repeat: {times: 200, layers: [ReLU]}]}")
    assert errors_of(text, "model.1.Repeat.times=2", "model.1.Repeat.layers.0.Repeat.times=0") == [
        "override 'model.1.Repeat.layers.0.Repeat.times=0': times must be an integer from 1 to 1000, not 0"
    ]


def test_a_small_repeat_beside_one_that_is_too_large(errors_of: ErrorsOf) -> None:
    large = "Repeat: {times: 999, layers: [Repeat: {times: 999, layers: [ReLU]}]}"
    text = valid_but(8, f"  - {large}\n  - Repeat: {{times: 2, layers: [ReLU]}}")
    assert errors_of(text) == [
        "run.yaml:8:14: the copies have more than 100,000 names, keys and values: is there a digit too many?"
    ]


def test_what_would_be_too_many_copies_is_counted_and_not_copied(
    errors_of: ErrorsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(Node, "copied")
    layers = "ReLU: {inplace: 1}"
    for _ in range(16):
        layers = f"Repeat: {{times: 2, layers: [{layers}]}}"
    assert errors_of(valid_but(8, f"  - {layers}")) == [
        "run.yaml:8:42: the copies have more than 100,000 names, keys and values: is there a digit too many?",
        "run.yaml:8:460: unknown key 'inplace' in ReLU; it has none",
    ]


TIED = "tied: [[0.weight, 1.weight]]\n"


def test_shared_parameters(load) -> None:  # type: ignore[no-untyped-def]  # as above
    config = load(with_layers(OF_32, OF_32) + TIED.replace("0.weight", "2.weight"))
    names = ["0.weight", "0.bias", "1.bias", "2.weight", "2.bias", "3.weight", "3.bias"]
    assert list(config.new_model().parameter_shapes()) == names
    again = load(dump_config(config))
    assert again.tied == [["2.weight", "1.weight"]]


@pytest.mark.parametrize(
    ("second", "error"),
    [
        ("1.weight", "the model has no parameter '1.weight'"),
        ("2.bias", "'0.weight' has shape (32, 64), '2.bias' has (10,)"),
    ],
)
def test_names_that_cannot_be_tied(errors_of: ErrorsOf, second: str, error: str) -> None:
    assert errors_of(VALID + TIED.replace("1.weight", second)) == [f"run.yaml:13:8: tied: {error}"]
