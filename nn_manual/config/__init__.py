"""Configs: YAML to validated objects, every error at once with its `file:line:column`."""

from nn_manual.config.classes_in import classes_in, names_classes
from nn_manual.config.config_file import dump_config, load_config
from nn_manual.config.misfits import check_sizes
from nn_manual.config.read_back import check_read_back
from nn_manual.config.reporting import reported
from nn_manual.config.run_config import EMA, Checkpointing, EarlyStopping, GradientCheck, RunConfig

__all__ = [
    "EMA",
    "Checkpointing",
    "EarlyStopping",
    "GradientCheck",
    "RunConfig",
    "check_read_back",
    "check_sizes",
    "classes_in",
    "dump_config",
    "load_config",
    "names_classes",
    "reported",
]
