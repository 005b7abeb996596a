"""A layer is in one model, and once: anything else is refused, and a copy has layers and memory of its own."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable

import numpy as np
import pytest
from nested import nested

from nn_manual import Linear, ReLU, Sequential, Tanh


def test_a_layer_that_is_twice_in_a_model_is_refused() -> None:
    linear, relu = Linear(3, 3), ReLU()
    inner = Sequential(Tanh(), Linear(3, 3))
    cases: list[tuple[Callable[[], Sequential], str, str]] = [
        (lambda: Sequential(linear, relu, linear), "2", "0"),
        (lambda: Sequential(inner.layers[1], inner), "1.1", "0"),
        (lambda: Sequential(Sequential(inner), relu, inner.layers[0]), "2", "0.0.0"),
        (lambda: Sequential(*[Sequential(linear)] * 2), "1", "0"),
    ]
    for make, second, first in cases:
        message = f"layer {second} is the same object as layer {first}: their gradients would overwrite each other"
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            make()
    Sequential(Linear(3, 3), Linear(3, 3), ReLU(), ReLU())  # equal settings, other objects


def in_another(name: str) -> str:
    return re.escape(f", {name}, is in another Sequential already, which would lose it: ")


def test_a_layer_of_another_model_is_refused_and_both_stay_whole() -> None:
    shared, own = Linear(3, 3), Linear(3, 3)
    first = Sequential(shared, ReLU())
    before = first.param_arena.copy()
    with pytest.raises(ValueError, match=f"^layer 1{in_another('Linear')}pass a new layer, or copy.deepcopy"):
        Sequential(own, shared)
    with pytest.raises(ValueError, match=f"^layer 0{in_another('Linear')}"):
        Sequential(Sequential(shared), own)
    assert np.shares_memory(shared.param.weight, first.param_arena)
    np.testing.assert_array_equal(first.param_arena, before)
    Sequential(own)  # what couldn't be made owns nothing

    inner = Sequential(Tanh())
    outer = Sequential(inner, ReLU())
    with pytest.raises(ValueError, match=f"^layer 0{in_another('Sequential')}"):
        Sequential(inner)
    with pytest.raises(ValueError, match=f"^layer 0{in_another('Sequential')}"):
        Sequential(*outer.layers)


def test_a_model_that_nobody_holds_sets_its_layers_free() -> None:
    layers = Linear(3, 3), ReLU()
    model = Sequential(*layers)
    with pytest.raises(ValueError, match=in_another("Linear")):
        Sequential(*layers)
    del model
    Sequential(Sequential(*layers))
    Sequential(*layers)


def test_what_a_failed_model_had_taken_is_free() -> None:
    class Refusing(Linear):
        def reset_parameters(self, generator: np.random.Generator) -> None:  # noqa: ARG002 - the contract's
            raise ArithmeticError

    linear = Linear(3, 3)
    with pytest.raises(ArithmeticError) as caught:  # which holds the failed model, as a notebook's traceback does
        Sequential(linear, Refusing(3, 3))
    Sequential(linear)
    assert caught.tb is not None


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_has_layers_and_memory_of_its_own(copied: Callable[[Sequential], Sequential]) -> None:
    model = nested(seed=1)
    other = copied(model)
    np.testing.assert_array_equal(other.param_arena, model.param_arena)
    other.param_arena[...] = 2
    assert not np.any(model.param_arena == 2)
    for _, layer in other.named_layers():
        for view in vars(layer.param).values():
            assert np.all(view == 2)
            assert np.shares_memory(view, other.param_arena)
    with pytest.raises(ValueError, match=in_another("Tanh")):
        Sequential(other.layers[0])
    del other
    with pytest.raises(ValueError, match=in_another("Tanh")):
        Sequential(model.layers[0])
    Sequential(copy.deepcopy(model.layers[1]))


def test_a_shallow_copy_is_refused() -> None:
    """It would take the layers' memory: the first model would be trained no more."""
    model = Sequential(Linear(2, 3))
    with pytest.raises(TypeError, match=r"copy\.deepcopy makes a model of its own"):
        copy.copy(model)
    assert np.shares_memory(model.layers[0].param.weight, model.param_arena)
