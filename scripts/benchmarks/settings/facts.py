"""The facts about a process, as it reads them itself: `python facts.py TREE` prints them, as JSON in its last line.

It runs by its path, with the interpreter and the variables of a setting, so it imports nothing of ours at its top.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

#: With these variables, MKL and oneDNN print for which instructions they have chosen their code.
VERBOSE = {"MKL_VERBOSE": "1", "ONEDNN_VERBOSE": "1"}


@dataclass(frozen=True)
class Facts:
    """What a process is run with."""

    num_cores: int
    user: int
    can_write: bool  # to the checkout
    package: str  # the folder of nn_manual
    processor: Sequence[str]  # the features that it has, by numpy's names
    numpy: Sequence[str]  # those of them for which numpy has code above its baseline, and uses it
    torch: str  # the instructions of torch's own kernels, as torch names them
    blas: Sequence[str]  # the processors for which the OpenBLAS of numpy, and of scipy, have chosen their code
    versions: Mapping[str, str]  # of each distribution, by its name as the registry writes it
    mkl: str = ""  # as it says itself, and so does oneDNN; empty where it doesn't
    onednn: str = ""


def read(tree: Path) -> Facts:
    """The facts about this process, without those that only the output of the libraries has."""
    from importlib.metadata import distributions

    import numpy as np
    import scipy.linalg
    import torch
    from numpy._core import _multiarray_umath as umath  # type: ignore[attr-defined]  # it is in C, without types
    from packaging.utils import canonicalize_name
    from threadpoolctl import threadpool_info

    import nn_manual

    torch.ones(64, 64) @ torch.ones(64, 64)  # MKL speaks at its first product, oneDNN at its first operation
    if torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        torch.ones(4).to_mkldnn().relu()
    scipy.linalg.norm(np.ones(4))  # loads scipy's OpenBLAS
    features: dict[str, bool] = umath.__cpu_features__
    return Facts(
        num_cores=len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1,
        user=os.getuid(),
        can_write=os.access(tree, os.W_OK),
        package=str(Path(nn_manual.__file__).resolve().parent),
        processor=[name for name, has in features.items() if has],
        numpy=[name for name in umath.__cpu_dispatch__ if features.get(name)],
        torch=torch.backends.cpu.get_cpu_capability(),
        blas=sorted({of["architecture"] for of in threadpool_info() if of["internal_api"] == "openblas"}),
        # If a distribution is there twice, the first one found counts.
        versions={canonicalize_name(of.name): of.version for of in reversed(list(distributions()))},
    )


def parsed(output: str) -> Facts:
    """The facts, from everything that the process has printed.

    On processors that aren't Intel's, MKL says `Intel(R) Architecture processors`, whatever it was told to use.
    """
    mkl = re.search(r"^MKL_VERBOSE .*?(Advanced Vector Extensions [^ ]+ \(Intel\(R\) [^)]+\))", output, re.MULTILINE)
    onednn = re.search(r"^onednn_verbose,.*\bcpu,isa:(.*)$", output, re.MULTILINE)
    said = {"mkl": mkl[1] if mkl else "", "onednn": onednn[1] if onednn else ""}
    return Facts(**json.loads(output.splitlines()[-1]) | said)


if __name__ == "__main__":
    print(json.dumps(asdict(read(Path(sys.argv[1])))))
