"""Which of 60 wrong functions each check catches and names, and which of 62 right ones it blames."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch.testing import assert_close

from benchmarks.functions.reported import layers, surroundings, values
from benchmarks.functions.subject import Subject
from benchmarks.functions.unseen import activations, conduct, losses, normalization, products
from nn_manual import check_function
from nn_manual.functions.arguments import Arguments, arguments_of, as_tensor
from nn_manual.functions.callables import floats
from nn_manual.functions.outputs import named_outputs

UNSEEN = (activations, conduct, losses, normalization, products)
REPORTED = (layers, surroundings, values)


class Verdict(NamedTuple):
    """Whether a function passed, and what was said of it."""

    passed: bool
    words: str = ""


Judge = Callable[[Subject], Verdict]


def by_check_function(subject: Subject) -> Verdict:
    """With the sizes, and with the dtypes if the function needs others than float64. Its words are the names of what it
    calls wrong.
    """
    report = check_function(subject.function, subject.reference, subject.inputs, sizes=subject.sizes, **subject.options)
    rows = [f"{row.name}: {row.note}" for row in report.wrong]
    return Verdict(report.passed, "\n".join([report.problem or "", *(c.name for c in report.failures), *rows]))


def by_gradcheck(subject: Subject) -> Verdict:
    """torch.autograd.gradcheck with its defaults; it knows no reference."""
    arguments, run = _plain(subject)
    floating = [name for name, leaf in zip(arguments.names, arguments.leaves, strict=True) if floats(leaf)]
    leaves = [leaf.requires_grad_() if floats(leaf) else leaf for leaf in arguments.leaves]
    try:
        passed = torch.autograd.gradcheck(lambda *inputs: _floating(run(_cloned(inputs))), leaves)
    except Exception as error:  # a kernel may raise anything
        words = str(error)
        for index in reversed(range(len(leaves))):
            name = arguments.names[index]
            words = words.replace(f"with respect to input {index}", f"grad_{name}" if name in floating else name)
        return Verdict(passed=False, words=words)
    return Verdict(bool(passed))


def by_assert_close(subject: Subject) -> Verdict:
    """What a hand-written test does, in the dtype that the function is for: it compares each gradient of both
    backwards, under an upstream gradient of ones.
    """
    arguments, run = _plain(subject)
    dtype = subject.options.get("dtypes", [None])[0]
    if dtype is not None:
        arguments = _in_dtypes(arguments, dtype)
    try:
        found = _run(run, arguments)
        wanted = _run(lambda leaves: arguments.call(subject.reference, leaves), arguments)
    except Exception as error:  # a kernel may raise anything
        return Verdict(passed=False, words=f"{type(error).__name__}: {error}")
    for name, expected in wanted.items():
        try:
            assert_close(found[name], expected)
        except (AssertionError, KeyError) as error:
            return Verdict(passed=False, words=f"{name}: {error}")
    return Verdict(passed=True)


def _run(run: Callable[[Sequence[Any]], Any], arguments: Arguments) -> dict[str, Any]:
    leaves = [leaf.detach().clone().requires_grad_() if floats(leaf) else leaf for leaf in arguments.leaves]
    outputs = named_outputs(run(_cloned(leaves))).tensors
    floating = [output for output in outputs.values() if output.is_floating_point() and output.requires_grad]
    torch.autograd.backward(floating, [torch.ones_like(output) for output in floating])
    grads = {f"grad_{name}": leaf.grad for name, leaf in zip(arguments.names, leaves, strict=True) if floats(leaf)}
    return {**{name: output.detach() for name, output in outputs.items()}, **grads}


def _plain(subject: Subject) -> tuple[Arguments, Callable[[Sequence[Any]], Any]]:
    """The arguments as tensors, and the function on them; a pair becomes an autograd.Function."""
    arguments = arguments_of(subject.function, subject.reference, subject.draw())
    leaves = tuple(as_tensor(leaf) if floats(leaf) else leaf for leaf in arguments.leaves)
    arguments = replace(arguments, leaves=leaves)
    function = subject.function
    if isinstance(function, tuple):
        function = _of_pair(*function)
    if isinstance(function, type):
        function = function.apply  # type: ignore[attr-defined] # of an autograd.Function
    return arguments, lambda inputs: arguments.call(function, inputs)


def _in_dtypes(arguments: Arguments, dtype: str | tuple[str, ...]) -> Arguments:
    """The first of the dtypes in which the subject is judged: one for all floating inputs, or one for each."""
    floating = [leaf for leaf in arguments.leaves if floats(leaf)]
    names = iter((dtype,) * len(floating) if isinstance(dtype, str) else dtype)
    leaves = tuple(leaf.to(getattr(torch, next(names))) if floats(leaf) else leaf for leaf in arguments.leaves)
    return replace(arguments, leaves=leaves)


def _of_pair(forward: Callable[..., Any], backward: Callable[..., Any]) -> type[torch.autograd.Function]:
    class Pair(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, *inputs: Any) -> Any:
            outputs, context.saved = forward(*inputs)
            return outputs

        @staticmethod
        def backward(context: Any, *grad_outputs: Any) -> Any:
            return backward(context.saved, *grad_outputs)

    return Pair


def _cloned(leaves: Sequence[Any]) -> list[Any]:
    """A function that works in place needs copies of leaves."""
    return [leaf.clone() if floats(leaf) else leaf for leaf in leaves]


def _floating(returned: Any) -> tuple[torch.Tensor, ...]:
    return tuple(output for output in named_outputs(returned).tensors.values() if output.is_floating_point())


JUDGES: dict[str, Judge] = {
    "torch.autograd.gradcheck": by_gradcheck,
    "assert_close under ones": by_assert_close,
    "check_function": by_check_function,
}


def main() -> int:
    """Print the table of docs/checking_your_own_code.md. Returns 1 if check_function misses a wrong function or blames
    a right one, else 0.
    """
    warnings.simplefilter("ignore")
    wrong = {half: [s for module in modules for s in module.WRONG] for half, modules in _halves().items()}
    right = [subject for modules in _halves().values() for module in modules for subject in module.RIGHT]
    print(f"{'':26}" + "".join(f"{judge:>26}" for judge in JUDGES))
    counts: dict[str, list[str]] = {}
    failed = 0
    for judge_name, judge in JUDGES.items():
        start = time.perf_counter()
        for half, subjects in wrong.items():
            verdicts = [(subject, judge(subject)) for subject in subjects]
            caught = [(subject, verdict) for subject, verdict in verdicts if not verdict.passed]
            named = [s for s, verdict in caught if any(word in verdict.words for word in s.named)]
            counts.setdefault(f"caught, {half}", []).append(f"{len(caught)} of {len(subjects)}")
            counts.setdefault(f"named, {half}", []).append(f"{len(named)} of {len(subjects)}")
            if judge is by_check_function:
                missed = [s for s in subjects if s not in named]
                failed += len(missed)
                for subject in missed:
                    print(f"missed or unnamed: {subject.name}: {subject.fault}")
        blamed = [subject for subject in right if not judge(subject).passed]
        counts.setdefault("right ones blamed", []).append(f"{len(blamed)} of {len(right)}")
        if judge is by_check_function:
            failed += len(blamed)
        if blamed:
            print(f"{judge_name} blames {', '.join(subject.name for subject in blamed)}")
        counts.setdefault("seconds", []).append(f"{time.perf_counter() - start:.0f}")
    for row, cells in counts.items():
        print(f"{row:26}" + "".join(f"{cell:>26}" for cell in cells))
    return int(failed > 0)


def _halves() -> dict[str, Sequence[Any]]:
    return {"unseen": UNSEEN, "reported": REPORTED}
