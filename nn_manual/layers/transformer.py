"""The encoder of a Transformer: attention and a feed-forward net, each in a Residual, with a LayerNorm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from nn_manual.arrays import Shape
from nn_manual.layers.activations import GELU, ReLU
from nn_manual.layers.attention import SelfAttention
from nn_manual.layers.base import Layer
from nn_manual.layers.chain import Chain
from nn_manual.layers.containers import Residual
from nn_manual.layers.dropout import Dropout
from nn_manual.layers.linear import Linear
from nn_manual.layers.normalization import LayerNorm
from nn_manual.layers.recurrent import MAX_LAYERS
from nn_manual.layers.self_attention import (
    CausalSelfAttention,
    MultiheadAttention,
)
from nn_manual.layers.shape import Identity


@dataclass(eq=False)
class TransformerEncoderLayer(Chain):
    """Self-attention, then a feed-forward net for each time alone; input and output (batch, time, d_model).

        attend(x)       = dropout1(self_attn(x))
        feed_forward(x) = dropout2(linear2(dropout(activation(linear1(x)))))

        attended        = norm1(input + attend(input))                         where norm_first = False
        output          = norm2(attended + feed_forward(attended))             where norm_first = False
        attended        = input + attend(norm1(input))                         where norm_first = True
        output          = attended + feed_forward(norm2(attended))             where norm_first = True

    self_attn is a MultiheadAttention of `nhead` heads, with `dropout` of its probabilities, too; where `causal`, it is
    a CausalSelfAttention. A `window` is the attention's, as SelfAttention has it. linear1 is a Linear to
    `dim_feedforward` features, linear2 one back to d_model; `activation` is relu or gelu; norm1 and norm2 LayerNorms
    with `layer_norm_eps`. `bias` says whether all of them have one. The names of the parameters are torch's:
    self_attn.in_proj_weight, linear1.weight, norm1.weight, ...

    Derivation: each sum is that of a Residual, whose input goes two ways; the rest is the chain rule. So the layer is
    two Residuals and two LayerNorms in a row, or two Residuals that begin with the LayerNorms.

    Source: Vaswani et al., 2017; norm_first: Xiong et al., 2020. Raises ValueError for sizes below 1, heads that don't
    divide d_model, a dropout outside 0 to 1, another activation, an input of another shape, and a gradient that is not
    shaped as the output.
    """

    d_model: int
    nhead: int
    dim_feedforward: int = 2048
    dropout: float = 0.1
    activation: Literal["relu", "gelu"] = "relu"
    layer_norm_eps: float = 1e-5
    norm_first: bool = field(default=False, kw_only=True)  # before it, torch has batch_first
    bias: bool = field(default=True, kw_only=True)
    causal: bool = field(default=False, kw_only=True)
    window: int | None = field(default=None, kw_only=True)

    #: What self_attn is, where `causal` and where not.
    attention: ClassVar[dict[bool, type[SelfAttention]]] = {True: CausalSelfAttention, False: MultiheadAttention}

    def __post_init__(self) -> None:
        for name in ("d_model", "nhead", "dim_feedforward"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.d_model % self.nhead:
            raise ValueError(f"nhead must divide d_model={self.d_model}, {self.nhead} doesn't")
        if self.activation not in ("relu", "gelu"):
            raise ValueError(f"activation must be relu or gelu, not {self.activation!r}")
        if not self.layer_norm_eps >= 0:
            raise ValueError(f"layer_norm_eps must be at least 0, not {self.layer_norm_eps}")
        attention = self.attention[self.causal]
        self.self_attn = attention(self.d_model, self.nhead, self.dropout, self.bias, window=self.window)
        self.linear1 = Linear(self.d_model, self.dim_feedforward, self.bias)
        self.activated = ReLU() if self.activation == "relu" else GELU()
        self.linear2 = Linear(self.dim_feedforward, self.d_model, self.bias)
        self.norm1, self.norm2 = (LayerNorm(self.d_model, self.layer_norm_eps, bias=self.bias) for _ in range(2))
        # Where nothing is dropped, no random numbers are drawn.
        self.dropouts = [Dropout(self.dropout) if self.dropout else Identity() for _ in range(3)]
        dropout, dropout1, dropout2 = self.dropouts
        attend = [self.self_attn, dropout1]
        feed_forward = [self.linear1, self.activated, dropout, self.linear2, dropout2]
        if self.norm_first:
            self.chain = [Residual(self.norm1, *attend), Residual(self.norm2, *feed_forward)]
        else:
            self.chain = [Residual(*attend), self.norm1, Residual(*feed_forward), self.norm2]

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """The norms behind and in front, both activations, with dropout and without, without bias, with a window."""
        return [
            (cls(4, 2, 3, dropout=0.25), (2, 3, 4)),
            (cls(4, 2, 5, dropout=0, norm_first=True), (3, 4, 4)),
            (cls(6, 3, 4, activation="gelu", norm_first=True), (2, 3, 6)),
            (cls(4, 1, 4, dropout=0, activation="gelu", layer_norm_eps=0.1, bias=False), (4, 4, 4)),
            (cls(4, 2, 3, dropout=0, causal=True, window=2), (2, 4, 4)),
        ]

    def children(self) -> dict[str, Layer]:
        """By torch's names, in torch's order."""
        dropout, dropout1, dropout2 = self.dropouts
        return {
            "self_attn": self.self_attn,
            "linear1": self.linear1,
            "activation": self.activated,
            "dropout": dropout,
            "linear2": self.linear2,
            "norm1": self.norm1,
            "norm2": self.norm2,
            "dropout1": dropout1,
            "dropout2": dropout2,
        }

    def input_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """Between linear1 and linear2 there are dim_feedforward features."""
        inside = (*input_shape[:-1], self.dim_feedforward)
        return dict.fromkeys(self.children(), input_shape) | dict.fromkeys(("activation", "dropout", "linear2"), inside)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The input's shape."""
        if len(input_shape) != 3 or input_shape[2] != self.d_model:
            words = f"takes (batch, time, d_model={self.d_model}), the input has shape {input_shape}"
            raise ValueError(f"{type(self).__name__} {words}")
        return input_shape

    def reference(
        self,
        input: Any,
        self_attn: Callable[[Any], Any],
        linear1: Callable[[Any], Any],
        activation: Callable[[Any], Any],
        dropout: Callable[[Any], Any],
        linear2: Callable[[Any], Any],
        norm1: Callable[[Any], Any],
        norm2: Callable[[Any], Any],
        dropout1: Callable[[Any], Any],
        dropout2: Callable[[Any], Any],
    ) -> Any:
        """The definition, on torch tensors: torch's class would draw other masks, and is no chain to compare with."""

        def attend(x: Any) -> Any:
            return dropout1(self_attn(x))

        def feed_forward(x: Any) -> Any:
            return dropout2(linear2(dropout(activation(linear1(x)))))

        if self.norm_first:
            attended = input + attend(norm1(input))
            return attended + feed_forward(norm2(attended))
        attended = norm1(input + attend(input))
        return norm2(attended + feed_forward(attended))


@dataclass(eq=False)
class TransformerEncoder(Chain):
    """Copies of a layer one after the other, and a `norm` behind them, if one is given.

        output = layers[num_layers - 1](... layers[1](layers[0](input)))
        output = norm(layers[num_layers - 1](...))                         where norm is given

    The encoder_layer itself isn't in the encoder: as in torch, its copies are. Their parameters are
    layers.0.self_attn.in_proj_weight, ..., those of the norm norm.weight, ... torch's copies start from equal values;
    here, each draws its own.

    Derivation: the chain rule. The gradient with respect to a layer's output is the one with respect to the next
    layer's input.

    Raises ValueError for num_layers below 1 or above 1000, and as its layers do; TypeError for another encoder_layer
    than a TransformerEncoderLayer, and for another norm than a LayerNorm.
    """

    encoder_layer: TransformerEncoderLayer
    num_layers: int
    norm: LayerNorm | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.encoder_layer, TransformerEncoderLayer):
            raise TypeError(f"encoder_layer must be a TransformerEncoderLayer, not {self.encoder_layer!r}")
        if not (self.norm is None or isinstance(self.norm, LayerNorm)):
            raise TypeError(f"norm must be a LayerNorm, not {self.norm!r}")
        if not 1 <= self.num_layers <= MAX_LAYERS:
            raise ValueError(f"num_layers must be between 1 and {MAX_LAYERS}, not {self.num_layers}")
        self.layers = [replace(self.encoder_layer) for _ in range(self.num_layers)]
        self.chain = [*self.layers, *([] if self.norm is None else [self.norm])]

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One layer, and two with a norm behind them."""
        return [
            (cls(TransformerEncoderLayer(4, 2, 3), 1), (2, 3, 4)),
            (cls(TransformerEncoderLayer(4, 1, 4, dropout=0, norm_first=True), 2, LayerNorm(4)), (4, 4, 4)),
        ]

    def children(self) -> dict[str, Layer]:
        """By torch's names: "layers.0", "layers.1", ..., "norm"."""
        layers: dict[str, Layer] = {f"layers.{index}": layer for index, layer in enumerate(self.layers)}
        return layers if self.norm is None else layers | {"norm": self.norm}

    def reference(self, input: Any, *layers: Callable[[Any], Any]) -> Any:
        """The definition, on torch tensors."""
        output = input
        for layer in layers:
            output = layer(output)
        return output
