"""Common mistakes in normalizations."""

from __future__ import annotations

VARIANCE = "The path through the variance is missing: each number moves it, and so all normalized numbers."
MEAN = "The path through the mean is missing: each number moves it, and so all numbers less the mean."
BOTH = "Mean and variance are taken for constants: both depend on the input."
DIVIDED = (
    "The slope of original / value in value is -original / value**2: with weight for original / value, one division by "
    "value is left."
)
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
    "local_response_norm": {
        "without `- 2 * alpha * beta / size * input * share`":
            "The path through the bases is missing: a number stands in those of all channels around it.",
        "with `grad_output * output / base` in the place of `over(grad_output * output / base, (size - 1) // 2, "
        "size // 2)`": "A number stands in the bases of all channels around it, not in its own alone.",
        "with `over(grad_output * output / base, size // 2, (size - 1) // 2)` in the place of `over(grad_output * "
        "output / base, (size - 1) // 2, size // 2)`":
            "A base has the numbers behind it, and seen from them it lies before: the window turns round.",
        "without the factor `2`": "The derivative of the squares in the bases is forgotten: input**2 gives a 2.",
        "without `* beta`": "The exponent -beta comes down as a factor.",
        "without `/ base`": "The exponent becomes one less: base**(-beta - 1).",
        "with `+ 2 * alpha * beta / size * input * share` in the place of `- 2 * alpha * beta / size * input * share`":
            "base**-beta falls where the base grows: the sign of this path is turned.",
        "2 * alpha * beta / size * input * share => 2 * alpha * beta / size * over(grad_output * output / base * "
        "input, (size - 1) // 2, size // 2)":
            "A base's slope in one of its numbers has that number alone: it stands before the sum.",
    },
    "spectral_norm": {
        "without `- total * np.moveaxis(outer, 0, self._front)`":
            "The path through value is missing: each number of the original moves it, and so the whole weight.",
        "with `grad_weight` alone in the place of `(grad_weight - total * np.moveaxis(outer, 0, self._front)) / value`":
            "That is the gradient of the weight: the derivative of original / value is missing.",
        "without `/ value`": "The original was divided by value: so is its gradient.",
        "with its sign turned, in total": "original / value falls where value grows: the sign of this path is turned.",
        "without the `sum` of `(grad_weight * weight).sum(keepdims=True)`":
            "All numbers of the weight are divided by the one value: their parts of its gradient are added.",
        "without `* np.moveaxis(outer, 0, self._front)`":
            "value is u @ matrix @ v: its slope in the number at row r and column c is u[r] v[c].",
        "(grad_weight - total * np.moveaxis(outer, 0, self._front)) / value => grad_weight / value - total * "
        "np.moveaxis(outer, 0, self._front)": DIVIDED,
        "(grad_weight - total * np.moveaxis(outer, 0, self._front)) / value => (grad_weight - total / value * "
        "np.moveaxis(outer, 0, self._front)) / value": DIVIDED,
    },
}
