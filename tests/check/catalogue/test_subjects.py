"""Classes of the user's own, checked by themselves: each kind that breaks its contract is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_components import MINE

from nn_manual.check.catalogue.catalogue import check_classes
from nn_manual.config import classes_in

FORWARD = "        size = np.abs(error)\n"
DERIVATIVE = "return np.tanh(saved)"


def problem_of(folder: Path, name: str, right: str, wrong: str) -> str:
    """What the check says of a class of the page, in which one text is another."""
    assert right in MINE
    (folder / "mine.py").write_text(MINE.replace(right, wrong, 1))
    report = check_classes(classes_in(f"{folder / 'mine.py'}:{name}"))
    failures = [entry.failure for entry in report.entries if entry.failure is not None]
    return " ".join(str(failures[0]).split()) if failures else ""


@pytest.mark.parametrize(
    ("name", "right", "wrong", "problem"),
    [
        ("LogCoshLoss", FORWARD, f"{FORWARD}        target[...] = 0\n",
         "loss (LogCoshLoss): forward wrote into its target"),
        ("LogCoshLoss", DERIVATIVE, "return np.tanh(saved).sum(axis=1)",
         "loss: grad_prediction has shape (4,), it must have (4, 5)"),
        ("LogCoshLoss", DERIVATIVE, "return np.tanh(2 * saved)", "wrong first in loss: loss.grad_prediction"),
        ("LogCoshLoss", "def backward_target", "def gradient_of_target",
         "raised by LogCoshLoss.check_target; on random prediction, random target, a batch of 4; the target was "
         "classes: a loss of numbers defines backward_target or as_target"),
        ("SignSGD", "param -= coefficients", "param += coefficients", "wrong first in optimizer: updated 0.weight"),
        ("SignSGD", "def reference(self, param", "def definition(self, param",
         "SignSGD() can't be checked: torch.optim has no SignSGD: the class must define reference()"),
        ("Warmup", "* min(1, (count + 1) / self", "* min(1, (2 * count + 1) / self", "scheduler: lr is 0.06"),
        ("Warmup", "def reference(self, optimizer)", "def definition(self, optimizer)",
         "torch.optim.lr_scheduler has no Warmup: the class must define reference(optimizer)"),
        ("Warmup", "return torch.optim.lr_scheduler.LambdaLR(optimizer, factor)", "return factor",
         "reference(optimizer) must return a schedule of torch.optim.lr_scheduler, not function"),
        ("Laplace", "weight[...] = generator", "weight = generator", "fill must overwrite each number"),
        ("Laplace", "generator.laplace", "np.random.default_rng().laplace", "it must draw from its generator alone"),
        ("Laplace", "weight[...] =", "raise ValueError('no'); weight[...] =", "Laplace() raised ValueError: no ("),
        ("Waves", "np.random.default_rng(seed)", "np.random.default_rng()",
         "Waves.load returned another input in the training part when it ran again with the same seed"),
        ("Waves", "target = np.sin", "input[3] = np.nan; target = np.sin", "the input has the number nan at (3, 0)"),
        ("Waves", "standardize=False, transform=transform", "standardize=True, transform=None",
         "Waves.load must apply the `transform` that it is given"),
        ("Waves", "num_examples: int = 200", "num_examples: int", "Waves.examples raised TypeError"),
    ],
)  # fmt: skip - one case a line
def test_what_breaks_its_contract_is_named(tmp_path: Path, name: str, right: str, wrong: str, problem: str) -> None:
    assert problem in problem_of(tmp_path, name, right, wrong)


def test_an_initializer_may_refuse_some_shapes(tmp_path: Path) -> None:
    wrong = "assert weight.ndim\n        if weight.ndim > 2:\n            raise ValueError('no')\n        weight[...] ="
    assert problem_of(tmp_path, "Laplace", "weight[...] =", wrong) == ""
