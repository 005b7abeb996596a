"""How good a trained model is: its loss, the usual scores, and what there is to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array, placeholder
from nn_manual.config import RunConfig, load_config
from nn_manual.config.config_file import plain_of
from nn_manual.data import Arrays, Dataset, Examples
from nn_manual.data.checked import loaded
from nn_manual.data.csv_records import STANDARD_INPUT
from nn_manual.errors import ConfigError, DataError, NotFiniteError
from nn_manual.losses import Loss
from nn_manual.messages.text import counted, one_line
from nn_manual.run.environment import sha256_of
from nn_manual.run.loading import quiet
from nn_manual.run.recorded_loss import recorded_loss
from nn_manual.run_directory.metrics import BITS, CONFIG_FILE
from nn_manual.run_directory.within import within
from nn_manual.trainer.evaluation_slices import outputs_of
from nn_manual.trainer.trainer import Trainer
from nn_manual.use.kept_weights import Checkpoint
from nn_manual.use.load_run import TrainedRun, elsewhere, recorded_sha256
from nn_manual.use.scores import ClassScores, LabelScores, TargetScores, roc_auc

#: The keys of a run's config that an evaluation may change.
OVERRIDES = ("data", "loss", "seed")
#: Of more classes, the matrix takes minutes and gigabytes: 50,000 take 20 of them.
MOST_IN_A_MATRIX = 4096


class Targets(NamedTuple):
    """The predictions of a regression, or the probabilities of labels, beside the targets, both (examples, targets) and
    in the units of the source, and the targets' names.
    """

    prediction: Array
    target: Array
    names: tuple[str, ...]


class EvaluatedRun(NamedTuple):
    """The result of a run's model on some examples. `bits` are the bits per character of a text. `confusion`, int64
    (classes, classes), counts the targets by their class and by the predicted class, and `auc` is the area under the
    ROC curve where there are two classes; both are None without classes, for more than 4,096, and for a text. A
    regression and labels have `targets`, and `is_standardized` says whether the loss is one of standardised targets.
    """

    examples: str
    num_examples: int
    checkpoint: Checkpoint
    loss: float
    accuracy: float | None
    bits: float | None
    confusion: Array | None
    classes: tuple[str, ...]
    auc: float | None
    targets: Targets | None
    is_standardized: bool

    @property
    def title(self) -> str:
        """The title of the figure."""
        examples = counted(self.num_examples, "example")
        return examples if self.accuracy is None else f"{examples}, accuracy {self.accuracy:.2%}"

    def __str__(self) -> str:
        results = [f"loss {self.loss:.4g}" + (" of standardised targets" if self.is_standardized else "")]
        if self.bits is not None:
            with np.errstate(over="ignore"):  # a diverged model's is infinite
                perplexity = np.exp2(self.bits)
            results += [f"bits a character {self.bits:.4g}", f"perplexity {perplexity:.4g}"]
        if self.accuracy is not None:
            results.append(f"accuracy {self.accuracy:.2%}")
        if self.auc is not None:
            results.append(f"ROC AUC {self.auc:.4f}")
        return "\n".join([one_line(self.examples), f"{self.checkpoint} weights: {', '.join(results)}", *self._table()])

    def _table(self) -> list[str]:
        """A line for each class, label or target; none for a text."""
        if self.targets is not None and self.accuracy is not None:
            return LabelScores.of(self.targets.prediction, self.targets.target).lines(self.targets.names)
        if self.targets is not None:
            return TargetScores.of(self.targets.prediction, self.targets.target).lines(self.targets.names)
        return [] if self.confusion is None else ClassScores.of(self.confusion).lines(self.classes)


@quiet
def evaluate(run: TrainedRun, directory: Path, overrides: Sequence[str] = ()) -> EvaluatedRun:
    """Evaluate a trained run, which was read from `directory`.

    Without overrides, this takes its validation part, or its training part if it has no other. `overrides`, such as
    "data.Arrays.file=other.csv", give other data: then all examples are taken, and the training's transform is applied.
    Relative paths count from the current folder. The loss can be another one, too.

    Raises ConfigError for an override that is wrong or of another key, DataError for data that can't be read or that
    the model doesn't fit, and NotFiniteError.
    """
    folder = [] if run.config.layer_folder is None else [elsewhere(run.config.layer_folder)]
    config = load_config(within(directory, CONFIG_FILE), [*folder, *overrides], folder=Path.cwd())
    for override in overrides:
        if override.partition("=")[0].partition(".")[0] not in OVERRIDES:
            raise ConfigError(f"override {override!r}: an evaluation only takes other {', '.join(OVERRIDES)}")
    words, examples = _examples(config, run, recorded_sha256(directory).get("examples"))
    num_classes = _check_fit(run, config.loss, examples, _source(config.data))
    trainer = Trainer(run.model, config.loss, config.optimizer(run.model), check_every=0)
    confusion = None
    if num_classes is not None and num_classes <= MOST_IN_A_MATRIX:
        confusion = np.zeros((num_classes, num_classes), np.int64)
    try:
        evaluation = trainer.evaluate(examples, confusion)
    except NotFiniteError:
        raise NotFiniteError(f"{words}: the loss is not finite") from None
    bits = recorded_loss("validation_loss", evaluation.loss, examples.target, config).get(BITS["validation_loss"])
    if config.data.predicts_characters:
        confusion = None  # of a hundred characters, it says less than the loss
    classes = _class_names(run, confusion)
    if confusion is not None:
        confusion = confusion[: len(classes), : len(classes)]
    return EvaluatedRun(
        words,
        len(examples.input),
        run.checkpoint,
        evaluation.loss,
        evaluation.accuracy,
        bits,
        confusion,
        classes,
        _auc(run, config.loss, examples) if confusion is not None and num_classes == 2 else None,
        _targets(run, examples) if num_classes is None else None,
        run.transform.target is not None,
    )


def _auc(run: TrainedRun, loss: Loss, examples: Examples) -> float | None:
    """Of two classes: the second one's score is by how much its output is above the first one's."""
    output = outputs_of(run.model, examples.input).astype(np.float64)
    is_counted = loss.counted(examples.target).ravel()
    return roc_auc((output[:, 1] - output[:, 0]).ravel()[is_counted], examples.target.ravel()[is_counted])


def _targets(run: TrainedRun, examples: Examples) -> Targets | None:
    """None where the targets aren't what the model puts out, such as probabilities."""
    prediction, target = outputs_of(run.model, examples.input), examples.target
    if run.is_classification or prediction.shape != target.shape:
        return None
    if run.transform.target is not None:
        target = run.transform.target.undo(target)
    arrays = run.as_values(prediction), target.astype(np.float64)
    prediction, target = (array.reshape(len(array), -1) for array in arrays)
    names = run.transform.names.target
    if names is None or len(names) != target.shape[1]:
        names = tuple(f"output_{number}" for number in range(target.shape[1]))
    return Targets(prediction, target, names)


def _examples(config: RunConfig, run: TrainedRun, sha256: str | None) -> tuple[str, Examples]:
    """The examples to evaluate, and in words which they are. `sha256` is that of the run's own data, if it is known."""
    data, source = config.data, _source(config.data)
    # By what a config has of them: the classes of the user's own modules have been made anew.
    is_own = plain_of(data) == plain_of(run.config.data) and config.seed == run.config.seed
    if not is_own:  # all examples, or those of another validation_file
        whole: dict[str, Any] = {"validation_fraction": 0.0}
        if _validation_file(data) == _validation_file(run.config.data):
            whole["validation_file"] = None
        names = {field.name for field in fields(data.source)}  # type: ignore[arg-type]  # each data set is a dataclass
        kept = {name: value for name, value in whole.items() if name in names}
        data = data.with_source(replace(data.source, **kept))  # type: ignore[type-var]  # as above
    try:
        split = loaded(data, config.seed, run.model.dtype, run.transform)
    except ValueError as error:
        raise DataError(f"{source}: {error}") from error
    if not split.transform.changes_as(run.transform):
        text = "load must apply the `transform` that it is given, and return it in the Split"
        raise DataError(f"{source}: the numbers weren't changed as those of training were: {text}")
    if is_own and sha256 is not None and sha256_of(split) != sha256:
        raise DataError(f"{source}: the data are not those that the run was trained on; a copy counts as other data")
    if num_validation := len(split.validation.input):
        part = _validation_file(data) or f"validation part of {source}"
        return f"{part}, {counted(num_validation, 'example')}", split.validation
    examples = counted(len(split.train.input), "example")
    if is_own:
        return f"training part of {source}, {examples}: no validation part was held out", split.train
    return f"all of {source}, {examples}", split.train


def _validation_file(data: Dataset) -> Path | None:
    return data.source.validation_file if isinstance(data.source, Arrays) else None


def _source(data: Dataset) -> str:
    """What a message calls the data: by their file, if they have one, or else by their class."""
    place = getattr(data.source, "file", None) or getattr(data.source, "folder", None)
    if place == STANDARD_INPUT:
        return "standard input"
    return type(data).__name__ if place is None else str(place)


def _check_fit(run: TrainedRun, loss: Loss, examples: Examples, source: str) -> int | None:
    """The number of classes that the model puts out, None where no output is one of them. Raises DataError where model
    and loss don't fit the examples.
    """
    input, target = examples
    try:
        run.model.check_dtype(input)
        output_shape = run.model.output_shape((2, *input.shape[1:]))  # batch normalization takes no single example
        run.model.check_values(input)
        loss.check_data(target)
        num_predictions = len(input) * output_shape[0] // 2  # a model may make several of each example
        loss.check_target(placeholder((num_predictions, *output_shape[1:]), run.model.dtype), target)
    except (ValueError, TypeError) as error:
        raise DataError(f"{source}: doesn't fit the run: {error}") from error
    return output_shape[1] if target.dtype.kind == "i" and loss.has_places else None


def _class_names(run: TrainedRun, confusion: Array | None) -> tuple[str, ...]:
    """The names of the classes of the data. A model of characters may predict other classes: these have their indices.
    """
    if confusion is None:
        return ()
    known = run.transform.names.classes or tuple(map(str, range(len(confusion))))
    num_classes = max(len(known), 1 + int(np.flatnonzero(confusion.any(axis=0)).max(initial=0)))
    return (*known, *map(str, range(len(known), num_classes)))
