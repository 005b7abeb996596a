from collections.abc import Callable
from pathlib import Path

import pytest

from nn_manual.config import load_config
from nn_manual.errors import ConfigError

VALID = """\
seed: 3
dtype: float32
data: {Digits: {validation_fraction: 0.2}}
batch_size: 64
epochs: 20
model:
  - Linear: {in_features: 64, out_features: 32}
  - ReLU
  - Linear: {in_features: 32, out_features: 10}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1, momentum: 0.9}}
gradient_check: {every: 1}
"""


def valid_but(line: int, text: str) -> str:
    """VALID with another line in the place of one, counted from 1."""
    lines = VALID.splitlines()
    lines[line - 1] = text
    return "\n".join(lines) + "\n"


ErrorsOf = Callable[..., list[str]]


@pytest.fixture
def errors_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ErrorsOf:
    """The lines of the ConfigError that a config named run.yaml raises."""
    monkeypatch.chdir(tmp_path)

    def errors_of(text: str | bytes, *overrides: str) -> list[str]:
        Path("run.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
        with pytest.raises(ConfigError) as caught:
            load_config("run.yaml", overrides)
        return str(caught.value).split("\n")

    return errors_of
