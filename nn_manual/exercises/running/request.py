"""What a process is asked to run."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

#: Begins what is printed in a case, whose number follows: no text has this character.
MARK = "\x1e"


class Request(NamedTuple):
    """What a process is to run: a file, and of which exercise it is, by its name. An exercise that a teacher has made
    is that of the class in the file itself: then `title` is the name of the class, and `taken_out` are its methods.

    Where `jacobian_of` names a gradient, the answer is a Jacobian and the index of its case, or why there is none.

    `folder` is where the answer goes. The other numbers are the limits: seconds, and bytes of memory, of what is
    printed, and of each file that is written.
    """

    file: str
    name: str
    folder: str
    title: str = ""
    kind: str = ""
    taken_out: tuple[str, ...] = ()
    jacobian_of: str = ""
    seconds: float = 10.0
    memory: int = 4 << 30
    printed: int = 1 << 20

    @property
    def answer(self) -> Path:
        """The file with the answer."""
        return Path(self.folder, "answer")

    @property
    def dump(self) -> Path:
        """The file that says which line ran when the time was over."""
        return Path(self.folder, "dump")
