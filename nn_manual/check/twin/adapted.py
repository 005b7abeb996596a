"""torch's classes in the form of our layers, one array in and one out, and of our losses."""

from __future__ import annotations

import torch


class LSTM(torch.nn.LSTM):
    """torch.nn.LSTM without the last state."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # it has no state to start from
        """The output of all times."""
        output: torch.Tensor = super().forward(input)[0]
        return output


class CrossEntropyLoss(torch.nn.CrossEntropyLoss):
    """torch.nn.CrossEntropyLoss, which reads class indices of any shape in row order behind a prediction of rows."""

    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The scalar loss."""
        are_rows = prediction.ndim == 2 and not target.is_floating_point()
        return super().forward(prediction, target.reshape(-1) if are_rows else target)


ADAPTED: dict[str, type[torch.nn.Module]] = {"LSTM": LSTM, "CrossEntropyLoss": CrossEntropyLoss}


def name_in_torch(name: str) -> str:
    """What torch.nn calls the class that stands for ours of this name."""
    return ADAPTED[name].mro()[1].__name__ if name in ADAPTED else name
