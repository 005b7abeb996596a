"""A run that starts from another program's weights."""

from __future__ import annotations

import json
import os
import re
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
from nn_manual.run.loading import check, load
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
    """The model, of which nothing else is said."""
    model, notes = start(path, *overrides)
    assert re.fullmatch(r"the run starts from \d+ tensors of .*\.safetensors", "\n".join(notes))
    return model


def start(path: Path, *overrides: str) -> tuple[Sequential, list[str]]:
    """The model, and the notes without the place."""
    config = load_config(path, overrides)
    split, model = load(config)
    notes = start_from_file(config, split, model)
    assert all(note.startswith(f"{config.places['init_from.file']}: note: ") for note in notes)
    return model, [note.partition(": note: ")[2] for note in notes]


def misfits(path: Path, *overrides: str) -> list[str]:
    """What is said behind the line that names the file, without places. Nothing is changed."""
    return [re.sub(rf"^{re.escape(str(path))}:\d+:\d+: ", "", line) for line in placed_misfits(path, *overrides)]


def placed_misfits(path: Path, *overrides: str) -> list[str]:
    """The same with the place of what stands in the table."""
    config = load_config(path, overrides)
    split, model = load(config)
    before = model.param_arena.copy()
    with pytest.raises(ConfigError) as caught:
        start_from_file(config, split, model)
    assert np.array_equal(before, model.param_arena)
    first, *lines = str(caught.value).splitlines()
    assert first == f"{config.places['init_from.file']}: {path.parent / 'model.safetensors'} doesn't fit the model:"
    return lines


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
    for overrides, words in (
        (["model.2.Repeat.times=3", "tied=[]"], "it holds a GPT-2 of 2 blocks, and the model has 3"),
        (["model.6=Tanh", "tied=[]"], "layer 8 is Linear, and GPT-2 has LayerNorm there"),
        (["model.8.Linear.bias=true"], "GPT-2 has a bias in attention, LayerNorm and each Linear but the last"),
    ):
        assert misfits(path, *overrides) == [words]
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
    drawn = load_config(path).new_model().state_dict()
    model, notes = start(path, names)
    file = tmp_path / "model.safetensors"
    assert notes == [f"the run starts from 2 tensors of {file}, and not from 'head.b', 'head.w'"]
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
        "1.running_mean: there is no tensor '1.running_mean'",
        "1.num_batches_tracked is int64, '1.num_batches_tracked' is F32",
        "2.weight is float32, '2.weight' is I64; write it as float32 there",
    ]


def test_all_misfits_are_reported_at_once(tmp_path: Path) -> None:
    tensors = small()
    tensors["head.v"] = tensors.pop("head.b")
    tensors["hidden.b"] = np.full(3, np.nan, np.float32)
    path = write(tmp_path, tensors)
    table = "{0.weight: hidden.w.T, 0.bias: hidden.b, 2.weight: head.w, 2.bias: head.b, 2.wieght: head.w}"
    assert misfits(path, f"init_from.names={table}") == [
        "the model has no parameter '2.wieght'; did you mean '2.weight'?",
        "2.bias: there is no tensor 'head.b'; did you mean 'head.v'?",
        "0.weight has the shape (3, 2), 'hidden.w' has (3, 2), transposed (2, 3)",
        "0.bias: 'hidden.b' has numbers that are not finite as float32",
        "2.weight has the shape (2, 3), 'head.w' has (3, 2); write head.w.T for the transposed one",
    ]


def test_a_misfit_is_at_its_line_of_the_table(tmp_path: Path) -> None:
    """What the table doesn't name has no line there, and of an override the name is enough."""
    table = "{0.weight: hidden.w.T,\n  0.bias: head.b, 2.wieght: head.w} }\n"
    text = re.sub("init_from: .*\n", "init_from: {file: model.safetensors, names: " + table, SMALL)
    path = write(tmp_path, small(), text)
    lines = [
        "2.weight: there is no tensor '2.weight'",
        "2.bias: there is no tensor '2.bias'",
        "nothing takes 'head.w', 'hidden.b'",
        f"{path}:8:46: 0.weight has the shape (3, 2), 'hidden.w' has (3, 2), transposed (2, 3)",
        f"{path}:9:3: 0.bias has the shape (3,), 'head.b' has (2,)",
    ]
    unknown = f"{path}:9:19: the model has no parameter '2.wieght'; did you mean '2.weight'?"
    assert placed_misfits(path) == [unknown, *lines]
    names = "init_from.names={2.weight: hidden.w, 2.bias: head.b}"
    (line, *_) = placed_misfits(write(tmp_path, small()), names)
    assert line.startswith("0.weight: there is no tensor")


def test_a_table_of_nulls_takes_nothing(tmp_path: Path) -> None:
    nulls = "init_from.names={0.weight: null, 0.bias: null, 2.weight: null, 2.bias: null}"
    assert misfits(write(tmp_path, small()), nulls) == [
        "nothing of it is taken: names has null for each parameter"
    ]


def test_only_a_matrix_is_said_to_be_transposed(tmp_path: Path) -> None:
    text = re.sub("names: {.*?}", "names: torch", SMALL).replace("Linear: {in_features: 2, out_features: 3}", """\
Unflatten: {dim: 1, unflattened_size: [2, 1]}
  - Conv1d: {in_channels: 2, out_channels: 3, kernel_size: 1}
  - Flatten""").replace("Tanh", "Linear: {in_features: 3, out_features: 3}")
    state = load_config(write(tmp_path, {}, text)).new_model().state_dict()
    tensors = {name: each.T for name, each in state.items()}
    tensors["4.weight"] = state["4.weight"]
    assert misfits(write(tmp_path, tensors, text)) == ["1.weight has the shape (3, 2, 1), '1.weight' has (1, 2, 3)"]


def test_a_dtype_that_numpy_lacks(tmp_path: Path) -> None:
    """bfloat16, as many published weights have it."""
    path = write(tmp_path, small())
    file = tmp_path / "model.safetensors"
    safetensors.numpy.save_file(small("float16"), file)
    file.write_bytes(file.read_bytes().replace(b'"F16"', b'"BF16"', 1).replace(b"} ", b"}", 1))
    (line,) = misfits(path)
    assert line.endswith(" is BF16; write it as float32 there")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("cut off", "is not a whole safetensors file: it has 323 bytes, and 324 by its header"),
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
    assert str(caught.value) == f"{path}:8:13: {file}: {words}"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("names", "words"),
    [
        ("gpt3", "names must be 'torch' or 'gpt2' or keys and values, not the text 'gpt3'"),
        ("[a]", "names must be 'torch' or 'gpt2' or keys and values, not a list"),
        ("{0.weight: 3}", "names.0.weight must be text, not 3"),
    ],
)
def test_names_of_another_kind(tmp_path: Path, names: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, small(), SMALL.replace("{0.weight: hidden.w", names + "} # ")))
    assert str(caught.value).endswith(f": {words}")
    assert str(caught.value).startswith(f"{tmp_path / 'small.yaml'}:8:{46 if names[0] == '{' else 38}: ")


@pytest.mark.parametrize("is_override", [False, True])
def test_all_wrong_names_are_reported_at_once(tmp_path: Path, is_override: bool) -> None:
    """Those of an override, too, which have one place."""
    table = "{0.bias: [a], 2.weight: 3, 2.bias: head.b}"
    text = SMALL if is_override else re.sub("names: {.*?}", f"names: {table}", SMALL)
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, small(), text), [f"init_from.names={table}"] * is_override)
    first, second = str(caught.value).splitlines()
    assert first.endswith(": names.0.bias must be text, not a list")
    assert second.endswith(": names.2.weight must be text, not 3")


@pytest.mark.slow
def test_a_run_starts_there_and_goes_on_without_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It alone resumes a run whose first weights are gone."""
    found = safetensors.numpy.load_file(FILES / "model.safetensors")
    path = write(tmp_path, found | {"old.head": np.ones(2)}, GPT2)
    run(load_config(path, ["optimizer.SGD.lr=0"]), tmp_path / "still")
    assert "and not from 'old.head'" in capsys.readouterr().err
    still = read_weights(tmp_path / "still" / "model.safetensors")
    assert np.array_equal(still["0.weight"], found["transformer.wte.weight"])
    run(load_config(path), tmp_path / "whole")
    run(load_config(path, ["epochs=1"]), tmp_path / "run")
    (tmp_path / "model.safetensors").unlink()
    resume(tmp_path / "run", ["epochs=2"])
    assert (tmp_path / "run" / "model.safetensors").read_bytes() == (
        tmp_path / "whole" / "model.safetensors"
    ).read_bytes()


@pytest.mark.slow
def test_a_run_without_a_checkpoint_starts_there_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It alone starts such a run a second time."""
    path = write(tmp_path, small())
    run(load_config(path), tmp_path / "whole")
    before = (tmp_path / "whole" / "model.safetensors").read_bytes()
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "config.yaml").write_bytes((tmp_path / "whole" / "config.yaml").read_bytes())
    capsys.readouterr()
    resume(tmp_path / "cut")
    assert capsys.readouterr().err.startswith(f"{tmp_path / 'cut' / 'config.yaml'}:")
    assert (tmp_path / "cut" / "model.safetensors").read_bytes() == before


def test_the_check_and_the_script_start_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And say on standard error of what the file holds beside."""
    tensors, file = small("float64"), tmp_path / "model.safetensors"
    path = write(tmp_path, tensors, "dtype: float64\n" + SMALL)
    script = unroll(load_config(path), "small.yaml", run="arrays.npz")
    assert np.array_equal(script.arrays["param"][:6], tensors["hidden.w"].reshape(-1))
    report = check(load_config(path))
    assert report.passed
    assert capsys.readouterr().err == 2 * f"{path}:9:13: note: the run starts from 4 tensors of {file}\n"
    tensors["head.b"][0] = np.inf
    write(tmp_path, tensors)
    with pytest.raises(ConfigError, match="not finite"):
        check(load_config(path))


def test_what_the_file_holds_is_said_where_no_name_is_near(tmp_path: Path) -> None:
    found = safetensors.numpy.load_file(FILES / "model.safetensors")
    lines = misfits(write(tmp_path, found), "init_from.names=torch")
    assert lines == ["it holds a GPT-2: write names: gpt2 behind the file"]
    del found["transformer.wte.weight"]
    names = ", ".join(f"'transformer.h.0.{name}'" for name in (
        "attn.c_attn.bias", "attn.c_attn.weight", "attn.c_proj.bias", "attn.c_proj.weight", "ln_1.bias"))
    assert misfits(write(tmp_path, found), "init_from.names=torch") == [
        *(f"{name}: there is no tensor '{name}'" for name in ("0.weight", "0.bias", "2.weight", "2.bias")),
        f"nothing takes {names} and 22 others",
    ]
    assert misfits(write(tmp_path, {})) == ["it holds no tensors"]


def test_of_many_misfits_the_first_are_shown(tmp_path: Path) -> None:
    found = safetensors.numpy.load_file(FILES / "model.safetensors")
    lines = misfits(write(tmp_path, {name: each.astype(np.int64) for name, each in found.items()}, GPT2))
    assert lines[0] == "0.weight is float64, 'transformer.wte.weight' is I64; write it as float64 there"
    assert (len(lines), lines[-1]) == (21, "and 8 others")


def test_what_float32_cannot_hold_is_not_finite(tmp_path: Path) -> None:
    tensors = small("float64")
    tensors["head.b"][1] = 1e300
    path = write(tmp_path, tensors)
    assert misfits(path) == ["2.bias: 'head.b' has numbers that are not finite as float32"]
    started(path, "dtype=float64")


def test_null_for_one_name_of_a_shared_parameter_is_for_all(tmp_path: Path) -> None:
    found = safetensors.numpy.load_file(FILES / "model.safetensors")
    config = load_config(write(tmp_path, found, GPT2))
    state = {name: each + 1 for name, each in config.new_model().state_dict().items()}
    path = write(tmp_path, state, GPT2)
    for name in ("0.weight", "8.weight"):
        model, notes = start(path, f"init_from.names={{{name}: null}}")
        assert np.array_equal(model.state_dict()["0.weight"], config.new_model().state_dict()["0.weight"])
        assert np.array_equal(model.state_dict()["1.weight"], state["1.weight"])
        assert notes[0].endswith(", and not from '0.weight', '8.weight'")


def test_a_tensor_that_is_taken_twice_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, small())
    table = "{0.weight: hidden.w, 0.bias: hidden.b, 2.weight: hidden.w.T, 2.bias: head.b}"
    _, notes = start(path, f"init_from.names={table}")
    file = tmp_path / "model.safetensors"
    assert notes == [f"the run starts from 3 tensors of {file}, 2 times from 'hidden.w', and not from 'head.w'"]


def test_a_vector_has_no_transpose(tmp_path: Path) -> None:
    names = "init_from.names={0.weight: hidden.w, 0.bias: hidden.b.T, 2.weight: head.w.T, 2.bias: head.b}"
    lines = misfits(write(tmp_path, small()), names)
    assert lines == ["0.bias: .T takes matrices, and 'hidden.b' has the shape (3,)"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_head": 3, "layer_norm_epsilon": 1e-5, "activation_function": "gelu_new"}, []),
        ({"n_head": 4}, [f"layer {n}.1 has num_heads=3, and config.json says n_head 4" for n in (2, 4)]),
        (
            {"layer_norm_epsilon": 1e-6},
            [
                f"layer {name} has eps=1e-05, and config.json says layer_norm_epsilon 1e-06"
                for name in ("2.0", "3.0", "4.0", "5.0", "6")
            ],
        ),
        (
            {"activation_function": "relu"},
            [
                f"layer {name} has GELU(approximate='tanh'), and config.json says activation_function relu"
                for name in ("3.2", "5.2")
            ],
        ),
        (
            {"scale_attn_by_inverse_layer_idx": True},
            ["config.json says scale_attn_by_inverse_layer_idx True, and the model has nothing of this kind"],
        ),
    ],
)
def test_the_settings_of_a_gpt2_are_compared(tmp_path: Path, settings: dict[str, Any], words: list[str]) -> None:
    path = write(tmp_path, safetensors.numpy.load_file(FILES / "model.safetensors"), GPT2)
    (tmp_path / "config.json").write_text(json.dumps(settings))
    if words:
        assert misfits(path) == words
    else:
        started(path)


@pytest.mark.parametrize("text", ["{", "[]", "[" * 100_000, '{"n_head": NaN}'])
def test_settings_that_are_no_json_object(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, safetensors.numpy.load_file(FILES / "model.safetensors"), GPT2)
    (tmp_path / "config.json").write_text(text)
    with pytest.raises(DataError, match=r"config\.json: (is not JSON: |expected a JSON object, not \[\])"):
        start(path)


def test_weights_of_a_run_on_other_data_get_a_note(tmp_path: Path) -> None:
    """An index of one text's characters is another character in another text."""
    text = GPT2.replace("init_from: {file: model.safetensors, names: gpt2}\n", "")
    run(load_config(write(tmp_path, {}, text)), tmp_path / "run")
    again = "init_from={file: run/model.safetensors}"
    assert len(start(tmp_path / "small.yaml", again)[1]) == 1
    (tmp_path / "text.txt").write_text("abcdefghijklz" * 30)
    notes = start(tmp_path / "small.yaml", again)[1]
    assert notes[1:] == [
        f"{tmp_path / 'run' / 'data.json'}: that run's data had other names, or was scaled otherwise: "
        "what the weights meant there, they may not mean here"
    ]
