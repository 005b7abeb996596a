"""NumPy code that makes float64 of everything is judged in float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.functions.battery.trial import Trial
from nn_manual.functions.callables import dtype_name, floats
from nn_manual.functions.exceptions import naming
from nn_manual.functions.handwritten import Handwritten, run_function


def in_own_dtype(trial: Trial) -> tuple[Trial, str]:
    """The trial in float64, and a sentence for the report, if a handwritten function makes float64 of arrays of another
    dtype, and nobody asked for one.
    """
    if not isinstance(trial.function, Handwritten) or trial.dtypes != (None,):
        return trial, ""
    leaves = [leaf for leaf in trial.case.arguments.leaves if isinstance(leaf, np.ndarray) and floats(leaf)]
    if not leaves or any(dtype_name(leaf) == "float64" for leaf in leaves):
        return trial, ""
    case = trial.case
    try:
        with naming(case.label, "forward"):
            outputs = run_function(case.function, case.arguments, case.leaves(), case.wants()).outputs.values()
    except CannotCompare:  # the comparison of the values says what
        return trial, ""
    if not all(dtype_name(output) == "float64" for output in outputs if floats(output)):
        return trial, ""
    note = f"{trial.label}: NumPy makes float64 of its {dtype_name(leaves[0])} inputs, so it is judged in float64"
    return replace(trial, dtypes=("float64",)), note
