"""The page: imports, settings, functions, and the step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from nn_manual.messages.text import one_line
from nn_manual.trace.trace import View
from nn_manual.unroll.expressions import IN_NUMPY
from nn_manual.unroll.layer_functions import Function
from nn_manual.unroll.matrices import SOURCES
from nn_manual.unroll.script import Script
from nn_manual.unroll.sections import Subject, body, comment, formulas_of
from nn_manual.unroll.syntax import Name, render
from nn_manual.unroll.wrapping import wrapped

ABOUT = """\
One training step of {name}, written out.

Each line is what NumPy does in this step, in the same order, so that the results are the same to the last bit. Above
the lines stand the formulas that they came from. grad_x is the gradient of the loss with respect to x, and x_2 is what
layer 2 calls x.
"""


def page(script: Script, subject: Subject, run: Sequence[str] = ()) -> str:
    """The text of the module. It defines `train_step`, and ends with the lines of `run`."""
    about = ABOUT.format(name=_within_text(subject.name))
    lines = [f'"""{about}"""', "", *_imports(script, run), *_settings(script, subject)]
    words = " ".join(render(parts) for parts in script.texts)
    for name, source in (IN_NUMPY | SOURCES).items():
        lines += ["", "", *source.splitlines()] if f"{name}(" in words else []
    for function in script.functions:
        lines += ["", "", *_function(function, subject)]
    lines += ["", "", *_head(script, subject)]
    lines += [f"    {line}" if line else "" for line in body(script, subject)]
    return "\n".join([*lines, *run]) + "\n"


def arguments(script: Script, subject: Subject) -> list[Name]:
    """The names of the step's arguments, the batch first."""
    first = [Name("input"), Name("target")]
    others = [name for name in script.given.arguments if name not in first]
    changing = [*script.settings.scheduled(subject.scheduler)]
    return [*first, *others, *changing, *([Name("step")] if Name("step") in script.names else [])]


def _within_text(name: str) -> str:
    """A file's name, escaped so that it can stand between quotes."""
    return one_line(name).replace("\\", r"\\").replace('"', r"\"")


def _imports(script: Script, run: Sequence[str]) -> list[str]:
    words = " ".join([*(render(parts) for parts in script.texts), *run])
    lines = ["import math"] if "math." in words else []
    lines += ["from pathlib import Path"] if "Path(" in words else []
    lines += ["", "import numpy as np"] if lines else ["import numpy as np"]
    return lines + (["import scipy.special"] if "scipy." in words else [])


def _settings(script: Script, subject: Subject) -> list[str]:
    """The lines of the settings, in the order in which they are used."""
    values, given = script.settings.values, set(arguments(script, subject))
    used = dict.fromkeys(part for parts in script.texts for part in parts if part in values and part not in given)
    return ["", *(f"{name} = {values[name]!r}" for name in used)] if used else []


def _function(function: Function, subject: Subject) -> Iterator[str]:
    """The lines of a function: a layer's forward or backward."""
    yield from wrapped(f"def {function.name}({', '.join(map(str, function.arguments))}):", 0)
    layer, saved = subject.layers[function.layer], ", ".join(map(str, function.saved))
    yield from (f"    {comment(line)}" for line in formulas_of(layer, is_backward=function.is_backward))
    if saved and function.is_backward:
        yield f"    {saved} = saved"
    for depth, words in function.lines:
        indent = "    " * (depth + 1)
        yield from (f"{indent}{line}" for line in wrapped(render(words), len(indent)))
    returned = [str(name) if name != Name("saved") else f"({saved})" for name in function.returns]
    yield f"    return {', '.join(returned)}"


def _head(script: Script, subject: Subject) -> Iterator[str]:
    """The first lines of train_step: its arguments, and the names of parts of the vectors."""
    names = arguments(script, subject)
    yield from wrapped(f"def train_step({', '.join(map(str, names))}):", 0)
    yield '    """One step: moves what it gets of the model and the optimizer, and returns the loss before it.'
    yield ""
    width = max(len(str(name)) for name in names)
    yield from (f"    {name!s:{width}}  {_form(name, script.given.arguments.get(name))}".rstrip() for name in names)
    yield '    """'
    if Name("batch") in script.names:
        yield "    batch = len(input)"
    for name, text in script.fixed.items():
        note = "  # ones @ x adds the rows of x" if name.local == "ones" else ""
        yield from (f"    {line}" for line in wrapped(f"{name} = {render(text)}{note}", 4))
    for whole in dict.fromkeys(whole for _, whole, _ in script.given.parts):
        yield from ("", f"    # {PARTS[whole.local]} lie in one vector, one after the other.")
        yield from (f"    {name} = {_part(own, view)}" for name, own, view in script.given.parts if own == whole)


#: The contents of the vectors.
PARTS = {"param": "The parameters", "buffer": "The buffers", "counters": "The counts"}


#: What an argument that isn't an array is.
NUMBERS = {
    "step": "the number of the step, counted from 1",
    "lr": "the learning rate",
    "momentum": "the momentum",
    "beta1": "the momentum",
}


def _form(name: Name, view: View | None) -> str:
    if view is None:
        return NUMBERS.get(name.local, "")
    shape: tuple[Any, ...] = view.shape
    if name.local in ("input", "target"):
        shape = ("batch", *shape[1:])
    sizes = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
    said = f": {PARTS[name.local].lower().replace('the ', 'all ')}" if name.local in PARTS else ""
    return f"({sizes}) {view.dtype}{said}"


def _part(whole: Name, view: View) -> str:
    start = view.offset // view.dtype.itemsize
    shape = f".reshape({', '.join(map(str, view.shape)) or '()'})" if len(view.shape) != 1 else ""
    return f"{whole}[{start}:{start + prod(view.shape)}]{shape}"
