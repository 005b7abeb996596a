"""Functions of packages from the registry, and mistakes that were mended in public; each with a verdict worked out.

Each module has RIGHT and WRONG. A module whose package isn't installed can't be imported.
"""

import os

#: Triton reads it when it is imported: kernels run on the CPU, in its interpreter.
os.environ["TRITON_INTERPRET"] = "1"
