"""What holds of every optimizer: its formulas, and clipping, look at no value."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from opaque import Looked, opaque

from nn_manual import Linear, Sequential, clip_grad_norm
from nn_manual.arrays import Array
from nn_manual.optim import SGD, Adam, Muon, NAdam, Optimizer
from nn_manual.registry import components

EXAMPLES = [(cls, settings) for cls in components(Optimizer).values() for settings in cls.examples()]


def map_for(optimizer_class: type[Optimizer]) -> Linear:
    """A map from 3 to 2 with a bias, if the optimizer moves vectors."""
    return Linear(3, 2, bias=optimizer_class.num_dims is None)


def moved_blindly(optimizer: Any, num_steps: int) -> Array:
    """The parameters after some steps in which `move` may look at no value."""
    model = optimizer.model
    param: Array = model.param_arena.copy()
    state = {name: vector.copy() for name, vector in optimizer.vectors.items()}
    for step in range(1, num_steps + 1):
        values = optimizer.coefficients(step).items()
        coefficients = {name: opaque(np.array(value, model.dtype)) for name, value in values}
        for part in optimizer.parts:
            for block, own, shape in part.blocks:
                form = (-1,) if shape is None else shape
                vectors = {name: opaque(vector[own].reshape(form)) for name, vector in state.items()}
                grad = opaque(model.grad_arena[block].reshape(form))
                optimizer.move(opaque(param[block].reshape(form)), grad, vectors, coefficients)
    return param


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("optimizer_class", "settings"), EXAMPLES)
def test_move_looks_at_no_value(optimizer_class: Any, settings: dict[str, Any], dtype: str) -> None:
    model = Sequential(map_for(optimizer_class), dtype=dtype)
    model.grad_arena[...] = np.random.default_rng(0).normal(size=model.grad_arena.size)
    optimizer = optimizer_class(model, **{"lr": 0.1} | settings)
    blindly = moved_blindly(optimizer, 3)
    for _ in range(3):
        optimizer.step()
    np.testing.assert_array_equal(blindly, model.param_arena)


@pytest.mark.parametrize(("optimizer_class", "settings"), EXAMPLES)
def test_coefficients_that_settle_stay(optimizer_class: Any, settings: dict[str, Any]) -> None:
    optimizer = optimizer_class(Sequential(map_for(optimizer_class)), **{"lr": 0.1} | settings)
    of_steps = {step: optimizer.coefficients(step) for step in (1, 2, 3, 4, 10, 1000, 10**6)}
    settled = [each for step, each in of_steps.items() if step >= optimizer.settles_at]
    assert all(each == settled[0] for each in settled)
    assert settled or optimizer_class not in (SGD, Muon)


def test_coefficients_of_ones_own_settle_only_where_the_class_says_so() -> None:
    class Warm(SGD):
        def coefficients(self, step: int) -> dict[str, float]:
            return super().coefficients(step) | {"lr": self.lr * min(1.0, step / 10)}

    class Warmer(Warm):
        settles_at = 10

        def coefficients(self, step: int) -> dict[str, float]:
            return super().coefficients(step)

    class Nearly(SGD):
        pass

    assert [each.settles_at for each in (SGD, Warm, Warmer, Nearly)] == [2, np.inf, 10, 2]


def test_a_move_that_looks_is_found() -> None:
    class Looking(SGD):
        def move(self, param: Array, grad: Array, *others: Any) -> None:
            if grad[0] > 0:
                super().move(param, grad, *others)

    with pytest.raises(Looked):
        moved_blindly(Looking(Sequential(Linear(3, 2))), 1)


@pytest.mark.parametrize("optimizer_class", [SGD, Muon])
def test_a_move_can_not_write_into_the_gradient(optimizer_class: Any) -> None:
    class Writing(optimizer_class):  # type: ignore[misc]  # both of them
        def move(self, param: Array, grad: Array, *others: Any) -> None:
            grad *= 0.5
            super().move(param, grad, *others)

    model = Sequential(map_for(optimizer_class))
    with pytest.raises(ValueError, match=r"read-only"):
        Writing(model).step()
    model.grad_arena[...] = 1  # everybody else can


@pytest.mark.parametrize("max_norm", [0.5, 100.0])
def test_clipping_looks_at_no_value(max_norm: float) -> None:
    grad, blindly = np.arange(5, dtype=np.float32), np.arange(5, dtype=np.float32)
    assert clip_grad_norm(opaque(blindly), max_norm) is not None
    clip_grad_norm(grad, max_norm)
    np.testing.assert_array_equal(blindly, grad)


@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 1e20), (np.float64, 1e200)])
def test_clipping_with_squares_that_overflow_gives_zeros_without_a_warning(dtype: Any, large: float) -> None:
    grad = np.array([large, 1], dtype)
    assert clip_grad_norm(grad, 1) == math.inf
    np.testing.assert_array_equal(grad, [0, 0])


OTHER_TYPES: list[tuple[type[Optimizer], dict[str, Any], str]] = [
    (SGD, {"lr": "0.1"}, "lr must be a number, not '0.1'"),
    (SGD, {"momentum": None}, "momentum must be a number, not None"),
    (Adam, {"eps": [1e-8]}, "eps must be a number, not [1e-08]"),
    (Adam, {"betas": (0.9, "0.99")}, "betas must be 2 numbers, not (0.9, '0.99')"),
    (Adam, {"betas": 0.9}, "betas must be 2 numbers, not 0.9"),
    (Adam, {"betas": (0.9,)}, "betas must be 2 numbers, not (0.9,)"),
    (Adam, {"betas": (0.9, 0.99, 0.9)}, "betas must be 2 numbers, not (0.9, 0.99, 0.9)"),
    (Muon, {"lr": {}}, "lr must be a number, not {}"),
    (Muon, {"ns_coefficients": (1, 2)}, "ns_coefficients must be 3 numbers, not (1, 2)"),
    (Muon, {"ns_steps": 2.0}, "ns_steps must be an integer, not 2.0"),
    (NAdam, {"lr": True}, "lr must be a number, not True"),
    (SGD, {"momentum": True}, "momentum must be a number, not True"),
    (NAdam, {"maximize": 1}, "maximize must be True or False, not 1"),
]


@pytest.mark.parametrize(("optimizer_class", "settings", "message"), OTHER_TYPES)
def test_a_setting_of_another_type_is_refused(
    optimizer_class: Any, settings: dict[str, Any], message: str
) -> None:
    """Where the optimizer is made, for a group, and where the setting is changed between steps."""
    model = Sequential(map_for(optimizer_class))
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        optimizer_class(model, **settings)
    with pytest.raises(ValueError, match=f"^{re.escape(f'groups.0.{message}')}$"):
        optimizer_class(model, groups=[{"parameters": "*", **settings}])
    ((name, value),) = settings.items()
    optimizer = optimizer_class(model, groups=[{"parameters": "*"}])
    for member in optimizer.members:
        before = getattr(member, name)
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            setattr(member, name, value)
        assert getattr(member, name) == before


@pytest.mark.parametrize(
    ("model", "groups", "error", "message"),
    [
        (None, [], TypeError, "model must be a Sequential, not None"),
        (Sequential(Linear(3, 2)), 5, TypeError, "groups must be a list of dicts, not 5"),
        (Sequential(Linear(3, 2)), ["*"], TypeError, "groups.0 must be a dict, not '*'"),
        (Sequential(Linear(3, 2)), [{"parameters": 5}], TypeError, "groups.0.parameters must be text, not 5"),
        (Sequential(Linear(3, 2)), [{"lr": 1}], ValueError, "groups.0 needs parameters, a pattern of parameter names"),
    ],
)
def test_no_model_and_no_groups(model: Any, groups: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        SGD(model, groups=groups)


def test_a_setting_out_of_range_is_refused_between_steps() -> None:
    """NumPy's numbers are numbers."""
    half: Any = np.float32(0.5)
    optimizer = SGD(Sequential(Linear(3, 2)), lr=half)
    optimizer.step()
    with pytest.raises(ValueError, match=r"^lr must be at least 0, not -1\.0$"):
        optimizer.lr = -1.0
    assert optimizer.lr == 0.5
    optimizer.lr = np.float64(0.25)
    assert optimizer.lr == 0.25
    assert type(optimizer.lr) is float


@pytest.mark.parametrize(("optimizer_class", "settings"), EXAMPLES)
def test_a_state_goes_on_where_it_was_taken(optimizer_class: Any, settings: dict[str, Any]) -> None:
    """The state vectors, and the number of steps, which corrects Adam's moments."""
    models = [Sequential(map_for(optimizer_class), dtype="float64") for _ in range(2)]
    first, second = (optimizer_class(model, **{"lr": 0.1} | settings) for model in models)
    for model in models:
        model.grad_arena[...] = np.arange(model.grad_arena.size)
    first.step()
    models[1].param_arena[...] = models[0].param_arena
    second.load_state({name: value.copy() for name, value in first.state().items()})
    for optimizer in (first, second):
        optimizer.step()
    np.testing.assert_array_equal(models[1].param_arena, models[0].param_arena)
    assert second.state()["num_steps"] == 2


def test_a_class_beside_it_hears_of_a_subclass() -> None:
    """Whatever the order of the bases."""
    heard = {}

    class Tagged:
        def __init_subclass__(cls, tag: str, **keywords: Any) -> None:
            super().__init_subclass__(**keywords)
            heard[cls.__name__] = tag

    class First(SGD, Tagged, tag="a"):
        def coefficients(self, step: int) -> dict[str, float]:
            return super().coefficients(step)

    class Last(Tagged, SGD, tag="b"):
        pass

    assert heard == {"First": "a", "Last": "b"}
    assert First.settles_at == math.inf
    assert Last.settles_at == SGD.settles_at < math.inf
