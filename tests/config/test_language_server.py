"""What an editor says of a config: yaml-language-server reads the schema that the config's first line names."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from language_server import LanguageServer, installed, language_server

from nn_manual.optim import Optimizer
from nn_manual.registry import components
from nn_manual.use.new_config import new_config
from nn_manual.use.schema_file import SCHEMA_FILE

pytestmark = pytest.mark.slow  # it alone shows that an editor understands the schema, and finds it

CONFIG = Path(__file__).parents[2] / "config"
DIGITS = (CONFIG / "digits.yaml").read_text(encoding="utf-8")
LINES = DIGITS.splitlines()
OPTIMIZER = "optimizer: {SGD: {lr: 0.1, momentum: 0.9, weight_decay: 3e-3}}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LanguageServer]:
    with language_server(installed(tmp_path_factory.mktemp("npm"))) as server:
        yield server


def written(folder: Path, old: str, new: str) -> Path:
    """digits.yaml with another text in it, beside the schema."""
    assert old in DIGITS
    shutil.copy(CONFIG / SCHEMA_FILE, folder)
    path = folder / "changed.yaml"
    path.write_text(DIGITS.replace(old, new, 1), encoding="utf-8")
    return path


def line_of(text: str) -> int:
    """The line of digits.yaml, counted from 1, that begins with a text."""
    (number,) = [number for number, line in enumerate(LINES, 1) if line.startswith(text)]
    return number


@pytest.mark.parametrize("path", sorted(CONFIG.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_config_is_right(server: LanguageServer, path: Path) -> None:
    assert server.errors_in(path) == []


def test_a_new_config_is_right(server: LanguageServer, tmp_path: Path) -> None:
    rows = "".join(f"{row},{row % 5}.5,{'abc'[row % 3]}\n" for row in range(30))
    (tmp_path / "flowers.csv").write_text(f"length,width,species\n{rows}")
    new_config(tmp_path / "flowers.csv", ["species"], tmp_path / "flowers.yaml")
    assert server.errors_in(tmp_path / "flowers.yaml") == []
    (tmp_path / "wrong.yaml").write_text((tmp_path / "flowers.yaml").read_text().replace(" task:", " tusk:"))
    assert [message for _, message in server.errors_in(tmp_path / "wrong.yaml")] == [
        'Missing property "task".',
        "Property tusk is not allowed.",
    ]


def _of(names: list[str]) -> str:
    """What the server says of another name than these."""
    return "Value is not accepted. Valid values: " + ", ".join(f'"{name}"' for name in names) + "."


BARE_LAYERS = [
    "AlphaDropout", "CELU", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU", "FeatureAlphaDropout", "Flatten",
    "GELU", "GLU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LeakyReLU", "LogSigmoid",
    "MaskedFill", "Mish", "PReLU", "PaddedTimePool", "RReLU", "ReLU", "ReLU6", "SELU", "SiLU", "Sigmoid", "Softmax2d",
    "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "TimePool", "Upsample",
]
OF_LAYERS = _of(BARE_LAYERS)
OF_OPTIMIZERS = _of(sorted(components(Optimizer)))


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        ("epochs", "epoch", ['Missing property "epochs".', "Property epoch is not allowed."]),
        ("batch_size: 64", "batch_size: '64'", ['Incorrect type. Expected "integer".']),
        ("in_features", "in_feature", ['Missing property "in_features".', "Property in_feature is not allowed."]),
        ("lr: 0.1", "lr: fast", ['Incorrect type. Expected "number".']),
        ("- ReLU", "- Rulu", [OF_LAYERS]),
        ("- ReLU", "- Linear", [OF_LAYERS]),
        ("SGD", "SDG", [OF_OPTIMIZERS]),
        ("- ReLU", "- my_layers:Softplus", []),
        ("- ReLU", "- my_layers:Softplus: {beta: 2}", []),
        ("- ReLU", "- Repeat: {times: 2, layers: [ReLU, Residual: [Tanh]]}", []),
    ],
)
def test_what_is_wrong_is_marked(
    server: LanguageServer, tmp_path: Path, old: str, new: str, messages: list[str]
) -> None:
    found = server.errors_in(written(tmp_path, old, new))
    assert [message for _, message in found] == messages
    line = DIGITS[: DIGITS.index(old)].count("\n") + 1
    assert {line for line, message in found if not message.startswith("Missing")} <= {line}


def test_what_could_follow_is_offered(server: LanguageServer, tmp_path: Path) -> None:
    path = written(tmp_path, "- ReLU", "- R")
    server.errors_in(path)
    layers = server.completions(path, line_of("  - ReLU"), len("  - R") + 1)
    assert {"ReLU", "Linear", "Repeat", "LSTM"} <= set(layers)
    assert "SGD" not in layers
    settings = server.completions(path, line_of("optimizer"), len("optimizer: {SGD: {lr: 0.1, m") + 1)
    assert {"nesterov", "dampening", "groups"} <= set(settings)
    assert "lr" not in settings  # it stands there
    assert "model" not in settings  # no config gives it


def test_what_a_key_means_is_shown(server: LanguageServer) -> None:
    path = CONFIG / "gpt.yaml"
    server.errors_in(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    (line,) = [number for number, line in enumerate(lines, 1) if line.startswith("clip_grad_norm")]
    assert "is the largest norm that the gradient keeps." in server.hover(path, line, 3)
