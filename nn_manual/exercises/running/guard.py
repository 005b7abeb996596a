"""What a reader's file must leave alone: the package, and the method that it is to write."""

from __future__ import annotations

import ast
import functools
import sys
from typing import Any

from nn_manual import ops
from nn_manual.exercises.kinds.exercise import Exercise, NotASolution
from nn_manual.exercises.running.answer import Failure


class Guard:
    """Remembers the package before a file is imported, and keeps the package's own method from being the answer."""

    def __init__(self, exercise: Exercise | None) -> None:
        self._own: type | None = None
        if exercise is not None and isinstance(exercise.owner, type):
            for name in exercise.taken_out:
                setattr(exercise.owner, name, self._refused(exercise, name))
        self._before = _functions()

    def watch(self, own: Any) -> None:
        """From now on, the package's own method refuses objects of this class."""
        self._own = own if isinstance(own, type) else None

    def _refused(self, exercise: Exercise, name: str) -> Any:
        ours = getattr(exercise.owner, name)
        words = f"it calls nn_manual's own {exercise.title}.{name}: write it yourself"
        behind = getattr(super(exercise.owner, exercise.owner), name, None)
        if behind is not None and not getattr(behind, "__isabstractmethod__", False):
            words += f", with super({exercise.room}.{exercise.title}, self).{name} for the one behind it"

        @functools.wraps(ours)
        def method(component: Any, *arguments: Any, **named: Any) -> Any:
            if self._own is not None and isinstance(component, self._own):
                raise NotASolution(words)
            return ours(component, *arguments, **named)

        return method

    def changed(self, tree: ast.AST) -> list[Failure]:
        """What the file has changed in the package, in words, with the line that assigns it where there is one."""
        after = _functions()
        names = [name for name, function in self._before.items() if after.get(name) is not function]
        if not names:
            return []
        last = names[0].rpartition(".")[2]
        lines = [
            node.lineno
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == last
        ]
        words = f"it changes {names[0]}: it is compared with what that was before"
        return [Failure(words, lines[0] if lines else 0)]


def _functions() -> dict[str, Any]:
    """Every function, class and method of the package, by its name."""
    found: dict[str, Any] = {}
    for module_name, module in list(sys.modules.items()):
        if module is None or not module_name.startswith("nn_manual"):
            continue
        for name, thing in list(vars(module).items()):
            if getattr(thing, "__module__", None) != module_name:
                continue
            found[f"{module_name}.{name}"] = thing
            if isinstance(thing, type) and not isinstance(thing, ops.Operation):
                found.update(
                    {f"{module_name}.{name}.{part}": own for part, own in vars(thing).items() if callable(own)}
                )
    return found
