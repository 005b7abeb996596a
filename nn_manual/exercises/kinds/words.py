"""Words in formulas that a reader can't write as they stand: no functions of NumPy, and not in the file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from nn_manual import ops
from nn_manual.exercises.kinds.exercise import Exercise
from nn_manual.layers import Layer, SpectralNorm
from nn_manual.layers.attention_heads import Heads
from nn_manual.layers.local_response import LocalResponseNorm
from nn_manual.layers.of_channels import OfChannels
from nn_manual.layers.windowed_map import WindowedMap
from nn_manual.losses import CTCLoss, Loss

#: By the class that has the formulas, or one of its bases: how a word of them is written in the file.
WRITTEN: Mapping[type, Mapping[str, str]] = {
    CTCLoss: {
        "states": "saved.state",
        "sums_before": "saved.alpha, where the time is the first axis, and the largest of each time is 0",
        "sums_behind": "yours to write, like forward's loop from the last time to the first",
    },
    Heads: {
        "split": "self._split(x), a tuple of one array, or of three",
        "join": "x.swapaxes(1, 2).reshape(batch, time, -1); three of them side by side",
        "repeat": "self._repeated(x)",
        "add_up": "self._by_group(x).sum(axis=2)",
        "rotate": "rotate(x), of nn_manual.layers.attention_places; it writes into x",
        "rotate_back": "rotate(x, back=True), of nn_manual.layers.attention_places; it writes into x",
        "width": "self.width",
    },
    OfChannels: {
        "across": "x[self._across(input.ndim)]",
        "groups": "self._rows(x), in which a group is a row",
        "images": "x.reshape(input.shape)",
    },
    LocalResponseNorm: {"over": "self._over(x, before, behind)"},
    SpectralNorm: {"normalize": "self._normalize(x)"},
    WindowedMap: {
        "columns": "self._columns(x, the output's size)",
        "back": "self.windows.back(parts, the image's size), with a part for each place in the window",
    },
    ops.Operation: {
        "unbroadcast": "unbroadcast(x, shape), of nn_manual.ops: the sum over what broadcasting repeated",
        "spread": "spread(x, shape, axis), of nn_manual.ops.reductions: x repeated along the axes that were summed",
        "chosen": "chosen(x, argmax, axis), of nn_manual.ops.reductions: each number's share in the largest",
    },
    Layer: {"rows": "rows(x), of nn_manual.layers.fast_forms: the last axis stays, all others are one",
            "expit": "scipy.special.expit(x), 1 / (1 + exp(-x))",
            "ndtr": "scipy.special.ndtr(x)",
            "softplus": "np.logaddexp(x, 0)"},
    Loss: {"expit": "scipy.special.expit(x), 1 / (1 + exp(-x))", "logsumexp": "scipy.special.logsumexp(x, axis=axis)"},
}


def written_gradient(name: str) -> str:
    """A parameter's gradient, grad_weight, as code: self.grad.weight; or where the parameter's name isn't one of
    Python's, vars(self.grad)["out_proj.weight"].
    """
    return _written("self.grad", name.removeprefix("grad_"))


def written_buffer(name: str) -> str:
    """A buffer as code: self.buffer.running_mean."""
    return _written("self.buffer", name)


def written_parameter(name: str) -> str:
    """A parameter as code: self.param.weight, or vars(self.param)["out_proj.weight"]."""
    return _written("self.param", name)


def _written(arrays: str, name: str) -> str:
    return f"{arrays}.{name}" if name.isidentifier() else f'vars({arrays})["{name}"]'


def written_words(exercise: Exercise, text: str) -> dict[str, str]:
    """Of the words in these formulas, those that a reader writes in another way, and how."""
    owner = exercise.owner
    found: dict[str, str] = {}
    if isinstance(owner, type) and issubclass(owner, Layer):
        dotted = {name for layer, _ in owner.examples() for name in layer.parameter_shapes() if "." in name}
        found = {name: written_parameter(name) for name in sorted(dotted)}
    bases = owner.__mro__ if isinstance(owner, type) else (type(owner),)
    for base in bases:
        found |= {word: way for word, way in WRITTEN.get(base, {}).items() if word not in found}
    return {word: way for word, way in found.items() if re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", text)}


def told_words(words: Mapping[str, str]) -> list[str]:
    """The lines that say so, as a block; none where there are no words."""
    if not words:
        return []
    width = max(map(len, words))
    return ["In code, these words of the formulas are:", "", *(f"    {word:<{width}}  {words[word]}" for word in words)]
