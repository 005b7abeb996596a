"""The package's own functions as machine code of numba, which is kept in a file where that can be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def machine_code(*signatures: Any, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """`numba.njit` with these signatures and options. The code is kept beside the source, or in the user's cache
    directory. Where numba may write to neither, each process compiles the function anew.
    """
    from numba import njit  # here, because it takes as long to load as all else

    def compiled(function: Callable[..., Any]) -> Any:
        try:
            return njit(*signatures, cache=True, **options)(function)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            return njit(*signatures, **options)(function)

    return compiled
