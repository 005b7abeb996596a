"""Operations as exercises: the reader writes the functions that take a gradient back to each operand."""

from __future__ import annotations

import functools
import inspect
from contextlib import suppress
from typing import Any, ClassVar

import numpy as np

from nn_manual import ops
from nn_manual.arrays import Array, Domain
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.operation_cases import OperationCase
from nn_manual.exercises.kinds.exercise import Case, Exercise, NotASolution, Results, keeping
from nn_manual.exercises.kinds.formula_words import WORDS_OF_OPERATIONS
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.exercises.kinds.operation_settings import settings_of

SEED = 0
#: The kinds of operands, beside those of operations that take positive numbers alone. Tied ones lie at kinks.
KINDS = ("random", "tied", "negative", "tiny")
#: A kind for power alone: a base of 0, whose powers of 1 and more have gradients.
ZERO_BASE = "zero base"
#: Kinds for softmax and logsumexp: exp overflows, or is 0 everywhere, and the right gradients are neither.
FAR_FROM_ZERO = {"large": 1e3, "large negative": -1e3}


class OperationExercise(Exercise):
    """`owner` is an Operation."""

    is_function: ClassVar[bool] = True
    has_way_back: ClassVar[bool] = True

    def cases(self) -> list[Case]:
        """Each of the shapes and options, with each kind of operands."""
        own = settings_of(self.owner)
        return [self._case(case, kind) for case in own for kind in self._kinds(case)]

    def _kinds(self, case: OperationCase) -> tuple[str, ...]:
        if case.operation is ops.power:
            return ("random", "tied", ZERO_BASE)
        if case.operation in (ops.softmax, ops.logsumexp):
            return (*KINDS, *FAR_FROM_ZERO)
        return ("random", "tied") if case.positive else KINDS

    def _case(self, case: OperationCase, kind: str) -> Case:
        generator = np.random.default_rng(SEED)
        domain: Domain = "positive" if case.positive else "real"
        if kind == ZERO_BASE:
            few = ([0.0, 2.0], [1.0, 3.0])
            operands = [generator.choice(values, shape) for values, shape in zip(few, case.shapes, strict=True)]
        elif kind in FAR_FROM_ZERO:
            operands = [FAR_FROM_ZERO[kind] + draw("random", shape, "float64", generator) for shape in case.shapes]
        else:
            operands = [draw(kind, shape, "float64", generator, domain) for shape in case.shapes]
        answer = self.owner(*operands, **case.options)
        grad_answer = freeze(draw("random", answer.shape, "float64", generator))
        run = functools.partial(_run, operands=freeze(operands), grad_answer=grad_answer, case=case)
        bound = inspect.signature(self.owner).bind(*operands, **case.options)
        bound.apply_defaults()
        shapes = " and ".join(map(str, case.shapes))
        options = "".join(f", {name}={value!r}" for name, value in case.options.items())
        setting = f"{self.title} of {shapes}{options}"
        known = WORDS_OF_OPERATIONS | bound.arguments | {"grad_answer": grad_answer}
        return Case(setting, f"{kind} operands", run, known, case)

    def wanted(self) -> str:
        """One function for each operand."""
        return "Each function gets grad_answer and returns the gradient of its operand, shaped as the operand."

    def accepts(self, own: Any) -> str:
        """Any operation but the package's own."""
        if own is self.owner:
            return f"{self.title} is nn_manual's own operation: write it"
        return "" if isinstance(own, ops.Operation) else f"{self.title} must stand below @operation, as it was written"


def end_of(operation: ops.Operation) -> str:
    """The last line of an operation: the answer, and a function for each operand."""
    parameters = inspect.signature(operation).parameters.values()
    operands = [each.name for each in parameters if each.kind is inspect.Parameter.POSITIONAL_ONLY]
    any_number = next((each.name for each in parameters if each.kind is inspect.Parameter.VAR_POSITIONAL), "")
    if any_number:
        return f"return answer, *(backward_of(position) for position in range(len({any_number})))"
    return f"return answer, {', '.join(f'grad_{name}' for name in operands)}"


def _run(own: ops.Operation, operands: list[Array], grad_answer: Array, case: OperationCase) -> Results:
    returned: Any = own.differentiate(operands, case.options)
    names = case.operand_names
    is_whole = isinstance(returned, tuple) and len(returned) == 1 + len(names) and all(map(callable, returned[1:]))
    if not is_whole:
        last = max(line for *_, line in own.rule.__code__.co_lines() if line is not None)
        raise NotASolution(f"the operation must end in `{end_of(case.operation)}`, as it was written", last)
    answer = np.asarray(returned[0])
    results = {"answer": answer.copy()}
    with np.errstate(all="ignore"), keeping(results):  # as in ops.vjp
        for name, backward in zip(names, returned[1:], strict=True):
            with suppress(NotImplementedError):
                gradient = backward(grad_answer)
                if answer.tobytes() != results["answer"].tobytes():
                    line = getattr(getattr(backward, "__code__", None), "co_firstlineno", 0)
                    raise NotASolution(f"grad_{name} writes into answer, which other code still reads", line)
                results[f"grad_{name}"] = gradient
    return results
