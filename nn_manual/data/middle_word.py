"""Words of a text: each from the words around it, of which word vectors are learned."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.held_out import check_validation_fraction
from nn_manual.data.text import python_manual, read_text
from nn_manual.data.transform import Names, Transform
from nn_manual.errors import DataError
from nn_manual.messages.text import counted


@dataclass
class MiddleWord(Dataset):
    """A text whose words are predicted from their neighbours: input int64 (2 radius,), one class for each word.

        input[n]  = indices of the words n, ..., n + radius - 1, and n + radius + 1, ..., n + 2 radius
        target[n] = index of word n + radius

    `file` is UTF-8; without it, the text is Python's own manual, as Text has both. Its words are the runs of letters,
    digits and underscores, in lower case. The validation part is the last round(validation_fraction * words) words. The
    classes are the `num_words` words that the training part has most often, the most frequent one first, of equally
    frequent ones the one that sorts before the others. All other words are left out of both parts before the windows
    are cut, as rare words are for word2vec. No window crosses from one part to the other.
    """

    file: Path | None = None
    radius: int = 2
    num_words: int = 1000
    validation_fraction: float = 0.1

    def __post_init__(self) -> None:
        if self.file is not None:
            self.file = Path(self.file)  # Python code may pass a str
        for name in ("radius", "num_words"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")
        check_validation_fraction(self.validation_fraction)

    @property
    def example_shape(self) -> Shape:
        """(2 radius,)."""
        return (2 * self.radius,)

    def load(
        self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None  # noqa: ARG002 - the text is the split
    ) -> Split:
        """Read the text and cut it into windows of words.

        Raises DataError for a file that can't be read or isn't UTF-8, and for a part that has no whole window;
        ValueError for a transform without names of classes.
        """
        source = "pydoc_data.topics" if self.file is None else str(self.file)
        text = python_manual() if self.file is None else read_text(self.file)
        words = re.findall(r"\w+", text.lower())
        num_train = len(words) - round(self.validation_fraction * len(words))
        if transform is None:
            counts = Counter(words[:num_train])
            classes = tuple(sorted(counts, key=lambda word: (-counts[word], word))[: self.num_words])
        elif transform.names.classes is None:
            raise ValueError("is a text, but the classes of training have no names")
        else:
            classes = transform.names.classes
        index_of = {word: index for index, word in enumerate(classes)}
        parts = {"training": words[:num_train], "validation": words[num_train:]}
        examples: list[Examples] = []
        for part, own in parts.items():
            indices = np.array([index_of[word] for word in own if word in index_of], np.int64)
            if len(indices) <= 2 * self.radius and (part == "training" or self.validation_fraction > 0):
                found = f"{counted(len(indices), 'word')} of the {len(classes):,} most frequent ones"
                takes = f"a window of radius={self.radius} takes {2 * self.radius + 1:,}"
                raise DataError(f"{source}: the {part} part has {found}, but {takes}")
            examples.append(self._windows(indices))
        train, validation = examples
        return Split(train, validation, len(classes), Transform(names=Names(classes=classes)))

    def _windows(self, indices: Array) -> Examples:
        """The windows of one part; an empty part has none."""
        if not indices.size:
            return Examples(np.empty((0, 2 * self.radius), np.int64), np.empty(0, np.int64))
        windows = np.lib.stride_tricks.sliding_window_view(indices, 2 * self.radius + 1)
        return Examples(np.delete(windows, self.radius, axis=1), windows[:, self.radius].copy())
