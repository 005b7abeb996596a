"""What a run needs before its first step: data and a model that fit each other, and a first batch like torch's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from nn_manual.arrays import DTYPES
from nn_manual.compile.blas import Choice, check_choice, check_threads
from nn_manual.compile.compile_step import check_numba
from nn_manual.config import RunConfig, check_sizes
from nn_manual.config.yaml_tree import Errors, Place
from nn_manual.data import Split, batches
from nn_manual.data.checked import loaded
from nn_manual.data.reading import machine_memory
from nn_manual.errors import ConfigError, NotFiniteError
from nn_manual.layers.base import Layer, num_parameters
from nn_manual.layers.branches import Branches
from nn_manual.layers.composite import descendants
from nn_manual.messages.text import print_note
from nn_manual.model import Sequential
from nn_manual.model.layers_fit import first_misfit
from nn_manual.model.lengths import Lengths
from nn_manual.optim import ReduceLROnPlateau
from nn_manual.optim.scheduling import check_schedule
from nn_manual.registry import takes_layers
from nn_manual.run.init_from import start_from_file

if TYPE_CHECKING:  # torch is only loaded for what is checked
    from nn_manual.check.judge.report import GradientReport

#: No warnings of numpy's: a value that overflows is reported where it matters.
quiet = np.errstate(over="ignore", invalid="ignore", divide="ignore")


def load(config: RunConfig, split: Split | None = None) -> tuple[Split, Sequential]:
    """The data and the model of a config, once they are known to fit each other. `split` has the data where they have
    been read already: standard input can be read only once. Raises ConfigError and DataError.
    """
    _check_memory(config)
    if split is None:
        split = loaded(config.data, config.seed, DTYPES[config.dtype])
    if (config.slices or 1) > (num_rows := min(config.batch_size, len(split.train.input))):
        place = config.places.get("slices", "slices")
        raise ConfigError(f"{place}: slices must be at most {num_rows}, the examples in a batch, not {config.slices}")
    check_sizes(config, split)
    if config.early_stopping is not None and not len(split.validation.input):
        place = config.places.get("early_stopping", "early_stopping")
        raise ConfigError(f"{place}: early_stopping watches the validation loss, but there is no validation set")
    if isinstance(config.lr_scheduler, ReduceLROnPlateau) and not len(split.validation.input):
        place = config.places.get("lr_scheduler", "lr_scheduler")
        raise ConfigError(f"{place}: ReduceLROnPlateau watches the validation loss, but there is no validation set")
    model = config.new_model()
    _check_schedule(config, split, model)
    if not model.num_parameters:
        raise ConfigError("model: no layer has parameters, there is nothing to train")
    _check_times(config, split, model)
    _check_composites(config, split, model)
    return split, model


def _check_schedule(config: RunConfig, split: Split, model: Sequential) -> None:
    """Raise ConfigError for a run with more counts than its schedule, and for a momentum that can't be moved."""
    scheduler = config.lr_scheduler
    if scheduler is None:
        return
    place = config.places.get("lr_scheduler", "lr_scheduler")
    length, unit = config.num_counts(len(split.train.input))
    if length - 1 > scheduler.last_count:
        name, last = type(scheduler).__name__, scheduler.last_count
        raise ConfigError(f"{place}: {name} has no lr after {last:,} {unit}, and the run has {length:,}")
    try:
        check_schedule(config.optimizer(model), scheduler)
    except ValueError as error:
        raise ConfigError(f"{place}: {error}") from None


def check_machine(config: RunConfig, *, goes_on: bool = False) -> None:
    """Raise NoNumba, and ConfigError with a line for each key that asks for a BLAS, threads or memory that this machine
    hasn't. For a run that goes on, and may come from another machine, a note says what to add to the command.
    """
    if config.compiled:
        check_numba()
    of_blas = {"blas": partial(check_choice, Choice(config.blas))} if config.compiled else {}
    _check_each(config, {**of_blas, **_limits(config)}, goes_on=goes_on)
    _check_memory_of_check(config)


def check_limits(config: RunConfig) -> None:
    """Raise ConfigError, with a line for each key, for more threads than cores are free, and for a
    `gradient_check.memory` that exceeds the machine's.
    """
    _check_each(config, _limits(config))
    _check_memory_of_check(config)


def _limits(config: RunConfig) -> dict[str, Callable[[], object]]:
    """What refuses too many threads, by the key."""
    counts = {"gradient_check.threads": config.gradient_check.threads}
    if config.compiled:
        counts |= {"threads": config.threads, "loop_threads": config.loop_threads}
    return {name: partial(check_threads, name, count) for name, count in counts.items()}


def _check_each(config: RunConfig, checks: Mapping[str, Callable[[], object]], *, goes_on: bool = False) -> None:
    errors, added = Errors(), []
    for name, check_it in checks.items():
        try:
            check_it()
        except ConfigError as error:
            errors.add(config.places.get(name, Place(name)), str(error))
            added.append(f"{name}=null")
    try:
        errors.raise_if_any()
    except ConfigError as error:
        if goes_on:
            error.add_note(f"to go on with what this machine has, add: {' '.join(added)}")
        raise


def _check_times(config: RunConfig, split: Split, model: Sequential) -> None:
    """Raise ConfigError where a layer that heeds lengths doesn't get the times of the data."""
    if not model.lengths_heeded_by:
        return
    found = Lengths(model).misfit(model, split.train.input.shape)
    if found is not None:
        name, words = found
        path, layer = _paths(config, model)[name]
        raise ConfigError(f"{config.places.get(path, path)}: {type(layer).__name__} {words}")


def _paths(config: RunConfig, model: Sequential) -> dict[str, tuple[str, Layer]]:
    """The path in the config, and the layer, by the name in the model of each that is no Sequential."""
    names = [name for name, layer in descendants(model) if not isinstance(layer, Sequential)]
    return dict(zip(names, config.named_layers().items(), strict=True))


def _check_composites(config: RunConfig, split: Split, model: Sequential) -> None:
    """Raise ConfigError where a user's composite gives one of its layers an input that this layer doesn't take, in a
    whole batch or in the last one. The package's own composites have been followed layer by layer.
    """
    paths = _paths(config, model)
    composites = [layer for _, layer in paths.values() if layer.children()]
    if all(takes_layers(type(layer)) or isinstance(layer, Branches) for layer in composites):
        return
    num_examples = len(split.train.input)
    last = ", in the last batch of an epoch"
    for size, when in ((min(config.batch_size, num_examples), ""), (num_examples % config.batch_size, last)):
        misfit = first_misfit(model, split.train.input[:size]) if size else None
        if misfit is not None:
            path, _ = paths[misfit.name]
            raise ConfigError(f"{config.places.get(path, path)}: {misfit.words}{when}")


def _check_memory(config: RunConfig) -> None:
    """Raise ConfigError for a model whose parameters and gradients exceed the machine's memory, with its largest layer,
    and for a `gradient_check.memory` that does. The system might grant such memory, and kill the process when it uses
    what it was given.
    """
    layers = {path: layer for path, layer in config.named_layers().items() if not layer.children()}
    needed = 2 * sum(num_parameters(layer) for layer in layers.values()) * DTYPES[config.dtype].itemsize
    memory = machine_memory()
    if needed > memory:
        path, largest = max(layers.items(), key=lambda item: num_parameters(item[1]))
        raise ConfigError(
            f"{config.places.get(path, path)}: {largest} has {num_parameters(largest):,} parameters; with their "
            f"gradients, the model takes {needed / 2**30:,.0f} GiB, and this machine has {memory / 2**30:,.0f}"
        )
    _check_memory_of_check(config)


def _check_memory_of_check(config: RunConfig) -> None:
    check, memory = config.gradient_check, machine_memory()
    if check.every and check.num_bytes > memory:
        place = config.places.get("gradient_check.memory", "gradient_check.memory")
        has = f"this machine has {memory / 10**9:,.0f} GB"
        raise ConfigError(f"{place}: gradient_check.memory is {check.memory}, and {has}")


@quiet
def check(config: RunConfig) -> GradientReport:
    """Compare every tensor of the run's first batch whose loss is a number with torch's. Raises the errors of `load`
    and of `start_from_file`, and NotFiniteError where a right formula gives a number that isn't finite, because of the
    data or the parameters at the start.
    """
    check_limits(config)
    split, model = load(config)
    for note in start_from_file(config, split, model):
        print_note(note)
    # Here, because it loads torch: an error in the data is reported without waiting for that.
    from nn_manual.check.whole_step.gradients import check_gradients

    in_order = batches(split.train, config.batch_size, config.seed, epoch=0)
    input, target = next(batch for batch in in_order if config.loss.has_value(config.loss.denominator(batch[1])))
    report = check_gradients(model, config.loss, input, target)
    if report.not_finite is not None:
        raise NotFiniteError(f"{report.not_finite} in the first batch")
    return report
