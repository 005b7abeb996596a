"""Before numpy and torch are imported, here and in the processes that tests start."""

import os

# A step alternates between numpy's threads and torch's. With a test on every core they only wait for one another:
# twenty times as long as one thread takes, measured with two workers on two cores. For torch, giving a dozen elements
# to other threads takes a hundred times as long as the work on them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
