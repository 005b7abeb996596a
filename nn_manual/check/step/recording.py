"""What the layers of a model receive and return while a step runs, seen from outside the Sequential.

The check must notice a Sequential that skips a layer, reverses two or drops a gradient. So it doesn't ask the
Sequential: it watches the layers' own methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.comparison import CannotCompare
from nn_manual.check.step.places import place_of_error, place_of_method
from nn_manual.check.step.plan import label_of
from nn_manual.layers.base import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential


class CallFailed(Exception):  # noqa: N818 - says what happened to whom; its cause says it better
    """A layer or a loss raised `error` while it was watched."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


class LayerCalls:
    """What one layer received and returned. Arrays are the very objects, not copies.

    `param_views` and `grad_views` are the model's own of the layer's parameters and gradients, by their names in the
    layer; `grads` are the gradients to compare: the views, or copies made when backward returns, where `copy_grads`
    says that they will be clipped in place. `failure` says what went wrong in a method that didn't return what it must.
    """

    def __init__(
        self, label: str, layer: Layer, params: dict[str, Array], grads: dict[str, Array], *, copy_grads: bool
    ) -> None:
        self.label, self.layer = label, layer
        self.param_views, self.grad_views, self.grads = params, grads, grads
        self._copy_grads = copy_grads
        self.clear()

    def clear(self) -> None:
        """Forget the last step, and find the layer's methods as they are now."""
        self._forward, self._backward = self.layer.forward, self.layer.backward
        self._backward_parameters = self.layer.backward_parameters
        self.num_forwards = 0
        self.num_backwards = 0
        self.input: Array | None = None
        self.output: Array | None = None
        self.saved: Any = None
        self.grad_output: Array | None = None
        self.grad_input: Array | None = None
        self.saved_again: Any = None
        self.failure: str | None = None
        self._running = False

    def forward(self, input: Array) -> tuple[Array, Any]:
        """The layer's forward, noted."""
        if self._running:
            return self._forward(input)
        self.num_forwards += 1
        self.input = input
        result = self._run("forward", self._forward, input)
        if not (isinstance(result, tuple | list) and len(result) == 2):
            self.failure = f"forward must return `output, saved`, it returned {_describe(result)}"
            self.failure += place_of_method(self.layer, "forward")
            raise CallFailed(TypeError(self.failure))
        self.output, self.saved = result
        return self.output, self.saved

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """The layer's backward, noted."""
        self.grad_input = self._noted("backward", self._backward, saved, grad_output)
        return self.grad_input

    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        """The layer's backward for its parameters alone, noted."""
        self._noted("backward_parameters", self._backward_parameters, saved, grad_output)

    def _noted(self, name: str, method: Callable[[Any, Array], Any], saved: Any, grad_output: Array) -> Any:
        if self._running:
            return method(saved, grad_output)
        self.saved_again, self.grad_output = saved, grad_output
        result = self._run(name, method, saved, grad_output)
        self.num_backwards += 1
        if self._copy_grads:
            self.grads = {name: view.copy() for name, view in self.grad_views.items()}
        return result

    def _run(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        """Run one of the layer's methods. A method may call another one, or itself. Such inner calls are not noted:
        they get what the layer passes on, not what the layer was given.
        """
        self._running = True
        try:
            return method(*arguments)
        except (Exception, SystemExit) as error:  # a user's own code may raise anything: the layer is named
            self.failure = f"{name} raised {type(error).__name__}: {error}{place_of_error(self.layer, error)}"
            raise CallFailed(error) from error
        finally:
            self._running = False

    def replaced(self) -> str:
        """Which of the layer's parameters and gradients no longer lies in the model's memory, as a sentence."""
        for kind, views in (("param", self.param_views), ("grad", self.grad_views)):
            own = vars(getattr(self.layer, kind))
            for name, view in views.items():
                if not (name in own and np.may_share_memory(view, own[name])):
                    return f"{kind}.{name} was replaced: write into it, {kind}.{name}[...] = ..."
        return ""

    def fault(self, method: str, text: str) -> CannotCompare:
        """What a method of the layer does wrong, as an error to raise."""
        return CannotCompare(f"{self.label}: {text}{place_of_method(self.layer, method)}")


class LossCalls:
    """What the loss received and returned."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.clear()

    def clear(self) -> None:
        """Forget the last step, and find the loss's methods as they are now."""
        self._forward, self._backward = self.loss.forward, self.loss.backward
        self._check_target = self.loss.check_target
        self.prediction: Array | None = None
        self.target: Array | None = None
        self.value: Any = None
        self.saved: Any = None
        self.grad_prediction: Array | None = None
        self.refused = False
        self.failure: str | None = None

    def check_target(self, prediction: Array, target: Array) -> None:
        """The loss's check of a target: a refusal is noted."""
        try:
            self._check_target(prediction, target)
        except Exception as error:  # a user's own code may raise anything: the loss is named
            self.refused = True
            raise CallFailed(error) from error

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        """The loss's forward, noted."""
        self.prediction, self.target = prediction, target
        try:
            self.value, self.saved = self._forward(prediction, target)
        except Exception as error:  # a user's own code may raise anything: the loss is named
            self.refused = True
            raise CallFailed(error) from error
        return self.value, self.saved

    def grad_target(self) -> Array:
        """The gradient with respect to the target, of a loss that has one."""
        grad_target: Array = self.loss.backward_target(self.saved)  # type: ignore[attr-defined]  # the plan has asked
        return grad_target

    def backward(self, saved: Any) -> Array:
        """The loss's backward, noted."""
        try:
            self.grad_prediction = self._backward(saved)
        except Exception as error:  # a user's own code may raise anything: the loss is named
            self.failure = f"backward raised {type(error).__name__}: {error}"
            raise CallFailed(error) from error
        return self.grad_prediction


class Recording:
    """Watches a model's layers and a loss while the `with` block runs, by standing in for their methods on the
    instances. `copy_grads` says that the step changes the parameters' gradients after backward.
    """

    def __init__(self, model: Sequential, loss: Loss, *, copy_grads: bool = False) -> None:
        params, grads = vars(model.param), vars(model.grad)
        self.layers = [
            LayerCalls(
                label_of(name, layer),
                layer,
                {parameter: params[f"{name}.{parameter}"] for parameter in layer.parameter_shapes()},
                {parameter: grads[f"{name}.{parameter}"] for parameter in layer.parameter_shapes()},
                copy_grads=copy_grads,
            )
            for name, layer in model.named_layers()
        ]
        self.loss = LossCalls(loss)
        self._watched: list[tuple[dict[str, Any], dict[str, Callable[..., Any]]]] = [
            (vars(calls.layer), _methods(calls, "forward", "backward", "backward_parameters")) for calls in self.layers
        ]
        self._watched.append((vars(loss), _methods(self.loss, "check_target", "forward", "backward")))
        #: What stood on the instances before: methods that somebody else put there.
        self._own: list[dict[str, Any]] = []

    def __enter__(self) -> Recording:
        for calls in self.layers:
            calls.clear()
        self.loss.clear()
        self._own = []
        for attributes, methods in self._watched:
            own = () if attributes.keys().isdisjoint(methods) else attributes.keys() & methods.keys()
            self._own.append({name: attributes[name] for name in own})
            attributes.update(methods)
        return self

    def __exit__(self, *exception: object) -> None:
        for (attributes, methods), own in zip(self._watched, self._own, strict=True):
            for name in methods:
                del attributes[name]
            attributes.update(own)


def _describe(result: object) -> str:
    if isinstance(result, np.ndarray):
        return f"an array of shape {result.shape} alone"
    if isinstance(result, tuple | list):
        return f"{len(result)} values"
    return "None" if result is None else f"one {type(result).__name__}"


def _methods(calls: object, *names: str) -> dict[str, Callable[..., Any]]:
    return {name: getattr(calls, name) for name in names}


def run_step(model: Sequential, loss: Loss, input: Array, target: Array, *, input_grad: bool) -> None:
    """Forward, loss and backward, as a training step does them; with the gradient of the input if it is asked for.
    Raises what the loss raises for a target that doesn't fit.
    """
    prediction, saved = model.forward(input)
    loss.check_target(prediction, target)
    grad_prediction = loss.backward(loss.forward(prediction, target)[1])
    if input_grad:
        model.backward(saved, grad_prediction)
    else:
        model.backward_parameters(saved, grad_prediction)
