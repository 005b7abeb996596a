"""A trained model's predictions for new examples: from a file to a file."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Padded
from nn_manual.data import Arrays, Text
from nn_manual.data.csv_records import STANDARD_INPUT
from nn_manual.data.npz_files import read_npz, read_padded
from nn_manual.data.tables import Kind, Part
from nn_manual.errors import ConfigError, DataError
from nn_manual.run_directory.files import write_atomically
from nn_manual.use.load_run import TrainedRun
from nn_manual.use.new_rows import numbers_in

#: The endings of what is read, and of what is written.
INPUTS, OUTPUTS = (".csv", ".csv.gz", ".npz"), (".csv", ".npz")
#: The column, or the array, of the class with the largest output.
PREDICTED_CLASS = "predicted_class"


def predict(run: TrainedRun, input: Path, output: Path | None = None) -> int:
    """Write the run's predictions for the examples in the file `input` to the file `output`, or print them as a CSV;
    returns how many there are. The input "-" is a CSV on standard input.

    The examples are in the units of the training's data. A CSV needs the columns of the training by name, in any order,
    and may have others. Where these have no names, a CSV has as many columns as an example has numbers. An .npz needs
    an array with the same name as in training, or "input"; and, with lengths, an array of their name, or "lengths".

    A classification writes the class and the probability of each class: columns headed `predicted_class` and by the
    classes' names, or arrays `predicted_class` (an index), `probabilities` and `classes` (the names). With
    MultiMarginLoss, the model's outputs, `values`, are in the place of probabilities. A regression writes values, in
    the units of the training's data: columns headed as the targets were, or an array `values`. A file that exists is
    replaced as a whole.

    Raises ConfigError for another ending, a run on Text, and an output that is the input; DataError for an input that
    can't be read or doesn't fit, and an output that can't be written; NotFiniteError.
    """
    if input != STANDARD_INPUT and not input.name.endswith(INPUTS):
        raise ConfigError(f"--input must be - or end in {', '.join(INPUTS)}, not {input.name}")
    if isinstance(run.config.data, Text):
        raise ConfigError("a run on Text predicts the next character of a text: use nn-manual sample")
    if output is not None:
        _check_output(input, output)
    array = _read(run, input)
    try:
        prediction = run.predict(array)
    except ValueError as error:
        raise DataError(f"{input}: {error}") from error
    if output is None:
        print(_as_csv(run, prediction).decode(), end="")
    else:
        write_atomically(output, (_as_csv if output.suffix == ".csv" else _as_npz)(run, prediction))
    return len(prediction)


def _check_output(input: Path, output: Path) -> None:
    """Raise ConfigError or DataError for a file that the predictions can't go to."""
    if not output.name.endswith(OUTPUTS):
        raise ConfigError(f"--output must end in {' or '.join(OUTPUTS)}, not {output.name}")
    if input.exists() and output.exists() and output.samefile(input):
        raise ConfigError(f"--output {output} is the input, which would be lost")
    if not output.parent.is_dir():
        raise DataError(f"{output}: can't be written: {output.parent} is no folder")


def _read(run: TrainedRun, file: Path) -> Array | Padded:
    """The inputs in a file, float64 or int64."""
    data = run.config.data.source
    if file.suffix != ".npz":
        return numbers_in(file, run.transform, run.kind, data.character if isinstance(data, Arrays) else None)
    name = data.input if isinstance(data, Arrays) and data.file.suffix == ".npz" else "input"
    assert name is not None  # Arrays makes sure of it
    dtype = np.dtype(np.float64)
    input = Part([name] if isinstance(name, str) else name, run.kind, dtype)
    table = read_npz(file, input, Part([], Kind.NUMBERS, dtype))
    lengths = data.lengths if isinstance(data, Arrays) else "lengths" if run.model.lengths_heeded_by else None
    return table.input.array if lengths is None else read_padded(file, table.input, lengths)


def _names(run: TrainedRun, num_outputs: int) -> list[str]:
    """The names of the outputs: those of the classes, or of the targets, in training."""
    known = run.transform.names.classes if run.scores_classes else None
    known = known or run.transform.names.target
    if known is not None and len(known) == num_outputs:
        return list(known)
    return [str(index) if run.scores_classes else f"output_{index}" for index in range(num_outputs)]


def _as_csv(run: TrainedRun, prediction: Array) -> bytes:
    if prediction.ndim != 2:
        raise ConfigError(f"a row of a .csv can't hold a prediction of shape {prediction.shape[1:]}; an .npz can")
    names, rows = _names(run, prediction.shape[1]), prediction.tolist()
    if run.scores_classes:
        rows = [[names[index], *row] for index, row in zip(prediction.argmax(axis=1).tolist(), rows, strict=True)]
        heading = PREDICTED_CLASS
        while heading in names:
            heading += "_"
        names = [heading, *names]
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return text.getvalue().encode()


def _as_npz(run: TrainedRun, prediction: Array) -> bytes:
    arrays: dict[str, Any] = {"values": prediction}
    if run.scores_classes:
        name, names = "probabilities" if run.is_classification else "values", _names(run, prediction.shape[-1])
        arrays = {PREDICTED_CLASS: prediction.argmax(axis=-1), name: prediction, "classes": np.array(names)}
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()
