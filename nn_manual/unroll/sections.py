"""The step in sections. Above the lines of each layer stand its formulas."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, NamedTuple

from nn_manual.layers.base import Layer
from nn_manual.layers.composite import descendants
from nn_manual.losses import Loss
from nn_manual.messages.text import one_line
from nn_manual.model import Sequential
from nn_manual.optim import Clipping, Optimizer, Scheduler
from nn_manual.optim.groups import PATTERN
from nn_manual.unroll.formulas import formulas, in_floating_point, of_update
from nn_manual.unroll.script import Script
from nn_manual.unroll.statement import Statement
from nn_manual.unroll.syntax import render
from nn_manual.unroll.versions import layer_of
from nn_manual.unroll.wrapping import WIDTH, wrapped

#: The titles of sections, by the method of a layer that their statements come from.
SECTIONS = {
    "forward": "Forward",
    "backward": "Backward",
    "backward_parameters": "Backward",
    "update_buffers": "Buffers",
}

#: The width of a note, which stands behind "    #     ".
NOTE_WIDTH = WIDTH - 10


class Subject(NamedTuple):
    """The subject of the page. What `scheduler` moves are arguments."""

    name: str
    model: Sequential
    loss: Loss
    optimizer: Optimizer
    target_kind: str
    scheduler: Scheduler | None
    clipping: Clipping | None = None

    @property
    def layers(self) -> dict[str, Layer]:
        """All layers by name."""
        return dict(descendants(self.model))


def body(script: Script, subject: Subject) -> Iterator[str]:
    """The lines of the step."""
    title = ""
    group: tuple[str, int] | None = None
    for statement in script.lines:
        section = _section(statement)
        if section != title:
            title, group = section, None
            yield from ("", f"# ==== {title} {'=' * (WIDTH - 12 - len(title))}")
        owner = _owner(statement, is_short=bool(script.functions))
        if (owner, statement.member) != group:
            group = owner, statement.member
            yield ""
            yield from (comment(line) for line in _comment(owner, section, subject, statement))
            before = script.given.before[statement.member] if section == "Update" else []
            yield from (f"{name} = {text}" for name, text in before if name in script.names)
        indent = "    " * statement.depth
        yield from (f"{indent}{line}" for line in wrapped(render(statement.parts), 4 + len(indent)))
    yield from ("", "return loss")


def comment(line: str) -> str:
    """A line of a comment. The text may be anything."""
    return f"# {one_line(line)}".rstrip()


def formulas_of(layer: Layer, *, is_backward: bool, is_partial: bool = False) -> list[str]:
    """The formulas of forward or of backward; with `is_partial` without grad_input."""
    parameters = tuple(layer.parameter_shapes())
    absent = {f"grad_{name}" for name in ("weight", "bias") if not any(own.startswith(name) for own in parameters)}
    absent |= {"grad_input"} if is_partial else set()
    return [line for line in formulas(layer)[is_backward] if line.partition("=")[0].strip() not in absent]


def shown(component: Any) -> str:
    """A layer or a loss as in a config, without settings that are defaults."""
    name = type(component).__name__
    if isinstance(component, Layer) and component.children():
        return f"{name}({', '.join(type(child).__name__ for child in component.children().values())})"
    if not dataclasses.is_dataclass(component):
        return name
    fields = [field for field in dataclasses.fields(component) if field.init]
    values = {own.name: getattr(component, own.name) for own in fields if getattr(component, own.name) != own.default}
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in values.items())})"


def _section(statement: Statement) -> str:
    """The title of the section that a statement belongs to."""
    call = statement.call
    if statement.owner == "optimizer":
        return "Update"
    if call is None:
        return "Backward" if statement.owner else "Clipping"
    if call.owner == "loss":
        return "Loss" if call.method == "forward" else "Backward"
    return SECTIONS[call.method]


def _owner(statement: Statement, *, is_short: bool) -> str:
    """The layer or other owner whose name stands above a statement; on a page with functions, the outermost layer."""
    owner = statement.call.owner if statement.call else statement.owner
    return owner.split(" ")[0].split(".")[0] if is_short and layer_of(owner) else layer_of(owner) or owner


def _comment(owner: str, section: str, subject: Subject, statement: Statement) -> Iterator[str]:
    layer, lines = subject.layers.get(owner), list[str]()
    if owner == "loss":
        yield shown(subject.loss)
        lines = formulas(subject.loss, target_kind=subject.target_kind)[section == "Backward"]
        if section == "Loss" and (note := in_floating_point(subject.loss, NOTE_WIDTH)):
            lines += ["", *note]
    elif section == "Update":
        member = subject.optimizer.members[statement.member]
        group = subject.optimizer.groups[statement.member - 1][PATTERN] if statement.member else ""
        yield type(member).__name__ + (f", of the parameters {group}" if group else "")
        lines = of_update(member)
    elif section == "Clipping" and subject.clipping is not None:
        lines = list(subject.clipping.formulas)
    elif layer is None:
        yield "A parameter that several layers share: the gradients of its uses add up."
    else:
        yield f"{owner}  {shown(layer)}"
        is_own = statement.call is not None and layer_of(statement.call.owner) == owner and not statement.is_called
        if section != "Buffers" and is_own and statement.call is not None:
            is_partial = statement.call.method == "backward_parameters"
            lines = formulas_of(layer, is_backward=section == "Backward", is_partial=is_partial)
    yield from (f"    {line}" for line in lines)
