"""The page: settings, the step in its sections, and the formulas above the lines that they became."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from nn_manual.layers.base import Layer
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer
from nn_manual.trace.operation import View
from nn_manual.unroll.expressions import IN_NUMPY
from nn_manual.unroll.functions import Function
from nn_manual.unroll.formulas import formulas, of_update
from nn_manual.unroll.statements import Statement
from nn_manual.unroll.text import Name, render
from nn_manual.unroll.unroll import Script
from nn_manual.unroll.versions import layer_of

#: Columns of the page.
WIDTH = 120

#: The sections, by the method of a layer that their statements come from.
SECTIONS = {
    "forward": "Forward",
    "backward": "Backward",
    "backward_parameters": "Backward",
    "update_buffers": "Buffers",
}


class Parts(NamedTuple):
    """What the page is of. `is_scheduled` says that a schedule changes the learning rates: they are arguments then."""

    title: str
    model: Sequential
    loss: Loss
    optimizer: Optimizer
    target_kind: str
    is_scheduled: bool


def page(script: Script, parts: Parts, run: Sequence[str] = ()) -> str:
    """The module: it defines `train_step`, and ends with these lines."""
    lines = [f'"""{parts.title}', "", *ABOUT, '"""', "", *_imports(script, run), *_settings(script, parts)]
    words = " ".join(render(line.parts) for line in script.lines)
    for name, source in IN_NUMPY.items():
        lines += ["", "", *source.splitlines()] if f"{name}(" in words else []
    for function in script.functions:
        lines += ["", *_function(function, parts)]
    lines += ["", *_head(script, parts)]
    lines += [f"    {line}" if line else "" for line in _body(script, parts)]
    return "\n".join([*lines, *run]) + "\n"


ABOUT = (
    "Each line is what NumPy does in a training step, in the same order, so that the results are the same to the last",
    "bit. The comments have the formulas that the lines came from. grad_x is the gradient of the loss with respect to x.",
)


def arguments(script: Script, parts: Parts) -> list[Name]:
    """The names of what the step gets: the batch first."""
    first = [Name("input"), Name("target")]
    others = [name for name in script.given.arguments if name not in first]
    changing = [*script.settings.lrs] if parts.is_scheduled else []
    return [*first, *others, *changing, *([Name("step")] if Name("step") in _names(script) else [])]


def _function(function: Function, parts: Parts) -> Iterator[str]:
    """A layer's forward or backward."""
    yield ""
    yield from wrapped(f"def {function.name}({', '.join(map(str, function.arguments))}):", 0)
    layer = dict(parts.model.descendants())[function.layer]
    yield from (f"    # {line}" for line in _formulas(layer, backward=function.is_backward))
    saved = ", ".join(map(str, function.saved))
    if saved and function.is_backward:
        yield from (f"    {line}" for line in wrapped(f"{saved} = saved", 4))
    for depth, words in function.lines:
        indent = "    " * (depth + 1)
        yield from (f"{indent}{line}" for line in wrapped(render(words), len(indent)))
    returned = ", ".join(str(name) if name != Name("saved") else f"({saved})" for name in function.returns)
    yield from (f"    {line}" for line in wrapped(f"return {returned}", 4))


def _formulas(layer: Layer, *, backward: bool, is_partial: bool = False) -> list[str]:
    absent = ["input"] * is_partial + [n for n in ("weight", "bias") if n not in layer.parameter_shapes()]
    lines = formulas(layer)[backward]
    return [line for line in lines if line.partition("=")[0].strip() not in {f"grad_{n}" for n in absent}]


def _names(script: Script) -> set[Name]:
    """All variables that the step's lines read or write."""
    used = {part for line in script.lines for part in line.parts if isinstance(part, Name)}
    used |= {part for own in script.functions for _, words in own.lines for part in words if isinstance(part, Name)}
    for name, text in reversed(script.given.before):
        used |= text.names if name in used else set()
    return used


def _imports(script: Script, run: Sequence[str]) -> list[str]:
    words = " ".join([*(render(line.parts) for line in script.lines), *run])
    words += " ".join(render(own) for function in script.functions for _, own in function.lines)
    words += " ".join(str(text) for _, text in script.given.before)
    lines = ["import math"] if "math." in words else []
    lines += ["from pathlib import Path"] if "Path(" in words else []
    lines += ["", "import numpy as np"] if lines else ["import numpy as np"]
    return lines + (["import scipy.special"] if "scipy." in words else [])


def _settings(script: Script, page_parts: Parts) -> list[str]:
    used = _names(script) - set(arguments(script, page_parts))
    texts = [words for own in script.functions for _, words in own.lines]
    texts += [line.parts for line in script.lines] + [text.parts for _, text in script.given.before]
    order = [part for parts in texts for part in parts if part in used]
    named = {name: script.settings.values[name] for name in order if name in script.settings.values}
    return ["", *(f"{name} = {value!r}" for name, value in named.items())] if named else []


def _head(script: Script, parts: Parts) -> Iterator[str]:
    names = arguments(script, parts)
    yield ""
    yield from wrapped(f"def train_step({', '.join(map(str, names))}):", 0)
    yield '    """One step: moves what it gets of the model and the optimizer, and returns the loss before it.'
    yield ""
    width = max(len(str(name)) for name in names)
    for name in names:
        view = script.given.arguments.get(name)
        yield f"    {name!s:{width}}  {_form(name, view)}".rstrip()
    yield '    """'
    used = {part for line in script.lines for part in line.parts} | {p for t in script.fixed.values() for p in t}
    if Name("batch") in used:
        yield "    batch = len(input)"
    for name, text in script.fixed.items():
        note = "  # ones @ x adds the rows of x" if name.local == "ones" else ""
        yield f"    {name} = {render(text)}{note}"
    if script.given.parts:
        yield ""
        yield "    # What has a name lies in one vector, part after part."
    for name, whole, view in script.given.parts:
        yield f"    {name} = {_part(whole, view)}"


def _form(name: Name, view: View | None) -> str:
    if view is None:
        return {"step": "the number of the step, counted from 1", "lr": "the learning rate"}.get(name.local, "")
    shape: tuple[Any, ...] = view.shape
    if name.local in ("input", "target"):
        shape = ("batch", *shape[1:])
    sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    said = {"param": ": all parameters", "buffer": ": all buffers", "counters": ": all counters"}.get(name.local, "")
    return f"({sizes}) {view.dtype}{said}"


def _part(whole: Name, view: View) -> str:
    start = view.offset // view.dtype.itemsize
    if not view.shape:
        return f"{whole}[{start}:{start + 1}].reshape(())"
    size = 1
    for length in view.shape:
        size *= length
    shape = f".reshape({', '.join(map(str, view.shape))})" if len(view.shape) > 1 else ""
    return f"{whole}[{start}:{start + size}]{shape}"


def _section(statement: Statement) -> str:
    """The title under which a statement stands."""
    call = statement.call
    if statement.owner == "optimizer" or statement.defines == Name("grad"):
        return "Update"
    if call is None:
        return "Clipping" if statement.method == "clip_grad_norm" else "Backward"
    if call.owner == "loss":
        return "Loss" if call.method == "forward" else "Backward"
    return SECTIONS[call.method]


def _body(script: Script, parts: Parts) -> Iterator[str]:
    """The lines of the step."""
    title = group = ""
    for statement in script.lines:
        section = _section(statement)
        if section != title:
            title, group = section, ""
            yield from ("", f"# ==== {title} {'=' * (WIDTH - 10 - len(title))}")
        owner = statement.call.owner if statement.call else statement.owner
        if f"{section} {owner}" != group:
            group = f"{section} {owner}"
            yield ""
            yield from _comment(owner, section, parts, statement)
            if section == "Update":
                yield from (f"{name} = {text}" for name, text in script.given.before if name in _names(script))
        indent = "    " * statement.depth
        yield from (f"{indent}{line}" for line in wrapped(render(statement.parts), 4 + len(indent)))
    yield from ("", "return loss")


def _comment(owner: str, section: str, parts: Parts, statement: Statement) -> Iterator[str]:
    layer = dict(parts.model.descendants()).get(layer_of(owner))
    lines: list[str] = []
    if owner == "loss":
        yield f"# {shown(parts.loss)}"
        lines = formulas(parts.loss, target_kind=parts.target_kind)[section == "Backward"]
    elif section == "Update":
        yield f"# {type(parts.optimizer).__name__}"
        lines = of_update(parts.optimizer)
    elif layer is not None:
        yield f"# {layer_of(owner)}  {shown(layer)}"
        if section != "Buffers":
            is_partial = statement.call is not None and statement.call.method == "backward_parameters"
            lines = _formulas(layer, backward=section == "Backward", is_partial=is_partial)
    yield from (f"#     {line}" for line in lines)


def shown(component: Any) -> str:
    """A layer or a loss as a config has it: without the settings that it has anyway."""
    import dataclasses

    if not dataclasses.is_dataclass(component) or "Residual" in type(component).__name__:
        return type(component).__name__
    fields = dataclasses.fields(component)
    said = [
        f"{field.name}={value!r}"
        for field in fields
        if field.init and (value := getattr(component, field.name)) != field.default
    ]
    return f"{type(component).__name__}({', '.join(said)})"


def wrapped(line: str, indent: int) -> list[str]:
    """A statement on lines that are short enough, broken where brackets allow it."""
    width, left = WIDTH - indent, line.partition(" = ")[0]
    if len(line) > width and ", " in left and "(" not in left and not _breaks(line, width):
        line = f"({left}) = {line[len(left) + 3 :]}"
    lines: list[str] = []
    while len(line) > width and (breaks := _breaks(line, width)):
        lines.append(line[: breaks[-1]].rstrip())
        line = "    " + line[breaks[-1] :].lstrip()
        line = "\x00" * _depth(lines) + line  # brackets that are still open
    return [each.replace("\x00", "") for each in [*lines, line]]


def _depth(lines: list[str]) -> int:
    text = "".join(lines).replace("\x00", "")
    return sum(text.count(sign) for sign in "([") - sum(text.count(sign) for sign in ")]")


def _breaks(line: str, width: int) -> list[int]:
    """Where a line can be broken: behind a comma or before a word, within brackets."""
    depth, found, hidden = line.count("\x00"), [], line.count("\x00")
    for place, sign in enumerate(line):
        depth += (sign in "([") - (sign in ")]")
        if sign == " " and depth and 12 < place - hidden <= width and line[:place].strip("\x00 "):
            found.append(place)
    return [place for place in found if line[place - 1] == ","] or found
