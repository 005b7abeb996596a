"""The values beside the lines of a page: what the lines compute, and torch's gradients."""

from __future__ import annotations

import re

import numpy as np
import pytest

from nn_manual.unroll.values import ABOUT, with_values

PAGE = '''"""One training step.
"""

import numpy as np


def train_step(input, weight):
    """One step."""
    output_0 = input @ weight.T
    output_0 += 1
    grad_weight_0 = np.zeros((2, 2))
    for i in range(2):
        grad_weight_0[i] = i + 1
    loss, total = output_0.sum(), np.float32(2)
    grad_weight_0.put([0], 5)
    np.multiply(output_0, 2, out=output_0)

    return loss
'''
THEIRS = {"0.grad_weight": np.array([[5.0, 1], [2, 2.5]])}


def test_each_line_has_its_values_and_the_last_of_a_gradient_torchs() -> None:
    arguments = {"input": np.array([[1.0, 2], [0, 1]]), "weight": np.eye(2)}
    page = with_values(PAGE, arguments, THEIRS)
    found = [line.partition("# ")[2] for line in page.splitlines() if "# " in line]
    assert found == [
        "(2, 2) 1 2 0 ...",
        "(2, 2) 2 3 1 ...",
        "(2, 2) 0 0 0 ...",
        "(2, 2) 1 1 2 ...",
        "loss 8; total 2",
        "(2, 2) 5 1 2 ...  torch: 5 1 2 ...",
        "(2, 2) 4 6 2 ...",
    ]
    assert page.count("first numbers of torch's") == 1
    assert re.sub(r" *#.*\n*", "\n", page).replace(ABOUT, "").split() == PAGE.split()


@pytest.mark.parametrize(
    ("name", "on_page"),
    [
        ("1.0.grad_out_proj.weight", "grad_out_proj_weight_1_0"),
        ("0.grad_parametrizations.weight.original", "grad_parametrizations_weight_original_0"),
        ("loss.grad_prediction", "grad_prediction"),
    ],
)
def test_a_gradient_whose_name_has_points(name: str, on_page: str) -> None:
    page = PAGE.replace("grad_weight_0", on_page)
    arguments = {"input": np.array([[1.0, 2], [0, 1]]), "weight": np.eye(2)}
    assert "  torch: 5 1 2 ..." in with_values(page, arguments, {name: THEIRS["0.grad_weight"]})
