"""liger-kernel, and what Triton's interpreter lacks for kernels that are written for a GPU."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.runtime import interpreter
from triton.runtime.interpreter import TensorHandle


def _elementwise(formula: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of CUDA's libdevice, which has no version for the CPU."""

    def run(argument: Any) -> Any:
        handle = argument.handle
        return tl.tensor(TensorHandle(formula(handle.data).astype(handle.data.dtype), handle.dtype), argument.type)

    return run


class _FirstConfig:
    """A kernel with the first of the configs among which autotune would choose on a GPU."""

    def __init__(self, kernel: Any, config: Any) -> None:
        self._kernel, self._config = kernel, config

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self._kernel[grid], **self._config.kwargs)


def _autotune(configs: list[Any], key: list[str], **_: Any) -> Callable[[Any], _FirstConfig]:
    return lambda kernel: _FirstConfig(kernel, configs[0])


def _argument(convert: Callable[[Any], Any], given: Any) -> Any:
    """A Python float is a float32 in a compiled kernel; the interpreter leaves it a Python float."""
    if isinstance(given, float):
        return tl.tensor(TensorHandle(np.array([given], np.float32), tl.float32), tl.float32)
    return convert(given)


libdevice.tanh = _elementwise(np.tanh)
libdevice.rsqrt = _elementwise(lambda values: 1 / np.sqrt(values))
triton.autotune = _autotune
interpreter._implicit_cvt = functools.partial(_argument, interpreter._implicit_cvt)
# After all this: its kernels take these functions when they are defined.
liger: Any = importlib.import_module("liger_kernel.transformers.functional")
embedding: Any = importlib.import_module("liger_kernel.ops.experimental.embedding").LigerEmbeddingFunction.apply
