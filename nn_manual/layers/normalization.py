"""Normalization: each example shifted and scaled to mean 0 and variance 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nn_manual.arrays import Array, Shape, size_of
from nn_manual.layers.base import Layer
from nn_manual.layers.fast_forms import mean_over, sum_rows


@dataclass(eq=False)
class OverLastDimensions(Layer):
    """A layer that works on the last dimensions of its input, (..., *normalized_shape), and keeps the shape.

    `normalized_shape` is a list of sizes, or one size. Raises ValueError for no size, or one below 1.
    """

    normalized_shape: int | list[int]

    def __post_init__(self) -> None:
        if not self.shape or min(self.shape) < 1:
            raise ValueError(
                f"normalized_shape must be a size of at least 1, or a list of such sizes, not {self.normalized_shape}"
            )

    @property
    def shape(self) -> Shape:
        """`normalized_shape` as a tuple."""
        return (self.normalized_shape,) if isinstance(self.normalized_shape, int) else tuple(self.normalized_shape)

    @property
    def axes(self) -> tuple[int, ...]:
        """The last dimensions, counted from the end."""
        return tuple(range(-len(self.shape), 0))

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape. Raises ValueError if its last dimensions aren't normalized_shape."""
        if input_shape[-len(self.shape) :] != self.shape:
            raise ValueError(
                f"{type(self).__name__} takes normalized_shape={self.normalized_shape} in the last "
                f"{'dimension' if len(self.shape) == 1 else 'dimensions'}, the input has shape {input_shape}"
            )
        return input_shape

    def examples_as_rows(self, array: Array) -> Array:
        """(..., *normalized_shape) as (examples, size): the formulas are computed in this form."""
        return array.reshape(-1, size_of(self.shape))


class OfRows(Layer):
    """Normalization of rows (rows, size), each by itself, to mean 0 and variance 1: LayerNorm's formulas, for layers
    that shape their input as rows.
    """

    eps: float

    def _normalized_rows(self, input: Array) -> tuple[Array, Array, Array, Array]:
        """`normalized`; and `std`, the mean and the variance, each (rows, 1)."""
        mean = mean_over(input, 1)
        centered = input - mean
        variance = mean_over(centered * centered, 1)
        std = np.sqrt(variance + self.eps)
        normalized = np.divide(centered, std, out=centered)
        return normalized, std, mean, variance


@dataclass(eq=False)
class LayerNorm(OfRows, OverLastDimensions):
    """Normalization over the last dimensions, input (..., *normalized_shape) to output of the same shape.

    `normalized_shape` is a list of sizes, or one size. Parameters: weight and bias, each of that shape; none of them if
    `elementwise_affine` is false, no bias if `bias` is false. `axes` are these last dimensions, `leading` the others:

        std             = sqrt(input.var(axes, keepdims=True) + eps)
        normalized      = (input - input.mean(axes, keepdims=True)) / std
        output          = normalized * weight + bias
        grad_normalized = grad_output * weight
        projection      = (grad_normalized * normalized).mean(axes, keepdims=True)
        grad_input      = (grad_normalized - grad_normalized.mean(axes, keepdims=True) - normalized * projection) / std
        grad_weight     = (grad_output * normalized).sum(leading)
        grad_bias       = grad_output.sum(leading)

    Derivation, for one example x of F numbers, with mean m, c[i] = x[i] - m, variance v = sum_i c[i]**2 / F,
    s = sqrt(v + eps), and h[i] = c[i] / s. With d[i, j], which is 1 where i = j and 0 elsewhere:

        dc[i] / dx[j] = d[i, j] - 1 / F
        dv / dx[j]    = 2 / F sum_i c[i] (d[i, j] - 1 / F) = 2 c[j] / F,   since the c[i] add up to 0
        ds / dx[j]    = 1 / (2 s) dv / dx[j] = h[j] / F
        dh[i] / dx[j] = (dc[i] / dx[j] - h[i] ds / dx[j]) / s = (d[i, j] - 1 / F - h[i] h[j] / F) / s

    So with g = grad_normalized, grad_input[j] = sum_i g[i] dh[i] / dx[j] = (g[j] - mean(g) - h[j] mean(g h)) / s. The
    parts of g along equal numbers and along h are taken out: a shift of x doesn't change h, and but for eps a scale
    doesn't either. The output h[i] weight[i] + bias[i] has the derivatives weight[i], h[i] and 1; for the two
    parameters they are summed over all examples.

    The variance is the mean of c**2, never mean(x**2) - mean(x)**2, which cancels if the mean is large. For a single
    number, or for equal ones, the output is the bias, and the rounding error of their mean.

    Raises ValueError for a size below 1, a negative eps, an input whose last dimensions are not normalized_shape, and a
    gradient that is not shaped as the output.
    """

    eps: float = 1e-5
    elementwise_affine: bool = True
    bias: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.eps >= 0:
            raise ValueError(f"eps must be at least 0, not {self.eps}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One and two dimensions, with and without parameters, with two leading dimensions, and all square."""
        return [
            (cls(3), (4, 3)),
            (cls([2, 3]), (4, 2, 3)),
            (cls(3, bias=False), (2, 5, 3)),
            (cls(4, elementwise_affine=False), (3, 4)),
            (cls(3, eps=0.1), (3, 3)),
        ]

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight and bias, each of normalized_shape."""
        names = ("weight", "bias") if self.bias else ("weight",)
        return dict.fromkeys(names, self.shape) if self.elementwise_affine else {}

    def reset_parameters(self, generator: np.random.Generator) -> None:  # noqa: ARG002 - nothing is drawn
        """weight 1 and bias 0, as torch.nn.LayerNorm."""
        for name, parameter in vars(self.param).items():
            parameter[...] = 1 if name == "weight" else 0

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        """The output. Saved are `normalized` and `std`."""
        self.output_shape(input.shape)
        shape = input.shape
        normalized, std, *_ = self._normalized_rows(self.examples_as_rows(input))
        output = normalized
        if self.elementwise_affine:
            output = output * self.param.weight.ravel()
            if self.bias:
                output += self.param.bias.ravel()
        return output.reshape(shape), (normalized.reshape(shape), std)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        """Write grad_weight and grad_bias, return grad_input."""
        normalized, std = saved
        self.check_gradient(grad_output, normalized.shape)
        normalized = self.examples_as_rows(normalized)
        grad_normalized = grad_rows = self.examples_as_rows(grad_output)
        if self.elementwise_affine:
            sum_rows(grad_rows * normalized, out=self.grad.weight.reshape(-1))
            if self.bias:
                sum_rows(grad_rows, out=self.grad.bias.reshape(-1))
            grad_normalized = grad_rows * self.param.weight.ravel()
        return self._grad_of_rows(grad_normalized, normalized, std).reshape(grad_output.shape)

    def _grad_of_rows(self, grad_normalized: Array, normalized: Array, std: Array) -> Array:
        """`grad_input`."""
        grad_input: Array = grad_normalized - mean_over(grad_normalized, 1)
        projection = mean_over(grad_normalized * normalized, 1)
        grad_input -= normalized * projection
        grad_input /= std
        return grad_input


@dataclass(eq=False)
class RMSNorm(OverLastDimensions):
    """Scaling to mean square 1 over the last dimensions, input (..., *normalized_shape) to output of the same shape.

    `normalized_shape` is a list of sizes, or one size. Parameter, if `elementwise_affine`: weight of that shape. If
    `eps` is None, it is the distance from 1 to the next number of the input's dtype. `axes` are these last dimensions,
    `leading` the others:

        rms             = sqrt((input * input).mean(axes, keepdims=True) + eps)
        normalized      = input / rms
        output          = normalized * weight
        grad_normalized = grad_output * weight
        projection      = (grad_normalized * normalized).mean(axes, keepdims=True)
        grad_input      = (grad_normalized - normalized * projection) / rms
        grad_weight     = (grad_output * normalized).sum(leading)

    Derivation: as for LayerNorm, without the mean. With x of F numbers, r = rms and h = x / r,
    d r / d x[j] = x[j] / (F r) = h[j] / F, so d h[i] / d x[j] = ([i = j] - h[i] h[j] / F) / r.

    Source: Zhang and Sennrich, 2019. Raises ValueError for a size below 1, a negative eps, an input whose last
    dimensions are not normalized_shape, and a gradient that is not shaped as the output.
    """

    eps: float | None = None
    elementwise_affine: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.eps is not None and not self.eps >= 0:
            raise ValueError(f"eps must be at least 0, not {self.eps}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One and two dimensions, with and without weight, with two leading dimensions, and all square."""
        return [
            (cls(3), (4, 3)),
            (cls([2, 3], eps=0.1), (4, 2, 3)),
            (cls(4, elementwise_affine=False), (2, 3, 4)),
            (cls(3, eps=1e-5), (3, 3)),
        ]

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight of normalized_shape."""
        return {"weight": self.shape} if self.elementwise_affine else {}

    def reset_parameters(self, generator: np.random.Generator) -> None:  # noqa: ARG002 - nothing is drawn
        """weight 1, as torch.nn.RMSNorm."""
        if self.elementwise_affine:
            self.param.weight[...] = 1

    def forward(self, input: Array) -> tuple[Array, tuple[Array, Array]]:
        """The output. Saved are `normalized` and `rms`."""
        self.output_shape(input.shape)
        shape, input = input.shape, self.examples_as_rows(input)
        eps = np.finfo(input.dtype).eps if self.eps is None else self.eps
        rms = np.sqrt((input * input).mean(axis=1, keepdims=True) + eps)
        normalized = input / rms
        output = normalized * self.param.weight.ravel() if self.elementwise_affine else normalized
        return output.reshape(shape), (normalized.reshape(shape), rms)

    def backward(self, saved: tuple[Array, Array], grad_output: Array) -> Array:
        """Write grad_weight, return grad_input."""
        normalized, rms = saved
        self.check_gradient(grad_output, normalized.shape)
        normalized = self.examples_as_rows(normalized)
        grad_normalized = grad_rows = self.examples_as_rows(grad_output)
        if self.elementwise_affine:
            sum_rows(grad_rows * normalized, out=self.grad.weight.reshape(-1))
            grad_normalized = grad_rows * self.param.weight.ravel()
        projection = (grad_normalized * normalized).mean(axis=1, keepdims=True)
        grad_input: Array = grad_normalized - normalized * projection
        grad_input /= rms
        return grad_input.reshape(grad_output.shape)
