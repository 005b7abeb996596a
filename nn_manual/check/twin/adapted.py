"""torch's classes in the form of our layers: one array in and one out."""

from __future__ import annotations

import torch


class LSTM(torch.nn.LSTM):
    """torch.nn.LSTM without the last state."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # it has no state to start from
        """The output of all times."""
        output: torch.Tensor = super().forward(input)[0]
        return output


ADAPTED: dict[str, type[torch.nn.Module]] = {"LSTM": LSTM}


def name_in_torch(name: str) -> str:
    """What torch.nn calls the class that stands for ours of this name."""
    return ADAPTED[name].mro()[1].__name__ if name in ADAPTED else name
