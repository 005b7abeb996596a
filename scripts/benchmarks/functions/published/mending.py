"""A mistake that was mended in public, written anew: two cases, before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

from benchmarks.functions.subject import Published

#: forward, which returns (output, saved), and backward, which takes the gradient of the output and `saved`; or one that
#: autograd knows.
Form = tuple[Callable[..., Any], Callable[..., Any]] | type[torch.autograd.Function]


@dataclass(frozen=True)
class Mended:
    """`issue` is the repository and the number under which it was reported or mended; `fault` says what was wrong."""

    issue: str
    fault: str
    named: tuple[str, ...]
    before: Form
    after: Form
    reference: Callable[..., Any]
    inputs: Callable[..., list[torch.Tensor]]
    sizes: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def wrong(self) -> Published:
        """Before it was mended."""
        name, why = f"before {self.issue}", "the report of the mistake says where it shows"
        return Published(
            name, self.before, self.reference, self.inputs, why, self.sizes, self.options, self.fault, self.named
        )

    @property
    def right(self) -> Published:
        """After it was mended."""
        why = "the derivative by hand"
        return Published(f"after {self.issue}", self.after, self.reference, self.inputs, why, self.sizes, self.options)
