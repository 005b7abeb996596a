"""Common mistakes in convolution, pooling, padding, folding, and in the order of channels."""

from __future__ import annotations

from nn_manual.exercises.causes.common_mistakes.calculus import UPSTREAM

OVERWRITTEN = "with `=` for `+=` where windows overlap"
OVERLAP = "A number that lies in several windows has the sum of their gradients."
OF_BINS = "Bins can overlap: a number that lies in several has the sum of their gradients."
OF_LARGEST = (
    "A number that is the largest of several windows has the sum of their gradients: `grad[place] = ` keeps the last "
    "one alone, and so does `grad[place] += `, where NumPy adds once. np.add.at adds each."
)
LARGEST = "Only the largest number of a window moves its output."
LARGEST_OF_BIN = "Only the largest number of a bin moves its output."
BINS = "A mean is divided by how many numbers its own bin has."
BIN_ENDS = "A bin's beginning is rounded down, its end is rounded up: each number lies in a bin, some in several."
COLUMN = "A column has all numbers of the first channel, then those of the next one."
PLACE_BIAS = "The bias is added at each place of each example: its gradients are added."
EXAMPLES = "All examples use the same weight: their gradients are added."
MEAN_OF_EXAMPLES = "The examples' gradients are added: if there is a mean over the batch, the loss has it already."
FLIPPED = "What was multiplied by weight[k] on the way there is multiplied by weight[k] on the way back, too."
LAST_OF_EXAMPLES = (
    "(grads[part] @ self._columns(image[part], places.shape[2:]).mT).sum(axis=0) => "
    "(grads[part] @ self._columns(image[part], places.shape[2:]).mT)[-1]"
)
TURNED_WEIGHT = "with `self.param.weight` turned round along its last axis"
MEAN_IN_WEIGHT = "with `mean` in the place of `sum`, in grad_weight"
MEAN_IN_BIAS = "with `mean` in the place of `sum`, in self.grad.bias[...]"
MEAN_OF_BATCH_IN_BIAS = "with the mean along the first axis of `grad_output`, in the place of the sum"
OFFSETS = "np.array(self._offsets(input_shape), like=corner)[place.astype(np.int64)]"

MISTAKES = {
    "unfold": {
        OVERWRITTEN: OVERLAP,
        "self.images(grad_output, saved[2:]) => self.images(grad_output, saved[2:]) / np.maximum(self.images("
        "np.ones_like(grad_output), saved[2:]), 1)": f"{OVERLAP} There is no mean.",
        "columns.reshape(len(columns), channels, self.kernel, *num_windows) => columns.reshape(len(columns), "
        "self.kernel, channels, *num_windows).swapaxes(1, 2)": COLUMN,
    },
    "fold": {
        "columns.reshape(len(images), images.shape[1] * self.kernel, math.prod(num_windows)) => columns.swapaxes(1, 2)"
        ".reshape(len(images), images.shape[1] * self.kernel, math.prod(num_windows))": COLUMN,
        "np.stack(list(self.windows.of(images, num_windows)), axis=2) => np.stack(list(self.windows.of(images, "
        "num_windows)), axis=2)[:, :, np.arange(self.kernel).reshape(self.windows.kernel).T.ravel()]":
            "The numbers of a window stand row by row in its column.",
        "with `columns` transposed": "The windows stand row by row: those of the first row of windows come first.",
        "self.columns(grad_output) => self.columns(grad_output / np.maximum(self.images(self.columns(np.ones_like("
        "grad_output)), grad_output.shape[2:]), 1))":
            "Where windows overlap, numbers are added, without a mean: the slope of each is 1.",
    },
    "circular_pad1d": {
        "without `+ (part if own.shape == part.shape else part.sum(axis=axis, keepdims=True))`":
            "The numbers of the frame are numbers of the other end, too: their gradients are added there.",
        "(slice(size - before, size), slice(0, behind)) => (slice(0, before), slice(size - behind, size))":
            "The frame at one side has the numbers of the other end: their gradients go there.",
    },
    "avg_pool1d": {
        OVERWRITTEN: OVERLAP,
        "without `/ self._count(input_shape, grad_output.dtype)`": "Each number has a part of 1 / count in the mean.",
    },
    "max_pool1d": {
        OVERWRITTEN: OVERLAP,
        "with `grad_output` everywhere, in the place of `np.where(place == number, grad_output, 0)`": LARGEST,
    },
    "lp_pool1d": {
        OVERWRITTEN: OVERLAP,
        "times `input`": "The exponent becomes one less: the derivative of x**p is p x**(p - 1).",
        "without `/ norm`": "The derivative of the root is missing: that of total**(1 / p) is output**(1 - p) / p.",
        "without the factor `grad_output`": UPSTREAM,
        "without the factor `each`": "The derivative of the powers is missing: that of x**p is p x**(p - 1).",
        "part * (each / norm) ** (self.norm_type - 1) => self.norm_type * part * (each / norm) ** (self.norm_type - 1)":
            "The p of number**p is there, the 1 / p of the root isn't.",
        "part * (each / norm) ** (self.norm_type - 1) => part / self.norm_type * (each / norm) ** (self.norm_type - 1)":
            "The 1 / p of the root is there, the p of number**p isn't.",
        "(each / norm) ** (self.norm_type - 1) => each / norm": "That holds for p = 2 alone: other powers stay powers.",
        "without `* self._scale(input)`": "Where a window reaches beyond the end, its sum was scaled: so is its slope.",
    },
    "adaptive_avg_pool1d": {
        "without `/ (end - first)`": "Each number has a part of 1 / (the bin's size) in the mean.",
        "matrix.T => (matrix * (np.cumsum(matrix[::-1] > 0, axis=0)[::-1] == 1)).T": OF_BINS,
        "end - first => input_shape[axis]": BINS,
        "end - first => len(bins)": BINS,
        "1 / (end - first) => np.divide(1, input_shape[axis] // len(bins))": BINS,
        "1 / (end - first) => len(bins) / input_shape[axis]": BINS,
        "zip(matrix, bins, strict=True) => [(matrix[i], (first, (i + 1) * input_shape[axis] // len(bins))) for "
        "i, (first, _) in enumerate(bins) if (i + 1) * input_shape[axis] // len(bins) > first]": BIN_ENDS,
        "zip(matrix, bins, strict=True) => [(matrix[i], (i * (input_shape[axis] // len(bins)), (i + 1) * "
        "(input_shape[axis] // len(bins)))) for i in range(len(bins)) if input_shape[axis] // len(bins)]": BIN_ENDS,
    },
    "adaptive_max_pool1d": {
        "with `grads[of_bin]` everywhere, in the place of `np.where(place[of_bin] == places, grads[of_bin], 0)`":
            LARGEST_OF_BIN,
        "with 1 in the place of `grad_input`": UPSTREAM,
        "with `=` for `+=`": OF_BINS,
        "np.where(place[of_bin] == places, grads[of_bin], 0) => np.where(place[of_bin] == places, grads[of_bin] - "
        "grad_input[along(axis, slice(first, end))], 0)": OF_LARGEST,
        "np.where(place[of_bin] == places, grads[of_bin], 0) => grads[of_bin] / (end - first)":
            f"That is the way back of the mean. {LARGEST_OF_BIN}",
        "np.arange(first, end) => np.arange(end - first)":
            "`place` counts from the beginning of the row, not of the bin.",
    },
    "fractional_max_pool2d": {
        "with `=` for `+=`, which keeps only one number of each position, in `np.add.at(grad_input, at.ravel(), "
        "grad_output.ravel())`": OF_LARGEST,
        f"without `+ {OFFSETS}`":
            "The largest number needn't be the first of its window: `place` says which one it is.",
        f"{OFFSETS} => place": "`place` counts the numbers of the window, whose rows are shorter than the image's.",
        "with `place` in the place of `at`": "`place` counts from the window's first number, which lies at `corner`.",
        "with 1 in the place of `grad_output`": UPSTREAM,
        "np.add.at(grad_input, at.ravel(), grad_output.ravel()) => np.add.at(grad_input, (corner[..., np.newaxis] + "
        "np.array(self._offsets(input_shape))).ravel(), np.repeat(grad_output, math.prod(self.kernel)))": LARGEST,
        "np.add.at(grad_input, at.ravel(), grad_output.ravel()) => np.add.at(grad_input, (corner[..., np.newaxis] + "
        "np.array(self._offsets(input_shape))).ravel(), np.repeat(grad_output / math.prod(self.kernel), "
        "math.prod(self.kernel)))": f"That is the way back of the mean. {LARGEST}",
    },
    "conv1d": {
        MEAN_IN_BIAS: PLACE_BIAS,
        MEAN_OF_BATCH_IN_BIAS: MEAN_OF_EXAMPLES,
        MEAN_IN_WEIGHT: MEAN_OF_EXAMPLES,
        LAST_OF_EXAMPLES: EXAMPLES,
        TURNED_WEIGHT: FLIPPED,
    },
    "conv_transpose1d": {
        MEAN_IN_BIAS: PLACE_BIAS,
        MEAN_OF_BATCH_IN_BIAS: MEAN_OF_EXAMPLES,
        MEAN_IN_WEIGHT: MEAN_OF_EXAMPLES,
        LAST_OF_EXAMPLES: EXAMPLES,
        TURNED_WEIGHT: FLIPPED,
        "(grads[part] @ self._columns(image[part], places.shape[2:]).mT).sum(axis=0) => (grads[part] @ "
        "self._columns(image[part], places.shape[2:]).mT).sum(axis=0).reshape(self.grad.weight.shape)[..., ::-1]"
        ".reshape(grad_weight.shape)":
            "weight[k] joins each input to the k-th number of its window: the gradient of weight[k] has these pairs.",
    },
    "channel_shuffle": {
        "with `self.groups` in the place of `grad_output.shape[1] // self.groups`":
            "That shuffles once more, as forward does: it undoes this only where a group has as many channels as there "
            "are groups.",
        "without the `moved_back` of `self.moved_back(grad_output)`":
            "Each gradient lies where its number lies in the output: it goes back to the number's place in the input.",
    },
}
