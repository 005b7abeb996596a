"""The inputs: how they lie in memory, which values they have, and how large they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import torch

from nn_manual.check.comparison import CannotCompare
from nn_manual.check.functions.arguments import as_tensor
from nn_manual.check.functions.battery.trial import Run, Skip, Trial, agree, with_leaves
from nn_manual.check.functions.battery.upstream import LAYOUTS, expanded
from nn_manual.check.kinds import KINDS, draw

#: Sizes that kernels get wrong: none, one, odd and prime ones, and those on both sides of a block.
SIZES = (0, 1, 2, 3, 7, 13, 16, 17, 127, 128, 129)


def layouts(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Inputs that are not contiguous, as a transpose, an expand or a slice leaves them."""
    for name, layout in LAYOUTS.items():
        case = with_leaves(trial.case, _repeated) if layout is expanded else trial.case
        yield name, lambda case=case, layout=layout: agree(replace(case, layout=layout))  # type: ignore[misc] # defaults


def _repeated(tensor: torch.Tensor) -> torch.Tensor:
    return expanded(tensor).contiguous()


def kinds(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Ties, zeros, tiny and scattered values in the place of the floating inputs'. What has no number in the reference
    is not compared.
    """
    for kind in [kind for kind in KINDS if kind != "random"] if trial.kinds is None else trial.kinds:
        yield kind, lambda kind=kind: _kind(trial, kind)  # type: ignore[misc] # a default


def _kind(trial: Trial, kind: str) -> None:
    generator = np.random.default_rng(trial.seed)

    def drawn(tensor: torch.Tensor) -> torch.Tensor:
        return as_tensor(draw(kind, tuple(tensor.shape), "float64", generator)).to(tensor)

    try:
        agree(with_leaves(trial.case, drawn))
    except CannotCompare as problem:
        if trial.kinds is None:  # nobody said that it takes such values
            raise Skip(f"{problem}: these may be no values that it takes, kinds={{{kind!r}}} asks for them") from problem
        raise


def sizes(trial: Trial) -> Iterator[tuple[str, Run]]:
    """Each dimension empty, 1, odd, prime, and past a block, the others small."""
    if not callable(trial.inputs):
        yield "", _no_sizes
        return
    for name, given in trial.sizes.items():
        for size in SIZES if len(given) == 1 else given:
            yield f"{name}={size}", lambda name=name, size=size: _size(trial, name, size)  # type: ignore[misc] # defaults


def _no_sizes() -> None:
    raise Skip("the inputs are given; a function of a generator and sizes that makes them is tried on others")


def _size(trial: Trial, name: str, size: int) -> None:
    try:
        case = trial.at({**trial.small_sizes, name: size})
    except Exception as error:  # anyone's function may raise anything
        raise Skip(f"no such inputs: {type(error).__name__}: {error}") from error
    agree(replace(case, drawn=True))
