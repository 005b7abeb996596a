"""The package's code with a setting of the component that the way back ignores, while forward does not."""

from __future__ import annotations

import ast
import copy
import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple

from nn_manual.exercises.causes.candidates import Candidate, Source
from nn_manual.exercises.causes.change import ANOTHER, Change
from nn_manual.exercises.causes.code_text import CodeText
from nn_manual.exercises.files.source import called
from nn_manual.exercises.kinds.exercise import Case, Exercise, Results
from nn_manual.optim import Optimizer

#: Fields that are no settings of a formula.
NO_SETTINGS = ("model", "groups", "lr")
#: What refuses bad input, or says how large something is, knows the right settings.
GUARDS = ("check_gradient", "output_shape")
#: What a setting without a default may be taken for.
PLAIN: Mapping[type, tuple[Any, ...]] = {int: (1, 0), float: (1.0, 0.0), bool: (False,), list: (1, 0)}


class _Ignored(NamedTuple):
    """A setting at another value, or its two numbers exchanged. The helpers that the reader's file has may keep the
    right setting.
    """

    name: str
    value: Any
    is_exchanged: bool
    keeps_helpers: bool

    def of(self, own: Any) -> Any:
        """The value in the place of a component's own one."""
        is_pair = isinstance(own, tuple | list) and len(own) == 2
        return (type(own)(reversed(own)) if is_pair else own) if self.is_exchanged else self.value

    @property
    def words(self) -> str:
        """Behind "the right grad_input"."""
        if self.is_exchanged:
            return f"with the two numbers of `{self.name}` exchanged"
        return f"for {self.name}={self.value!r}: your code ignores `{self.name}`"


class IgnoredSettings(Source):
    """The package's class, whose methods that the reader writes run with one setting changed: the last change of a
    candidate. Any others are those of a text.
    """

    def __init__(self, exercise: Exercise, cases: Sequence[Case], text: CodeText | None = None) -> None:
        self.cases, self._owner, self._text = cases, exercise.owner, text
        methods = [name for name in (*exercise.taken_out, "coefficients") if hasattr(self._owner, name)]
        self._helpers = {one.name for one in called(self._owner, exercise.given)} - {*methods, *exercise.given}
        self._ignored = list(self._every())
        self._now = self._ignored[0] if self._ignored else None
        self._number = 0
        self._prepared: dict[int, Callable[[bool], Results]] = {}
        self._different: dict[tuple[int, str, str], dict[str, Any]] = {}
        base = self._owner if text is None else text.changed_class
        self._changed = type(self._owner.__name__, (base,), {name: self._on_twin(base, name) for name in methods})

    def candidates(self, numbers: Iterable[int]) -> Iterator[Candidate]:
        """The settings that differ from the component's own in one of these cases."""
        instances = {id(case.instance): case.instance for case in map(self.cases.__getitem__, numbers)}.values()
        for index, ignored in enumerate(self._ignored):
            every_own = [getattr(instance, ignored.name) for instance in instances]
            if any(own != ignored.of(own) for own in every_own):
                change = Change(ast.Pass(), ast.Pass(), ignored.words, ANOTHER)
                yield Candidate(((index, change),), ("",), "", ANOTHER)

    def results(self, candidate: Candidate, number: int) -> Results:
        """What the class computes in a case with the setting of a candidate."""
        *edits, (index, _) = candidate.edits
        self._now, self._number = self._ignored[index], number
        with nullcontext() if self._text is None else self._text.having(candidate._replace(edits=tuple(edits))):
            return self._run(number)

    def _run(self, number: int) -> Results:
        case = self.cases[number]
        if case.prepare is None:
            return case.run(self._changed)
        is_first = number not in self._prepared
        if is_first:
            self._prepared[number] = case.prepare(self._changed)
        return self._prepared[number](is_first)

    def _every(self) -> Iterator[_Ignored]:
        for field in dataclasses.fields(self._owner) if dataclasses.is_dataclass(self._owner) else ():
            if field.name in NO_SETTINGS or not field.init:
                continue
            own = [getattr(case.instance, field.name, None) for case in self.cases]
            values = [] if field.default in (dataclasses.MISSING, None) else [field.default]
            for kind in dict.fromkeys(type(value) for value in own) if not values else ():
                values += [value for value in PLAIN.get(kind, ()) if value not in values]
            values = [None, *values] if field.default is None else values
            for keeps_helpers in (False, True) if self._helpers and self._text is None else (False,):
                yield from (_Ignored(field.name, value, False, keeps_helpers) for value in values)
                if any(isinstance(value, tuple | list) and len(value) == 2 for value in own):
                    yield _Ignored(field.name, None, True, keeps_helpers)

    def _on_twin(self, base: type, name: str) -> Callable[..., Any]:
        def changed(own: Any, *arguments: Any) -> Any:
            return getattr(base, name)(self._twin(own), *arguments)

        return changed

    def _twin(self, own: Any) -> Any:
        """A component with the setting of now, and all else the same."""
        assert self._now is not None
        kept = {*GUARDS, *(self._helpers if self._now.keeps_helpers else ())}
        twin = copy.copy(own)
        vars(twin).update(self._differences(self._now))
        vars(twin).update({name: getattr(own, name) for name in kept if hasattr(own, name)})
        return twin

    def _differences(self, ignored: _Ignored) -> Mapping[str, Any]:
        """The attributes that the setting gives other values. Raises what the class raises for it."""
        instance = self.cases[self._number].instance
        value = ignored.of(getattr(instance, ignored.name))
        key = id(instance), ignored.name, repr(value)
        if key not in self._different:
            self._different[key] = {ignored.name: value}
            if not isinstance(instance, Optimizer):  # its settings are read where they are needed
                before, after = vars(dataclasses.replace(instance)), vars(_made(instance, ignored.name, value))
                self._different[key] |= {
                    name: other for name, other in after.items() if repr(other) != repr(before.get(name))
                }
        return self._different[key]


def _made(instance: Any, name: str, value: Any) -> Any:
    """A component with another setting, and with the default of a second one where the first needs that. Raises what
    the class raises where that isn't enough.
    """
    try:
        return dataclasses.replace(instance, **{name: value})
    except ValueError:
        for field in dataclasses.fields(instance):
            if field.name != name and field.default not in (dataclasses.MISSING, getattr(instance, field.name)):
                with suppress(ValueError):
                    return dataclasses.replace(instance, **{name: value, field.name: field.default})
        raise
