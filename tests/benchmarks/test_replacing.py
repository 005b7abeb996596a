"""A replaced gradient is wrong wherever it is computed, and the others stay right."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from benchmarks.mutation.replacing import change_gradient, replace_gradient, replace_method

from nn_manual.arrays import Array, Shape
from nn_manual.layers import Layer, Linear
from nn_manual.losses import MSELoss
from nn_manual.model import Sequential


@dataclass(eq=False)
class Scale(Layer):
    """A layer that writes its parameter's gradient in `backward`, and has no `backward_parameters` of its own."""

    def parameter_shapes(self) -> dict[str, Shape]:
        return {"weight": (2,)}

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input * self.param.weight, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        self.grad.weight[...] = (grad_output * saved).sum(axis=0)
        grad_input: Array = grad_output * self.param.weight
        return grad_input


def twice(right: Array) -> Array:
    right *= 2  # the copy that it was given
    return right


def gradients(layer: Layer) -> dict[str, Array]:
    """All gradients of a layer of 2 features; the parameters' by `backward` and by `backward_parameters`."""
    Sequential(layer, dtype="float64").param_arena[...] = [3, 5, 7, 11, 13, 17][: layer.num_parameters]
    saved, grad_output = layer.forward(np.array([[1.0, 2], [3, -1]]))[1], np.array([[1.0, -1], [2, 4]])
    found: dict[str, Array] = {}
    for method in ("backward", "backward_parameters"):
        result = getattr(layer, method)(saved, grad_output)
        found |= {f"{method}: grad_{name}": grad.copy() for name, grad in vars(layer.grad).items()}
        if method == "backward":
            found["grad_input"] = result
    return found


@pytest.mark.parametrize("tensor", ["grad_input", "grad_weight", "grad_bias"])
@pytest.mark.parametrize("owner", [Scale, Linear])
def test_one_gradient_is_changed_and_the_others_stay(owner: type[Layer], tensor: str) -> None:
    sizes = (2, 2) if owner is Linear else ()
    right, changed = gradients(owner(*sizes)), gradients(change_gradient(owner, tensor, twice)(*sizes))
    assert changed.keys() == right.keys()
    for name, gradient in changed.items():
        np.testing.assert_array_equal(gradient, 2 * right[name] if name.endswith(tensor) else right[name])


def test_a_layer_without_the_parameter_stays_right() -> None:
    right = gradients(Linear(2, 2, bias=False))
    changed = gradients(change_gradient(Linear, "grad_bias", twice)(2, 2, bias=False))
    for name, gradient in changed.items():
        np.testing.assert_array_equal(gradient, right[name])


def test_a_formula_sees_the_gradient_of_the_last_step() -> None:
    def added(layer: Linear, saved: Array, grad_output: Array) -> Array:
        gradient: Array = layer.grad.weight + grad_output.T @ saved
        return gradient

    layer = replace_gradient(Linear, "grad_weight", added)(2, 2)
    found = gradients(layer)  # two steps: by backward, and by backward_parameters
    right = gradients(Linear(2, 2))["backward: grad_weight"]
    np.testing.assert_array_equal(found["backward: grad_weight"], right)
    np.testing.assert_array_equal(found["backward_parameters: grad_weight"], 2 * right)


def test_each_gradient_of_a_loss_is_changed() -> None:
    """grad_target is computed from grad_prediction, but not the other way round."""
    prediction, target = np.array([[1.0, 2]]), np.array([[3.0, 5]])
    for tensor, expected in (("grad_prediction", [[-4, -6], [4, 6]]), ("grad_target", [[-2, -3], [4, 6]])):
        loss = change_gradient(MSELoss, tensor, twice)()
        saved = loss.forward(prediction, target)[1]
        np.testing.assert_array_equal([loss.backward(saved)[0], loss.backward_target(saved)[0]], expected)


def test_a_class_with_a_method_replaced_keeps_its_name() -> None:
    changed = replace_method(Scale, "forward", lambda self, input: (input, None))  # noqa: ARG005 - a method's signature
    assert (changed.__name__, changed.__mro__[1]) == ("Scale", Scale)
    assert changed().forward(1) == (1, None)
