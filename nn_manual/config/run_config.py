"""RunConfig: all that a config holds."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from nn_manual.compile.blas import BlasName, Choice
from nn_manual.config.user_classes import import_path
from nn_manual.config.yaml_tree import Place
from nn_manual.data import Dataset, num_batches
from nn_manual.errors import ConfigError
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.model.initializers import Initializer
from nn_manual.optim import Clipping, Optimizer, Scheduler
from nn_manual.optim.averaging import averaged
from nn_manual.optim.clipping import clipping_of
from nn_manual.step.slices.sync_batch_norm import not_synchronized

#: The layers of a model, or of one of its composites.
Layers: TypeAlias = list[Layer]


@dataclass(frozen=True)
class EarlyStopping:
    """Stop after `patience` epochs in which the validation loss fell by no more than `min_delta`."""

    patience: Annotated[int, Field(ge=1)]
    min_delta: Annotated[float, Field(ge=0)] = 0.0


@dataclass(frozen=True)
class EMA:
    """Evaluate the exponential moving average of the weights, of which each step keeps the share `decay`."""

    decay: Annotated[float, Field(ge=0, lt=1)] = 0.999


@dataclass(frozen=True)
class GradientCheck:
    """Compare every gradient with torch's at each `every`-th step; 0 turns it off. Steps are proven together, as many
    as fit into `memory`, an integer and kB, MB or GB, on `threads` threads: by default on one, or on all free cores
    where that is faster. Raises ValueError for a memory of another form.
    """

    every: Annotated[int, Field(ge=0)] = 1
    memory: Annotated[str, "an integer and kB, MB or GB", Field(examples=["500 kB", "128 MB", "1 GB"])] = "128 MB"
    threads: Annotated[int, Field(ge=1)] | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[0-9]{1,18} [kMG]B", self.memory):
            forms = "an integer and kB, MB or GB, like `500 kB` or `128 MB` or `1 GB`"
            raise ValueError(f"memory must be {forms}, not {self.memory!r}")

    @property
    def num_bytes(self) -> int:
        """The memory in bytes."""
        number, unit = self.memory.split()
        return int(number) * {"kB": 10**3, "MB": 10**6, "GB": 10**9}[unit]


@dataclass(frozen=True)
class Checkpointing:
    """Write a checkpoint `every` so many epochs or steps, `1 epoch` or `500 steps`, and keep the newest `keep`. Where
    epochs are counted, there is at most one checkpoint in 10 seconds; where steps are counted, all are written. The end
    of a run always has one. Raises ValueError for an `every` of another form.
    """

    every: Annotated[str, Field(examples=["1 epoch", "500 steps"])] = "1 epoch"
    keep: Annotated[int, Field(ge=1)] = 3

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[1-9][0-9]{0,17} (epoch|step)s?", self.every):
            raise ValueError(f"every must be like `1 epoch` or `500 steps`, not {self.every!r}")

    @property
    def count(self) -> int:
        """How many epochs or steps."""
        return int(self.every.partition(" ")[0])

    @property
    def of_steps(self) -> bool:
        """Whether it is steps that are counted."""
        return "step" in self.every


@dataclass(frozen=True)
class InitFrom:
    """Start from the tensors of a safetensors `file`. `names` says which parameter each of them is: `torch` where they
    have the model's own names, `gpt2` where they have those of GPT-2's published weights, or a table with the file's
    name of each parameter that has another one there. `.T` behind a name takes the transposed tensor; null leaves the
    parameter as it was drawn.
    """

    file: Path
    names: Literal["torch", "gpt2"] | dict[str, str | None] = "torch"


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run. The fields are the keys of the YAML file; `load_config` makes one out of it.

    A component (layer, loss, data set, ...) is its class with keyword arguments: `ReLU`, or
    `Linear: {in_features: 2, out_features: 3}`. `model` lists the layers; `Sequential` and `Residual` among them take a
    list again. `new_model()` makes a model of them. `optimizer(model)` makes the optimizer, which needs the model's
    memory, and `new_optimizer(model)` one that keeps an average of the weights, if `ema` asks for one. `lr_scheduler`
    is asked for the lr once an epoch, or once a step where `lr_step` is "step"; `new_scheduler()` makes one for a run.
    `clip_grad_norm` is the largest norm that the gradient keeps. `clip_grad_value` is how far from 0 each number of the
    gradient may be. One of these two may be given.

    `compiled` lets numba compile the training step: the same formulas, several times as fast. `blas` says whose BLAS
    multiplies matrices in it, and `threads` on how many threads; where one is None, the fastest is measured. Long loops
    run on `loop_threads` threads, by default one for each free core; their bits don't depend on it.

    `slices` says into how many slices each batch is cut: None stands for the number of processes. `bitwise` adds up
    their gradients one by one, and `shard_optimizer` divides the optimizer's vectors among the processes. With
    `sync_batch_norm`, batch normalization takes the statistics of all slices.

    `tied` lists pairs of parameters that are one, by torch's names: `[[0.weight, 9.weight]]`. `init_from` has weights
    to start from; without it, `initializer` or the layers' defaults draw them.

    A class of the user's own is `module:Class`, from an installed package or from `layer_folder`, which is the config's
    own folder unless it is given; a resolved config names it, so that it finds the classes from anywhere.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    dtype: Literal["float32", "float64"] = "float32"
    data: Dataset
    batch_size: Annotated[int, Field(ge=1)]
    epochs: Annotated[int, Field(ge=1)]
    model: Layers
    tied: list[list[str]] = field(default_factory=list)
    layer_folder: Path | None = None
    initializer: Initializer | None = None
    init_from: InitFrom | None = None
    loss: Loss
    optimizer: partial[Optimizer]
    lr_scheduler: Scheduler | None = None
    lr_step: Literal["epoch", "step"] = "epoch"
    clip_grad_norm: Annotated[float, Field(gt=0)] | None = None
    clip_grad_value: Annotated[float, Field(gt=0)] | None = None
    slices: Annotated[int, Field(ge=1)] | None = None
    bitwise: bool = False
    shard_optimizer: bool = False
    sync_batch_norm: bool = False
    early_stopping: EarlyStopping | None = None
    ema: EMA | None = None
    gradient_check: GradientCheck = GradientCheck()
    checkpoint: Checkpointing = Checkpointing()
    compiled: bool = False
    blas: BlasName | None = None
    threads: Annotated[int, Field(ge=1)] | None = None
    loop_threads: Annotated[int, Field(ge=1)] | None = None
    #: Where each component and each key was written, by its path ("loss", "model.0"), but for the keys of components
    #: in lists. Empty for one made in Python.
    places: dict[str, Place] = field(default_factory=dict, init=False, repr=False, compare=False)

    def new_model(self) -> Sequential:
        """The model at its start, of copies of the layers: a config serves any number of runs. Raises ConfigError where
        the initializer doesn't fill a weight.
        """
        layers = copy.deepcopy(self.model)
        tied = [(first, other) for first, other in self.tied]
        try:
            return Sequential(*layers, seed=self.seed, dtype=self.dtype, initializer=self.initializer, tied=tied)
        except ConfigError as error:
            if (place := self.places.get("initializer")) is None:
                raise
            raise ConfigError(f"{place}: {error}") from error

    @property
    def clipping(self) -> Clipping | None:
        """How a step clips the gradient, if it does."""
        return clipping_of(self.clip_grad_norm, self.clip_grad_value)

    def with_slices(self, num_processes: int) -> RunConfig:
        """The config with the number of slices of a run of `num_processes` processes. Raises ConfigError where these
        wouldn't all get the same number, and where slices that wait for each other would be compiled, or would
        have a layer that doesn't wait for the others.
        """
        if (self.slices or num_processes) % num_processes:
            raise ConfigError(f"slices must be a multiple of {num_processes}, the processes, not {self.slices}")
        is_synchronized = self.sync_batch_norm and (self.slices or num_processes) > 1
        if self.compiled and is_synchronized:
            raise ConfigError("compiled must be false with sync_batch_norm: its slices wait for each other in a layer")
        if is_synchronized and (reason := not_synchronized(self.named_layers())):
            raise ConfigError(reason)
        return self._with(slices=self.slices or num_processes)

    def with_choice(self, choice: Choice) -> RunConfig:
        """The config with this BLAS and this number of threads."""
        return self._with(**choice._asdict())

    def _with(self, **changed: Any) -> RunConfig:
        config = dataclasses.replace(self, **changed)
        config.places.update(self.places)
        return config

    def new_optimizer(self, model: Sequential, **settings: Any) -> Optimizer:
        """The optimizer of a run, with these settings in the place of the config's."""
        if self.ema is None:
            return self.optimizer(model, **settings)
        optimizer_class: Any = self.optimizer.func
        return averaged(optimizer_class, self.ema.decay)(model, **self.optimizer.keywords | settings)

    def new_scheduler(self) -> Scheduler | None:
        """A copy of the schedule at its start: one that watches the validation loss remembers it."""
        return copy.deepcopy(self.lr_scheduler)

    def num_counts(self, num_examples: int) -> tuple[int, str]:
        """How many epochs or steps a schedule counts in a run on so many examples, and which of the two."""
        if self.lr_step == "epoch":
            return self.epochs, "epochs"
        return self.epochs * num_batches(num_examples, self.batch_size), "steps"

    def components(self) -> dict[str, Any]:
        """The components by their paths: the layers as in `named_layers`, the optimizer as what makes it."""
        others = {name: getattr(self, name) for name in ("data", "initializer", "loss", "optimizer", "lr_scheduler")}
        return {**self.named_layers(), **{name: other for name, other in others.items() if other is not None}}

    def named_layers(self) -> dict[str, Layer]:
        """The layers by their paths, a composite before those in it: `model.0`, `model.1.Sequential.0`. A Sequential
        isn't among them.
        """
        return {
            path: layer
            for index, item in enumerate(self.model)
            for path, layer in _named_layers(item, f"model.{index}")
            if not isinstance(layer, Sequential)
        }


def _named_layers(layer: Layer, path: str) -> Iterator[tuple[str, Layer]]:
    yield path, layer
    for name, child in layer.children().items():
        yield from _named_layers(child, f"{path}.{import_path(type(layer))}.{name}")
