"""python -m nn_manual is nn-manual."""

import sys

from nn_manual.cli import main

# Python puts the current folder first, which nn-manual doesn't look into: a user's layers lie where the config says.
if not sys.flags.safe_path:
    del sys.path[0]

sys.exit(main())
