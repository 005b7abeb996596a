"""check_function from the command line: functions, shapes and sizes are text, and a mistake in it is a ConfigError."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from nn_manual.errors import ConfigError, first_words_of, raise_if_nobodys_fault
from nn_manual.functions.battery.families import Chosen, Known, Told, nobody_listens
from nn_manual.functions.battery.trial import Dtype
from nn_manual.functions.callables import is_mere_class
from nn_manual.functions.check_function import put_through, trial_of
from nn_manual.functions.exceptions import is_of_the_reference, place_of
from nn_manual.functions.function_report import FunctionReport
from nn_manual.functions.settings import STREAMS, kept
from nn_manual.messages import nearest, one_line, quoted
from nn_manual.opening import module_not_a_file

#: The shape of a tensor with one number.
SCALAR = "scalar"


def check_named_function(
    function: str,
    reference: str,
    shapes: str,
    sizes: str,
    dtypes: Sequence[str],
    skip: Sequence[str],
    only: Sequence[str] = (),
    told: Told = nobody_listens,
    known_rows: Known = MappingProxyType({}),
) -> FunctionReport:
    """Run check_function on a function and a reference, both named as `module:name`, on inputs of shapes such as
    "NxD,D,D" with sizes such as "N=8,D=64,D=128". `told` and `known_rows` go to `put_through`.
    """
    names = [_names(shape) for shape in shapes.split(",")]
    of_sizes = _sizes(sizes)
    _check_fit(names, of_sizes)
    own, definition = (_imported(path) for path in (function, reference))
    try:
        trial = trial_of(own, definition, _inputs(names), [_dtype(text) for text in dtypes] or None, of_sizes)
        return put_through(trial, Chosen(skip, only), told, known_rows)
    except Exception as error:  # a reference may raise anything
        raise_if_nobodys_fault(error)
        if is_of_the_reference(error):
            raise ConfigError(f"the reference {reference} raised {first_words_of(error)}{place_of(error)}") from error
        if isinstance(error, ValueError | TypeError):
            raise ConfigError(f"{function}: {one_line(str(error))}") from error
        raise


def _names(shape: str) -> tuple[str, ...]:
    """The names and numbers of a shape's dimensions."""
    if shape.strip() == SCALAR:
        return ()
    dimensions = tuple(shape.strip().split("x"))
    for dimension in dimensions:
        if not re.fullmatch(r"\d+|[A-Za-wyz_][A-Za-wyz_0-9]*", dimension):
            raise ConfigError(f"--shapes: {quoted(shape)} is no shape: write NxD, 3xD, D or {SCALAR}")
    return dimensions


def _sizes(text: str) -> dict[str, tuple[int, ...]]:
    """The sizes of each name. Where a name has several, it may have no others."""
    found: dict[str, tuple[int, ...]] = {}
    for part in filter(None, text.split(",")):
        name, _, size = part.strip().partition("=")
        if not (name.isidentifier() and size.isdecimal()):
            raise ConfigError(f"--sizes: {quoted(part)} is no size: write N=8,D=128")
        found[name] = (*found.get(name, ()), int(size))
    return found


def _check_fit(shapes: Sequence[tuple[str, ...]], sizes: Mapping[str, tuple[int, ...]]) -> None:
    named = {name for shape in shapes for name in shape if not name.isdecimal()}
    for name in sorted(named - sizes.keys()):
        raise ConfigError(f"--sizes: there is no size for {name}, which --shapes has")
    for name in sorted(sizes.keys() - named):
        raise ConfigError(f"--sizes: {name} is in none of the shapes")
    if not sizes:
        raise ConfigError("--shapes: name at least one dimension, as in NxD, so that it can be tried in several sizes")


def _dtype(text: str) -> Dtype:
    """One dtype for all inputs, or a tuple with one for each."""
    return tuple(text.split(",")) if "," in text else text


def _inputs(shapes: Sequence[tuple[str, ...]]) -> Callable[..., list[torch.Tensor]]:
    """A function that draws normal numbers in these shapes."""

    def inputs(generator: torch.Generator, **sizes: int) -> list[torch.Tensor]:
        numbers = [[int(name) if name.isdecimal() else sizes[name] for name in shape] for shape in shapes]
        return [torch.randn(shape, generator=generator) for shape in numbers]

    return inputs


def _imported(path: str) -> Any:
    """What `module:name` names; the module lies in the current folder or is installed."""
    module_name, _, name = path.partition(":")
    if module_name.endswith(".py"):
        named = module_name.removeprefix("./").removesuffix(".py").replace("/", ".")
        raise ConfigError(f"{quoted(path)} names a file: write the module, {quoted(f'{named}:{name}')}")
    parts = [*module_name.split("."), *name.split(".")]
    if not all(part.isidentifier() for part in parts):
        raise ConfigError(f"{quoted(path)} is no import path: write module:name, as in my_kernels:layer_norm")
    if problem := module_not_a_file(Path.cwd(), module_name):
        raise ConfigError(problem)
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        with kept(STREAMS):
            thing: Any = importlib.import_module(module_name)
    except BaseException as error:  # a module's code may raise anything
        raise_if_nobodys_fault(error)
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigError(f"no module {quoted(module_name)} in {Path.cwd()}, and none is installed") from None
        raise ConfigError(f"module {quoted(module_name)} raised {first_words_of(error)}{place_of(error)}") from error
    for part in name.split("."):
        if not _has(thing, part, path):
            meant = nearest(part, [known for known in vars(thing) if not known.startswith("_")])
            hint = f": did you mean {meant!r}?" if meant else ""
            raise ConfigError(f"{quoted(module_name)} has no {quoted(name)}{hint}")
        thing = getattr(thing, part)
    if is_mere_class(thing):
        raise ConfigError(f"{path} is a class: name an instance of it, made in its module")
    if not callable(thing):
        raise ConfigError(f"{path} is {type(thing).__name__}, not a function")
    return thing


def _has(thing: Any, name: str, path: str) -> bool:
    """hasattr for a thing whose own __getattr__ may raise anything."""
    try:
        return hasattr(thing, name)
    except Exception as error:
        raise_if_nobodys_fault(error)
        words = f"{first_words_of(error)}{place_of(error)}"
        raise ConfigError(f"{quoted(path)} can't be read: {name} raised {words}") from error
