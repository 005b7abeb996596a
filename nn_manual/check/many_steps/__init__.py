"""Many checked steps proven at once."""
