"""The keys that an override can have."""

from __future__ import annotations

from pathlib import Path

import pytest

from nn_manual.config import load_config
from nn_manual.config.override_keys import override_keys
from nn_manual.errors import ConfigError

from .conftest import VALID

OF_VALID = [
    *("seed", "dtype", "data.Digits.validation_fraction", "batch_size", "epochs"),
    *("model.0.Linear.in_features", "model.0.Linear.out_features", "model.1"),
    *("model.2.Linear.in_features", "model.2.Linear.out_features"),
    *("loss", "optimizer.SGD.lr", "optimizer.SGD.momentum", "gradient_check.every"),
]
OTHERS = [
    *("tied", "layer_folder", "initializer", "init_from", "lr_scheduler", "lr_step", "clip_grad_norm"),
    *("clip_grad_value", "slices"),
    *("bitwise", "shard_optimizer", "sync_batch_norm", "early_stopping", "ema", "checkpoint", "compiled", "blas"),
    *("threads", "loop_threads"),
]


def keys_of(text: str, folder: Path) -> list[str]:
    (folder / "run.yaml").write_text(text)
    return override_keys(folder / "run.yaml")


def test_the_values_of_the_file_and_the_other_keys(tmp_path: Path) -> None:
    assert keys_of(VALID, tmp_path) == OF_VALID + OTHERS


def test_each_is_taken_as_an_override(tmp_path: Path) -> None:
    """With a value that no key takes, none is called unknown."""
    keys = keys_of(VALID, tmp_path)
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "run.yaml", [f"{key}={{wrong: [0]}}" for key in keys])
    message = str(caught.value)
    assert "unknown key" not in message.replace("unknown key 'wrong'", "")
    assert all(f"override '{key}=" in message for key in keys if "." in key)


def test_repeats_lists_and_layers_of_ones_own(tmp_path: Path) -> None:
    repeat = "Repeat: {times: 2, layers: [Tanh, my_layers:Softplus: {beta: 2}]}"
    text = (
        VALID.replace("- ReLU", f"- {repeat}")
        .replace("lr: 0.1", "lr: 0.1, groups: []")
        .replace("seed: 3", "tied: [[a, b]]")
    )
    keys = keys_of(text, tmp_path)
    assert keys[0] == "tied"
    assert [key for key in keys if key.startswith(("model.1", "model.2", "model.3", "model.4"))] == [
        *("model.1", "model.2.my_layers:Softplus.beta", "model.3", "model.4.my_layers:Softplus.beta"),
    ]
    assert "optimizer.SGD.groups" in keys


@pytest.mark.parametrize("text", ["", "[1]", "a: [", "just text"])
def test_a_file_without_keys_has_none(tmp_path: Path, text: str) -> None:
    assert keys_of(text, tmp_path) == []
    assert override_keys(tmp_path / "nowhere.yaml") == []
