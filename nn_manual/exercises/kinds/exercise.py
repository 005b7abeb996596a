"""What an exercise is: a component without its hand-derived part, and the cases that a solution is run on."""

from __future__ import annotations

import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, TypeGuard

from nn_manual.arrays import Array
from nn_manual.errors import is_from_outside
from nn_manual.exercises.kinds.formulas import Formula

#: The methods that go with another one: each is taken out with it where a class has it itself.
WITH_IT: Mapping[str, tuple[str, ...]] = {"backward": ("backward_target",), "lr": ("momentum", "observe")}
#: What a component computes from a case, by the names of formulas: output, grad_input, grad_weight, ...
Results: TypeAlias = dict[str, Array]


class NotASolution(Exception):  # noqa: N818 - says what happened
    """The reader's code does what no solution may do: the text says what, and is told as it is. `line` is that of the
    reader's file, where no call in it says which one it is.
    """

    def __init__(self, words: str, line: int = 0) -> None:
        super().__init__(words)
        self.line = line


class Reached(Exception):  # noqa: N818 - says what happened
    """The reader's code has raised `error`, and `results` were there before."""

    def __init__(self, results: Results, error: BaseException) -> None:
        super().__init__()
        self.results, self.error = results, error


@contextmanager
def keeping(results: Results) -> Iterator[None]:
    """What is computed in this block may fail: then `results` are kept. Raises Reached for any error but of what isn't
    written yet.
    """
    try:
        yield
    except BaseException as error:  # the reader's code may raise SystemExit
        if isinstance(error, NotImplementedError) or is_from_outside(error):
            raise
        raise Reached(results, error) from error


def is_no_array(error: BaseException, function: Callable[..., Any]) -> TypeGuard[AttributeError]:
    """Whether this function of ours has read the shape of what the reader's code returned, which is no array."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return isinstance(error, AttributeError) and frame.f_code is function.__code__


@dataclass(frozen=True)
class Case:
    """One input of an exercise.

    `setting` is the component as one would write it, LayerNorm(3, bias=False), and `kind` says what is special about
    the input: "tied input". `run` gives the results of a component: of ours, of a changed one, of the reader's. It
    raises what the component's code raises, as Reached where results were there before. `known` has the values of the
    names that the formulas in the docstring read, and `instance` the component of the package with these settings,
    which isn't bound to any memory. `conditions` say which formulas hold, beside those that depend on a setting:
    {"target": "indices"}. `prepare` gives a run that can be repeated in less time, each time with the methods that the
    class has then, with or without forward.
    """

    setting: str
    kind: str
    run: Callable[[Any], Results]
    known: Mapping[str, Any]
    instance: Any
    conditions: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[[Any], Callable[[bool], Results]] | None = None

    def __str__(self) -> str:
        return f"{self.setting}, {self.kind}"


@dataclass(frozen=True)
class Exercise(ABC):
    """A component of the package that a reader completes.

    `name` is what the command line calls it, "layer_norm"; `owner` is the class, or the operation. `taken_out` are the
    names of the methods that the reader writes; an operation's are its functions back.
    """

    name: str
    owner: Any
    taken_out: tuple[str, ...]

    #: Whether the reader writes a function, and no class.
    is_function: ClassVar[bool] = False
    #: Whether the docstring has formulas of a way back, which an exercise doesn't show.
    has_way_back: ClassVar[bool] = False
    #: The methods with the hand-derived part of a class of this kind, the most special first: only the first that a
    #: class has is taken out.
    methods: ClassVar[tuple[str, ...]] = ()
    #: What leads to the output of a class of this kind, and stays in the file.
    given: ClassVar[tuple[str, ...]] = ()
    #: The room that exports the classes of this kind.
    room: ClassVar[str] = ""

    @property
    def title(self) -> str:
        """The owner's own name, LayerNorm."""
        return str(self.owner.__name__)

    @property
    def derived(self) -> tuple[str, ...]:
        """Every method with hand-derived code that a class of this kind may have."""
        return (*self.methods, *(other for name in self.methods for other in WITH_IT.get(name, ())))

    @abstractmethod
    def cases(self) -> list[Case]:
        """The cases, from easy to tricky, always the same: in float64, where a right solution in another order of
        operations differs by 1e-12 at most, and a wrong one by much more.
        """

    @abstractmethod
    def wanted(self) -> str:
        """What the reader's code must do, in a sentence: "Write grad_weight, return grad_input."."""

    def asked_of(self, method: str) -> str:  # noqa: ARG002 - most exercises have one method
        """What one of the methods must do, in a sentence."""
        return self.wanted()

    def formulas(self) -> list[Formula]:
        """The formulas, where they aren't those of the owner's docstring."""
        return []

    def way_back(self) -> list[str]:
        """Our lines of the gradients, where they stand in no docstring."""
        return []

    def accepts(self, own: Any) -> str:
        """Why an object of the reader's file isn't a solution of this exercise, in words; empty where it may be one."""
        if isinstance(own, type) and issubclass(own, self.owner):
            return ""
        return f"{self.title} must be a class with nn_manual's {self.title} as its base, as `exercise start` writes it"
