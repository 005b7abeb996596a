"""Microseconds of a training step: this trainer plain and compiled, the plan alone, its products alone, torch eager.

Plain and compiled train whole epochs; the plan runs the same batches, ready in memory. The products are those of the
plan, one after the other, on its memory: no step can be faster on this BLAS. In a round every contestant trains one
epoch, one after the other, so that a slow moment of the machine meets all of them. Ratios are medians over the rounds'
own ratios. All of it runs on one thread.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.nets import NETS, Net, batches, new_trainer

# isort: split
import numpy as np
import torch
from threadpoolctl import threadpool_limits

from benchmarks import one_model, step
from benchmarks.processes import ROOT
from nn_manual import Trainer
from nn_manual.compile.plan import Plan, compile_step
from nn_manual.compile.program import Call
from nn_manual.config import load_config
from nn_manual.running.compiled import CompiledSteps

#: Steps in an epoch, of the five nets and of the models in config/.
NUM_STEPS = (512, 512, 128, 32, 8)
MODELS = {"gpt": 8, "convnet": 8, "lstm": 8}
NUM_ROUNDS = 11


class Contest(NamedTuple):
    """One net or model: its trainer made anew, the batches of an epoch, and torch's step."""

    name: str
    new_trainer: Callable[[], Trainer]
    batches: list[tuple[Any, Any]]
    torch_step: one_model.TorchStep


def contests(chosen: list[int]) -> list[Contest]:
    """Those with these numbers, or all."""
    found = [_of_net(net, num_steps) for net, num_steps in zip(NETS, NUM_STEPS, strict=True)]
    found += [_of_model(name, num_steps) for name, num_steps in MODELS.items()]
    return [found[number]() for number in chosen or range(len(found))]


def _of_net(net: Net, num_steps: int) -> Callable[[], Contest]:
    return lambda: Contest(str(net), lambda: new_trainer(net, checked=False), batches(net, num_steps), step._torch(net))


def _of_model(name: str, num_steps: int) -> Callable[[], Contest]:
    def contest() -> Contest:
        config = load_config(ROOT / "config" / f"{name}.yaml")
        of_epoch = one_model.random_batches(config, num_steps)
        made = one_model.torch_training(config)
        return Contest(f"{name}.yaml", lambda: one_model.new_trainer(config, checked=False), of_epoch, made)

    return contest


def main(*chosen: str) -> None:
    """Print the table."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        columns = ("plain", "compiled", "plan", "products", "torch", "plain / compiled", "compiled / torch")
        print("{:24} {:>9} {:>9} {:>9} {:>9} {:>9}  {:17} {:17} {}".format("net (batch)", *columns, "plan / products"))
        for contest in contests(list(map(int, chosen))):
            _print(contest)


def _print(contest: Contest) -> None:
    plain, compiled, alone = (contest.new_trainer() for _ in range(3))
    compiled._compiled = CompiledSteps(compiled)
    alone.train_step(*contest.batches[0])
    plan = compile_step(
        alone.model, alone.loss, alone.optimizer, *contest.batches[0], alone.clip_grad_norm, _report
    )
    products = [call for call in plan.program.calls if isinstance(call, Call) and call.kernel.endswith("_product")]
    floor = Plan(alone.model, alone.optimizer, plan.program._replace(calls=products), plan.kernels, plan.blas)  # type: ignore[arg-type]  # a list of some
    contestants = {
        "plain": step._epochs(plain, contest.batches),
        "compiled": step._epochs(compiled, contest.batches),
        "plan": _of_plan(plan, contest.batches),
        "products": _of_plan(floor, contest.batches),
        "torch": step._torch_epochs(contest.torch_step, contest.batches),
    }
    wanted = step.Wanted(len(contest.batches), NUM_ROUNDS, None, None)
    times = step._rounds(contestants, wanted)
    medians = [f"{statistics.median(each):9.1f}" for each in times.values()]
    pairs = (("plain", "compiled"), ("compiled", "torch"), ("plan", "products"))
    ratios = [f"{step._ratio(times[a], times[b]):<17.2f}" for a, b in pairs]
    print(f"{contest.name:24} {' '.join(medians)}  {' '.join(ratios)}", flush=True)


def _of_plan(plan: Plan, of_epoch: list[tuple[Any, Any]]) -> Callable[[], object]:
    inputs, targets = (np.stack(arrays) for arrays in zip(*of_epoch, strict=True))
    dtype, parts = plan.model.dtype, plan.optimizer.parts
    of_steps = {
        f"{i}.{name}": np.full(len(inputs), value, dtype)
        for i, part in enumerate(parts)
        for name, value in part.member.coefficients(2).items()
    }
    return lambda: plan.run(inputs, targets, of_steps)


def _report(line: str) -> None:
    print(line, file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:])
