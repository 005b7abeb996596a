"""Steps that are proven together: each comes once it is proven."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from nn_manual import Trainer
from nn_manual.trainer.steps import Step


def proven(trainer: Trainer, steps: Iterable[Step]) -> Iterator[Step]:
    """The steps of a trainer that checks all of them, in their order, each once it has passed. Raises what the steps
    raise.
    """
    waiting = deque[Step]()
    for step in steps:
        waiting.append(step)
        while waiting and _is_proven(waiting[0]):
            yield waiting.popleft()
    trainer.flush()
    yield from waiting


def _is_proven(step: Step) -> bool:
    assert step.check is not None  # the trainer checks every step
    return step.check.proven
