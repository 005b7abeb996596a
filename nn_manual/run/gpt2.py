"""GPT-2's published weights: the names of its tensors, and what else a model must have in common with it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

from nn_manual.layers import (
    GELU,
    CausalSelfAttention,
    Dropout,
    Embedding,
    Flatten,
    Layer,
    LayerNorm,
    LearnedPositions,
    Linear,
)
from nn_manual.layers.base import num_parameters
from nn_manual.messages.text import counted
from nn_manual.model import Sequential
from nn_manual.run_directory.records import read_object

#: The tensors of a block, in the order of the model's parameters. GPT-2 multiplies by weights (in, out).
BLOCK = (
    *("ln_1.weight", "ln_1.bias", "attn.c_attn.weight.T", "attn.c_attn.bias", "attn.c_proj.weight.T"),
    *("attn.c_proj.bias", "ln_2.weight", "ln_2.bias", "mlp.c_fc.weight.T", "mlp.c_fc.bias", "mlp.c_proj.weight.T"),
    "mlp.c_proj.bias",
)
#: The layers of a block; its activation, before the last one, has no parameters.
LAYERS = (LayerNorm, CausalSelfAttention, LayerNorm, Linear, Linear)
#: The causal masks that older files hold for each block.
MASK = re.compile(r".*\bh\.\d+\.attn\.(masked_)?bias")
#: The activation by the name that config.json has for it.
ACTIVATIONS = {"gelu_new": "GELU(approximate='tanh')", "gelu": "GELU(approximate='none')", "relu": "ReLU()"}
#: Settings of config.json that the model has no counterpart for, and the value that means that they do nothing.
OFF = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False, "add_cross_attention": False}


def is_gpt2(found: Collection[str]) -> bool:
    """Whether a file with tensors of these names holds a GPT-2."""
    return any(f"{prefix}wte.weight" in found and f"{prefix}ln_f.weight" in found for prefix in ("", "transformer."))


def gpt2_names(model: Sequential, found: Collection[str], misfits: list[str]) -> Mapping[str, str]:
    """The name that each parameter of a GPT has in a file of GPT-2's: both have them in the order of forward. Some
    files have "transformer." before all names but the head's. A model that is no GPT-2, or has another number of
    blocks, is a misfit.
    """
    prefix = "transformer." if any(name.startswith("transformer.") for name in found) else ""
    blocks = {match[1] for name in found if (match := re.match(rf"{re.escape(prefix)}h\.(\d+)\.", name))}
    layers = {name: layer for name, layer in model.named_layers() if num_parameters(layer)}
    expected = [Embedding, LearnedPositions, *LAYERS * len(blocks), LayerNorm, Linear]
    num_blocks = sum(isinstance(layer, CausalSelfAttention) for layer in layers.values())
    if num_blocks != len(blocks):
        misfits.append(f"it holds a GPT-2 of {counted(len(blocks), 'block')}, and the model has {num_blocks}")
        return {}
    for (name, layer), kind in zip(layers.items(), expected, strict=False):
        if type(layer) is not kind:
            misfits.append(f"layer {name} is {type(layer).__name__}, and GPT-2 has {kind.__name__} there")
            return {}
    if len(layers) != len(expected):
        misfits.append(f"GPT-2 has {len(expected)} layers with parameters, and the model {len(layers)}")
        return {}
    theirs = [f"{prefix}wte.weight", f"{prefix}wpe.weight"]
    theirs += [f"{prefix}h.{number}.{name}" for number in range(len(blocks)) for name in BLOCK]
    theirs += [f"{prefix}ln_f.weight", f"{prefix}ln_f.bias"]
    head = "lm_head.weight" if "lm_head.weight" in found else theirs[0]
    own = list(model.uses())
    if len(own) != len(theirs) + 1:
        misfits.append("GPT-2 has a bias in attention, LayerNorm and each Linear but the last")
        return {}
    return dict(zip(own, [*theirs, head], strict=True))


def gpt2_settings(model: Sequential, file: Path) -> Iterator[str]:
    """What the config.json beside the weights says otherwise than the model. Without one, nothing is known."""
    path = file.with_name("config.json")
    if not path.is_file():
        return
    settings = read_object(path)
    for name, layer in model.named_layers():
        for key, here, value in _settings_of(layer):
            there = settings.get(key, value)
            if there != value:
                yield f"layer {name} has {here}, and {path.name} says {key} {there}"
    for key, off in OFF.items():
        if settings.get(key, off) != off:
            yield f"{path.name} says {key} {settings[key]}, and the model has nothing of this kind"


def _settings_of(layer: Layer) -> Iterator[tuple[str, str, object]]:
    """The key of config.json for a setting of a layer, the setting in words, and the value that the key must have."""
    if isinstance(layer, CausalSelfAttention):
        yield "n_head", f"num_heads={layer.num_heads}", layer.num_heads
    elif isinstance(layer, LayerNorm):
        yield "layer_norm_epsilon", f"eps={layer.eps:g}", layer.eps
    elif not num_parameters(layer) and not isinstance(layer, Dropout | Flatten):
        words = f"GELU(approximate={layer.approximate!r})" if isinstance(layer, GELU) else f"{type(layer).__name__}()"
        names = {text: name for name, text in ACTIVATIONS.items()}
        yield "activation_function", words, names.get(words, words)
