"""The order of a backward's arguments, which is tried."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nn_manual import check_function

NOTE = "backward takes what forward saved last, after the gradients of the outputs"


def forward(x: Any, w: Any) -> Any:
    return x @ w, (x, w)


def saved_first(saved: Any, upstream: Any) -> Any:
    x, w = saved
    return upstream @ w.T, x.T @ upstream


def saved_last(upstream: Any, saved: Any) -> Any:
    return saved_first(saved, upstream)


def reference(x: Any, w: Any) -> Any:
    return x @ w


def inputs() -> list[Any]:
    generator = np.random.default_rng(0)
    return [generator.standard_normal((4, 3)), generator.standard_normal((3, 2))]


def said(backward: Any, of: Any = forward) -> tuple[bool, str]:
    report = check_function((of, backward), reference, inputs(), only=["retain_graph"])
    return report.agrees, " ".join(str(report).split())


def test_both_orders_are_right_and_the_report_says_which() -> None:
    agrees, text = said(saved_first)
    assert agrees
    assert NOTE not in text
    agrees, text = said(saved_last)
    assert agrees
    assert NOTE in text


def test_every_row_runs_in_the_order_that_was_found() -> None:
    report = check_function((forward, saved_last), reference, inputs())
    assert report.passed, report


def test_of_a_wrong_backward_the_order_in_which_it_runs_is_judged() -> None:
    """In the other one it raises an error, which would say nothing."""

    def transposed(upstream: Any, other: Any) -> Any:
        x, w = other
        return upstream @ w.T, 2 * (x.T @ upstream)

    agrees, text = said(transposed)
    assert not agrees
    assert "wrong first in forward and transposed: grad_w" in text


def test_an_error_in_the_order_of_the_names_is_told_where_the_other_order_returns_what_does_not_fit() -> None:
    def of_number(dout: Any, cache: Any) -> Any:
        return dout * cache[0]

    report = check_function((lambda x: (2 * x, 2.0), of_number), lambda x: 2 * x, inputs()[:1], only=["retain_graph"])
    assert report.problem is not None
    assert report.problem.startswith("<lambda> and of_number: backward raised TypeError: 'float' object is not")


def test_where_names_say_nothing_the_order_counts_in_which_it_runs() -> None:
    def one_gradient(a: Any, s: Any) -> Any:
        return a @ s[1].T

    report = check_function((forward, one_gradient), reference, inputs(), only=["retain_graph"])
    assert report.problem is not None
    assert "backward returned 1 gradient instead of 2: grad_x, grad_w" in report.problem

    def of_a_typo(a: Any, s: Any) -> Any:
        return a @ s[1].T, unknown  # type: ignore[name-defined] # noqa: F821 - a mistake

    _, text = said(of_a_typo)
    assert "in the other order of its arguments: " in text
    assert "raised NameError: name 'unknown' is not defined" in text


@pytest.mark.parametrize("names", ["dout, cache", "g, _"])
def test_none_that_was_saved_is_no_gradient(names: str) -> None:
    """In the wrong order, it would be one of zeros, and right."""
    backward = eval(f"lambda {names}: {names.split(',')[0]}")
    pair = (lambda x: (np.round(x), None), backward)
    report = check_function(pair, lambda x: 0 * x + x.detach().round(), inputs()[:1], only=["retain_graph"])
    assert {failure.name.partition(",")[0] for failure in report.failures} == {"grad_x"}


@pytest.mark.parametrize("called", ["cache", "upstream"])
def test_where_it_raises_in_both_orders_the_last_name_decides(called: str) -> None:
    def of_cache(first: Any, cache: Any) -> Any:
        raise ValueError(f"{type(first).__name__}, then {type(cache).__name__}")

    def of_upstream(first: Any, upstream: Any) -> Any:
        raise ValueError(f"{type(first).__name__}, then {type(upstream).__name__}")

    _, text = said(of_cache if called == "cache" else of_upstream)
    assert ("ndarray, then tuple" if called == "cache" else "tuple, then ndarray") in text


def test_several_outputs_stand_before_what_was_saved() -> None:
    def two(x: Any, w: Any) -> Any:
        return (x @ w, x * 2), (x, w)

    def back(first: Any, second: Any, cache: Any) -> Any:
        x, w = cache
        return first @ w.T + 2 * second, x.T @ first

    report = check_function((two, back), lambda x, w: (x @ w, x * 2), inputs(), only=["retain_graph"])
    assert report.passed, report
    assert NOTE in " ".join(str(report).split())


def test_names_that_say_otherwise_are_a_note() -> None:
    """One is right only if what was saved comes first, and the names say last; another is right in both orders."""

    def against_its_names(dout: Any, cache: Any) -> Any:
        return saved_first(dout, cache)

    agrees, text = said(against_its_names)
    assert agrees
    assert "backward takes what forward saved first, though its arguments' names say last" in text

    def symmetric(dout: Any, cache: Any) -> Any:
        return 2 * dout * cache

    report = check_function((lambda x: (x**2, x), symmetric), lambda x: x**2, inputs()[:1], only=["retain_graph"])
    assert report.agrees
    assert NOTE in " ".join(str(report).split())


def test_of_two_wrong_orders_the_one_that_is_less_wrong_is_judged() -> None:
    """The name `g` suggests nothing, and `d` an upstream gradient."""

    def one_sign_is_lost(d: Any, g: Any) -> Any:
        return 3 * np.where(d < -1, -1, 1) * d**2 * g

    x = np.random.default_rng(0).standard_normal((5, 4))
    pair = (lambda x: (x**3, x), one_sign_is_lost)
    report = check_function(pair, lambda x: x**3, [x], only=["cost"])
    worst = report.failures[0]
    assert x[worst.index] < -1
    assert worst.ours == -worst.reference
    words = "wrong in both orders of backward's arguments, and less so where what was saved comes first"
    assert report.sources == (f"<lambda> and one_sign_is_lost: {words}",)
