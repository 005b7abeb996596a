"""Losses: scalar functions of a prediction and a target, with gradients derived by hand."""

from nn_manual.losses.base import Loss, as_number
from nn_manual.losses.cross_entropy import CrossEntropyLoss
from nn_manual.losses.squared_error import MSELoss, TraceLoss

__all__ = ["CrossEntropyLoss", "Loss", "MSELoss", "TraceLoss", "as_number"]
