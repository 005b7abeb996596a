"""Mutants: a class with one mistake in one of its methods, and the names of the tensors that the mistake can make
wrong.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.mutation.observing import head, observe, statements
from benchmarks.mutation.operators import mistakes
from benchmarks.mutation.replacing import replace_method
from nn_manual.exercises.causes.change import replaced

#: For each element that a method returns, the names of the tensors that come from it.
Returns = tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Mutant:
    """A mistake in a method.

    `tensors` are the names of the tensors that it can make wrong ("grad_weight", "output", ...); the check must name
    one of them first. `line` and `mutated` are the line without and with the mistake. `changed` is a subclass of the
    owner, of the same name, with the mistake. `lines` are the numbers of the lines that change, counted from the first
    of the method; without any, the whole method may.
    """

    owner: type
    method: str
    operator: str
    line: str
    mutated: str
    tensors: frozenset[str]
    changed: type[Any]
    lines: range = range(0)

    def __str__(self) -> str:
        return f"{self.owner.__name__}.{self.method}, {self.operator}: {self.mutated}"


def mutants(
    owner: type, method: str, returns: Returns, tensors: frozenset[str], run: Callable[[type], object]
) -> Iterator[Mutant]:
    """Every mutant of one method, each text once.

    `tensors` are the names of all tensors that the method computes; `returns` has those that come from each element
    that it returns. `run` runs the class that it is given, which shows what kinds of values stand where.
    """
    function = inspect.getattr_static(owner, method)  # its own, or one that it shares with others
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))

    def install(changed: ast.Module, names: dict[str, Any]) -> None:
        run(replace_method(owner, method, _compiled(function, ast.unparse(changed), names)))

    values = observe(tree, install)
    if not values:
        raise ValueError(f"no example of {owner.__name__} runs its {method}")
    seen = {ast.unparse(tree)}
    for statement in statements(tree):
        of_all = _computed(tree, statement, returns, tensors, lambda _: True)
        for mistake in mistakes(statement, values):
            mutated = replaced(tree, mistake.node, mistake.wrong)
            if (text := ast.unparse(mutated)) in seen:
                continue
            seen.add(text)
            wrong = of_all
            if isinstance(statement, ast.Return):
                touched = functools.partial(_holds, node=mistake.node)
                wrong = _computed(tree, statement, returns, tensors, touched)
            lines = ast.unparse(head(statement)), ast.unparse(head(replaced(statement, mistake.node, mistake.wrong)))
            compiled = _compiled(function, text, {"previous": previous})
            changed = replace_method(owner, method, compiled)
            part: Any = head(statement)
            places = range(part.lineno - 1, part.end_lineno)
            yield Mutant(owner, method, mistake.operator, *lines, wrong or tensors, changed, places)


def previous(self: Any, value: Any) -> Any:
    """What `value` was in the last run of the method, as in an array that is kept and not filled again. It is `value`
    itself in the first run, and if the shape has changed.
    """
    before = vars(self).get("_previous", value)
    self._previous = copy.deepcopy(value)
    return before if np.shape(before) == np.shape(value) else value


def _compiled(function: Callable[..., Any], code: str, names: dict[str, Any]) -> Callable[..., Any]:
    """The function that the code defines, in the place where `function` was defined, with more `names` known. It isn't
    compiled from the tree, which has some nodes in two places and others without a line.
    """
    namespace = {**function.__globals__, **names}
    # `super()` reads the class in which a method stands from a variable around it.
    around = f"def maker(__class__):\n{textwrap.indent(code, ' ')}\n return {function.__name__}"
    exec(compile(around, f"<{function.__qualname__}, changed>", "exec"), namespace)
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    compiled: Callable[..., Any] = namespace["maker"](cells["__class__"].cell_contents if cells else None)
    return compiled


def _computed(
    tree: ast.Module,
    statement: ast.stmt,
    returns: Returns,
    tensors: frozenset[str],
    touched: Callable[[ast.AST], bool],
) -> frozenset[str]:
    """The names of the tensors that a statement computes, or that are computed from what it stores. Empty if nothing is
    known. All `tensors` of the method if it stores, or returns, what another method that writes gradients makes of
    its values.

    For a `return`, only the elements that are `touched` count.
    """
    if isinstance(statement, ast.If):
        inside = (_computed(tree, inner, returns, tensors, lambda _: True) for inner in statements(statement))
        return frozenset().union(*inside)
    if isinstance(statement, ast.Assign | ast.Return) and any(map(_writes_gradients, ast.walk(statement))):
        return tensors
    if isinstance(statement, ast.Return):
        value = statement.value
        if value is None:
            return frozenset()
        if not isinstance(value, ast.Tuple) or len(returns) < 2:  # all elements at once, as another method gives them
            return frozenset().union(*returns) if touched(value) else frozenset()
        return frozenset().union(*(names for names, part in zip(returns, value.elts, strict=True) if touched(part)))
    attributes = (node for node in ast.walk(statement) if isinstance(node, ast.Attribute))
    grads = frozenset(f"grad_{node.attr}" for node in attributes if ast.unparse(node.value) == "self.grad")
    if grads:
        return grads
    reads = functools.partial(_reads, names=_stored(statement))
    later = [other for other in statements(tree) if other.lineno > statement.lineno and reads(head(other))]
    return frozenset().union(*(_computed(tree, other, returns, tensors, reads) for other in later))


def _writes_gradients(node: ast.AST) -> bool:
    """Whether it is a call of the layer's own method `..._backward`, or of the `backward` of its base or of a layer in
    it.
    """
    called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
    return re.fullmatch(r"self\.\w+_backward|\w+\.backward", called) is not None


def _holds(part: ast.AST, node: ast.AST) -> bool:
    return any(inner is node for inner in ast.walk(part))


def _reads(part: ast.AST, names: set[str]) -> bool:
    return any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(part))


def _stored(statement: ast.stmt) -> set[str]:
    """The local names that a statement gives a value, or an element of a value."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", statement)]
    parts = (part for target in targets for part in (target.elts if isinstance(target, ast.Tuple) else [target]))
    names = (part.value if isinstance(part, ast.Subscript) else part for part in parts)
    return {name.id for name in names if isinstance(name, ast.Name)}
