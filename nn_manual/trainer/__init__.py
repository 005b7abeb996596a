"""The Trainer: steps and epochs, plain and compiled; evaluation; numbers that are not finite."""
