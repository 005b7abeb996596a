"""Whether the layers, the loss and the data fit each other, by what the layers and the loss themselves say."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Padded, Shape, placeholder, size_of, unpadded
from nn_manual.config.batch_sizes import smaller_sizes
from nn_manual.config.guessed_shapes import GuessedShape, output_shape_of, shape_behind
from nn_manual.config.leaf import MAX_COUNT
from nn_manual.config.run_config import RunConfig
from nn_manual.config.stand_ins import Unfinished
from nn_manual.config.user_classes import import_path
from nn_manual.config.yaml_tree import Errors, Place
from nn_manual.data import Arrays, Dataset, Split
from nn_manual.errors import raise_if_nobodys_fault, text_of, words_of
from nn_manual.layers import Layer, LayerWithLengths
from nn_manual.layers.branches import Branches
from nn_manual.losses import Loss
from nn_manual.messages.text import counted
from nn_manual.model import Sequential
from nn_manual.model.contract import lost_setting
from nn_manual.model.ties import Ties
from nn_manual.registry import takes_layers


def check_sizes(config: RunConfig, split: Split) -> None:
    """Raises ConfigError where the model and the loss don't fit the loaded data, each misfit at its place."""
    errors = Errors()
    fit = _Fit(config.places, errors, config.batch_size)
    fit.may_have_more_classes = config.data.predicts_characters
    if isinstance(config.data, Arrays) and config.data.num_classes is None and not split.transform.has_named_classes:
        fit.advice_for_more = "; set num_classes of the data where some don't occur"
    fit.input(config.model[0], "model.0", split)
    fit.lengths(config, split)
    output_shape = fit.model(config.model, "model", (config.batch_size, *split.train.input.shape[1:]))
    if output_shape is not None:
        for part, examples in (("training part", split.train), ("validation part", split.validation)):
            fits = fit.loss(config.loss, config.model, output_shape, examples.target, split.num_classes)
            if not (fits and fit.counts(config.loss, examples.target, part)):
                break
    if config.slices not in (None, 1) and not errors.found:
        fit.slices(config.loss, split.train.target)
    for size, when in smaller_sizes(config, len(split.train.input)).items():
        if not errors.found:  # a layer may need more than one example
            smaller = _Fit(config.places, errors, size, when)
            smaller.model(config.model, "model", (size, *split.train.input.shape[1:]))
    errors.raise_if_any()


def find_misfits(arguments: Mapping[str, Any], places: Mapping[str, Place], errors: Errors) -> None:
    """Record what doesn't fit, as far as the config shows it without its data. `arguments` are those of RunConfig that
    have no errors.
    """
    if "model" not in arguments:
        return
    fit = _Fit(places, errors, arguments.get("batch_size", 1))
    fit.dtype = np.dtype(arguments.get("dtype", RunConfig.dtype))
    fit.ties(arguments["model"], arguments.get("tied", []))
    data: Dataset | None = arguments.get("data")
    known, num_classes = (None, None) if data is None else (data.example_shape, data.num_classes)
    shape = fit.model(arguments["model"], "model", None if known is None else (fit.batch_size, *known))
    loss: Loss | None = arguments.get("loss")
    if loss is not None and (reason := lost_setting(loss, fit.dtype)):
        fit.add("loss", reason)
    # Targets that don't belong to places may have any shape, and so may those of a file, or of an output with places:
    # only the data shows it.
    if shape and len(shape) == 2 and known is not None and num_classes is not None and loss and loss.has_places:
        fit.loss(loss, arguments["model"], shape, np.zeros(1, np.int64), num_classes)


class _Fit:
    """Follows a shape through the layers and into the loss."""

    def __init__(self, places: Mapping[str, Place], errors: Errors, batch_size: int, when: str = "") -> None:
        self.places, self.errors, self.batch_size, self.when = places, errors, batch_size, when
        #: Whether the next layer is the first, which gets the data.
        self.is_first = True
        #: Whether the model may put out values for classes that the data doesn't have: a model of characters fits every
        #: text that has as many different characters, or fewer.
        self.may_have_more_classes = False
        #: What to do where the model puts out values for more classes than the data has.
        self.advice_for_more = ""
        #: In which dtype the layers compute, where their settings are still to be looked at.
        self.dtype: np.dtype[Any] | None = None

    def input(self, first: Layer, path: str, split: Split) -> None:
        """Check that the first layer takes the data's numbers: indices, or real numbers."""
        if takes_layers(type(first)):
            name, inner = next(iter(first.children().items()))
            self.input(inner, f"{path}.{import_path(type(first))}.{name}", split)
            return
        dtype, label = split.train.input.dtype, type(first).__name__
        if isinstance(first.domain, range) != (dtype.kind == "i"):
            kind = "integers alone" if isinstance(first.domain, range) else "no integers"
            self.add(path, f"{label} takes {kind}, and the data's input is {dtype}")
            return
        for examples in split.train, split.validation:
            try:
                first.check_values(unpadded(examples.input))
            except ValueError as error:
                self.add(path, text_of(error))
                return

    def lengths(self, config: RunConfig, split: Split) -> None:
        """Record a layer that heeds lengths where the data has none."""
        if isinstance(split.train.input, Padded):
            return
        for path, layer in config.named_layers().items():
            if isinstance(layer, LayerWithLengths):
                self.add(path, f"{type(layer).__name__} needs the length of each sequence, and the data has none")
                return

    def model(self, layers: Sequence[Any], path: str, shape: Shape | None) -> Shape | None:
        """The shape after the last layer; None stands for a shape that isn't known.

        After a layer that doesn't fit, the shape that this layer would put out is followed, so that each misfit is
        reported. What isn't a layer has been reported before.
        """
        for index, layer in enumerate(layers):
            shape = self.layer(layer, f"{path}.{index}", shape)
        return shape

    def layer(self, layer: Any, path: str, shape: Shape | None) -> Shape | None:
        """The shape after one layer. Those in a Sequential or a Residual are followed one by one, branches each from
        the same shape.
        """
        if isinstance(layer, Unfinished):
            return self.model(layer, f"{path}.{layer.name}", shape)
        if not isinstance(layer, Layer):
            return None
        if takes_layers(type(layer)):
            num_errors = len(self.errors.found)
            after = self.model(list(layer.children().values()), f"{path}.{import_path(type(layer))}", shape)
            if len(self.errors.found) > num_errors or isinstance(layer, Sequential):
                return after
        if isinstance(layer, Branches) and not self.branches(layer, path, shape):
            return None
        is_first, self.is_first = self.is_first, False
        if isinstance(layer.domain, range) and not is_first:
            self.add(path, f"{type(layer).__name__} takes integers alone, and the layer before it makes none")
            return None
        if self.dtype is not None and (reason := lost_setting(layer, self.dtype)):
            self.add(path, reason)
        num_parameters = sum(map(size_of, layer.parameter_shapes().values()))
        self.largeness(path, f"{type(layer).__name__} has {num_parameters:,} parameters", num_parameters)
        if shape is not None:
            try:
                output_shape: Any = output_shape_of(layer, shape)
                if isinstance(output_shape, tuple):
                    size = size_of(output_shape[1:])
                    self.largeness(path, f"{type(layer).__name__} puts out {size:,} values for each example", size)
                    return output_shape
                if not isinstance(shape, GuessedShape):  # behind that, the shape may not be known
                    self.add(path, f"output_shape returned {output_shape!r}, not a tuple")
                return None
            except ValueError as error:
                self.add(path, text_of(error))
            except BaseException as error:  # a user's own layer may raise anything
                raise_if_nobodys_fault(error)
                self.add(path, f"output_shape raised {words_of(error)}")
                return None
        return shape_behind(layer, shape, self.batch_size)

    def branches(self, layer: Branches, path: str, shape: Shape | None) -> bool:
        """Whether the layers of each branch fit each other."""
        num_errors, is_first = len(self.errors.found), self.is_first
        for name, branch in layer.children().items():
            self.is_first = is_first
            self.layer(branch, f"{path}.{import_path(type(layer))}.{name}", shape)
        self.is_first = is_first
        return len(self.errors.found) == num_errors

    def largeness(self, path: str, what: str, size: int) -> None:
        """Refuse more numbers than any machine holds."""
        if size > MAX_COUNT:
            self.add(path, f"{what}, more than any machine holds")

    def ties(self, layers: Sequence[Any], pairs: Sequence[Any]) -> None:
        """Check that each pair of tied names is a pair of parameters with the same shape."""
        if not pairs or not all(isinstance(layer, Layer) for layer in layers):
            return
        shapes = Sequential.without_memory(*layers).parameter_shapes()
        for number in range(len(pairs)):
            try:
                Ties(shapes, pairs[: number + 1])
            except ValueError as error:
                self.add(f"tied.{number}", str(error))
                return

    def loss(
        self, loss: Loss, layers: Sequence[Any], output_shape: Shape, target: Array, num_classes: int | None
    ) -> bool:
        """Check that the loss takes `target`, and that the model puts out one value for each class, along axis 1.
        Returns whether both hold. The model may make several predictions for each example.
        """
        if num_classes is not None and self.may_have_more_classes:
            num_classes = max(num_classes, output_shape[1])
        shape = of_data = (len(target) * output_shape[0] // self.batch_size, *output_shape[1:])
        if num_classes is None:
            data, dtype = f"targets of shape {target.shape[1:]}", target.dtype
        else:
            data, dtype = counted(num_classes, "class", "classes"), np.dtype(float)
            of_data = (shape[0], num_classes, *shape[2:])
        if refusal := _refusal(loss.check_target, placeholder(of_data, dtype), target):
            # Where the model's own shape doesn't fit either, it is the one to be named.
            refusal = _refusal(loss.check_target, placeholder(shape, dtype), target) or refusal
            self.add("loss", f"{type(loss).__name__} doesn't fit data with {data}: {refusal}")
            return False
        if num_classes is not None and output_shape[1] != num_classes:
            message = f"the model puts out {counted(output_shape[1], 'value')}, but the data has {data}"
            advice = self.advice_for_more if output_shape[1] > num_classes else ""
            self.add(f"model.{len(layers) - 1}", message + advice)
            return False
        return True

    def counts(self, loss: Loss, target: Array, part: str) -> bool:
        """Check that some target of this part of the data counts. Returns whether one does."""
        if refusal := _refusal(loss.check_data, target, part):
            self.add("loss", refusal)
        return not refusal

    def slices(self, loss: Loss, target: Array) -> None:
        """Check that the loss of a batch can be computed from the losses of its slices."""
        if refusal := _refusal(loss.check_slices, target):
            self.add("loss", refusal)

    def add(self, path: str, message: str) -> None:
        """Record an error about what stands at `path`."""
        self.errors.add(self.places.get(path, Place(path)), message + self.when)


def _refusal(check: Callable[..., object], *arguments: Any) -> str:
    """What a check of the loss raises, in words; empty where it raises nothing."""
    try:
        check(*arguments)
    except (ValueError, TypeError) as error:
        return str(error) or type(error).__name__
    return ""
