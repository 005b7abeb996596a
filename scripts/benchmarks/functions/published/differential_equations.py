"""torchdiffeq: y' = y matrix, for which each method's step is a polynomial of the matrix."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torchdiffeq import odeint, odeint_adjoint

from benchmarks.functions.subject import Published, normal

#: The times of the results, between which fixed methods make one step each.
TIMES = torch.linspace(0, 1, 6, dtype=torch.float64)


class Linear(nn.Module):
    def __init__(self, matrix: torch.Tensor) -> None:
        super().__init__()
        self.matrix = matrix

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y @ self.matrix


def by(method: str, **options: Any) -> Any:
    return lambda y, matrix: odeint(Linear(matrix), y, TIMES.to(y.dtype), method=method, **options)


def by_adjoint(method: str, **options: Any) -> Any:
    def last(y: torch.Tensor, matrix: torch.Tensor) -> Any:
        times = TIMES.to(y.dtype)
        return odeint_adjoint(Linear(matrix), y, times, method=method, adjoint_params=(matrix,), **options)[-1]

    return last


def in_steps(order: int) -> Any:
    """y (1 + h A + (h A)**2 / 2 + ...), up to the order."""

    def definition(y: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        results = [y]
        for length in TIMES.diff().tolist():
            total = term = results[-1]
            for power in range(1, order + 1):
                term = term @ matrix * (length / power)
                total = total + term
            results.append(total)
        return torch.stack(results)

    return definition


def exact(y: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    return torch.stack([y @ torch.matrix_exp(t * matrix) for t in TIMES.tolist()])


def exact_at_the_end(y: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    return y @ torch.matrix_exp(matrix)


def states(generator: torch.Generator, N: int, D: int) -> list[torch.Tensor]:
    return [normal(generator, N, D), normal(generator, D, D) / (2 * D**0.5)]


SIZES = {"N": (1, 3, 8, 16), "D": (1, 2, 3, 5)}
POLYNOMIAL = "each method of order p makes the step sum((h A)**i / i!) of a linear equation, up to p"
#: An adaptive method on other values takes many small steps, and the exponential is infinite.
TAME = {"kinds": ["tiny", "zero"]}
RIGHT = [
    Published("odeint by Euler", by("euler"), in_steps(1), states, POLYNOMIAL, SIZES),
    Published("odeint by midpoint", by("midpoint"), in_steps(2), states, POLYNOMIAL, SIZES),
    Published("odeint by rk4", by("rk4"), in_steps(4), states, POLYNOMIAL, SIZES),
    Published(
        "odeint by dopri5",
        by("dopri5", rtol=1e-10, atol=1e-10),
        exact,
        states,
        "exp(t A), as near as the method's own tolerance asks for, 1e-10",
        SIZES,
        TAME | {"tolerance": 1e-7},
    ),
    Published(
        "odeint_adjoint by dopri5",
        by_adjoint("dopri5", rtol=1e-10, atol=1e-10),
        exact_at_the_end,
        states,
        "the adjoint equation is solved as near as the method's own tolerance asks for, 1e-10; differentiable once",
        SIZES,
        TAME | {"tolerance": 1e-7},
    ),
]
