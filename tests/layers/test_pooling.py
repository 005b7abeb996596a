"""Pooling beside its definition, one window after the other, and what ties do."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AdaptiveMaxPool3d,
    AvgPool1d,
    AvgPool2d,
    AvgPool3d,
    LPPool1d,
    LPPool2d,
    LPPool3d,
    MaxPool1d,
    MaxPool2d,
    MaxPool3d,
)
from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.cases import layer_cases
from nn_manual.layers.windows import of_each

MAX: list[Any] = [MaxPool1d, MaxPool2d, MaxPool3d]
LP: list[Any] = [LPPool1d, LPPool2d, LPPool3d]
ADAPTIVE_MAX: list[Any] = [AdaptiveMaxPool1d, AdaptiveMaxPool2d, AdaptiveMaxPool3d]
AVERAGE: list[Any] = [AvgPool1d, AvgPool2d, AvgPool3d]


def window(pool: Any, framed: Array, n: int, c: int, *place: int) -> Array:
    """The numbers of one window of an image with its frame, without those that lie beyond the frame."""
    windows = pool.windows
    strides, steps = (of_each(value, pool.num_dims) for value in (windows.stride, windows.dilation))
    axes = zip(place, windows.kernel, strides, steps, strict=True)
    slices = (slice(at * stride, at * stride + size * step, step) for at, size, stride, step in axes)
    numbers: Array = framed[n, c][tuple(slices)]
    return numbers


def in_frame(pool: Any, image: Array, value: float) -> Array:
    frames = ((size, size) for size in of_each(pool.padding, pool.num_dims))
    return np.pad(image, [(0, 0), (0, 0), *frames], constant_values=value)


@pytest.mark.parametrize(
    ("pool", "shape"), [example for owner in (*MAX, *AVERAGE) for example in owner.examples()], ids=repr
)
def test_loops_agree(pool: Any, shape: Shape) -> None:
    input = np.random.default_rng(0).standard_normal(shape)
    output, _ = pool.forward(input)
    is_max = type(pool) in MAX
    framed, counted = in_frame(pool, input, -math.inf if is_max else 0), in_frame(pool, np.ones(shape), 0)
    expected = np.empty(pool.output_shape(shape))
    for place in np.ndindex(expected.shape):
        numbers = window(pool, framed, *place)
        if is_max:
            expected[place] = numbers.max()
        else:
            count = numbers.size if pool.count_include_pad else window(pool, counted, *place).sum()
            expected[place] = numbers.sum() / (getattr(pool, "divisor_override", None) or count)
    np.testing.assert_allclose(output, expected, rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "wanted"),
    [
        (5, 2, 2, 0, 3),  # 0, 2, 4: the last one reaches beyond
        (4, 2, 2, 0, 2),  # nothing is left
        (3, 2, 2, 1, 2),  # -1, 1: one that began at 3 would begin beyond the image
        (6, 3, 2, 1, 4),  # -1, 1, 3, 5
        (4, 3, 3, 1, 2),  # -1, 2: all that is left lies in the frame
    ],
)
def test_windows_that_reach_beyond(size: int, kernel: int, stride: int, padding: int, wanted: int) -> None:
    pool = MaxPool1d(kernel, stride, padding, ceil_mode=True)
    assert pool.output_shape((1, 1, size)) == (1, 1, wanted)
    theirs = torch.nn.MaxPool1d(kernel, stride, padding, ceil_mode=True)
    assert theirs(torch.zeros(1, 1, size)).shape == (1, 1, wanted)


@pytest.mark.parametrize("num_dims", [1, 2, 3])
@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding", "dilation"),
    [(2, 3, 2, 0, 1),
     (1, 3, 3, 0, 1), (3, 5, 4, 0, 1), (2, 6, 5, 1, 1), (3, 3, 2, 0, 2), (4, 3, 2, 0, 2), (2, 2, 2, 0, 2)],
)
def test_a_window_larger_than_the_image(
    num_dims: int, size: int, kernel: int, stride: int, padding: int, dilation: int
) -> None:
    """With ceil_mode there is one where it begins inside and the stride fills what is missing."""
    settings = (kernel, stride, padding)
    largest: Any = MAX[num_dims - 1](*settings, dilation, ceil_mode=True)
    pairs: list[Any] = [(largest, (*settings, dilation), f"MaxPool{num_dims}d")]
    if dilation == 1:
        pairs += [(AVERAGE[num_dims - 1](*settings, ceil_mode=True), settings, f"AvgPool{num_dims}d")]
    input = np.random.default_rng(0).standard_normal((2, 1, *[size] * num_dims))
    for ours, given, name in pairs:
        leaf = torch.from_numpy(input.copy()).requires_grad_()
        try:
            theirs = getattr(torch.nn, name)(*given, ceil_mode=True)(leaf)
        except RuntimeError:
            with pytest.raises(ValueError, match=rf"^{name} (has windows|takes volumes)"):
                ours.forward(input)
            continue
        output, saved = ours.forward(input)
        np.testing.assert_allclose(output, theirs.detach().numpy(), rtol=1e-14)
        grad_output = np.random.default_rng(1).standard_normal(output.shape)
        theirs.backward(torch.from_numpy(grad_output))
        assert leaf.grad is not None
        np.testing.assert_allclose(ours.backward(saved, grad_output), leaf.grad.numpy(), rtol=1e-14)


def test_a_divisor_of_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^divisor_override must not be 0$"):
        AvgPool2d(2, divisor_override=0)


def test_of_equal_numbers_the_first_is_the_largest() -> None:
    pool = MaxPool2d(2)
    output, saved = pool.forward(np.array([[[[1.0, 3, 0, 0], [3, 3, 0, 0]]]]))
    assert output.tolist() == [[[[3, 0]]]]
    grad_input = pool.backward(saved, np.array([[[[5.0, 7]]]]))
    assert grad_input.tolist() == [[[[0, 5, 7, 0], [0, 0, 0, 0]]]]


def test_gradients_of_windows_that_overlap_add() -> None:
    pool = MaxPool2d([1, 2], stride=1)
    _, saved = pool.forward(np.array([[[[1.0, 3, 2]]]]))
    assert pool.backward(saved, np.array([[[[5.0, 7]]]])).tolist() == [[[[0, 12, 0]]]]
    mean = AvgPool2d([1, 2], stride=1)
    _, input_shape = mean.forward(np.array([[[[1.0, 3, 2]]]]))
    assert mean.backward(input_shape, np.array([[[[5.0, 7]]]])).tolist() == [[[[2.5, 6, 3.5]]]]


def test_the_frame_is_never_the_largest() -> None:
    output, _ = MaxPool2d(2, padding=1).forward(np.full((1, 1, 2, 2), -5.0))
    assert (output == -5).all()


def test_windows_in_the_frame_alone_are_refused() -> None:
    """torch takes them, and writes beside its memory."""
    pool = MaxPool2d(2, stride=1, padding=1, dilation=[1, 3])
    message = (
        "MaxPool2d has windows that lie in the padding alone in dimension 3: the input has shape (1, 1, 2, 2), "
        "kernel_size is 2, dilation 3 and padding 1"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pool.forward(np.zeros((1, 1, 2, 2)))
    assert pool.output_shape((1, 1, 2, 3)) == (1, 1, 3, 2)


@pytest.mark.parametrize("num_dims", [1, 2, 3])
def test_infinity_and_what_is_no_number_as_in_torch(num_dims: int) -> None:
    """The frame of -infinity is the largest of no window, and of several NaNs the last one has the gradient."""
    generator = np.random.default_rng(0)
    for _ in range(30):
        kernel, dilation = (int(n) for n in generator.integers(2, 4, 2))
        settings = kernel, int(generator.integers(1, 3)), kernel // 2, dilation
        shape = (1, 2, *generator.integers(5, 8, num_dims))
        input = generator.choice([-np.inf, -np.inf, np.inf, np.nan, 0.0, 1.0], shape)
        ours = MAX[num_dims - 1](*settings)
        leaf = torch.from_numpy(input.copy()).requires_grad_()
        theirs = getattr(torch.nn, type(ours).__name__)(*settings)(leaf)
        output, saved = ours.forward(input)
        np.testing.assert_array_equal(output, theirs.detach().numpy())
        grad_output = generator.standard_normal(output.shape)
        theirs.backward(torch.from_numpy(grad_output))
        assert leaf.grad is not None
        np.testing.assert_allclose(ours.backward(saved, grad_output), leaf.grad.numpy(), rtol=1e-14, atol=1e-14)


@pytest.mark.slow
def test_a_window_of_more_numbers_than_16_bits_count() -> None:
    """It alone has a window of 70,000 numbers."""
    pool, image = MaxPool2d([1, 70_000]), np.zeros((1, 1, 1, 70_000))
    image[..., 69_999] = 5
    output, saved = pool.forward(image)
    assert output.item() == 5
    assert np.flatnonzero(pool.backward(saved, np.ones((1, 1, 1, 1)))).tolist() == [69_999]


@pytest.mark.parametrize("place", [0, 1, 3])
def test_not_a_number_is_the_largest(place: int) -> None:
    """As in torch: what is no number doesn't vanish."""
    input = np.arange(4.0)
    input[place] = np.nan
    assert np.isnan(MaxPool2d(2).forward(input.reshape(1, 1, 2, 2))[0]).all()


def test_bins_that_overlap() -> None:
    """Of 5 numbers the bins of 2 have the first and the last three, those of 3 have 2, 3 and 2."""
    input = np.array([[[[1.0, 2, 3, 4, 6]]]])
    output, saved = AdaptiveAvgPool2d([1, 2]).forward(input)
    np.testing.assert_allclose(output, [[[[2, 13 / 3]]]], rtol=1e-15)
    grad_input = AdaptiveAvgPool2d([1, 2]).backward(saved, np.array([[[[3.0, 30]]]]))
    np.testing.assert_allclose(grad_input, [[[[1, 1, 11, 10, 10]]]], rtol=1e-15)
    np.testing.assert_allclose(AdaptiveAvgPool2d([1, 3]).forward(input)[0], [[[[1.5, 3, 5]]]], rtol=1e-15)


@pytest.mark.parametrize(
    ("pool", "settings", "message"),
    [
        (MaxPool2d, (0,), "kernel_size must be at least 1, not 0"),
        (MaxPool2d, (2, 0), "stride must be at least 1, not 0"),
        (MaxPool2d, (3, 1, 2), "padding must be at most half of kernel_size=3, not 2"),
        (AvgPool2d, ([2, 4], 1, [2, 1]), "padding must be at most half of kernel_size=[2, 4], not [2, 1]"),
        (AdaptiveAvgPool2d, ([2, 0],), "output_size must be at least 1, not [2, 0]"),
        (AdaptiveAvgPool2d, ([3],), "output_size is one number, or a list of 2 for height, width, not [3]"),
        (AvgPool2d, ([1, 2, 3],), "kernel_size is one number, or a list of 2 for height, width, not [1, 2, 3]"),
    ],
)
def test_settings_that_are_refused(pool: Any, settings: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pool(*settings)


@pytest.mark.parametrize("pool", [MaxPool2d(3), AvgPool2d(3), AdaptiveAvgPool2d(1)])
def test_inputs_that_are_no_images(pool: Any) -> None:
    name = type(pool).__name__
    message = f"{name} takes (batch, channels, height, width), the input has shape (2, 3, 4)"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pool.forward(np.zeros((2, 3, 4)))


@pytest.mark.parametrize("pool", [MaxPool2d(3), AvgPool2d(3)])
def test_images_smaller_than_the_window(pool: Any) -> None:
    name = type(pool).__name__
    message = f"{name} has windows of 3 in dimension 2, the input has shape (1, 1, 2, 4) and a padding of 0"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        pool.forward(np.zeros((1, 1, 2, 4)))


def test_a_size_that_stays_is_no_size_of_a_sequence() -> None:
    """torch takes no None there, and a list of it couldn't be compared with anything."""
    with pytest.raises(TypeError, match=r"output_size must be .* a list of integers, not \[None\]"):
        AdaptiveAvgPool1d([None])  # type: ignore[list-item]


def test_what_is_not_finite_spreads_over_its_image_alone() -> None:
    """In torch, over its bins alone: here it is a product with a matrix, and 0 times infinity is not a number."""
    input = np.ones((2, 2, 4, 4))
    input[0, 1, 3, 1] = np.inf
    with np.errstate(invalid="ignore"):
        output, _ = AdaptiveAvgPool2d(2).forward(input)
    assert np.isnan(output[0, 1]).any()
    output[0, 1] = 1
    assert (output == 1).all()


@pytest.mark.parametrize(
    ("pool", "shape"), [example for owner in ADAPTIVE_MAX for example in owner.examples()], ids=repr
)
def test_the_largest_of_bins_in_loops(pool: Any, shape: Shape) -> None:
    input = np.random.default_rng(0).standard_normal(shape)
    output, saved = pool.forward(input)
    grad_output = np.random.default_rng(1).standard_normal(output.shape)
    expected, grad_input = np.empty(output.shape), np.zeros(shape)
    for n, c, *place in np.ndindex(output.shape):
        axes = zip(place, output.shape[2:], shape[2:], strict=True)
        bins = tuple(slice(at * size // count, math.ceil((at + 1) * size / count)) for at, count, size in axes)
        numbers = input[n, c][bins]
        expected[n, c, *place] = numbers.max()
        grad_input[n, c][bins][np.unravel_index(numbers.argmax(), numbers.shape)] += grad_output[n, c, *place]
    np.testing.assert_array_equal(output, expected)
    np.testing.assert_allclose(pool.backward(saved, grad_output), grad_input, rtol=1e-14)


@pytest.mark.parametrize("num_dims", [1, 2, 3])
def test_the_largest_of_bins_as_in_torch(num_dims: int) -> None:
    """Ties, infinity and NaN, with bins that overlap and more bins than numbers."""
    generator = np.random.default_rng(0)
    for _ in range(40):
        size, count = (generator.integers(1, 6, num_dims).tolist() for _ in range(2))
        input = generator.choice([-np.inf, np.inf, np.nan, 0.0, 0.0, 1.0], (1, 2, *size))
        leaf = torch.from_numpy(input.copy()).requires_grad_()
        theirs = getattr(torch.nn, f"AdaptiveMaxPool{num_dims}d")(count if num_dims > 1 else count[0])(leaf)
        ours = ADAPTIVE_MAX[num_dims - 1](count)
        output, saved = ours.forward(input)
        np.testing.assert_array_equal(output, theirs.detach().numpy())
        grad_output = generator.standard_normal(output.shape)
        theirs.backward(torch.from_numpy(grad_output))
        assert leaf.grad is not None
        np.testing.assert_allclose(ours.backward(saved, grad_output), leaf.grad.numpy(), rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("num_dims", [1, 2, 3])
def test_norms_as_in_torch(num_dims: int) -> None:
    """With windows beyond the image, and where the power takes them, windows that are all 0 and numbers below 0."""
    generator = np.random.default_rng(0)
    for norm_type in (1, 2, 2.0, 4, 3, 1.5, 0.5):
        for ceil_mode in (False, True):
            settings = norm_type, 3, int(generator.integers(1, 4))
            ours = LP[num_dims - 1](*settings, ceil_mode=ceil_mode)
            shape = 2, 2, *[5 + ceil_mode] * num_dims
            input = generator.integers(-2, 3, shape).astype(float)
            input[0] = 0
            if ours.domain == "positive":
                input = generator.integers(1, 4, shape).astype(float)
            leaf = torch.from_numpy(input.copy()).requires_grad_()
            theirs = getattr(torch.nn, f"LPPool{num_dims}d")(*settings, ceil_mode=ceil_mode)(leaf)
            output, saved = ours.forward(input)
            np.testing.assert_allclose(output, theirs.detach().numpy(), rtol=1e-13)
            grad_output = generator.standard_normal(output.shape)
            theirs.backward(torch.from_numpy(grad_output))
            assert leaf.grad is not None
            np.testing.assert_allclose(ours.backward(saved, grad_output), leaf.grad.numpy(), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("norm_type", [3, 1.5, 0.5])
def test_other_powers_of_positive_numbers_pass_the_check(norm_type: float) -> None:
    """No example has them: a net may give a layer any number."""
    layer = LPPool2d(norm_type, 2, stride=1)
    for case in layer_cases(layer, (2, 1, 3, 3), "float32", seed=0, upstreams=["random"]):
        assert case.failure is None, case


@pytest.mark.parametrize("norm_type", [3, 1.5, 0.5])
def test_other_powers_of_negative_numbers_are_nan_as_in_torch(norm_type: float) -> None:
    """Or their sum has a root that is NaN."""
    input = np.array([[[-2.0, -1, 0, 0, 1, 2, -2, 1, 0, 1, 0, -1]]])
    with np.errstate(invalid="ignore", divide="ignore"):
        output, saved = LPPool1d(norm_type, 2).forward(input)
        grad_input = LPPool1d(norm_type, 2).backward(saved, np.ones_like(output))
    leaf = torch.from_numpy(input.copy()).requires_grad_()
    theirs = torch.nn.LPPool1d(norm_type, 2)(leaf)
    theirs.sum().backward()
    assert leaf.grad is not None
    assert np.isnan(output).tolist() == [[[True, False, False, True, False, True]]]
    np.testing.assert_allclose(output, theirs.detach().numpy(), rtol=1e-14)
    np.testing.assert_allclose(grad_input, leaf.grad.numpy(), rtol=1e-14)


def test_norms_by_hand() -> None:
    """sqrt(9 + 16) = 5; the gradient of 3 is 3 / 5."""
    pool = LPPool1d(2, 2)
    output, saved = pool.forward(np.array([[[3.0, 4, 0, 0]]]))
    assert output.tolist() == [[[5, 0]]]
    np.testing.assert_allclose(pool.backward(saved, np.array([[[10.0, 10]]])), [[[6, 8, 0, 0]]], rtol=1e-15)


@pytest.mark.parametrize("norm_type", [0, -2, math.inf, math.nan])
def test_a_power_out_of_range(norm_type: float) -> None:
    with pytest.raises(ValueError, match=r"^norm_type must be above 0 and finite, not"):
        LPPool1d(norm_type, 2)
