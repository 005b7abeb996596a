"""Draws random programs line by line, and tries each line."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from benchmarks.tracing.programs import DTYPES, INPUTS, Program, values_of
from nn_manual.arrays import Array, over_time

#: The dtypes that the lines may make; np.mean of float16 leaves NumPy's protocols.
KEPT = frozenset(map(np.dtype, DTYPES))
UNARY = (
    *("negative", "exp", "log", "sqrt", "tanh", "abs", "sign", "square", "reciprocal", "floor", "rint", "log1p"),
    *("expm1", "isnan", "isfinite", "signbit", "logical_not", "positive", "sin", "invert"),
)
BINARY = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "floor_divide", "remainder", "fmax"),
    *("greater", "less_equal", "equal", "not_equal", "logical_and", "arctan2", "hypot", "copysign", "bitwise_xor"),
)
OPERATORS = ("+", "-", "*", "/", "@", ">", "==", "&", "//")
REDUCTIONS = ("sum", "mean", "max", "min", "prod", "any", "all", "var", "std", "argmax", "argmin", "cumsum", "cumprod")
CONSTANTS = ("2", "-1", "0.5", "np.float32(3)", "np.float64(0.25)", "True", "np.inf", "np.arange(3)", "np.eye(2, 3)")

T = TypeVar("T")


def draw_program(seed: int, num_lines: int = 12) -> Program:
    """The program that a seed determines."""
    drawer = _Drawer(random.Random(seed), np.random.default_rng(seed))
    while len(drawer.lines) < num_lines:
        drawer.add()
    return Program(drawer.lines, drawer.inputs)


class _Drawer:
    """Draws lines, runs each on its own arrays, and keeps the lines that run."""

    def __init__(self, choices: random.Random, generator: np.random.Generator) -> None:
        self._random = choices
        self.inputs: dict[str, Array] = {}
        for name in INPUTS:
            shape = tuple(choices.choices(range(1, 5), k=choices.randint(1, 3)))
            self.inputs[name] = values_of(generator, shape, choices.choice(DTYPES))
        self.lines: list[str] = []
        self._names: dict[str, Any] = {name: array.copy() for name, array in self.inputs.items()}
        self._count = 0

    def add(self) -> None:
        """Draw until a line, or a loop of several lines, runs."""
        while True:
            lines = self._loop() if self._chance(0.06) else [self._line()]
            if lines and self._runs("\n".join(lines)):
                self.lines += lines
                return

    def _line(self) -> str:
        kinds = (self._view, self._computed, self._reduced, self._product, self._in_place, self._written, self._other)
        make: Callable[[], str] = self._one(kinds)
        return make()

    def _runs(self, text: str) -> bool:
        names = {**self._names, "np": np, "over_time": over_time}
        kept = {name: np.copy(value) for name, value in self._names.items()}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                exec(compile(text, "<line>", "exec"), names)
            except (ValueError, TypeError, IndexError, AttributeError, NotImplementedError):
                for name, value in self._names.items():  # what ran before the error
                    if isinstance(value, np.ndarray) and value.flags.writeable:
                        value[...] = kept[name]
                return False
        arrays = {name: value for name, value in names.items() if isinstance(value, np.ndarray | np.generic)}
        if not all(value.size <= 400 and value.ndim <= 5 and value.dtype in KEPT for value in arrays.values()):
            return False
        self._names = arrays
        return True

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def _one(self, choices: Sequence[T]) -> T:
        return self._random.choice(choices)

    def _new(self) -> str:
        self._count += 1
        return f"v{self._count}"

    def _name(self) -> str:
        """The name of an array; later ones are more likely."""
        names = list(self._names)
        return names[-1] if self._chance(0.3) else str(self._one(names))

    def _value(self) -> str:
        return self._one(CONSTANTS) if self._chance(0.15) else self._seen()

    def _seen(self) -> str:
        """An array, or a view of one."""
        name = self._name()
        return f"{name}{self._key(np.ndim(self._names[name]))}" if self._chance(0.3) else name

    def _key(self, num_dimensions: int) -> str:
        parts = [
            self._one(("1:", ":-1", "::2", "::-1", ":", "0", "-1", "1::2", "np.newaxis", "...", ":2", "::-2"))
            for _ in range(self._random.randint(1, max(1, num_dimensions)))
        ]
        return f"[{', '.join(parts)}]" if parts.count("...") < 2 else "[...]"

    def _kind(self, text: str) -> str:
        try:
            return str(np.asarray(eval(text, {**self._names, "np": np})).dtype.kind)
        except (ValueError, IndexError):  # too many axes: the line won't run
            return ""

    def _axis(self) -> str:
        return str(self._one(("None", "0", "-1", "1", "(0, 1)")))

    def _dtype(self, name: str) -> str:
        """A dtype to which its numbers can surely be cast: NumPy doesn't define which integer NaN becomes."""
        dtypes = ("float32", "float64") if np.asarray(self._names[name]).dtype.kind == "f" else DTYPES
        return f"np.{self._one(dtypes)}".replace("np.bool", "np.bool_")

    def _view(self) -> str:
        name = self._name()
        num_dimensions = np.ndim(self._names[name])
        return f"{self._new()} = " + self._one(
            (
                f"{name}{self._key(num_dimensions)}",
                f"{name}.T",
                f"{name}.reshape(-1)",
                f"{name}.reshape({self._one((2, 3, 1))}, -1)",
                f"{name}.ravel()",
                f"np.swapaxes({name}, 0, -1)",
                f"np.broadcast_to({name}, (2, *{name}.shape))",
                f"np.lib.stride_tricks.sliding_window_view({name}, 2, axis=-1)",
                f"np.expand_dims({name}, 0)",
                f"{name}.mT",
                f"np.moveaxis({name}, 0, -1)",
                f"{name}.view(np.int{8 * np.asarray(self._names[name]).itemsize})",
                f"np.flip({name})",
                f"np.asarray({name})",
            )
        )

    def _computed(self) -> str:
        return f"{self._new()} = " + self._one(
            (
                f"np.{self._one(UNARY)}({self._seen()})",
                f"np.{self._one(BINARY)}({self._seen()}, {self._value()})",
                f"np.{self._one(BINARY)}({self._value()}, {self._seen()})",
                f"{self._seen()} {self._one(OPERATORS)} {self._value()}",
                f"np.where({self._seen()} > 0, {self._value()}, {self._seen()})",
                f"np.clip({self._seen()}, -1, {self._value()})",
                f"{self._seen()} ** {self._one(('2', '3', '0.5', '-1.0'))}",
            )
        )

    def _reduced(self) -> str:
        function, keep = self._one(REDUCTIONS), self._one(("", ", keepdims=True"))
        keep = "" if function.startswith("cum") else keep
        return f"{self._new()} = " + self._one(
            (
                f"{self._seen()}.{function}(axis={self._axis()}{keep})",
                f"np.{function}({self._seen()}, axis={self._axis()}{keep})",
                f"np.{self._one(('add', 'multiply', 'maximum', 'minimum'))}.accumulate({self._seen()})",
                f"np.sum({self._seen()}, axis={self._axis()}, dtype=np.float64)",
                f"np.max({self._seen()}, axis={self._axis()}, initial=0, where={self._seen()} > 0)",
            )
        )

    def _product(self) -> str:
        one, other = self._seen(), self._seen()
        return f"{self._new()} = " + self._one(
            (
                f"{one} @ {other}",
                f"np.dot({one}, {other})",
                f"{one} @ {one}.mT",
                f"np.tensordot({one}, {other}, axes=1)",
                f"np.einsum('...i,...i->...', {one}, {other})",
                f"np.einsum('ij,kj->ik', {one}, {other})",
                f"np.vecdot({one}, {one})",
                f"np.outer({one}, {other})",
                f"np.multiply.outer({one}, {other})",
            )
        )

    def _in_place(self) -> str:
        name = self._name()
        while not isinstance(self._names[name], np.ndarray):  # a number can't be written to
            name = self._name()
        target = f"{name}{self._key(np.ndim(self._names[name]))}" if self._chance(0.4) else name
        overlapping = self._one((("1:", ":-1"), (":-1", "1:"), ("::-1", ":"), (":", "::-1")))
        operator = self._one(("+", "-", "*", "/", "//"))
        of_floats, value = np.asarray(self._names[name]).dtype.kind == "f", self._value()
        if not of_floats and self._kind(value) == "f":
            value = "2"  # NumPy doesn't define which integer infinity becomes
        return str(
            self._one(
                (
                    f"{target} {operator}= {value}",
                    f"{name}[{overlapping[0]}] {operator}= {name}[{overlapping[1]}]",
                    f"{name}[{overlapping[0]}] = {name}[{overlapping[1]}]",
                    f"{target} = {self._value()}" if of_floats and target != name else f"{target} = {name} > 0",
                    f"{name}.fill(1)",
                    f"{name}.sort()",
                    f"{name}[{name} > 0] = 0",
                    f"np.copyto({name}, {self._seen()}, where={self._seen()} > 0)",
                    f"np.putmask({name}, {name} > 0, 1)",
                    f"{name}.put([0, 0], [1, 2])",
                    f"{name}[[0, -1]] = {name}[[-1, 0]]",
                    f"{name}[{self._indices(name)}] = {name}[:1]",
                    f"np.add.at({name}, {self._indices(name)}, 1)",
                    f"np.fill_diagonal({name}, 1)",
                )
            )
        )

    def _written(self) -> str:
        """A function with out=, or with where=."""
        target = self._seen()
        return str(
            self._one(
                (
                    f"np.{self._one(BINARY)}({self._seen()}, {self._value()}, out={target})",
                    f"np.{self._one(UNARY)}({self._seen()}, out={target})",
                    f"np.{self._one(BINARY)}({self._seen()}, {self._value()}, out={target}, where={self._seen()} > 0)",
                    f"np.sum({self._seen()}, axis={self._axis()}, out={target})",
                    f"np.matmul({self._seen()}, {self._seen()}, out={target})",
                    f"{self._new()} = np.maximum({self._seen()}, 0, out={target})",
                    f"np.take({self._seen()}, [0, 0], 0, {target})",
                )
            )
        )

    def _indices(self, name: str) -> str:
        """Indices along the first axis of an array, computed or written as numbers."""
        computed = f"np.ravel({self._seen()}.argmax(axis=-1)) % len({name})"
        return str(self._one(("[0, -1, 0]", computed, computed)))

    def _other(self) -> str:
        name = self._name()
        return f"{self._new()} = " + self._one(
            (
                f"{name}.copy()",
                f"{name}.copy('{self._one(('C', 'F', 'K'))}')",
                f"{name}.astype({self._dtype(name)})",
                f"np.array({name})",
                f"np.ascontiguousarray({name}.T)",
                f"np.concatenate([{name}, {self._seen()}])",
                f"np.stack([{name}, {name}], axis=-1)",
                f"np.array([{name}, {self._seen()}])",
                f"np.zeros_like({name})",
                f"np.full_like({name}, 1)",
                f"np.sort({self._seen()}, axis={self._axis()})",
                f"np.argsort({self._seen()}, kind='stable')",
                f"np.take_along_axis({name}, np.argsort({name}, axis=-1, kind='stable'), axis=-1)",
                f"{name}[{self._indices(name)}]",
                f"{name}.take({self._indices(name)}, axis=0)",
                f"np.roll({self._seen()}, 1)",
                f"np.pad({name}, 1)",
                f"np.repeat({self._seen()}, 2)",
                f"np.tril({name})",
                f"np.diff({self._seen()})",
                f"np.linalg.norm({self._seen()})",
                f"np.round({self._seen()}, 1)",
                f"{name}{'[0]' * np.ndim(self._names[name])}",
            )
        )

    def _loop(self) -> list[str]:
        """A loop over the first axis of an array, with a state that goes from one iteration to the next."""
        name, state, output = self._name(), self._new(), self._new()
        if not np.ndim(self._names[name]) or np.asarray(self._names[name]).dtype.kind != "f":
            return []
        backward = self._one(("", ", backward=True"))
        step = self._one(("{0} * 0.5 + {1}[t]", "np.tanh({0} + {1}[t])", "np.maximum({0}, {1}[t])", "{1}[t] - {0}"))
        write = self._one(("{2}[t] = {0}", "{2}[t] += {0}", "np.add({0}, 1, out={2}[t, ...])", "{0} *= {2}[t]"))
        return [
            f"{state} = np.zeros_like({name}[0])",
            f"{output} = {self._one(('np.zeros_like', 'np.ones_like'))}({name})",
            f"for t in over_time(len({name}){backward}):",
            f"    {state} = {step.format(state, name, output)}",
            f"    {write.format(state, name, output)}",
            *self._one(([], [f"    {state} = {state} - {name}[t] * {output}[t]"], [f"    {name}[t] = {state}"])),
        ]
