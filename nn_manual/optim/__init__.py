"""Optimizers, learning-rate schedules and clipping, on the flat vectors of a model."""

from nn_manual.optim.base import Optimizer
from nn_manual.optim.clipping import clip_grad_norm
from nn_manual.optim.schedulers import ConstantLR, CosineAnnealingLR, Scheduler, StepLR
from nn_manual.optim.sgd import SGD

__all__ = ["SGD", "ConstantLR", "CosineAnnealingLR", "Optimizer", "Scheduler", "StepLR", "clip_grad_norm"]
