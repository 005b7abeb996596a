"""What `nn-manual list` says of the components."""

from __future__ import annotations

import pytest

from nn_manual.cli.options import KINDS as KINDS_OF_OPTIONS
from nn_manual.config.listing import KIND_NAMES, first_sentence, keys, listing
from nn_manual.data import Arrays, Text
from nn_manual.layers import Conv2d, Linear, ReLU, Residual
from nn_manual.losses import CrossEntropyLoss
from nn_manual.model import Sequential
from nn_manual.optim import SGD, Adam, SequentialLR
from nn_manual.registry import KINDS, components


def test_the_kinds_are_those_of_the_registry_and_of_the_command_line() -> None:
    assert tuple(KIND_NAMES) == KINDS_OF_OPTIONS
    assert set(KIND_NAMES.values()) == set(KINDS)


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_every_component_and_every_key(kind: str) -> None:
    lines = listing(kind).splitlines()
    assert lines[0] == kind
    assert max(map(len, lines)) <= 80
    names = [line.strip().partition(":")[0] for line in lines if line.startswith("  ") and line[2] != " "]
    known: dict[str, type] = components(KIND_NAMES[kind])
    assert names == sorted(known.keys() | ({"Sequential"} if kind == "layers" else set()))
    text = "\n".join(lines)
    for component in known.values():
        assert first_sentence(component).split()[-1] in text
        assert all(f"{key} " in text for key, _, _ in keys(component))


def test_one_entry() -> None:
    text = listing("layers")
    assert (
        "  Linear\n"
        "      Affine map, input (..., in_features) to output (..., out_features).\n"
        "        in_features   integer\n"
        "        out_features  integer\n"
        "        bias          bool = true\n"
    ) in text
    assert "  Residual: [layer, ...]\n" in text
    assert "  Sequential: [layer, ...]\n" in text
    assert "  ReLU\n      Rectifier, any shape.\n  Re" in text


def test_types_and_defaults() -> None:
    assert keys(Linear)[1:] == (("out_features", "integer", None), ("bias", "bool", "true"))
    assert keys(ReLU) == keys(Residual) == keys(Sequential) == ()
    assert dict(key[:2] for key in keys(Conv2d))["kernel_size"] == "integer | [integer, ...]"
    assert ("betas", "[number, number]", "[0.9, 0.999]") in keys(Adam)
    assert ("groups", "[{text: value, ...}, ...]", "[]") in keys(Adam)
    assert [key[0] for key in keys(SGD)][:2] == ["lr", "groups"]  # no config has the model
    assert ("weight", "[number, ...] | null", "null") in keys(CrossEntropyLoss)
    assert ("file", "path", None) in keys(Arrays)
    assert ("task", "classification | regression | labels", None) in keys(Arrays)
    assert ("file", "path | null", "null") in keys(Text)
    assert ("schedulers", "[lr_scheduler, ...]", None) in keys(SequentialLR)


def test_the_first_sentence() -> None:
    class Several:
        """Made by A. Nobody, of (1.5 and 2.)
        parts. And more.

        Not this.
        """

    assert first_sentence(Several) == "Made by A. Nobody, of (1.5 and 2.) parts."
    assert first_sentence(Text).endswith("one class for each character.")
