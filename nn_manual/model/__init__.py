"""A model, and what it owns: the memory of its parameters, shared ones, random numbers, initial values."""

from nn_manual.model.sequential import Sequential

__all__ = ["Sequential"]
