"""The gradients that a class of one's own computes and no step uses: of what enters the first layers, and of targets.

A training step needs no gradient of the model's input. So it calls `backward_parameters` of the first layer that has
parameters, and nothing of the layers in front of it. A wrong `backward` there changes no run. But whoever wrote it asks
whether it is right, and another model will use it.
"""

from __future__ import annotations

import numpy as np

from nn_manual.arrays import Array, size_of
from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.judge.in_float64 import Again
from nn_manual.check.judge.judge import Judge
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import Proof
from nn_manual.check.step.recording import Recording
from nn_manual.check.twin.layers import Source
from nn_manual.check.twin.model import Twin
from nn_manual.defaults import is_of_package

#: Differences of a layer's forward for an input of so many numbers take some seconds, and for twice as many four times
#: as long. A training waits no longer for what it doesn't use.
MOST_DIFFERENCES = 2048


def report_on_unused(recorded: Recording, plan: Plan, param: Array) -> GradientReport | None:
    """The recorded step made again in float64, from `param`, with every gradient, beside torch's. Its `problem` says
    why nothing could be compared. None where all the gradients that the step of this plan leaves out are those of the
    package's own classes.
    """
    model, loss = recorded.model, recorded.loss.loss
    own = {item.label for item in plan.items if not is_of_package(type(item.layer))}
    own |= set() if is_of_package(type(loss)) else {"loss"}
    every = Plan(model, recorded, input_grad=True)
    own &= {quantity.layer for quantity in every.backward if quantity.name not in plan.tensors}
    if not (own and np.isfinite(param).all()):
        return None
    for item in plan.items:
        by_differences = item.label in own and plan.counterparts[item.name].source is Source.FORWARD
        if by_differences and (size := size_of(plan.shapes[item.name][0])) > MOST_DIFFERENCES:
            words = f"{item.label} has no reference, and differences for the {size:,} numbers of its input take long"
            return GradientReport((), problem=f"{words}: nn-manual check makes them")
    try:
        step = Proof(plan, recorded, param, [], {})
        again = Again(model, loss, input_grad=True)(step, Twin(model, loss, np.float64))
        return Judge(again.recorded.model, loss, input_grad=True).report(again)
    except CannotCompare as problem:
        return GradientReport((), problem=str(problem))
