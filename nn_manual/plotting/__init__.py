"""Run directories to figures."""

from nn_manual.plotting.figure import draw_runs, plot_runs

__all__ = ["draw_runs", "plot_runs"]
