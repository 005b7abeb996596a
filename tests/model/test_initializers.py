"""Each initialiser draws from the distribution of torch.nn.init's function of its name, and fills what it should."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import Layer, Linear, ReLU, Residual, Sequential, WeightNorm
from nn_manual.arrays import Array
from nn_manual.errors import ConfigError
from nn_manual.model.initializers import (
    GAINS,
    GPT2,
    Constant,
    Dirac,
    Eye,
    Initializer,
    KaimingNormal,
    KaimingUniform,
    Normal,
    Orthogonal,
    Sparse,
    TruncNormal,
    Uniform,
    XavierNormal,
    XavierUniform,
    Zeros,
    fans,
)

#: (fan_out, fan_in): 60,000 draws.
SHAPE = (300, 200)

KAIMING = [(nonlinearity, mode) for nonlinearity in GAINS for mode in ("fan_in", "fan_out")]
#: Each with torch's function and its arguments.
DISTRIBUTIONS: list[tuple[Initializer, Any, dict[str, Any]]] = [
    *((XavierUniform(gain), torch.nn.init.xavier_uniform_, {"gain": gain}) for gain in (1.0, 2.5)),
    *((XavierNormal(gain), torch.nn.init.xavier_normal_, {"gain": gain}) for gain in (1.0, 2.5)),
    *((Uniform(-b, b), torch.nn.init.uniform_, {"a": -b, "b": b}) for b in (0.05, 0.15)),
    (Normal(0, 0.1), torch.nn.init.normal_, {"std": 0.1}),
    *((TruncNormal(0, 0.1, -b, b), torch.nn.init.trunc_normal_, {"std": 0.1, "a": -b, "b": b}) for b in (0.02, 0.2)),
    (GPT2(), torch.nn.init.normal_, {"std": 0.02}),
    (GPT2(0.1), torch.nn.init.normal_, {"std": 0.1}),
    *((KaimingUniform(n, m), torch.nn.init.kaiming_uniform_, {"nonlinearity": n, "mode": m}) for n, m in KAIMING),
    *((KaimingNormal(n, m), torch.nn.init.kaiming_normal_, {"nonlinearity": n, "mode": m}) for n, m in KAIMING),
]
INITIALIZERS = [initializer for initializer, _, _ in DISTRIBUTIONS]
WITHOUT_FANS = (GPT2, Normal, TruncNormal, Uniform)


def filled(initializer: Initializer, seed: int = 0) -> Array:
    weight = np.full(SHAPE, np.nan)
    initializer.fill(weight, np.random.default_rng(seed))
    return weight


@pytest.mark.parametrize(("initializer", "torch_function", "options"), DISTRIBUTIONS, ids=map(repr, INITIALIZERS))
def test_bounds_and_moments_are_torchs(initializer: Initializer, torch_function: Any, options: dict[str, Any]) -> None:
    """Three standard errors of 60,000 draws are 1.3% for their second moment and at most 2.0% for the fourth over its
    square; torch's draws err likewise. The largest uniform draw is within 0.1% of the bound.
    """
    ours = filled(initializer)
    theirs = torch_function(torch.empty(SHAPE, dtype=torch.float64), **options, generator=torch.manual_seed(0)).numpy()
    assert abs(ours.mean()) < 3 * ours.std() / math.sqrt(ours.size)
    assert ours.std() == pytest.approx(theirs.std(), rel=0.013)
    # 1.8 for a uniform distribution, 3 for a normal one
    assert (ours**4).mean() / ours.var() ** 2 == pytest.approx((theirs**4).mean() / theirs.var() ** 2, rel=0.06)
    if "Uniform" in type(initializer).__name__:
        assert np.abs(ours).max() == pytest.approx(np.abs(theirs).max(), rel=1e-3)
        assert np.abs(ours).max() <= math.sqrt(3) * theirs.std() * 1.01


@pytest.mark.parametrize("shape", [(2, 5), (6, 3, 4), (8, 3, 5, 2)])
def test_fans_are_torchs(shape: tuple[int, ...]) -> None:
    """Those of a convolution's weight, too: (out_channels, in_channels, *kernel)."""
    assert fans(np.empty(shape)) == torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(shape))


@pytest.mark.parametrize(("initializer", "torch_function", "options"), DISTRIBUTIONS, ids=map(repr, INITIALIZERS))
def test_the_weight_of_a_convolution(initializer: Initializer, torch_function: Any, options: dict[str, Any]) -> None:
    """60,000 draws again, and the same errors."""
    shape = (100, 24, 5, 5)
    weight = np.full(shape, np.nan)
    initializer.fill(weight, np.random.default_rng(0))
    theirs = torch_function(torch.empty(shape, dtype=torch.float64), **options, generator=torch.manual_seed(0)).numpy()
    assert weight.std() == pytest.approx(theirs.std(), rel=0.013)
    assert weight.std() < 0.2


@pytest.mark.parametrize("initializer", [one for one in INITIALIZERS if not isinstance(one, WITHOUT_FANS)], ids=repr)
def test_a_weight_without_fans_is_refused(initializer: Initializer) -> None:
    with pytest.raises(ValueError, match=r"need a weight of two or more dimensions, not one of shape \(3,\)$"):
        initializer.fill(np.empty(3), np.random.default_rng(0))


@pytest.mark.parametrize("initializer", INITIALIZERS, ids=repr)
def test_the_seed_decides(initializer: Initializer) -> None:
    np.testing.assert_array_equal(filled(initializer), filled(initializer))
    assert not np.any(filled(initializer) == filled(initializer, seed=1))


@pytest.mark.parametrize("options", [{"a": -0.5, "b": 0.25}, {"mean": 0.3, "std": 0.2, "a": 0.5, "b": 2.0}])
def test_a_truncated_normal_that_is_not_symmetric(options: dict[str, float]) -> None:
    """Three standard errors of 60,000 draws of each, of what lies within a range of less than 1.5."""
    ours = filled(TruncNormal(**options))
    theirs = torch.nn.init.trunc_normal_(
        torch.empty(SHAPE, dtype=torch.float64), **options, generator=torch.manual_seed(0)
    ).numpy()
    assert options["a"] <= ours.min() <= ours.max() <= options["b"]
    assert ours.mean() == pytest.approx(theirs.mean(), abs=3 * math.sqrt(2) * theirs.std() / math.sqrt(ours.size))
    assert ours.std() == pytest.approx(theirs.std(), rel=0.02)
    assert np.quantile(ours, [0.1, 0.5, 0.9]) == pytest.approx(np.quantile(theirs, [0.1, 0.5, 0.9]), abs=0.015)


@pytest.mark.parametrize("shape", [(5, 5), (3, 5), (5, 3)])
def test_the_identity_is_torchs(shape: tuple[int, int]) -> None:
    weight = np.full(shape, np.nan)
    Eye().fill(weight, np.random.default_rng(0))
    np.testing.assert_array_equal(weight, torch.nn.init.eye_(torch.empty(shape)).numpy())


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("shape", [(4, 3, 5), (4, 6, 3, 3), (6, 2, 2, 3), (2, 2, 3, 4, 1)])
def test_a_dirac_delta_is_torchs(shape: tuple[int, ...], groups: int) -> None:
    weight = np.full(shape, np.nan)
    Dirac(groups).fill(weight, np.random.default_rng(0))
    np.testing.assert_array_equal(weight, torch.nn.init.dirac_(torch.empty(shape), groups).numpy())


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 3, 2, 2), (20, 3, 2), (1, 4)])
@pytest.mark.parametrize("gain", [1.0, 2.5])
def test_an_orthogonal_weight_keeps_lengths(shape: tuple[int, ...], gain: float) -> None:
    weight = np.full(shape, np.nan)
    Orthogonal(gain).fill(weight, np.random.default_rng(0))
    matrix = weight.reshape(len(weight), -1) / gain
    products = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(products, np.eye(len(products)), rtol=0, atol=1e-14)


def test_each_orthogonal_weight_is_as_likely() -> None:
    """The entries of Q have mean 0 and variance 1 / n. Where R has any diagonal, Q[0, 0] is never positive."""
    drawn = np.empty((2000, 3, 3))
    for seed, weight in enumerate(drawn):
        Orthogonal().fill(weight, np.random.default_rng(seed))
    assert np.abs(drawn.mean(axis=0)).max() < 4 * math.sqrt(1 / 3 / 2000)
    np.testing.assert_allclose((drawn**2).mean(axis=0), 1 / 3, rtol=0, atol=4 * math.sqrt(4 / 45 / 2000))


@pytest.mark.parametrize("sparsity", [0.0, 0.25, 0.995, 1.0])
def test_a_sparse_weight_has_zeros_in_each_column(sparsity: float) -> None:
    weight = filled(Sparse(sparsity, 0.5))
    theirs = torch.nn.init.sparse_(torch.empty(SHAPE), sparsity, 0.5).numpy()
    np.testing.assert_array_equal((weight == 0).sum(axis=0), (theirs == 0).sum(axis=0))
    places = {column.tobytes() for column in (weight == 0).T}
    assert len(places) == 1 if sparsity in (0, 1) else len(places) > SHAPE[1] / 2
    if sparsity < 0.5:
        assert weight[weight != 0].std() == pytest.approx(0.5, rel=0.02)


@pytest.mark.parametrize(
    ("initializer", "shape", "words"),
    [
        (Eye(), (2, 3, 4), "Eye needs a weight of two dimensions, not one of shape (2, 3, 4)"),
        (Sparse(0.5), (3,), "Sparse needs a weight of two dimensions, not one of shape (3,)"),
        (Dirac(), (2, 3), "Dirac needs the weight of a convolution, not one of shape (2, 3)"),
        (Dirac(2), (3, 2, 1), "groups = 2 doesn't divide the 3 output channels"),
        (Orthogonal(), (3,), "fan_in and fan_out need a weight of two or more dimensions, not one of shape (3,)"),
    ],
)
def test_a_weight_that_does_not_fit_is_refused(initializer: Initializer, shape: tuple[int, ...], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        initializer.fill(np.empty(shape), np.random.default_rng(0))


def test_of_a_model_it_names_the_weight() -> None:
    words = "initializer: 1.0.weight: Dirac needs the weight of a convolution, not one of shape (3, 3)"
    with pytest.raises(ConfigError, match=f"^{re.escape(words)}$"):
        Sequential(ReLU(), Residual(Linear(3, 3)), initializer=Dirac())


@dataclass(eq=False)
class OfFunction(Initializer):
    """A user's own initializer."""

    function: Callable[[Array, np.random.Generator], Any]

    def fill(self, weight: Array, generator: np.random.Generator) -> None:
        self.function(weight, generator)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda weight, _: weight[1:].fill(1.0), "must overwrite each number of the weight by a finite one"),
        (lambda weight, _: weight.fill(math.inf), "must overwrite each number of the weight by a finite one"),
        (
            lambda weight, _: np.copyto(weight, np.random.default_rng().normal(size=weight.shape)),
            "drew other numbers the second time: it must draw from its generator alone",
        ),
    ],
)
def test_one_of_the_users_own_that_does_not_fill_a_weight_is_refused(function: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=f"^initializer: 0.weight: OfFunction.fill {re.escape(words)}"):
        Sequential(Linear(3, 3), initializer=OfFunction(function))


@pytest.mark.parametrize("around", [lambda layer: layer, WeightNorm])
@pytest.mark.parametrize(
    ("given", "words"),
    [(lambda layer: layer.param.weight, "one ndarray"), (lambda _: "weigth", "'weigth'"), (lambda _: 0, "one int")],
)
def test_what_is_no_name_of_a_parameter_is_not_filled(given: Any, words: str, around: Any) -> None:
    class Own(Linear):
        def initialize(self, fill: Any) -> None:
            fill(given(self))

    takes = f"{type(around(Own(3, 3))).__name__}.initialize: fill takes the name of a parameter"
    with pytest.raises(ConfigError, match=f"^initializer: {takes}, .*weight.* or .*, and got {words}$"):
        Sequential(around(Own(3, 3)), initializer=Normal(0, 1))


def test_one_of_the_users_own_draws_what_its_generator_gives_once() -> None:
    own = OfFunction(lambda weight, generator: np.copyto(weight, generator.normal(0, 0.5, size=weight.shape)))
    models = [Sequential(Linear(3, 3), Linear(3, 3), initializer=each, seed=1) for each in (own, Normal(0, 0.5))]
    np.testing.assert_array_equal(models[0].param_arena, models[1].param_arena)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Uniform(1, 0), "b must be at least a = 1 and finite, not 0"),
        (lambda: Uniform(-math.inf, 0), "a must be finite, not -inf"),
        (lambda: Normal(math.nan), "mean must be finite, not nan"),
        (lambda: Normal(0, -1), "std must be at least 0 and finite, not -1"),
        (lambda: TruncNormal(std=0), "std must be above 0 and finite, not 0"),
        (lambda: TruncNormal(a=3), "b must be at least a = 3 and finite, not 2.0"),
        (lambda: Orthogonal(math.inf), "gain must be at least 0 and finite, not inf"),
        (lambda: Sparse(1.5), "sparsity must be from 0 to 1, not 1.5"),
        (lambda: Sparse(0.5, math.nan), "std must be at least 0 and finite, not nan"),
        (lambda: Dirac(0), "groups must be at least 1, not 0"),
    ],
)
def test_settings_out_of_range_are_named(make: Callable[[], Initializer], words: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(words)}$"):
        make()


def test_constants() -> None:
    assert np.all(filled(Zeros()) == 0)
    assert np.all(filled(Constant(-2.5)) == -2.5)


def test_gains_are_torchs() -> None:
    for nonlinearity, gain in GAINS.items():
        assert gain == torch.nn.init.calculate_gain(nonlinearity)  # type: ignore[arg-type]  # one of torch's names


@pytest.mark.parametrize("initializer_class", [KaimingUniform, KaimingNormal])
def test_choices_are_named(initializer_class: Any) -> None:
    with pytest.raises(ValueError, match=r"^nonlinearity must be one of linear, tanh, relu, not 'gelu'$"):
        initializer_class(nonlinearity="gelu")
    with pytest.raises(ValueError, match=r"^mode must be one of fan_in, fan_out, not 'fan'$"):
        initializer_class(mode="fan")


@pytest.mark.parametrize("initializer_class", [XavierUniform, XavierNormal])
@pytest.mark.parametrize("gain", [-1.0, math.nan])
def test_gains_out_of_range_are_named(initializer_class: Any, gain: float) -> None:
    with pytest.raises(ValueError, match=f"^gain must be at least 0, not {gain}$"):
        initializer_class(gain)


@pytest.mark.parametrize("std", [-0.1, math.nan, math.inf])
def test_standard_deviations_out_of_range_are_named(std: float) -> None:
    with pytest.raises(ValueError, match=f"^std must be at least 0 and finite, not {std}$"):
        GPT2(std)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_last_weight_of_each_residual_is_smaller(dtype: str) -> None:
    """Of four Residuals, one of them in another one: half of what is drawn, rounded once."""

    def made(initializer: Initializer) -> Sequential:
        inner = Residual(Linear(3, 3))
        blocks = [Residual(Linear(3, 4), ReLU(), Linear(4, 3)), Residual(Linear(3, 3), inner), Residual(ReLU())]
        model = Sequential(Linear(3, 3), *blocks, Linear(3, 3), seed=5, dtype=dtype, initializer=initializer)
        assert isinstance(model, Sequential)
        return model

    @dataclass(frozen=True)
    class Unscaled(GPT2):
        def residual_scale(self, num_residuals: int) -> float:
            assert num_residuals == 4
            return 1.0

    ours, unscaled = made(GPT2(0.3)).state_dict(), made(Unscaled(0.3)).state_dict()
    for name in ours:
        scale = 0.5 if name in {"1.2.weight", "2.1.0.weight"} else 1.0
        np.testing.assert_array_equal(ours[name], scale * unscaled[name], strict=False)


@dataclass(eq=False)
class Scale(Layer):
    """output = input * weight + bias: no linear map, whatever its parameters' names and dimensions."""

    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weight": (2, 3), "bias": (3,), "slope": ()}

    def reset_parameters(self, generator: np.random.Generator) -> None:
        self.param.weight[...] = 1 + generator.random((2, 3))
        self.param.bias[...] = 5
        self.param.slope[...] = 0.25

    def forward(self, input: Array) -> tuple[Array, Array]:
        return input * self.param.weight + self.param.bias, input

    def backward(self, saved: Array, grad_output: Array) -> Array:
        raise NotImplementedError


def test_an_initializer_leaves_other_parameters_to_their_layer() -> None:
    """It leaves alone what a layer doesn't let it fill."""
    model = Sequential(Scale(), Linear(3, 2), Scale(), seed=1, initializer=Constant(0.5))
    for scale in (model.layers[0].param, model.layers[2].param):
        assert np.all((scale.weight >= 1) & (scale.weight < 2))
        assert scale.bias.tolist() == [5, 5, 5]
        assert scale.slope == 0.25
    assert not np.any(model.layers[0].param.weight == model.layers[2].param.weight)
    assert np.all(model.layers[1].param.weight == 0.5)
    assert model.layers[1].param.bias.tolist() == [0, 0]


def test_an_initializers_draws_do_not_depend_on_what_the_layers_draw() -> None:
    initializer = KaimingNormal()
    alone = Sequential(Linear(3, 2), seed=1, initializer=initializer)
    beside = Sequential(Scale(), Linear(3, 2), seed=1, initializer=initializer)
    np.testing.assert_array_equal(beside.layers[1].param.weight, alone.layers[0].param.weight)
    np.testing.assert_array_equal(
        alone.layers[0].param.weight,
        np.random.default_rng(1).normal(0, np.sqrt(2 / 3), (2, 3)).astype(np.float32),
    )
