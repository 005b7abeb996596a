"""The cases of data sets and initializers: no gradient, but what a run relies on."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nn_manual.arrays import DTYPES, Shape
from nn_manual.check.catalogue.cases import CaseResult
from nn_manual.check.judge.report import GradientReport
from nn_manual.data import Dataset
from nn_manual.data.checked import loaded
from nn_manual.data.transform import Standardization
from nn_manual.model.initializers.base import Initializer, NotFilled, filled

#: The weights that an initializer fills: of a linear map, and of a convolution in one and in two dimensions.
SHAPES: tuple[Shape, ...] = ((5, 4), (4, 3, 2), (4, 3, 2, 2))


def data_cases(data: Dataset, dtype: str, seed: int) -> Iterator[CaseResult]:
    """The data set is loaded as `loaded` does it, which raises DataError, and then with another transform than it made,
    as `evaluate` loads other data.
    """
    split = loaded(data, seed, DTYPES[dtype])
    yield CaseResult("loaded twice", 0, 0.0)
    other = split.transform._replace(input=_moved(split.transform.input), target=_moved(split.transform.target))
    failure = None
    if not data.load(seed, DTYPES[dtype], other).transform.changes_as(other):
        words = "must apply the `transform` that it is given, and return it in the Split"
        failure = GradientReport((), problem=f"{type(data).__name__}.load {words}")
    yield CaseResult("loaded with a transform", 0, 0.0, failure)


def _moved(standardization: Standardization | None) -> Standardization | None:
    return None if standardization is None else Standardization(standardization.mean + 1, standardization.std * 2)


def initializer_cases(initializer: Initializer, seed: int) -> Iterator[CaseResult]:
    """The initializer fills weights of each of SHAPES that it doesn't refuse by ValueError: every number is
    overwritten, finite, and the generator determines it. Raises that error if it refuses all of them.
    """
    refused = []
    for shape in SHAPES:
        failure = None
        try:
            filled(initializer, shape, np.random.default_rng(seed))
        except NotFilled as error:
            failure = GradientReport((), problem=str(error))
        except ValueError as error:
            refused.append(error)
            continue
        yield CaseResult(f"a weight of shape {shape}", 0, 0.0, failure)
    if len(refused) == len(SHAPES):
        raise refused[0]
