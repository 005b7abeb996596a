"""The samples of torch's OptimizerInfo: the settings of a class of torch.optim."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.samples.verdicts import (
    DIFFERENT,
    DTYPES,
    EQUAL,
    MISSING,
    NO_FIT,
    REFUSED,
    Refused,
    Verdict,
    as_array,
    as_in_a_config,
    difference,
    refusing,
)
from nn_manual import Linear, Sequential
from nn_manual.check.compare.tolerances import UPDATE
from nn_manual.optim import Optimizer
from nn_manual.registry import components

#: They choose among implementations of torch.
NOT_OURS = {"foreach", "fused", "capturable", "differentiable"}
#: So many steps are compared: enough for RAdam, which begins its variance with the sixth.
NUM_STEPS = 10


@dataclass(frozen=True)
class OptimizerSample:
    """A class of torch.optim, and its settings."""

    optimizer_class: type[torch.optim.Optimizer]
    settings: Mapping[str, Any]
    dtype: str
    #: Why it isn't an optimizer of our contract; empty if it is.
    misfit: str = ""

    def __str__(self) -> str:
        settings = ", ".join(f"{name}={as_in_a_config(value)!r}" for name, value in self.settings.items())
        return f"{self.name}({settings})"

    @property
    def name(self) -> str:
        """The name of torch's class."""
        return self.optimizer_class.__name__

    def verdict(self) -> Verdict:
        """What ours makes of it. Both begin at the same parameters, and get the same gradients in each step.

        torch's Muon multiplies matrices in bfloat16, which keeps some 3 digits, and ours in the parameters' dtype. Here
        torch's does, too: so its formulas are compared, without that rounding.
        """
        if self.misfit:
            return Verdict(NO_FIT, self.misfit)
        before = torch.get_default_dtype()
        torch.set_default_dtype(DTYPES[self.dtype])  # that of the numbers that torch's ASGD and NAdam keep
        try:
            return self._compared()
        finally:
            torch.set_default_dtype(before)

    def _compared(self) -> Verdict:
        ours = components(Optimizer).get(self.name)
        if ours is None:
            return Verdict(MISSING)
        try:
            layers = (Linear(*sizes, bias=ours.num_dims is None) for sizes in ((3, 4), (4, 2)))
            model = Sequential(*layers, dtype=self.dtype)
            optimizer = self._made(ours, model)
        except Refused as message:
            return Verdict(REFUSED, str(message))
        of_ours = vars(model.param)
        parameters = {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in of_ours.items()}
        # With a tensor as lr, torch would round its products with other settings to float32.
        numbers: dict[str, Any] = {
            name: value.item() if torch.is_tensor(value) else value for name, value in self.settings.items()
        }
        torchs = self.optimizer_class(parameters.values(), **numbers)
        generator = np.random.default_rng(0)
        for step in range(1, NUM_STEPS + 1):
            for name, parameter in parameters.items():
                grad = generator.standard_normal(parameter.shape).astype(self.dtype)
                vars(model.grad)[name][...], parameter.grad = grad, torch.from_numpy(grad)
            optimizer.step()
            with patch.object(torch.Tensor, "bfloat16", torch.Tensor.clone):
                torchs.step()
            found = {name: as_array(parameter) for name, parameter in parameters.items()}
            if what := difference(of_ours, found, tolerance=step * UPDATE[self.dtype]):
                return Verdict(DIFFERENT, f"after {step} steps, {what}")
        return Verdict(EQUAL)

    def _made(self, ours: type[Any], model: Sequential) -> Any:
        """Our class with the same settings. Raises Refused."""
        known = {field.name for field in dataclasses.fields(ours)}
        settings = {name: as_in_a_config(value) for name, value in self.settings.items() if name not in NOT_OURS}
        of_torch = inspect.signature(self.optimizer_class).parameters
        defaults = {name: parameter.default for name, parameter in of_torch.items()}
        lr = settings.pop("lr", defaults["lr"])  # torch's defaults of it differ from class to class, and ours
        for name in sorted(settings.keys() - known):
            if settings[name] != as_in_a_config(defaults[name]):
                raise Refused(f"{ours.__name__} has no setting {name}")
            del settings[name]
        return refusing(ours, model, lr=as_in_a_config(lr), **settings)


def optimizer_samples(names: frozenset[str] = frozenset()) -> Iterator[OptimizerSample]:
    """torch's samples, of these classes of torch.optim alone if there are any."""
    from torch.testing._internal.common_optimizers import optim_db

    infos: list[Any] = optim_db
    for info, dtype in itertools.product(infos, DTYPES):
        if names and info.optim_cls.__name__ not in names:
            continue
        misfit = "it computes several gradients in a step" if info.step_requires_closure else ""
        misfit = "its gradients are sparse" if info.only_supports_sparse_grads else misfit
        for each in info.optim_inputs_func(device="cpu", dtype=DTYPES[dtype]):
            yield OptimizerSample(info.optim_cls, each.kwargs, dtype, misfit)
