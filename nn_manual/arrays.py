"""Arrays: their library, dtypes by name, views of one flat vector, sequences of different lengths in one array."""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Reversible, Sequence
from numbers import Real
from types import ModuleType, SimpleNamespace
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from nn_manual.messages.text import counted

Array: TypeAlias = npt.NDArray[Any]
Shape: TypeAlias = tuple[int, ...]
#: The numbers that a layer or a loss takes: all real numbers, those above 0, all but 0, or those between two bounds,
#: without the bounds themselves, which may be infinite; or the integers of a range whose step is 1.
Domain: TypeAlias = Literal["real", "positive", "nonzero"] | tuple[float, float] | range

#: The dtypes that a model can have, by the name that the config uses.
DTYPES: dict[str, np.dtype[Any]] = {"float32": np.dtype(np.float32), "float64": np.dtype(np.float64)}

#: Elements of a block: 1 MiB in float32, so that the few arrays of a formula fit into a third-level cache. Measured on
#: 5.8 million parameters, SGD takes 4.6 ms in blocks of 2**16, 3.6 ms in blocks of 2**18 to 2**20, 5.7 ms in one piece.
BLOCK_SIZE = 1 << 18


def namespace(array: object) -> ModuleType:
    """The library that `array` belongs to: the module `torch` for a tensor, `numpy` for everything else.

    torch is never imported here: an array can only be a tensor if somebody else has imported it.
    """
    torch = sys.modules.get("torch")
    return torch if torch is not None and isinstance(array, torch.Tensor) else np


def size_of(shape: Shape) -> int:
    """Number of elements of an array of this shape; 1 for the shape ()."""
    return int(math.prod(shape))  # a shape of NumPy's integers has one, which JSON doesn't take


def placeholder(shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Zeros that can't be written to and take no memory, for code that reads only the shape and the dtype of an array.
    """
    return np.broadcast_to(dtype.type(0), shape)


def carve(flat: Array, shapes: Mapping[str, Shape]) -> SimpleNamespace:
    """Named views into a flat vector, one after the other, in the order of `shapes`.

    `carve(flat, {"weight": (3, 2), "bias": (3,)}).weight` is a (3, 2) view of `flat[0:6]`: writing to it
    writes to `flat`. Raises ValueError unless the shapes fill `flat` exactly.
    """
    size = sum(size_of(shape) for shape in shapes.values())
    if size != flat.size:
        raise ValueError(f"shapes {dict(shapes)} hold {counted(size, 'element')}, the flat vector {flat.size}")
    views = {}
    start = 0
    for name, shape in shapes.items():
        stop = start + size_of(shape)
        views[name] = flat[start:stop].reshape(shape)
        start = stop
    return SimpleNamespace(**views)


def flat(views: Mapping[str, Array]) -> Array:
    """A new vector with all views end to end, which `carve` takes apart again. Without views it is empty."""
    return np.concatenate([view.ravel() for view in views.values()]) if views else np.empty(0)


def as_python(value: Any) -> Any:
    """Python's number in the place of a NumPy one, also within a tuple: its dtype would be that of what is computed."""
    if type(value) is tuple:  # and not a NamedTuple
        return tuple(map(as_python, value))
    return value.item() if isinstance(value, np.generic) else value


def is_number(value: object) -> bool:
    """Whether it is a number of Python's or of NumPy's, or an array that holds one."""
    return isinstance(value, Real) or (hasattr(value, "dtype") and getattr(value, "ndim", None) == 0)


def blocks(size: int) -> Iterator[slice]:
    """Consecutive slices that cover `range(size)`. If several elementwise passes run over one slice before the next,
    they find it in the processor's cache.
    """
    for start in range(0, size, BLOCK_SIZE):
        yield slice(start, min(start + BLOCK_SIZE, size))


def first_not_finite(array: Array) -> str | None:
    """The first number of an array that isn't finite, in words: "nan at index (2, 0)"; None where all are finite."""
    wrong = np.flatnonzero(~np.isfinite(array))
    if not wrong.size:
        return None
    index = tuple(int(i) for i in np.unravel_index(wrong[0], array.shape))
    return f"{array[index]} at index {index}" if index else str(array[index])


class Recorder(Protocol):
    """Records the operations of the formulas that run, as a trace does."""

    def call(self, function: Callable[..., Array], arguments: tuple[Any, ...]) -> Array:
        """Call the function and return its result. It is recorded as one operation, whatever it does inside."""
        ...

    def iterations(self, steps: range) -> Reversible[int]:
        """The steps of a loop."""
        ...


#: What records now; None where nothing does.
recorder: Recorder | None = None


def one_operation(function: Callable[..., Array]) -> Callable[..., Array]:
    """Decorator of a function that computes a new array by other means than NumPy's. A trace records it as one
    operation. It must write to none of its arguments.
    """

    @functools.wraps(function)
    def called(*arguments: Any) -> Array:
        return function(*arguments) if recorder is None else recorder.call(function, arguments)

    return called


def over_time(num_steps: int, *, backward: bool = False) -> Reversible[int]:
    """The steps of a loop over time; with `backward`, from the last to the first. Each step needs the one before it, so
    no array operation can replace the loop.
    """
    steps = range(num_steps)[::-1] if backward else range(num_steps)
    return steps if recorder is None else recorder.iterations(steps)


class Padded:
    """Sequences of different lengths, as torch.nn.utils.rnn.pad_sequence puts them together, and their lengths.

        input = Padded(array, lengths)      # array (batch, time, ...), lengths (batch,), integers, from 1 to time
        trainer.train_step(input, target)

    It goes wherever an input goes: into a model, a Trainer, Examples, a check. `input[rows]` has these sequences. The
    layers get the array; those that heed lengths, as PaddedLSTM does, have them beside it, and must get as many times
    as the array has. To them the numbers of the padding don't matter; other layers compute with these, so they must be
    finite. Both may be lists. The lengths become int64; `fit` and `evaluate` convert the array as one without lengths.

    Raises TypeError for lengths that aren't integers, ValueError for lists of different lengths, and for lengths of
    another shape or out of range.
    """

    def __init__(self, array: Array | Sequence[Any], lengths: Array | Sequence[int]) -> None:
        array, lengths = as_array("array", array), as_array("array of lengths", lengths)
        if lengths.dtype.kind not in "iu":
            raise TypeError(f"lengths must be integers, not {lengths.dtype}")
        if array.ndim < 2 or lengths.shape != array.shape[:1]:
            raise ValueError(
                f"lengths must have one number for each sequence of an array (batch, time, ...), not the shape "
                f"{lengths.shape} for {array.shape}"
            )
        wrong = (lengths < 1) | (lengths > array.shape[1])
        if wrong.any():
            index = int(wrong.argmax())
            raise ValueError(f"lengths must be from 1 to {array.shape[1]}; lengths[{index}] is {lengths[index]}")
        self.array, self.lengths = array, lengths.astype(np.int64, copy=False)

    @property
    def shape(self) -> Shape:
        """The array's."""
        return self.array.shape

    @property
    def ndim(self) -> int:
        """The array's."""
        return self.array.ndim

    @property
    def size(self) -> int:
        """The array's."""
        return self.array.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The array's."""
        return self.array.dtype

    def copy(self) -> Padded:
        """The same in new memory."""
        return Padded(self.array.copy(), self.lengths.copy())

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: Any) -> Padded:
        if not isinstance(rows, slice | list | np.ndarray):
            raise TypeError(
                "Padded takes the rows that it is to have, a slice or an array of indices; one sequence is in its array"
            )
        return Padded(self.array[rows], self.lengths[rows])

    def __array__(self, *_: Any, **__: Any) -> Array:
        raise TypeError("Padded is two arrays, and none of them alone: its array and its lengths")

    def __repr__(self) -> str:
        return f"Padded({self.array!r}, {self.lengths!r})"


def as_array(name: str, values: Any) -> Array:
    """An array as it is, or what NumPy makes of lists. Raises ValueError, with the name, for lists of different
    lengths.
    """
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"the {name} is no array of numbers: {error}") from error


def unpadded(input: Array | Padded) -> Array:
    """The array of an input, without lengths."""
    return input.array if isinstance(input, Padded) else input


def check_arrays(**arrays: Any) -> None:
    """Raise TypeError, with the name, for what is no array of NumPy's and not Padded, and for the two kinds of array
    whose products aren't NumPy's: masked ones and matrices. Raise ValueError as `check_unmasked` does.
    """
    for name, given in arrays.items():
        if type(given) is np.ndarray:  # nearly always, and in each step of a training loop of one's own
            continue
        array = unpadded(given)
        check_unmasked(name, array)
        if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray | np.matrix):
            raise TypeError(f"the {name} must be a numpy array, not {type(array).__name__}")


def check_unmasked(name: str, given: Any) -> None:
    """Raise ValueError for a masked array with masked numbers."""
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise ValueError(f"the {name} has masked numbers: fill them, or leave their examples out")
