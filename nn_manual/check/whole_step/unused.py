"""The gradients that a class of one's own computes and no step uses: of what enters the first layers, and of targets.

A training step needs no gradient of the model's input. So it calls `backward_parameters` of the first layer that has
parameters, and nothing of the layers in front of it. A wrong `backward` there changes no run. But whoever wrote it asks
whether it is right, and another model will use it.
"""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.judge.in_float64 import Again
from nn_manual.check.judge.judge import Judge
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.step.plan import PACKAGE, Plan
from nn_manual.check.step.proof import Proof
from nn_manual.check.step.recording import Recording
from nn_manual.check.twin.model import Twin


def report_on_unused(recorded: Recording, plan: Plan, param: Array) -> GradientReport | None:
    """The recorded step made again in float64, from `param`, with every gradient, beside torch's. Its `problem` says
    why nothing could be compared. None where all the gradients that the step of this plan leaves out are those of the
    package's own classes.
    """
    model, loss = recorded.model, recorded.loss.loss
    own = {item.label for item in plan.items if not _is_of_package(item.layer)}
    own |= set() if _is_of_package(loss) else {"loss"}
    every = Plan(model, recorded, input_grad=True)
    left_out = (quantity for quantity in every.backward if quantity.name not in plan.tensors)
    if own.isdisjoint(quantity.layer for quantity in left_out) or not np.isfinite(param).all():
        return None
    try:
        step = Proof(plan, recorded, param, [], {})
        again = Again(model, loss, input_grad=True)(step, Twin(model, loss, np.float64))
        return Judge(again.recorded.model, loss, input_grad=True).report(again)
    except CannotCompare as problem:
        return GradientReport((), problem=str(problem))


def _is_of_package(component: object) -> bool:
    return type(component).__module__.startswith(f"{PACKAGE}.")
