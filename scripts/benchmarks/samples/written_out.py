"""What a config writes out where torch's samples have an object: the layer in an encoder, and the sizes that a Lazy
class finds in its first input.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.nn.modules.lazy import LazyModuleMixin


def settings_of(layer: torch.nn.TransformerEncoderLayer) -> dict[str, Any]:
    """torch's arguments that make such a layer."""
    return {
        "d_model": layer.self_attn.embed_dim,
        "nhead": layer.self_attn.num_heads,
        "dim_feedforward": layer.linear1.out_features,
        "dropout": layer.dropout.p,
        "activation": layer.activation.__name__,
        "layer_norm_eps": layer.norm1.eps,
        "batch_first": layer.self_attn.batch_first,
        "norm_first": layer.norm_first,
        "bias": layer.linear1.bias is not None,
    }


def is_lazy(module_class: type[torch.nn.Module]) -> bool:
    """Whether it finds its sizes by itself."""
    return issubclass(module_class, LazyModuleMixin)


def with_sizes(
    lazy: type[Any], arguments: dict[str, Any], input: torch.Tensor
) -> tuple[type[torch.nn.Module], dict[str, Any]]:
    """The class without Lazy, and the arguments with the sizes that torch finds in the input."""
    module, plain = lazy(**arguments).to(input.dtype), lazy.cls_to_become
    module(input)
    missing = inspect.signature(plain).parameters.keys() - inspect.signature(lazy).parameters.keys()
    return plain, {**arguments, **{name: getattr(module, name) for name in missing}}
