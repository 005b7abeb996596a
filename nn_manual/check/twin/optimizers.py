"""torch's versions of optimizers, and what a step of theirs starts from and ends at."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array, carve, size_of
from nn_manual.check.twin.model import TORCH_DTYPES
from nn_manual.optim import Optimizer
from nn_manual.optim.scheduler_base import Scheduled


class State(NamedTuple):
    """Where a step of an optimizer starts or ends: flat vectors, the parameters and those by name."""

    param: Array
    vectors: dict[str, Array]

    def map(self, change: Callable[[Array], Array]) -> State:
        """Every vector changed."""
        return State(change(self.param), {name: change(vector) for name, vector in self.vectors.items()})

    @property
    def all(self) -> list[Array]:
        """In the order in which a mistake would spread: what the optimizer remembers, then what it makes of it."""
        return [*self.vectors.values(), self.param]


class UpdateInputs(NamedTuple):
    """What a step of an optimizer depends on. `scheduled` is what a schedule may move, of the optimizer and of its
    groups; `num_steps` were made before.
    """

    start: State
    grad: Array
    scheduled: Sequence[Scheduled]
    num_steps: int


def state_of(optimizer: Optimizer) -> State:
    """Where the optimizer is now: views."""
    return State(optimizer.model.param_arena, optimizer.vectors)


def tensors_of(state: State, optimizer: Optimizer) -> list[Array]:
    """Each tensor of a state, in the plan's order."""
    shapes = optimizer.model.parameter_shapes()
    return [tensor for vector in state.all for tensor in vars(carve(vector, shapes)).values()]


class OptimizerTwin:
    """torch.optim's class of the optimizer's name with the same settings and groups, for up to `num_steps` steps at
    once that don't depend on each other.

    Without groups one tensor of torch's does for all parameters of a step: the optimizers here are elementwise. `param`
    and `vectors` are numpy arrays over torch's memory, (num_steps, parameters), the latter by torch's names. Raises
    TypeError where torch has none.
    """

    def __init__(self, optimizer: Optimizer, dtype: np.dtype[Any], num_steps: int = 1) -> None:
        torch_class = getattr(torch.optim, type(optimizer).__name__, None)
        if torch_class is None:
            raise TypeError(f"torch.optim has no {type(optimizer).__name__}: there is nothing to check it against")
        shape = num_steps, optimizer.model.param_arena.size
        self._param = torch.zeros(shape, dtype=TORCH_DTYPES[dtype.name])
        self._vectors = {name: torch.zeros_like(self._param) for name in optimizer.vectors}
        #: The parameters of each step.
        self._runs: list[list[_Run]] = [[] for _ in range(num_steps)]
        groups: list[dict[str, Any]] = [{**_options(group), "params": []} for group in ({}, *optimizer.groups)]
        for place, number in _places(optimizer):
            for i, runs in enumerate(self._runs):
                run = _Run(place, self._param[i], {name: vector[i] for name, vector in self._vectors.items()})
                runs.append(run)
                groups[number]["params"].append(run.param)
        options = _options({name: getattr(optimizer, name) for name in optimizer.setting_names()})
        if "fused" in inspect.signature(torch_class).parameters:
            options["fused"] = True  # torch's fastest kernel
        self._optimizer: torch.optim.Optimizer = torch_class(groups, **options)
        self.param: Array = self._param.numpy()
        self.vectors: dict[str, Array] = {name: vector.numpy() for name, vector in self._vectors.items()}

    def step(
        self,
        param: Array,
        vectors: Mapping[str, Array],
        grad: Array,
        *,
        scheduled: Sequence[Sequence[Scheduled]],
        num_steps: Sequence[int],
    ) -> None:
        """As many steps as there are rows of `grad`, each from a copy of its row of `param` and `vectors`, after which
        `num_steps` steps were made, along its row of `grad`, with what a schedule may move of the optimizer and of each
        group.

        Before the first step torch has no state and makes its own.
        """
        count = len(grad)
        self._param[:count].copy_(torch.from_numpy(param))
        for name, values in vectors.items():
            self._vectors[name][:count].copy_(torch.from_numpy(values))
        all_grads = torch.from_numpy(grad)
        # torch has one lr for all parameters of a group, and makes its state for all of them or for none.
        for _, equal in itertools.groupby(range(count), lambda i: (tuple(scheduled[i]), num_steps[i] == 0)):
            steps = list(equal)
            self._step(steps, all_grads, scheduled[steps[0]], num_steps)

    def _step(
        self, steps: list[int], grads: torch.Tensor, scheduled: Sequence[Scheduled], num_steps: Sequence[int]
    ) -> None:
        """These steps, all with the same lrs and momenta."""
        for group, (lr, momentum) in zip(self._optimizer.param_groups, scheduled, strict=True):
            group["lr"] = lr
            if momentum is not None and "momentum" in group:
                group["momentum"] = momentum
            elif momentum is not None:
                group["betas"] = (momentum, *group["betas"][1:])
        state = self._optimizer.state
        state.clear()
        runs = [(i, run) for i in steps for run in self._runs[i]]
        for i, run in runs:
            run.param.grad = grads[i, run.place]
            if num_steps[i]:
                run.num_steps.fill_(num_steps[i])
                state[run.param] = {**run.vectors, "step": run.num_steps}
        self._optimizer.step()
        for _, run in runs:
            run.param.grad = None  # torch leaves those without one as they are
            for name, vector in run.vectors.items():
                made = state[run.param].get(name)  # none for a group whose settings don't need it
                if made is not None and made is not vector:  # at the first step
                    vector.copy_(made)


class _Run:
    """A parameter of torch's that stands for some of ours, and its state."""

    def __init__(self, place: slice, param: torch.Tensor, vectors: Mapping[str, torch.Tensor]) -> None:
        self.place, self.param = place, param[place]
        self.vectors = {name: vector[place] for name, vector in vectors.items()}
        self.num_steps = torch.tensor(0.0)


def _places(optimizer: Optimizer) -> Iterator[tuple[slice, int]]:
    """Where the parameters lie, and the number of the group, from 1, that each is in: found here anew, without the
    optimizer's own search, so that this is checked as well.
    """
    shapes = optimizer.model.parameter_shapes()
    ends = list(accumulate((size_of(shape) for shape in shapes.values()), initial=0))
    if not optimizer.groups:
        yield slice(0, ends[-1]), 0
        return
    for name, start, stop in zip(shapes, ends, ends[1:], strict=False):
        matching = [i for i, group in enumerate(optimizer.groups, 1) if fnmatchcase(name, group["parameters"])]
        yield slice(start, stop), min(matching, default=0)


def _options(settings: Mapping[str, Any]) -> dict[str, Any]:
    """torch's keyword arguments. Each step brings its own lr."""
    options = {name: value for name, value in settings.items() if name != "parameters"}
    if "betas" in options:
        options["betas"] = tuple(map(float, options["betas"]))  # torch refuses integers here
    return options


def stepped(twin: OptimizerTwin, inputs: UpdateInputs) -> State:
    """Where torch's step ends."""
    one = inputs.start.map(lambda vector: vector[np.newaxis])
    grad, scheduled, num_steps = inputs.grad[np.newaxis], [inputs.scheduled], [inputs.num_steps]
    twin.step(one.param, one.vectors, grad, scheduled=scheduled, num_steps=num_steps)
    return State(twin.param, twin.vectors).map(lambda vectors: vectors[0])
