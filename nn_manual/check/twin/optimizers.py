"""torch's versions of optimizers, and what a step of theirs starts from and ends at.

The file is long because torch's class and a class's own reference are two ways to move the same parameters.
"""

from __future__ import annotations

import copy
import inspect
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from nn_manual.arrays import Array, carve
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.twin.model import TORCH_DTYPES, reference_settings
from nn_manual.check.twin.optimizer_places import Place, places
from nn_manual.defaults import defines
from nn_manual.errors import NoReference, first_words_of, raise_if_nobodys_fault, words_of
from nn_manual.messages.users_lines import last_line
from nn_manual.optim import Optimizer
from nn_manual.optim.averaging import AVERAGE, decay_of
from nn_manual.optim.scheduler_base import Scheduled
from nn_manual.optim.scheduling import settings_of


class State(NamedTuple):
    """Where a step of an optimizer starts or ends: flat vectors, the parameters and those by name."""

    param: Array
    vectors: dict[str, Array]

    def map(self, change: Callable[[Array], Array]) -> State:
        """Every vector changed."""
        return State(change(self.param), {name: change(vector) for name, vector in self.vectors.items()})

    def part(self, where: slice) -> State:
        """A part of every vector: views."""
        return self.map(lambda vector: vector[where])

    @property
    def all(self) -> list[Array]:
        """In the order in which a mistake would spread: what the optimizer remembers, then what it makes of it, then
        the average of that.
        """
        own = [vector for name, vector in self.vectors.items() if name != AVERAGE]
        average = [vector for name, vector in self.vectors.items() if name == AVERAGE]
        return [*own, self.param, *average]


class UpdateInputs(NamedTuple):
    """What a step of an optimizer depends on. `scheduled` is what a schedule may move, of the optimizer and of its
    groups; `num_steps` were made before.
    """

    start: State
    grad: Array
    scheduled: Sequence[Scheduled]
    num_steps: int

    def part(self, where: slice, members: Sequence[int]) -> UpdateInputs:
        """Those of the step of a part of the parameters, which these members of the optimizer move."""
        scheduled = [self.scheduled[i] for i in members]
        return UpdateInputs(self.start.part(where), self.grad[where], scheduled, self.num_steps)


def state_of(optimizer: Optimizer) -> State:
    """Where the optimizer is now: views."""
    return State(optimizer.model.param_arena, optimizer.vectors)


def tensors_of(state: State, optimizer: Optimizer) -> list[Array]:
    """Each tensor of a state, in the plan's order."""
    shapes = optimizer.model.parameter_shapes()
    return [tensor for vector in state.all for tensor in vars(carve(vector, shapes)).values()]


class OptimizerTwin:
    """The reference of an optimizer with the same settings and groups, for up to `num_steps` steps at once that don't
    depend on each other: its own `reference`, if it has one, or else torch.optim's class of its name.

    Without groups one tensor of torch's does for all parameters of a step, if torch's class steps elementwise. `param`
    and `vectors` are numpy arrays over torch's memory, (num_steps, parameters), the latter by torch's names. Raises
    NoReference where torch has none.
    """

    @reference_settings()
    def __init__(self, optimizer: Optimizer, dtype: np.dtype[Any], num_steps: int = 1) -> None:
        shape = num_steps, optimizer.model.param_arena.size
        self._param = torch.zeros(shape, dtype=TORCH_DTYPES[dtype.name])
        self._vectors = {name: torch.zeros_like(self._param) for name in optimizer.vectors}
        self._places = list(places(optimizer))
        #: The parameters of each step: made when so many steps are moved at once, since each is several tensors.
        self._runs: list[list[_Run]] = []
        self._make_runs(1)
        self._decay = decay_of(optimizer)
        self._mover = (_OwnReference if defines(optimizer, "reference") else _TorchClass)(optimizer, self._runs[0])
        self.param: Array = self._param.numpy()
        self.vectors: dict[str, Array] = {name: vector.numpy() for name, vector in self._vectors.items()}

    @reference_settings()
    def _make_runs(self, num_steps: int) -> None:
        """Make the parameters of up to so many steps."""
        for i in range(len(self._runs), num_steps):
            vectors = {name: vector[i] for name, vector in self._vectors.items()}
            self._runs.append([_Run(*each, self._param[i], vectors) for each in enumerate(self._places)])

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
        if count > len(self._runs):
            self._make_runs(count)
        self._param[:count].copy_(torch.from_numpy(param))
        for name, values in vectors.items():
            self._vectors[name][:count].copy_(torch.from_numpy(values))
        all_grads = torch.from_numpy(grad)
        # torch has one lr for all parameters of a group, and makes its state for all of them or for none.
        for _, equal in itertools.groupby(range(count), lambda i: (tuple(scheduled[i]), num_steps[i] == 0)):
            steps = list(equal)
            for i in steps:
                for run in self._runs[i]:
                    run.num_steps, run.grad = num_steps[i], run.like_param(all_grads[i])
            runs = [run for i in steps for run in self._runs[i]]
            self._mover.step(runs, scheduled[steps[0]])
            if self._decay is not None:
                _move_averages(runs, self._decay)


class _Run:
    """A parameter of torch's that stands for one of ours, or for some; its number among those of a step, its state, its
    gradient, and how many steps were made before.
    """

    grad: torch.Tensor

    def __init__(self, number: int, place: Place, param: torch.Tensor, vectors: Mapping[str, torch.Tensor]) -> None:
        self.number, self.place = number, place
        self.param = self.like_param(param)
        self.vectors = {name: self.like_param(vector) for name, vector in vectors.items()}
        self.num_steps, self.step = 0, torch.tensor(0.0)

    def like_param(self, vector: torch.Tensor) -> torch.Tensor:
        """Its part of a vector of ours."""
        return vector[self.place.where].view(self.place.shape)


class _TorchClass:
    """torch.optim's class of the optimizer's name."""

    def __init__(self, optimizer: Optimizer, runs: Sequence[_Run]) -> None:
        name = type(optimizer).__name__
        torch_class = getattr(torch.optim, name, None)
        if torch_class is None:
            words = "the class must define reference(), the step of one parameter on torch tensors"
            raise NoReference(type(optimizer), f"torch.optim has no {name}: {words}")
        groups = [{**_options(member), "params": _of_group(runs, i)} for i, member in enumerate(optimizer.members)]
        # torch looks only at the ranges of what isn't a group's. Its fused kernel is its fastest.
        fused = {"fused": True} if "fused" in inspect.signature(torch_class).parameters else {}
        try:
            self._optimizer: torch.optim.Optimizer = torch_class(groups, **_options(optimizer), **fused)
        except Exception as error:  # torch's classes refuse in different ways
            raise_if_nobodys_fault(error)
            words = f"torch.optim.{torch_class.__name__} refuses the settings: {words_of(error)}"
            raise NoReference(type(optimizer), words) from error
        #: The state of a parameter before its first step, by its number: Adagrad makes it when it is made itself.
        self._initial = {
            run.number: {name: value.clone() for name, value in self._optimizer.state[run.param].items()}
            for run in runs
            if run.param in self._optimizer.state
        }

    def step(self, runs: Sequence[_Run], scheduled: Sequence[Scheduled]) -> None:
        """Move these, with these lrs and momenta."""
        for i, (group, (lr, momentum)) in enumerate(zip(self._optimizer.param_groups, scheduled, strict=True)):
            group["params"], group["lr"] = _of_group(runs, i), lr
            if momentum is not None and "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            elif momentum is not None:
                group["momentum"] = momentum
        state = self._optimizer.state
        state.clear()
        for run in runs:
            run.param.grad = run.grad
            if run.num_steps:
                run.step.fill_(run.num_steps)
                state[run.param] = {**run.vectors, "step": run.step}
            elif run.number in self._initial:
                state[run.param] = {name: value.clone() for name, value in self._initial[run.number].items()}
        self._optimizer.step()
        for run in runs:
            run.param.grad = None  # it is memory of ours
            for name, vector in run.vectors.items():
                made = state[run.param].get(name)  # none for a group whose settings don't need it
                if made is not None and made is not vector:  # at the first step
                    if made.shape != vector.shape:  # copy_ would spread it
                        raise self._of_other_shape(name, made, vector)
                    vector.copy_(made)

    def _of_other_shape(self, name: str, made: torch.Tensor, vector: torch.Tensor) -> CannotCompare:
        class_name, shapes = type(self._optimizer).__name__, [tuple(each.shape) for each in (made, vector)]
        text = f"torch.optim.{class_name} keeps {name} in shape {shapes[0]}, and ours is shaped as its parameter, "
        return CannotCompare(f"optimizer: {text}{shapes[1]}: give the class a `reference`")


class _OwnReference:
    """The optimizer's own `reference`."""

    def __init__(self, optimizer: Optimizer, runs: Sequence[_Run]) -> None:  # noqa: ARG002 - as _TorchClass
        self._members = [copy.copy(member) for member in optimizer.members]

    def step(self, runs: Sequence[_Run], scheduled: Sequence[Scheduled]) -> None:
        """Move these, with these lrs and momenta."""
        for member, values in zip(self._members, scheduled, strict=True):
            member.scheduled = values
        for run in runs:
            if not run.num_steps:
                for vector in run.vectors.values():
                    vector.zero_()
            moved, vectors = _moved_by_reference(self._members[run.place.group], run)
            run.param.copy_(moved)
            for name, made in vectors.items():
                run.vectors[name].copy_(made)


def _move_averages(runs: Sequence[_Run], decay: float) -> None:
    """The averages of the parameters after their step, as torch's AveragedModel moves them: at first, it copies."""
    move = torch.optim.swa_utils.get_ema_multi_avg_fn(decay)  # type: ignore[no-untyped-call]  # torch's own lack
    for run in runs:
        if run.num_steps:
            move([run.vectors[AVERAGE]], [run.param], run.num_steps)
        else:
            run.vectors[AVERAGE].copy_(run.param)


def _moved_by_reference(member: Optimizer, run: _Run) -> tuple[torch.Tensor, Mapping[str, torch.Tensor]]:
    """What the reference makes of copies. Raises CannotCompare where it raises, or returns something else."""
    label, shape = f"optimizer: {type(member).__name__}.reference", tuple(run.param.shape)
    vectors = {name: own.clone() for name, own in run.vectors.items()}
    try:
        returned: Any = member.reference(run.param.clone(), run.grad.clone(), vectors, run.num_steps + 1)
    except Exception as error:
        raise_if_nobodys_fault(error)
        code = getattr(inspect.unwrap(type(member).reference), "__code__", None)
        place = code and last_line(error, Path(code.co_filename).parent)
        raise CannotCompare(f"{label} raised {first_words_of(error)}{f' ({place})' if place else ''}") from error
    match returned:
        case (torch.Tensor() as moved, Mapping() as made):
            pass
        case _:
            raise CannotCompare(f"{label} must return a tensor, the parameter, and a dict of tensors, the vectors")
    names = ["the parameter", *run.vectors]
    for name, tensor in {"the parameter": moved, **made}.items():
        if name not in names or not isinstance(tensor, torch.Tensor) or tensor.shape != shape:
            raise CannotCompare(f"{label} must return {', '.join(names)}, tensors of shape {shape}; {name} isn't")
    return moved, made


def _of_group(runs: Sequence[_Run], group: int) -> list[torch.Tensor]:
    """The parameters of a group, by its number."""
    return [run.param for run in runs if run.place.group == group]


def _options(member: Optimizer) -> dict[str, Any]:
    """torch's keyword arguments. Each step brings its own lr."""
    options = settings_of(member)
    for name, value in options.items():
        if isinstance(getattr(type(member), name, None), bool):
            options[name] = bool(value)  # torch's fused kernels refuse 1
    if "betas" in options:
        options["betas"] = tuple(map(float, options["betas"]))  # torch refuses integers here
    return options


def stepped(twin: OptimizerTwin, inputs: UpdateInputs) -> State:
    """Where torch's step ends."""
    one = inputs.start.map(lambda vector: vector[np.newaxis])
    grad, scheduled, num_steps = inputs.grad[np.newaxis], [inputs.scheduled], [inputs.num_steps]
    twin.step(one.param, one.vectors, grad, scheduled=scheduled, num_steps=num_steps)
    return State(twin.param, twin.vectors).map(lambda vectors: vectors[0])
