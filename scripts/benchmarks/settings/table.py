"""The settings, in the order in which `all` runs them."""

from __future__ import annotations

from benchmarks.settings.environments import Newest, Oldest
from benchmarks.settings.facts import Facts
from benchmarks.settings.machine import Busy, OneCore
from benchmarks.settings.setting import Setting
from benchmarks.settings.users import OrdinaryUser
from benchmarks.settings.variables import NumpyBaseline, Variable


def _torch(facts: Facts) -> str:
    return facts.torch


def _mkl(facts: Facts) -> str:
    return facts.mkl


def _onednn(facts: Facts) -> str:
    return facts.onednn


def _blas(facts: Facts) -> str:
    return ", ".join(facts.blas)


_TORCH, _BLAS = "ATEN_CPU_CAPABILITY", "OPENBLAS_CORETYPE"

#: Each setting, by its name.
SETTINGS: dict[str, Setting] = {
    setting.name: setting
    for setting in (
        OneCore("one_core", "all processes on one core"),
        Busy("busy", "four busy loops beside the tests"),
        OrdinaryUser("ordinary_user", "another user than root, with a home and a copy of the checkout"),
        OrdinaryUser("read_only", "a user who can't write to the checkout", read_only=True),
        Variable("torch_default", "torch's own kernels without AVX", _TORCH, "default", _torch, "DEFAULT"),
        Variable("torch_avx2", "torch's own kernels with AVX2", _TORCH, "avx2", _torch, "AVX2", needs="AVX2"),
        # MKL obeys it only on Intel's processors, and names its instructions only there.
        Variable(
            "mkl_avx2", "torch's BLAS with AVX2", "MKL_ENABLE_INSTRUCTIONS", "AVX2", _mkl, ".*Extensions 2 .*", "AVX2"
        ),
        Variable(
            "onednn_avx2", "torch's convolutions with AVX2", "ONEDNN_MAX_CPU_ISA", "AVX2", _onednn, "Intel AVX2", "AVX2"
        ),
        Variable("openblas_haswell", "numpy's BLAS for Haswell", _BLAS, "Haswell", _blas, "Haswell", "AVX2"),
        Variable("openblas_skylakex", "numpy's BLAS for Skylake-X", _BLAS, "SKYLAKEX", _blas, "SkylakeX", "AVX512_SKX"),
        # numpy's wheels have no special code for Zen: OpenBLAS takes Haswell's instead.
        Variable("openblas_zen", "numpy's BLAS for Zen", _BLAS, "ZEN", _blas, "Zen|Haswell", "AVX2"),
        NumpyBaseline("numpy_baseline", "numpy's loops for the oldest processor"),
        Oldest("oldest", "the oldest versions that pyproject.toml allows"),
        Newest("newest", "the newest versions on the registry"),
    )
}
