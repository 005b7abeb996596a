"""SwiGLU: the feed-forward net of LLaMA, in which one map opens the gates of another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nn_manual.arrays import Array, Shape
from nn_manual.layers.activations import SiLU
from nn_manual.layers.base import Layer
from nn_manual.layers.composite import Composite
from nn_manual.layers.linear import Linear


@dataclass(eq=False)
class SwiGLU(Composite):
    """A feed-forward net whose `hidden_features` are products of two maps, input and output (..., in_features).

        gate   = activation(gate_proj(input))
        up     = up_proj(input)
        output = down_proj(gate * up)

        grad_gate  = grad_product * up
        grad_up    = grad_product * gate
        grad_input = grad_input of gate_proj + grad_input of up_proj

    gate_proj and up_proj are Linears to hidden_features, down_proj is one back, all without bias; activation is SiLU.
    grad_product is the gradient that down_proj returns for grad_output; grad_gate goes back through activation and
    gate_proj, grad_up through up_proj. The parameters have the names that they have in LLaMA: gate_proj.weight,
    up_proj.weight, down_proj.weight.

    Derivation: the product rule, d (gate up) = up d gate + gate d up. The input goes two ways, so the gradients of the
    two ways add. Source: Shazeer, 2020; Touvron et al., 2023. Raises ValueError for sizes below 1, an input whose last
    dimension is not in_features, and a gradient that is not shaped as the output.
    """

    in_features: int
    hidden_features: int

    torch_class = None

    def __post_init__(self) -> None:
        for name in ("in_features", "hidden_features"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        self.gate_proj, self.up_proj = (Linear(self.in_features, self.hidden_features, bias=False) for _ in range(2))
        self.activation = SiLU()
        self.down_proj = Linear(self.hidden_features, self.in_features, bias=False)

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """More hidden features and fewer, sequences, and all square."""
        return [(cls(3, 5), (4, 3)), (cls(4, 2), (2, 3, 4)), (cls(3, 3), (3, 3))]

    def children(self) -> dict[str, Layer]:
        """By LLaMA's names, in the order in which they run."""
        return {
            "gate_proj": self.gate_proj,
            "activation": self.activation,
            "up_proj": self.up_proj,
            "down_proj": self.down_proj,
        }

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if input_shape[-1:] != (self.in_features,):
            words = f"takes in_features={self.in_features} in the last dimension, the input has shape {input_shape}"
            raise ValueError(f"SwiGLU {words}")
        return input_shape

    def forward(self, input: Array) -> tuple[Array, Any]:
        """The output. Saved are both factors, and what each layer saved."""
        self.output_shape(input.shape)
        opened, of_gate = self.gate_proj.forward(input)
        gate, of_activation = self.activation.forward(opened)
        up, of_up = self.up_proj.forward(input)
        output, of_down = self.down_proj.forward(gate * up)
        return output, (gate, up, of_gate, of_activation, of_up, of_down)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """Overwrite the layers' gradients and return grad_input."""
        gate, up, of_gate, of_activation, of_up, of_down = saved
        self.check_gradient(grad_output, (*up.shape[:-1], self.in_features))
        grad_product = self.down_proj.backward(of_down, grad_output)
        grad_opened = self.activation.backward(of_activation, grad_product * up)
        return self.gate_proj.backward(of_gate, grad_opened) + self.up_proj.backward(of_up, grad_product * gate)

    def reference(
        self,
        input: Any,
        gate_proj: Callable[[Any], Any],
        activation: Callable[[Any], Any],
        up_proj: Callable[[Any], Any],
        down_proj: Callable[[Any], Any],
    ) -> Any:
        """The definition, on torch tensors."""
        return down_proj(activation(gate_proj(input)) * up_proj(input))
