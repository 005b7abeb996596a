"""A CUDA device computes on after a call has returned: waiting for it, and whether it can still be used."""

from __future__ import annotations

import torch

from nn_manual.errors import first_words_of, raise_if_nobodys_fault


def in_use() -> bool:
    """Whether anything has run on a CUDA device in this process."""
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call] # torch has no types here


def wait_for_kernels() -> None:
    """Wait for the kernels of the current stream. Raises the error of one that failed, which the next use of the device
    would raise, in somebody else's code. Other streams aren't waited for: a function must do that itself.
    """
    if in_use():
        torch.cuda.current_stream().synchronize()


def what_lost_the_device() -> str:
    """The error of a kernel after which every use of the device in this process fails; empty if there was none."""
    try:
        wait_for_kernels()
    except RuntimeError as error:
        raise_if_nobodys_fault(error)
        return first_words_of(error)
    return ""
