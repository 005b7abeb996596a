"""What a reader's code computed, as the bytes in which one process tells it to another, or a file keeps it.

They are read without executing anything: who wrote them ran the reader's code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Failure:
    """What is wrong with the reader's code: in words, and the line of its file, 0 where it isn't known. Of a case,
    `reached` has the results that were there before.
    """

    words: str
    line: int = 0
    reached: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """Of each case its results, or why there are none. A result that is no array of numbers is a word for what it is.

    `problem` says why no case ran at all. `notes` are told beside the verdict. `unused` are the reader's methods that
    no case has called, with their lines.
    """

    results: Sequence[Mapping[str, Any] | Failure] = ()
    problem: Failure | None = None
    notes: Sequence[Failure] = ()
    unused: Mapping[str, int] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """A line of JSON, and behind it the numbers of all arrays."""
        blocks: list[bytes] = []
        results = [
            {"words": each.words, "line": each.line, "reached": _all_told(each.reached, blocks)}
            if isinstance(each, Failure)
            else _all_told(each, blocks)
            for each in self.results
        ]
        problem = None if self.problem is None else asdict(self.problem)
        notes = [asdict(note) for note in self.notes]
        head = {"results": results, "problem": problem, "notes": notes, "unused": dict(self.unused)}
        return b"\n".join([json.dumps(head).encode(), b"".join(blocks)])

    @classmethod
    def from_bytes(cls, data: bytes) -> Answer:
        """The same again. Raises ValueError for anything else."""
        head, _, block = data.partition(b"\n")
        try:
            told, start = json.loads(head), 0
            results: list[Mapping[str, Any] | Failure] = []
            for each in told["results"]:
                read: dict[str, Any] = {}
                for name, value in each.get("reached", each).items():
                    read[name], start = _read(value, block, start)
                results.append(Failure(each["words"], each["line"], read) if "words" in each else read)
            problem = None if told["problem"] is None else Failure(**told["problem"])
            return cls(results, problem, [Failure(**note) for note in told["notes"]], told.get("unused", {}))
        except (LookupError, TypeError, AttributeError) as error:
            raise ValueError(f"no answer: {error}") from None


def _all_told(results: Mapping[str, Any], blocks: list[bytes]) -> dict[str, Any]:
    return {name: _told(value, blocks) for name, value in results.items()}


def _told(value: Any, blocks: list[bytes]) -> Any:
    """A value for JSON: of an array its dtype and shape, of anything else a word."""
    if isinstance(value, np.ma.MaskedArray):
        return "a masked array"
    if isinstance(value, np.ndarray | np.generic | float | int) and np.asarray(value).dtype.kind in "fiub":
        array = np.asarray(value)
        blocks.append(np.ascontiguousarray(array).tobytes())
        return [array.dtype.str, array.shape]
    if isinstance(value, np.ndarray):
        return f"an array of dtype {value.dtype}"
    return "None" if value is None else f"a {type(value).__name__}"


def _read(told: Any, block: bytes, start: int) -> tuple[Any, int]:
    """The value again, and where the numbers of the next one start."""
    if isinstance(told, str):
        return told, start
    dtype, shape = np.dtype(told[0]), tuple(map(int, told[1]))
    count = math.prod(shape)
    array = np.frombuffer(block, dtype, count, start).reshape(shape) if count else np.empty(shape, dtype)
    return array, start + count * dtype.itemsize
