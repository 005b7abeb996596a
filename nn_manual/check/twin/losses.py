"""torch.nn's losses in our form: a prediction and a target, and nothing beside them."""

from __future__ import annotations

import torch


class CTCLoss(torch.nn.CTCLoss):
    """torch.nn.CTCLoss of (batch, classes, time), and of targets in which a blank is no label."""

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:  # type: ignore[override]  # no lengths
        """The loss. Its value is torch's. Its gradient is torch's behind a log_softmax, where torch's is that of its
        value, and that of what log_softmax subtracts, which adds up along each path.
        """
        numbers, labels = input.reshape(*input.shape[:2], -1), target.reshape(len(target), -1)
        is_label = labels != self.blank
        labels = labels.gather(1, is_label.sort(dim=1, descending=True, stable=True).indices)
        num_labels, num_times = is_label.sum(1), torch.full((len(target),), numbers.shape[2])
        given = labels, num_times, num_labels, self.blank, "none"
        ctc_loss = torch.nn.functional.ctc_loss
        value = ctc_loss(numbers.detach().permute(2, 0, 1), *given)
        slopes = ctc_loss(numbers.log_softmax(1).permute(2, 0, 1), *given, zero_infinity=True)
        slopes = slopes - numbers.logsumexp(1).sum(1)
        cost = value + (slopes - slopes.detach())
        if self.zero_infinity:
            cost = cost.where(value.isfinite(), 0)
        if self.reduction == "sum":
            return cost.sum()
        return (cost / num_labels.clamp(min=1)).mean()


class MultiLabelMarginLoss(torch.nn.MultiLabelMarginLoss):
    """torch.nn.MultiLabelMarginLoss of a target that is 1 for the classes of an example and 0 for the others."""

    def forward(self, input: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """The loss."""
        return super().forward(input, lists_of_classes(target))


def lists_of_classes(target: torch.Tensor) -> torch.Tensor:
    """Of a target that is 1 for some classes and 0 for the others, what torch takes: the indices of these, then -1."""
    indices = torch.arange(target.shape[-1]).where(target > 0, -1)
    return indices.sort(dim=-1, descending=True).values
