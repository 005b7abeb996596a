"""What the layers of a model receive and return while a step runs, seen from outside the Sequential.

The check must notice a Sequential that skips a layer, reverses two or drops a gradient. So it doesn't ask the
Sequential: it watches the layers' own methods.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nn_manual.arrays import Array
from nn_manual.layers.base import Layer
from nn_manual.losses import Loss


class LayerCalls:
    """What one layer received and returned. Arrays are the very objects, not copies."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer
        self.clear()

    def clear(self) -> None:
        """Forget the last step."""
        self.num_forwards = 0
        self.num_backwards = 0
        self.input: Array | None = None
        self.output: Array | None = None
        self.saved: Any = None
        self.grad_output: Array | None = None
        self.grad_input: Array | None = None
        self.saved_again: Any = None

    def forward(self, input: Array) -> tuple[Array, Any]:
        """The layer's forward, noted."""
        output, saved = type(self.layer).forward(self.layer, input)
        self.num_forwards += 1
        self.input, self.output, self.saved = input, output, saved
        return output, saved

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """The layer's backward, noted."""
        num_backwards = self.num_backwards
        grad_input = type(self.layer).backward(self.layer, saved, grad_output)
        # A backward may call backward_parameters, which is noted too: it is one backward all the same.
        self.num_backwards = num_backwards + 1
        self.saved_again, self.grad_output, self.grad_input = saved, grad_output, grad_input
        return grad_input

    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        """The layer's backward for its parameters alone, noted."""
        num_backwards = self.num_backwards
        type(self.layer).backward_parameters(self.layer, saved, grad_output)
        self.num_backwards = num_backwards + 1
        self.saved_again, self.grad_output = saved, grad_output


class LossCalls:
    """What the loss received and returned."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.clear()

    def clear(self) -> None:
        """Forget the last step."""
        self.prediction: Array | None = None
        self.target: Array | None = None
        self.value: Any = None
        self.saved: Any = None
        self.grad_prediction: Array | None = None

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        """The loss's forward, noted."""
        self.value, self.saved = type(self.loss).forward(self.loss, prediction, target)
        self.prediction, self.target = prediction, target
        return self.value, self.saved

    def grad_target(self) -> Array:
        """The gradient with respect to the target, of a loss that has one."""
        grad_target: Array = self.loss.backward_target(self.saved)  # type: ignore[attr-defined]  # the plan has asked
        return grad_target

    def backward(self, saved: Any) -> Array:
        """The loss's backward, noted."""
        self.grad_prediction = type(self.loss).backward(self.loss, saved)
        return self.grad_prediction


class Recording:
    """Watches layers and a loss while the `with` block runs, by standing in for their methods on the instances."""

    def __init__(self, layers: list[Layer], loss: Loss) -> None:
        self.layers = [LayerCalls(layer) for layer in layers]
        self.loss = LossCalls(loss)
        self._watched: list[tuple[dict[str, Any], dict[str, Callable[..., Any]]]] = [
            (vars(calls.layer), _methods(calls, "forward", "backward", "backward_parameters")) for calls in self.layers
        ]
        self._watched.append((vars(loss), _methods(self.loss, "forward", "backward")))

    def __enter__(self) -> Recording:
        for calls in self.layers:
            calls.clear()
        self.loss.clear()
        for attributes, methods in self._watched:
            attributes.update(methods)
        return self

    def __exit__(self, *exception: object) -> None:
        for attributes, methods in self._watched:
            for name in methods:
                del attributes[name]


def _methods(calls: object, *names: str) -> dict[str, Callable[..., Any]]:
    return {name: getattr(calls, name) for name in names}
