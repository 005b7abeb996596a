"""torch's versions of what is checked: layers, losses, optimizers, schedules."""
