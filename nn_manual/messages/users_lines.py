"""Which line of the user's own code an error is about: the last one that ran, or the `def` that doesn't take a call."""

from __future__ import annotations

import inspect
import re
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import NamedTuple

from nn_manual.defaults import is_of_package

#: How Python says that a method doesn't take what it is called with. It blames the line that calls.
_NOT_TAKEN = re.compile(r"(\w+)\.([a-z]\w*)\(\) (?:takes|missing|got) ")


class OtherSignature(NamedTuple):
    """A method of the user's own that doesn't take what it is called with: its place, file:line, and the signature that
    it must have by its base class, which is empty where that depends on the object.
    """

    place: str
    needed: str


def other_signature(error: BaseException) -> OtherSignature | None:
    """The method whose signature is why `error` was raised, or None. One that takes what its base class says has got
    something else from the user's own code.
    """
    text = error.args[0] if type(error) is TypeError and error.args else None
    found = _NOT_TAKEN.match(text) if isinstance(text, str) else None
    for own, overridden in _methods(*found.groups()) if found else ():
        code = getattr(inspect.unwrap(own), "__code__", own.__code__)
        place = f"{code.co_filename}:{code.co_firstlineno}"
        arguments = inspect.signature(overridden).parameters.values()
        if any(each.kind is not each.POSITIONAL_OR_KEYWORD for each in arguments):
            return OtherSignature(place, "")
        try:
            inspect.signature(own).bind(*arguments)
        except TypeError:
            plain = inspect.Signature([each.replace(annotation=each.empty) for each in arguments])
            return OtherSignature(place, f"{own.__name__}{plain}")
    return None


def _methods(class_name: str, name: str) -> Iterator[tuple[FunctionType, FunctionType]]:
    """The methods of this name in the user's own classes of that name, each with the one that it overrides."""
    for module in list(sys.modules.values()):
        owner = getattr(module, "__dict__", {}).get(class_name)
        if not isinstance(owner, type) or is_of_package(owner) or not inspect.isfunction(vars(owner).get(name)):
            continue
        overridden = [vars(base)[name] for base in owner.__mro__ if is_of_package(base) and name in vars(base)]
        if overridden and inspect.isfunction(overridden[0]):
            yield vars(owner)[name], overridden[0]


def last_line(error: BaseException, folder: Path) -> str | None:
    """file:line of the method in `folder` whose signature is why `error` was raised, or of the last line in `folder`
    that ran before it was; None where no line of it ran.
    """
    other = other_signature(error)
    if other is not None and Path(other.place).is_relative_to(folder):
        return other.place
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(folder)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else None


def place_in(folder: Path, error: BaseException) -> str:
    """The same behind a message: ` (file:line)`, or nothing."""
    line = last_line(error, folder)
    return "" if line is None else f" ({line})"
