"""A net of ours as a user of torch would write it: torch.nn's modules, trained by autograd."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from benchmarks.translation import Translation
from nn_manual import CausalSelfAttention, Layer, LearnedPositions, Loss, MultiheadAttention, Residual, Sequential
from nn_manual.check.twin.model import target_as_torch_takes_it
from nn_manual.check.twin.modules import torch_module
from nn_manual.optim import Optimizer
from nn_manual.optim.groups import group_of_each


class _Residual(torch.nn.Sequential):
    def forward(self, input: torch.Tensor) -> Any:
        return input + super().forward(input)  # type: ignore[no-untyped-call]  # torch's


class _LearnedPositions(torch.nn.Embedding):
    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return input + self.weight[: input.shape[1]]


class _SelfAttention(torch.nn.MultiheadAttention):
    """Attention of one array with itself by the fast path of scaled_dot_product_attention, which MultiheadAttention
    itself doesn't take in training.
    """

    is_causal = False

    def forward(self, input: torch.Tensor) -> Any:  # type: ignore[override]  # one array for three
        batch, time, width = input.shape
        projected = torch.nn.functional.linear(input, self.in_proj_weight, self.in_proj_bias)
        query, key, value = projected.view(batch, time, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        dropout = self.dropout if self.training else 0.0
        output = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, dropout_p=dropout, is_causal=self.is_causal
        )
        return self.out_proj(output.transpose(1, 2).reshape(batch, time, width))


class _CausalSelfAttention(_SelfAttention):
    is_causal = True


def torch_net(model: Sequential) -> torch.nn.Sequential:
    """torch's version of a model, with copies of its parameters and buffers, and with its ties. Raises CannotStandIn
    for a layer that torch doesn't have, and NotImplementedError for a setting that isn't translated.
    """
    net = torch.nn.Sequential(*map(_version, model.layers))
    net.to_empty(device="cpu")
    net.to(getattr(torch, model.dtype.name))
    net.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in model.state_dict().items()})
    for second, first in model.ties.first_of.items():
        owner, _, name = second.rpartition(".")
        setattr(net.get_submodule(owner), name, net.get_parameter(first))
    return net


def _version(layer: Layer) -> torch.nn.Module:
    if translation := TRANSLATIONS.get(type(layer)):
        return translation(layer)
    return torch_module(layer, type(layer).__name__)


def _attention(version: type[_SelfAttention]) -> Translation[torch.nn.Module]:
    return Translation(
        lambda layer: version(layer.embed_dim, layer.num_heads, layer.dropout, layer.bias, batch_first=True),
        *("embed_dim", "num_heads", "dropout", "bias"),
    )


#: The classes that aren't torch.nn's of the same name and settings.
TRANSLATIONS: Mapping[type[Layer], Translation[torch.nn.Module]] = {
    Residual: Translation(lambda layer: _Residual(*map(_version, layer.layers)), "layers"),
    Sequential: Translation(lambda layer: torch.nn.Sequential(*map(_version, layer.layers))),
    CausalSelfAttention: _attention(_CausalSelfAttention),
    MultiheadAttention: _attention(_SelfAttention),
    LearnedPositions: Translation(
        lambda layer: _LearnedPositions(layer.num_positions, layer.embedding_dim), "num_positions", "embedding_dim"
    ),
}


class _LossOfRows(torch.nn.Module):
    """torch's loss, of the targets that ours takes."""

    def __init__(self, loss: torch.nn.Module) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> Any:
        return self.loss(prediction, target_as_torch_takes_it(prediction, target))


def torch_loss(loss: Loss) -> torch.nn.Module:
    """torch's loss of the same name and settings."""
    return _LossOfRows(torch_module(loss, type(loss).__name__))


def torch_optimizer(optimizer: Optimizer, net: torch.nn.Module) -> torch.optim.Optimizer:
    """torch's optimizer of the same name, settings and groups."""
    names = list(optimizer.model.parameter_shapes())
    groups: list[dict[str, Any]] = [{"params": [], **_settings(member)} for member in optimizer.members]
    for name, number in zip(names, group_of_each(optimizer.groups, names), strict=True):
        groups[number]["params"].append(net.get_parameter(name))
    made: torch.optim.Optimizer = getattr(torch.optim, type(optimizer).__name__)(groups, fused=True)
    return made


def _settings(optimizer: Optimizer) -> dict[str, Any]:
    settings = {name: getattr(optimizer, name) for name in optimizer.setting_names()}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in settings.items()}
