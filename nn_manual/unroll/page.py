"""The page: settings, the step with its sections, and the formulas above what they became."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.unroll.formulas import formulas, of_update
from nn_manual.unroll.statements import Statement
from nn_manual.unroll.text import Name, render
from nn_manual.unroll.versions import layer_of

#: Columns of the page.
WIDTH = 120

#: The sections, by the method of the step that their statements come from.
SECTIONS = {
    "forward": "Forward",
    "loss": "Loss",
    "backward": "Backward",
    "update_buffers": "Buffers",
    "clip_grad_norm": "Clipping",
    "optimizer": "Update",
}


def section_of(statement: Statement) -> str:
    """The title under which a statement stands."""
    call = statement.call
    if statement.owner == "optimizer":
        return "Update"
    if call is None:
        return "Clipping" if statement.method == "clip_grad_norm" else "Backward"
    if call.owner == "loss":
        return "Loss" if call.method == "forward" else "Backward"
    return SECTIONS.get(call.method, "Backward")


def body(lines: list[Statement], model: Sequential, loss: Loss, optimizer: Optimizer, target_kind: str) -> Iterator[str]:
    """The lines of the step."""
    layers = dict(model.descendants())
    title = group = ""
    for statement in lines:
        section = section_of(statement)
        if section != title:
            title = section
            yield ""
            yield f"# ==== {title} {'=' * (WIDTH - 10 - len(title))}"
            group = ""
        owner = statement.call.owner if statement.call else statement.owner
        if f"{section} {owner}" != group:
            group = f"{section} {owner}"
            yield ""
            yield from _comment(owner, section, layers, loss, optimizer, target_kind, statement)
        yield from wrapped(render(statement.parts))


def _comment(
    owner: str, section: str, layers: Any, loss: Loss, optimizer: Optimizer, target_kind: str, statement: Statement
) -> Iterator[str]:
    layer = layers.get(layer_of(owner))
    lines: list[str] = []
    if owner == "loss":
        yield f"# {loss!r}"
        lines = formulas(loss, target_kind=target_kind)[section == "Backward"]
    elif owner == "optimizer":
        lines = of_update(optimizer)
        yield f"# {type(optimizer).__name__}"
    elif layer is not None:
        yield f"# {layer_of(owner)}  {layer!r}"
        if section != "Buffers":
            lines = formulas(layer)[section == "Backward"]
            is_partial = statement.call is not None and statement.call.method == "backward_parameters"
            absent = ["input"] * is_partial + [n for n in ("weight", "bias") if n not in layer.parameter_shapes()]
            lines = [line for line in lines if line.partition("=")[0].strip() not in {f"grad_{n}" for n in absent}]
    yield from (f"#     {line}" for line in lines)


def wrapped(line: str) -> list[str]:
    """A statement on lines that are short enough, broken between the elements of what stands in brackets."""
    if len(line) <= WIDTH - 4 or "(" not in line:
        return [line]
    return textwrap.wrap(line, WIDTH - 4, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


__all__ = ["Name", "body", "section_of", "wrapped"]
