"""Neural networks whose every gradient is derived by hand and proven against PyTorch."""

from __future__ import annotations

import importlib
import os
import sys
from functools import partial
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for type checkers; `name as name` is what makes a name public to them
    from nn_manual import ops as ops
    from nn_manual.arrays import Padded as Padded
    from nn_manual.check.judge.diagnosis import describe_difference as describe_difference
    from nn_manual.check.judge.report import GradientReport as GradientReport
    from nn_manual.check.whole_step.checker import GradientChecker as GradientChecker
    from nn_manual.check.whole_step.gradients import check_gradients as check_gradients
    from nn_manual.config import RunConfig as RunConfig
    from nn_manual.config import load_config as load_config
    from nn_manual.data import Examples as Examples
    from nn_manual.data.load_data import load_data as load_data
    from nn_manual.errors import ConfigError as ConfigError
    from nn_manual.errors import DataError as DataError
    from nn_manual.errors import GradientMismatch as GradientMismatch
    from nn_manual.errors import NotFiniteError as NotFiniteError
    from nn_manual.estimators.classifier import ManualClassifier as ManualClassifier
    from nn_manual.estimators.regressor import ManualRegressor as ManualRegressor
    from nn_manual.functions.as_layer import as_layer as as_layer
    from nn_manual.functions.autograd import as_autograd_function as as_autograd_function
    from nn_manual.functions.check_function import check_function as check_function
    from nn_manual.functions.handwritten_class import HandwrittenClass as HandwrittenClass
    from nn_manual.layers import *  # noqa: F403 - what a room of components exports is public, without a list here
    from nn_manual.losses import *  # noqa: F403 - as above
    from nn_manual.model import Sequential as Sequential
    from nn_manual.optim import *  # noqa: F403 - as above
    from nn_manual.run_directory.metrics import read_run as read_run
    from nn_manual.step.slices.cut import Slicing as Slicing
    from nn_manual.trainer.trainer import Trainer as Trainer
    from nn_manual.use.load_run import TrainedRun as TrainedRun
    from nn_manual.use.load_run import load_run as load_run
    from nn_manual.use.saved_model import load_model as load_model
    from nn_manual.use.saved_model import save_model as save_model

# numpy's OpenBLAS and torch's OpenMP each keep a pool of threads. After a piece of work, its threads spin and wait for
# the next: 26 ms in OpenBLAS, some 3 ms in OpenMP. In a checked step the other pool needs the same cores: such a step
# took 50 times the sum of both times. 2**18 ticks are some 0.1 ms, and 3,000 spins are a third of that. Both are longer
# than the pauses within a step of one library, so neither library is slower alone. A library reads its variable when
# it is first loaded; a later value has no effect.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "18")
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

#: Every name that these rooms export is public here, too: a new component is exported by its room, and nowhere else.
_COMPONENT_ROOMS = ("nn_manual.layers", "nn_manual.losses", "nn_manual.optim")

#: Where each of the other public names lives. Modules load when a name is first used: the command line answers --help
#: without numpy, and nothing loads torch before a check.
_HOMES = {
    "as_layer": "functions.as_layer",
    "as_autograd_function": "functions.autograd",
    "check_function": "functions.check_function",
    "HandwrittenClass": "functions.handwritten_class",
    "GradientChecker": "check.whole_step.checker",
    "check_gradients": "check.whole_step.gradients",
    "GradientReport": "check.judge.report",
    "Padded": "arrays",
    "RunConfig": "config",
    "load_config": "config",
    "Examples": "data",
    "load_data": "data.load_data",
    "ConfigError": "errors",
    "DataError": "errors",
    "GradientMismatch": "errors",
    "NotFiniteError": "errors",
    "ManualClassifier": "estimators.classifier",
    "ManualRegressor": "estimators.regressor",
    "Sequential": "model",
    "Slicing": "step.slices.cut",
    "TrainedRun": "use.load_run",
    "Trainer": "trainer.trainer",
    "describe_difference": "check.judge.diagnosis",
    "load_model": "use.saved_model",
    "load_run": "use.load_run",
    "read_run": "run_directory.metrics",
    "save_model": "use.saved_model",
}

#: Modules that earlier pages of docs/ named, and where they lie now: imports from the old names go on working.
_MOVED = {
    "nn_manual.distributed": "nn_manual.step",
    "nn_manual.distributed.sliced_step": "nn_manual.step.slices.cut",
    "nn_manual.check.verdict": "nn_manual.check.judge",
    "nn_manual.check.verdict.diagnosis": "nn_manual.check.judge.diagnosis",
}


class _Moved:
    """Finds the modules of _MOVED: each has the names of the module that took its place."""

    @classmethod
    def find_spec(cls, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG003 - Python's
        return ModuleSpec(name, cls(), is_package=True) if name in _MOVED else None  # type: ignore[arg-type] # a loader

    def create_module(self, spec: ModuleSpec) -> None:  # noqa: ARG002 - Python's signature
        return None

    def exec_module(self, module: ModuleType) -> None:
        vars(module)["__getattr__"] = partial(getattr, importlib.import_module(_MOVED[module.__name__]))


sys.meta_path.append(_Moved)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"nn_manual.{_HOMES[name]}"), name)
    if name == "__all__":
        return __dir__()
    if not name.startswith("_"):
        if find_spec(f"nn_manual.{name}"):  # a module, for which Python looks here before it imports it
            return importlib.import_module(f"nn_manual.{name}")
        for exported in map(importlib.import_module, _COMPONENT_ROOMS):
            if name in exported.__all__:
                return getattr(exported, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    components = [name for room in map(importlib.import_module, _COMPONENT_ROOMS) for name in room.__all__]
    return sorted(["ops", *_HOMES, *components])
