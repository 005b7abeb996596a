"""The JSON Schema of a config takes what load_config takes, and refuses what it refuses, as far as a schema can."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from jsonschema import Draft7Validator

from nn_manual.config import RunConfig, dump_config, load_config
from nn_manual.config.build import Builder
from nn_manual.config.component_names import named
from nn_manual.config.json_schema import json_schema
from nn_manual.config.listing import keys
from nn_manual.config.user_classes import Importer
from nn_manual.config.yaml_tree import Errors, Node, Place, plain, read_tree
from nn_manual.layers import Layer
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.registry import KINDS, takes_layers

from .conftest import MY_LAYERS, VALID, ErrorsOf

ROOT = Path(__file__).parents[2]
CONFIGS = sorted((ROOT / "config").glob("*.yaml"))
SCHEMA = json_schema()
HERE = Place("here")


def errors_in(text: str) -> list[str]:
    """What the schema says against a config."""
    errors = Errors()
    tree = read_tree(text, lambda line, column: Place("run.yaml", line, column), errors)
    assert tree is not None
    assert not errors.found
    return [error.message for error in Draft7Validator(SCHEMA).iter_errors(plain(tree))]


def test_it_is_a_json_schema() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert list(SCHEMA["definitions"]) == [kind.__name__ for kind in KINDS]


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_every_config_is_right_as_it_is_and_with_every_default(path: Path) -> None:
    assert errors_in(path.read_text()) == []
    assert errors_in(dump_config(load_config(path))) == []


def valid_with(**changed: str) -> str:
    """VALID with other keys, or with other values of its keys; `layer` is that of model.1."""
    lines = [f"  - {changed['layer']}" if "layer" in changed and line == "  - ReLU" else line for line in LINES]
    own = {name: value for name, value in changed.items() if name != "layer"}
    kept = [line for line in lines if (line.partition(":")[0] if line[0] != " " else "model") not in own]
    return "\n".join([*kept, *(f"{name}: {value}" for name, value in own.items())]) + "\n"


LINES = VALID.splitlines()
RIGHT: list[dict[str, str]] = [
    {},
    {"layer": "{ReLU: }"},
    {"layer": "{ReLU: {}}"},
    {"layer": "Sequential: [Tanh, {Sequential: [ReLU, {Linear: {in_features: 32, out_features: 32}}]}]"},
    {"layer": "Residual: [Tanh]"},
    {"layer": "Repeat: {times: 2, layers: [Tanh, {Repeat: {times: 1, layers: [ReLU]}}]}"},
    {"layer": "LayerNorm: {normalized_shape: [32], eps: 1}"},
    {"layer": "my_layers:Softplus"},
    {"layer": "my_layers:Softplus: {beta: 2}"},
    {"layer": "my_layers:Softplus: "},
    {"optimizer": "Adam"},
    {"optimizer": "{Adam: {betas: [0, 0.9], groups: [{parameters: '*.bias', lr: 1, betas: [0.5, 0.5]}]}}"},
    {"lr_scheduler": "{SequentialLR: {schedulers: [ConstantLR, LinearLR: {total_iters: 2}], milestones: [2]}}"},
    {"clip_grad_norm": "1", "initializer": "GPT2", "slices": "null", "lr_scheduler": "null"},
    {"early_stopping": "{patience: 2}", "checkpoint": "{every: 5 steps}", "gradient_check": "{}"},
    {"loss": "{CrossEntropyLoss: {weight: [1, 2, 0.5, 1, 1, 1, 1, 1, 1, 1]}}"},
]


@pytest.mark.parametrize("changed", RIGHT, ids=str)
def test_what_load_config_takes(changed: dict[str, str], tmp_path: Path) -> None:
    text = valid_with(**changed)
    (tmp_path / "my_layers.py").write_text(MY_LAYERS.replace("import my_formulas\n", ""))
    (tmp_path / "run.yaml").write_text(text)
    load_config(tmp_path / "run.yaml")
    assert errors_in(text) == []


WRONG: list[dict[str, str]] = [
    {"epoch": "3"},
    {"epochs": "0"},
    {"epochs": "null"},
    {"batch_size": "'64'"},
    {"dtype": "float16"},
    {"seed": "-1"},
    {"model": "[]"},
    {"model": "ReLU"},
    {"layer": "Rulu"},
    {"layer": "{Rulu: {}}"},
    {"layer": "{ReLU: {inplace: true}}"},
    {"layer": "{ReLU: {}, Tanh: {}}"},
    {"layer": "{}"},
    {"layer": "Linear"},
    {"layer": "{Linear: }"},
    {"layer": "Linear: {in_features: 32}"},
    {"layer": "Linear: {in_features: 32.5, out_features: 32}"},
    {"layer": "Linear: {in_features: 32, out_features: 32, bias: yes}"},
    {"layer": "Residual"},
    {"layer": "Residual: []"},
    {"layer": "Residual: {layers: [Tanh]}"},
    {"layer": "Residual: [Tanh, Rulu]"},
    {"layer": "Repeat"},
    {"layer": "Repeat: {times: 0, layers: [Tanh]}"},
    {"layer": "Repeat: {times: 2}"},
    {"layer": "Repeat: {times: 2, layers: []}"},
    {"layer": "Repeat: {times: 2, layers: [Tanh], copies: 3}"},
    {"loss": "ReLU"},
    {"loss": "null"},
    {"optimizer": "{SGD: {lr: fast}}"},
    {"optimizer": "{SGD: {model: 1}}"},
    {"optimizer": "{Adam: {betas: [0.9]}}"},
    {"optimizer": "{SGD: {groups: [{lr: 1}]}}"},
    {"optimizer": "{SGD: {groups: [{parameters: '*', betas: [0, 0]}]}}"},
    {"lr_scheduler": "{SequentialLR: {schedulers: ConstantLR, milestones: []}}"},
    {"early_stopping": "{}"},
    {"early_stopping": "{patience: 0}"},
    {"gradient_check": "null"},
    {"clip_grad_norm": "0"},
    {"clip_grad_value": "0"},
    {"data": "{Text: {file: [a.txt]}}"},
]


@pytest.mark.parametrize("changed", WRONG, ids=str)
def test_what_load_config_refuses(changed: dict[str, str], errors_of: ErrorsOf) -> None:
    text = valid_with(**changed)
    assert errors_of(text)
    assert errors_in(text) != []


def has_keys(cls: type) -> bool:
    """Whether a type is a mapping of a config's, such as EarlyStopping, and no component."""
    return is_dataclass(cls) and cls not in KINDS


def dataclasses_of_a_config() -> Iterator[type]:
    """The config, those of its keys that hold keys, and every component with keys."""
    yield RunConfig
    for hint in get_type_hints(RunConfig).values():
        yield from (member for member in (hint, *get_args(hint)) if isinstance(member, type) and has_keys(member))
    for kind in KINDS:
        yield from (component for component in named(kind).values() if not takes_layers(component))


def schema_of(cls: type) -> dict[str, Any]:
    """What the schema has for the keys of a dataclass."""
    if cls is RunConfig:
        return SCHEMA
    for kind in KINDS:
        if issubclass(cls, kind):
            (form,) = [form for form in SCHEMA["definitions"][kind.__name__]["anyOf"] if "properties" in form]
            return dict(form["properties"][cls.__name__])
    (name,) = [name for name, hint in get_type_hints(RunConfig).items() if cls in (hint, *get_args(hint))]
    found = SCHEMA["properties"][name]
    return dict(found["anyOf"][0] if "anyOf" in found else found)


def node_of(value: Any) -> Node:
    if isinstance(value, list):
        value = [node_of(item) for item in value]
    elif isinstance(value, dict):
        value = {name: node_of(item) for name, item in value.items()}
    return Node(value, HERE, HERE)


#: One of each type, in which no number is out of a key's range.
VALUES: list[Any] = [None, True, 1, 0.5, "text", {}, [], [1], [0.5], ["text"], [None], [{}], [[1]], [["text"]]]
VALUES += [[1, 2], [1, 2, 3]]


@pytest.mark.slow
def test_each_key_of_each_dataclass_takes_the_same_types() -> None:
    """For each key and each value, the schema and the Builder of load_config say the same.
    It alone compares the schema with load_config for every key.
    """
    num_taken = num_refused = 0
    for cls in dataclasses_of_a_config():
        schema = schema_of(cls)
        assert list(schema["properties"]) == [name for name, _, _ in keys(cls)]
        assert schema["required"] == [name for name, _, value in keys(cls) if value is None]
        validator = Draft7Validator({**schema, "required": [], "definitions": SCHEMA["definitions"]})
        for name, value in itertools.product([*schema["properties"], "unknown"], VALUES):
            errors = Errors()
            given: dict[str, Any] = {"model": Sequential()} if issubclass(cls, Optimizer) else {}
            Builder(Path(), Importer(Path()), errors).arguments(cls, "it", node_of({name: value}), **given)
            is_refused = any(not message.startswith("it needs ") for _, message in errors.found)
            assert validator.is_valid({name: value}) != is_refused, (cls, name, value)
            num_refused += is_refused
            num_taken += not is_refused
    assert num_refused > num_taken > 300


def test_texts_of_components_and_keys() -> None:
    names, with_arguments, own = SCHEMA["definitions"]["Layer"]["anyOf"]
    assert dict(zip(names["enum"], names["enumDescriptions"], strict=True))["ReLU"] == "Rectifier, any shape."
    assert own == {"type": "string", "pattern": "^[^:]+:[^:]+$"}
    linear = with_arguments["properties"]["Linear"]
    assert linear["description"] == "Affine map, input (..., in_features) to output (..., out_features)."
    assert linear["properties"]["in_features"] == {"description": "integer", "type": "integer"}
    assert linear["properties"]["bias"]["default"] is True
    assert linear["properties"]["bias"]["description"].startswith("bool = true\n\n")
    assert with_arguments["properties"].keys() == {*named(Layer), "Repeat"}
    assert SCHEMA["properties"]["clip_grad_norm"] == {
        "description": "number | null = null\n\n`clip_grad_norm` is the largest norm that the gradient keeps.",
        "anyOf": [{"exclusiveMinimum": 0, "type": "number"}, {"type": "null"}],
        "default": None,
    }
    assert SCHEMA["properties"]["optimizer"]["description"] == "optimizer"
    assert SCHEMA["properties"]["checkpoint"]["default"] == {"every": "1 epoch", "keep": 3}


def test_it_is_json() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
