"""Kernels of tests are kept beside pytest's own cache: a second run compiles nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from nn_manual.compile.cache import DIRECTORY


@pytest.fixture(scope="session", autouse=True)
def kernels(request: pytest.FixtureRequest) -> Iterator[None]:
    assert request.config.cache is not None
    before = os.environ.get(DIRECTORY)
    os.environ[DIRECTORY] = str(request.config.cache.mkdir("kernels"))
    yield
    if before is None:
        del os.environ[DIRECTORY]
    else:
        os.environ[DIRECTORY] = before
