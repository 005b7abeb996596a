"""Which functions of published packages check_function judges as it was worked out."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
import time
import warnings
from collections.abc import Sequence

from benchmarks.functions import published
from benchmarks.functions.subject import Published
from benchmarks.functions.tally import Tally
from nn_manual import check_function
from nn_manual.functions.function_report import FunctionReport

#: The modules of published/ with functions of each package. Those that were mended are our own, and need none.
PACKAGES = {
    "liger-kernel": ("liger_losses", "liger_norms", "liger_others"),
    "timm": ("timm_activations", "timm_losses", "timm_layers"),
    "entmax": ("entmax_mappings", "entmax_losses"),
    "snntorch": ("surrogates",),
    "gpytorch": ("gaussian_processes",),
    "geomloss": ("clouds",),
    "torchdiffeq": ("differential_equations",),
    "torch": ("torch_itself",),
    "mended": ("mended_kernels", "mended_losses", "mended_layers"),
}

def cases(package: str) -> list[Published]:
    """Every case of a package. Raises ImportError where it isn't installed, or doesn't work here."""
    modules = [importlib.import_module(f"{published.__name__}.{name}") for name in PACKAGES[package]]
    return [case for module in modules for case in (*getattr(module, "RIGHT", ()), *getattr(module, "WRONG", ()))]


def report_of(case: Published) -> FunctionReport:
    """What check_function says of a case."""
    return check_function(case.function, case.reference, case.inputs, sizes=case.sizes, **case.options)


def main(packages: Sequence[str]) -> int:
    """Print each case that isn't judged as it was worked out, how many are, and the slowest of each package. Returns
    1 if there is one or a package is left out, 2 if there is no such package, else 0.
    """
    unknown = [name for name in packages if name not in PACKAGES]
    if unknown:
        print(f"there is no package {unknown[0]}; there are {', '.join(PACKAGES)}", file=sys.stderr)
        return 2
    warnings.simplefilter("ignore")
    tally = Tally()
    slowest = []
    left_out = []
    for package in packages or PACKAGES:
        try:
            found = cases(package)
        except ImportError as error:
            left_out.append(f"{package}: {error}")
            continue
        version = "" if package == "mended" else f" {importlib.metadata.version(package)}"
        print(f"{package}{version}: {len(found)} functions", flush=True)
        times: list[tuple[float, str]] = []
        for case in found:
            start = time.process_time()
            report = report_of(case)
            times.append((time.process_time() - start, f"{package}: {case.name}"))
            if not tally.add(case, report):
                print(f"{package}: {case.name}: {case.fault or 'right'}; {case.why}\n{report}\n", flush=True)
        slowest.append(max(times))
    all_good = tally.show()
    if slowest:
        told = "; ".join(f"{name} {seconds:.0f}" for seconds, name in slowest)
        print(f"the slowest of each package, in seconds of a processor: {told}")
    for line in left_out:
        print(f"left out: {line}")
    return int(bool(left_out) or not all_good)
