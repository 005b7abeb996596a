"""The options of check-function."""

from __future__ import annotations

import argparse

from nn_manual.cli import commands

EXIT_STATUSES_OF_A_FUNCTION = """\
exit status:
  0    every value and every row is right
  2    usage, too little memory, or something can't be imported, doesn't fit or
       has no gradient
  3    a value or a row is wrong, or a row ended the process
"""


def add_function_options(parser: argparse.ArgumentParser) -> None:
    """Give the parser of the command its options."""
    parser.add_argument("function", metavar="MODULE:NAME", help="the function, as in my_kernels:layer_norm")
    parser.add_argument("--reference", required=True, metavar="MODULE:NAME", help="its definition, in torch")
    parser.add_argument("--shapes", required=True, metavar="SHAPES", help="shapes of the inputs, as in NxD,D,D")
    parser.add_argument(
        "--sizes",
        required=True,
        metavar="SIZES",
        help="the full size for each name, as in N=8,D=128; with several for a name, as in N=8,D=64,D=128, no other "
        "sizes of it are tried",
    )
    parser.add_argument(
        "--dtype",
        action="append",
        default=[],
        metavar="DTYPE",
        help="dtype of the inputs, or one for each, as in bfloat16,float32 (default: float32); give it again for "
        "another row",
    )
    parser.add_argument(
        "--skip", action="append", default=[], metavar="ROW", help="a row or a family of rows to leave out"
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="ROW", help="a row or a family of rows to run, in place of all"
    )
    parser.set_defaults(command=commands.check_function)
