"""Neural networks whose every gradient is derived by hand and proven against PyTorch."""
