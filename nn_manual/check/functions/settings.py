"""What a function may change for everybody else: it is changed back, and noticed."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

#: How each is read, and how it is set.
SETTINGS: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "sys.stdout": (lambda: sys.stdout, lambda stream: setattr(sys, "stdout", stream)),
    "sys.stderr": (lambda: sys.stderr, lambda stream: setattr(sys, "stderr", stream)),
    "torch.get_default_dtype()": (torch.get_default_dtype, torch.set_default_dtype),
    "torch.is_grad_enabled()": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch.get_num_threads()": (torch.get_num_threads, torch.set_num_threads),
    "torch.get_deterministic_debug_mode()": (
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
    ),
    "numpy.geterr()": (np.geterr, lambda how: np.seterr(**how)),
}
STREAMS = ("sys.stdout", "sys.stderr")

#: A seed that nobody writes down: a function that seeds torch's generator makes another of it.
ODD_SEED = 0x5EED_0DD

_noticed: list[str] = []


@contextmanager
def kept(names: Collection[str] = tuple(SETTINGS)) -> Iterator[None]:
    """A context after which the settings are what they were before."""
    before = {name: SETTINGS[name][0]() for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            read, write = SETTINGS[name]
            now = read()
            if now is not value and now != value:
                _noticed.append(f"{name}, which was {_shown(value)} and became {_shown(now)}")
                write(value)


def noticed_in(run: Callable[[], object]) -> list[str]:
    """What is changed meanwhile, the seed of torch's generator among it."""
    _noticed.clear()
    with kept_generators():
        torch.manual_seed(ODD_SEED)
        run()
        reseeded = ["the seed of torch's generator"] if torch.initial_seed() != ODD_SEED else []
    return _noticed + reseeded


@contextmanager
def kept_generators() -> Iterator[None]:
    """A context after which everybody's generators go on as if nothing had been drawn."""
    state, numpys, pythons = torch.get_rng_state(), np.random.get_state(), random.getstate()
    try:
        yield
    finally:
        torch.set_rng_state(state)
        np.random.set_state(numpys)
        random.setstate(pythons)


def _shown(value: object) -> str:
    return "a stream" if hasattr(value, "write") else str(value)
