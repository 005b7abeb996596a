"""How an array lies in memory changes nothing that a layer computes of it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from layouts import LAYOUTS
from slow_cases import crossed

from nn_manual import Sequential
from nn_manual.arrays import Array, Padded, Shape
from nn_manual.layers import Layer
from nn_manual.registry import components

#: Sums of some dozens of numbers near 1, in float64, in another order.
TOLERANCE = 1e-13

EXAMPLES = [example for name in components(Layer) for example in components(Layer)[name].examples()]


def results(layer: Layer, shape: Shape, arranged: Callable[[Array], Array]) -> dict[str, Any]:
    """The output, that of evaluation, and the gradients, of an input and an upstream gradient so arranged."""
    model = Sequential(copy.deepcopy(layer), dtype="float64", seed=1)
    generator = np.random.default_rng(0)
    takes_indices = isinstance(layer.domain, range)
    input = generator.integers(0, len(layer.domain), shape) if takes_indices else generator.standard_normal(shape)

    def arranged_input() -> Any:
        array = arranged(input)
        return Padded(array, 1 + np.arange(len(array)) % shape[1]) if model.lengths_heeded_by else array

    output, saved = model.forward(arranged_input())
    grad_input = model.backward(saved, arranged(generator.standard_normal(output.shape)))
    infer = model(arranged_input())
    return {"output": output, "infer": infer, "grad_input": grad_input, "gradients": model.grad_arena}


@pytest.mark.parametrize(("example", "layout"), crossed(EXAMPLES, list(LAYOUTS)), ids=repr)
def test_results_are_those_of_the_usual_layout(example: tuple[Layer, Shape], layout: str) -> None:
    layer, shape = example
    expected = results(layer, shape, np.ascontiguousarray)
    found = results(layer, shape, LAYOUTS[layout])
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        if array is None:  # an index has no gradient
            assert found[name] is None
        else:
            np.testing.assert_allclose(found[name], array, rtol=0, atol=TOLERANCE, err_msg=name)
