"""Mutants of the normalizations that compute the same: each with the proof."""

# ruff: noqa: E501 - a line of the package is cited as it is

from __future__ import annotations

from benchmarks.mutation.survivors_of_activations import COMMUTES

CENTERED = "sum((c + e) * c) = sum(c * c) + e * sum(c) for any number e, and the centered numbers c add up to 0"
COLUMN = "it is a column, (rows, 1): its transpose has the same numbers in the same order"
NOT_USED = "GroupNorm takes normalized and std alone; InstanceNorm, whose running values the others are, has this mutant again"

LENGTH = "_normalize divides by the length of the vector: a factor above 0 drops out"
LINEAR = "the value is linear in the original, which is divided by it: a factor drops out"
NO_WEIGHT = "no layer's gradients of its parameters need the weight's values: only grad_input does"

LEFT, RIGHT = "left = self._normalize(matrix @ right)", "right = self._normalize(matrix.T @ left)"
INFER = "original = self._originals(self.param).original"
ITERATE = "left, right = self._iterate(matrix, self.n_power_iterations)"
INNER = "inner = self._with_grads(weight)"

RETURNED = "return (normalized, std, mean, variance)"

BOTH_INPUTS = "the input is a factor of the share, which is multiplied by it again"
NO_CHANNELS = "at a distance of all channels and more there are none to add"
LOCAL = "return (input * factor, (input, base, factor))"
LENGTH = "norm = self._norm(originals.original1)"
NORMALIZED = "normalized: Array = vector / np.maximum(length, self.eps)"
VECTOR = "length = np.sqrt((vector * vector).sum(keepdims=True))"
VALUE = "value: Array = (left * (matrix @ right)).sum(keepdims=True)"
TOTAL = "total = (grad_weight * weight).sum(keepdims=True)"
GRAD_ORIGINAL = "grads.original[...] = (grad_weight - total * np.moveaxis(outer, 0, self._front)) / value"
LONGER = "all vectors of these examples are longer; tests/layers/test_parametrized.py has an eps that is longer than some"
ONE_NUMBER = "a sum over all is one number, in whichever order it is added up, and however many dimensions it has"

#: The proof, as in survivors.py.
NORMALIZATIONS: dict[tuple[str, str, str], str] = {
    **{
        ("BatchNorm1d.forward", "variance = mean_over(centered * centered, axes)", f"variance = mean_over({mutated}, axes)"): CENTERED
        for mutated in ("(centered + 1e-08) * centered", "centered * (centered + 1e-08)")
    },
    **{
        (f"{owner}._normalized_rows", "variance = mean_over(centered * centered, 1)", f"variance = mean_over({mutated}, 1)"): CENTERED
        for owner in ("GroupNorm", "InstanceNorm1d")
        for mutated in (
            *("(centered + 1e-08) * centered", "centered * (centered + 1e-08)", "input * centered", "centered * input"),
        )
    },
    (
        "GroupNorm.backward",
        "scale = 1 / std.reshape(batch, self.num_rows, 1)",
        "scale = 1 / std.T.reshape(batch, self.num_rows, 1)",
    ): COLUMN,
    (
        "WeightNorm.write_grads",
        "grads.original0[...] = grad_length.reshape(grads.original0.shape)",
        "grads.original0[...] = grad_length.T.reshape(grads.original0.shape)",
    ): "one of its axes at most is longer than 1: its transpose has the same numbers in the same order",
    ("GroupNorm.backward", "size = max(1, shape[2] * places)", "size = max(shape[2] * places, 1)"): COMMUTES,
    **{
        (f"{owner}._normalized_rows", RETURNED, "return (normalized, std.T, mean, variance)"): COLUMN
        for owner in ("GroupNorm", "InstanceNorm1d")
    },
    **{
        ("GroupNorm._normalized_rows", RETURNED, f"return (normalized, std, {mutated}, variance)"): NOT_USED
        for mutated in (
            *("-mean", "mean * 1.001", "mean * 2", "mean + 1e-08", "mean.T", "previous(self, mean)", "input", "centered"),
            *("variance", "std", "normalized"),
        )
    },
    **{
        ("GroupNorm._normalized_rows", RETURNED, f"return (normalized, std, mean, {mutated})"): NOT_USED
        for mutated in (
            *("-variance", "variance * 1.001", "variance * 2", "variance + 1e-08", "variance.T"),
            *("previous(self, variance)", "input", "mean", "centered", "std", "normalized"),
        )
    },
    **{
        ("SpectralNorm._iterate", line, line.replace(whole, mutated)): LENGTH
        for factor in (1.001, 2)
        for line, whole, mutated in (
            *((LEFT, "matrix @ right", f"matrix @ right * {factor}"), (LEFT, "matrix", f"matrix * {factor}")),
            *((LEFT, "right)", f"(right * {factor}))"), (RIGHT, "matrix.T @ left", f"matrix.T @ left * {factor}")),
            *((RIGHT, "matrix.T", f"matrix.T * {factor}"), (RIGHT, "matrix.T", f"(matrix * {factor}).T")),
            (RIGHT, "left)", f"(left * {factor}))"),
        )
    },
    **{
        (f"SpectralNorm.{method}", line, line.replace(part, mutated)): proof
        for method, line, part, mutated, proof in (
            ("_normalize", NORMALIZED, "length, self.eps", "self.eps, length", COMMUTES),
            *(("_normalize", NORMALIZED, "self.eps", eps, LONGER) for eps in ("-self.eps", "self.eps * 1.001", "self.eps * 2", "self.eps + 1e-08")),
            *((method, line, "keepdims=True", "keepdims=False", ONE_NUMBER) for method, line in (("_normalize", VECTOR), ("_value", VALUE), ("write_grads", TOTAL))),
            ("write_grads", TOTAL, "weight)", "weight).T", ONE_NUMBER),
            ("write_grads", TOTAL, TOTAL.removeprefix("total = "), f"{TOTAL.removeprefix('total = ')}.T", ONE_NUMBER),
            ("write_grads", GRAD_ORIGINAL, "total", "total.T", ONE_NUMBER),
        )
    },
    **{
        ("SpectralNorm.weight_of", ITERATE, ITERATE.replace("(matrix", f"(matrix * {factor}")): LENGTH for factor in (1.001, 2)
    },
    **{
        ("SpectralNorm.infer", INFER, mutated): LINEAR
        for mutated in (INFER.replace("= ", "= -"), f"{INFER} * 1.001", f"{INFER} * 2")
    },
    **{
        ("SpectralNorm.backward_parameters", INNER, INNER.replace("(weight)", f"({mutated})")): NO_WEIGHT
        for mutated in ("-weight", "weight * 1.001", "weight * 2", "weight + 1e-08", "previous(self, weight)")
    },
    ("LocalResponseNorm.forward", LOCAL, LOCAL.replace("(input,", "(-input,")): BOTH_INPUTS,
    **{
        ("LocalResponseNorm._over", line, line.replace(f"{side}, images.shape[1] - 1", mutated)): proof
        for side, others in (("before", ("images.shape[1] * 1.001 - 1", "images.shape[1] + 1e-08 - 1")), ("behind", ()))
        for line in (f"range(1, min({side}, images.shape[1] - 1) + 1)",)
        for mutated, proof in (
            (f"images.shape[1] - 1, {side}", COMMUTES),
            *((f"{side}, {most}", NO_CHANNELS) for most in ("images.shape[1]", "images.shape[1] + 1", "images.shape[1] - -1")),
            *((f"{side}, {most}", NO_CHANNELS) for most in ("images.shape[1] * 2 - 1", *others)),
        )
    },
    ("WeightNorm.weight_of", LENGTH, LENGTH.replace("(originals", "(-originals")): "a vector has the length of its negative",
}
