"""What the last bits of a run depend on."""

from __future__ import annotations

import pytest
import threadpoolctl

from nn_manual.run.environment import blas


def library(path: str, version: str, user_api: str = "blas") -> dict[str, object]:
    return {"user_api": user_api, "filepath": path, "version": version, "internal_api": "openblas", "num_threads": 2}


@pytest.mark.parametrize("folder", ["numpy.libs", "numpy/.dylibs"])
def test_the_blas_is_numpys(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """scipy has one of its own, which may be listed before it."""
    libraries = [
        library("/numpy-study/lib/libgomp.so", "1", "openmp"),
        library("/numpy-study/lib/scipy.libs/libscipy_openblas.so", "2"),
        library(f"/numpy-study/lib/{folder}/libscipy_openblas64_.so", "3"),
    ]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: libraries)
    assert blas() == {"internal_api": "openblas", "version": "3", "architecture": None, "num_threads": 2}


def test_one_that_is_not_numpys_own_is_better_than_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [library("/usr/lib/libopenblas.so.0", "1")])
    assert blas()["version"] == "1"
    monkeypatch.setattr(threadpoolctl, "threadpool_info", list)
    assert blas() == {}
