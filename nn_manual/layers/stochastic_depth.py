"""Stochastic depth: branches that are left out at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from nn_manual.arrays import Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.dropout import Dropout, draw_mask
from nn_manual.streams import RowGenerator


@dataclass(eq=False)
class StochasticDepth(Dropout):
    """Whole examples are zeroed at random in training, each with probability p, or the whole batch is.

        output     = input * mask
        grad_input = grad_output * mask

    It stands at the end of a residual branch, `Residual(Linear(8, 8), ReLU(), StochasticDepth(0.2, "row"))`: where the
    mask is 0, the branch is left out, and the net is less deep. With the mode `row` the mask (batch, 1, ...) has a
    number for each example: 0 with probability p, and otherwise 1 / (1 - p). With the mode `batch` one number, drawn in
    the same way, is that of all examples. In evaluation, the output is the input.

    Derivation: as for Dropout. Source: Huang et al., 2016; the names are those of torchvision.ops.StochasticDepth.
    Raises ValueError for p outside 0 to 1, another mode, and an input without a batch.
    """

    p: float = field()  # torchvision has no default
    mode: Literal["batch", "row"]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mode not in ("batch", "row"):
            raise ValueError(f"mode must be batch or row, not {self.mode!r}")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Some examples are kept and some not; the whole batch is or isn't; all are kept; more dimensions."""
        return [
            (cls(0.5, "row"), (8, 3)),
            (cls(0.4, "batch"), (4, 3)),
            (cls(0.0, "row"), (3, 3)),
            (cls(0.25, "row"), (6, 2, 1, 3)),
        ]

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if not input_shape:
            raise ValueError("StochasticDepth takes (batch, ...), the input has shape ()")
        return input_shape

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """mask (batch, 1, ...)."""
        return {"mask": (*self.output_shape(input_shape)[:1], *[1] * (len(input_shape) - 1))}

    def draw_noise(self, generator: RowGenerator) -> None:
        """0 or 1 / (1 - p), for each example or for all."""
        draw_mask(self.noise.mask, self.p, generator, of_batch=self.mode == "batch")

    def infer_reference(self, input: Any) -> Any:
        """The input."""
        return input
