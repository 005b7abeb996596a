"""A module of torch's and a layer or loss of ours with its parameters, on the same input: what each makes of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from benchmarks.samples.verdicts import NoFit, Results, as_array, refusing
from nn_manual import Sequential
from nn_manual.arrays import Array
from nn_manual.defaults import defines
from nn_manual.layers import Layer
from nn_manual.layers.fractional_pooling import FractionalMaxPool
from nn_manual.losses import Loss
from nn_manual.streams import RowGenerator

#: Classes whose module returns its last state behind the output of all times: ours return the output alone.
WITH_STATE = {"RNN", "GRU", "LSTM"}
#: The random numbers that a module is given instead of drawing them.
SAMPLES = "_random_samples"


def of_torch_layer(module: torch.nn.Module, input: torch.Tensor) -> tuple[Results, float]:
    """The output, all gradients, the buffers after the step, and the output in evaluation; and the largest number in
    the upstream gradient. Leaves the module as it was.
    """
    before = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    leaf = input.detach().clone().requires_grad_(input.is_floating_point())
    output = _output_of(module.train(), leaf)
    upstream = _upstream(output)
    torch.autograd.backward(output, upstream)
    results = {"output": output} | {f"grad_{name}": parameter.grad for name, parameter in module.named_parameters()}
    moved = {name: buffer for name, buffer in module.named_buffers() if name != SAMPLES}
    results |= {f"{name} after": buffer.clone() for name, buffer in moved.items()}
    results |= {} if leaf.grad is None else {"grad_input": leaf.grad}
    module.load_state_dict(before)
    if not _has_samples(module):
        with torch.no_grad():
            results["output in evaluation"] = _output_of(module.eval(), leaf.detach())
    found = {name: as_array(tensor) for name, tensor in results.items() if tensor is not None}
    return found, float(upstream.abs().max()) if upstream.numel() else 0.0


def _has_samples(module: torch.nn.Module) -> bool:
    """Whether it is given its random numbers. It takes them in evaluation, too, where ours takes none."""
    return getattr(module, SAMPLES, None) is not None


def _output_of(module: torch.nn.Module, input: torch.Tensor) -> torch.Tensor:
    output = module(input)
    if type(module).__name__ in WITH_STATE:
        output = output[0]
    if torch.is_tensor(output):
        return output
    raise NoFit("it returns more than one array")


def _upstream(output: torch.Tensor) -> torch.Tensor:
    """A random upstream gradient, in each run the same."""
    generator = torch.Generator().manual_seed(0)
    return torch.randn(output.shape, dtype=output.dtype, generator=generator)


def of_our_layer(module: torch.nn.Module, layer: Layer, input: torch.Tensor) -> Results:
    """The same of ours. Raises Refused."""
    dtype = next(module.parameters(), input).dtype
    model = refusing(Sequential, layer, dtype=str(dtype).removeprefix("torch."))
    state = {f"0.{name}": as_array(tensor) for name, tensor in module.state_dict().items()}
    if isinstance(layer, FractionalMaxPool):
        _let_draw(layer, state.pop(f"0.{SAMPLES}"))
    refusing(model.load_state_dict, state)
    output, saved = refusing(model.forward, as_array(input))
    results = {"output": output}
    results |= {} if _has_samples(module) else {"output in evaluation": refusing(model.infer, as_array(input))}
    grad_input = refusing(model.backward, saved, as_array(_upstream(torch.from_numpy(np.array(output)))))
    model.update_buffers(saved)
    results |= {f"grad_{name.removeprefix('0.')}": array for name, array in vars(model.grad).items()}
    results |= {f"{name.removeprefix('0.')} after": array for name, array in vars(model.buffer).items()}
    return results if grad_input is None else {**results, "grad_input": grad_input}


def _let_draw(layer: FractionalMaxPool, samples: Array) -> None:
    """Have it draw these, as many as there are images: torch doesn't look at the rest."""

    def draw_noise(generator: RowGenerator) -> None:  # noqa: ARG001 - the contract's
        layer.noise.samples[...] = samples[: len(layer.noise.samples)]

    layer.draw_noise = draw_noise  # type: ignore[method-assign]  # of this layer alone


def of_torch_loss(module: torch.nn.Module, inputs: tuple[Any, ...]) -> Results:
    """The loss, the prediction's gradient, and the target's where torch has one."""
    prediction, target = (each.detach().clone() for each in inputs)
    prediction.requires_grad_()
    target.requires_grad_(target.is_floating_point())
    try:
        value = module(prediction, target)
    except RuntimeError:  # torch's says that it isn't differentiable with respect to the target
        target = target.detach()
        value = module(prediction, target)
    value.backward()
    results = {"loss": value, "grad_prediction": prediction.grad, "grad_target": target.grad}
    return {name: as_array(tensor) for name, tensor in results.items() if tensor is not None}


def of_our_loss(loss: Loss, inputs: tuple[Any, ...]) -> Results:
    """The same of ours. Raises Refused."""
    prediction, target = map(as_array, inputs)
    refusing(loss.check_target, prediction, target)
    value, saved = refusing(loss.forward, prediction, target)
    results = {"loss": np.asarray(value), "grad_prediction": loss.backward(saved)}
    return results | ({"grad_target": loss.backward_target(saved)} if defines(loss, "backward_target") else {})
