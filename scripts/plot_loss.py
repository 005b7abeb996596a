"""`nn-manual plot`, from a checkout."""

import sys

from nn_manual.cli import main

sys.exit(main(["plot", *sys.argv[1:]]))
