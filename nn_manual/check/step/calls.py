"""What one layer, or the loss, received and returned in a step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.step.places import place_of_error, place_of_method
from nn_manual.check.step.tree import Item
from nn_manual.errors import raise_if_nobodys_fault, text_of, words_of
from nn_manual.layers.composite import has_buffers
from nn_manual.layers.with_lengths import LayerWithLengths
from nn_manual.layers.with_noise import LayerWithNoise
from nn_manual.losses import Loss
from nn_manual.messages.text import counted


class CallFailed(Exception):  # noqa: N818 - says what happened to whom; its cause says it better
    """A layer or a loss raised `error` while it was watched."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(text_of(error))
        self.error = error


class LayerCalls:
    """What one layer received and returned. Arrays are the very objects, not copies, except for views of what the step
    moves later, the arrays in `moving`. `place` is its number among the layers, in the order in which they began
    forward.

    `param_views` and `grad_views` are the model's own of the layer's parameters and gradients, by their names in the
    layer; `grads` are the gradients to compare: the views, or copies made when backward returns, where `copy_grads`
    says that they will be clipped in place. A composite has none: they are its children's. `failure` says what went
    wrong in a method that didn't return what it must.

    What passes between a composite and its children is the composite's to write into, where no child needs it. So it is
    copied as it passes: `takes_input` says that a composite gives the layer its input and gets its grad_input,
    `gives_output` that it gets the output and gives grad_output. The model's first layer takes its input, too: nobody
    has returned it, so nothing else would show that the layer writes into it.
    """

    def __init__(
        self,
        item: Item,
        begun: Iterator[int],
        params: dict[str, Array],
        grads: dict[str, Array],
        moving: Sequence[Array],
        *,
        copy_grads: bool,
        takes_input: bool = False,
        gives_output: bool = False,
    ) -> None:
        self.item, self.label, self.layer, self._begun = item, item.label, item.layer, begun
        self.param_views, self.grad_views, self.grads, self._moving = params, grads, grads, moving
        self._copy_grads, self._takes_input, self._gives_output = copy_grads, takes_input, gives_output
        self.has_buffers = has_buffers(item.layer)
        self._takes_noise = isinstance(item.layer, LayerWithNoise | LayerWithLengths)
        self.clear()

    def clear(self) -> None:
        """Forget the last step, and find the layer's methods as they are now."""
        self._forward, self._backward = self.layer.forward, self.layer.backward
        self._backward_parameters = self.layer.backward_parameters
        self._update_buffers = self.layer.update_buffers
        self.place = sys.maxsize  # after all that ran
        self.num_forwards = 0
        self.num_backwards = 0
        #: Whether it was backward_parameters that ran, which returns no grad_input.
        self.only_parameters = False
        self.num_updates = 0
        self.input: Array | None = None
        self.output: Array | None = None
        self.saved: Any = None
        #: The random numbers of this step, and lengths, by their names: the next step gives the layer others.
        self.noise: dict[str, Array] = {}
        self.grad_output: Array | None = None
        self.grad_input: Array | None = None
        self.saved_again: Any = None
        self.saved_for_update: Any = None
        self.failure: str | None = None
        self._running = False

    def forward(self, input: Array) -> tuple[Array, Any]:
        """The layer's forward, noted."""
        if self._running:
            return self._forward(input)
        self.num_forwards += 1
        self.place = next(self._begun)
        self.input = self._kept(input, copied=self._takes_input)
        self.keep_noise()
        result = self._run("forward", self._forward, input)
        if not (isinstance(result, tuple | list) and len(result) == 2):
            self.failure = f"forward must return `output, saved`, it returned {_describe(result)}"
            self.failure += place_of_method(self.layer, "forward")
            raise CallFailed(TypeError(self.failure))
        output, self.saved = result
        self.output = self._kept(output, copied=self._gives_output)
        return output, self.saved

    def keep_noise(self) -> None:
        """Note the random numbers and lengths that the layer has now."""
        if self._takes_noise:
            self.noise = vars(self.layer.noise)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """The layer's backward, noted."""
        grad_input: Array = self._noted("backward", self._backward, saved, grad_output)
        self.grad_input = self._kept(grad_input, copied=self._takes_input)
        return grad_input

    def backward_parameters(self, saved: Any, grad_output: Array) -> None:
        """The layer's backward for its parameters alone, noted."""
        self.only_parameters = self.only_parameters or not self._running
        self._noted("backward_parameters", self._backward_parameters, saved, grad_output)

    def update_buffers(self, saved: Any) -> None:
        """The layer's update_buffers, noted."""
        if self._running:
            self._update_buffers(saved)
            return
        self.num_updates += 1
        self.saved_for_update = saved
        self._run("update_buffers", self._update_buffers, saved)

    def _noted(self, name: str, method: Callable[[Any, Array], Any], saved: Any, grad_output: Array) -> Any:
        if self._running:
            return method(saved, grad_output)
        self.saved_again = saved
        self.grad_output = self._kept(grad_output, copied=self._gives_output)
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
        except CallFailed:  # of a child, which is named
            raise
        except BaseException as error:  # a user's own code may raise anything: the layer is named
            raise_if_nobodys_fault(error)
            self.failure = f"{name} raised {words_of(error)}{place_of_error(self.layer, error)}"
            raise CallFailed(error) from error
        finally:
            self._running = False

    def _kept(self, array: Any, *, copied: bool) -> Any:
        return _copied(array) if copied else _still(array, self._moving)

    def replaced(self) -> str:
        """Which of the layer's parameters and gradients no longer lies in the model's memory, as a sentence."""
        for kind, views in (("param", self.param_views), ("grad", self.grad_views)):
            own = vars(getattr(self.layer, kind))
            for name, view in views.items():
                if not (name in own and (np.may_share_memory(view, own[name]) or not view.size)):
                    return f"{kind}.{name} was replaced: write into it, {kind}.{name}[...] = ..."
        return ""

    def fault(self, method: str, text: str) -> CannotCompare:
        """What a method of the layer does wrong, as an error to raise."""
        return CannotCompare(f"{self.label}: {text}{place_of_method(self.layer, method)}")


class LossCalls:
    """What the loss received and returned. The target is a copy: nobody has returned it, so nothing else would show
    that the loss writes into it. Other arrays are as in LayerCalls.
    """

    def __init__(self, loss: Loss, moving: Sequence[Array]) -> None:
        self.loss, self._moving = loss, moving
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
        except BaseException as error:  # a user's own code may raise anything: the loss is named
            raise_if_nobodys_fault(error)
            self.refused = True
            raise CallFailed(error) from error

    def forward(self, prediction: Array, target: Array) -> tuple[Any, Any]:
        """The loss's forward, noted."""
        self.prediction, self.target = _still(prediction, self._moving), _copied(target)
        try:
            self.value, self.saved = self._forward(prediction, target)
        except BaseException as error:  # a user's own code may raise anything: the loss is named
            raise_if_nobodys_fault(error)
            self.refused = True
            raise CallFailed(error) from error
        return self.value, self.saved

    def grad_target(self) -> Array:
        """The gradient with respect to the target, of a loss that has one."""
        grad_target: Array = self.loss.backward_target(self.saved)
        return grad_target

    def backward(self, saved: Any) -> Array:
        """The loss's backward, noted."""
        try:
            grad_prediction: Array = self._backward(saved)
        except BaseException as error:  # a user's own code may raise anything: the loss is named
            raise_if_nobodys_fault(error)
            self.failure = f"backward raised {words_of(error)}{place_of_error(self.loss, error)}"
            raise CallFailed(error) from error
        self.grad_prediction = _still(grad_prediction, self._moving)
        return grad_prediction


def _copied(array: Any) -> Any:
    return array.copy(order="K") if isinstance(array, np.ndarray) else array


def _still(array: Any, moving: Sequence[Array]) -> Any:
    """The array; a copy of it where it may be a view of one of those that are moving."""
    if not isinstance(array, np.ndarray) or array.base is None:  # most arrays own their memory
        return array
    return _copied(array) if any(np.may_share_memory(array, each) for each in moving) else array


def _describe(result: object) -> str:
    if isinstance(result, np.ndarray):
        return f"an array of shape {result.shape} alone"
    if isinstance(result, tuple | list):
        return counted(len(result), "value")
    return "None" if result is None else f"one {type(result).__name__}"
