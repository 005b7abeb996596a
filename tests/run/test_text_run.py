"""A language model on characters, from a config to its text."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from runs import lines, write_config

from nn_manual.cli import main
from nn_manual.data.text import read_text
from nn_manual.run_directory.metrics import read_run
from nn_manual.run_directory.weights import read_weights

#: Three characters, each predicted from the one before it alone.
CONFIG = """\
data: {Text: {file: words.txt, context: 8, stride: 3, validation_fraction: 0.25}}
batch_size: 16
epochs: 2
model:
  - Embedding: {num_embeddings: 3, embedding_dim: 4}
  - Flatten: {start_dim: 0, end_dim: 1}
  - Linear: {in_features: 4, out_features: 3}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 2.0}}
"""


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    """A config beside its text of 420 characters: ab and abc in a random order, whose validation part begins at 315."""
    words = np.random.default_rng(0).permutation(["ab", "abc"] * 84)
    (tmp_path / "words.txt").write_text("".join(words))
    return write_config(tmp_path, CONFIG)


def of_weights(run: Path, text: str) -> tuple[float, float]:
    """The loss and the accuracy of the run's weights on the windows of a text, counted here."""
    weights = read_weights(run / "model.safetensors")
    predictions = weights["0.weight"].astype(np.float64) @ weights["2.weight"].T + weights["2.bias"]
    log_probability = predictions - np.log(np.exp(predictions).sum(axis=1, keepdims=True))
    starts = range(0, len(text) - 8, 3)
    pairs = [("abc".index(text[n + t]), "abc".index(text[n + t + 1])) for n in starts for t in range(8)]
    right = [predictions[before].argmax() == after for before, after in pairs]
    return -float(np.mean([log_probability[pair] for pair in pairs])), float(np.mean(right))


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_loss_of_every_character_in_nats_and_in_bits(config_path: Path, tmp_path: Path, reduction: str) -> None:
    lr = 2.0 if reduction == "mean" else 2.0 / (16 * 8)
    overrides = [f"loss.CrossEntropyLoss.reduction={reduction}", f"optimizer.SGD.lr={lr}"]
    assert main(["train", str(config_path), *overrides, "--run-dir", str(tmp_path / "run")]) == 0
    tail = read_text(tmp_path / "words.txt")[315:]
    loss, accuracy = of_weights(tmp_path / "run", tail)
    last = lines(tmp_path / "run" / "metrics.jsonl")[-1]
    num_characters = 8 * ((len(tail) - 9) // 3 + 1)
    # float32 has seven digits, and a sum over some hundred losses keeps six.
    assert last["validation_loss"] == pytest.approx(loss * (num_characters if reduction == "sum" else 1), rel=1e-6)
    assert last["validation_bits_per_character"] == pytest.approx(loss / math.log(2), rel=1e-6)
    assert last["validation_accuracy"] == accuracy
    assert accuracy > 2 / 3  # b comes behind each a, and a behind each c
    metrics = read_run(tmp_path / "run").metrics
    assert metrics["train_bits_per_character"].shape == metrics["validation_bits_per_character"].shape == (2,)
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["train_bits_per_character"] == last["train_bits_per_character"]
    assert json.loads((tmp_path / "run" / "data.json").read_text())["names"]["classes"] == ["a", "b", "c"]


def test_what_a_person_sees(config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", str(config_path), "--run-dir", str(tmp_path / "run")]) == 0
    *heading, _, second, _, _, bits, _, compared, _, _ = capsys.readouterr().out.splitlines()
    last = lines(tmp_path / "run" / "metrics.jsonl")[-1]
    train, validation = (f"{last[f'{part}_bits_per_character']:.4g}" for part in ("train", "validation"))
    assert [line.split()[-1] for line in heading] == ["a", "seconds"]
    assert second.split()[-3] == validation
    assert bits == f"bits a character {train} in training, {validation} in validation"
    assert compared.endswith(" steps equal torch's")
    assert main(["sample", str(tmp_path / "run"), "--prompt", "c", "--length", "2", "--top-k", "1"]) == 0
    assert capsys.readouterr().out == "cab\n"


def test_one_batch_of_all_windows_is_proven_as_a_copy_is(config_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(config_path), "batch_size=1000"]) == 0
    assert "0.grad_weight" in capsys.readouterr().out


def test_a_model_may_have_room_for_more_characters(
    config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    room = ["model.0.Embedding.num_embeddings=5", "model.2.Linear.out_features=4"]
    assert main(["train", str(config_path), *room, "--run-dir", str(tmp_path / "run")]) == 0
    capsys.readouterr()
    settings = ["--prompt", "c", "--length", "200", "--temperature", "1000"]
    assert main(["sample", str(tmp_path / "run"), *settings]) == 0
    assert set(capsys.readouterr().out.strip()) == {"a", "b", "c"}  # of four classes, each as likely as the others


@pytest.mark.parametrize(
    ("override", "place", "message"),
    [
        ("model.2.Linear.out_features=2", ":7:5", "the model puts out 2 values, but the data has 3 classes"),
        ("model.0.Embedding.num_embeddings=2", ":5:5", "Embedding: index 2 at "),
        ("data.Text.fil=3", "override 'data.Text.fil=3'", "unknown key 'fil' in Text; did you mean 'file'?"),
        ("data.Text.context=0", "override 'data.Text.context=0'", "context must be at least 1, not 0"),
    ],
)
def test_a_config_that_does_not_fit(
    config_path: Path, capsys: pytest.CaptureFixture[str], override: str, place: str, message: str
) -> None:
    assert main(["check", str(config_path), override]) == 2
    place = f"{config_path}{place}" if place.startswith(":") else place
    assert capsys.readouterr().err.startswith(f"nn-manual: {place}: {message}")


def test_no_text(config_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(config_path), "data.Text.file=nowhere.txt"]) == 5
    assert capsys.readouterr().err == f"nn-manual: {tmp_path}/nowhere.txt: No such file or directory\n"
