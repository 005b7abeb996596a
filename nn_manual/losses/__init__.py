"""Losses: scalar functions of a prediction and a target, with gradients derived by hand."""

from nn_manual.losses.absolute_error import HuberLoss, L1Loss, SmoothL1Loss
from nn_manual.losses.base import Loss, as_number
from nn_manual.losses.binary import BCELoss, BCEWithLogitsLoss, MultiLabelSoftMarginLoss
from nn_manual.losses.class_targets import OfClasses
from nn_manual.losses.cross_entropy import CrossEntropyLoss
from nn_manual.losses.ctc import CTCLoss
from nn_manual.losses.elementwise import ElementwiseLoss
from nn_manual.losses.likelihoods import GaussianNLLLoss, KLDivLoss, PoissonNLLLoss
from nn_manual.losses.margins import HingeEmbeddingLoss, SoftMarginLoss
from nn_manual.losses.multi_label_margin import MultiLabelMarginLoss
from nn_manual.losses.multi_margin import MultiMarginLoss
from nn_manual.losses.negative_log_likelihood import NLLLoss
from nn_manual.losses.squared_error import MSELoss, TraceLoss

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CrossEntropyLoss",
    "ElementwiseLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "Loss",
    "MSELoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "OfClasses",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TraceLoss",
    "as_number",
]
