"""A run read back: the weights, the config, what was done to the data, and predictions in the source's units."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from runs import CONFIG as SPIRALS
from runs import lines, write_config
from safetensors.numpy import load_file
from text_runs import write_run
from trained_runs import CONFIG, IDENTITY, OF_REGRESSION, REGRESSION, SWAPPED, TRANSFORM, write_trained

import nn_manual
from nn_manual import load_run
from nn_manual.arrays import Array
from nn_manual.config import load_config
from nn_manual.data import Names, Transform
from nn_manual.errors import ConfigError, DataError, NotFiniteError
from nn_manual.run.new_run import run
from nn_manual.run.resume import resume
from nn_manual.trainer import evaluation_slices
from nn_manual.use.evaluate import evaluate
from nn_manual.use.kept_weights import Checkpoint
from nn_manual.use.load_run import read_trained

#: Standardised to [[1, 2], [-1, 0]].
EXAMPLES = np.array([[3.0, 10.0], [-1.0, 2.0]])
#: softmax([1, 2]) and softmax([-1, 0]).
LIKELIER = 1 / (1 + math.exp(-1))


def test_model_config_and_transform(tmp_path: Path) -> None:
    loaded = load_run(str(write_trained(tmp_path)))
    assert isinstance(loaded, nn_manual.TrainedRun)
    assert {name: array.tolist() for name, array in loaded.model.state_dict().items()} == {
        "0.weight": [[1, 0], [0, 1]], "0.bias": [0, 0]
    }  # fmt: skip
    assert loaded.config.batch_size == 4
    assert loaded.transform.as_json() == TRANSFORM.as_json()
    assert loaded.checkpoint == "last"
    assert repr(loaded) == "<TrainedRun: Arrays, 6 parameters, last weights>"


@pytest.mark.parametrize(
    ("which", "best", "checkpoint", "weight"),
    [
        (None, None, "last", [[1, 0], [0, 1]]),
        (None, SWAPPED, "best", [[0, 1], [1, 0]]),
        ("best", SWAPPED, "best", [[0, 1], [1, 0]]),
        ("last", SWAPPED, "last", [[1, 0], [0, 1]]),
        ("last", None, "last", [[1, 0], [0, 1]]),
    ],
)
def test_which_weights(
    tmp_path: Path,
    which: Checkpoint | None,
    best: dict[str, np.ndarray] | None,
    checkpoint: str,
    weight: list[list[int]],
) -> None:
    loaded = read_trained(write_trained(tmp_path, best=best), which)
    assert loaded.checkpoint == checkpoint
    assert loaded.model.state_dict()["0.weight"].tolist() == weight


def test_weights_that_no_run_has(tmp_path: Path) -> None:
    write_trained(tmp_path)
    with pytest.raises(ValueError, match="checkpoint is 'lsat', it must be one of best, last, or None"):
        load_run(tmp_path, "lsat")  # type: ignore[arg-type]  # it is wrong


def test_probabilities(tmp_path: Path) -> None:
    probabilities = load_run(write_trained(tmp_path)).predict(EXAMPLES)
    assert probabilities.dtype == np.float64
    # float32's rounding of the prediction.
    np.testing.assert_allclose(probabilities, [[1 - LIKELIER, LIKELIER]] * 2, rtol=1e-7)


def test_probabilities_of_their_logarithms(tmp_path: Path) -> None:
    text = CONFIG.replace("loss: CrossEntropyLoss", "  - LogSoftmax: {dim: 1}\nloss: NLLLoss")
    probabilities = load_run(write_trained(tmp_path, text)).predict(EXAMPLES)
    np.testing.assert_allclose(probabilities, [[1 - LIKELIER, LIKELIER]] * 2, rtol=1e-6)  # float32's, of a logarithm


def test_values_are_not_standardised(tmp_path: Path) -> None:
    values = load_run(write_trained(tmp_path, REGRESSION, OF_REGRESSION)).predict(EXAMPLES)
    assert values.tolist() == [[15, 2], [5, 0]]


def test_numbers_that_were_taken_as_they_are(tmp_path: Path) -> None:
    values = load_run(write_trained(tmp_path, REGRESSION, Transform())).predict(EXAMPLES)
    assert values.tolist() == EXAMPLES.tolist()


def test_several_predictions_of_each_example(tmp_path: Path) -> None:
    probabilities = load_run(write_run(tmp_path)).predict(np.array([[0, 1, 2, 0], [1, 2, 0, 1]]))
    assert probabilities.shape == (2, 4, 3)
    assert probabilities.argmax(axis=-1).tolist() == [[1, 2, 0, 1], [2, 0, 1, 2]]
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-12)


def test_slices_are_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load_run(write_trained(tmp_path))
    whole = loaded.predict(np.tile(EXAMPLES, (5, 1)))
    monkeypatch.setattr(evaluation_slices, "slice_size", lambda *_: 3)
    assert np.array_equal(loaded.predict(np.tile(EXAMPLES, (5, 1))), whole)


def test_a_run_that_was_trained(tmp_path: Path) -> None:
    directory = tmp_path / "spirals"
    config = load_config(write_config(tmp_path, SPIRALS), ["gradient_check.every=0"])
    run(config, directory)
    loaded = load_run(directory, "last")
    split = config.data.load(0, np.dtype(np.float32))
    accuracy = (loaded.predict(split.validation.input).argmax(axis=1) == split.validation.target).mean()
    assert accuracy == lines(directory / "metrics.jsonl")[-1]["validation_accuracy"]


SQUARE = """
from dataclasses import dataclass
from nn_manual import Layer

@dataclass(eq=False)
class Square(Layer):
    def forward(self, input):
        return input * input, input

    def backward(self, saved, grad_output):
        return 2 * saved * grad_output
"""


def test_layers_that_have_changed_are_noted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "my_layers.py").write_text(SQUARE)
    text = SPIRALS.replace("- Tanh", "- my_layers:Square")
    run(load_config(write_config(tmp_path, text), ["gradient_check.every=0", "epochs=1"]), tmp_path / "run")
    capsys.readouterr()
    load_run(tmp_path / "run")
    assert capsys.readouterr().err == ""
    (tmp_path / "my_layers.py").write_text(SQUARE.replace("input * input,", "-3 * input * input,"))
    load_run(tmp_path / "run")
    assert capsys.readouterr().err == "note: my_layers changed since the run began\n"
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    load_run(tmp_path / "run")
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_a_project_that_has_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says where the layers lie now. A run that goes on remembers it.
    It alone loads a run whose project has moved.
    """
    project, moved = tmp_path / "project", tmp_path / "moved"
    project.mkdir()
    (project / "my_layers.py").write_text(SQUARE)
    np.savez(project / "numbers.npz", x=np.zeros((40, 2)), t=np.arange(40) % 2)
    data = "data: {Arrays: {file: numbers.npz, input: x, target: t, task: classification, validation_fraction: 0.25}}\n"
    text = re.sub("data: .*\n", data, SPIRALS.replace("- Tanh", "- my_layers:Square"))
    run(load_config(write_config(project, text), ["gradient_check.every=0", "epochs=1"]), project / "run")
    project.rename(moved)
    monkeypatch.chdir(moved)
    with pytest.raises(ConfigError, match=f"no module 'my_layers' in {project}.*") as caught:
        load_run("run")
    assert "--layer-folder FOLDER" in "".join(caught.value.__notes__)
    trained = load_run("run", layer_folder=".")
    assert trained.config.layer_folder == moved
    evaluated = evaluate(trained, Path("run"), ["data.Arrays.file=numbers.npz"])
    assert evaluated.num_examples == 40
    resume(Path("run"), ["epochs=2", "layer_folder=.", "data.Arrays.file=numbers.npz"])
    assert load_run("run").config.layer_folder == moved
    (moved / "other.npz").write_bytes((moved / "numbers.npz").read_bytes())
    np.savez(moved / "numbers.npz", x=np.ones((40, 2)), t=np.arange(40) % 2)
    with pytest.raises(DataError, match="the data are not those that the run was trained on"):
        resume(Path("run"), ["epochs=3"])
    resume(Path("run"), ["epochs=3", "data.Arrays.file=other.npz"])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros(2), "an array of examples has shape (examples, ...), not (2,)"),
        (np.zeros((0, 2)), "an array of examples has shape (examples, ...), not (0, 2)"),
        (np.array([["1", "2"]]), "the examples have dtype <U1, not real numbers"),
        (np.zeros((4, 3)), "an example has shape (3,), one of training had (2,)"),
        (np.array([[1.0, 2.0], [3.0, math.nan]]), "the number at (1, 1) is nan, not a finite float32"),
        (np.array([[1e40, 2.0]]), "the number at (0, 0) is 5e+39, not a finite float32"),
    ],
)
def test_examples_that_do_not_fit(tmp_path: Path, array: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        load_run(write_trained(tmp_path)).predict(array)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0.5, "the number at (0, 1) is 0.5, not an integer"),
        (math.inf, "the number at (0, 1) is inf, not an integer"),
        (7, "Embedding: index 7 at (0, 1) is outside 0 ... 2"),
    ],
)
def test_indices_that_do_not_fit(tmp_path: Path, value: float, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        load_run(write_run(tmp_path)).predict(np.array([[0, value, 0, 0]]))


def test_a_shape_that_the_model_does_not_take(tmp_path: Path) -> None:
    loaded = load_run(write_trained(tmp_path, REGRESSION, Transform()))
    with pytest.raises(ValueError, match=r"^examples of shape \(3,\) don't fit the model: 0 \(Linear\) takes in_fea"):
        loaded.predict(np.zeros((4, 3)))


def test_a_prediction_that_is_not_finite(tmp_path: Path) -> None:
    huge = IDENTITY | {"0.weight": np.array([[3e38, 0], [0, 1]], np.float32)}
    loaded = load_run(write_trained(tmp_path, last=huge))
    with pytest.raises(NotFiniteError, match=r"^the model's prediction for example 2, counted from 0, is not finite$"):
        loaded.predict(np.array([[1.0, 2.0], [1.0, 2.0], [9.0, 2.0]]))


def summary(**content: object) -> Callable[[Path], object]:
    return lambda run: (run / "summary.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("spoil", "which", "message"),
    [
        (summary(best=3), None, '/summary.json: "best" is 3, expected an object'),
        (summary(best={}), None, '/summary.json: "best.sha256" is missing'),
        (summary(best={"sha256": "0"}), None, '/summary.json: "best.sha256" is "0", expected a string of the form '),
        (summary(sha256={"data.json": 0}), None, '/summary.json: "sha256.data.json" is 0, expected a string'),
        (summary(), "last", '/summary.json: "model_sha256" is missing'),
        (summary(), "best", ": has no best weights, only those of its last step: --checkpoint last"),
        (lambda run: (run / "best.safetensors").unlink(), None, "/best.safetensors: can't be read: No such file or "),
        (lambda run: (run / "best.safetensors").write_bytes(b"x"), None, "/best.safetensors: is corrupt: its SHA-256 "),
        (lambda run: (run / "data.json").write_text("{"), "last", "/data.json: is not JSON: "),
        (lambda run: (run / "data.json").write_text("{}"), "last", '/data.json: "names" is missing'),
        (lambda run: (run / "summary.json").unlink(), "last", ": the run has not ended, and has no checkpoint yet"),
        (lambda run: (run / "config.yaml").unlink(), "last", "/config.yaml: can't be read: No such file or directory"),
    ],
)
def test_a_spoilt_run(
    tmp_path: Path, spoil: Callable[[Path], object], which: Checkpoint | None, message: str
) -> None:
    directory = write_trained(tmp_path, best=SWAPPED)
    spoil(directory)
    with pytest.raises(DataError) as raised:
        read_trained(directory, which)
    assert str(raised.value).startswith(f"{directory}{message}")


def test_weights_of_another_config(tmp_path: Path) -> None:
    directory = write_trained(tmp_path, CONFIG.replace("out_features: 2", "out_features: 3"), last=IDENTITY)
    with pytest.raises(DataError, match=r"/model.safetensors: doesn't fit config.yaml: "):
        load_run(directory)


class TestARunThatHasNotEnded:
    """The weights of its newest checkpoint."""

    @pytest.fixture
    def stopped(self, tmp_path: Path) -> Path:
        """A run of three epochs whose checkpoint behind the first step of the last one is the newest."""
        directory = tmp_path / "stopped"
        overrides = ["gradient_check.every=0", "checkpoint.every=7 steps"]
        run(load_config(write_config(tmp_path, SPIRALS), overrides), directory)
        for checkpoint in (directory / "checkpoints").glob("step-9"):
            shutil.rmtree(checkpoint)
        for name in ("model.safetensors", "best.safetensors", "summary.json"):
            (directory / name).unlink()
        return directory

    @pytest.mark.parametrize(("which", "checkpoint"), [(None, "best"), ("best", "best"), ("last", "last")])
    @pytest.mark.parametrize("content", [None, {"epoch": 3, "epochs": 3, "step": 7, "stopped": "interrupted"}])
    def test_is_used(
        self, stopped: Path, content: dict[str, object] | None, which: Checkpoint | None, checkpoint: str
    ) -> None:
        if content is not None:
            (stopped / "summary.json").write_text(json.dumps(content))
        loaded = load_run(stopped, which)
        assert loaded.checkpoint == checkpoint
        file = stopped / "checkpoints" / "step-7" / ("best" if checkpoint == "best" else "state")
        kept = load_file(file.with_suffix(".safetensors"))
        weights = loaded.model.state_dict()
        assert len(weights) == 4
        assert all(np.array_equal(array, kept[name]) for name, array in weights.items())

    def test_before_its_first_checkpoint(self, stopped: Path) -> None:
        shutil.rmtree(stopped / "checkpoints")
        with pytest.raises(DataError, match=r"/stopped: the run has not ended, and has no checkpoint yet$"):
            load_run(stopped)
        (stopped / "summary.json").write_text(json.dumps({"stopped": "interrupted", "epoch": 1, "epochs": 3}))
        with pytest.raises(DataError, match=r"/stopped: stopped before its first checkpoint: interrupted$"):
            load_run(stopped)

    def test_without_best_weights(self, tmp_path: Path) -> None:
        directory = tmp_path / "run"
        overrides = ["gradient_check.every=0", "data.Spirals.validation_fraction=0"]
        run(load_config(write_config(tmp_path, SPIRALS), overrides), directory)
        (directory / "summary.json").unlink()
        assert load_run(directory).checkpoint == "last"
        with pytest.raises(DataError, match=r"/run: has no best weights, only those of its last step"):
            load_run(directory, "best")


@pytest.mark.slow
@pytest.mark.parametrize(("file", "has_ended"), [("config.yaml", True), ("data.json", True), ("data.json", False)])
def test_a_file_that_was_edited_is_refused(tmp_path: Path, file: str, *, has_ended: bool) -> None:
    """The weights would be those of another model, or get other numbers. It alone edits each file of a run."""
    run(load_config(write_config(tmp_path), ["epochs=1"]), tmp_path / "run")
    if not has_ended:
        (tmp_path / "run" / "summary.json").unlink()
    load_run(tmp_path / "run")
    path = tmp_path / "run" / file
    path.write_text(path.read_text() + " ")
    message = f"{path}: is not what the run was trained with: its SHA-256 is another one"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        load_run(tmp_path / "run")


#: A number for each of a, b and the names of c; the column that training left out may be anything.
NAMED = Transform(None, None, Names(("a", "c"), ("y",), ("no", "yes")), (("c", ("red", "$")),), np.array([7.0, 0, 1]))


def named_run(folder: Path) -> Path:
    """A run whose model puts out a, and 10 where c is "$"."""
    text = CONFIG.replace("in_features: 2", "in_features: 3")
    weights = {"0.weight": np.array([[1, 0, 0], [0, 0, 10]], np.float32), "0.bias": np.zeros(2, np.float32)}
    return write_trained(folder, text, NAMED, weights)


def margins(probabilities: Array) -> list[float]:
    odds: list[float] = np.log(probabilities[:, 1] / probabilities[:, 0]).round(5).tolist()
    return odds


def test_its_folder_is_found_from_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_trained(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert load_run("run").directory == tmp_path / "run"


class TestTables:
    """Rows in memory, with names as they are."""

    def test_a_data_frame_has_its_columns_by_name(self, tmp_path: Path) -> None:
        pandas = pytest.importorskip("pandas")
        run = load_run(named_run(tmp_path))
        frame = pandas.DataFrame({"other": ["x,\n", None, '"'], "c": ["$", "red", None], "a": [1.5, None, 2]})
        assert margins(run.predict(frame)) == [8.5, -7, 8]
        assert margins(run.predict(frame[["a", "c"]])) == [8.5, -7, 8]
        with pytest.raises(DataError, match=r"^the table: has no column 'c'; it has 'a'$"):
            run.predict(frame[["a"]])
        frame["c"] = "blue"
        with pytest.raises(DataError, match=r"^the table:3: column 'c' holds 'blue', which training never saw"):
            run.predict(frame)

    def test_rows_have_the_columns_in_the_order_of_training(self, tmp_path: Path) -> None:
        run = load_run(named_run(tmp_path))
        assert margins(run.predict([[1.5, "$"], [None, "red"], [2, float("nan")]])) == [8.5, -7, 8]
        assert margins(run.predict([[1.5, "$"]])) == [8.5]
        assert margins(run.predict([[float("nan"), "red"]])) == [-7]
        assert margins(run.predict([[1.5, 0, 1], [1.5, 1, 0]])) == [8.5, -1.5]  # numbers alone
        with pytest.raises(DataError, match=r"^the table:2: the header names 2 columns, this row has 3$"):
            run.predict([[1.5, "$", 3]])

    @pytest.mark.parametrize("missing", [None, float("nan")])
    def test_an_empty_cell_among_numbers(self, tmp_path: Path, missing: float | None) -> None:
        """`filled` has the numbers that stand in its place."""
        run = load_run(write_trained(tmp_path, transform=TRANSFORM._replace(filled=np.array([3.0, 10.0]))))
        assert np.array_equal(run.predict([[0.5, missing], [missing, 2]]), run.predict([[0.5, 10], [3, 2]]))
        assert np.array_equal(run.predict(np.array([[0.5, None]])), run.predict([[0.5, 10]]))

    def test_a_data_frame_whose_columns_have_delimiters_in_their_names(self, tmp_path: Path) -> None:
        pandas = pytest.importorskip("pandas")
        names = Names(("x|y|z|q", "w"), ("y",), ("no", "yes"))
        run = load_run(write_trained(tmp_path, transform=TRANSFORM._replace(names=names)))
        assert np.array_equal(run.predict(pandas.DataFrame(EXAMPLES, columns=names.input)), run.predict(EXAMPLES))

    def test_a_data_frame_where_training_had_no_names(self, tmp_path: Path) -> None:
        pandas = pytest.importorskip("pandas")
        run = load_run(write_trained(tmp_path, transform=TRANSFORM._replace(names=Names(None, None, ("no", "yes")))))
        assert np.array_equal(run.predict(pandas.DataFrame(EXAMPLES)), run.predict(EXAMPLES))
