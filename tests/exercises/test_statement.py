"""What of a docstring is shown at once, and what bit by bit."""

from __future__ import annotations

import pytest

from nn_manual.exercises.files.statement import hints, order, statement, without_way_back
from nn_manual.exercises.kinds.every_exercise import every_exercise, find_exercise
from nn_manual.layers import Layer
from nn_manual.losses import Loss


def test_formulas_that_the_output_depends_on_are_shown() -> None:
    shown = statement(find_exercise("layer_norm"))
    assert "output          = normalized * weight + bias" in shown
    assert "projection" not in shown
    assert "grad_" not in shown


def test_a_name_with_an_index_is_of_the_whole() -> None:
    shown = statement(find_exercise("gru"))
    assert "r, z      = expit(a_r + b_r), expit(a_z + b_z)" in shown
    assert "dh_da_n" not in shown
    assert "The derivatives of h" not in shown  # it announced them


def test_the_base_says_what_a_class_of_a_family_computes() -> None:
    shown = statement(find_exercise("conv1d"))
    assert shown.startswith("Convolution of sequences")
    assert "output      = weight @ columns(input) + bias" in shown
    assert statement(find_exercise("causal_self_attention")).count("Multi-head self-attention") == 1


def test_formulas_of_an_optimizer_stay() -> None:
    assert "param           = param - lr * direction" in statement(find_exercise("sgd"))
    assert hints(find_exercise("sgd")) == []


def test_hints_are_the_derivation_and_then_the_formulas() -> None:
    given = hints(find_exercise("linear"))
    assert given[0].startswith("Derivation, with n over the batch")
    assert given[0].splitlines()[-1].startswith("  d output[n, o] / d input[n, i]  = weight[o, i]")
    assert given[-3:] == [
        "grad_input  = grad_output @ weight",
        "grad_weight = rows(grad_output).T @ rows(input)",
        "grad_bias   = rows(grad_output).sum(axis=0)",
    ]


def test_a_schedule_s_derivation_is_hints() -> None:
    assert "Derivation" not in statement(find_exercise("chained_scheduler"))
    assert hints(find_exercise("chained_scheduler")) == [
        "Derivation: in torch, each schedule multiplies the lr, whatever it is, by the\nratio of its factor to the one "
        "before.",
        "All ratios of a schedule up to the count multiply to its factor there.",
    ]


def test_what_comes_behind_a_derivation_is_no_hint() -> None:
    assert not any("Raises" in hint for hint in hints(find_exercise("layer_norm")))
    assert not any("In floating point" in hint for hint in hints(find_exercise("cross_entropy_loss")))


@pytest.mark.parametrize("name", every_exercise().exercises)
def test_no_hint_ends_where_a_formula_follows(name: str) -> None:
    for hint in hints(find_exercise(name)):
        assert hint.endswith(".") or "=" in hint.splitlines()[-1], hint


def test_a_sentence_has_the_formula_that_it_announces() -> None:
    assert hints(find_exercise("matmul"))[0] == (
        "Derivation: for two matrices, answer[i, j] = sum_l a[i, l] b[l, j], so\n"
        "  d answer[i, j] / d a[i, l] = b[l, j]  and  grad_a[i, l] = sum_j grad_answer[i, j] b[l, j]"
    )


@pytest.mark.parametrize("name", every_exercise().exercises)
def test_each_gradient_formula_is_a_hint(name: str) -> None:
    exercise = find_exercise(name)
    if isinstance(exercise.owner, type) and not issubclass(exercise.owner, Layer | Loss):
        return
    given = hints(exercise)
    assert given
    shown = statement(exercise)
    for formula in order(exercise):
        if formula.startswith("grad_"):
            assert any(formula in hint for hint in given)
            assert f"\n    {formula} " not in shown


@pytest.mark.parametrize(
    "line",
    [
        "output = clip(input, min = 0,  max = 6)",
        "output = where(input > 0,  input,  scale * [a,  b = 3][0])",
        "output, gate = input * expit(input), expit(input)",
    ],
)
def test_a_formula_of_a_teacher_is_whole_whatever_commas_it_has(line: str) -> None:
    text = f"Any shape.\n\n    {line},  grad_input = HIDDEN\n    grad_gate = f(HIDDEN,  b = 3)"
    assert without_way_back(text) == f"Any shape.\n\n    {line}"


def test_several_formulas_in_a_line_of_a_teacher_stand_below_each_other() -> None:
    told = without_way_back("Any shape.\n\n    output = gate * input,  gate = f(input, 1);  gain, grad_gain = HIDDEN")
    assert told == "Any shape.\n\n    output = gate * input\n    gate = f(input, 1)"
    told = without_way_back("output = f(input, (gate),\n  gain = 3),  gate = 2\n\nIn (that, grad = HIDDEN")
    assert told == "output = f(input, (gate),\n  gain = 3)\n  gate = 2\n\nIn (that"
    told = without_way_back("(a) output = f(x),  gate = g((x, 1),\n    2)\n(b) Note")
    assert told == "(a) output = f(x)\ngate = g((x, 1),\n    2)\n(b) Note"
    assert "HIDDEN" not in without_way_back("output = gain * input\ngain, grad_gain = HIDDEN, HIDDEN")
