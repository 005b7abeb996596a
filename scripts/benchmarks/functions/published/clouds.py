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


def loss(kind: str) -> Any:
    return SamplesLoss(kind, blur=1.0, backend="tensorized").forward


SIZES = {"N": (1, 5, 17), "M": (2, 4, 33), "D": (1, 3)}
#: Distances that cancel far from 0 are a fault below. There a gradient of 1e-69, by 50 digits, is lost beside k(x, x).
NEAR = ["kinds shifted", "kinds spread"]
#: So is the second derivative.
ONCE = {"skip": ["twice", *NEAR]}
HALF = "the gradient of k(x, x') is twice that of its first argument, as the kernel is symmetric"
RIGHT = [
    Published("gaussian, once", loss("gaussian"), between(gaussian), clouds, HALF, SIZES, ONCE),
    Published("laplacian, once", loss("laplacian"), between(laplacian), clouds, HALF, SIZES, ONCE),
    Published("energy, once", loss("energy"), between(energy), clouds, HALF, SIZES, ONCE),
]
WRONG = [
    Published(
        "gaussian",
        loss("gaussian"),
        between(gaussian),
        clouds,
        "x' is constant, and the gradient of x is doubled; twice, that is 4 k11 in the place of 2 k11 + 2 k12",
        SIZES,
        {"skip": NEAR},
        "the second derivatives of each cloud's own term",
        ("twice",),
    ),
    Published(
        "energy",
        loss("energy"),
        between(energy),
        clouds,
        "squared distances are x x - 2 x y + y y: at 16 they have the digits of 256, and are 1 / 16,384",
        SIZES,
        {"skip": ["twice"], "dtypes": ["float32"]},
        "distances cancel far from 0",
        ("kinds shifted",),
    ),
]
