"""What a config holds."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from nn_manual.config.tree import Place
from nn_manual.data import Dataset
from nn_manual.initializers import Initializer
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer, Scheduler

#: The layers of a model. A list among them is a Sequential: one that exists already has memory for its parameters.
Layers: TypeAlias = list[Layer | list[Any]]


def inner_layers(item: object) -> Layers | None:
    """The layers of a list or of a Sequential, which a config made in Python may hold, too; None of anything else."""
    return list(item.layers) if isinstance(item, Sequential) else item if isinstance(item, list) else None


@dataclass(frozen=True)
class EarlyStopping:
    """Stop after `patience` epochs in which the validation loss fell by no more than `min_delta`."""

    patience: Annotated[int, Field(ge=1)]
    min_delta: Annotated[float, Field(ge=0)] = 0.0


@dataclass(frozen=True)
class GradientCheck:
    """Compare every gradient with torch's at each `every`-th step; 0 turns it off."""

    every: Annotated[int, Field(ge=0)] = 1


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """One run. The fields are the keys of the YAML file; `load_config` makes one out of it.

    A component (layer, loss, data set, ...) is its class with keyword arguments: `ReLU`, or
    `Linear: {in_features: 2, out_features: 3}`. `model` lists the layers, a `Sequential` among them being a list
    again; `new_model()` makes a model of them. `optimizer(model)` makes the optimizer, which needs the model's memory.
    `lr_scheduler` is asked for the lr once an epoch, or once a step where `lr_step` is "step"; `new_scheduler()`
    makes one for a run. `clip_grad_norm` is the largest norm that the gradient keeps.

    A layer of the user's own is `module:Class`, from an installed package or from `layer_folder`, which is the config's
    own folder unless it is given; a resolved config names it, so that it finds the layers from anywhere.
    """

    seed: Annotated[int, Field(ge=0)] = 0
    dtype: Literal["float32", "float64"] = "float32"
    data: Dataset
    batch_size: Annotated[int, Field(ge=1)]
    epochs: Annotated[int, Field(ge=1)]
    model: Layers
    layer_folder: Path | None = None
    initializer: Initializer | None = None
    loss: Loss
    optimizer: partial[Optimizer]
    lr_scheduler: Scheduler | None = None
    lr_step: Literal["epoch", "step"] = "epoch"
    clip_grad_norm: Annotated[float, Field(gt=0)] | None = None
    early_stopping: EarlyStopping | None = None
    gradient_check: GradientCheck = GradientCheck()
    #: Where each component was written, by its path ("loss", "model.0"). Empty for one made in Python.
    places: dict[str, Place] = field(default_factory=dict, init=False, repr=False, compare=False)

    def new_model(self) -> Sequential:
        """The model at its start, of copies of the layers: a config serves any number of runs."""
        return Sequential(*_copies(self.model), seed=self.seed, dtype=self.dtype, initializer=self.initializer)

    def new_scheduler(self) -> Scheduler | None:
        """The schedule at its start: one that watches the validation loss remembers it."""
        return copy.deepcopy(self.lr_scheduler)

    def named_layers(self) -> dict[str, Layer]:
        """The layers in the order in which they run, by their paths: `model.0`, `model.1.Sequential.0`."""
        return dict(_named_layers(self.model, "model"))


def _copies(layers: Layers) -> list[Layer]:
    return [Sequential(*_copies(item)) if isinstance(item, list) else copy.deepcopy(item) for item in layers]


def _named_layers(layers: Layers, path: str) -> Iterator[tuple[str, Layer]]:
    for index, item in enumerate(layers):
        inner = inner_layers(item)
        if inner is not None:
            yield from _named_layers(inner, f"{path}.{index}.Sequential")
        elif isinstance(item, Layer):  # as it is: the type checker doesn't see it
            yield f"{path}.{index}", item
