"""What a Trainer is set to: what each step reads of it, which values are refused, and which may change later."""

from __future__ import annotations

import operator
from typing import Any, Literal, Protocol, get_args

from nn_manual.compile.blas import BlasName, check_threads
from nn_manual.data.reading import machine_memory
from nn_manual.losses import Loss
from nn_manual.model import Sequential
from nn_manual.model.contract import lost_setting
from nn_manual.optim import Clipping, Optimizer, ReduceLROnPlateau, Scheduler
from nn_manual.optim.clipping import clipping_of
from nn_manual.optim.scheduling import check_schedule
from nn_manual.plain_settings import check_type
from nn_manual.step.slices.cut import Slicing

#: The settings that the check is made with.
CHECKED_WITH = (
    *("check_every", "check_memory", "check_threads"),
    *("clip_grad_norm", "clip_grad_value", "loss", "lr_scheduler"),
)
#: The settings that each step reads anew: they may change, unless the check or the slices were made with them.
FOLLOWED = ("clip_grad_norm", "clip_grad_value", "loss", "lr_scheduler", "lr_step")
#: Attributes of a Trainer that are no settings.
COUNTS = ("num_steps", "stop_every")


class TrainerSettings(Protocol):
    """The settings of a Trainer. Some of them may change between two steps."""

    model: Sequential
    loss: Loss
    optimizer: Optimizer
    clip_grad_norm: float | None
    clip_grad_value: float | None
    lr_scheduler: Scheduler | None
    check_every: int
    lr_step: Literal["epoch", "step"]
    check_memory: int
    compiled: bool
    blas: BlasName | None
    threads: int | None
    loop_threads: int | None
    slicing: Slicing
    check_threads: int | None
    stop_every: int

    @property
    def clipping(self) -> Clipping | None:
        """How a step clips the gradient, if it does."""


def check_whole_numbers(least: int = 1, **numbers: Any) -> None:
    """Raise TypeError for a number that isn't an integer, ValueError for one below `least`."""
    for name, number in numbers.items():
        try:
            whole = operator.index(number)
        except TypeError:
            raise TypeError(f"{name} must be an integer, not {number!r}") from None
        if isinstance(number, bool):
            raise TypeError(f"{name} must be an integer, not {number}")
        if whole < least:
            raise ValueError(f"{name} must be at least {least}, not {whole}")


def check_settings(settings: TrainerSettings) -> None:
    """Raise ValueError for settings that are out of range, or that don't fit each other, TypeError for a value of
    another kind, and ConfigError for more threads than cores are free.
    """
    check_type(Sequential, model=settings.model)
    check_type(Loss, loss=settings.loss)
    check_type(Optimizer, optimizer=settings.optimizer)
    check_type(Slicing, slicing=settings.slicing)
    check_type(bool, compiled=settings.compiled)
    if settings.lr_scheduler is not None:
        check_type(Scheduler, lr_scheduler=settings.lr_scheduler)
    if settings.optimizer.model is not settings.model:
        raise ValueError("the optimizer moves another model than the one to be trained")
    if reason := lost_setting(settings.loss, settings.model.dtype):
        raise ValueError(f"{type(settings.loss).__name__}: {reason}")
    check_whole_numbers(0, check_every=settings.check_every, check_memory=settings.check_memory)
    if settings.check_threads is not None:
        check_whole_numbers(check_threads=settings.check_threads)
    for name in ("threads", "loop_threads"):
        if (count := getattr(settings, name)) is not None:
            check_whole_numbers(0, **{name: count})
            check_threads(name, count)
    if settings.blas is not None and settings.blas not in get_args(BlasName):
        raise ValueError(f"blas must be {', '.join(get_args(BlasName))} or None, not {settings.blas!r}")
    if settings.check_memory > machine_memory():
        memory = f"{machine_memory() / 1e9:,.0f} GB"
        raise ValueError(f"check_memory is {settings.check_memory:,} bytes, and this machine has {memory}")
    clipping_of(settings.clip_grad_norm, settings.clip_grad_value)  # it raises
    if not settings.compiled and (settings.blas, settings.threads, settings.loop_threads) != (None, None, None):
        raise ValueError("blas, threads and loop_threads are settings of compiled steps: they need compiled=True")
    if settings.compiled and settings.slicing.sync_batch_norm and not settings.slicing.is_plain:
        raise ValueError("a compiled slice doesn't wait for others: one of compiled and sync_batch_norm must go")
    if settings.lr_step not in ("epoch", "step"):
        raise ValueError(f"lr_step must be epoch or step, not {settings.lr_step}")
    if settings.lr_step == "step" and isinstance(settings.lr_scheduler, ReduceLROnPlateau):
        raise ValueError("lr_step must be epoch with ReduceLROnPlateau: a validation loss comes once an epoch")
    if settings.slicing.shard_optimizer and (reason := settings.optimizer.why_whole()):
        raise ValueError(reason)
    if settings.lr_scheduler is not None:
        check_schedule(settings.optimizer, settings.lr_scheduler)


def why_fixed(name: str, *, is_checked: bool, is_plain: bool) -> str:
    """Why an attribute of a Trainer can't change, in words; empty where it can. `is_checked` says whether steps are
    checked, `is_plain` whether one process takes the whole batch.
    """
    if name in CHECKED_WITH and is_checked:
        return "was given to the check"
    if name == "loss" and not is_plain:
        return "was given to the slices"
    return "" if name in FOLLOWED else "stays what it was"
