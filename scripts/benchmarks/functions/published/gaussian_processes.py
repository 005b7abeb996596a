"""gpytorch and linear_operator: covariances, solves, and the logarithm of the normal distribution."""

from __future__ import annotations

import math
from typing import Any

import gpytorch
import torch
from gpytorch.functions import MaternCovariance, RBFCovariance
from linear_operator import to_linear_operator

from benchmarks.functions.subject import Published, normal

POINTS = torch.linspace(-1, 2, 12, dtype=torch.float64).view(6, 2)
OTHERS = torch.linspace(0, 1, 8, dtype=torch.float64).view(4, 2) ** 2


def distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x[:, None] - y).square().sum(-1).sqrt()


def squared_distances(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x[:, None] - y).square().sum(-1)


def scaled(lengthscale: torch.Tensor) -> torch.Tensor:
    return distances(POINTS.to(lengthscale.dtype), OTHERS.to(lengthscale.dtype)) / lengthscale


def radial(lengthscale: torch.Tensor) -> torch.Tensor:
    return (-scaled(lengthscale).square() / 2).exp()


def matern_1_2(lengthscale: torch.Tensor) -> torch.Tensor:
    return (-scaled(lengthscale)).exp()


def matern_3_2(lengthscale: torch.Tensor) -> torch.Tensor:
    d = math.sqrt(3) * scaled(lengthscale)
    return (1 + d) * (-d).exp()


def matern_5_2(lengthscale: torch.Tensor) -> torch.Tensor:
    d = math.sqrt(5) * scaled(lengthscale)
    return (1 + d + d.square() / 3) * (-d).exp()


def of_lengthscale(nu: float | None) -> Any:
    """The points take no gradient: these functions refuse one."""

    def covariance(lengthscale: torch.Tensor) -> Any:
        points = POINTS.to(lengthscale.dtype), OTHERS.to(lengthscale.dtype)
        if nu is None:
            return RBFCovariance.apply(*points, lengthscale, squared_distances)
        return MaternCovariance.apply(*points, lengthscale, nu, distances)

    return covariance


def positive_definite(factor: torch.Tensor) -> torch.Tensor:
    return factor @ factor.mT + torch.eye(len(factor), dtype=factor.dtype)


def solve(factor: torch.Tensor, right: torch.Tensor) -> Any:
    return to_linear_operator(positive_definite(factor)).solve(right)


def solved(factor: torch.Tensor, right: torch.Tensor) -> Any:
    return torch.linalg.inv(positive_definite(factor)) @ right


def quadratic_and_logdet(factor: torch.Tensor, right: torch.Tensor) -> Any:
    return to_linear_operator(positive_definite(factor)).inv_quad_logdet(right, logdet=True)


def quadratic_and_logarithm(factor: torch.Tensor, right: torch.Tensor) -> Any:
    matrix = positive_definite(factor)
    return (right * (torch.linalg.inv(matrix) @ right)).sum(), torch.linalg.eigvalsh(matrix).log().sum()


def systems(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, N), normal(generator, N, D)]


def row(generator: torch.Generator, N: int) -> list[torch.Tensor]:
    return [2 * normal(generator, N)]


LENGTHSCALE = [torch.tensor([[0.7]], dtype=torch.float64)]
POSITIVE = {"domain": (0.1, 10)}
ONCE = POSITIVE | {"skip": ["twice"]}
#: A matrix of N x N numbers with Cholesky's factor; kinds with large values are as bad as singular.
SYSTEM = {"N": (1, 2, 5, 8), "D": 3}
BY_HAND = "d covariance / d lengthscale by hand, with the distances divided by it"
CUT_OFF = "forward computes the derivative without a graph, and backward multiplies by it"
FAULT = "the second derivative with respect to the lengthscale is left out"
MATRIX = "the derivative of an inverse, by hand"
RIGHT = [
    Published("RBFCovariance, once", of_lengthscale(None), radial, LENGTHSCALE, BY_HAND, options=ONCE),
    Published("MaternCovariance 1/2, once", of_lengthscale(0.5), matern_1_2, LENGTHSCALE, BY_HAND, options=ONCE),
    Published("MaternCovariance 3/2, once", of_lengthscale(1.5), matern_3_2, LENGTHSCALE, BY_HAND, options=ONCE),
    Published("solve", solve, solved, systems, MATRIX, SYSTEM),
    Published("inv_quad_logdet", quadratic_and_logdet, quadratic_and_logarithm, systems, MATRIX, SYSTEM),
    Published(
        "log_normal_cdf, once",
        gpytorch.functions.log_normal_cdf,
        torch.special.log_ndtr,
        row,
        "an interpolation, off by up to 3e-4 of the value, with mpmath; above 8, the logarithm of 1 - 1e-16 is 0",
        {"N": 20},
        {"tolerance": 1e-3, "skip": ["twice", "kinds shifted"]},
    ),
]
WRONG = [
    Published(
        "RBFCovariance", of_lengthscale(None), radial, LENGTHSCALE, CUT_OFF, None, POSITIVE, FAULT, ("twice",)
    ),
    Published(
        "MaternCovariance 5/2", of_lengthscale(2.5), matern_5_2, LENGTHSCALE, CUT_OFF, None, POSITIVE, FAULT, ("twice",)
    ),
    Published(
        "log_normal_cdf",
        gpytorch.functions.log_normal_cdf,
        torch.special.log_ndtr,
        row,
        "below -1, backward takes a quotient that forward has computed without a graph",
        {"N": 20},
        {"tolerance": 1e-3},
        "the second derivative below -1 is left out",
        ("twice",),
    ),
]
