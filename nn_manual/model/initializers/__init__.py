"""Initialisers: seeded fills of the parameter views, with the distributions of torch.nn.init.

Without one, a model's parameters come from its layers' own `reset_parameters`, torch's defaults. With one, the weights
of linear maps and of tables come from it, and the biases of these maps are zero: each layer's `initialize` says which
they are. All other parameters, such as those of a normalization, still come from `reset_parameters`. `draw_parameters`
does this for a model. The weight that a Residual's branch ends in can be made smaller: only the model knows which one
that is, and how many there are.
"""

from nn_manual.model.initializers.base import Initializer, fans
from nn_manual.model.initializers.distributions import (
    GAINS,
    GPT2,
    KaimingNormal,
    KaimingUniform,
    Normal,
    TruncNormal,
    Uniform,
    XavierNormal,
    XavierUniform,
)
from nn_manual.model.initializers.drawing import draw_parameters
from nn_manual.model.initializers.fixed import Constant, Dirac, Eye, Orthogonal, Sparse, Zeros

__all__ = [
    "GAINS",
    "GPT2",
    "Constant",
    "Dirac",
    "Eye",
    "Initializer",
    "KaimingNormal",
    "KaimingUniform",
    "Normal",
    "Orthogonal",
    "Sparse",
    "TruncNormal",
    "Uniform",
    "XavierNormal",
    "XavierUniform",
    "Zeros",
    "draw_parameters",
    "fans",
]
