"""A run read back: its model with the weights that it kept, its config, and what was done to its data."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np

from nn_manual.arrays import Array, Padded, unpadded
from nn_manual.config import RunConfig, load_config
from nn_manual.config.config_file import dump_yaml
from nn_manual.data import Transform
from nn_manual.data.tables import Kind
from nn_manual.errors import ConfigError, DataError
from nn_manual.losses.binary import OfLogits
from nn_manual.losses.class_targets import OfClasses
from nn_manual.losses.multi_margin import MultiMarginLoss
from nn_manual.messages.text import counted, noted
from nn_manual.model import Sequential
from nn_manual.run.loading import quiet
from nn_manual.run.sources import changed_sources, sources_of
from nn_manual.run_directory.checkpoints import checkpoints_of, read_manifest
from nn_manual.run_directory.files import check_exists, read_file, sha256_of_file
from nn_manual.run_directory.metrics import CONFIG_FILE, DATA_FILE, read_summary
from nn_manual.run_directory.records import read_object
from nn_manual.run_directory.within import within
from nn_manual.trainer.evaluation_slices import outputs_of
from nn_manual.use.kept_weights import Checkpoint, kept_weights
from nn_manual.use.new_rows import as_csv, numbers_in
from nn_manual.use.run_page import run_page


@dataclass(frozen=True, eq=False)
class TrainedRun:
    """A run, ready to be used: `run.predict(array)`. `transform` has what was done to the data's numbers in training,
    and the names of the data. `checkpoint` says which weights `model` has, `directory` where the run lies.
    """

    model: Sequential
    config: RunConfig
    transform: Transform
    checkpoint: Checkpoint
    directory: Path

    def __repr__(self) -> str:
        """What was trained, in short."""
        parts = f"{type(self.config.data).__name__}, {counted(self.model.num_parameters, 'parameter')}"
        return f"<TrainedRun: {parts}, {self.checkpoint} weights>"

    def _repr_html_(self) -> str:
        """The same in a notebook, with what came of the run, and its curves."""
        weights = "the best ones, with the lowest validation loss" if self.checkpoint == "best" else "of the last step"
        return run_page(self.directory, self.config, self.model, weights)

    @property
    def is_classification(self) -> bool:
        """Whether the model was trained to put out the probabilities of classes, before softmax, or their logarithms:
        softmax makes the same of both.
        """
        return isinstance(self.config.loss, OfClasses)

    @property
    def scores_classes(self) -> bool:
        """Whether each output belongs to a class, of which the one with the largest output is predicted."""
        return self.is_classification or isinstance(self.config.loss, MultiMarginLoss)

    @property
    def kind(self) -> Kind:
        """Which numbers the model takes: indices, or any."""
        return Kind.INTEGERS if isinstance(self.model.domain, range) else Kind.NUMBERS

    def as_values(self, prediction: Array) -> Array:
        """What a model without classes puts out, in the units of its targets, float64: probabilities where the loss
        takes logits.
        """
        if isinstance(self.config.loss, OfLogits):
            from scipy.special import expit

            probabilities: Array = expit(prediction.astype(np.float64))
            return probabilities
        prediction = prediction.astype(np.float64)
        return prediction if self.transform.target is None else self.transform.target.undo(prediction)

    @quiet
    def predict(self, array: Array | Padded | Any) -> Array:
        """The model's predictions for examples (examples, ...), or for sequences that are Padded. Their numbers are in
        the units of the data's source, and are standardised here as in training. A missing number, NaN, is filled as in
        training. In an array of numbers, a column of names is a number for each name, as `transform.categories` has
        them. A pandas DataFrame has the columns of training by name, in any order, and may have others; a list of rows
        has them in the order of `transform.names.input`: names may stand in both as they are.

        Returns float64. For a classification, this is the probability of each class, (examples, classes); where the
        model predicts several places of each example, such as each character of a text, it is (examples, places,
        classes). For a regression, these are values (examples, outputs), which are not standardised. For labels, they
        are the probability of each, (examples, labels).

        Raises ValueError for examples that the model doesn't take, DataError, with the line, for a table that training
        couldn't have had, and NotFiniteError where the model puts out a value that is not finite.
        """
        table = None if isinstance(array, Padded) else as_csv(array, self.transform)
        input = self._as_input(array if table is None else numbers_in(table, self.transform, self.kind, ","))
        prediction = outputs_of(self.model, input)
        if self.is_classification:
            from scipy.special import softmax

            prediction = np.moveaxis(softmax(prediction.astype(np.float64), axis=1), 1, -1)
        else:
            prediction = self.as_values(prediction)
        if len(prediction) == len(input):
            return prediction
        return prediction.reshape(len(input), len(prediction) // len(input), *prediction.shape[1:])

    def _as_input(self, examples: Array | Padded) -> Array | Padded:
        """The examples as the model takes them. Raises ValueError, with the index of a number that it doesn't take."""
        array = np.asarray(unpadded(examples))
        if array.ndim < 2 or not len(array):
            raise ValueError(f"an array of examples has shape (examples, ...), not {array.shape}")
        if array.dtype.kind not in "biuf":
            raise ValueError(f"the examples have dtype {array.dtype}, not real numbers")
        if isinstance(self.model.domain, range):
            dtype, wanted = np.dtype(np.int64), "an integer"
            wrong = ~np.isfinite(array) | (array != np.floor(array))
        else:
            dtype, wanted = self.model.dtype, f"a finite {self.model.dtype}"
            if self.transform.filled is not None and array.shape[1:] == self.transform.filled.shape:
                array = np.where(np.isnan(array), self.transform.filled, array)
            if self.transform.input is not None:
                array = self.transform.input.apply(array)
            wrong = ~np.isfinite(array.astype(dtype))
        if wrong.any():
            index = tuple(np.argwhere(wrong)[0].tolist())
            raise ValueError(f"the number at {index} is {array[index]}, not {wanted}")
        array = array.astype(dtype)
        input = Padded(array, examples.lengths) if isinstance(examples, Padded) else array
        try:
            self.model.output_shape((max(2, len(input)), *input.shape[1:]))  # batch normalization takes no single one
        except ValueError as error:
            raise ValueError(f"examples of shape {input.shape[1:]} don't fit the model: {error}") from error
        self.model.check_values(input)
        return input


def load_run(
    path: str | os.PathLike[str],
    checkpoint: Checkpoint | None = None,
    *,
    layer_folder: str | os.PathLike[str] | None = None,
) -> TrainedRun:
    """The model of the run directory `path`, with its config and what was done to its data.

        run = nn_manual.load_run("runs/digits/2026-01-31_12-00-00.000000")
        probabilities = run.predict(images)

    `checkpoint` says which weights: "best" are those with the lowest validation loss, "last" those of the last step. By
    default, they are the best ones if there are any. For a run that was stopped or has not ended, they come from its
    newest checkpoint. `layer_folder` is where the modules of your own classes lie, if no longer where they lay.

    Raises DataError for such a run without a checkpoint, a file that is missing or corrupt, weights that don't fit the
    config, and best ones that were not kept; ConfigError where a user's own class isn't found; ValueError for another
    `checkpoint`. Where a module of the user's own has changed since the run began, a note on standard error says so.
    """
    if checkpoint not in (None, *get_args(Checkpoint)):
        raise ValueError(f"checkpoint is {checkpoint!r}, it must be one of {', '.join(get_args(Checkpoint))}, or None")
    return read_trained(Path(path), checkpoint, None if layer_folder is None else Path(layer_folder))


def read_trained(directory: Path, which: Checkpoint | None = None, layer_folder: Path | None = None) -> TrainedRun:
    """What `load_run` returns."""
    config = read_config(directory, layer_folder)
    _check_unchanged(directory)
    kept, model = kept_weights(directory, which, config), config.new_model()
    try:
        model.load_state_dict(kept.weights)
    except (ValueError, TypeError) as error:
        raise DataError(f"{kept.path}: doesn't fit {CONFIG_FILE}: {error}") from error
    _note_changed_layers(directory, config)
    transform = read_transform(within(directory, DATA_FILE))
    return TrainedRun(model, config, transform, kept.checkpoint, directory.absolute())


def _check_unchanged(directory: Path) -> None:
    """Raise DataError where the config or the data.json has changed since the run wrote them."""
    recorded = recorded_sha256(directory)
    for name in (CONFIG_FILE, DATA_FILE):
        if name in recorded and sha256_of_file(within(directory, name)) != recorded[name]:
            raise DataError(f"{directory / name}: is not what the run was trained with: its SHA-256 is another one")


def _note_changed_layers(directory: Path, config: RunConfig) -> None:
    """Say on standard error which modules of the user's own have changed since the run began, as its newest checkpoint
    knows: with other formulas, the weights give something else.
    """
    try:
        recorded = read_manifest(next(iter(checkpoints_of(directory)))).get("sources")
    except (StopIteration, DataError):  # the weights don't need it
        return
    changed = changed_sources(recorded if isinstance(recorded, dict) else {}, sources_of(config))
    package = __name__.partition(".")[0]
    if changed := [name for name in changed if name.partition(".")[0] != package]:
        print(noted(f"note: {', '.join(changed)} changed since the run began", sys.stderr), file=sys.stderr)


def recorded_sha256(directory: Path) -> dict[str, str]:
    """The SHA-256 of the files and the examples of a run, as summary.json has them, or the newest checkpoint if the run
    has not ended: there, kept_weights compares the config. Without either, and in older runs, there are fewer or none.
    """
    summary = read_summary(directory)
    if summary is not None and "stopped" not in summary:
        return {name: str(sha256) for name, sha256 in summary.get("sha256", {}).items()}
    newest = next(iter(checkpoints_of(directory)), None)
    manifest = {} if newest is None else read_manifest(newest)
    recorded = {"examples": manifest.get("data"), DATA_FILE: manifest.get("data_file")}
    return {name: str(sha256) for name, sha256 in recorded.items() if sha256 is not None}


def read_config(directory: Path, layer_folder: Path | None) -> RunConfig:
    """The config of a run directory; with a `layer_folder`, it is read with this one. Raises DataError where it is
    missing.
    """
    check_exists(directory)
    path = within(directory, CONFIG_FILE)
    read_file(path)  # a run without it is missing data, and no wrong config
    overrides = [] if layer_folder is None else [elsewhere(layer_folder)]
    try:
        return load_config(path, overrides, folder=Path.cwd())
    except ConfigError as error:
        if "no module" in str(error):
            words = "--layer-folder FOLDER, or load_run(layer_folder=...)"
            error.add_note(f"if your own classes lie elsewhere now: {words}")
        raise


def elsewhere(layer_folder: Path) -> str:
    """The override that says where the modules of the user's own classes lie."""
    return f"layer_folder={dump_yaml(os.fspath(layer_folder), on_one_line=True).strip()}"


def read_transform(path: Path) -> Transform:
    """A run's data.json. Raises DataError, with the file and the key."""
    content = read_object(path)
    try:
        return Transform.from_json(content)
    except ValueError as error:
        raise DataError(f"{path}: {error}") from error
