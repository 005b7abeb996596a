"""A whole training ends where the same one in torch does, each side with its own gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from trajectories import Masked, largest_difference, start_as, train_beside

from nn_manual import (
    GELU,
    AdamW,
    BatchNorm1d,
    CosineAnnealingLR,
    CrossEntropyLoss,
    Dropout,
    Embedding,
    LayerNorm,
    Linear,
    LinearLR,
    Residual,
    Sequential,
    SequentialLR,
    Trainer,
)
from nn_manual.arrays import Array

VOCABULARY, WIDTH, HIDDEN = 11, 8, 16
NUM_STEPS, WARM_UP = 200, 20


def our_net() -> Sequential:
    """What reads a token also predicts one. No bias adds to what the BatchNorm1d gets, which would take it out again.
    The gradient would be rounding alone, and Adam divides by its size: such biases end some 1e-9 away from torch's.
    """
    return Sequential(
        Embedding(VOCABULARY, WIDTH),
        Residual(BatchNorm1d(WIDTH), Linear(WIDTH, HIDDEN), GELU(), Dropout(0.2), Linear(HIDDEN, WIDTH)),
        Residual(LayerNorm(WIDTH), Linear(WIDTH, HIDDEN), GELU("tanh"), Linear(HIDDEN, WIDTH)),
        Dropout(0.1),
        LayerNorm(WIDTH),
        Linear(WIDTH, VOCABULARY),
        tied=[("0.weight", "5.weight")],
        dtype="float64",
    )


class TorchResidual(torch.nn.Sequential):
    def forward(self, input: torch.Tensor) -> Any:
        return input + super().forward(input)  # type: ignore[no-untyped-call]  # torch's


def torch_net(ours: Sequential) -> torch.nn.Sequential:
    """The same in torch, of which nothing is ours but the masks."""
    inner, outer = (layer for _, layer in ours.named_layers() if isinstance(layer, Dropout))
    net = torch.nn.Sequential(
        torch.nn.Embedding(VOCABULARY, WIDTH),
        TorchResidual(
            torch.nn.BatchNorm1d(WIDTH),
            torch.nn.Linear(WIDTH, HIDDEN),
            torch.nn.GELU(),
            Masked(inner),
            torch.nn.Linear(HIDDEN, WIDTH),
        ),
        TorchResidual(
            torch.nn.LayerNorm(WIDTH),
            torch.nn.Linear(WIDTH, HIDDEN),
            torch.nn.GELU("tanh"),
            torch.nn.Linear(HIDDEN, WIDTH),
        ),
        Masked(outer),
        torch.nn.LayerNorm(WIDTH),
        torch.nn.Linear(WIDTH, VOCABULARY),
    ).double()
    net[5].weight = net[0].weight
    return net


def our_trainer(model: Sequential) -> Trainer:
    """Biases don't decay; warm-up, then a cosine."""
    return Trainer(
        model,
        CrossEntropyLoss(),
        AdamW(model, lr=0.01, weight_decay=0.1, groups=[{"parameters": "*.bias", "weight_decay": 0.0}]),
        lr_scheduler=SequentialLR([LinearLR(0.1, 1.0, WARM_UP), CosineAnnealingLR(NUM_STEPS - WARM_UP)], [WARM_UP]),
        lr_step="step",
        check_every=0,
    )


def torch_optimizer(net: torch.nn.Module) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    """The same in torch, and its schedule."""
    biases = [parameter for name, parameter in net.named_parameters() if name.endswith("bias")]
    others = [parameter for name, parameter in net.named_parameters() if not name.endswith("bias")]
    groups: list[dict[str, Any]] = [{"params": others}, {"params": biases, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1)
    warm_up = torch.optim.lr_scheduler.LinearLR(optimizer, 0.1, 1.0, WARM_UP)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, NUM_STEPS - WARM_UP)
    return optimizer, torch.optim.lr_scheduler.SequentialLR(optimizer, [warm_up, cosine], [WARM_UP])


def token_batches() -> list[tuple[Array, Array]]:
    """Tokens, and the ones that follow: three times in four the token determines it, else it is any."""
    generator = np.random.default_rng(0)
    batches = []
    for _ in range(NUM_STEPS):
        input, any_target = generator.integers(0, VOCABULARY, (2, 32))
        batches.append((input, np.where(generator.random(32) < 0.75, (3 * input + 1) % VOCABULARY, any_target)))
    return batches


def test_200_steps_of_every_kind_of_layer_end_where_torchs_do() -> None:
    """All parameters and buffers, and the evaluation of every input."""
    ours = our_net()
    theirs = torch_net(ours)
    start_as(ours, theirs)
    start = {name: value.copy() for name, value in ours.state_dict().items()}
    train_beside(our_trainer(ours), theirs, torch.nn.CrossEntropyLoss(), *torch_optimizer(theirs), token_batches())
    tokens = np.arange(VOCABULARY)
    output = theirs.eval()(torch.from_numpy(tokens)).detach().numpy()
    assert largest_difference(ours, theirs) < 1e-9
    assert np.abs(ours(tokens) - output).max() < 1e-9
    for name, value in ours.state_dict().items():
        assert np.abs(value - start[name]).max() > 0.05, name
