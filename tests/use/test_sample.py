"""Text that a trained model writes."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runs import CONFIG as SPIRALS
from slow_cases import slow
from text_runs import CONFIG, write_run

from nn_manual.arrays import Array
from nn_manual.config import load_config
from nn_manual.data import Transform
from nn_manual.errors import ConfigError, DataError, NotFiniteError
from nn_manual.model import Sequential
from nn_manual.run_directory.weights import write_weights
from nn_manual.use.sample import draw, sample


def test_the_likeliest_characters_behind_the_prompt(tmp_path: Path) -> None:
    # The other two have a probability of e-40 each, and ten characters are drawn.
    assert list(sample(write_run(tmp_path), "éa", 10)) == ["éa", *"béabéabéab"]


def test_the_model_sees_the_last_characters_of_a_context(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    infer = Sequential.infer

    def watched(model: Sequential, input: Array) -> Array:
        seen.append(input.tolist())
        return infer(model, input)

    monkeypatch.setattr(Sequential, "infer", watched)
    run = write_run(tmp_path)
    assert "".join(sample(run, "ab", 4)) == "abéabé"
    assert seen == [[[0, 1]], [[0, 1, 2]], [[0, 1, 2, 0]], [[1, 2, 0, 1]]]
    seen.clear()
    assert "".join(sample(run, "ababab", 2)) == "abababéa"
    assert seen == [[[0, 1, 0, 1]], [[1, 0, 1, 2]]]


def test_one_axis_for_the_classes_and_one_for_the_time(tmp_path: Path) -> None:
    # One channel a position: (batch, 4) indices to (batch, 4, 3), flat, and a prediction (batch, 3 classes, 4 times).
    flatten = "  - Flatten: {start_dim: 0, end_dim: 1}\n  - Linear: {in_features: 3, out_features: 3}\n"
    unflatten = "  - Flatten\n  - Linear: {in_features: 12, out_features: 12}\n"
    unflatten += "  - Unflatten: {dim: 1, unflattened_size: [3, 4]}\n"
    run = write_run(tmp_path, text=CONFIG.replace(flatten, unflatten))
    config = load_config(run / "config.yaml")
    model = config.new_model()
    bias = np.zeros((3, 4), np.float32)
    bias[:, :3] = [[0], [0], [40]]  # what is not asked for
    bias[1, 3] = 40
    model.load_state_dict(model.state_dict() | {"3.weight": np.zeros((12, 12), np.float32), "3.bias": bias.ravel()})
    sha256 = write_weights(run / "model.safetensors", model.state_dict())
    (run / "summary.json").write_text(json.dumps({"model_sha256": sha256}))
    assert "".join(sample(run, "abab", 5)) == "ababbbbbb"
    with pytest.raises(ConfigError, match=r"^the model doesn't take a prompt of 3 characters: 3 \(Linear\) "):
        list(sample(run, "aba", 5))


def test_batch_normalization_takes_a_prompt_of_one_character(tmp_path: Path) -> None:
    flatten = "  - Flatten: {start_dim: 0, end_dim: 1}\n"
    run = write_run(tmp_path, text=CONFIG.replace(flatten, flatten + "  - BatchNorm1d: {num_features: 3}\n"))
    assert len("".join(sample(run, "a", 5))) == 6


def test_a_seed_gives_one_text_that_a_longer_one_begins_with(tmp_path: Path) -> None:
    run = write_run(tmp_path, certainty=1.0)
    text = "".join(sample(run, "a", 60, seed=3))
    assert text == "".join(sample(run, "a", 80, seed=3))[:61]
    assert text != "".join(sample(run, "a", 60, seed=4))
    assert set(text) == set("abé")


def frequencies(prediction: list[float], temperature: float, top_k: int | None, draws: int = 20_000) -> Array:
    random = np.random.default_rng(0)
    drawn = [draw(np.array(prediction, np.float32), temperature, top_k, random) for _ in range(draws)]
    return np.bincount(drawn, minlength=len(prediction)) / draws


@pytest.mark.parametrize(
    ("temperature", "top_k", "expected"),
    [
        slow(1.0, None, [0.1, 0.2, 0.3, 0.4]),
        slow(1.0, 9, [0.1, 0.2, 0.3, 0.4]),
        slow(0.5, None, [1 / 30, 4 / 30, 9 / 30, 16 / 30]),  # squared
        slow(1.0, 2, [0, 0, 3 / 7, 4 / 7]),
        slow(0.5, 2, [0, 0, 9 / 25, 16 / 25]),
        slow(1e3, 1, [0, 0, 0, 1]),
        (1e-320, None, [0, 0, 0, 1]),
    ],
)
def test_how_often_a_character_is_drawn(temperature: float, top_k: int | None, expected: list[float]) -> None:
    found = frequencies([math.log(p) + 7 for p in (0.1, 0.2, 0.3, 0.4)], temperature, top_k)
    assert (found[np.array(expected) == 0] == 0).all()
    # Four standard deviations of a frequency of 1/2, which has the largest.
    np.testing.assert_allclose(found, expected, rtol=0, atol=4 * math.sqrt(0.25 / 20_000))


def test_of_equal_predictions_the_first_are_taken() -> None:
    assert (frequencies([1, 5, 5, 5], 1.0, 2, 200) > 0).tolist() == [False, True, True, False]


def test_the_largest_floats_do_not_overflow() -> None:
    largest = np.finfo(np.float64).max
    assert draw(np.array([-largest, largest]), 1e-3, None, np.random.default_rng(0)) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_prediction_that_is_not_finite(value: float) -> None:
    with pytest.raises(NotFiniteError, match=r"^the model's prediction is not finite$"):
        draw(np.array([0, value]), 1.0, None, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"prompt": ""}, "--prompt must have at least one character"),
        ({"prompt": "ab\nc"}, r"--prompt: '\n' at offset 2 is no character of the training text"),
        ({"length": 0}, "--length must be at least 1, not 0"),
        ({"temperature": 0.0}, "--temperature must be above 0 and finite, not 0.0"),
        ({"temperature": math.nan}, "--temperature must be above 0 and finite, not nan"),
        ({"temperature": math.inf}, "--temperature must be above 0 and finite, not inf"),
        ({"top_k": 0}, "--top-k must be at least 1, not 0"),
        ({"seed": -1}, "--seed must be at least 0, not -1"),
    ],
)
def test_settings_out_of_range(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        next(sample(write_run(tmp_path), **({"prompt": "a", "length": 5} | settings)))  # type: ignore[arg-type]
    assert str(raised.value) == message


def test_a_run_on_other_data(tmp_path: Path) -> None:
    run = write_run(tmp_path, text=SPIRALS)
    with pytest.raises(ConfigError, match=r"run: is a run on Spirals; only one on Text writes text$"):
        next(sample(run, "a", 1))


def classes(*names: object) -> Callable[[Path], None]:
    """A data.json with these."""

    def write(run: Path) -> None:
        content = Transform().as_json()
        content["names"]["classes"] = list(names) or None
        (run / "data.json").write_text(json.dumps(content))

    return write


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda run: (run / "config.yaml").unlink(), "config.yaml: can't be read: No such file or directory"),
        (lambda run: (run / "summary.json").unlink(), ": the run has not ended, and has no checkpoint yet"),
        (lambda run: (run / "summary.json").write_text("{"), "summary.json: is not JSON: Expecting property name"),
        (lambda run: (run / "summary.json").write_text("[1]"), "summary.json: expected a JSON object, not [1]"),
        (lambda run: (run / "summary.json").write_text("{}"), '"model_sha256" is missing'),
        (lambda run: (run / "model.safetensors").write_bytes(b"x"), "model.safetensors: is corrupt: its SHA-256"),
        (lambda run: (run / "data.json").unlink(), "data.json: can't be read: No such file or directory"),
        (lambda run: (run / "data.json").write_text("{}"), 'data.json: "names" is missing'),
        (classes(), 'data.json: "names.classes" must be a list of characters'),
        (classes("a", "b", "cd"), 'data.json: "names.classes" must be a list of characters'),
        (classes("a", "b", 3), 'data.json: "names.classes" must be a list of strings or null'),
        (classes("a", "b", "c", "d"), "data.json: has 4 characters, and the model predicts 3"),
    ],
)
def test_a_spoilt_run(tmp_path: Path, spoil: Callable[[Path], None], message: str) -> None:
    run = write_run(tmp_path)
    spoil(run)
    with pytest.raises(DataError) as raised:
        next(sample(run, "a", 1))
    assert str(raised.value).startswith(str(run))
    assert message in str(raised.value)


def test_weights_of_another_config(tmp_path: Path) -> None:
    run = write_run(tmp_path)
    config = run / "config.yaml"
    config.write_text(config.read_text().replace("num_positions: 4", "num_positions: 5"))
    with pytest.raises(DataError, match=r"model.safetensors: doesn't fit config.yaml: .*1.weight"):
        next(sample(run, "ab", 1))


def test_a_vocabulary_that_the_first_layer_lacks(tmp_path: Path) -> None:
    run = write_run(tmp_path, vocabulary="abcd", text=CONFIG.replace("out_features: 3", "out_features: 4"))
    with pytest.raises(DataError, match=r"data.json: has 4 characters: .*Embedding"):
        next(sample(run, "ab", 1))
