"""Predictions from a file to a file."""

from __future__ import annotations

import csv
import gzip
import io
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from text_runs import write_run
from trained_runs import CONFIG, LABELS, OF_INPUT, OF_LABELS, OF_REGRESSION, REGRESSION, write_trained

from nn_manual.data import Names, Transform
from nn_manual.errors import ConfigError, DataError
from nn_manual.use.load_run import read_trained
from nn_manual.use.predict_file import predict

#: softmax([1, 2]).
LIKELIER = 1 / (1 + math.exp(-1))
INDICES = """\
data: {Arrays: {file: train.npz, input: words, target: y, task: classification, integer_input: true}}
batch_size: 4
epochs: 3
model:
  - Embedding: {num_embeddings: 3, embedding_dim: 2}
  - Flatten
  - Linear: {in_features: 4, out_features: 2}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.5}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def predicted(run: Path, input: str, output: str = "out.csv") -> list[list[str]]:
    assert predict(read_trained(run), Path(input), Path(output)) > 0
    return list(csv.reader(Path(output).read_text().splitlines()))


def message(run: Path, input: str, output: str = "out.csv") -> str:
    """What is wrong with a DataError; nothing is written."""
    with pytest.raises(DataError) as raised:
        predict(read_trained(run), Path(input), Path(output))
    assert not Path(output).exists()
    return str(raised.value)


def test_probabilities_and_the_class(folder: Path) -> None:
    # The columns in another order, beside others, as a table with the answers would have them.
    Path("new.csv").write_text("name,b,a,y\nfirst,10,3,?\nsecond,6,5,?\n")
    header, *rows = predicted(write_trained(folder), "new.csv")
    assert header == ["predicted_class", "no", "yes"]
    assert [row[0] for row in rows] == ["yes", "no"]
    probabilities = [[float(cell) for cell in row[1:]] for row in rows]
    np.testing.assert_allclose(probabilities, [[1 - LIKELIER, LIKELIER], [LIKELIER, 1 - LIKELIER]], rtol=1e-7)


def test_values(folder: Path) -> None:
    Path("new.csv").write_text("a,b\n3,10\n-1,2\n")
    run = write_trained(folder, REGRESSION, OF_REGRESSION)
    assert predicted(run, "new.csv") == [["u", "v"], ["15.0", "2.0"], ["5.0", "0.0"]]


def test_probabilities_of_labels(folder: Path) -> None:
    Path("new.csv").write_text("a,b\n3,10\n-1,2\n")
    header, *rows = predicted(write_trained(folder, LABELS, OF_LABELS), "new.csv")
    assert header == ["u", "v"]
    probabilities = [[1 / (1 + math.exp(-logit)) for logit in logits] for logits in ([1, 2], [-1, 0])]
    np.testing.assert_allclose(np.array(rows, float), probabilities, rtol=1e-7)


def test_names_that_nobody_knows(folder: Path) -> None:
    Path("new.csv").write_text("x,y\n3,10\n")
    run = write_trained(folder, REGRESSION, Transform(OF_INPUT))
    assert predicted(run, "new.csv") == [["output_0", "output_1"], ["1.0", "2.0"]]
    run.rename("first")
    run = write_trained(folder, CONFIG, Transform(OF_INPUT))
    assert predicted(run, "new.csv")[0] == ["predicted_class", "0", "1"]


def test_a_class_of_the_columns_own_name(folder: Path) -> None:
    Path("new.csv").write_text("a,b\n3,10\n")
    names = Names(("a", "b"), ("y",), ("predicted_class", 'a "quoted", one'))
    header, row = predicted(write_trained(folder, transform=Transform(OF_INPUT, None, names)), "new.csv")
    assert header == ["predicted_class_", "predicted_class", 'a "quoted", one']
    assert row[0] == 'a "quoted", one'


def test_an_npz_of_a_classification(folder: Path) -> None:
    np.savez("new.npz", input=[[3.0, 10.0], [5.0, 6.0]], other=["text"])
    predict(read_trained(write_trained(folder)), Path("new.npz"), Path("out.npz"))
    with np.load("out.npz") as archive:
        assert sorted(archive.files) == ["classes", "predicted_class", "probabilities"]
        assert archive["predicted_class"].tolist() == [1, 0]
        assert archive["classes"].tolist() == ["no", "yes"]
        np.testing.assert_allclose(archive["probabilities"][0], [1 - LIKELIER, LIKELIER], rtol=1e-7)


def test_the_class_without_probabilities(folder: Path) -> None:
    Path("new.csv").write_text("a,b\n3,10\n5,6\n")
    run = write_trained(folder, CONFIG.replace("loss: CrossEntropyLoss", "loss: MultiMarginLoss"))
    expected = [["predicted_class", "no", "yes"], ["yes", "1.0", "2.0"], ["no", "2.0", "1.0"]]
    assert predicted(run, "new.csv") == expected
    predict(read_trained(run), Path("new.csv"), Path("out.npz"))
    with np.load("out.npz") as archive:
        found = {name: archive[name].tolist() for name in archive.files}
    assert found == {"predicted_class": [1, 0], "values": [[1, 2], [2, 1]], "classes": ["no", "yes"]}


def test_an_npz_of_a_regression(folder: Path) -> None:
    np.savez("new.npz", input=[[3.0, 10.0]])
    predict(read_trained(write_trained(folder, REGRESSION, OF_REGRESSION)), Path("new.npz"), Path("out.npz"))
    with np.load("out.npz") as archive:
        assert {name: archive[name].tolist() for name in archive.files} == {"values": [[15, 2]]}


def test_an_npz_as_that_of_the_training(folder: Path) -> None:
    weights = {
        "0.weight": np.array([[0, 0], [1, 0], [0, 1]], np.float32),
        "2.weight": np.array([[1, 0, 0, 0], [0, 0, 0, 1]], np.float32),
        "2.bias": np.zeros(2, np.float32),
    }
    run = write_trained(folder, INDICES, Transform(), last=weights)
    np.savez("new.npz", words=[[1, 0], [0, 2]])
    assert [row[0] for row in predicted(run, "new.npz")] == ["predicted_class", "0", "1"]
    np.savez("wrong.npz", words=[[1, 0.5]])
    words = "wrong.npz: array 'words'[0, 1] holds 0.5, not an integer up to 2**53"
    assert message(run, "wrong.npz", "wrong.csv") == words
    np.savez("wrong.npz", words=[[1, 3]])
    assert message(run, "wrong.npz", "wrong.csv") == "wrong.npz: Embedding: index 3 at (0, 1) is outside 0 ... 2"
    np.savez("wrong.npz", word=[[1, 0]])
    assert message(run, "wrong.npz", "wrong.csv") == "wrong.npz: has no array 'words'; did you mean 'word'?"


def test_a_file_that_is_there_is_replaced(folder: Path) -> None:
    Path("new.csv").write_text("a,b\n3,10\n")
    Path("out.csv").write_text("something else\n" * 100)
    assert len(predicted(write_trained(folder), "new.csv")) == 2
    assert sorted(path.name for path in folder.iterdir()) == ["new.csv", "out.csv", "run", "small.yaml"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,bb\n3,10\n", "new.csv: has no column 'b'; did you mean 'bb'?"),
        ("a,b\n3,\n", "new.csv:2: 1 cell of column 'b' is empty; a run trained with `missing: mean` takes them"),
        ("a,b\n", "new.csv: has a header and no rows"),
        ("", "new.csv: is empty; the first line of a CSV file names the columns"),
        ("a,b\n1e300,1\n", "new.csv: the number at (0, 0) is 5e+299, not a finite float32"),
    ],
)
def test_inputs_that_do_not_fit(folder: Path, text: str, expected: str) -> None:
    Path("new.csv").write_text(text)
    assert message(write_trained(folder), "new.csv") == expected


def test_as_many_columns_as_in_training(folder: Path) -> None:
    Path("new.csv").write_text("x,y,z\n1,2,3\n")
    run = write_trained(folder, REGRESSION, Transform(OF_INPUT))
    assert message(run, "new.csv") == "new.csv: an example has shape (3,), one of training had (2,)"


def test_files_that_are_not_there(folder: Path) -> None:
    run = write_trained(folder)
    assert message(run, "nowhere.csv") == "nowhere.csv: No such file or directory"
    Path("new.csv").write_text("a,b\n3,10\n")
    assert message(run, "new.csv", "nowhere/out.csv") == "nowhere/out.csv: can't be written: nowhere is no folder"


@pytest.mark.parametrize(
    ("input", "output", "expected"),
    [
        ("new.txt", "out.csv", "--input must be - or end in .csv, .csv.gz, .npz, not new.txt"),
        ("new.gz", "out.csv", "--input must be - or end in .csv, .csv.gz, .npz, not new.gz"),
        ("new.csv", "out", "--output must end in .csv or .npz, not out"),
        ("new.csv", "./new.csv", "--output new.csv is the input, which would be lost"),
    ],
)
def test_wrong_names(folder: Path, input: str, output: str, expected: str) -> None:
    Path("new.csv").write_text("a,b\n3,10\n")
    with pytest.raises(ConfigError) as raised:
        predict(read_trained(write_trained(folder)), Path(input), Path(output))
    assert str(raised.value) == expected
    assert Path("new.csv").read_text() == "a,b\n3,10\n"


def test_a_csv_that_is_gzipped_and_one_on_standard_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_trained(folder, REGRESSION, OF_REGRESSION)
    Path("new.csv.gz").write_bytes(gzip.compress(b"a,b\n3,10\n"))
    assert predicted(run, "new.csv.gz")[1] == ["15.0", "2.0"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a,b\n-1,2\n")))
    assert predicted(run, "-")[1] == ["5.0", "0.0"]


def test_a_text(folder: Path) -> None:
    with pytest.raises(ConfigError, match=r"^a run on Text predicts the next character of a text: use "):
        predict(read_trained(write_run(folder)), Path("new.csv"), Path("out.csv"))


def test_what_a_row_cannot_hold(folder: Path) -> None:
    text = INDICES.replace("  - Flatten\n", "  - Flatten: {start_dim: 0, end_dim: 1}\n")
    text = text.replace("in_features: 4", "in_features: 2")
    eye = np.eye(2, dtype=np.float32)
    weights = {"0.weight": np.zeros((3, 2), np.float32), "2.weight": eye, "2.bias": np.array([0, 1], np.float32)}
    run = write_trained(folder, text, Transform(), last=weights)
    np.savez("new.npz", words=[[1, 0], [0, 2]])
    with pytest.raises(ConfigError, match=r"^a row of a .csv can't hold a prediction of shape \(2, 2\); an .npz can$"):
        predicted(run, "new.npz")
    predict(read_trained(run), Path("new.npz"), Path("out.npz"))
    with np.load("out.npz") as archive:
        assert archive["predicted_class"].tolist() == [[1, 1], [1, 1]]


SEQUENCES = """\
from dataclasses import dataclass

import numpy as np
from nn_manual import Padded
from nn_manual.data import Dataset, Examples, split_examples


@dataclass
class Sequences(Dataset):
    def load(self, seed, dtype, transform=None):
        examples = Examples(Padded(np.arange(12.0).reshape(4, 3, 1), [1, 2, 3, 3]), np.ones((4, 1)))
        return split_examples(examples, None, 0.25, seed, dtype, standardize=False, transform=transform)
"""
OF_SEQUENCES = """\
data: sequences_of_mine:Sequences
batch_size: 4
epochs: 1
model:
  - PaddedTimePool: {mode: last}
  - Linear: {in_features: 1, out_features: 1}
loss: MSELoss
optimizer: {SGD: {lr: 0.1}}
"""


def test_sequences_of_a_data_set_of_ones_own(folder: Path) -> None:
    """Each is predicted by its last time that counts."""
    Path("sequences_of_mine.py").write_text(SEQUENCES)
    weights = {"1.weight": np.full((1, 1), 2.0, np.float32), "1.bias": np.full(1, 0.5, np.float32)}
    run = write_trained(folder, OF_SEQUENCES, Transform(), weights)
    sequences = np.array([[[1.0], [2], [3]], [[4], [5], [6]]])
    np.savez("new.npz", input=sequences, lengths=[3, 1])
    assert predicted(run, "new.npz") == [["output_0"], ["6.5"], ["8.5"]]
    Path("out.csv").unlink()
    np.savez("none.npz", input=sequences)
    assert message(run, "none.npz") == "none.npz: has no array 'lengths'; it has 'input'"
