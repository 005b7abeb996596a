"""Generated data: problems whose solution is known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from nn_manual.arrays import Shape
from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.held_out import check_validation_fraction
from nn_manual.data.split import split_examples
from nn_manual.data.transform import Names, Transform
from nn_manual.streams import Stream, generator

#: The arms of the spirals begin at this radius: at 0 they would meet, and no model could tell them apart.
INNER_RADIUS = 0.1
#: The inputs of Brackets that are brackets.
OPENING, CLOSING = 1, 2


@dataclass
class Spirals(Dataset):
    """Points (x, y) on `num_classes` interleaved spiral arms, one class each, in equal numbers.

        radius ~ uniform(0.1, 1)
        angle  = 2 pi (turns * radius + class / num_classes)
        input  = radius * (cos(angle), sin(angle)) + noise * normal(0, 1)

    Neighbouring arms are 1 / (turns * num_classes) apart along a radius.
    """

    num_examples: int = 1000
    num_classes: int = 2
    turns: float = 1.0
    noise: float = 0.05
    validation_fraction: float = 0.2

    example_shape = (2,)

    def __post_init__(self) -> None:
        _check_at_least(2, num_classes=self.num_classes)
        if self.num_examples < self.num_classes:
            raise ValueError(
                f"num_examples must be at least num_classes={self.num_classes}, not {self.num_examples}"
            )
        _check_finite_and_at_least_0(turns=self.turns, noise=self.noise)
        check_validation_fraction(self.validation_fraction)

    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Draw the points with `seed` and split them."""
        random = generator(seed, Stream.GENERATE)
        target = np.arange(self.num_examples) % self.num_classes
        radius = random.uniform(INNER_RADIUS, 1, self.num_examples)
        angle = 2 * math.pi * (self.turns * radius + target / self.num_classes)
        arms = radius * np.array([np.cos(angle), np.sin(angle)])
        input = arms.T + self.noise * random.standard_normal((self.num_examples, 2))
        examples = Examples(input, target)
        return split_examples(
            examples, self.num_classes, self.validation_fraction, seed, dtype, standardize=False, transform=transform
        )


@dataclass
class LinearTeacher(Dataset):
    """A regression that Linear(in_features, out_features) solves: a random teacher gives the targets.

        input, weight, bias ~ normal(0, 1)
        target = input @ weight.T + bias + noise * normal(0, 1)

    The mean squared error of the teacher itself is noise ** 2.
    """

    num_examples: int = 1000
    in_features: int = 10
    out_features: int = 1
    noise: float = 0.1
    validation_fraction: float = 0.2

    def __post_init__(self) -> None:
        _check_at_least(
            1, num_examples=self.num_examples, in_features=self.in_features, out_features=self.out_features
        )
        _check_finite_and_at_least_0(noise=self.noise)
        check_validation_fraction(self.validation_fraction)

    @property
    def example_shape(self) -> Shape:
        """(in_features,)."""
        return (self.in_features,)

    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Draw the teacher, then the inputs and the noise, with `seed`, and split the examples."""
        random = generator(seed, Stream.GENERATE)
        weight = random.standard_normal((self.out_features, self.in_features))
        bias = random.standard_normal(self.out_features)
        input = random.standard_normal((self.num_examples, self.in_features))
        noise = self.noise * random.standard_normal((self.num_examples, self.out_features))
        # einsum and not @: the last bits of a BLAS depend on its number of threads.
        examples = Examples(input, np.einsum("ni,oi->no", input, weight) + bias + noise)
        return split_examples(
            examples, None, self.validation_fraction, seed, dtype, standardize=False, transform=transform
        )


@dataclass
class Brackets(Dataset):
    """Rows of brackets, and which of them are one of a pair: input and target int64 (length,).

        input[t]  = 0, 1 or 2 for another character, an opening and a closing bracket, each as likely as the others
        target[t] = 1 if the bracket at t has its partner, else 0

    A closing bracket is the partner of the last opening one before it that has none. So an opening bracket takes
    reading on to its end, and a closing one reading back: no net that reads in one direction alone can be right.
    """

    num_examples: int = 1000
    length: int = 16
    validation_fraction: float = 0.2

    def __post_init__(self) -> None:
        _check_at_least(1, num_examples=self.num_examples, length=self.length)
        check_validation_fraction(self.validation_fraction)

    @property
    def example_shape(self) -> Shape:
        """(length,)."""
        return (self.length,)

    def load(self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None) -> Split:
        """Draw the rows with `seed`, find the pairs, and split them."""
        input = generator(seed, Stream.GENERATE).integers(0, 3, (self.num_examples, self.length))
        target = np.zeros_like(input)
        for row, is_paired in zip(input.tolist(), target, strict=True):
            is_open: list[int] = []
            for place, character in enumerate(row):
                if character == OPENING:
                    is_open.append(place)
                elif character == CLOSING and is_open:
                    is_paired[[is_open.pop(), place]] = 1
        names = Names(classes=("alone", "paired"))
        return split_examples(
            Examples(input, target),
            2,
            self.validation_fraction,
            seed,
            dtype,
            standardize=False,
            names=names,
            transform=transform,
        )


def _check_at_least(smallest: int, **fields: int) -> None:
    for name, value in fields.items():
        if value < smallest:
            raise ValueError(f"{name} must be at least {smallest}, not {value}")


def _check_finite_and_at_least_0(**fields: float) -> None:
    for name, value in fields.items():
        if not 0 <= value < math.inf:
            raise ValueError(f"{name} must be finite and at least 0, not {value}")
