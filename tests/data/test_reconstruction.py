"""Reconstruction: inputs as targets, from the data set to the predictions."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from runs import write_config
from user_files import CSV, FLOAT64, write

from nn_manual import load_run
from nn_manual.cli import main
from nn_manual.config import load_config
from nn_manual.data import Arrays, Diabetes, Digits, Iris, Reconstruction, Spirals, Text
from nn_manual.errors import ConfigError, DataError
from nn_manual.run.new_run import run
from nn_manual.use.evaluate import evaluate

CONFIG = """\
data: {Reconstruction: {of: {Arrays: {file: flowers.csv, target: species, task: classification, standardize: true}}}}
batch_size: 8
epochs: 100
model:
  - Linear: {in_features: 2, out_features: 2, bias: false}
loss: MSELoss
optimizer: {Adam: {lr: 0.1}}
gradient_check: {every: 0}
"""
#: Inputs with other means and stds, and classes that are names.
FLOWERS = "length,species,width\n" + "".join(f"{10 + n},{'ab'[n % 2]},{(n * 7 % 20) / 100}\n" for n in range(20))


def test_the_target_is_the_input() -> None:
    of, split = Digits().load(3, FLOAT64), Reconstruction(Digits()).load(3, FLOAT64)
    for part, own in zip(split[:2], of[:2], strict=True):
        assert np.array_equal(part.input, own.input)
        assert np.array_equal(part.target, own.input)
    assert (split.num_classes, Reconstruction(Digits()).example_shape) == (None, (64,))
    assert split.transform.target is split.transform.input
    assert split.transform.names.target == of.transform.names.input
    assert split.transform.names.classes is None


def test_the_noise_is_on_the_input_alone() -> None:
    of, data = Digits(), Reconstruction(Digits(), noise=0.5)
    clean, split, again, other = of.load(0, FLOAT64), *(data.load(seed, FLOAT64) for seed in (0, 0, 1))
    for part, own, same in zip(split[:2], clean[:2], again[:2], strict=True):
        assert np.array_equal(part.target, own.input)
        assert np.array_equal(part.input, same.input)
        noise = part.input - part.target
        # Of 23,000 numbers at least: three standard errors of the mean and of the std.
        assert abs(noise.mean()) < 3 * 0.5 / np.sqrt(noise.size)
        assert noise.std() == pytest.approx(0.5, rel=3 / np.sqrt(2 * noise.size))
    assert not np.array_equal(split.train.input - split.train.target, other.train.input - other.train.target)
    single = data.load(0, np.dtype(np.float32)).train
    assert single.input.dtype == np.float32
    assert single.input == pytest.approx(split.train.input, rel=1e-6, abs=1e-6)  # the same numbers, rounded


def test_the_noise_is_not_what_the_data_are_made_of() -> None:
    """A generated data set draws with the same seed."""
    split = Reconstruction(Spirals(num_examples=2000, noise=1.0), noise=1.0).load(0, FLOAT64)
    made, noise = split.train.target.ravel(), (split.train.input - split.train.target).ravel()
    assert abs(np.corrcoef(made, noise)[0, 1]) < 0.06  # three standard errors of 3,200 numbers


@pytest.mark.parametrize("of", [Iris(), Diabetes()])
def test_the_targets_of_the_other_data_set_are_left_alone(of: Iris | Diabetes) -> None:
    """A given transform changes the inputs alone: the target's is that of other numbers."""
    data = Reconstruction(of)
    first = data.load(0, FLOAT64)
    again = data.load(0, FLOAT64, first.transform)
    assert np.array_equal(first.train.target, again.train.target)
    assert again.transform.as_json() == first.transform.as_json()


def test_a_noise_that_is_refused() -> None:
    for noise in (-0.1, np.inf, np.nan):
        with pytest.raises(ValueError, match=f"^noise must be finite and at least 0, not {noise}$"):
            Reconstruction(Digits(), noise)


def test_inputs_that_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 3, 1)), y=np.arange(4) % 2, n=np.array([1, 2, 3, 3]))
    padded = Arrays(tmp_path / "x.npz", "y", "classification", input="x", lengths="n")
    for of, what in ((Text(), "indices"), (padded, "sequences of different lengths")):
        message = f"Reconstruction: the inputs of {type(of).__name__} are {what}, and must be numbers"
        with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
            Reconstruction(of).load(0, FLOAT64)


def test_a_config_without_a_data_set(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r":1:8: Reconstruction needs of$"):
        load_config(write_config(tmp_path, re.sub(r"{of:.*", "{noise: 0.5}}", CONFIG, count=1)))
    with pytest.raises(ConfigError, match=r": unknown data set 'Digit'; did you mean 'Digits'\?$"):
        load_config(write_config(tmp_path, re.sub(r"{of:.*", "{of: Digit}}", CONFIG, count=1)))


def test_from_the_run_to_the_prediction(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A linear map learns to put out its input: predictions are the numbers of the file. Other data are taken whole."""
    (tmp_path / "flowers.csv").write_text(FLOWERS)
    run(load_config(write_config(tmp_path, CONFIG)), tmp_path / "run")
    trained = load_run(tmp_path / "run")
    array = np.array([[12.0, 0.1], [25.0, 0.3]])
    capsys.readouterr()
    assert trained.predict(array) == pytest.approx(array, rel=1e-2)
    assert main(["predict", str(tmp_path / "run"), "--input", str(tmp_path / "flowers.csv")]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "length,width"
    evaluated = evaluate(trained, tmp_path / "run")
    assert evaluated.examples == f"validation part of {tmp_path / 'flowers.csv'}, 4 examples"
    assert evaluated.targets is not None
    assert evaluated.targets.names == ("length", "width")
    other = write(tmp_path, FLOWERS, "other.csv")
    evaluated = evaluate(trained, tmp_path / "run", [f"data.Reconstruction.of.Arrays.file={other}"])
    assert evaluated.examples == f"all of {other}, 20 examples"
    assert evaluated.targets is not None
    assert evaluated.targets.target[:2] == pytest.approx(np.array([[10, 0], [11, 0.07]]), abs=1e-6)


def test_unroll_would_not_replace_its_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "flowers.csv").write_text(CSV)
    config = write_config(tmp_path, CONFIG)
    assert main(["unroll", str(config), "-o", str(tmp_path / "flowers.csv")]) == 2
    assert "is read by the run, and would be lost" in capsys.readouterr().err
