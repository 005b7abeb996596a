"""The samples of torch's ModuleInfo: the arguments of a class of torch.nn, and the input of a module of it."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from benchmarks.samples.module_runs import SAMPLES, WITH_STATE, of_our_layer, of_our_loss, of_torch_layer, of_torch_loss
from benchmarks.samples.verdicts import (
    ADAPTED,
    DIFFERENT,
    DTYPES,
    EQUAL,
    MISSING,
    NO_FIT,
    REFUSED,
    NoFit,
    Refused,
    Results,
    Verdict,
    as_in_a_config,
    difference,
    refusing,
)
from benchmarks.samples.written_out import is_lazy, settings_of, with_sizes
from nn_manual.check.twin.losses import MultiLabelMarginLoss
from nn_manual.check.twin.model import reference_settings
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.registry import components

#: Settings that say where and how torch computes, and names that torch has given up: docs/torch.md. And random numbers,
#: which are given to ours, too.
NOT_OURS = {"device", "dtype", "inplace", "size_average", "reduce", SAMPLES}
#: Defaults of settings that stand in no signature: torch's recurrent classes take any keyword.
DEFAULTS = {"batch_first": False, "proj_size": 0}


@dataclass(frozen=True)
class Sample:
    """A class of torch.nn, its arguments by name, and the tensors that a module of it gets."""

    module_class: type[torch.nn.Module]
    arguments: Mapping[str, Any]
    inputs: tuple[Any, ...]
    dtype: str

    def __str__(self) -> str:
        arguments = ", ".join(f"{name}={_in_words(value)}" for name, value in self.arguments.items())
        return f"{self.name}({arguments}) of {', '.join(map(_in_words, self.inputs))}"

    @property
    def name(self) -> str:
        """The name of torch's class."""
        return self.module_class.__name__

    @property
    def is_loss(self) -> bool:
        """Whether torch's class is a loss."""
        return self.name.endswith("Loss")

    def verdict(self) -> Verdict:
        """What ours makes of it. If it is refused, the first of FORMS counts in which it is equal."""
        if is_lazy(self.module_class):
            plain = self._with_sizes()
            word = plain.verdict().word
            why = f"{self.name} isn't here: {plain.name}, whose sizes are written out"
            return Verdict(ADAPTED if word == EQUAL else word, why)
        verdict = self._as_it_is()
        if verdict.word == REFUSED:
            for form in FORMS:
                other = form(self)
                if other is not None and other._is_equal():
                    return Verdict(ADAPTED, verdict.why)
        return verdict

    def _with_sizes(self) -> Sample:
        """That of the class without Lazy."""
        plain, arguments = with_sizes(self.module_class, dict(self.arguments), self.inputs[0])
        return replace(self, module_class=plain, arguments=arguments)

    def _is_equal(self) -> bool:
        try:
            return self._as_it_is().word == EQUAL
        except (ValueError, RuntimeError, AssertionError):  # torch's: it takes no input of this form
            return False

    def _as_it_is(self) -> Verdict:
        with warnings.catch_warnings(), reference_settings():
            warnings.simplefilter("ignore")  # torch warns of samples that its tests draw on purpose
            try:
                self._check_contract()
                ours = components(Loss if self.is_loss else Layer).get(self.name)
                return Verdict(MISSING) if ours is None else self._compared(ours)
            except NoFit as reason:
                return Verdict(NO_FIT, str(reason))
            except Refused as message:
                return Verdict(REFUSED, str(message))

    def _check_contract(self) -> None:
        """Raise NoFit for what isn't one array and, of a loss, one target."""
        wanted = 1 + self.is_loss
        if len(self.inputs) != wanted or not all(map(torch.is_tensor, self.inputs)):
            raise NoFit(f"it takes more than {'a prediction and a target' if self.is_loss else 'one array'}")
        if self.arguments.get("reduction") == "none":
            raise NoFit("reduction is none: the loss is no number")
        if self.name == "LinearCrossEntropyLoss":
            raise NoFit("a loss that has parameters")

    def _compared(self, ours: type[Any]) -> Verdict:
        module = self.module_class(**self.arguments).to(DTYPES[self.dtype])
        _fill(module)
        if self.is_loss:
            torchs, upstream = of_torch_loss(module, self.inputs), 0.0
            _check_finite(torchs)
            found = of_our_loss(self._made(ours), self.inputs)
            torchs = {name: array for name, array in torchs.items() if name in found or name != "grad_target"}
        else:
            torchs, upstream = of_torch_layer(module, self.inputs[0])
            _check_finite(torchs)
            found = of_our_layer(module, self._made(ours), self.inputs[0])
        what = difference(found, torchs, upstream)
        return Verdict(DIFFERENT, what) if what else Verdict(EQUAL)

    def _made(self, ours: type[Any]) -> Any:
        """Our class with the same settings. Raises Refused."""
        known = {field.name for field in dataclasses.fields(ours)}
        parameters = inspect.signature(self.module_class).parameters
        defaults = DEFAULTS | {name: as_in_a_config(parameter.default) for name, parameter in parameters.items()}
        given = {name: value for name, value in self.arguments.items() if name not in NOT_OURS}
        settings = {name: self._layer_or_value(value) for name, value in given.items()}
        if "batch_first" in defaults.keys() & parameters.keys() - known and not settings.pop("batch_first", False):
            raise Refused(f"{ours.__name__} takes the batch first")
        for name in sorted(settings.keys() - known):
            if name not in defaults or settings[name] != defaults[name]:
                raise Refused(f"{ours.__name__} has no setting {name}")
            del settings[name]
        return refusing(ours, **settings)

    def _layer_or_value(self, value: Any) -> Any:
        """A setting as a config has it; a layer of torch's as ours. Raises Refused."""
        if not isinstance(value, torch.nn.TransformerEncoderLayer):
            return as_in_a_config(value)
        inside = Sample(type(value), settings_of(value), self.inputs, self.dtype)
        return inside._made(components(Layer)[inside.name])


def _in_a_batch(sample: Sample) -> Sample | None:
    """A single example as a batch of one."""
    is_time_first = sample.name in WITH_STATE and not sample.arguments.get("batch_first")
    if any(is_time_first > each.ndim for each in sample.inputs):
        return None
    return replace(sample, inputs=tuple(each.detach().unsqueeze(int(is_time_first)) for each in sample.inputs))


def _batch_first(sample: Sample) -> Sample | None:
    """Sequences with the batch first, a single one as a batch of one."""
    layer = sample.arguments.get("encoder_layer")  # it has the setting, and not the encoder
    settings = sample.arguments if layer is None else settings_of(layer)
    if layer is None and "batch_first" not in inspect.signature(sample.module_class).parameters:
        return None
    (input,) = (each.detach() for each in sample.inputs)
    is_time_first = input.ndim == 3 and not settings.get("batch_first")
    moved = input.swapaxes(0, 1) if is_time_first else input.unsqueeze(0) if input.ndim == 2 else input
    settings = {**settings, "batch_first": True}
    if layer is not None:
        settings = {**sample.arguments, "encoder_layer": type(layer)(**settings)}
    return replace(sample, arguments=settings, inputs=(moved,))


def _without_signs(sample: Sample) -> Sample | None:
    """The weights of classes or outputs without their signs."""
    weights = {name: value.abs() for name, value in sample.arguments.items() if torch.is_tensor(value)}
    return replace(sample, arguments={**sample.arguments, **weights}) if weights else None


def _weight_of_each_output(sample: Sample) -> Sample | None:
    """A weight without dimensions as one for each output, without its sign; and a number without them as a batch of one
    output.
    """
    weights = {name: each for name, each in sample.arguments.items() if torch.is_tensor(each) and not each.ndim}
    if not (sample.is_loss and weights):
        return None
    inputs = tuple(each.detach() if each.ndim else each.detach().reshape(1, 1) for each in sample.inputs)
    weights = {name: each.abs().repeat(inputs[0].shape[-1]) for name, each in weights.items()}
    return replace(sample, arguments={**sample.arguments, **weights}, inputs=inputs)


def _of_numbers(sample: Sample) -> Sample | None:
    """Labels as numbers of the prediction's dtype, and the weights without their signs."""
    if not sample.is_loss or sample.inputs[1].is_floating_point():
        return None
    prediction, target = sample.inputs
    return replace(_without_signs(sample) or sample, inputs=(prediction, target.to(prediction.dtype)))


def _without_lists(sample: Sample) -> Sample | None:
    """A list of classes that ends with -1 as 1 for each of them, and 0 for the others: of these, torch's class gets its
    list again.
    """
    if sample.name != "MultiLabelMarginLoss":
        return None
    prediction, target = sample.inputs
    is_listed = (target >= 0).cumprod(-1).bool()
    labels = torch.zeros_like(prediction).scatter_add_(-1, target.clamp(min=0), is_listed.to(prediction.dtype))
    return replace(sample, module_class=MultiLabelMarginLoss, inputs=(prediction, labels.detach()))


#: What a sample becomes where ours refuses it as it is: None where that is nothing else.
FORMS: tuple[Callable[[Sample], Sample | None], ...] = (
    _without_signs,
    _weight_of_each_output,
    _of_numbers,
    _without_lists,
    _in_a_batch,
    _batch_first,
)


def samples(names: frozenset[str] = frozenset()) -> Iterator[Sample]:
    """torch's samples, of these classes of torch.nn alone if there are any: in each run the same. It takes seconds to
    begin, and leaves torch with other settings.
    """
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        if names and info.module_cls.__name__ not in names:
            continue
        for dtype, of_torch in DTYPES.items():
            torch.manual_seed(0)
            made = info.module_inputs_func(info, device="cpu", dtype=of_torch, requires_grad=True, training=True)
            for each in made:
                positional = inspect.signature(info.module_cls).parameters
                by_name = dict(zip(positional, each.constructor_input.args, strict=False))
                given = each.forward_input
                inputs = *given.args, *(value for value in given.kwargs.values() if value is not None)
                yield Sample(info.module_cls, by_name | each.constructor_input.kwargs, inputs, dtype)


def _check_finite(torchs: Results) -> None:
    """Raise NoFit if a number of torch's isn't finite: where it is NaN, many formulas agree."""
    if not all(np.isfinite(array).all() for array in torchs.values()):
        raise NoFit("torch's own value, or a gradient of it, isn't finite")


def _fill(module: torch.nn.Module) -> None:
    """Random numbers for parameters that are one number everywhere: ones or zeros would hide a formula that lacks them.
    """
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.numel() and bool((parameter == parameter.flatten()[0]).all()):
                parameter.add_(torch.rand_like(parameter) - 0.5)


def _in_words(value: Any) -> str:
    if isinstance(value, torch.nn.TransformerEncoderLayer):
        return f"{type(value).__name__}({', '.join(f'{key}={each!r}' for key, each in settings_of(value).items())})"
    return f"{str(value.dtype).removeprefix('torch.')} {tuple(value.shape)}" if torch.is_tensor(value) else repr(value)
