"""Tables, from `nn-manual new` to predictions without a change of the config, beside scikit-learn's MLPs.

Both have the same layers, and inputs that are prepared alike, and both learn from the same rows. scikit-learn's other
settings are its defaults.
"""

from __future__ import annotations

import contextlib
import csv
import io
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.impute import SimpleImputer
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from nn_manual.config import load_config
from nn_manual.run.new_run import run
from nn_manual.use.load_run import load_run
from nn_manual.use.new_config import new_config
from nn_manual.use.predict_file import predict
from nn_manual.use.proposal import HIDDEN

NUM_SPLITS = 10
TEST_SHARE = 0.2
#: How far the mean over the splits may lie below scikit-learn's.
ALLOWED = {"accuracy": 0.02, "R2": 0.02}
TARGET = "target"


class Table(NamedTuple):
    """Columns of cells, the last one the target; which of them are names; and whether the target is classes."""

    header: list[str]
    rows: list[list[Any]]
    names: list[int]
    is_classification: bool


def made() -> Table:
    """3,000 rows with gaps, 3 columns of names, 5 of numbers, and 20 classes."""
    random = np.random.default_rng(0)
    num_rows, sizes = 3000, (3, 8, 12)
    numbers = random.standard_normal((num_rows, 5))
    codes = [random.integers(0, size, num_rows) for size in sizes]
    values = np.concatenate([numbers, *(np.eye(size)[code] for size, code in zip(sizes, codes, strict=True))], axis=1)
    hidden = np.tanh(values @ random.standard_normal((values.shape[1], 24)))
    labels = (3 * hidden @ random.standard_normal((24, 20)) + random.gumbel(size=(num_rows, 20))).argmax(axis=1)
    rows = []
    for row in range(num_rows):
        cells: list[Any] = [f"{'xyz'[column]}{codes[column][row]}" for column in range(3)] + numbers[row].tolist()
        rows.append([cell if random.random() > 0.03 else "" for cell in cells] + [f"class {labels[row]}"])
    return Table([*(f"c{column}" for column in range(8)), TARGET], rows, [0, 1, 2], True)


def _of_bunch(load: Callable[[], Any], *, is_classification: bool) -> Table:
    bunch = load()
    target = [str(bunch.target_names[label]) for label in bunch.target] if is_classification else bunch.target.tolist()
    rows = [[*row, value] for row, value in zip(bunch.data.tolist(), target, strict=True)]
    return Table([*map(str, bunch.feature_names), TARGET], rows, [], is_classification)


TABLES: dict[str, Callable[[], Table]] = {
    "wine": lambda: _of_bunch(load_wine, is_classification=True),
    "breast cancer": lambda: _of_bunch(load_breast_cancer, is_classification=True),
    "iris": lambda: _of_bunch(load_iris, is_classification=True),
    "diabetes": lambda: _of_bunch(load_diabetes, is_classification=False),
    "made": made,
}


def main() -> int:
    """Print a line for each table. Returns 0, or 1 if one is worse than allowed."""
    print(f"{'':14} {'figure':9} {'nn_manual':>9} {'scikit-learn':>12}   mean of {NUM_SPLITS} splits")
    is_missed = False
    for name, table in ((name, make()) for name, make in TABLES.items()):
        ours, theirs = zip(*(_scores(table, seed) for seed in range(NUM_SPLITS)), strict=True)
        figure = "accuracy" if table.is_classification else "R2"
        is_worse = bool(np.mean(ours) < np.mean(theirs) - ALLOWED[figure])
        print(f"{name:14} {figure:9} {np.mean(ours):9.4f} {np.mean(theirs):12.4f}{'   MISSED' * is_worse}", flush=True)
        is_missed |= is_worse
    return int(is_missed)


def _scores(table: Table, seed: int) -> tuple[float, float]:
    """Ours and scikit-learn's, on the rows that both don't learn from."""
    order = np.random.default_rng(seed).permutation(len(table.rows))
    num_tested = round(TEST_SHARE * len(order))
    test, train = ([table.rows[row] for row in part] for part in np.split(order, [num_tested]))
    actual = [row[-1] for row in test]
    return _score(actual, _ours(table, train, test)), _score(actual, _theirs(table, train, test, seed))


def _ours(table: Table, train: list[list[Any]], test: list[list[Any]]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, rows in (("train.csv", train), ("test.csv", [row[:-1] for row in test])):
            with Path(name).open("w", newline="") as file:
                csv.writer(file).writerows([table.header[: len(rows[0])], *rows])
        new_config(Path("train.csv"), [TARGET], Path("new.yaml"))
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            run(load_config(Path("new.yaml")), Path("run"))
            predict(load_run("run"), Path("test.csv"), Path("predictions.csv"))
        with Path("predictions.csv").open(newline="") as file:
            _, *rows = csv.reader(file)
        return [row[0] if table.is_classification else float(row[0]) for row in rows]


def _theirs(table: Table, train: list[list[Any]], test: list[list[Any]], seed: int) -> list[Any]:
    numbers = [column for column in range(len(table.header) - 1) if column not in table.names]
    prepared = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
        (make_pipeline(OneHotEncoder(handle_unknown="ignore"), StandardScaler(with_mean=False)), table.names),
    )
    kind = MLPClassifier if table.is_classification else MLPRegressor
    model = make_pipeline(prepared, kind(hidden_layer_sizes=(HIDDEN,), random_state=seed))
    inputs, tested = (_as_array(table, [row[:-1] for row in rows]) for rows in (train, test))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it hasn't converged
        model.fit(inputs, [row[-1] for row in train])
    predicted: list[Any] = model.predict(tested).tolist()
    return predicted


def _as_array(table: Table, rows: Sequence[Sequence[Any]]) -> Any:
    array = np.array(rows, dtype=object)
    for column in range(array.shape[1]):
        if column not in table.names:
            array[:, column] = [np.nan if cell == "" else cell for cell in array[:, column]]
    return array


def _score(actual: Sequence[Any], predicted: Sequence[Any]) -> float:
    """Accuracy, or R2 of numbers."""
    if isinstance(actual[0], str):
        return float(np.mean([own == other for own, other in zip(actual, predicted, strict=True)]))
    truth = np.array(actual)
    return float(1 - np.square(truth - predicted).sum() / np.square(truth - truth.mean()).sum())
