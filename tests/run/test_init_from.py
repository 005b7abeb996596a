"""A run that starts from another program's weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from runs import write_config

from nn_manual import SGD, CrossEntropyLoss, Trainer
from nn_manual.config import load_config
from nn_manual.errors import ConfigError, DataError
from nn_manual.model import Sequential
from nn_manual.run.init_from import start_from_file
from nn_manual.run.loading import check
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.run_directory.weights import read_weights
from nn_manual.unroll.command import unroll

FILES = Path(__file__).parent / "gpt2"
#: The GPT-2 of gpt2/make.py: 13 tokens, 8 times, 2 blocks of 12 numbers, 3 heads.
GPT2 = """\
dtype: float64
data: {Text: {file: text.txt, context: 8, stride: 8}}
batch_size: 4
epochs: 2
model:
  - Embedding: {num_embeddings: 13, embedding_dim: 12}
  - LearnedPositions: {num_positions: 8, embedding_dim: 12}
  - Repeat:
      times: 2
      layers:
        - Residual:
            - LayerNorm: {normalized_shape: 12}
            - CausalSelfAttention: {embed_dim: 12, num_heads: 3}
        - Residual:
            - LayerNorm: {normalized_shape: 12}
            - Linear: {in_features: 12, out_features: 48}
            - GELU: {approximate: tanh}
            - Linear: {in_features: 48, out_features: 12}
  - LayerNorm: {normalized_shape: 12}
  - Flatten: {start_dim: 0, end_dim: 1}
  - Linear: {in_features: 12, out_features: 13, bias: false}
tied: [[0.weight, 8.weight]]
init_from: {file: model.safetensors, names: gpt2}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.5}}
"""
#: Two layers, and a file with names of another program, whose second weight is transposed.
SMALL = """\
data: {Spirals: {num_examples: 60, turns: 0.5}}
batch_size: 16
epochs: 1
model:
  - Linear: {in_features: 2, out_features: 3}
  - Tanh
  - Linear: {in_features: 3, out_features: 2}
init_from: {file: model.safetensors, names: {0.weight: hidden.w, 0.bias: hidden.b, 2.weight: head.w.T, 2.bias: head.b}}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.5}}
"""


def small(dtype: str = "float32") -> dict[str, Any]:
    """The tensors of SMALL's file."""
    generator = np.random.default_rng(0)
    shapes = {"hidden.w": (3, 2), "hidden.b": (3,), "head.w": (3, 2), "head.b": (2,)}
    return {name: generator.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}


def write(folder: Path, tensors: Mapping[str, Any], text: str = SMALL) -> Path:
    """Both files, with a text to read; returns the config's."""
    arrays = {name: np.asarray(each, order="C") for name, each in tensors.items()}
    safetensors.numpy.save_file(arrays, folder / "model.safetensors")
    (folder / "text.txt").write_text("abcdefghijklm" * 30)
    return write_config(folder, text)


def started(path: Path, *overrides: str) -> Sequential:
    config = load_config(path, overrides)
    model = config.new_model()
    assert start_from_file(config, model) == ""
    return model


def misfits(path: Path, *overrides: str) -> list[str]:
    """What is said, without the place, which each line has."""
    config = load_config(path, overrides)
    model = config.new_model()
    before = model.param_arena.copy()
    with pytest.raises(ConfigError) as caught:
        start_from_file(config, model)
    assert np.array_equal(before, model.param_arena)
    lines = str(caught.value).splitlines()
    starts = (f"{config.places['init_from']}: {path.parent / 'model.safetensors'}: ",)
    assert all(line.startswith(starts) for line in lines)
    return [line.removeprefix(starts[0]) for line in lines]


@pytest.mark.parametrize("prefix", ["transformer.", ""])
def test_a_gpt2_of_transformers_gives_the_same_logits_before_and_after_a_step(tmp_path: Path, prefix: str) -> None:
    """Two of its weights are square: if they weren't transposed, only the logits would show it."""
    found = safetensors.numpy.load_file(FILES / "model.safetensors")
    model = started(write(tmp_path, {name.replace("transformer.", prefix): each for name, each in found.items()}, GPT2))
    outputs = safetensors.numpy.load_file(FILES / "outputs.safetensors")
    logits = model(outputs["tokens"]).reshape(4, 8, 13)
    assert np.abs(logits - outputs["logits"]).max() < 1e-13 * np.abs(outputs["logits"]).max()
    Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.5)).train_step(outputs["tokens"], outputs["target"].reshape(-1))
    after, expected = model(outputs["tokens"]).reshape(4, 8, 13), outputs["logits_after"]
    assert np.abs(after - expected).max() < 1e-12 * np.abs(expected).max()
    assert np.abs(after - logits).max() > 0.1


def test_older_files_hold_masks_and_the_head_a_second_time(tmp_path: Path) -> None:
    found = safetensors.numpy.load_file(FILES / "model.safetensors")
    head = {"lm_head.weight": found["transformer.wte.weight"]}
    masks = {f"transformer.h.{n}.attn.{name}": np.ones(1) for n in range(2) for name in ("bias", "masked_bias")}
    model = started(write(tmp_path, found | masks | head, GPT2))
    assert np.array_equal(model.state_dict()["8.weight"], head["lm_head.weight"])
    other = {"lm_head.weight": head["lm_head.weight"] + 1}
    path = write(tmp_path, found | other, GPT2)
    words = "0.weight and 8.weight are one parameter, 'transformer.wte.weight' and 'lm_head.weight' differ"
    assert misfits(path) == [words]
    model = started(path, "tied=[]")
    assert np.array_equal(model.state_dict()["8.weight"], other["lm_head.weight"])
    assert np.array_equal(model.state_dict()["0.weight"], found["transformer.wte.weight"])


def test_a_gpt2_with_other_blocks_is_refused(tmp_path: Path) -> None:
    found = safetensors.numpy.load_file(FILES / "model.safetensors")
    path = write(tmp_path, found, GPT2)
    assert misfits(path, "model.2.Repeat.times=3", "tied=[]") == [
        "names: a GPT-2 of 2 blocks, as in this file, has 28 parameters, and one more with a head that isn't tied; "
        "the model has 41"
    ]
    wide = misfits(path, "model.0.Embedding.num_embeddings=14", "model.8.Linear.out_features=14")
    assert wide == ["0.weight has the shape (14, 12), 'transformer.wte.weight' has (13, 12)"]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_table_gives_each_parameter_its_tensor(tmp_path: Path, dtype: str) -> None:
    tensors = small(dtype)
    model = started(write(tmp_path, tensors))
    own = model.state_dict()
    assert np.array_equal(own["0.weight"], tensors["hidden.w"].astype(np.float32))
    assert np.array_equal(own["2.weight"], tensors["head.w"].T.astype(np.float32))
    assert np.array_equal(own["2.bias"], tensors["head.b"].astype(np.float32))


def test_null_leaves_a_parameter_as_it_was_drawn(tmp_path: Path) -> None:
    path = write(tmp_path, small())
    names = "init_from.names={0.weight: hidden.w, 0.bias: hidden.b, 2.weight: null, 2.bias: null}"
    config = load_config(path, [names])
    model, drawn = config.new_model(), config.new_model().state_dict()
    place = config.places["init_from"]
    note = f"{place}: note: {tmp_path / 'model.safetensors'}: the model takes 2 tensors, and not 'head.b', 'head.w'"
    assert start_from_file(config, model) == note
    assert np.array_equal(model.state_dict()["2.weight"], drawn["2.weight"])
    assert np.array_equal(model.state_dict()["0.bias"], small()["hidden.b"])


def test_names_of_its_own_need_no_table(tmp_path: Path) -> None:
    """A file of `torch.save`'s kind, and one of a run, have buffers, and shared parameters once or twice."""
    text = SMALL.replace("Tanh", "BatchNorm1d: {num_features: 3}").replace("names: {0", "names: torch} #")
    path = write(tmp_path, {}, text)
    whole = load_config(path).new_model()
    state = {name: each + 1 for name, each in whole.state_dict().items()}
    model = started(write(tmp_path, state, text))
    assert all(np.array_equal(each, state[name]) for name, each in model.state_dict().items())
    del state["1.running_mean"]
    state["2.weight"] = state["2.weight"].astype(np.int64)
    state["1.num_batches_tracked"] = np.array(3, np.float32)
    assert misfits(write(tmp_path, state, text)) == [
        "there is no '1.running_mean' for 1.running_mean",
        "1.num_batches_tracked is int64, '1.num_batches_tracked' is float32",
        "2.weight is float32, '2.weight' is int64",
    ]


def test_all_misfits_are_reported_at_once(tmp_path: Path) -> None:
    tensors = small()
    tensors["head.v"] = tensors.pop("head.b")
    tensors["hidden.b"] = np.full(3, np.nan, np.float32)
    path = write(tmp_path, tensors)
    table = "{0.weight: hidden.w.T, 0.bias: hidden.b, 2.weight: head.w, 2.bias: head.b, 2.wieght: head.w}"
    assert misfits(path, f"init_from.names={table}") == [
        "names: the model has no parameter '2.wieght'; did you mean '2.weight'?",
        "there is no 'head.b' for 2.bias; did you mean 'head.v'?",
        "0.weight has the shape (3, 2), 'hidden.w' has (3, 2), to be transposed",
        "'hidden.b' for 0.bias has numbers that are not finite",
        "2.weight has the shape (2, 3), 'head.w' has (3, 2); write head.w.T for the transposed one",
    ]


def test_a_dtype_that_numpy_lacks(tmp_path: Path) -> None:
    """bfloat16, as many published weights have it."""
    path = write(tmp_path, small())
    file = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(small("float16"), file)
    file.write_bytes(file.read_bytes().replace(b'"F16"', b'"BF16"', 1).replace(b"} ", b"}", 1))
    (line,) = misfits(path)
    assert line.endswith(" is of a dtype that NumPy lacks")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("cut off", "is not a whole safetensors file: "),
        ("gone", "can't be read: No such file or directory"),
        ("a FIFO", "can't be read: is a FIFO, not a file"),
    ],
)
def test_a_file_that_is_none(tmp_path: Path, kind: str, words: str) -> None:
    path = write(tmp_path, small())
    file = tmp_path / "model.safetensors"
    content = file.read_bytes()
    file.unlink()
    if kind == "a FIFO":
        os.mkfifo(file)
    elif kind == "cut off":
        file.write_bytes(content[:-1])
    with pytest.raises(DataError) as caught:
        run(load_config(path), tmp_path / "run")
    assert str(caught.value).startswith(f"{file}: {words}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("gpt3", "names must be 'torch' or 'gpt2' or keys and values, not the text 'gpt3'"),
        ("[a]", "names must be 'torch' or 'gpt2' or keys and values, not a list"),
        ("{0.weight: 3}", "names must be text, not 3"),
    ],
)
def test_names_of_another_kind(tmp_path: Path, names: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, small(), SMALL.replace("{0.weight: hidden.w", names + "} # ")))
    assert str(caught.value).endswith(f": {words}")
    assert str(caught.value).startswith(f"{tmp_path / 'small.yaml'}:8:{46 if names[0] == '{' else 38}: ")


def test_a_run_starts_there_and_goes_on_without_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = safetensors.numpy.load_file(FILES / "model.safetensors")
    path = write(tmp_path, found | {"old.head": np.ones(2)}, GPT2)
    run(load_config(path, ["optimizer.SGD.lr=0"]), tmp_path / "still")
    assert "and not 'old.head'" in capsys.readouterr().err
    still = read_weights(tmp_path / "still" / "model.safetensors")
    assert np.array_equal(still["0.weight"], found["transformer.wte.weight"])
    run(load_config(path), tmp_path / "whole")
    run(load_config(path, ["epochs=1"]), tmp_path / "run")
    (tmp_path / "model.safetensors").unlink()
    resume(tmp_path / "run", ["epochs=2"])
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


def test_a_run_without_a_checkpoint_starts_there_again(tmp_path: Path) -> None:
    path = write(tmp_path, small())
    run(load_config(path), tmp_path / "whole")
    before = (tmp_path / "whole" / "model.safetensors").read_bytes()
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "config.yaml").write_bytes((tmp_path / "whole" / "config.yaml").read_bytes())
    resume(tmp_path / "cut")
    assert (tmp_path / "cut" / "model.safetensors").read_bytes() == before


def test_the_check_and_the_script_start_there(tmp_path: Path) -> None:
    tensors = small("float64")
    path = write(tmp_path, tensors, "dtype: float64\n" + SMALL)
    script = unroll(load_config(path), "small.yaml", run="arrays.npz")
    assert np.array_equal(script.arrays["param"][:6], tensors["hidden.w"].reshape(-1))
    report = check(load_config(path))
    assert report.passed
    tensors["head.b"][0] = np.inf
    write(tmp_path, tensors)
    with pytest.raises(ConfigError, match="not finite"):
        check(load_config(path))


def test_what_the_file_holds_is_said_where_no_name_is_near(tmp_path: Path) -> None:
    found = safetensors.numpy.load_file(FILES / "model.safetensors")
    lines = misfits(write(tmp_path, found), "init_from.names=torch")
    names = ", ".join(f"'transformer.h.0.{name}'" for name in (
        "attn.c_attn.bias", "attn.c_attn.weight", "attn.c_proj.bias", "attn.c_proj.weight", "ln_1.bias"))
    assert lines == [
        *(f"there is no '{name}' for {name}" for name in ("0.weight", "0.bias", "2.weight", "2.bias")),
        f"it holds {names} and 23 others",
    ]
