"""Validation losses on a text: of a config's model, of the same net trained by torch, and of a 3-gram count model.

    python scripts/language_models.py config/gpt.yaml

torch starts from the same weights and gets the same batches; its gradients come from autograd. The 3-gram model counts
how often each character follows each pair of characters; its one setting is chosen on the validation part itself, in
its favour.
"""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path
from typing import Any

import nn_manual  # noqa: F401 - before numpy: it makes numpy's threads leave room for torch's

# isort: split
import numpy as np
import torch
from benchmarks.torch_nets import torch_loss, torch_net, torch_optimizer

from nn_manual import Sequential, Trainer
from nn_manual.config import RunConfig, load_config
from nn_manual.data import Split, Text, batches
from nn_manual.run.loading import load

#: How many counts the shorter context is worth: the best of these is chosen.
STRENGTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def main() -> int:
    """Train both nets and print three losses; returns 0, or 2 for a config of other data."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", type=Path, metavar="CONFIG.yaml")
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="as those of nn-manual train")
    options = parser.parse_args()
    config = load_config(options.config, options.overrides)
    if not isinstance(config.data, Text):
        print(f"{options.config}: its data is {type(config.data).__name__}, not Text", file=sys.stderr)
        return 2
    split, model = load(config)
    ours, torchs = trained_beside_torch(config, split, model)
    counted = trigram_loss(split)
    for name, value in (("ours", ours), ("torch", torchs), ("3-gram counts", counted)):
        print(f"{name:14} validation loss {value:.4f}, {value / math.log(2):.4f} bits a character")
    print(f"ours / torch   {ours / torchs:.4f}")
    return 0


def trained_beside_torch(config: RunConfig, split: Split, model: Sequential) -> tuple[float, float]:
    """The validation losses of our training and of torch's, step beside step, with one schedule's lrs for both."""
    net, torchs_loss = torch_net(model), torch_loss(config.loss)
    trainer = Trainer(
        model,
        config.loss,
        config.optimizer(model),
        config.clip_grad_norm,
        config.new_scheduler(),
        check_every=0,
        lr_step=config.lr_step,
    )
    optimizer = torch_optimizer(trainer.optimizer, net)
    for epoch in range(config.epochs):
        trainer.start_epoch(epoch)
        for input, target in batches(split.train, config.batch_size, config.seed, epoch):
            trainer.train_step(input, target)
            for group, member in zip(optimizer.param_groups, trainer.optimizer.members, strict=True):
                group["lr"] = member.lr
            optimizer.zero_grad()
            torchs_loss(*_torch_pair(net, input, target)).backward()
            if config.clip_grad_norm is not None:
                torch.nn.utils.clip_grad_norm_(net.parameters(), config.clip_grad_norm)
            optimizer.step()
        ours = trainer.evaluate(split.validation).loss
        torchs = _evaluated(net, torchs_loss, split, config.batch_size)
        print(f"epoch {epoch + 1}: ours {ours:.4f}, torch {torchs:.4f}", flush=True)
    return ours, torchs


def _torch_pair(net: torch.nn.Module, input: Any, target: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """torch's prediction and the target."""
    return net(torch.from_numpy(input)), torch.from_numpy(target)


def _evaluated(net: torch.nn.Module, loss: torch.nn.Module, split: Split, batch_size: int) -> float:
    """torch's mean loss over the validation part."""
    net.eval()
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(split.validation.input), batch_size):
            input, target = (array[start : start + batch_size].copy() for array in split.validation)
            total += float(loss(*_torch_pair(net, input, target))) * len(input)
    net.train()
    return total / len(split.validation.input)


def trigram_loss(split: Split) -> float:
    """The mean of -log p(c | a, b) over the validation part, where c is the target, b its input and a the one before:

        p(c)        = (n(c) + 1) / (n + V)
        p(c | b)    = (n(b, c) + k p(c)) / (n(b) + k)
        p(c | a, b) = (n(a, b, c) + k p(c | b)) / (n(a, b) + k)

    n are the counts of the training part, V is the number of characters, k the best of STRENGTHS.
    """
    num_classes = split.num_classes
    assert num_classes is not None
    counts = np.zeros((num_classes, num_classes, num_classes))
    np.add.at(counts, _triples(split.train), 1)
    validation = _triples(split.validation)
    losses = []
    for strength in STRENGTHS:
        one = (counts.sum((0, 1)) + 1) / (counts.sum() + num_classes)
        two = (counts.sum(0) + strength * one) / (counts.sum((0, 2))[:, np.newaxis] + strength)
        three = (counts + strength * two) / (counts.sum(2)[..., np.newaxis] + strength)
        losses.append(float(-np.log(three[validation]).mean()))
    return min(losses)


def _triples(examples: Any) -> tuple[Any, Any, Any]:
    """The character before the input, the input and the target, within each window. For a window's first target, the
    input also stands for the character before it.
    """
    input, target = examples
    before = np.concatenate([input[:, :1], input[:, :-1]], axis=1)
    return before.ravel(), input.ravel(), target.ravel()


if __name__ == "__main__":
    sys.exit(main())
