"""A context through which all of torch's operations go."""

from __future__ import annotations

from torch.utils._python_dispatch import TorchDispatchMode


class Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call] # torch has no types here
    """A context in which each of torch's operations, of this thread, is run by `__torch_dispatch__` of a subclass."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # as above

    def __init_subclass__(cls) -> None:
        """torch's own hides `__torch_dispatch__` from torch.compile, which compiles nothing in such a context anyway.
        For that it loads the whole compiler with the first operation, which takes a second, and each operation goes
        through two more functions.
        """
