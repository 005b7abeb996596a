"""The contract that every optimizer keeps."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape, as_python
from nn_manual.defaults import default
from nn_manual.model import Sequential
from nn_manual.optim.checked_settings import check_new, check_settings_of
from nn_manual.optim.groups import PATTERN, Group, Groups, runs, without_parameters
from nn_manual.optim.parts import Run
from nn_manual.optim.scheduler_base import Scheduled


@dataclass(eq=False)
class Optimizer(ABC):
    """Moves the parameters of a model along its gradients.

    A concrete optimizer is a dataclass. Its fields, but for `model` and `groups`, are its settings: keyword arguments
    of the torch.optim class of the same name, and the keys in YAML. Its docstring states the formulas. `coefficients`
    has the numbers that lr, the settings and the number of the step give; `move` is the formulas.

    `groups` gives parameters settings of their own. Each of its entries has settings, and a pattern of parameter names,
    like a shell's pattern of file names. For each parameter, the first entry whose pattern matches counts:

        SGD(model, lr=0.1, weight_decay=1e-4, groups=[{"parameters": "*.bias", "weight_decay": 0.0}])

    `members` are the optimizer itself, which has the settings of all other parameters, and a copy of it for each group,
    with the group's settings. Each has its own `lr` and its own momentum, which may be set between steps.

    What an optimizer remembers from step to step is in flat vectors, laid out as the model's `param_arena`. `vectors`
    holds them under the names that they have in torch's state ("momentum_buffer"). Before the first step they are
    zeros, and `num_steps` is 0.

    Raises ValueError for settings that are out of range or of another type, also where one is set between steps, for a
    group without parameters, and for a group that would need vectors which the optimizer doesn't keep. Raises TypeError
    for a model that is no Sequential, and for groups that aren't a list of dicts.
    """

    model: Sequential
    lr: float = 1e-3
    groups: Groups = field(default_factory=list, kw_only=True)

    #: Whether each element moves by itself. If not, `move` gets one parameter at a time, in its shape.
    is_elementwise: ClassVar[bool] = True
    #: How many dimensions each parameter must have; None for any.
    num_dims: ClassVar[int | None] = None
    #: From this step on, the coefficients stay the same as long as the settings do: by default, never. A class that
    #: defines `coefficients` has the default again, unless it defines this, too.
    settles_at: ClassVar[float] = math.inf
    _is_made = False

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if "coefficients" in vars(cls) and "settles_at" not in vars(cls):
            cls.settles_at = math.inf

    def __setattr__(self, name: str, value: Any) -> None:
        """Settings become Python's numbers: `coefficients` computes with them in float64."""
        value = as_python(value)
        if self._is_made and name in self.__dataclass_fields__:
            check_settings_of(self._with({name: value}))  # a copy: so nothing has changed where it is refused
        super().__setattr__(name, value)

    def __post_init__(self) -> None:
        check_new(self)
        members = [self, *(self._member(index, group) for index, group in enumerate(self.groups))]
        shapes, dtype = self.model.parameter_shapes(), self.model.dtype
        for reason in without_parameters(self.groups, list(shapes)).values():
            raise ValueError(reason)
        if reason := self.misfit(shapes):
            raise ValueError(reason)
        self.num_steps = 0
        # np.zeros takes no memory until it is written to, np.zeros_like does: if several processes divide the vectors,
        # each writes to its own pieces only.
        size = self.model.param_arena.size
        self.vectors = {name: np.zeros(size, dtype) for name in self.vector_names()}
        places = runs(self.groups, shapes, apart=not self.is_elementwise)
        self.parts = [Part(member, its_runs, dtype) for member, its_runs in zip(members, places, strict=True)]
        for member in members:
            member._is_made = True

    @classmethod
    def setting_names(cls) -> list[str]:
        """The names of the settings, in torch's order."""
        return [item.name for item in fields(cls) if item.name not in ("model", "groups")]

    @classmethod
    def examples(cls) -> list[dict[str, Any]]:
        """Settings, as keyword arguments, without lr: the catalogue checks the class with each, and has lrs of its own.
        Together they use each line of the formula, and each pair of lines that could interfere.
        """
        return [{}]

    @classmethod
    def misfit(cls, shapes: Mapping[str, Shape]) -> str:
        """Why the optimizer doesn't move parameters of these shapes, in words; empty where it does."""
        for name, shape in shapes.items():
            if cls.num_dims not in (None, len(shape)):
                return f"{cls.__name__} moves parameters with {cls.num_dims} dimensions, and {name} has {len(shape)}"
        return ""

    @classmethod
    def why_whole(cls) -> str:
        """Why the vectors can't be divided among processes, in words; empty where they can."""
        return "" if cls.is_elementwise else f"shard_optimizer must be false: {cls.__name__} needs whole parameters"

    @property
    def members(self) -> list[Optimizer]:
        """The optimizer itself, and its copy with the settings of each group."""
        return [part.member for part in self.parts]

    @property
    def scheduled(self) -> Scheduled:
        """What a schedule may move: `lr`, and the first of `betas`, or else the setting `momentum`."""
        own = vars(self)
        betas = own.get("betas")
        return Scheduled(own["lr"], own.get("momentum") if betas is None else betas[0])

    @scheduled.setter
    def scheduled(self, values: Scheduled) -> None:
        own = vars(self)
        own["lr"] = as_python(values.lr)
        if "betas" in own:
            own["betas"] = (values.momentum, *own["betas"][1:])
        elif "momentum" in own:
            own["momentum"] = values.momentum

    @abstractmethod
    def check_settings(self) -> None:
        """Raise ValueError for a setting that is out of range. The message begins with its name."""

    @abstractmethod
    def vector_names(self) -> list[str]:
        """The names of the state vectors that these settings need."""

    @abstractmethod
    def coefficients(self, step: int) -> dict[str, float]:
        """The numbers in the formulas of one step, in float64; steps are counted from 1."""

    @abstractmethod
    def move(
        self, param: Array, grad: Array, vectors: Mapping[str, Array], coefficients: Mapping[str, Array]
    ) -> None:
        """One step of `param` and of `vectors`, in place; `grad` can't be written to. All arrays have one shape:
        with one dimension, or that of a parameter where the formulas aren't elementwise.

        The coefficients are rounded once, to the parameters' dtype, and have no dimensions. The formulas may branch on
        settings and shapes, never on the value of an array.
        """

    @default
    def reference(
        self, param: Any, grad: Any, vectors: Mapping[str, Any], step: int
    ) -> tuple[Any, dict[str, Any]]:
        """The step of one parameter on torch tensors, for an optimizer that torch.optim doesn't have, or has as another
        function: the parameter and the vectors after it. Steps are counted from 1. By default, the reference is
        torch.optim's class of the optimizer's name.
        """
        raise NotImplementedError

    def step(self) -> None:
        """Move the model's parameters once, along its gradients: one block that fits into the cache after the other."""
        param, grad = self.model.param_arena, self.model.grad_arena.view()
        grad.setflags(write=False)  # a gradient that `move` changes would be called a layer's mistake
        for part in self.parts:
            coefficients = part.rounded_coefficients(self.num_steps + 1)
            for block, own, shape in part.blocks:
                vectors = {name: vector[own] for name, vector in self.vectors.items()}
                if shape is None:
                    part.member.move(param[block], grad[block], vectors, coefficients)
                    continue
                matrices = {name: vector.reshape(shape) for name, vector in vectors.items()}
                part.member.move(param[block].reshape(shape), grad[block].reshape(shape), matrices, coefficients)
        self.num_steps += 1

    def state(self) -> dict[str, Array]:
        """`num_steps`, an int64 scalar, and the vectors by name. They are views: the caller may need a copy."""
        return {"num_steps": np.array(self.num_steps), **self.vectors}

    def load_state(self, state: Mapping[str, Array]) -> None:
        """Copy in what `state` returned. Raises ValueError, before anything is changed, for a missing or unexpected
        name and for a shape that doesn't fit.
        """
        own = self.state()
        for name in sorted(own.keys() ^ state.keys()):
            raise ValueError(f"{'missing' if name in own else 'unexpected'} {name!r} in the optimizer's state")
        for name, value in state.items():
            if value.shape != own[name].shape:
                raise ValueError(f"{name!r} has shape {own[name].shape}, the state's has {value.shape}")
        self.num_steps = int(state["num_steps"])
        for name, vector in self.vectors.items():
            vector[...] = state[name]

    def _member(self, index: int, group: Group) -> Optimizer:
        """A copy with a group's settings, without groups. Messages about one begin with groups.<index>.<name>."""
        own = {name: value for name, value in group.items() if name != PATTERN}
        for name in own:
            if name not in self.setting_names():
                raise ValueError(f"groups.{index}.{name} is no setting of {type(self).__name__}")
        member = self._with({**own, "groups": ()})
        try:
            check_settings_of(member)
        except ValueError as error:
            raise ValueError(f"groups.{index}.{error}") from None
        for name, value in own.items():
            for vector in sorted({*self._with({name: value}).vector_names()} - {*self.vector_names()}):
                raise ValueError(
                    f"groups.{index}.{name} must not be {value} if {type(self).__name__} itself has {name} "
                    f"{getattr(self, name)}, and so no {vector}"
                )
        return member

    def _with(self, settings: Mapping[str, Any]) -> Optimizer:
        member = copy.copy(self)
        vars(member).update({name: as_python(value) for name, value in settings.items()})
        return member


class Part:
    """The parameters that move with the settings of one member. `runs` are their places, and `blocks` are pieces of the
    runs that fit into the processor's cache, where the runs may be cut.
    """

    def __init__(self, member: Optimizer, its_runs: list[Run], dtype: np.dtype[Any]) -> None:
        self.member = member
        self.take(its_runs)
        # Kept, and filled in each step: to make an array without dimensions takes 0.25 us, to fill it 0.05 us, and a
        # product with it takes 0.4 us less than a product with a Python float.
        self._coefficients = {name: np.array(0, dtype) for name in member.coefficients(1)}

    def take(self, its_runs: list[Run]) -> None:
        """From now on, move these runs."""
        self.runs = its_runs
        self.blocks = [run.piece(block) for run in its_runs for block in run.pieces()]

    def rounded_coefficients(self, step: int) -> Mapping[str, Array]:
        """The member's coefficients of a step, in the parameters' dtype."""
        for name, value in self.member.coefficients(step).items():
            self._coefficients[name][()] = value
        return self._coefficients
