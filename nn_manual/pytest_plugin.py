"""The pytest plugin's place in installations made before it moved out of the package."""

from _nn_manual_pytest_plugin import gradient_check, pytest_configure, pytest_generate_tests

__all__ = ["gradient_check", "pytest_configure", "pytest_generate_tests"]
