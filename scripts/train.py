"""`nn-manual train`, from a checkout."""

import sys

from nn_manual.cli import main

sys.exit(main(["train", *sys.argv[1:]]))
