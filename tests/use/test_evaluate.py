"""How good a trained model is, on its own data and on other data."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from runs import CONFIG as SPIRALS
from runs import write_config
from text_runs import write_run
from trained_runs import CONFIG, IDENTITY, LABELS, OF_LABELS, OF_REGRESSION, REGRESSION, SWAPPED, write_trained

from nn_manual.config import load_config
from nn_manual.data import Arrays, Names, Split, Transform
from nn_manual.errors import ConfigError, DataError, NotFiniteError
from nn_manual.run.new_run import run
from nn_manual.use.evaluate import EvaluatedRun, evaluate
from nn_manual.use.load_run import read_trained

#: Standardised by the training: [1, 2], [2, 1], [0, -1], [-1, -2], which the model takes for the classes 1, 0, 0, 0.
TRAIN = "a,b,y\n3,10,1\n5,6,0\n1,-2,0\n-1,-6,1\n"


def evaluated(directory: Path, *overrides: str) -> EvaluatedRun:
    return evaluate(read_trained(directory), directory, overrides)


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run on TRAIN; the current folder is another one than the run's."""
    monkeypatch.chdir(tmp_path)
    Path("train.csv").write_text(TRAIN)
    return write_trained(tmp_path)


def cross_entropy(*margins: float) -> float:
    """Of predictions that are this much larger for the right class than for the other."""
    return float(np.mean([math.log1p(math.exp(-margin)) for margin in margins]))


def test_the_training_part_where_there_is_no_other(trained: Path) -> None:
    result = evaluated(trained)
    source = trained.parent / "train.csv"
    assert result.examples == f"training part of {source}, 4 examples: no validation part was held out"
    assert result.loss == pytest.approx(cross_entropy(1, 1, 1, -1), rel=1e-6)  # float32
    assert result.accuracy == 0.75
    assert result.confusion is not None
    assert result.confusion.tolist() == [[2, 0], [1, 1]]
    assert (result.classes, result.bits, result.checkpoint) == (("no", "yes"), None, "last")
    assert result.auc == 0.75  # the scores are 1, -1, -1, -1, and those of the second class 1 and the last -1
    assert str(result).splitlines()[1:] == [
        "last weights: loss 0.5633, accuracy 75.00%, ROC AUC 0.7500",
        "class         precision   recall       F1     targets",
        "no                0.667    1.000    0.800           2",
        "yes               1.000    0.500    0.667           2",
        "mean              0.833    0.750    0.733           4",
        "weighted mean     0.833    0.750    0.733           4",
    ]
    assert result.title == "4 examples, accuracy 75.00%"


def test_the_best_weights(trained: Path) -> None:
    trained.rename(trained.parent / "first")
    assert evaluated(write_trained(trained.parent, best=SWAPPED)).accuracy == 0.25


def test_the_validation_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{n},{n * n % 7},{n % 2}\n" for n in range(20))
    Path("train.csv").write_text(f"a,b,y\n{rows}")
    result = evaluated(write_trained(tmp_path, CONFIG.replace("validation_fraction: 0.0", "validation_fraction: 0.3")))
    assert result.examples == f"validation part of {tmp_path}/train.csv, 6 examples"


def fixed_classes(tmp_path: Path, num_classes: int) -> EvaluatedRun:
    """Of the classes 0, 1, ..., the data have 0 and 2; for each example but the last, the model says 2."""
    np.savez(tmp_path / "train.npz", x=[[0.0, 1.0], [0.0, 2.0], [3.0, 0.0]], y=[2, 2, 0])
    data = f"file: train.npz, input: x, target: y, task: classification, num_classes: {num_classes}"
    text = CONFIG.replace("file: train.csv, target: y, task: classification, standardize: true", data)
    weight = np.zeros((num_classes, 2), np.float32)
    weight[2, 1] = weight[4, 0] = 1
    last = {"0.weight": weight, "0.bias": np.zeros(num_classes, np.float32)}
    classes = Transform(names=Names(classes=tuple(map(str, range(num_classes)))))
    text = text.replace("out_features: 2", f"out_features: {num_classes}")
    return evaluated(write_trained(tmp_path, text, classes, last))


def test_classes_that_do_not_occur(tmp_path: Path) -> None:
    result = fixed_classes(tmp_path, 6)
    assert result.confusion is not None
    assert np.argwhere(result.confusion).tolist() == [[0, 4], [2, 2]]
    assert result.confusion.shape == (6, 6)
    assert str(result).splitlines()[2:] == [
        "class         precision   recall       F1     targets",
        "0                 0.000    0.000    0.000           1",
        "2                 1.000    1.000    1.000           2",
        "4                 0.000    0.000    0.000           0",
        "mean              0.333    0.333    0.333           3",
        "weighted mean     0.667    0.667    0.667           3",
    ]


def test_many_classes_have_no_matrix(tmp_path: Path) -> None:
    """That of 50,000 classes would take 20 GB."""
    result = fixed_classes(tmp_path, 50_000)
    assert (result.confusion, result.auc, result.targets) == (None, None, None)
    others = [math.log(math.exp(right) + 49_999) - right for right in (1.0, 2.0)]
    wrong = math.log(math.exp(3.0) + 49_999)
    assert result.loss == pytest.approx(np.mean([*others, wrong]), rel=1e-6)
    assert result.accuracy == pytest.approx(2 / 3)
    assert len(str(result).splitlines()) == 2


def test_what_a_run_has_recorded(tmp_path: Path) -> None:
    directory = tmp_path / "spirals"
    summary = run(load_config(write_config(tmp_path, SPIRALS), ["gradient_check.every=0"]), directory)
    result = evaluate(read_trained(directory, "last"), directory)
    assert (result.loss, result.accuracy) == (summary["validation_loss"], summary["validation_accuracy"])
    assert result.confusion is not None
    assert np.trace(result.confusion) / result.confusion.sum() == result.accuracy


class TestOtherData:
    """The training's transform, its columns and its classes, and every example."""

    def test_columns_in_another_order_and_others_beside_them(self, trained: Path) -> None:
        Path("other.csv").write_text("id,b,y,a\nx,10,1,3\n")
        result = evaluated(trained, "data.Arrays.file=other.csv", "data.Arrays.validation_fraction=0.9")
        assert result.examples == f"all of {trained.parent}/other.csv, 1 example"
        assert result.loss == pytest.approx(cross_entropy(1), rel=1e-6)
        assert result.confusion is not None
        assert result.confusion.tolist() == [[0, 0], [0, 1]]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("aa,b,y\n1,2,0\n", "has no column 'a'; did you mean 'aa'?"),
            ("a,b,y\n1,2,0\n1,2,2\n", ":3: column 'y' holds class 2, training had 2 classes"),
            ("a,b,y\n1,2,-1\n", ":2: column 'y' holds -1, not a class 0, 1, 2, ..."),
            ("a,b,y\n1,x,0\n", ":2: column 'b' holds 'x', not a number"),
        ],
    )
    def test_what_does_not_fit(self, trained: Path, text: str, message: str) -> None:
        Path("other.csv").write_text(text)
        with pytest.raises(DataError) as raised:
            evaluated(trained, "data.Arrays.file=other.csv")
        assert str(raised.value).startswith(f"{trained.parent}/other.csv")
        assert message in str(raised.value)

    def test_an_npz(self, trained: Path) -> None:
        np.savez("other.npz", x=[[3.0, 10.0], [5.0, 6.0]], t=[1, 1])
        overrides = ["data.Arrays.file=other.npz", "data.Arrays.input=x", "data.Arrays.target=t"]
        assert evaluated(trained, *overrides).accuracy == 0.5
        np.savez("other.npz", x=[[3.0, 10.0, 0.0]], t=[1])
        with pytest.raises(DataError, match=r"/other.npz: an example has shape \(3,\), one of training had \(2,\)$"):
            evaluated(trained, *overrides)

    def test_another_seed_of_generated_data(self, tmp_path: Path) -> None:
        text = SPIRALS.replace("out_features: 8", "out_features: 2").replace("in_features: 8", "in_features: 2")
        text = text.replace("  - Tanh\n  - Linear: {in_features: 2, out_features: 2}\n", "")
        directory = write_trained(tmp_path, text, Transform())
        assert evaluated(directory).examples == "validation part of Spirals, 12 examples"
        assert evaluated(directory, "seed=1").examples == "all of Spirals, 60 examples"

    def test_data_with_other_columns(self, tmp_path: Path) -> None:
        text = CONFIG.replace("in_features: 2", "in_features: 4").replace("out_features: 2", "out_features: 3")
        weights = {"0.weight": np.zeros((3, 4), np.float32), "0.bias": np.zeros(3, np.float32)}
        directory = write_trained(tmp_path, text, last=weights)
        with pytest.raises(DataError, match=r"^Iris: has 4 columns, training had 2$"):
            evaluated(directory, "data=Iris")


def test_another_validation_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.csv").write_text(TRAIN)
    Path("held_out.csv").write_text("a,b,y\n3,10,1\n")
    Path("other.csv").write_text("a,b,y\n3,10,1\n5,6,0\n")
    text = CONFIG.replace("file: train.csv", "file: train.csv, validation_file: held_out.csv")
    directory = write_trained(tmp_path, text)
    assert evaluated(directory).examples == f"{tmp_path}/held_out.csv, 1 example"
    assert evaluated(directory, "data.Arrays.validation_file=other.csv").examples == f"{tmp_path}/other.csv, 2 examples"
    assert evaluated(directory, "data.Arrays.file=other.csv").examples == f"all of {tmp_path}/other.csv, 2 examples"


def test_data_that_ignore_the_transform_of_training(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = Arrays.load

    def ignoring(data: Arrays, seed: int, dtype: Any, transform: Any = None) -> Split:
        del transform
        return load(data, seed, dtype)

    monkeypatch.setattr(Arrays, "load", ignoring)
    Path("other.csv").write_text(TRAIN.replace("3,10", "4,10"))
    with pytest.raises(DataError, match="load must apply the `transform` that it is given, and return it in the Split"):
        evaluated(trained, "data.Arrays.file=other.csv")


def test_a_regression(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("a,b,u,v\n3,10,15,3\n")
    result = evaluated(write_trained(tmp_path, REGRESSION, OF_REGRESSION))
    assert result.loss == pytest.approx(0.5)  # standardised: [1, 2] beside [1, 3]
    assert (result.accuracy, result.confusion, result.classes, result.auc) == (None, None, (), None)
    assert result.targets is not None
    assert result.targets.prediction.tolist() == [[15, 2]]  # v = 2 is not standardised, u is: 1 * 5 + 10
    assert result.targets.target.tolist() == [[15, 3]]
    assert str(result).splitlines()[1:] == [
        "last weights: loss 0.5 of standardised targets",
        "target               R2           MAE          RMSE",
        "u                   nan             0             0",
        "v                   nan             1             1",
        "all 2 targets       nan           0.5       0.70711",
    ]
    assert result.title == "1 example"


def test_labels(tmp_path: Path) -> None:
    """Standardised: [1, 2], [2, 1], [0, -1], [-1, -2], the logits of u and v."""
    (tmp_path / "train.csv").write_text("a,b,u,v\n3,10,1,1\n5,6,0,1\n1,-2,0,1\n-1,-6,0,0\n")
    result = evaluated(write_trained(tmp_path, LABELS, OF_LABELS))
    wrong = [math.log1p(math.exp(2)), math.log1p(math.exp(1))]  # u of the second, v of the third
    others = [math.log1p(math.exp(-size)) for size in (1, 2, 1, 1, 2)]
    assert result.loss == pytest.approx((sum(wrong + others) + math.log(2)) / 8, rel=1e-6)
    assert (result.accuracy, result.confusion, result.is_standardized) == (0.75, None, False)
    assert result.targets is not None
    assert result.targets.prediction[0] == pytest.approx([1 / (1 + math.exp(-1)), 1 / (1 + math.exp(-2))], rel=1e-6)
    assert str(result).splitlines()[2:] == [
        "label  accuracy  precision   recall       F1    examples",
        "u         0.750      0.500    1.000    0.667           1",
        "v         0.750      1.000    0.667    0.800           3",
        "mean      0.750      0.750    0.833    0.733",
    ]


def test_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("other.txt").write_text("abéabéabéb")
    result = evaluated(write_run(tmp_path, certainty=4.0), "data.Text.file=other.txt")
    assert result.examples == f"all of {tmp_path}/other.txt, 1 example"  # the stride is 64
    loss = math.log(math.exp(4) + 2) - 4
    assert result.loss == pytest.approx(loss, rel=1e-6)
    assert result.bits == pytest.approx(loss / math.log(2), rel=1e-6)
    assert result.accuracy == 1
    assert (result.classes, result.confusion, result.targets) == ((), None, None)
    assert str(result).splitlines()[1:] == [
        "last weights: loss 0.03598, bits a character 0.0519, perplexity 1.037, accuracy 100.00%"
    ]
    Path("other.txt").write_text("abc abc abc")
    message = r"other.txt: the text has characters that training didn't have: 'c' at offset 2, "
    with pytest.raises(DataError, match=message):
        evaluated(tmp_path / "run", "data.Text.file=other.txt")


def test_a_text_whose_model_has_diverged() -> None:
    result = EvaluatedRun("all of a.txt", 1, "last", 800.0, 0.1, 1154.0, None, (), None, None, False)
    assert str(result).splitlines()[1] == (
        "last weights: loss 800, bits a character 1154, perplexity inf, accuracy 10.00%"
    )


def test_what_stands_for_no_class_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model predicts 0, 1 and 1 for both sequences; the second has two times."""
    monkeypatch.chdir(tmp_path)
    np.savez("train.npz", x=[[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]] * 2, y=[[0, 1, 0], [1, 1, -100]])
    data = "{Arrays: {file: train.npz, input: x, target: y, task: classification, validation_fraction: 0.0}}"
    text = re.sub("data: .*", f"data: {data}", CONFIG).replace("loss:", "  - Permute: {dims: [0, 2, 1]}\nloss:")
    directory = write_trained(tmp_path, text, Transform(names=Names(classes=("0", "1"))))
    result = evaluated(directory)
    assert result.loss == pytest.approx(cross_entropy(1, 1, -1, -1, 1), rel=1e-6)
    assert result.accuracy == 3 / 5
    assert result.confusion is not None
    assert result.confusion.tolist() == [[1, 1], [1, 2]]
    assert result.auc == pytest.approx((0.5 + 1 + 1 + 0 + 0.5 + 0.5) / 6)
    assert str(result).splitlines() == [
        f"training part of {tmp_path}/train.npz, 2 examples: no validation part was held out",
        "last weights: loss 0.7133, accuracy 60.00%, ROC AUC 0.5833",
        "class         precision   recall       F1     targets",
        "0                 0.500    0.500    0.500           2",
        "1                 0.667    0.667    0.667           3",
        "mean              0.583    0.583    0.583           5",
        "weighted mean     0.600    0.600    0.600           5",
    ]
    with pytest.raises(DataError, match=r"train.npz: doesn't fit the run: CrossEntropyLoss: label -100 at index \(1, "):
        evaluated(directory, "loss.CrossEntropyLoss.ignore_index=-1")


def test_classes_that_only_the_model_has(trained: Path) -> None:
    bias = np.array([0, 0, 0, 9], np.float32)
    weights = {"0.weight": np.zeros((4, 2), np.float32), "0.bias": bias}
    trained.rename(trained.parent / "first")
    directory = write_trained(trained.parent, CONFIG.replace("out_features: 2", "out_features: 4"), last=weights)
    result = evaluated(directory)
    assert result.classes == ("no", "yes", "2", "3")
    assert result.confusion is not None
    assert result.confusion.sum(axis=0).tolist() == [0, 0, 0, 4]


def test_another_loss(trained: Path) -> None:
    result = evaluated(trained, "loss.CrossEntropyLoss.reduction=sum")
    assert result.loss == pytest.approx(4 * cross_entropy(1, 1, 1, -1), rel=1e-6)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("epochs=4", "override 'epochs=4': an evaluation only takes other data, loss, seed"),
        ("model.0.Linear.bias=false", "an evaluation only takes other data, loss, seed"),
        ("nonsense", "override 'nonsense': is not KEY=VALUE"),
        ("data.Arrays.fil=x.csv", "unknown key 'fil' in Arrays; did you mean 'file'?"),
    ],
)
def test_wrong_overrides(trained: Path, override: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        evaluated(trained, override)
    assert message in str(raised.value)


def test_a_loss_that_does_not_fit(trained: Path) -> None:
    with pytest.raises(DataError, match=r"/train.csv: doesn't fit the run: MSELoss takes equal shapes"):
        evaluated(trained, "loss=MSELoss")


def test_a_loss_that_is_not_finite(trained: Path) -> None:
    trained.rename(trained.parent / "first")
    huge = IDENTITY | {"0.weight": np.full((2, 2), 3e38, np.float32)}
    with pytest.raises(NotFiniteError, match=r"^training part of .*: the loss is not finite$"):
        evaluated(write_trained(trained.parent, last=huge))


def test_a_data_json_that_does_not_fit_the_text(tmp_path: Path) -> None:
    directory = write_run(tmp_path)
    content = json.loads((directory / "data.json").read_text())
    content["names"]["classes"] = ["ab", "b", "c"]
    (directory / "data.json").write_text(json.dumps(content))
    with pytest.raises(DataError, match=r"^Text: is a text, but the classes of training aren't characters$"):
        evaluated(directory)


@pytest.mark.parametrize("has_ended", [True, False])
def test_data_that_are_others_than_in_training(tmp_path: Path, *, has_ended: bool) -> None:
    """The rows in another order: some of those held out now are some that training has seen."""
    rows = [f"{number},{number % 3},{number % 2}\n" for number in range(60)]
    (tmp_path / "points.csv").write_text("".join(["a,b,y\n", *rows]))
    data = "data: {Arrays: {file: points.csv, target: y, task: classification, standardize: true}}"
    run(load_config(write_config(tmp_path, re.sub("data: .*", data, SPIRALS)), ["epochs=1"]), tmp_path / "run")
    if not has_ended:
        (tmp_path / "run" / "summary.json").unlink()
    assert evaluate(read_trained(tmp_path / "run"), tmp_path / "run").num_examples == 12
    (tmp_path / "points.csv").write_text("".join(["a,b,y\n", *reversed(rows)]))
    with pytest.raises(DataError, match=r"points\.csv: the data are not those that the run was trained on"):
        evaluate(read_trained(tmp_path / "run"), tmp_path / "run")
    (tmp_path / "points.csv").rename(tmp_path / "other.csv")
    other = evaluate(read_trained(tmp_path / "run"), tmp_path / "run", [f"data.Arrays.file={tmp_path / 'other.csv'}"])
    assert other.num_examples == 60
