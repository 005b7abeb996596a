"""Convolution, pooling and images: pooling."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "avg_pool1d": Student(
        """
        def backward(self, saved, grad_output):
            part = grad_output / self._count(saved, grad_output.dtype)
            number = int(np.prod(self.windows.kernel))
            return self.windows.back([part for _ in range(number)], saved[2:])
        """,
        (
            "grad_output / self._count(saved, grad_output.dtype)",
            "grad_output",
            "without `/ self._count(input_shape, grad_output.dtype)`",
        ),
        (
            "grad_output / self._count(saved, grad_output.dtype)",
            "grad_output / int(np.prod(self.windows.kernel))",
            "with `self.count_include_pad and (not self.ceil_mode)` always true",
        ),
        ("grad_output / self", "-grad_output / self", "with its sign turned"),
        (
            "grad_output / self",
            "grad_output * self",
            "with `* self._count(input_shape, grad_output.dtype)` in the place of `/ self._count(input_shape, "
            "grad_output.dtype)`",
        ),
    ),
    "max_pool1d": Student(
        """
        def backward(self, saved, grad_output):
            place, shape = saved
            number = int(np.prod(self.windows.kernel))
            return self.windows.back([grad_output * (place == k) for k in range(number)], shape[2:])
        """,
        (
            "grad_output * (place == k)",
            "grad_output",
            "with `grad_output` everywhere, in the place of `np.where(place == number, grad_output, 0)`",
        ),
        (
            "grad_output * (place == k)",
            "grad_output * (place != k)",
            "with both cases of `np.where(place == number, grad_output, 0)` swapped",
        ),
        ("grad_output * (place == k)", "(place == k) * 1.0", "with 1 in the place of `grad_output`"),
        ("grad_output * (place == k)", "grad_output * (place == k) / number", None),
        (
            "return self.windows",
            "from dataclasses import replace\n    self.windows = replace(self.windows, dilation=1)\n"
            "    return self.windows",
            "for dilation=1: your code ignores `dilation`",
        ),
    ),
    "adaptive_avg_pool1d": Student(
        """
        def backward(self, saved, grad_output):
            n, size = grad_output.shape[2], saved[2]
            grad_input = np.zeros(saved, grad_output.dtype)
            for i in range(n):
                first, end = i * size // n, ((i + 1) * size + n - 1) // n
                grad_input[:, :, first:end] += grad_output[:, :, i : i + 1] / (end - first)
            return grad_input
        """,
        (" / (end - first)", "", "a part of 1 / (the bin's size)"),
        ("+= grad", "= grad", "a number that lies in several has the sum"),
        ("/ (end - first)", "/ size", "how many numbers its own bin has"),
        ("/ (end - first)", "* n / size", "how many numbers its own bin has"),
        ("/ (end - first)", "/ (size // n)", "how many numbers its own bin has"),
        ("/ (end - first)", "/ n", "how many numbers its own bin has"),
        ("((i + 1) * size + n - 1) // n", "(i + 1) * size // n", "its end is rounded up"),
        (
            "first, end = i * size // n, ((i + 1) * size + n - 1) // n",
            "first, end = i * (size // n), (i + 1) * (size // n)",
            "its end is rounded up",
        ),
    ),
    "adaptive_max_pool1d": Student(
        """
        def backward(self, saved, grad_output):
            (place,), shape = saved
            grad_input = np.zeros(shape, grad_output.dtype)
            image, channel, _ = np.indices(place.shape)
            np.add.at(grad_input, (image, channel, place), grad_output)
            return grad_input
        """,
        (
            "np.add.at(grad_input, (image, channel, place), grad_output)",
            "grad_input[image, channel, place] = grad_output",
            "np.add.at adds each",
        ),
        (
            "np.add.at(grad_input, (image, channel, place), grad_output)",
            "grad_input[image, channel, place] += grad_output",
            "np.add.at adds each",
        ),
        (
            "np.add.at(grad_input, (image, channel, place), grad_output)",
            "np.add.at(grad_input, (image, channel, place), 1)",
            "comes from above is missing",
        ),
        (
            "np.add.at(grad_input, (image, channel, place), grad_output)",
            "for i, (first, end) in enumerate(self.bins(shape)[0][1]):\n"
            "        grad_input[:, :, first:end] += grad_output[:, :, i : i + 1]",
            "Only the largest number of a bin moves",
        ),
        (
            "np.add.at(grad_input, (image, channel, place), grad_output)",
            "for i, (first, end) in enumerate(self.bins(shape)[0][1]):\n"
            "        grad_input[:, :, first:end] += grad_output[:, :, i : i + 1] / (end - first)",
            "That is the way back of the mean",
        ),
        (
            "np.add.at(grad_input, (image, channel, place), grad_output)",
            "for i, (first, end) in enumerate(self.bins(shape)[0][1]):\n"
            "        of_bin = place[:, :, i : i + 1] == np.arange(first, end)\n"
            "        grad_input[:, :, first:end] = grad_output[:, :, i : i + 1] * of_bin",
            "Bins can overlap",
        ),
        (
            "np.add.at(grad_input, (image, channel, place), grad_output)",
            "for i, (first, end) in enumerate(self.bins(shape)[0][1]):\n"
            "        of_bin = place[:, :, i : i + 1] == np.arange(end - first)\n"
            "        grad_input[:, :, first:end] += grad_output[:, :, i : i + 1] * of_bin",
            "counts from the beginning of the row",
        ),
    ),
    "lp_pool1d": Student(
        """
        def backward(self, saved, grad_output):
            (x, y), p = saved, self.norm_type
            scale = self._scale(x)
            slope = np.where(y == 0, 0, scale * grad_output * np.where(y == 0, 1, y) ** (1 - p))
            numbers = self.windows.of(x, y.shape[2:])
            return self.windows.back([slope * number ** (p - 1) for number in numbers], x.shape[2:])
        """,
        ("** (p - 1) for", "** p for", "The exponent becomes one less"),
        ("np.where(y == 0, 1, y) ** (1 - p))", "1)", "The derivative of the root is missing"),
        ("slope * number ** (p - 1)", "slope", "The derivative of the powers is missing"),
        ("slope * number ** (p - 1)", "p * slope * number ** (p - 1)", "the 1 / p of the root isn't"),
        ("slope * number ** (p - 1)", "slope * number ** (p - 1) / p", "the p of number**p isn't"),
        ("number ** (p - 1)", "number / np.where(y == 0, 1, y) ** (2 - p)", "That holds for p = 2 alone"),
        ("scale * grad_output", "grad_output", "its sum was scaled: so is its slope"),
        (
            "return self.windows.back([slope * number ** (p - 1) for number in numbers], x.shape[2:])",
            "grad, (size,), (stride,) = np.zeros_like(x), self.windows.kernel, self.windows._strides\n"
            "    for i in range(y.shape[2]):\n"
            "        of_window = slice(i * stride, i * stride + size)\n"
            "        grad[:, :, of_window] = slope[:, :, i : i + 1] * x[:, :, of_window] ** (p - 1)\n"
            "    return grad",
            "A number that lies in several windows",
        ),
        ("scale * grad_output", "scale", "comes from above is missing"),
    ),
}
