"""The expression of each operation, in the words of its formula."""

from __future__ import annotations

import ast
from typing import Any, Protocol

import numpy as np

from nn_manual.arrays import Array
from nn_manual.trace.observed import Observed, Site
from nn_manual.trace.trace import CannotTrace, FixedValue, TracedOperation, View
from nn_manual.unroll.constants import NamedSettings, Resolver, number
from nn_manual.unroll.expressions import expression, literal, mean
from nn_manual.unroll.loops import in_list
from nn_manual.unroll.source import EMPTY_NAMES, operand_of
from nn_manual.unroll.syntax import Expression, Name, Parts, binary, call, of
from nn_manual.unroll.versions import Version, Versions, layer_of
from nn_manual.unroll.views import array_at, is_same

#: NumPy's functions that fill a new array with a number.
FILLING = frozenset({"full_like", "zeros_like", "ones_like"})


class Speaker(Protocol):
    """The object that writes the statements."""

    #: Expressions that aren't written yet, since they become parts of other expressions.
    pending: dict[Version, Expression]

    def text(self, version: Version, view: View, wanted: str = "") -> Expression:
        """The expression that shows a view of an array now; if possible, of the variable `wanted`."""

    def say(self, parts: Parts, defines: Name | None = None) -> None:
        """Write a line."""


class Saying:
    """Makes the expression of each operation. `fixed` has the names of arrays that depend on nothing, by their
    expressions.
    """

    def __init__(self, observed: Observed, versions: Versions, settings: NamedSettings, speaker: Speaker) -> None:
        self._observed, self._versions, self._settings, self._speaker = observed, versions, settings, speaker
        self.fixed: dict[Expression, Name] = {}
        self._named: dict[Name, Expression] = {}
        #: The terms that were added up to a number.
        self._terms: dict[Version, list[Expression]] = {}
        self._index = 0
        #: Whether a float array is among the operation's arguments, and not coefficients alone.
        self._has_array = True

    def of(self, operation: TracedOperation, index: int) -> Expression:
        """The expression of what the operation with this index computes."""
        self.at(index)
        site, pending = self._observed.sites[index], self._speaker.pending
        first = self._read(operation.arguments[0]) if operation.arguments else None
        if site.part_of == "_mean" and operation.name == "divide" and first in pending:
            return pending.pop(first)  # it is a mean already
        if site.part_of == "_mean" and operation.name == "add.reduce":
            return mean(operation, self.argument(operation.arguments[0], 0), self.argument)
        if self._versions.is_masked(operation, index):
            return self._selected(*operation.arguments)
        if operation.function is np.copyto and first in pending:
            (source,) = operation.arguments
            if is_same(source, first.form) and source.dtype == operation.output.dtype:
                return pending[first]  # the expression makes a new array anyway
        if operation.name == "add" and not operation.output.shape:
            return self._added(operation, first)
        if site.part_of == "stack" and operation.name == "concatenate":
            return self._stacked(operation)
        return expression(operation, self.argument)

    def argument(self, argument: Any, place: int | None) -> Expression:
        """The expression of an argument, which stands at this place among the operation's arguments."""
        node = operand_of(self._observed.sites[self._index], place) if place is not None else None
        if isinstance(argument, View):
            wanted = node.id if isinstance(node, ast.Name) else ""
            version = self._versions.read[self._index][argument]
            text = self._speaker.text(version, argument, wanted)
            if self._has_array or not _is_coefficient(version) or argument.dtype == np.float64:
                return text
            return call((f"np.{argument.dtype}",), [text.parts])  # Python would compute with it in float64
        if isinstance(argument, FixedValue):
            return self._constant(argument.value, node)
        if isinstance(argument, tuple | list):
            return self._several(argument)
        if isinstance(argument, slice):
            return of(repr(argument).replace("(None, None, None)", "(None)"))
        return of("..." if argument is Ellipsis else repr(argument))

    def at(self, index: int) -> None:
        """From now on arguments are those of the operation with this index."""
        self._index = index
        floats = [version for view, version in self._versions.read[index].items() if view.dtype.kind == "f"]
        self._has_array = not all(map(_is_coefficient, floats))

    def _read(self, argument: Any) -> Version | Any:
        return self._versions.read[self._index].get(argument) if isinstance(argument, View) else None

    def _several(self, arguments: tuple[Any, ...] | list[Any]) -> Expression:
        inner = [self.argument(each, None).parts for each in arguments]
        if isinstance(arguments, tuple):
            return Expression(("(", *call((), inner).parts[1:-1], ",)" if len(inner) == 1 else ")"))
        return Expression(("[", *(in_list(inner) or call((), inner).parts[1:-1]), "]"))

    def _selected(self, own: View, mask: View) -> Expression:
        """Bits of floats times 0 or 1: np.where(mask, array, 0)."""
        version = self._read(own)
        floats = self._speaker.text(version, own._replace(dtype=version.form.dtype))
        return call(("np.where",), [self.argument(mask, 1).parts, floats.parts, ("0",)])

    def _added(self, operation: TracedOperation, first: Version | None) -> Expression:
        """A sum of two numbers. The first may be a sum already."""
        said = [self.argument(argument, place) for place, argument in enumerate(operation.arguments)]
        terms = [*(self._terms.get(first, said[:1]) if first else said[:1]), said[1]]
        self._terms[self._versions.made[self._index]] = terms
        listed = in_list([term.parts for term in terms[1:]])
        if listed and str(terms[0]) == "np.float64(0.0)":
            return call(("sum",), [listed])
        return binary(operation.name, *said)

    def _stacked(self, operation: TracedOperation) -> Expression:
        """The concatenation inside np.stack, of arrays with a dimension more: it is written as np.stack."""
        views, axis = operation.arguments[0], operation.keywords.get("axis", FixedValue(0)).value
        texts = []
        for view in views:
            shape, strides = ([*own[:axis], *own[axis + 1 :]] for own in (view.shape, view.strides))
            flat = view._replace(shape=tuple(shape), strides=tuple(strides))
            texts.append(self._speaker.text(self._read(view), flat).parts)
        listed = in_list(texts) or call((), texts).parts[1:-1]
        return call(("np.stack",), [("[", *listed, "]"), (f"axis={axis}",)])

    def _constant(self, value: Any, node: ast.expr | None) -> Expression:
        site = self._observed.sites[self._index]
        if isinstance(value, np.ndarray) and value.size > 1:
            return self._fixed_array(literal(value), node)
        if isinstance(value, np.ndarray) and value.size == 1 and site.part_of in FILLING:
            value = value.item()
        return number(value, node, self._resolver(site)) if node is not None else literal(value)

    def _fixed_array(self, text: Expression, node: ast.expr | None) -> Expression:
        """An array that depends on nothing. It gets the formula's name, or is made once at the beginning of the step.
        """
        if isinstance(node, ast.Name) and node.id not in EMPTY_NAMES:
            name = Name(node.id, layer_of(self._observed.operations[self._index].place.owner))
            if name not in self._named:
                self._named[name] = text
                self._speaker.say((name, " = ", *text.parts), name)
            if self._named[name] == text:  # what isn't written yet may read the first array of this name
                return of(name)
        made = "ones" if str(text).startswith("np.ones(") else "fixed"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            made = node.func.id.strip("_")
        count = sum(name.local.startswith(made) for name in self.fixed.values())
        return of(self.fixed.setdefault(text, Name(f"{made}_{count + 1}" if count else made)))

    def _resolver(self, site: Site) -> Resolver:
        """A Resolver for the names in an expression of the source."""
        frame = site.frames[0]
        arrays: dict[str, tuple[Expression, Array]] = {}
        for name, version in self._versions.locals[self._index].items():
            if version.handles and version not in self._speaker.pending:
                try:
                    text = self._speaker.text(version, frame.views[name])
                except CannotTrace:
                    continue
                arrays[name] = text, array_at(frame.views[name])
        return Resolver(self._settings, frame.instance, frame, arrays)


def _is_coefficient(version: Version) -> bool:
    """Whether an array is one of the optimizer's coefficients, which the script has as Python's numbers."""
    return version.is_given and not version.form.shape
