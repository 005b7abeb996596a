"""A step, or a part of it, that runs on copies under a Tracer."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeAlias

import numpy as np

from nn_manual.arrays import Array
from nn_manual.errors import raise_if_nobodys_fault, words_of
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.model.memory import bind_buffers
from nn_manual.optim import Clipping, Optimizer
from nn_manual.optim.scheduler_base import Scheduled
from nn_manual.step.train_step import differentiate, update
from nn_manual.trace.outer_state import generators, globals_read_by
from nn_manual.trace.proving import Recorded, fingerprint
from nn_manual.trace.trace import CannotTrace
from nn_manual.trace.tracer import Tracer

#: See step.trace_step.
Observe: TypeAlias = Callable[
    [Sequential, Loss], AbstractContextManager[Callable[[Sequence[Any]], Mapping[str, Array]]]
]


class TracedStep:
    """A step that runs on copies of model, loss and optimizer, under a Tracer."""

    #: Makes the Tracer.
    tracer: Callable[..., Tracer] = Tracer

    def __init__(
        self,
        model: Sequential,
        loss: Loss,
        optimizer: Optimizer,
        clipping: Clipping | None,
        observe: Observe | None = None,
    ) -> None:
        try:
            self.model, self.loss, self.optimizer = copy.deepcopy((model, loss, optimizer))
        except BaseException as error:  # a user's layer may keep anything
            raise_if_nobodys_fault(error)
            raise CannotTrace(f"the model can't be copied: {words_of(error)}") from error
        self.clipping, self._observe = clipping, observe or _unobserved
        #: The large arrays that aren't copies, by their names in a trace: nobody writes to them.
        self.originals = {"param": model.param_arena, "grad": model.grad_arena, **optimizer.vectors}
        self.originals |= {f"{name}.grad of this use": grad for name, grad in model.ties.use_grads.items()}
        #: What the model saved in the current run, and the function that takes the wanted arrays from it.
        self._saved: list[Any] = []
        self._observed: Callable[[Sequence[Any]], Mapping[str, Array]] = _nothing_of

    def record(self, arrays: Mapping[str, Array], *, keeps_sums: bool = False) -> Recorded:
        """Run and trace the step on these arrays, which it writes to. A state that the copies of model, loss and
        optimizer keep themselves goes on from step to step.
        """
        with self.tracer(self._owners(), keeps_sums=keeps_sums) as tracer:
            try:
                with self._watched_by(tracer):
                    results = self._run({name: tracer.give(name, array) for name, array in arrays.items()})
                tracer.check()
            except BaseException as error:
                raise_if_nobodys_fault(error)
                raise tracer.blamed(error) from error
            results |= self._observed(self._saved)
            return Recorded(tracer.trace(results), tracer.origins, tracer.sums)

    def move_settings(self) -> None:
        """Change what a schedule may move: a step that reads the setting, not coefficients, would keep the first."""
        for member in self.optimizer.members:
            lr, momentum = member.scheduled
            member.scheduled = Scheduled(lr / 2, momentum and momentum / 2)

    @contextmanager
    def _watched_by(self, tracer: Tracer) -> Iterator[None]:
        """In this context the tracer sees what `forward` and `backward` of the layers return."""
        before = [(vars(layer), dict(vars(layer))) for _, layer in descendants(self.model)]
        for _, layer in descendants(self.model):
            vars(layer).update({name: tracer.watched(layer, name) for name in ("forward", "backward")})
        try:
            yield
        finally:
            for own, own_before in before:
                for name in ("forward", "backward"):
                    del own[name]
                    own.update({name: own_before[name]} if name in own_before else {})

    def plain(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Run the step on these arrays without a trace; returns them and the results."""
        return {**arrays, **{name: np.asarray(result) for name, result in self._run(arrays).items()}}

    def _run(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Make the step on these arrays; returns its results."""
        with np.errstate(all="ignore"):  # the step may never get these values
            self._bind_model(arrays)
            self._bind_optimizer(arrays)
            loss = self._differentiate(arrays, with_buffers=True)
            update(self.model, self.optimizer, self.clipping)
            return {"loss": loss}

    def _differentiate(self, arrays: Mapping[str, Array], *, with_buffers: bool) -> Any:
        """Forward, loss and backward; returns the loss."""
        model, loss = self.model, self.loss
        with self._observe(model, loss) as self._observed:
            value, self._saved = differentiate(model, loss, arrays["input"], arrays["target"])
            if with_buffers:
                model.update_buffers(self._saved)
        return value

    def state(self) -> dict[str, bytes]:
        """The state of layers, loss and optimizers, without the step's arrays, by name; the global variables that their
        own code reads, and the process's generators of random numbers.
        """
        parts = {**dict(descendants(self.model)), "loss": self.loss}
        parts |= {f"optimizer {i}": member for i, member in enumerate(self.optimizer.members) if i}
        own = {
            f"{label} ({type(part).__name__}).{name}": value
            for label, part in parts.items()
            for name, value in vars(part).items()
        }
        outside = {
            f"{label} ({type(part).__name__}): the global {name}": value
            for label, part in parts.items()
            for name, value in globals_read_by(type(part)).items()
        }
        return {name: fingerprint(value) for name, value in (own | outside | generators()).items()}

    def _owners(self) -> dict[int, str]:
        labels: dict[int, str] = {id(self.loss): "loss", id(self.optimizer): "optimizer"}
        labels |= {id(self.model): "model", id(self.model.ties): "model"}
        labels |= {id(member): "optimizer" for member in self.optimizer.members}
        return labels | {id(layer): f"{name} ({type(layer).__name__})" for name, layer in descendants(self.model)}

    def _bind_model(self, arrays: Mapping[str, Array]) -> None:
        """Let the copy of the model work on these arrays."""
        model = self.model
        uses = {name: arrays[f"{name}.grad of this use"] for name in model.ties.use_grads}
        model.bind(arrays["param"], arrays["grad"], uses)
        bind_buffers(model, arrays["buffer"], arrays["counters"])
        for name, layer in ("", model), *descendants(model):
            _bind_noise(layer, name, arrays)
            if isinstance(layer, Sequential):
                layer.leave_input_as_it_is()

    def _bind_optimizer(self, arrays: Mapping[str, Array]) -> None:
        """Let the copy of the optimizer work on these arrays."""
        optimizer = self.optimizer
        optimizer.vectors = {name: arrays[name] for name in optimizer.vectors}
        for i, part in enumerate(optimizer.parts):
            coefficients = {name: arrays[f"{i}.{name}"] for name in part.member.coefficients(1)}
            part.rounded_coefficients = functools.partial(_of_step, coefficients)  # type: ignore[method-assign]  # of a copy
            part.blocks = part.runs  # in one piece: the formulas are elementwise


class TracedSlice(TracedStep):
    """Forward, loss and backward."""

    def _run(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        with np.errstate(all="ignore"):
            self._bind_model(arrays)
            return {"loss": self._differentiate(arrays, with_buffers=False)}


class TracedUpdate(TracedStep):
    """Clipping and update."""

    def _run(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        with np.errstate(all="ignore"):
            self.model.bind(arrays["param"], arrays["grad"])
            self._bind_optimizer(arrays)
            update(self.model, self.optimizer, self.clipping)
            return {}


@contextmanager
def _unobserved(model: Sequential, loss: Loss) -> Iterator[Callable[[Sequence[Any]], Mapping[str, Array]]]:  # noqa: ARG001
    yield _nothing_of


def _nothing_of(saved: Sequence[Any]) -> Mapping[str, Array]:  # noqa: ARG001 - nobody wants anything
    return {}


def _of_step(coefficients: Mapping[str, Array], step: int) -> Mapping[str, Array]:  # noqa: ARG001 - traced for one
    return coefficients


def _bind_noise(layer: Layer, name: str, arrays: Mapping[str, Array]) -> None:
    if hasattr(layer, "noise"):
        for key in vars(layer.noise):
            setattr(layer.noise, key, arrays[f"{name}.noise.{key}"])
