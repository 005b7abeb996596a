"""Whether the optimizer's groups fit the model, the schedule fits lr_step, and settings of compiled steps apply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nn_manual.config.user_classes import import_path
from nn_manual.config.yaml_tree import Errors, Place
from nn_manual.layers import Layer
from nn_manual.model import Sequential
from nn_manual.optim import ReduceLROnPlateau
from nn_manual.optim.clipping import BOTH
from nn_manual.optim.groups import without_parameters


def find_update_misfits(arguments: Mapping[str, Any], places: Mapping[str, Place], errors: Errors) -> None:
    """Record what doesn't fit. `arguments` are those of RunConfig that have no errors."""
    if isinstance(arguments.get("lr_scheduler"), ReduceLROnPlateau) and arguments.get("lr_step") == "step":
        message = "ReduceLROnPlateau needs lr_step epoch: a validation loss comes once an epoch"
        errors.add(places["lr_scheduler"], message)
    if None not in (arguments.get("clip_grad_norm"), arguments.get("clip_grad_value")):
        errors.add(places["clip_grad_value"], BOTH)
    optimizer, model = arguments.get("optimizer"), arguments.get("model")
    if optimizer is None or model is None or not all(isinstance(item, Layer) for item in model):
        return
    others = [pair[1] for pair in arguments.get("tied", []) if len(pair) == 2]  # the second names
    shapes = Sequential.without_memory(*model).parameter_shapes()
    path = f"optimizer.{import_path(optimizer.func)}.groups"
    names = [name for name in shapes if name not in others]
    for index, reason in without_parameters(optimizer.keywords["groups"], names).items():
        errors.add(places.get(f"{path}.{index}", places["optimizer"]), reason)
    if misfit := optimizer.func.misfit(shapes):
        errors.add(places["optimizer"], misfit)
    if arguments.get("shard_optimizer") and (reason := optimizer.func.why_whole()):
        errors.add(places["shard_optimizer"], reason)


def find_compiling_misfits(arguments: Mapping[str, Any], places: Mapping[str, Place], errors: Errors) -> None:
    """Record settings of compiled steps where no steps are compiled."""
    for name in ("blas", "threads", "loop_threads"):
        if arguments.get(name) is not None and not arguments.get("compiled", False):
            errors.add(places[name], f"{name} is a setting of compiled steps: it needs compiled: true")
