"""A plain layer's docstring states its output and every gradient, and what it computes agrees."""

from __future__ import annotations

import re

import pytest
from comparing import TOLERANCES, assert_equal, evaluate
from plain_layers import CLASSES, LAYERS, bound, inputs, our_results

from nn_manual.arrays import Shape
from nn_manual.exercises.kinds.formula_words import words_of_layer
from nn_manual.exercises.kinds.formulas import formulas
from nn_manual.layers import Layer
from nn_manual.layers.adaptive_pooling import AdaptivePooling
from nn_manual.layers.folding import Folding
from nn_manual.layers.group_normalization import OverGroups
from nn_manual.layers.padding import Padding
from nn_manual.layers.pooling import Pooling
from nn_manual.layers.rearranging import Rearranging
from nn_manual.layers.recurrent import Recurrent
from nn_manual.layers.resampling import AlongEachDimension
from nn_manual.layers.windowed_map import WindowedMap

#: Layers whose docstrings say in words what is more than a few lines of numpy: their own tests have loops instead.
IN_WORDS = (
    *(AdaptivePooling, AlongEachDimension, Folding, OverGroups, Padding, Pooling, Rearranging, Recurrent),
    WindowedMap,
)
STATED = [(layer, shape) for layer, shape in LAYERS if not isinstance(layer, IN_WORDS)]

each_dtype = pytest.mark.parametrize("dtype", TOLERANCES)


@pytest.mark.parametrize(("layer", "shape"), STATED, ids=repr)
@each_dtype
@pytest.mark.parametrize("kind", ["random", "tied"])
def test_docstring_agrees(layer: Layer, shape: Shape, dtype: str, kind: str) -> None:
    input, grad_output = inputs(layer, shape, kind, "random", dtype)
    output, gradients = our_results(bound(layer, dtype), input, grad_output)
    known = {**words_of_layer(layer, input), "input": input, "grad_output": grad_output, **vars(layer.param)}
    stated = evaluate(layer, known)
    for name, value in {"output": output, **vars(gradients)}.items():
        assert_equal(value, stated[name])


@pytest.mark.parametrize("layer_class", [owner for owner in CLASSES if not issubclass(owner, IN_WORDS)])
def test_docstring_states_every_gradient_and_nothing_else(layer_class: type[Layer]) -> None:
    parameters = {name for layer, _ in layer_class.examples() for name in layer.parameter_shapes()}
    lines = list(formulas(layer_class))
    wanted = [
        "output",
        "grad_input",
        *(f"grad_{name}" for name in sorted(parameters, reverse=True)),  # torch's order: weight, bias
    ]
    assert [line.name for line in lines if line.name in wanted] == wanted
    for position, line in enumerate(lines):  # what else is named, a later line uses
        later = " ".join(other.expression for other in lines[position + 1 :])
        assert line.name in wanted or re.search(rf"\b{line.name}\b", later), line.name
