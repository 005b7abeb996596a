"""The local variables of a formula in a loop over time: the array that each shows, from iteration to iteration."""

from __future__ import annotations

from collections.abc import Iterator

from nn_manual.trace.observed import Observed
from nn_manual.trace.trace import View, views
from nn_manual.unroll.views import is_same

#: A local variable: the running function's number, and the name.
Local = tuple[int, str]


class Carried:
    """`varying` are the local variables that show different arrays in different iterations. For those that operations
    take, `updates` has, by operation, the variables that change there and their new views; `last` has the views after
    the last operation of a loop. `begins` has the first operation of each loop and the first one of its second
    iteration. `inside` are all operations in loops.
    """

    def __init__(self, observed: Observed) -> None:
        self.varying: set[Local] = set()
        self.updates: dict[int, list[tuple[str, View]]] = {}
        self.last: dict[int, list[tuple[str, View]]] = {}
        self.begins = {loop[0]: loop[1] for loop in observed.loops}
        self.inside = {index for loop in observed.loops for index in range(loop[0], loop[-1])}
        for loop in observed.loops:
            self._follow(observed, loop)

    def _follow(self, observed: Observed, loop: list[int]) -> None:
        shown: dict[Local, list[tuple[int, View]]] = {}
        taken: set[Local] = set()
        for index in range(loop[0], loop[-1]):
            operation = observed.operations[index]
            arguments = tuple(views(operation.arguments))
            for local, view in _locals(observed, index):
                if not shown.get(local) or shown[local][-1][1] != view:
                    shown.setdefault(local, []).append((index, view))
                if any(is_same(argument, view) for argument in (*arguments, operation.output)):
                    taken.add(local)
        for local, values in shown.items():
            if len({view for _, view in values}) < 2:
                continue
            self.varying.add(local)
            if local in taken:
                for index, view in values:
                    self.updates.setdefault(index, []).append((local[1], view))
                self.last.setdefault(loop[-1] - 1, []).extend((local[1], view) for view in _last(values, loop))


def _locals(observed: Observed, index: int) -> Iterator[tuple[Local, View]]:
    for frame in observed.sites[index].frames:
        if frame.is_owners:
            yield from (((frame.number, name), view) for name, view in frame.views.items())


def _last(values: list[tuple[int, View]], loop: list[int]) -> list[View]:
    """The view of a variable after the loop, one iteration further. No operation in the loop sees it."""
    (_, before), (index, view) = values[-2:]
    if index not in loop or before.storage != view.storage:  # operations saw it in the iteration that set it
        return []
    return [view._replace(offset=2 * view.offset - before.offset)]
