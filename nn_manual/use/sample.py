"""Text that a trained model writes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nn_manual.arrays import Array
from nn_manual.config import reported
from nn_manual.data import Text, Transform
from nn_manual.errors import ConfigError, DataError, NotFiniteError
from nn_manual.messages.text import counted
from nn_manual.model import Sequential
from nn_manual.run.loading import quiet
from nn_manual.run_directory.metrics import DATA_FILE
from nn_manual.streams import Stream, generator
from nn_manual.use.kept_weights import Checkpoint
from nn_manual.use.load_run import read_trained


def sample(
    directory: Path,
    prompt: str,
    length: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    seed: int = 0,
    checkpoint: Checkpoint | None = None,
    layer_folder: Path | None = None,
) -> Iterator[str]:
    """The prompt, and then one by one `length` characters that the model of a run on Text writes after it.

        p = softmax(prediction / temperature), over the top_k largest predictions

    The model sees the last `context` characters, as in its training. `seed` alone decides what is drawn: a longer text
    begins like a shorter one. `checkpoint` says which weights, and `layer_folder` where the user's own classes lie, as
    for `load_run`.

    Before the prompt, it raises ConfigError for settings out of range, a run on other data, and a character of the
    prompt that is not in the training text, and DataError for a run that can't be read. Later, it raises NotFiniteError
    where the model puts out a value that is not finite.
    """
    _check_settings(prompt, length, temperature, top_k, seed)
    run = read_trained(directory, checkpoint, layer_folder)
    config, model = run.config, run.model
    if not isinstance(config.data, Text):
        raise ConfigError(f"{directory}: is a run on {type(config.data).__name__}; only one on Text writes text")
    vocabulary = _vocabulary(run.transform, directory / DATA_FILE)
    indices = _indices(prompt, vocabulary)
    context, random = config.data.context, generator(seed, Stream.SAMPLE)
    with reported(config, checked=True):  # training has checked it
        _check_fit(model, len(vocabulary), range(min(len(indices), context), context + 1), directory)
        yield prompt
        for _ in range(length):
            prediction = model(np.array([indices[-context:]]))
            prediction = _last(prediction)[: len(vocabulary)]  # a model may have room for more characters
            indices.append(draw(prediction, temperature, top_k, random))
            yield vocabulary[indices[-1]]


@quiet
def draw(prediction: Array, temperature: float, top_k: int | None, random: np.random.Generator) -> int:
    """The index of a class, drawn with the probabilities softmax(prediction / temperature) over the `top_k` largest
    values of a prediction (classes,). Of equal values, the first ones are taken. Raises NotFiniteError where a value
    isn't finite.
    """
    if not np.isfinite(prediction).all():
        raise NotFiniteError("the model's prediction is not finite")
    largest = np.argsort(-prediction, kind="stable")[:top_k]
    # The largest value is subtracted first: so its exp is 1, however low the temperature is.
    shifted = prediction[largest].astype(np.float64) - prediction[largest[0]]
    exponential = np.exp(shifted / temperature)
    return int(largest[random.choice(len(largest), p=exponential / exponential.sum())])


def _last(prediction: Array) -> Array:
    """The prediction after the last character of a window: (time, classes) or (1, classes, time) to (classes,)."""
    return prediction[-1] if prediction.ndim == 2 else prediction[0, :, -1]


def _check_settings(prompt: str, length: int, temperature: float, top_k: int | None, seed: int) -> None:
    if not prompt:
        raise ConfigError("--prompt must have at least one character")
    if not 0 < temperature < math.inf:
        raise ConfigError(f"--temperature must be above 0 and finite, not {temperature}")
    for name, value, smallest in (("length", length, 1), ("top-k", top_k, 1), ("seed", seed, 0)):
        if value is not None and value < smallest:
            raise ConfigError(f"--{name} must be at least {smallest}, not {value}")


def _vocabulary(transform: Transform, path: Path) -> tuple[str, ...]:
    """The characters of the training text, by their indices. Raises DataError, naming the file, where it has none."""
    classes = transform.names.classes
    if classes is None or any(len(name) != 1 for name in classes):
        raise DataError(f'{path}: "names.classes" must be a list of characters')
    return classes


def _indices(prompt: str, vocabulary: tuple[str, ...]) -> list[int]:
    index_of = {character: index for index, character in enumerate(vocabulary)}
    for offset, character in enumerate(prompt):
        if character not in index_of:
            raise ConfigError(f"--prompt: {character!r} at offset {offset} is no character of the training text")
    return [index_of[character] for character in prompt]


def _check_fit(model: Sequential, num_characters: int, lengths: range, directory: Path) -> None:
    """Raise ConfigError where the model doesn't take text of these lengths, and DataError where it has another
    vocabulary.
    """
    for length in lengths:
        try:
            output_shape = model.output_shape((2, length))  # batch normalization takes no single example
        except ValueError as error:
            prompt = counted(lengths[0], "character")
            raise ConfigError(f"the model doesn't take a prompt of {prompt}: {error}") from error
    known = f"{directory / DATA_FILE}: has {counted(num_characters, 'character')}"
    if output_shape[1] < num_characters:
        raise DataError(f"{known}, and the model predicts {output_shape[1]}")
    try:
        model.check_values(np.arange(num_characters)[np.newaxis])
    except ValueError as error:
        raise DataError(f"{known}: {error}") from error
