"""A model in one file: its weights, and the layers that they belong to."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from nn_manual.config.model_text import dump_model, parse_model
from nn_manual.errors import ConfigError, DataError
from nn_manual.model import Sequential
from nn_manual.run_directory.files import write_atomically
from nn_manual.run_directory.weights import read_weights

#: The key of the file's metadata that holds the layers.
KEY = "nn_manual"


def save_model(model: Sequential, path: str | os.PathLike[str]) -> None:
    """Write a model to a safetensors file, atomically: its parameters and buffers under torch's names, and its layers
    as a config has them.

        save_model(model, "digits.safetensors")
        model = load_model("digits.safetensors")

    Nothing of an optimizer is kept: for training that goes on later, `nn-manual train` writes checkpoints. Raises
    TypeError for a layer of your own that is no dataclass or stands in `__main__`, a script or a notebook; DataError
    where the file can't be written.
    """
    import safetensors.numpy

    arrays = {name: np.asarray(array, order="C") for name, array in model.state_dict(aliases=False).items()}
    write_atomically(Path(path), safetensors.numpy.save(arrays, {KEY: dump_model(model)}))


def load_model(path: str | os.PathLike[str], layer_folder: str | os.PathLike[str] = ".") -> Sequential:
    """The model that `save_model` wrote. Layers of your own are imported from modules in `layer_folder`, as a config
    names them; nothing else in the file is executed.

    Raises DataError for a file that can't be read, is no such file, or has weights that don't fit; ConfigError where a
    layer of your own isn't found.
    """
    import safetensors

    file = Path(path)
    weights = read_weights(file)
    with safetensors.safe_open(file, framework="numpy") as opened:
        text = (opened.metadata() or {}).get(KEY)
    if text is None:
        raise DataError(f"{file}: has weights and no layers: it wasn't written by save_model")
    try:
        model = parse_model(text, str(file), Path(layer_folder))
    except ConfigError as error:
        error.add_note("load_model's layer_folder is the folder with the modules of your own layers")
        raise
    except ValueError as error:  # shared parameters that don't fit the layers
        raise DataError(f"{file}: {error}") from error
    try:
        model.load_state_dict(weights)
    except (ValueError, TypeError) as error:
        raise DataError(f"{file}: the weights don't fit the layers: {error}") from error
    return model
