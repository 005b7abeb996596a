"""Layers side by side: each branch gets the whole input, and their outputs are added or joined."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.layers.base import Layer
from nn_manual.layers.batch_normalization import BatchNorm1d
from nn_manual.layers.composite import Composite, check_are_layers
from nn_manual.layers.embedding import Embedding
from nn_manual.layers.linear import Linear
from nn_manual.layers.shape import Identity


@dataclass(eq=False)
class Branches(Composite):
    """Layers that get the same input. A branch of several layers is a Sequential."""

    branches: list[Layer]

    def __post_init__(self) -> None:
        if not isinstance(self.branches, list | tuple):
            raise TypeError(f"branches must be a list of layers, not {type(self.branches).__name__}")
        if not self.branches:
            raise ValueError("branches must be at least one, not none at all")
        check_are_layers("branches", self.branches)
        self.branches = [*self.branches]
        domains = {branch.domain for branch in self.branches}
        if not any(isinstance(domain, range) for domain in domains):
            domains.discard("real")
        if len(domains) > 1:
            known = sorted("real numbers" if domain == "real" else str(domain) for domain in domains)
            raise ValueError(f"branches must take the same numbers, not {' and '.join(known)}")
        self.domain = next(iter(domains), "real")

    def check_values(self, input: Array) -> None:
        """Raise ValueError for values that a branch can't take."""
        for branch in self.branches:
            branch.check_values(input)

    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape of the output. Raises ValueError if a branch doesn't take the input, or if the branches' outputs
        don't fit each other.
        """
        return self.joined_shape([branch.output_shape(input_shape) for branch in self.branches])

    def infer(self, input: Array) -> Array:
        """The output in evaluation, with infer of each branch."""
        return self.put_together([branch.infer(input) for branch in self.branches])

    def update_buffers(self, saved: tuple[list[Any], Any]) -> None:
        """Move the buffers of each branch."""
        for branch, branch_saved in zip(self.branches, saved[0], strict=True):
            branch.update_buffers(branch_saved)

    def run(self, input: Array) -> tuple[list[Array], list[Any]]:
        """The output of each branch, and what each has saved."""
        outputs, saved = [], []
        for branch in self.branches:
            output, branch_saved = branch.forward(input)
            outputs.append(output)
            saved.append(branch_saved)
        return outputs, saved

    def put_together(self, outputs: list[Array]) -> Array:
        """The output, made of those of the branches. Raises ValueError if these don't fit: NumPy might broadcast."""
        self.joined_shape([output.shape for output in outputs])
        return self.joined(outputs)

    def summed(self, saved: list[Any], grads: list[Array]) -> Any:
        """Overwrite the branches' gradients, given that of each one's output, and return grad_input: None for indices,
        which have no gradient.

        The input goes all ways: by the chain rule, the gradients of the ways add.
        """
        ways = [branch.backward(*each) for branch, *each in zip(self.branches, saved, grads, strict=True)]
        if isinstance(self.domain, range):
            return None
        grad_input = ways[0]
        for way in ways[1:]:
            grad_input = grad_input + way
        return grad_input

    @abstractmethod
    def joined_shape(self, shapes: list[Shape]) -> Shape:
        """The shape of the output, given those of the branches' outputs."""

    @abstractmethod
    def joined(self, outputs: list[Array]) -> Array:
        """The output, made of those of the branches."""


@dataclass(eq=False)
class Sum(Branches):
    """The sum of what layers make of the same input: `Sum([Sequential(Linear(8, 8), ReLU()), Linear(8, 8)])`.

        output     = sum(branch(input) for branch in branches)
        grad_input = sum(grad_branch for branch in branches)

    where grad_branch is what the branch's backward returns for grad_output. The branches' outputs have the same shape.
    A residual connection whose branch changes the shape is a Sum: its other branch, the shortcut, changes it, too.

    Derivation: d output / d branch(input) = 1, so each branch gets grad_output as it is. The input goes all ways, so by
    the chain rule their gradients add.
    Raises ValueError for no branches, and for branches that take different numbers, as two tables of other sizes do;
    TypeError for what is no list of layers.
    """

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """One branch; two; three, one of them with buffers; and two tables."""
        return [
            (cls([Linear(3, 2)]), (4, 3)),
            (cls([Linear(3, 2), Linear(3, 2, bias=False)]), (4, 3)),
            (cls([Linear(3, 3), BatchNorm1d(3), Identity()]), (5, 3)),
            (cls([Embedding(4, 3), Embedding(4, 3)]), (5, 2)),
        ]

    def forward(self, input: Array) -> tuple[Array, tuple[list[Any], None]]:
        """The sum; saves what each branch saved."""
        outputs, saved = self.run(input)
        return self.put_together(outputs), (saved, None)

    def backward(self, saved: tuple[list[Any], None], grad_output: Array) -> Any:
        """Overwrite the branches' gradients and return grad_input."""
        return self.summed(saved[0], [grad_output] * len(self.branches))

    def joined_shape(self, shapes: list[Shape]) -> Shape:
        """The shape of each output."""
        for shape in shapes:
            if shape != shapes[0]:
                raise ValueError(f"Sum adds its branches' outputs, whose shapes differ: {shapes[0]} and {shape}")
        return shapes[0]

    def joined(self, outputs: list[Array]) -> Array:
        """The sum."""
        total = outputs[0]
        for output in outputs[1:]:
            total = total + output
        return total

    def reference(self, input: Any, *branches: Callable[[Any], Any]) -> Any:
        """The definition, on torch tensors."""
        return sum(branch(input) for branch in branches)


@dataclass(eq=False)
class Concat(Branches):
    """What layers make of the same input, joined along the dimension `dim`: `Concat([Identity(), Linear(8, 4)])`.

        output       = concatenate([branch(input) for branch in branches], dim)
        grad_outputs = split(grad_output, dim)
        grad_input   = sum(grad_branch for branch in branches)

    where grad_branch is what the branch's backward returns for its part of grad_output. The branches' outputs have the
    same shape but for this dimension: 1, that of features and of channels, where nothing else is said. The batch, 0, is
    no such dimension: a loss would have other rows than the target.

    Derivation: each number of output is a number of one branch's output, so that one's gradient is this number's. The
    input goes all ways, so by the chain rule their gradients add.
    Raises ValueError for no branches, for branches that take different numbers, and for the dimension of the batch;
    TypeError for what is no list of layers, and for a dimension that is no integer.
    """

    dim: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dim == 0:
            raise ValueError("dim must not be 0, the batch")

    @classmethod
    def examples(cls) -> list[tuple[Layer, Shape]]:
        """Branches of different widths, one of them with buffers; and of the same, along the last dimension."""
        return [
            (cls([Linear(3, 2), BatchNorm1d(3), Linear(3, 1)]), (4, 3)),
            (cls([Linear(3, 3), Identity()], dim=-1), (4, 2, 3)),
        ]

    def forward(self, input: Array) -> tuple[Array, tuple[list[Any], list[int]]]:
        """The joined outputs; saves what each branch saved, and how much of the dimension each has."""
        outputs, saved = self.run(input)
        return self.put_together(outputs), (saved, [output.shape[self.dim] for output in outputs])

    def backward(self, saved: tuple[list[Any], list[int]], grad_output: Array) -> Any:
        """Overwrite the branches' gradients and return grad_input."""
        saved_of_branches, sizes = saved
        ends = pairwise(accumulate(sizes, initial=0))
        along = np.moveaxis(grad_output, self.dim, 0)
        grads = [np.moveaxis(along[start:stop], 0, self.dim) for start, stop in ends]
        return self.summed(saved_of_branches, grads)

    def joined_shape(self, shapes: list[Shape]) -> Shape:
        """The first shape, with the sizes along the dimension added."""
        num_dims = len(shapes[0])
        if not -num_dims < self.dim < num_dims:
            raise ValueError(f"Concat has dim {self.dim}, and its branches' outputs, as {shapes[0]}, have {num_dims}")
        axis = self.dim % num_dims
        for shape in shapes:
            if (shape[:axis], shape[axis + 1 :]) != (shapes[0][:axis], shapes[0][axis + 1 :]):
                raise ValueError(
                    f"Concat joins its branches' outputs along dimension {axis}, and elsewhere their shapes differ: "
                    f"{shapes[0]} and {shape}"
                )
        return (*shapes[0][:axis], sum(shape[axis] for shape in shapes), *shapes[0][axis + 1 :])

    def joined(self, outputs: list[Array]) -> Array:
        """All outputs, one behind the other."""
        return np.concatenate(outputs, axis=self.dim)

    def reference(self, input: Any, *branches: Callable[[Any], Any]) -> Any:
        """The definition, on torch tensors."""
        outputs = [branch(input) for branch in branches]
        result = outputs[0].new_empty(self.joined_shape([tuple(output.shape) for output in outputs]))
        place = 0
        for output in outputs:
            result.narrow(self.dim, place, output.shape[self.dim]).copy_(output)
            place += output.shape[self.dim]
        return result
