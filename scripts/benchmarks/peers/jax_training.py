"""A training step of a net of ours in JAX: jitted by itself, and scanned over a whole epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from benchmarks.peers.jax_nets import Values, in_jax, jax_net
from benchmarks.peers.subjects import Subject
from benchmarks.translation import Translation
from nn_manual import SGD, Adam, AdamW, CrossEntropyLoss, Loss, Trainer
from nn_manual.optim import Optimizer
from nn_manual.optim.groups import group_of_each

#: The parameters, the optimizer's state for each, the buffers, and the number of the step.
State = tuple[Values, Values, Values, Any]
#: A training step: the new state, and the loss.
Step = Callable[[State, tuple[Any, Any]], tuple[State, Any]]

#: The new parameter and state, from the parameter, its gradient, the state and the number of the step.
Update = Callable[[Any, Any, Values, Any], tuple[Any, Values]]

#: torch's number in the denominator of the factor that clips.
CLIP_EPS = 1e-6


def jitted(subject: Subject) -> Callable[[], object]:
    """An epoch of calls of a compiled step; the new state takes the memory of the old one."""
    state, step = _training(subject.new_trainer())
    compiled = jax.jit(step, donate_argnums=0)
    batches = [(jnp.asarray(input), jnp.asarray(target)) for input, target in subject.batches()]

    def epoch() -> None:
        nonlocal state
        for batch in batches:
            state, loss = compiled(state, batch)
        loss.block_until_ready()

    return epoch


def scanned(subject: Subject) -> Callable[[], object]:
    """An epoch in one call."""
    state, step = _training(subject.new_trainer())
    compiled = jax.jit(lambda state, batches: lax.scan(step, state, batches), donate_argnums=0)
    stacked = tuple(map(jnp.asarray, subject.stacked()))

    def epoch() -> None:
        nonlocal state
        state, losses = compiled(state, stacked)
        losses.block_until_ready()

    return epoch


def _training(trainer: Trainer) -> tuple[State, Step]:
    model, optimizer, max_norm = trainer.model, trainer.optimizer, trainer.clip_grad_norm
    function, loss_function, tied = jax_net(model), in_jax(trainer.loss, LOSSES), model.ties.first_of
    update_of = _update_of_each(optimizer)
    params = {name: jnp.asarray(array.copy()) for name, array in vars(model.param).items() if name not in tied}
    buffers = {name: jnp.asarray(array.copy()) for name, array in vars(model.buffer).items()}
    vectors = VECTORS[type(optimizer)]
    kept = {name: {vector: jnp.zeros_like(param) for vector in vectors} for name, param in params.items()}

    def loss_of(params: Values, buffers: Values, input: Any, target: Any) -> tuple[Any, Values]:
        of_uses = params | {use: params[first] for use, first in tied.items()}
        prediction, changed = function(of_uses | buffers, input)
        return loss_function(prediction, target), changed

    def step(state: State, batch: tuple[Any, Any]) -> tuple[State, Any]:
        params, kept, buffers, number = state
        (loss, changed), grads = jax.value_and_grad(loss_of, has_aux=True)(params, buffers, *batch)
        if max_norm is not None:
            norm = jnp.sqrt(sum(jnp.vdot(grad, grad) for grad in grads.values()))
            factor = jnp.minimum(1, max_norm / (norm + CLIP_EPS))
            grads = {name: grad * factor for name, grad in grads.items()}
        moved = {name: update_of[name](params[name], grads[name], kept[name], number + 1) for name in params}
        params = {name: param for name, (param, _) in moved.items()}
        return (params, {name: own for name, (_, own) in moved.items()}, buffers | changed, number + 1), loss

    return (params, kept, buffers, jnp.int32(0)), step


def _update_of_each(optimizer: Optimizer) -> dict[str, Update]:
    """The update of each parameter, with the settings of its group."""
    names, updates = list(optimizer.model.parameter_shapes()), [in_jax(each, UPDATES) for each in optimizer.members]
    numbers = group_of_each(optimizer.groups, names)
    return {name: updates[number] for name, number in zip(names, numbers, strict=True)}


def _cross_entropy(prediction: Any, target: Any) -> Any:
    logarithms = jax.nn.log_softmax(prediction)
    return -jnp.take_along_axis(logarithms, target.reshape(-1, 1), 1).mean()


def _momentum(optimizer: SGD) -> Update:
    def update(param: Any, grad: Any, kept: Values, _: Any) -> tuple[Any, Values]:
        momentum = optimizer.momentum * kept["momentum"] + grad
        return param - optimizer.lr * momentum, {"momentum": momentum}

    return update


def _adam(optimizer: Adam | AdamW) -> Update:
    beta1, beta2 = optimizer.betas

    def update(param: Any, grad: Any, kept: Values, number: Any) -> tuple[Any, Values]:
        average = beta1 * kept["average"] + (1 - beta1) * grad
        square = beta2 * kept["average_square"] + (1 - beta2) * grad * grad
        direction = average / (1 - beta1**number) / (jnp.sqrt(square / (1 - beta2**number)) + optimizer.eps)
        if isinstance(optimizer, AdamW):
            param = param * (1 - optimizer.lr * optimizer.weight_decay)
        return param - optimizer.lr * direction, {"average": average, "average_square": square}

    return update


LOSSES: Mapping[type[Loss], Translation[Callable[[Any, Any], Any]]] = {
    CrossEntropyLoss: Translation(lambda _: _cross_entropy)
}
UPDATES: Mapping[type[Optimizer], Translation[Update]] = {
    SGD: Translation(_momentum, "model", "groups", "lr", "momentum"),
    Adam: Translation(_adam, "model", "groups", "lr", "betas", "eps"),
    AdamW: Translation(_adam, "model", "groups", "lr", "betas", "eps", "weight_decay"),
}
#: What an optimizer remembers of each parameter.
VECTORS = {SGD: ("momentum",), Adam: ("average", "average_square"), AdamW: ("average", "average_square")}
