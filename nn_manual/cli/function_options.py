"""The options of check-function."""

from __future__ import annotations

import argparse
import math

from nn_manual.cli import checks

#: A week: what takes longer has hung. A system's clock can't wait for any number of seconds.
MOST_SECONDS = 604_800

EXIT_STATUSES_OF_A_FUNCTION = """\
exit status:
  0    every value and every row is right
  2    usage, too little memory, or something can't be imported, doesn't fit or
       has no gradient
  3    a value or a row is wrong, took too long, or ended the process
"""


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds above 0, up to {MOST_SECONDS:,}")
    return seconds


def add_function_options(parser: argparse.ArgumentParser) -> None:
    """Give the parser of the command its options."""
    parser.add_argument("function", metavar="MODULE:NAME", help="the function, as in my_kernels:layer_norm")
    parser.add_argument(
        "--backward", metavar="MODULE:NAME", help="makes a pair on NumPy arrays, of which the function is the forward"
    )
    parser.add_argument(
        "--reference",
        metavar="MODULE:NAME",
        help="its definition, in torch (default: differences of its own forward)",
    )
    parser.add_argument("--shapes", required=True, metavar="SHAPES", help="shapes of the inputs, as in NxD,D,D")
    parser.add_argument(
        "--sizes",
        required=True,
        metavar="SIZES",
        help="the full size for each name, as in N=8,D=128; with several for a name, as in N=8,D=64,D=128, or with ==, "
        "as in D==128, no other sizes of it are tried",
    )
    parser.add_argument(
        "--integers",
        action="append",
        default=[],
        metavar="PLACE=BELOW",
        help="an input of integers from 0 on: 2=C, the second input, below the size C",
    )
    parser.add_argument(
        "--dtype",
        action="append",
        default=[],
        metavar="DTYPE",
        help="dtype of the inputs, or one for each, as in bfloat16,float32 (default: float32, of a pair float64); give "
        "it again for another row",
    )
    parser.add_argument(
        "--kinds", metavar="KIND,...", help="kinds of values that the function must take; '' for none (default: all)"
    )
    parser.add_argument(
        "--tolerance", type=float, metavar="FRACTION", help="of the largest value, in place of the dtype's"
    )
    parser.add_argument(
        "--skip", action="append", default=[], metavar="ROW,...", help="rows or families of rows to leave out"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="ROW,...",
        help="rows or families of rows to run, in place of all",
    )
    parser.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="a row that takes longer is wrong, and the others still run; an import that takes longer ends the check "
        "(default: no limit); not on Windows",
    )
    parser.set_defaults(command=checks.check_function)
