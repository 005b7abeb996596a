"""A run that has ended, read back: its config, and its model with the weights that it ended with."""

from __future__ import annotations

from pathlib import Path

from nn_manual.config import RunConfig, load_config
from nn_manual.errors import DataError
from nn_manual.model import Sequential
from nn_manual.run_directory.files import check_run_exists, read_file, read_weights
from nn_manual.run_directory.metrics import CONFIG_FILE, SUMMARY_FILE, WEIGHTS_FILE
from nn_manual.run_directory.records import read_object, shown


def read_trained(directory: Path) -> tuple[RunConfig, Sequential]:
    """The config and the model of the run directory `directory`.

    Raises DataError for a run that has not ended, a file that is missing or corrupt, and weights that aren't the
    config's; ConfigError where a layer of the user's own isn't found.
    """
    check_run_exists(directory)
    read_file(directory / CONFIG_FILE)  # a run without it is missing data, and no wrong config
    config = load_config(directory / CONFIG_FILE)
    summary = directory / SUMMARY_FILE
    if not summary.exists():
        raise DataError(f"{summary}: is missing: the run has not ended")
    sha256 = read_object(summary).get("model_sha256")
    if not isinstance(sha256, str):
        raise DataError(f'{summary}: "model_sha256" is {shown(sha256)}, expected a string')
    weights, model = directory / WEIGHTS_FILE, config.new_model()
    try:
        model.load_state_dict(read_weights(weights, sha256))
    except (ValueError, TypeError) as error:
        raise DataError(f"{weights}: doesn't fit {CONFIG_FILE}: {error}") from error
    return config, model
