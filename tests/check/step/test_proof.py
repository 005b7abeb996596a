"""A recorded step beside torch's, at our activations, and at our gradients too."""

from __future__ import annotations

import numpy as np
from nets import break_gradient
from stateful import Center

from nn_manual import GradientChecker, Linear, MSELoss, Residual, Sequential, Tanh
from nn_manual.check.compare.worst import beyond_tolerance
from nn_manual.check.step.evaluated import evaluations
from nn_manual.check.step.plan import Plan
from nn_manual.check.step.proof import beside_torch
from nn_manual.check.step.recording import Recording, run_step
from nn_manual.check.twin.model import Twin


def test_at_our_gradients_a_mistake_goes_no_further() -> None:
    model, loss = Sequential(Linear(3, 4), Residual(Tanh(), Linear(4, 4)), Linear(4, 2), dtype="float64"), MSELoss()
    break_gradient(model.layers[2], "grad_input", lambda grad: 3 * grad)
    generator = np.random.default_rng(0)
    input, target = generator.standard_normal((5, 3)), generator.standard_normal((5, 2))
    with Recording(model, loss) as recorded:
        run_step(model, loss, input, target, input_grad=True)
    twin, plan = Twin(model, loss, model.dtype), Plan(model, recorded, input_grad=True)
    twin.param[...] = model.param_arena
    free, anchored = (beside_torch(twin, recorded, plan, our_grads=our_grads)[0] for our_grads in (False, True))
    assert {pair.quantity.name.split(".")[0] for pair in beyond_tolerance(free)} == {"0", "1", "2"}
    assert [pair.quantity.name for pair in beyond_tolerance(anchored)] == ["2.grad_input"]


def test_what_stands_beside_ours_is_named_by_its_own_reference() -> None:
    """Of outputs, buffers and what evaluation computes, too: torch has no such layer."""
    model = Sequential(Center(), Linear(4, 2), seed=0)
    checker = GradientChecker(model, MSELoss())
    with checker.recording():
        checker.run(np.ones((3, 4), np.float32), np.zeros((3, 2), np.float32))
    of_evaluation = [each.pair.quantity for each in evaluations(checker.recorded, checker.plan())]
    origins = {quantity.name: quantity.origin for quantity in (*checker.plan().forward, *of_evaluation)}
    own = dict.fromkeys(["0.output", "0.mean", "0.infer"], "its reference has")
    assert origins == own | {"1.output": "torch has", "loss": "torch has"}
