"""Where an error was raised: at the user's own line, also where other code caught it and raised another."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from nn_manual import check_function
from nn_manual.functions.exceptions import place_of

#: As Triton's interpreter does: an error in a kernel is the cause of one that its own code raises.
INTERPRETER = """
def interpreted(kernel, *arguments):
    try:
        return load(kernel, *arguments)
    except Exception as error:
        raise RuntimeError(repr(error)) from error

def load(kernel, *arguments):
    return kernel(checked, *arguments)

def checked(number):
    if number is None:
        raise TypeError("no pointer")
"""


def interpreter(*path: str) -> Callable[..., Any]:
    """That code, in a file of a package that lies beside torch."""
    file = Path(torch.__file__).parents[1].joinpath(*path)
    names: dict[str, Any] = {}
    exec(compile(INTERPRETER, file, "exec"), names)  # code of a file that isn't there
    found: Callable[..., Any] = names["interpreted"]
    return found


interpreted = interpreter("triton", "runtime", "interpreter.py")


def kernel(checked: Callable[[Any], object], number: Any) -> Any:
    checked(number)
    return number


#: The line in the kernel from which the interpreter's code was called that raised.
KERNEL = f"{__file__}:{kernel.__code__.co_firstlineno + 1}"


def test_the_kernels_own_line_in_forward() -> None:
    report = check_function((lambda _: interpreted(kernel, None), lambda _, grad: grad), torch.abs, [np.ones(3)])
    assert report.problem == f"<lambda>: forward raised RuntimeError: TypeError('no pointer') at {KERNEL}"


def test_the_kernels_own_line_in_backward() -> None:
    class Kernel(torch.autograd.Function):
        @staticmethod
        def forward(_: Any, x: torch.Tensor) -> torch.Tensor:
            return x.abs()

        @staticmethod
        def backward(_: Any, __: torch.Tensor) -> Any:
            return interpreted(kernel, None)

    report = check_function(Kernel, torch.abs, [torch.ones(3)])
    assert report.problem == f"Kernel: backward raised RuntimeError: TypeError('no pointer') at {KERNEL}"


def raised(run: Callable[[], object]) -> BaseException:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whichever it is
        run()
    return caught.value


def test_the_innermost_cause_in_the_users_code() -> None:
    def inner() -> None:
        raise KeyError("x")  # its line

    def outer() -> None:
        try:
            inner()
        except KeyError as error:
            raise ValueError from error

    def outermost() -> None:
        try:
            outer()
        except ValueError as error:
            raise RuntimeError from error

    assert place_of(raised(outermost)) == f" at {__file__}:{inner.__code__.co_firstlineno + 1}"


def test_a_cause_outside_of_the_users_code_leaves_the_line_of_the_error() -> None:
    def convert() -> None:
        error = ValueError("without a traceback")
        raise RuntimeError from error

    assert place_of(raised(convert)) == f" at {__file__}:{convert.__code__.co_firstlineno + 2}"


def test_sys_exit_is_named_at_its_line() -> None:
    def leaves(_: Any) -> Any:
        sys.exit(3)

    report = check_function((leaves, leaves), torch.abs, [np.ones(3)])
    place = f"{__file__}:{leaves.__code__.co_firstlineno + 1}"
    assert report.problem == f"leaves: forward raised RuntimeError: sys.exit(3) at {place}"


def test_a_package_whose_name_begins_as_torchs_is_the_users() -> None:
    own = interpreter("torchdiffeq", "solver.py")
    where = Path(torch.__file__).parents[1] / "torchdiffeq" / "solver.py"
    assert place_of(raised(lambda: own(kernel, None))) == f" at {where}:13"
