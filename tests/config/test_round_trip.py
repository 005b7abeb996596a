"""dump_config writes what load_config reads as the same run."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from work import num_calls

import nn_manual
from nn_manual.config import dump_config, load_config
from nn_manual.data import Arrays

from .conftest import VALID

SHIPPED = sorted((Path(nn_manual.__file__).parent.parent / "config").glob("*.yaml"))
ELABORATE = (
    "initializer: {KaimingNormal: {mode: fan_out}}\nlr_scheduler: {StepLR: {step_size: 3}}\nclip_grad_norm: 1e-9\n"
    "early_stopping: {patience: 4, min_delta: 1e16}\n"
)


def test_every_default_is_written_out(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(VALID.replace("  - ReLU\n", "  - Sequential: [ReLU, Tanh]\n"))
    assert dump_config(load_config(path)) == """\
seed: 3
dtype: float32
data:
  Digits: {validation_fraction: 0.2}
batch_size: 64
epochs: 20
model:
- Linear: {in_features: 64, out_features: 32, bias: true}
- Sequential: [ReLU, Tanh]
- Linear: {in_features: 32, out_features: 10, bias: true}
tied: []
layer_folder: null
initializer: null
init_from: null
loss:
  CrossEntropyLoss: {reduction: mean, label_smoothing: 0.0, weight: null, ignore_index: -100}
optimizer:
  SGD:
    lr: 0.1
    momentum: 0.9
    dampening: 0.0
    weight_decay: 0.0
    nesterov: false
    maximize: false
    groups: []
lr_scheduler: null
lr_step: epoch
clip_grad_norm: null
clip_grad_value: null
slices: null
bitwise: false
shard_optimizer: false
sync_batch_norm: false
early_stopping: null
ema: null
gradient_check: {every: 1, memory: 128 MB, threads: null}
checkpoint: {every: 1 epoch, keep: 3}
compiled: false
blas: null
threads: null
loop_threads: null
"""


def test_the_shipped_configs_are_there() -> None:
    names = {path.stem for path in SHIPPED}
    assert names >= {"digits", "spirals", "diabetes", "fashion_mnist", "trace_relu"}


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_config_reads_back(tmp_path: Path, path: Path) -> None:
    dumped = dump_config(load_config(path))
    (tmp_path / "config.yaml").write_text(dumped)
    assert dump_config(load_config(tmp_path / "config.yaml")) == dumped


def test_the_optional_parts_read_back(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(VALID + ELABORATE)
    config = load_config(tmp_path / "run.yaml")
    (tmp_path / "config.yaml").write_text(dump_config(config))
    again = load_config(tmp_path / "config.yaml")
    assert again.initializer == config.initializer
    assert again.lr_scheduler == config.lr_scheduler
    assert again.early_stopping == config.early_stopping
    assert again.clip_grad_norm == config.clip_grad_norm == 1e-9
    assert again.optimizer.keywords == config.optimizer.keywords


def test_paths_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run.yaml").write_text(VALID.replace("Digits: {", "Arrays: {file: ../a.csv, target: y, task: regression, "))
    assert f"file: {tmp_path}/../a.csv" in dump_config(load_config("run.yaml"))


# What a config may hold as text, and what YAML or our reader could take for something else.
TEXT = st.one_of(
    st.text(st.characters(exclude_categories=["C", "Z"]) | st.just(" ")),
    st.from_regex(r"[-+.0-9eE_:~xo]*", fullmatch=True).filter(str.isprintable),
    st.sampled_from(["null", "true", "no", "on", ".inf", "1e3", "010", "=", "<<", "- a", "#", "a: b", "&a", "*a"]),
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(name=TEXT)
def test_any_text_reads_back(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    """It alone draws texts for a config."""
    path = tmp_path_factory.getbasetemp() / "round_trip.yaml"
    path.write_text(VALID.replace("Digits: {", "Arrays: {file: /a.csv, target: y, task: regression, "))
    config = load_config(path)
    assert isinstance(config.data, Arrays)
    config.data.target = [name]
    path.write_text(dump_config(config))
    again = load_config(path).data
    assert isinstance(again, Arrays)
    assert again.target == [name]


def test_loading_is_quick(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(VALID)
    load_config(path)
    # 20,000 as counted, in 0.01 s. In the 0.3 s that a start of the program may take, a processor makes 600,000.
    assert num_calls(lambda: load_config(path)) < 200_000


def test_loading_imports_neither_torch_nor_scikit_learn(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(VALID)
    code = (
        "import sys; from nn_manual.config import load_config; load_config(sys.argv[1]); "
        "sys.exit(not sys.modules.keys().isdisjoint(['torch', 'sklearn', 'matplotlib']))"
    )
    assert os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code, str(path)]) == 0
