"""scripts/benchmark.py functions: 60 wrong and 62 right functions, and a sample of the verdicts."""

from __future__ import annotations

import warnings

import pytest
from benchmarks.functions.by_hand import cases, report_of
from benchmarks.functions.score import REPORTED, UNSEEN, by_assert_close, by_check_function, by_gradcheck
from benchmarks.functions.subject import Handwriting, Subject
from benchmarks.functions.tally import is_named

WRONG = [subject for module in (*UNSEEN, *REPORTED) for subject in module.WRONG]
RIGHT = [subject for module in (*UNSEEN, *REPORTED) for subject in module.RIGHT]


def test_there_are_60_and_62_and_half_were_written_unseen() -> None:
    assert (len(WRONG), len(RIGHT)) == (60, 62)
    assert sum(len(module.WRONG) for module in UNSEEN) == 34
    assert len({subject.name for subject in WRONG}) == 60
    assert all(subject.named for subject in WRONG)


@pytest.mark.parametrize("subject", WRONG[::6], ids=lambda subject: subject.name)
def test_a_wrong_one_is_caught_and_named(subject: Subject) -> None:
    verdict = by_check_function(subject)
    assert not verdict.passed
    assert any(word in verdict.words for word in subject.named), verdict.words


@pytest.mark.parametrize("subject", RIGHT[::6], ids=lambda subject: subject.name)
def test_a_right_one_is_not_blamed(subject: Subject) -> None:
    verdict = by_check_function(subject)
    assert verdict.passed, verdict.words


def test_peers_judge_what_they_can_see() -> None:
    by_name = {subject.name: subject for subject in WRONG}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = by_name["LinearMeanBias"]
        assert "grad_bias" in by_gradcheck(plain).words
        assert by_assert_close(plain).words.startswith("grad_bias")
        assert by_assert_close(by_name["LinearReadsMemory"]).passed


HANDWRITTEN = [case for _, case in cases()]


def test_there_are_100_handwritten_passes_half_of_them_wrong() -> None:
    assert len({case.name for case in HANDWRITTEN}) == len(HANDWRITTEN) == 100
    assert sum(bool(case.fault) for case in HANDWRITTEN) == 50
    assert all(bool(case.named) == bool(case.fault) for case in HANDWRITTEN)


@pytest.mark.slow
@pytest.mark.parametrize("case", HANDWRITTEN[::12], ids=lambda case: case.name)
def test_a_handwritten_pass_is_judged_as_it_was_worked_out(case: Handwriting) -> None:
    report = report_of(case)
    assert report.passed == (not case.fault), report
    assert is_named(case, report) == bool(case.fault)
