"""Optimizers, learning-rate schedules and clipping, on the flat vectors of a model."""

from nn_manual.optim.adafactor import Adafactor
from nn_manual.optim.adagrad import Adadelta, Adagrad
from nn_manual.optim.adam import Adam, AdamW
from nn_manual.optim.adamax import Adamax, RAdam
from nn_manual.optim.asgd import ASGD
from nn_manual.optim.averaging import averaged
from nn_manual.optim.base import Optimizer
from nn_manual.optim.clipping import Clipping, clip_grad_norm, clip_grad_value
from nn_manual.optim.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from nn_manual.optim.cyclic import CyclicLR
from nn_manual.optim.decays import ExponentialLR, MultiStepLR, PolynomialLR, StepLR
from nn_manual.optim.muon import Muon
from nn_manual.optim.nadam import NAdam
from nn_manual.optim.one_cycle import OneCycleLR
from nn_manual.optim.plateau import ReduceLROnPlateau
from nn_manual.optim.rmsprop import RMSprop
from nn_manual.optim.scheduler_base import Scheduler
from nn_manual.optim.schedulers import ChainedScheduler, ConstantLR, LinearLR, SequentialLR
from nn_manual.optim.sgd import SGD
from nn_manual.optim.signs import Lion, Rprop

__all__ = [
    "ASGD",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "ChainedScheduler",
    "Clipping",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LinearLR",
    "Lion",
    "MultiStepLR",
    "Muon",
    "NAdam",
    "OneCycleLR",
    "Optimizer",
    "PolynomialLR",
    "RAdam",
    "RMSprop",
    "ReduceLROnPlateau",
    "Rprop",
    "Scheduler",
    "SequentialLR",
    "StepLR",
    "averaged",
    "clip_grad_norm",
    "clip_grad_value",
]
