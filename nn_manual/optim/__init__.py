"""Optimizers, learning-rate schedules and clipping, on the flat vectors of a model."""

from nn_manual.optim.adam import Adam, AdamW
from nn_manual.optim.base import Optimizer
from nn_manual.optim.clipping import clip_grad_norm
from nn_manual.optim.muon import Muon
from nn_manual.optim.one_cycle import OneCycleLR
from nn_manual.optim.plateau import ReduceLROnPlateau
from nn_manual.optim.scheduler_base import Scheduler
from nn_manual.optim.schedulers import ConstantLR, CosineAnnealingLR, LinearLR, SequentialLR, StepLR
from nn_manual.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "ConstantLR",
    "CosineAnnealingLR",
    "LinearLR",
    "Muon",
    "OneCycleLR",
    "Optimizer",
    "ReduceLROnPlateau",
    "Scheduler",
    "SequentialLR",
    "StepLR",
    "clip_grad_norm",
]
