"""Draws figures of run directories."""

from nn_manual.plotting.confusion import plot_confusion
from nn_manual.plotting.figure import curves_of, draw_runs, plot_runs
from nn_manual.plotting.predictions import plot_predictions
from nn_manual.plotting.saving import check_ending

__all__ = ["check_ending", "curves_of", "draw_runs", "plot_confusion", "plot_predictions", "plot_runs"]
