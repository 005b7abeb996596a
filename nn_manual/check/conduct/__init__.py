"""How a layer behaves, beside the values that it returns."""
