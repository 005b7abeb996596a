"""Recurrent layers: the output of each time is an input of the next one."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.dropout import check_mask, draw_mask
from nn_manual.layers.fast_forms import rows, sum_rows
from nn_manual.layers.with_noise import LayerWithNoise
from nn_manual.streams import RowGenerator

#: Each layer has parameters of its own. For a million layers, their names and shapes alone take minutes to write down.
MAX_LAYERS = 1000

#: An array (time, ...) with its times from the last to the first.
TurnTime: TypeAlias = Callable[[Array], Array]


def _as_it_is(array: Array) -> Array:
    return array


def reversed_time(array: Array) -> Array:
    """The times of an array (time, ...) from the last to the first, as a view."""
    return array[::-1]


class _Stack(NamedTuple):
    """What backward needs: of each layer, what each of its ways does; and the mask behind each layer but the last one,
    time first. Without dropout there are none.
    """

    layers: list[list[Any]]
    masks: list[Array]


@dataclass(eq=False)
class Recurrent(LayerWithNoise):
    """What all recurrent layers share: layers on top of each other, and two directions.

    Input (time, batch, input_size), output (time, batch, hidden_size); with `batch_first`, batch and time change
    places. Each of the `num_layers` reads the output of the one before it. Where `bidirectional`, each layer runs two
    ways, with parameters of its own for each: through the times as they are, and from the last to the first. At each
    time, its output is the outputs of both ways side by side, (time, batch, 2 hidden_size):

        output     = concatenate([one_way(input), one_way_reverse(input[::-1])[::-1]], axis=2)
        grad_input = grad_one_way(grad_output[:, :, :hidden_size])
                     + grad_one_way_reverse(grad_output[::-1, :, hidden_size:])[::-1]

    In training with `dropout`, layer k + 1 reads the output of layer k times mask_lk. The mask, shaped as that output
    with the input's order of batch and time, is 0 with that probability, and otherwise 1 / (1 - dropout). The last
    layer's output has none. In evaluation there are no masks.

    Derivation: the input goes both ways, so its gradients add. Turning the time around only moves numbers, so their
    gradients are moved back. A mask doesn't depend on the input: what comes back is multiplied by it, as in Dropout.

    Parameters of layer k, with torch's names: weight_ih_lk (gates, size of its input), weight_hh_lk (gates,
    state_size), and where `bias`, bias_ih_lk and bias_hh_lk, (gates,) each, where gates is NUM_GATES * hidden_size, and
    state_size is hidden_size unless a layer says otherwise; those of the way back end in _reverse.

    Raises ValueError for sizes below 1, a dropout outside 0 to 1, or above 0 with one layer, which has nothing between
    layers, an input of another shape, and a gradient that is not shaped as the output.
    """

    #: How many rows each hidden number has in the weights.
    NUM_GATES: ClassVar[int]

    input_size: int
    hidden_size: int
    num_layers: int = 1
    bias: bool = True
    batch_first: bool = False
    dropout: float = 0.0
    bidirectional: bool = False

    def __post_init__(self) -> None:
        for name in ("input_size", "hidden_size", "num_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.num_layers > MAX_LAYERS:
            raise ValueError(f"num_layers must be at most {MAX_LAYERS}, not {self.num_layers}")
        if not 0 <= self.dropout <= 1:
            raise ValueError(f"dropout must be between 0 and 1, not {self.dropout}")
        if self.dropout and self.num_layers == 1:
            raise ValueError(f"dropout={self.dropout} stands between layers: it needs num_layers of at least 2, not 1")

    @abstractmethod
    def one_way(self, parameters: list[Array], input: Array) -> Any:
        """Run one layer through the times as they are, from a state of zeros. Returns a NamedTuple with what backward
        needs: its `input` and its `output` are the layer's, (time, batch, ...).
        """

    @abstractmethod
    def one_way_backward(self, parameters: list[Array], grads: list[Array], saved: Any, grad_output: Array) -> Array:
        """Write the gradients of the parameters to `grads`, return grad_input."""

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One layer and two, the batch first, without bias and all square, a single time, two ways, and dropout."""
        return [
            (cls(3, 2), (4, 2, 3)),
            (cls(2, 3, num_layers=2, batch_first=True), (2, 3, 2)),
            (cls(3, 3, bias=False), (3, 3, 3)),
            (cls(2, 2), (1, 3, 2)),
            (cls(2, 3, num_layers=2, bidirectional=True), (3, 2, 2)),
            (cls(3, 2, num_layers=3, dropout=0.25, batch_first=True), (4, 2, 3)),
        ]

    def parameter_shapes(self) -> dict[str, Shape]:
        """weight_ih_lk, weight_hh_lk, bias_ih_lk and bias_hh_lk of each layer k, then those of its way back."""
        gates, shapes = self.NUM_GATES * self.hidden_size, dict[str, Shape]()
        for k in range(self.num_layers):
            size = self.output_size if k else self.input_size
            for suffix, _ in self._ways(k, reversed_time):
                shapes |= {f"weight_ih{suffix}": (gates, size), f"weight_hh{suffix}": (gates, self.state_size)}
                if self.bias:
                    shapes |= dict.fromkeys((f"bias_ih{suffix}", f"bias_hh{suffix}"), (gates,))
        return shapes

    def reset_parameters(self, generator: np.random.Generator) -> None:
        """All uniform in ±1/sqrt(hidden_size), as torch's."""
        self.fill_uniformly(self.hidden_size, generator)

    def initialize(self, fill: Callable[[str], None]) -> None:
        """The weights from the initializer, the biases 0."""
        for name, parameter in vars(self.param).items():
            if name.startswith("weight"):
                fill(name)
            else:
                parameter[...] = 0

    @property
    def state_size(self) -> int:
        """How many numbers of a time the next time reads."""
        return self.hidden_size

    @property
    def output_size(self) -> int:
        """state_size, twice where there are two ways."""
        return self.state_size * (1 + self.bidirectional)

    @property
    def draws(self) -> bool:
        """Whether there is dropout."""
        return self.dropout > 0

    def noise_shapes(self, input_shape: Shape) -> dict[str, Shape]:
        """mask_lk for each layer k but the last one, shaped as the output, if there is dropout."""
        return dict.fromkeys(self._masks(), self.output_shape(input_shape))

    def draw_noise(self, generator: RowGenerator) -> None:
        """0 or 1 / (1 - dropout)."""
        for name in self._masks():
            draw_mask(vars(self.noise)[name], self.dropout, generator)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The last size becomes output_size."""
        if len(input_shape) != 3 or input_shape[2] != self.input_size or input_shape[self.batch_first] < 1:
            order, name = "batch, time" if self.batch_first else "time, batch", type(self).__name__
            raise ValueError(f"{name} takes ({order}, input_size={self.input_size}), the input has shape {input_shape}")
        return (*input_shape[:2], self.output_size)

    def forward(self, input: Array) -> tuple[Array, Any]:
        """The output, and what backward needs."""
        for name in self._masks():
            check_mask(self, input.shape, name)
        return self.run(input, [self._swapped(vars(self.noise)[name]) for name in self._masks()])

    def infer(self, input: Array) -> Array:
        """The output without dropout."""
        return self.run(input, [])[0]

    def run(self, input: Array, masks: list[Array]) -> tuple[Array, Any]:
        """The output with these masks, time first, or without any, and what backward needs."""
        self.output_shape(input.shape)
        output, saved = self.stacked(self._swapped(input), reversed_time, masks)
        return self._swapped(output), saved

    def stacked(self, input: Array, turn: TurnTime, masks: list[Array]) -> tuple[Array, _Stack]:
        """All layers, time first. `turn` turns the time around, and a second time back."""
        output, layers = input, []
        for k in range(self.num_layers):
            ways = self._ways(k, turn)
            layers.append([self.one_way(self._of(self.param, suffix), turned(output)) for suffix, turned in ways])
            outputs = [turned(way.output) for way, (_, turned) in zip(layers[k], ways, strict=True)]
            output = np.concatenate(outputs, axis=2) if self.bidirectional else outputs[0]
            if k < len(masks):
                output = output * masks[k]
        return output, _Stack(layers, masks)

    def backward(self, saved: Any, grad_output: Array) -> Array:
        """Write the gradients of the parameters, return grad_input."""
        time, batch = saved.layers[0][0].input.shape[:2]
        shape = (batch, time) if self.batch_first else (time, batch)
        self.check_gradient(grad_output, (*shape, self.output_size))
        grad_input = self.stacked_backward(saved, self._swapped(grad_output), reversed_time)
        return self._swapped(grad_input)

    def stacked_backward(self, saved: _Stack, grad_output: Array, turn: TurnTime) -> Array:
        """grad_input of all layers, time first, with the same `turn`."""
        grad = grad_output
        for k in reversed(range(self.num_layers)):
            grad_inputs, size = [], self.state_size
            if k < len(saved.masks):
                grad = grad * saved.masks[k]
            for (suffix, turned), way, start in zip(self._ways(k, turn), saved.layers[k], (0, size), strict=False):
                parameters, grads = self._of(self.param, suffix), self._of(self.grad, suffix)
                grad_way = turned(grad[:, :, start : start + size])
                grad_inputs.append(turned(self.one_way_backward(parameters, grads, way, grad_way)))
            grad = np.add(*grad_inputs) if self.bidirectional else grad_inputs[0]
        return grad

    def over_all_times(
        self, parameters: list[Array], grads: list[Array], saved: Any, grad_ih: Array, grad_hh: Array
    ) -> Array:
        """What the gradients of both affine maps, (time, batch, gates), come to over all times: write the gradients of
        the parameters, return grad_input. The map of the state begins from zeros at the first time.
        """
        weight_ih, grad_weight_ih, grad_weight_hh, *grad_biases = parameters[0], *grads
        np.matmul(rows(grad_ih).T, rows(saved.input), out=grad_weight_ih)
        np.matmul(rows(grad_hh[1:]).T, rows(saved.output[:-1]), out=grad_weight_hh)
        for grad_bias, grad in zip(grad_biases, (grad_ih, grad_hh), strict=False):  # there may be no biases
            sum_rows(grad, out=grad_bias)
        grad_input: Array = rows(grad_ih) @ weight_ih
        return grad_input.reshape(saved.input.shape)

    def _masks(self) -> list[str]:
        """The names of the masks, which stand behind each layer but the last one."""
        return [f"mask_l{k}" for k in range(self.num_layers - 1)] if self.dropout else []

    def _ways(self, k: int, turn: TurnTime) -> list[tuple[str, TurnTime]]:
        """How the names of layer k's parameters end, and how the time turns, for each of its ways."""
        return [(f"_l{k}", _as_it_is), (f"_l{k}_reverse", turn)][: 1 + self.bidirectional]

    def _of(self, views: SimpleNamespace, suffix: str) -> list[Array]:
        """The parameters of one layer and way, or their gradients, in their order."""
        return [view for name, view in vars(views).items() if name.endswith(suffix)]

    def _swapped(self, array: Array) -> Array:
        """The array with time first, or with batch first again."""
        return array.swapaxes(0, 1) if self.batch_first else array
