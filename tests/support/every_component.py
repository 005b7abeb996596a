"""Each layer, loss and optimizer of the package, each in a small net with batches that fit."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

import numpy as np
import pytest

from nn_manual import GELU, BatchNorm1d, Dropout, LayerNorm, Linear, Residual, Sequential, Sigmoid, Tanh
from nn_manual.arrays import DTYPES, Array, Shape
from nn_manual.check.catalogue.targets import draw_target
from nn_manual.layers import Layer, LayerWithLengths
from nn_manual.losses import Loss
from nn_manual.optim import Optimizer
from nn_manual.registry import components, examples

LOSSES = examples(components(Loss))
OPTIMIZERS = [
    (optimizer, settings) for optimizer in components(Optimizer).values() for settings in optimizer.examples()
]

Batches = list[tuple[Array, Array]]


def each(names: str, examples: Sequence[tuple[Any, ...]]) -> pytest.MarkDecorator:
    """Parametrizes a test by the examples, with these names. The quick tests take the first example of each family of
    classes.
    """
    cases = [
        pytest.param(*example, id=str(example[0]), marks=[] if is_first else [pytest.mark.slow])
        for example, is_first, _ in _by_class(examples)
    ]
    return pytest.mark.parametrize(names, cases)


def with_each_dtype(names: str, examples: Sequence[tuple[Any, ...]]) -> pytest.MarkDecorator:
    """Parametrizes a test by the examples, with these names, and by `dtype`. The first example of each family of
    classes is taken in both dtypes, and the others in one and the other by turns. The quick tests take the first
    example of each family: of one in one dtype, and of the next one in the other.
    """
    cases = [
        pytest.param(*example, dtype, id=f"{example[0]}-{dtype}", marks=[] if is_quick else [pytest.mark.slow])
        for count, (example, is_first, number) in enumerate(_by_class(examples))
        for i, dtype in enumerate(DTYPES)
        for is_quick in [is_first and number % len(DTYPES) == i]
        if is_first or count % len(DTYPES) == i
    ]
    return pytest.mark.parametrize(f"{names}, dtype", cases)


def _by_class(examples: Sequence[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], bool, int]]:
    """Each example, whether it is the first one of its family, and the number of that family."""
    numbers: dict[type, int] = {}
    for example in examples:
        owner = example[0] if isinstance(example[0], type) else type(example[0])
        family = family_of(owner)
        is_first = family not in numbers
        yield example, is_first, numbers.setdefault(family, len(numbers))


def family_of(owner: type) -> type:
    """The class that has a layer's `backward`, for a class that only says for how many dimensions its bases' formulas
    are, as Conv1d, Conv2d and Conv3d do. Any other class is a family of its own.
    """
    has_own_formulas = any(isinstance(value, FunctionType) for name, value in vars(owner).items() if name[:2] != "__")
    if "num_dims" not in vars(owner) or has_own_formulas:
        return owner
    return next(base for base in owner.__mro__ if "backward" in vars(base))


def _of_families(examples: Sequence[tuple[Layer, Shape]]) -> Iterator[tuple[Layer, Shape]]:
    """The examples; of the classes behind the first one of a family, the first of each: their formulas are the same."""
    first_of: dict[type, type] = {}
    seen = set()
    for layer, shape in examples:
        owner = type(layer)
        if first_of.setdefault(family_of(owner), owner) is owner or owner not in seen:
            yield layer, shape
        seen.add(owner)


#: A trace takes no lengths of sequences.
LAYERS = [
    each for each in _of_families(examples(components(Layer))) if not isinstance(each[0], LayerWithLengths)
]


def of_layer(layer: Layer, shape: Shape, dtype: str, num_batches: int) -> tuple[Sequential, Batches]:
    """The layer alone, with random parameters, and batches for a regression."""
    generator = np.random.default_rng(0)
    model = Sequential(copy.deepcopy(layer), seed=0, dtype=dtype)
    model.param_arena[:] = generator.uniform(-1, 1, model.num_parameters)
    output_shape = layer.output_shape(shape)
    return model, [
        (_input(layer, shape, dtype, generator), generator.uniform(-1, 1, output_shape).astype(dtype))
        for _ in range(num_batches)
    ]


def _input(layer: Layer, shape: Shape, dtype: str, generator: np.random.Generator) -> Array:
    if isinstance(layer.domain, range):
        return generator.integers(layer.domain.start, layer.domain.stop, shape)
    return generator.uniform(0.2, 1, shape).astype(dtype)


def of_loss(loss: Loss, num_batches: int) -> tuple[Sequential, Batches]:
    """A net of one layer, behind it what the loss may need, and batches of 5 with targets of the loss."""
    generator = np.random.default_rng(0)
    return Sequential(Linear(4, 5), *into_domain(loss), seed=0), [
        (
            generator.standard_normal((5, 4), np.float32),
            draw_target(loss, "random", (5, 5), "float32", generator),
        )
        for _ in range(num_batches)
    ]


def into_domain(loss: Loss) -> list[Layer]:
    """A layer whose outputs every loss takes, if the loss doesn't take any number."""
    return [] if loss.domain == "real" else [Sigmoid()]


def for_optimizer(
    optimizer: type[Optimizer], dtype: str, num_batches: int, batch_size: int = 5
) -> tuple[Sequential, Batches]:
    """A net of two layers with parameters that the optimizer moves, and batches for a regression."""
    generator = np.random.default_rng(0)
    bias = optimizer.num_dims is None
    model = Sequential(Linear(4, 5, bias=bias), Tanh(), Linear(5, 3, bias=bias), seed=0, dtype=dtype)
    sizes = (batch_size, 4), (batch_size, 3)
    batches = [tuple(generator.standard_normal(size).astype(dtype) for size in sizes) for _ in range(num_batches)]
    return model, batches  # type: ignore[return-value]  # a tuple of as many as there are sizes


def a_whole_net(*, bias: bool = True) -> Sequential:
    """Shared weights, layers in layers, buffers and random numbers, from (batch, 6) to (batch, 7). `bias` is that of
    the layer before BatchNorm1d: its gradient is zero in theory, rounding in fact.
    """
    return Sequential(
        Linear(6, 6, bias=False),
        Residual(LayerNorm(6), Linear(6, 6), GELU(), Dropout(0.3)),
        Sequential(Linear(6, 5, bias=bias), BatchNorm1d(5), Tanh()),
        Linear(5, 6),
        Linear(6, 7, bias=False),
        tied=[("0.weight", "1.1.weight")],
        seed=0,
    )
