"""check_function from the command line: functions, shapes and sizes are text, and a mistake in it is a ConfigError."""

from __future__ import annotations

import importlib
import math
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
from nn_manual.functions.handwritten_class import HandwrittenClass, handwritten_hint
from nn_manual.functions.request import Request
from nn_manual.functions.settings import STREAMS, kept
from nn_manual.messages.text import counted, nearest, one_line, quoted
from nn_manual.opening import module_not_a_file

#: The shape of a tensor with one number.
SCALAR = "scalar"
#: The digits of a size: Python refuses to read thousands of them.
DIGITS = r"\d{1,99}"
#: A tensor's bytes are counted in 64 bits with a sign, and a number has up to 8 bytes.
MOST_NUMBERS = 2**60 - 1


def check_named_function(
    request: Request, told: Told = nobody_listens, known_rows: Known = MappingProxyType({})
) -> FunctionReport:
    """Run check_function on what is named as `module:name`, on inputs of shapes such as "NxD,D,D" with sizes such as
    "N=8,D=64,D=128". `told` and `known_rows` go to `put_through`.
    """
    names = [_names(shape) for shape in request.shapes.split(",")]
    sizes = _sizes(request.sizes)
    _check_fit(names, sizes)
    integers = _integers(request.integers, len(names), sizes)
    function = _imported(request.function)
    if request.backward is not None:
        function = function, _imported(request.backward)
    inputs = _inputs(names, integers, as_arrays=isinstance(function, HandwrittenClass | tuple))
    reference = None if request.reference is None else _imported(request.reference)
    dtypes = [_dtype(text) for text in request.dtypes] or None
    try:
        trial = trial_of(function, reference, inputs, dtypes, sizes, request.kinds, request.tolerance)
        return put_through(trial, Chosen(request.skip, request.only), told, known_rows)
    except Exception as error:  # a reference may raise anything
        raise_if_nobodys_fault(error)
        if is_of_the_reference(error) and request.reference is not None:
            words = f"{first_words_of(error)}{place_of(error)}"
            raise ConfigError(f"the reference {request.reference} raised {words}") from error
        if is_of_the_reference(error) and place_of(error):  # without a reference, forward stands in its place
            words = f"{first_words_of(error)}{place_of(error)}"
            raise ConfigError(f"{request.function}: forward raised {words}") from error
        if isinstance(error, ValueError | TypeError):
            raise ConfigError(f"{request.function}: {one_line(str(error))}") from error
        raise


def _names(shape: str) -> tuple[str, ...]:
    """The names and numbers of a shape's dimensions."""
    if shape.strip() == SCALAR:
        return ()
    dimensions = tuple(shape.strip().split("x"))
    for dimension in dimensions:
        if not re.fullmatch(DIGITS + r"|[A-Za-wyz_][A-Za-wyz_0-9]*", dimension):
            raise ConfigError(f"--shapes: {quoted(shape)} is no shape: write NxD, 3xD, D or {SCALAR}")
    return dimensions


def _sizes(text: str) -> dict[str, int | tuple[int, ...]]:
    """The size of each name: a number, or those that it may have alone, which are given by == or are several."""
    found: dict[str, tuple[int, ...]] = {}
    exact = set[str]()
    for part in filter(None, text.split(",")):
        match = re.fullmatch(r"\s*(\w+)(==?)(" + DIGITS + r")\s*", part)
        if match is None or not match[1].isidentifier():
            raise ConfigError(f"--sizes: {quoted(part)} is no size: write N=8,D=128; D==128 tries no other")
        found[match[1]] = (*found.get(match[1], ()), int(match[3]))
        if match[2] == "==" or len(found[match[1]]) > 1:
            exact.add(match[1])
    return {name: sizes if name in exact else sizes[0] for name, sizes in found.items()}


def _integers(entries: Sequence[str], num_inputs: int, sizes: Mapping[str, object]) -> dict[int, str]:
    """For the place of each input of integers, the name or number that they are below."""
    found = {}
    for entry in entries:
        match = re.fullmatch(r"([1-9]\d*)=(\w+)", entry)
        if match is None or int(match[1]) > num_inputs or not (match[2] in sizes or match[2].isdecimal()):
            words = f"write 2=C or 2=10 for the second of {counted(num_inputs, 'input')}"
            raise ConfigError(f"--integers: {quoted(entry)} doesn't fit: {words}")
        found[int(match[1]) - 1] = match[2]
    return found


def _check_fit(shapes: Sequence[tuple[str, ...]], sizes: Mapping[str, int | tuple[int, ...]]) -> None:
    named = {name for shape in shapes for name in shape if not name.isdecimal()}
    for name in sorted(named - sizes.keys()):
        raise ConfigError(f"--sizes: there is no size for {name}, which --shapes has")
    for name in sorted(sizes.keys() - named):
        raise ConfigError(f"--sizes: {name} is in none of the shapes")
    if not sizes:
        raise ConfigError("--shapes: name at least one dimension, as in NxD, so that it can be tried in several sizes")
    for shape in shapes:
        _check_count(shape, sizes)


def _check_count(shape: tuple[str, ...], sizes: Mapping[str, int | tuple[int, ...]]) -> None:
    """Raise ConfigError if an input has no numbers at the full sizes, or more than a tensor can have."""
    full = {name: max(size) if isinstance(size, tuple) else size for name, size in sizes.items()}
    count = math.prod(full[name] if name in full else int(name) for name in shape)
    if not count:
        raise ConfigError(f"--sizes: {'x'.join(shape)} is empty at the full sizes: there is nothing to compare")
    if count > MOST_NUMBERS:
        raise ConfigError(f"--sizes: {'x'.join(shape)} has {count:,} numbers: a tensor has at most {MOST_NUMBERS:,}")


def _dtype(text: str) -> Dtype:
    """One dtype for all inputs, or a tuple with one for each."""
    return tuple(text.split(",")) if "," in text else text


def _inputs(shapes: Sequence[tuple[str, ...]], integers: Mapping[int, str], *, as_arrays: bool) -> Callable[..., Any]:
    """A function that draws normal numbers in these shapes, and integers in those places: float32 tensors, or float64
    arrays for what is written by hand.
    """

    def inputs(generator: torch.Generator, **sizes: int) -> list[Any]:
        def number(name: str) -> int:
            return int(name) if name.isdecimal() else sizes[name]

        numbers = [[number(name) for name in shape] for shape in shapes]
        dtype = torch.float64 if as_arrays else torch.float32
        drawn = [
            torch.randint(max(number(integers[i]), 1), shape, generator=generator)
            if i in integers
            else torch.randn(shape, generator=generator, dtype=dtype)
            for i, shape in enumerate(numbers)
        ]
        return [tensor.numpy() for tensor in drawn] if as_arrays else drawn

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
        meant = handwritten_hint(thing)
        raise ConfigError(f"{path} is a class: name {meant or 'an instance of it'}, made in its module")
    if not (callable(thing) or isinstance(thing, HandwrittenClass | tuple)):
        meant = handwritten_hint(type(thing))
        hint = f": name {meant}, made in its module" if meant else ""
        raise ConfigError(f"{path} is {type(thing).__name__}, not a function{hint}")
    return thing


def _has(thing: Any, name: str, path: str) -> bool:
    """hasattr for a thing whose own __getattr__ may raise anything."""
    try:
        return hasattr(thing, name)
    except Exception as error:
        raise_if_nobodys_fault(error)
        words = f"{first_words_of(error)}{place_of(error)}"
        raise ConfigError(f"{quoted(path)} can't be read: {name} raised {words}") from error
