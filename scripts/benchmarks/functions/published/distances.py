"""geomloss: kernel distances between clouds of points, in plain torch ("tensorized")."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from geomloss import SamplesLoss

from benchmarks.functions.subject import Published, normal


def squared(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x[:, None] - y).square().sum(-1)


def distance(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """At least 1e-4, as in the package: the root has no slope at 0."""
    return squared(x, y).clamp(min=1e-8).sqrt()


def between(kernel: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The mean of k(x, x') / 2 + k(y, y') / 2 - k(x, y)."""

    def definition(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return kernel(x, x).mean() / 2 + kernel(y, y).mean() / 2 - kernel(x, y).mean()

    return definition


def gaussian(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (-squared(x, y) / 2).exp()


def laplacian(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (-distance(x, y)).exp()


def energy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return -distance(x, y)


def clouds(generator: torch.Generator, N: int, M: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, M, D)]


def case(kind: str, kernel: Any, fault: str = "", **options: Any) -> Published:
    function = SamplesLoss(kind, blur=1.0, backend="tensorized").forward
    name = kind if fault else f"{kind}, once"
    named = ("twice",) if fault else ()
    return Published(name, function, between(kernel), clouds, DOUBLED if fault else HALF, SIZES, options, fault, named)


#: The package computes squared distances as x x - 2 x y + y y, and means no cloud without points.
SIZES = {"N": 5, "M": 4, "D": 3}
NOT_EMPTY = ["sizes N=0", "sizes M=0"]
HALF = "the gradient of k(x, x') is twice that of its first argument, as the kernel is symmetric"
DOUBLED = "x' is constant, and the gradient of x is doubled; twice, that is 4 k11 in the place of 2 k11 + 2 k12"
FAULT = "the second derivatives of the clouds' own terms"
RIGHT = [
    case("gaussian", gaussian, skip=["twice", *NOT_EMPTY]),
    case("laplacian", laplacian, skip=["twice", *NOT_EMPTY]),
    case("energy", energy, skip=["twice", *NOT_EMPTY]),
]
WRONG = [case("gaussian", gaussian, FAULT, skip=NOT_EMPTY), case("energy", energy, FAULT, skip=NOT_EMPTY)]
