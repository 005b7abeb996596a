"""Settings by a variable of the environment, which a library reads when it starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from benchmarks.settings.facts import Facts
from benchmarks.settings.setting import Place, Setting, SettingError


@dataclass(frozen=True)
class Variable(Setting):
    """`variable` has a value. Then everything that `shows` reads must match the pattern `expected`."""

    variable: str
    value: str
    shows: Callable[[Facts], str]
    expected: str
    needs: str = ""  # a feature of the processor, by numpy's name

    def why_not(self, here: Facts) -> str:
        """Empty if the processor has the instructions, and the library says which it uses."""
        if self.needs and self.needs not in here.processor:
            return f"the processor has no {self.needs}"
        return "" if self.shows(here) else "the library doesn't say which instructions it uses here"

    @contextmanager
    def made(self, place: Place, here: Facts) -> Iterator[Place]:
        """The place with the variable."""
        del here
        yield replace(place, environment={**place.environment, self.variable: self.value})

    def effect(self, there: Facts) -> str:
        """What the library says."""
        shown = self.shows(there)
        if not re.fullmatch(self.expected, shown):
            raise SettingError(f"{self.variable} took no effect: the library uses {shown or 'nothing that it names'}")
        return shown


@dataclass(frozen=True)
class NumpyBaseline(Setting):
    """numpy uses only its code for the oldest processor."""

    def why_not(self, here: Facts) -> str:
        """Empty if numpy uses more than its baseline."""
        return "" if here.numpy else "numpy uses nothing above its baseline here"

    @contextmanager
    def made(self, place: Place, here: Facts) -> Iterator[Place]:
        """The place in which all features are disabled that numpy says it uses."""
        disabled = {"NPY_DISABLE_CPU_FEATURES": " ".join(here.numpy)}
        yield replace(place, environment={**place.environment, **disabled})

    def effect(self, there: Facts) -> str:
        """That nothing is left."""
        if there.numpy:
            raise SettingError(f"NPY_DISABLE_CPU_FEATURES took no effect: numpy uses {' '.join(there.numpy)}")
        return "nothing above the baseline"
