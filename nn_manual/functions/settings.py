"""Global settings that a function may change: a change is noticed, and undone."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import torch

from nn_manual.errors import raise_if_nobodys_fault
from nn_manual.functions.device import in_use

#: How a setting is read, and how it is set.
Access: TypeAlias = tuple[Callable[[], Any], Callable[[Any], object]]


def _matmul_precision() -> str | None:
    """torch's one setting for all products; None where those of single backends differ from it, and torch refuses."""
    try:
        return torch.get_float32_matmul_precision()
    except RuntimeError as error:
        raise_if_nobodys_fault(error)
        return None


def _set_matmul_precision(precision: str | None) -> None:
    if precision is not None:
        torch.set_float32_matmul_precision(precision)


#: The backends in which torch may round float32 numbers to TF32 or bfloat16 before it multiplies them.
_BACKENDS: dict[str, Any] = {
    "cuda.matmul": torch.backends.cuda.matmul,
    "cudnn.conv": torch.backends.cudnn.conv,  # type: ignore[attr-defined] # torch has no types here
    "cudnn.rnn": torch.backends.cudnn.rnn,
    "mkldnn.matmul": torch.backends.mkldnn.matmul,  # type: ignore[attr-defined] # as above
    "mkldnn.conv": torch.backends.mkldnn.conv,  # type: ignore[attr-defined] # as above
    "mkldnn.rnn": torch.backends.mkldnn.rnn,  # type: ignore[attr-defined] # as above
}
_MATMUL = "torch.get_float32_matmul_precision()"
#: The first one sets some of the others.
PRECISIONS: dict[str, Access] = {
    _MATMUL: (_matmul_precision, _set_matmul_precision),
    **{
        f"torch.backends.{name}.fp32_precision": (
            partial(getattr, backend, "fp32_precision"),
            partial(setattr, backend, "fp32_precision"),
        )
        for name, backend in _BACKENDS.items()
    },
}

SETTINGS: dict[str, Access] = {
    "sys.stdout": (lambda: sys.stdout, lambda stream: setattr(sys, "stdout", stream)),
    "sys.stderr": (lambda: sys.stderr, lambda stream: setattr(sys, "stderr", stream)),
    "torch.get_default_dtype()": (torch.get_default_dtype, torch.set_default_dtype),
    "torch.is_grad_enabled()": (torch.is_grad_enabled, torch.set_grad_enabled),
    "torch.get_num_threads()": (torch.get_num_threads, torch.set_num_threads),
    "torch.get_deterministic_debug_mode()": (
        torch.get_deterministic_debug_mode,
        torch.set_deterministic_debug_mode,
    ),
    "torch.backends.fp32_precision": (
        partial(getattr, torch.backends, "fp32_precision"),
        partial(setattr, torch.backends, "fp32_precision"),
    ),
    **PRECISIONS,
    'torch.is_autocast_enabled("cpu")': (
        lambda: torch.is_autocast_enabled("cpu"),
        lambda enabled: torch.set_autocast_enabled("cpu", enabled),
    ),
    'torch.is_autocast_enabled("cuda")': (
        lambda: torch.is_autocast_enabled("cuda"),
        lambda enabled: torch.set_autocast_enabled("cuda", enabled),
    ),
    # torch has no way to read it: half of the smallest normal number shows it.
    "what torch.set_flush_denormal() sets": (lambda: sys.float_info.min / 2 == 0, torch.set_flush_denormal),
    "numpy.geterr()": (np.geterr, lambda how: np.seterr(**how)),
}
STREAMS = ("sys.stdout", "sys.stderr")

#: The global generators of random numbers: how each is seeded, and how its state is read.
GENERATORS: dict[str, tuple[Callable[[int], object], Callable[[], Any]]] = {
    "torch's": (torch.manual_seed, lambda: torch.get_rng_state().tolist()),
    "numpy's": (np.random.seed, lambda: repr(np.random.get_state(legacy=False))),
    "Python's": (random.seed, random.getstate),
}

#: Every change, with the user's function that made it.
_noticed: list[tuple[object, str]] = []


def set_around() -> str:
    """A sentence about a setting of the caller under which no gradient can be judged, or an empty one."""
    if not torch.is_grad_enabled():
        return "gradients are switched off here, by torch.no_grad(), torch.inference_mode() or set_grad_enabled(False)"
    for device in ("cpu", "cuda"):
        if torch.is_autocast_enabled(device):
            return f"torch.autocast is on here, for {device}"
    return ""


@contextmanager
def kept(names: Collection[str] = tuple(SETTINGS), by: object = None) -> Iterator[None]:
    """A context after which the settings are as they were before. A change is noticed as made `by` a function."""
    before = {name: SETTINGS[name][0]() for name in names}
    try:
        yield
    finally:
        for name, value in before.items():
            read, write = SETTINGS[name]
            now = read()
            if now is not value and now != value:
                _noticed.append((by, f"{name}, which was {_shown(value)} and became {_shown(now)}"))
                write(value)


@contextmanager
def compiled_for_every_run() -> Iterator[None]:
    """A context in which torch.compile compiles a function again for every shape and dtype of the battery. By default
    it stops after 8 times, and then uncompiled code would be judged. Does nothing if torch.compile wasn't used.
    """
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is None:
        yield
        return
    with dynamo.config.patch(recompile_limit=sys.maxsize, accumulated_recompile_limit=sys.maxsize):
        yield


@contextmanager
def in_full_precision() -> Iterator[None]:
    """A context in which torch rounds no float32 number to TF32 or bfloat16 before a product. On a device, it does so
    by default in convolutions: they are off by 1e-3 then, and in each layout by something else.
    """
    before = {name: read() for name, (read, _) in PRECISIONS.items()}
    # The one for all backends has a context of its own: torch's own tests, once imported, forbid to set it otherwise.
    with torch.backends.flags(fp32_precision="ieee"):
        try:
            for name, (_, write) in PRECISIONS.items():
                write("highest" if name == _MATMUL else "ieee")
            yield
        finally:
            for name, (_, write) in PRECISIONS.items():
                write(before[name])


@contextmanager
def noticing_anew() -> Iterator[None]:
    """A context that begins with no change of a setting noticed, and keeps none."""
    _noticed.clear()
    try:
        yield
    finally:
        _noticed.clear()  # it holds the user's functions


def noticed_of(function: object, run: Callable[[], object]) -> list[str]:
    """The settings that a function has changed since `noticing_anew`, also in `run`, which runs it; and the generators
    that it seeds in each run. After another seed, a run that only draws from a generator leaves it in another state; a
    run that seeds it leaves it in the same state.
    """
    states = []
    with kept_generators():
        for seed in (1, 2):
            for seeding, _ in GENERATORS.values():
                seeding(seed)
            run()
            states.append({name: state() for name, (_, state) in GENERATORS.items()})
    seeded = [f"the seed of {name} generator" for name in GENERATORS if states[0][name] == states[1][name]]
    return [words for by, words in _noticed if by is function] + seeded


@contextmanager
def kept_generators() -> Iterator[None]:
    """A context after which the global generators go on as if nothing had been drawn."""
    state, numpys, pythons = torch.get_rng_state(), np.random.get_state(), random.getstate()
    on_devices = torch.cuda.get_rng_state_all() if in_use() else []
    try:
        yield
    finally:
        torch.set_rng_state(state)
        with suppress(RuntimeError):  # of a device that a kernel has made useless for this process
            torch.cuda.set_rng_state_all(on_devices)
        np.random.set_state(numpys)
        random.setstate(pythons)


def _shown(value: object) -> str:
    return "a stream" if hasattr(value, "write") else str(value)
