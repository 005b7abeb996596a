"""Common mistakes in normalizations, convolution and pooling."""

from __future__ import annotations

VARIANCE = "The path through the variance is missing: each number moves it, and so all normalized numbers."
MEAN = "The path through the mean is missing: each number moves it, and so all numbers less the mean."
BOTH = "Mean and variance are taken for constants: both depend on the input."
WEIGHT = "The gradient of the normalized numbers is grad_output times weight."
SLOPE_FOR_WEIGHT = "output = normalized * weight: the slope for weight is normalized."
DEVIATION = "The numbers were divided by the standard deviation: so is their gradient."

MISTAKES: dict[str, dict[str, str]] = {
    "rms_norm": {
        "without `- normalized * projection`": "The path through the root mean square is missing.",
        "without `* weight`": WEIGHT,
        "without `* normalized`, in grad_weight": SLOPE_FOR_WEIGHT,
    },
    "layer_norm": {
        "without `- normalized * projection`": VARIANCE,
        "without `- grad_normalized.mean(axes, keepdims=True)`": MEAN,
        "with `grad_normalized` alone of `grad_normalized - grad_normalized.mean(axes, keepdims=True) - normalized * "
        "projection`": BOTH,
        "without `* weight`": WEIGHT,
        "divided by 2, in projection":
            "The derivative of the squares in the variance is forgotten: (x - mean)**2 gives a 2.",
        "with `+ normalized * projection` in the place of `- normalized * projection`":
            "1 / std falls where the variance "
            "grows: the sign of this path is turned.",
    },
    "batch_norm1d": {
        "without `- normalized * grad_cross`": VARIANCE,
        "without `- grad_mean`": MEAN,
        "with `grad` alone of `grad - grad_mean - normalized * grad_cross`": BOTH,
        "without the factor `across(weight)`": WEIGHT,
        "without the factor `deviation`": DEVIATION,
    },
    "group_norm": {
        "without `- groups(normalized) * projection`": VARIANCE,
        "without `- grad_mean`": MEAN,
        "without `* across(weight)`": WEIGHT,
    },
    "unfold": {
        "columns.reshape(len(columns), channels, self.kernel, *num_windows) => columns.reshape(len(columns), "
        "self.kernel, channels, *num_windows).swapaxes(1, 2)":
            "A column has all numbers of the first channel, then those of the next one.",
    },
    "circular_pad1d": {
        "without `+ (part if own.shape == part.shape else part.sum(axis=axis, keepdims=True))`":
            "The numbers of the frame are numbers of the other end, too: their gradients are added there.",
        "(slice(size - before, size), slice(0, behind)) => (slice(0, before), slice(size - behind, size))":
            "The frame at one side has the numbers of the other end: their gradients go there.",
    },
    "avg_pool1d": {
        "without `/ self._count(input_shape, grad_output.dtype)`": "Each number has a part of 1 / count in the mean.",
    },
    "max_pool1d": {
        "with `grad_output` everywhere, in the place of `np.where(place == number, grad_output, 0)`":
            "Only the largest "
            "number of a window moves its output.",
    },
    "conv1d": {
        "with `mean` in the place of `sum`, in self.grad.bias[...]":
            "The bias is added at each place of each example: its gradients are added.",
    },
}
