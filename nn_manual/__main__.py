"""python -m nn_manual is nn-manual."""

import sys
from pathlib import Path

from nn_manual.cli import main

# Python puts the current folder first, which nn-manual doesn't look into: a user's layers lie where the config says.
# The package itself may lie there, and the processes that it starts must find it.
if not sys.flags.safe_path and Path(sys.path[0]) == Path.cwd() != Path(__file__).parents[1]:
    del sys.path[0]

sys.exit(main())
