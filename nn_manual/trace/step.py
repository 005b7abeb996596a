"""The trace of a whole training step: forward, loss, backward, buffers, clipping, update."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.layers.base import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer, clip_grad_norm
from nn_manual.trace.comparing import check_same
from nn_manual.trace.loops import folded
from nn_manual.trace.operation import CannotTrace, Trace
from nn_manual.trace.others import others
from nn_manual.trace.proving import Recorded, check_replay, check_state, fingerprint
from nn_manual.trace.tracer import Tracer


def trace_step(
    model: Sequential, loss: Loss, optimizer: Optimizer, input: Array, target: Array, max_norm: float | None = None
) -> Trace:
    """The step that the optimizer makes next, on a batch of these shapes and dtypes; `max_norm` bounds the norm of the
    gradient. Nothing moves: the step is made on copies, and again on other values. There it must do the same
    operations, and the replay of the trace must give, bit for bit, what the step gives without a trace.

    What the step gets, by name: "param", "input", "target"; each vector of the optimizer ("momentum_buffer");
    "buffer" and "counters", flat; "0.noise.mask"; the coefficients of the update, of each group ("0.step_size"). What
    it writes: "param", "grad", the vectors, "buffer" and "counters". Its result: "loss". The loops over time are loops.

    Raises CannotTrace where a formula branches on a value, uses an array that isn't the step's, or does in a step what
    it doesn't do in the next.
    """
    step = TracedStep(model, loss, optimizer, max_norm)
    arrays = given(step.model, step.optimizer, input, target)
    generator = np.random.default_rng(0)
    changed = {name: others(name, array, generator) for name, array in arrays.items()}
    recorded = step.record(arrays)
    state = step.state()
    again = step.record(changed)
    check_same(recorded.trace, again.trace, recorded.origins)
    check_state(state, step.state())
    trace = folded(recorded.trace, recorded.loops)
    check_replay(trace, changed, step.plain(changed), lambda: step.record(changed, keeps_sums=True))
    return trace


def given(model: Sequential, optimizer: Optimizer, input: Array, target: Array) -> dict[str, Array]:
    """What the step that the optimizer makes next gets, by name: the arrays themselves, where there are any."""
    if model._noise is not None:
        model._noise.bind(model, input.shape, model.dtype, seed=model.seed, step=model.num_steps)
    buffer, counters = flat_buffers(model)
    arrays = {"param": model.param_arena, "grad": model.grad_arena, "input": input, "target": target}
    arrays |= {"buffer": buffer, "counters": counters}
    arrays |= optimizer.vectors
    arrays |= {f"{name}.grad of this use": grad for name, grad in model.ties.use_grads.items()}
    for name, layer in model.descendants():
        if hasattr(layer, "noise"):
            arrays |= {f"{name}.noise.{key}": noise for key, noise in vars(layer.noise).items()}
    for i, part in enumerate(optimizer.parts):
        coefficients = part.rounded_coefficients(optimizer.num_steps + 1)
        arrays |= {f"{i}.{name}": coefficient.copy() for name, coefficient in coefficients.items()}
    return arrays


def flat_buffers(model: Sequential) -> tuple[Array, Array]:
    """The buffers of a model in its dtype and those that count, each kind as one vector."""
    buffers = vars(model.buffer)
    counts = {name: buffers[name] for name in model.counter_names()}
    values = {name: buffer for name, buffer in buffers.items() if name not in counts}
    return _flat(values, model.dtype), _flat(counts, np.dtype(np.int64))


class TracedStep:
    """A step of copies, made by a Tracer."""

    #: What makes the Tracer.
    tracer: Callable[..., Tracer] = Tracer

    def __init__(self, model: Sequential, loss: Loss, optimizer: Optimizer, max_norm: float | None) -> None:
        try:
            self.model, self.loss, self.optimizer = copy.deepcopy((model, loss, optimizer))
        except Exception as error:  # whatever a layer of the user's keeps
            raise CannotTrace(f"the model can't be copied: {type(error).__name__}: {error}") from error
        self.max_norm = max_norm

    def record(self, arrays: Mapping[str, Array], *, keeps_sums: bool = False) -> Recorded:
        """The step on these arrays. What the copies keep from step to step, by themselves, goes on."""
        with self.tracer(self._owners(), keeps_sums=keeps_sums) as tracer:
            try:
                with self._watched_by(tracer):
                    loss = self._run({name: tracer.give(name, array) for name, array in arrays.items()})
                tracer.check()
            except Exception as error:
                raise tracer.blamed(error) from error
            return Recorded(tracer.trace({"loss": loss}), tracer.loops, tracer.origins, tracer.sums)

    @contextmanager
    def _watched_by(self, tracer: Tracer) -> Iterator[None]:
        """In this context the tracer sees what the layers' methods return."""
        before = [(vars(layer), dict(vars(layer))) for _, layer in self.model.descendants()]
        for _, layer in self.model.descendants():
            vars(layer).update({name: tracer.watched(layer, name) for name in ("forward", "backward")})
        try:
            yield
        finally:
            for own, own_before in before:
                for name in ("forward", "backward"):
                    del own[name]
                    own.update({name: own_before[name]} if name in own_before else {})

    def plain(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """What the arrays and the loss are after the step, as it is without a trace."""
        copies = {name: array.copy() for name, array in arrays.items()}
        return copies | {"loss": np.asarray(self._run(copies))}

    def _run(self, arrays: Mapping[str, Array]) -> Any:
        """Make the step on these arrays; returns the loss."""
        model, loss = self.model, self.loss
        with np.errstate(all="ignore"):  # of values that the step may never get
            self._bind(arrays)
            prediction, saved = model.forward(arrays["input"])
            value, loss_saved = loss.forward(prediction, arrays["target"])
            model.backward_parameters(saved, loss.backward(loss_saved))
            model.update_buffers(saved)
            if self.max_norm is not None:
                clip_grad_norm(model.grad_arena, self.max_norm)
            self.optimizer.step()
            return value

    def state(self) -> dict[str, bytes]:
        """What the layers, the loss and the optimizers keep besides arrays, by name."""
        parts = {**dict(self.model.descendants()), "loss": self.loss}
        parts |= {f"optimizer {i}": member for i, member in enumerate(self.optimizer.members) if i}
        return {
            f"{label} ({type(part).__name__}).{name}": fingerprint(value)
            for label, part in parts.items()
            for name, value in vars(part).items()
        }

    def _owners(self) -> dict[int, str]:
        labels: dict[int, str] = {id(self.loss): "loss", id(self.optimizer): "optimizer"}
        labels |= {id(self.model): "model", id(self.model.ties): "model"}
        labels |= {id(member): "optimizer" for member in self.optimizer.members}
        return labels | {id(layer): f"{name} ({type(layer).__name__})" for name, layer in self.model.descendants()}

    def _bind(self, arrays: Mapping[str, Array]) -> None:
        """Let the copies work on these arrays."""
        model, optimizer = self.model, self.optimizer
        model.bind(arrays["param"], arrays["grad"])
        model.bind_buffers(arrays["buffer"], arrays["counters"])
        model._noise = None  # it has been drawn
        for name, layer in ("", model), *model.descendants():
            _bind_noise(layer, name, arrays)
            if isinstance(layer, Sequential):  # the input has been looked at
                layer._check_input = _nothing  # type: ignore[method-assign]  # of a copy
        optimizer.vectors = {name: arrays[name] for name in optimizer.vectors}
        for i, part in enumerate(optimizer.parts):
            coefficients = {name: arrays[f"{i}.{name}"] for name in part.member.coefficients(1)}
            part.rounded_coefficients = functools.partial(_of_step, coefficients)  # type: ignore[method-assign]  # of a copy
            part.blocks = part.runs  # in one piece: the formulas are elementwise


def _nothing(input: Array) -> None:
    """In the place of a look at the values."""


def _of_step(coefficients: Mapping[str, Array], step: int) -> Mapping[str, Array]:  # noqa: ARG001 - traced for one
    return coefficients


def _bind_noise(layer: Layer, name: str, arrays: Mapping[str, Array]) -> None:
    if hasattr(layer, "noise"):
        for key in vars(layer.noise):
            setattr(layer.noise, key, arrays[f"{name}.noise.{key}"])


def _flat(arrays: Mapping[str, Array], dtype: np.dtype[Any]) -> Array:
    return np.concatenate([np.ravel(array) for array in arrays.values()], dtype=dtype) if arrays else np.empty(0, dtype)
