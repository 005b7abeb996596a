"""What was done to the numbers of a data set, and their names: a prediction for other examples needs both."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from nn_manual.arrays import Array


class Standardization(NamedTuple):
    """(array - mean) / std, column by column; `mean` and `std` are float64, shaped as one example or ()."""

    mean: Array
    std: Array

    @classmethod
    def of(cls, train: Iterable[Array]) -> Standardization:
        """By the mean and the std of the examples in `train`, column by column. `train` is iterated several times, and
        each time has the examples in slices.

        std divides by the number of examples. A constant column is divided by 1, and so is a column of numbers below
        1e-160, whose squares are 0.
        """
        num_examples = sum(len(part) for part in train)
        first = next(part[0] for part in train if len(part)).copy()
        mean = sum(part.sum(axis=0) for part in train) / num_examples
        std = np.sqrt(sum(np.square(part - mean).sum(axis=0) for part in train) / num_examples)
        # The values are compared: the std of a constant column is often not 0 but a rounding error of the mean.
        is_constant = np.logical_and.reduce([(part == first).all(axis=0) for part in train])
        return cls(mean, np.where(is_constant | (std == 0), 1.0, std))

    def apply(self, array: Array) -> Array:
        """(array - mean) / std, in float64. Raises ValueError for examples of another shape than those of training."""
        if self.mean.shape not in ((), array.shape[1:]):
            raise ValueError(f"an example has shape {array.shape[1:]}, one of training had {self.mean.shape}")
        standardized: Array = (array - self.mean) / self.std
        return standardized

    def undo(self, array: Array) -> Array:
        """array * std + mean, in float64: the inverse of `apply`."""
        original: Array = array * self.std + self.mean
        return original


class Names(NamedTuple):
    """The names of the inputs' columns, of the targets' columns and of the classes; None if the source has no names.
    The classes of a text are its characters.
    """

    input: tuple[str, ...] | None = None
    target: tuple[str, ...] | None = None
    classes: tuple[str, ...] | None = None


class Transform(NamedTuple):
    """What was done to the source's numbers to make a Split's. If `input` or `target` is None, they were taken as they
    are.

    `categories` has the input's columns of names, in the order of the columns, each with its names: such a column
    became a number for each name. `filled` is what missing numbers of the input became, one number for each of an
    example's; None where none may be missing. `has_named_classes` says that the cells of the target are names.
    """

    input: Standardization | None = None
    target: Standardization | None = None
    names: Names = Names()
    categories: tuple[tuple[str, tuple[str, ...]], ...] = ()
    filled: Array | None = None
    has_named_classes: bool = False

    def changes_as(self, other: Transform) -> bool:
        """Whether both standardize in the same way, bit for bit."""
        own, others = self.as_json(), other.as_json()
        return all(own[part] == others[part] for part in ("input", "target"))

    def as_json(self) -> dict[str, Any]:
        """The content of a run's data.json. Floats that are read back have the same bits:

        {"input": {"mean": [...], "std": [...]}, "target": null,
         "names": {"input": [...], "target": null, "classes": [...]},
         "categories": {"color": ["blue", "red"]},
         "filled": [...],
         "has_named_classes": true}

        The last three are there where they say something.
        """
        content: dict[str, Any] = {"input": _plain(self.input), "target": _plain(self.target)}
        content["names"] = self.names._asdict()
        if self.categories:
            content["categories"] = {column: list(names) for column, names in self.categories}
        if self.has_named_classes:
            content["has_named_classes"] = True
        return content if self.filled is None else content | {"filled": self.filled.tolist()}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Transform:
        """The Transform from what `as_json` returned. Raises ValueError, which names the wrong key."""
        names = _entry(content, "names")
        if not isinstance(names, Mapping):
            raise ValueError('"names" must be an object')
        return cls(
            _read_standardization("input", _entry(content, "input")),
            _read_standardization("target", _entry(content, "target")),
            Names(*(_read_names(f"names.{field}", _entry(names, field, "names.")) for field in Names._fields)),
            _read_categories(content.get("categories", {})),
            None if (filled := content.get("filled")) is None else _read_numbers("filled", filled),
            _read_flag("has_named_classes", content.get("has_named_classes", False)),
        )


def _plain(part: Standardization | None) -> dict[str, Any] | None:
    return None if part is None else {"mean": part.mean.tolist(), "std": part.std.tolist()}


def _entry(content: Mapping[str, Any], key: str, parent: str = "") -> Any:
    if key not in content:
        raise ValueError(f'"{parent}{key}" is missing')
    return content[key]


def _read_standardization(key: str, content: Any) -> Standardization | None:
    if content is None:
        return None
    if not isinstance(content, Mapping):
        raise ValueError(f'"{key}" must be an object or null')
    mean, std = (_read_numbers(f"{key}.{part}", _entry(content, part, f"{key}.")) for part in ("mean", "std"))
    if mean.shape != std.shape:
        raise ValueError(f'"{key}.mean" has shape {mean.shape}, "{key}.std" {std.shape}')
    if not (std > 0).all():
        raise ValueError(f'"{key}.std" must be above 0, not {std.min()}')
    return Standardization(mean, std)


def _read_numbers(key: str, content: Any) -> Array:
    """A number, or nested lists of numbers, with as many levels as an example has dimensions."""
    try:
        numbers = np.array(content)
    except ValueError:  # lists of different lengths
        numbers = np.array(None)
    if numbers.dtype.kind not in "if" or not numbers.size or not np.isfinite(numbers).all():
        raise ValueError(f'"{key}" must be a finite number, or lists of them of one length')
    return numbers.astype(np.float64)


def _read_categories(content: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    if not isinstance(content, Mapping):
        raise ValueError('"categories" must be an object')
    read = []
    for column, given in content.items():
        names = _read_names(key := f"categories.{column}", given)
        if names is None:
            raise ValueError(f'"{key}" must be a list of strings')
        read.append((column, names))
    return tuple(read)


def _read_flag(key: str, content: Any) -> bool:
    if not isinstance(content, bool):
        raise ValueError(f'"{key}" must be true or false')
    return content


def _read_names(key: str, content: Any) -> tuple[str, ...] | None:
    if content is None:
        return None
    if not isinstance(content, list) or not content or not all(isinstance(name, str) for name in content):
        raise ValueError(f'"{key}" must be a list of strings or null')
    if len(set(content)) < len(content):
        raise ValueError(f'"{key}" has a name twice')
    return tuple(content)
