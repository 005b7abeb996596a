"""What scikit-learn asks of every estimator, by its own checks."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from nn_manual import ManualClassifier, ManualRegressor

#: Fewer epochs than the default's 200, so that the checks take a fourth of the time; the lr makes up for it.
ESTIMATORS = [ManualClassifier(lr=0.01, epochs=40), ManualRegressor(lr=0.01, epochs=40)]


@pytest.mark.slow
@parametrize_with_checks(ESTIMATORS)  # type: ignore[untyped-decorator]  # scikit-learn has no types
def test_each_of_its_checks(estimator: Any, check: Any) -> None:
    """They alone find a rule of scikit-learn's that is broken: what is refused, and what isn't changed."""
    check(estimator)
