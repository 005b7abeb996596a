"""python -m nn_manual is nn-manual."""

import sys

from nn_manual.cli import main

sys.exit(main())
