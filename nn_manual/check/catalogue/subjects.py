"""What is checked of a class, by its kind: its examples, each by its name, with its dtype and its cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from nn_manual.check.catalogue.cases import CaseResult, layer_cases, loss_cases, optimizer_cases, scheduler_cases
from nn_manual.check.catalogue.labels import label
from nn_manual.check.catalogue.outside_of_a_step import data_cases, initializer_cases
from nn_manual.data import Dataset
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.model.initializers import Initializer
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.registry import kind_of


class Subject(NamedTuple):
    """One example of a class: how a row calls it, its dtype, and its cases, which run when they are asked for."""

    name: str
    dtype: str
    cases: Iterable[CaseResult]


#: From a class, a dtype and a seed to its subjects.
Subjects: TypeAlias = Callable[[Any, str, int], Iterator[Subject]]


def subjects_of(own: type[Any], dtype: str, seed: int) -> Iterator[Subject]:
    """The subjects of a class of components in this dtype."""
    return _OF_KIND[kind_of(own)](own, dtype, seed)


def _of_layer(own: type[Layer], dtype: str, seed: int) -> Iterator[Subject]:
    examples = own.examples()
    counts = Counter(label(layer) for layer, _ in examples)
    for layer, shape in examples:
        size = f" of {'x'.join(map(str, shape))}" if counts[label(layer)] > 1 else ""
        yield Subject(f"{label(layer)}{size}", dtype, layer_cases(layer, shape, dtype, seed))


def _of_loss(own: type[Loss], dtype: str, seed: int) -> Iterator[Subject]:
    for loss in own.examples():
        yield Subject(label(loss), dtype, loss_cases(loss, dtype, seed))


def _of_optimizer(own: type[Optimizer], dtype: str, seed: int) -> Iterator[Subject]:
    for settings in own.examples():
        yield Subject(f"{own.__name__}({', '.join(settings)})", dtype, optimizer_cases(own, settings, dtype, seed))


def _of_schedule(own: type[Scheduler], dtype: str, seed: int) -> Iterator[Subject]:  # noqa: ARG001 - as the others
    for scheduler in own.examples() if dtype == "float64" else ():  # it has no dtype
        yield Subject(label(scheduler), dtype, scheduler_cases(scheduler))


def _of_data(own: type[Dataset], dtype: str, seed: int) -> Iterator[Subject]:
    for data in own.examples():
        yield Subject(label(data), dtype, data_cases(data, dtype, seed))


def _of_initializer(own: type[Initializer], dtype: str, seed: int) -> Iterator[Subject]:
    for initializer in own.examples() if dtype == "float64" else ():  # a weight is rounded after it was filled
        yield Subject(label(initializer), dtype, initializer_cases(initializer, seed))


_OF_KIND: dict[type, Subjects] = {
    Layer: _of_layer,
    Loss: _of_loss,
    Optimizer: _of_optimizer,
    Scheduler: _of_schedule,
    Dataset: _of_data,
    Initializer: _of_initializer,
}
