"""The script for batches of any size: two traces are compared, and numbers that differ depend on the size."""

from __future__ import annotations

from collections.abc import Sequence

from nn_manual.unroll.syntax import NUMBER, Name, Parts, followed_alone, render


class Differs(Exception):  # noqa: N818 - says what was found, not that something broke
    """For another size of the batch, more differs than numbers: one script can't serve both sizes."""


def merged(own: Sequence[Parts], other: Sequence[Parts], size: int, other_size: int) -> list[Parts]:
    """The texts. Numbers that depend on the size of the batch become expressions of `batch`."""
    if len(own) != len(other):
        raise Differs
    return [_merged(parts, its, size, other_size) for parts, its in zip(own, other, strict=True)]


def _merged(own: Parts, other: Parts, size: int, other_size: int) -> Parts:
    if own == other:
        return own
    if len(own) != len(other):
        raise Differs
    found: list[str | Name] = []
    for place, (part, its) in enumerate(zip(own, other, strict=True)):
        if isinstance(part, Name) or isinstance(its, Name):
            if part != its:
                raise Differs
            found.append(part)
        else:
            found += _pieces(part, its, size, other_size, render(own[:place]), render(own[place + 1 :]))
    return tuple(found)


def _pieces(own: str, other: str, size: int, other_size: int, before: str, after: str) -> list[str | Name]:
    """The pieces of a text that stands between two others. `batch` stands where a number depends on it."""
    pieces, its_pieces = NUMBER.split(own), NUMBER.split(other)
    if pieces[::2] != its_pieces[::2]:
        raise Differs(own, other)
    found: list[str | Name] = [pieces[0]]
    for place in range(1, len(pieces), 2):
        if _is_sample(pieces[place - 1], pieces[place], its_pieces[place], size, other_size):
            found += [Name("batch"), " - 1", pieces[place + 1]]
            continue
        left, right = before + "".join(pieces[:place]), "".join(pieces[place + 1 :]) + after
        is_alone = followed_alone(left + right, len(left), len(left))
        found += _number(pieces[place], its_pieces[place], size, other_size, is_alone=is_alone)
        found.append(pieces[place + 1])
    return found


def _is_sample(before: str, own: str, other: str, size: int, other_size: int) -> bool:
    """Whether NumPy divides by batch - 1, as for the variance of a sample."""
    return before.endswith("np.int64(") and (own, other) == (str(size - 1), str(other_size - 1))


def _number(own: str, other: str, size: int, other_size: int, *, is_alone: bool) -> list[str | Name]:
    if own == other:
        return [own]
    if not (own.isdigit() and other.isdigit()):
        raise Differs(own, other)
    slope, rest = divmod(int(own) - int(other), size - other_size)
    start = int(own) - slope * size
    if rest or slope < 1 or start:
        raise Differs(own, other)
    if slope == 1:
        return [Name("batch")]
    return [f"{slope} * ", Name("batch")] if is_alone else [f"({slope} * ", Name("batch"), ")"]
