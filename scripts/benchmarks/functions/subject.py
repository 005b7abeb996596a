"""One function to be judged: a kernel with its backward pass, its definition, its inputs, and what is wrong with it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch


@dataclass(frozen=True)
class Subject:
    """`fault` says what is wrong; it is empty if nothing is. The report must contain one of the words in `named`."""

    function: Any
    reference: Any
    inputs: Callable[..., Any]
    sizes: dict[str, int]
    fault: str = ""
    named: tuple[str, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What it is called in a list."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def draw(self, seed: int = 0) -> Any:
        """The inputs at the sizes that an engineer would write down."""
        return self.inputs(torch.Generator().manual_seed(seed), **self.sizes)


@dataclass(frozen=True)
class Handwriting:
    """A pair of functions or a HandwrittenClass as a student writes it, with a definition in torch that autograd
    differentiates, and the inputs. `fault` says what is wrong; it is empty if nothing is. The report must have one of
    the words in `named`: the gradient's name, or words of the diagnosis.
    """

    name: str
    function: Any
    reference: Any
    inputs: list[Any]
    fault: str = ""
    named: tuple[str, ...] = ()


@dataclass(frozen=True)
class Published:
    """A function of a published package, or one that shows a mistake which was mended in public, and its definition in
    torch. `fault` says what is wrong; it is empty if nothing is. `why` says how that was worked out, before any report
    was looked at. The report must have one of the words in `named`: the gradient's name, the row's, or words of the
    problem. `inputs` are a list, or with `sizes` a function that makes one.
    """

    name: str
    function: Any
    reference: Any
    inputs: Any
    why: str
    sizes: dict[str, Any] | None = None
    options: dict[str, Any] = field(default_factory=dict)
    fault: str = ""
    named: tuple[str, ...] = ()


def normal(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Standard normal numbers in float64."""
    return torch.randn(*shape, generator=generator, dtype=torch.float64)
