"""Neural networks whose every gradient is derived by hand and proven against PyTorch."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nn_manual import ops
    from nn_manual.check.checker import GradientChecker, check_gradients
    from nn_manual.check.functions.autograd import as_autograd_function
    from nn_manual.check.functions.check_function import check_function
    from nn_manual.check.verdict.report import GradientReport
    from nn_manual.config import RunConfig, load_config
    from nn_manual.errors import ConfigError, DataError, GradientMismatch, NotFiniteError
    from nn_manual.layers import Layer, Linear, ReLU, Tanh
    from nn_manual.losses import CrossEntropyLoss, Loss, MSELoss, TraceLoss
    from nn_manual.model import Sequential
    from nn_manual.optim import SGD, clip_grad_norm
    from nn_manual.running.trainer import Trainer

# numpy's OpenBLAS and torch's OpenMP each keep a pool of threads, which after a piece of work spin for the next: 26 ms
# in OpenBLAS, some 3 ms in OpenMP, on the cores that the other pool needs in a checked step. It took 50 times the sum
# of their times. 2**18 ticks are some 0.1 ms and 3,000 spins a third of that: longer than the pauses within a step of
# either, so that neither is slower alone. Each is read when its library is first loaded; later it does nothing.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

#: Where each public name lives. Modules load when a name is first used: the command line answers --help without
#: numpy, and nothing loads torch before a check.
_HOMES = {
    "as_autograd_function": "check.functions.autograd",
    "check_function": "check.functions.check_function",
    "GradientChecker": "check.checker",
    "check_gradients": "check.checker",
    "GradientReport": "check.verdict.report",
    "RunConfig": "config",
    "load_config": "config",
    "ConfigError": "errors",
    "DataError": "errors",
    "GradientMismatch": "errors",
    "NotFiniteError": "errors",
    "Layer": "layers",
    "Linear": "layers",
    "ReLU": "layers",
    "Tanh": "layers",
    "CrossEntropyLoss": "losses",
    "Loss": "losses",
    "MSELoss": "losses",
    "TraceLoss": "losses",
    "Sequential": "model",
    "SGD": "optim",
    "clip_grad_norm": "optim",
    "Trainer": "running.trainer",
}

__all__ = [
    "SGD",
    "ConfigError",
    "CrossEntropyLoss",
    "DataError",
    "GradientChecker",
    "GradientMismatch",
    "GradientReport",
    "Layer",
    "Linear",
    "Loss",
    "MSELoss",
    "NotFiniteError",
    "ReLU",
    "RunConfig",
    "Sequential",
    "Tanh",
    "TraceLoss",
    "Trainer",
    "as_autograd_function",
    "check_function",
    "check_gradients",
    "clip_grad_norm",
    "load_config",
    "ops",
]


def __getattr__(name: str) -> Any:
    if name == "ops":
        return importlib.import_module("nn_manual.ops")
    if name in _HOMES:
        return getattr(importlib.import_module(f"nn_manual.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
