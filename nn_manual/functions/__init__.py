"""Functions that are no layers, and layers in torch's models."""
