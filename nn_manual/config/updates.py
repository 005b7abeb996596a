"""Whether the optimizer's groups fit the model, and the schedule the way it is asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from nn_manual.config.run_config import Layers, inner_layers
from nn_manual.config.tree import Errors, Place
from nn_manual.layers import Layer
from nn_manual.optim import ReduceLROnPlateau
from nn_manual.optim.groups import without_parameters


def find_update_misfits(arguments: Mapping[str, Any], places: Mapping[str, Place], errors: Errors) -> None:
    """Record what doesn't fit: `arguments` are RunConfig's, those that have no errors."""
    if isinstance(arguments.get("lr_scheduler"), ReduceLROnPlateau) and arguments.get("lr_step") == "step":
        message = "ReduceLROnPlateau needs lr_step epoch: a validation loss comes once an epoch"
        errors.add(places["lr_scheduler"], message)
    optimizer, model = arguments.get("optimizer"), arguments.get("model")
    if optimizer is None or model is None or not all(_is_whole(item) for item in model):
        return
    path = f"optimizer.{optimizer.func.__name__}.groups"
    for index, reason in without_parameters(optimizer.keywords["groups"], list(_parameter_names(model))).items():
        errors.add(places[f"{path}.{index}"], reason)


def _is_whole(item: Any) -> bool:
    """Whether neither it nor a layer in it had an error: then it would not be there, and nor would its parameters."""
    inner = inner_layers(item)
    return isinstance(item, Layer) if inner is None else all(map(_is_whole, inner))


def _parameter_names(layers: Layers) -> Iterator[str]:
    """The names that the parameters of a model of these layers will have."""
    for index, item in enumerate(layers):
        inner = inner_layers(item)
        names = item.parameter_shapes() if isinstance(item, Layer) else _parameter_names(inner or [])
        yield from (f"{index}.{name}" for name in names)
