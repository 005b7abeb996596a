"""The pages of two configs, as they were when somebody last read them.

After a change that is meant to change a page: python tests/unroll/test_pages.py
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nn_manual.config import load_config
from nn_manual.unroll.command import unroll

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"

#: Both are short. Together they show most of what a page can contain.
NAMES = "spirals", "digits"


def page_of(name: str, *overrides: str) -> str:
    return unroll(load_config(ROOT / "config" / f"{name}.yaml", overrides), f"{name}.yaml").text


@pytest.mark.parametrize("name", NAMES)
def test_page(name: str) -> None:
    assert page_of(name) == (GOLDEN / f"{name}.py.txt").read_text()


def lines_of(page: str) -> list[str]:
    """The statements of the step, without comments."""
    return [line.strip() for line in page.splitlines() if line.strip() and not line.strip().startswith("#")]


def test_expressions_are_those_of_the_formulas() -> None:
    lines = lines_of(page_of("digits"))
    for line in (
        "weight_2 = param[4160:4800].reshape(10, 64)",
        "output_0 = input @ weight_0.T",
        "output_0 += bias_0",
        "grad_prediction = exponential * ((q_at_place + q_elsewhere) / exponential_sum)[:, np.newaxis] - q",
        "grad_weight_2 = grad_prediction.T @ output_1",
        "grad_input_1 = np.where(output_1 > 0, grad_input_2, 0)",
        "direction = grad + weight_decay * param",
        "param -= lr * momentum_buffer",
    ):
        assert line in lines


@pytest.mark.slow
def test_loops_over_time_and_pieces_of_a_batch_stay_loops() -> None:
    """It alone makes pages of nets with loops."""
    lines = lines_of(page_of("lstm", "data.Text.stride=4096"))
    loops = [line for line in lines if line.startswith("for ")]
    assert loops == ["for t in range(64):", "for t in reversed(range(64)):"]
    assert "h_1 = inner_output_1[t]" in lines
    assert "grad_c_1 = grad_gated_1 * dgated_dc_1[t] + grad_c_1" in lines


@pytest.mark.slow
def test_layers_of_one_kind_become_functions() -> None:
    """It alone unrolls a deep net of many kinds."""
    page = page_of("gpt", "data.Text.stride=4096")
    names = ["layer_norm", "causal_self_attention", "linear", "gelu"]
    functions = [line.split("(")[0][4:] for line in page.splitlines() if line.startswith("def ")]
    both = [function for name in names for function in (name, f"{name}_backward")]
    assert functions == ["one_hot_product", *both, "train_step"]
    assert page.count(" = linear(") == 8
    assert "    for start in range(0, batch, 4):" in page.splitlines()
    assert "output = output.reshape(-1, 64, len(weight))" in lines_of(page)
    assert len(page.splitlines()) < 525
    clipping = [line.split(" = ")[0] for line in lines_of(page) if "max_norm / (norm" in line or "norm = " in line]
    assert clipping == ["max_norm", "norm", "scale"]


def test_windows_are_loops() -> None:
    lines = lines_of(page_of("digits_convnet"))
    assert "columns_1 = np.stack([padded_1[:, :, i:i + 8, j:j + 8] for i, j in np.ndindex(3, 3)], axis=2)" in lines
    assert "padded_5[:, :, i:i + 4, j:j + 4] += columns_5[:, :, 3 * i + j]" in lines
    assert "exp_avg_sq += (1 - beta2) * grad * grad" in lines


@pytest.mark.parametrize("name", ["digits", "digits_convnet"])
def test_no_line_is_too_long_and_nothing_is_folded(name: str) -> None:
    page = page_of(name)
    assert max(map(len, page.splitlines())) <= 120
    assert not re.search(r"[-+*/] [01]\.0\b|\+ 0\b", page)


if __name__ == "__main__":
    for each in NAMES:
        (GOLDEN / f"{each}.py.txt").write_text(page_of(each))


def test_a_loss_without_a_note_ends_with_its_formula() -> None:
    lines = page_of("trace_relu").splitlines()
    formula = lines.index("    #     loss = trace((prediction - target).T @ (prediction - target))")
    assert lines[formula + 1] == "    difference = output_1 - target"
