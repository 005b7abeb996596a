"""The same of layers of images and sequences: pooling, folding, transposed convolution; and of two normalizations."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "local_response_norm": Student(
        """
        def backward(self, saved, grad_output):
            x, base, power = saved
            over = self._over(grad_output * power * x / base, (self.size - 1) // 2, self.size // 2)
            return grad_output * power - 2 * self.alpha * self.beta / self.size * x * over
        """,
        (
            "(self.size - 1) // 2, self.size // 2)",
            "self.size // 2, (self.size - 1) // 2)",
            "seen from them it lies before: the window turns round",
        ),
        (" - 2 * self.alpha * self.beta / self.size * x * over", "", "The path through the bases is missing"),
        (
            "self._over(grad_output * power * x / base, (self.size - 1) // 2, self.size // 2)",
            "grad_output * power * x / base",
            "not in its own alone",
        ),
        ("2 * self.alpha", "self.alpha", "input**2 gives a 2"),
        ("self.beta / self.size", "self.beta", "without `/ size`"),
        ("2 * self.alpha * self.beta / self.size", "2 * self.alpha / self.size", "The exponent -beta comes down"),
        ("grad_output * power - 2", "grad_output * power + 2", "falls where the base grows"),
        (" / base", "", "The exponent becomes one less"),
        (
            "x * over",
            "self._over(x * grad_output * power * x / base, (self.size - 1) // 2, self.size // 2)",
            "has that number alone: it stands before the sum",
        ),
    ),
    "spectral_norm": Student(
        """
        def backward(self, saved, grad_output):
            of_layer, weight, of_weight = saved
            inner = self._with(weight)
            inner.grad = self._with_weight(self.grad, np.zeros_like(weight))
            grad_input = inner.backward(of_layer, grad_output)
            g, (u, v, value, _) = inner.grad.weight, of_weight
            outer = np.moveaxis(np.outer(u, v).reshape(self._moved_shape), 0, self._front)
            total = (g * weight).sum()
            self._originals(self.grad).original[...] = (g - total * outer) / value
            return grad_input
        """,
        ("(g - total * outer) / value", "g / value", "The path through value is missing"),
        ("(g - total * outer) / value", "g - total * outer", "The original was divided by value"),
        ("(g - total * outer) / value", "g", "That is the gradient of the weight"),
        ("(g - total * outer) / value", "(g + total * outer) / value", "falls where value grows"),
        ("(g - total * outer) / value", "g / value - total * outer", "one division by value is left"),
        ("(g - total * outer)", "(g - total * outer / value)", "one division by value is left"),
        ("total = (g * weight).sum()", "total = g * weight", "All numbers of the weight are divided by the one value"),
        ("total = (g * weight).sum()", "total = g.sum()", "without `* weight`"),
        ("total = (g * weight).sum()", "total = (g * weight * value).sum()", "one division by"),
        ("total * outer", "total", "its slope in the number at row r and column c is u[r] v[c]"),
    ),
    "conv_transpose1d": Student(
        """
        def backward(self, saved, grad_output):
            x, weight = saved, self.param.weight
            self._write_grad_weight(grad_output, x)
            if self.bias:
                self.grad.bias[...] = grad_output.sum(axis=(0, 2))
            (kernel,), (stride,) = self.windows.kernel, self.windows._strides
            (padding,), (step,) = self.windows._frame, self.windows._steps
            grad_input = np.zeros_like(x)
            of_group = x.shape[1] // self.groups
            for channel, time, place in np.ndindex(*x.shape[1:], kernel):
                at = time * stride - padding + place * step
                outputs = channel // of_group * weight.shape[1] + np.arange(weight.shape[1])
                if 0 <= at < grad_output.shape[2]:
                    grad_input[:, channel, time] += grad_output[:, outputs, at] @ weight[channel, :, place]
            return grad_input
        """,
        ("time * stride", "time", "for stride=1: your code ignores `stride`"),
        ("* step", "* 1", "for dilation=1: your code ignores `dilation`"),
        ("- padding", "", "for padding=0: your code ignores `padding`"),
        ("weight[channel, :, place]", "weight[channel, :, -1 - place]", "on the way back, too"),
        ("grad_output.sum(axis=(0, 2))", "grad_output.mean(axis=(0, 2))", "The bias is added at each place"),
        ("grad_output.sum(axis=(0, 2))", "grad_output.sum(axis=2).mean(axis=0)", "the loss has it already"),
        ("_grad_weight(grad_output, x)", "_grad_weight(grad_output, x / len(x))", "the loss has it already"),
        (
            "self._write_grad_weight(grad_output, x)",
            "self._write_grad_weight(grad_output, x)\n    self.grad.weight[...] = self.grad.weight[..., ::-1].copy()",
            "joins each input to the k-th number of its window",
        ),
        (
            "self._write_grad_weight(grad_output, x)",
            "for g, own in zip(grad_output, x, strict=True):\n        self._write_grad_weight(g[None], own[None])",
            "All examples use the same weight",
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
    "fold": Student(
        """
        def backward(self, saved, grad_output):
            (height, width), (down, right) = self.windows.kernel, self.windows._steps
            (top, left), (rows, columns) = self.windows._frame, self.windows._strides
            framed = np.pad(grad_output, [(0, 0), (0, 0), (top, top), (left, left)])
            many, across = self.num_windows(grad_output.shape)
            grad_input = np.zeros((*grad_output.shape[:2], height * width, many * across), grad_output.dtype)
            for y, x, i, j in np.ndindex(height, width, many, across):
                number = framed[:, :, i * rows + y * down, j * columns + x * right]
                grad_input[:, :, y * width + x, i * across + j] = number
            return grad_input.reshape(saved)
        """,
        ("grad_input.reshape(saved)", "grad_input.swapaxes(1, 2).reshape(saved)", "all numbers of the first channel"),
        ("y * width + x,", "x * height + y,", "stand row by row in its column"),
        ("i * across + j", "j * many + i", "those of the first row of windows come first"),
        ("i * rows + y * down, j * columns + x * right", "i * rows + y, j * columns + x", "ignores `dilation`"),
        (
            "framed = np.pad(grad_output,",
            "counts = self.images(self.columns(np.ones_like(grad_output)), grad_output.shape[2:])\n"
            "    framed = np.pad(grad_output / np.maximum(counts, 1),",
            "numbers are added, without a mean",
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
    "channel_shuffle": Student(
        """
        def backward(self, saved, grad_output):
            batch, channels, *size = saved
            grad = grad_output.reshape(batch, channels // self.groups, self.groups, -1)
            return np.moveaxis(grad, 1, 2).reshape(saved)
        """,
        ("channels // self.groups, self.groups", "self.groups, channels // self.groups", "That shuffles once more"),
        ("np.moveaxis(grad, 1, 2)", "grad", "it goes back to the number's place in the input"),
        ("= grad_output.reshape", "= grad_output[:, ::-1].reshape", None),
    ),
    "fractional_max_pool2d": Student(
        """
        def backward(self, saved, grad_output):
            corner, place, shape = saved
            row, column = np.divmod(place, self.kernel[1])
            grad_input = np.zeros(shape, grad_output.dtype).reshape(-1)
            for at, g in zip((corner + row.astype(int) * shape[3] + column).flat, grad_output.flat, strict=True):
                grad_input[at] += g
            return grad_input.reshape(shape)
        """,
        ("grad_input[at] += g", "grad_input[at] = g", "np.add.at adds each"),
        ("corner + row.astype(int) * shape[3] + column", "corner", "needn't be the first of its window"),
        ("corner + row.astype(int) * shape[3] + column", "corner + place.astype(int)", "rows are shorter"),
        ("corner + row.astype(int) * shape[3] + column", "place.astype(int)", "which lies at `corner`"),
        ("self.kernel[1])", "self.kernel[0])", "with the two numbers of `kernel_size` exchanged"),
        ("+= g", "+= 1", "comes from above is missing"),
        (
            "for at, g in zip((corner + row.astype(int) * shape[3] + column).flat, grad_output.flat, strict=True):\n"
            "        grad_input[at] += g",
            "for offset in self._offsets(shape):\n"
            "        np.add.at(grad_input, corner.ravel() + offset, grad_output.ravel())",
            "Only the largest number of a window moves",
        ),
        (
            "for at, g in zip((corner + row.astype(int) * shape[3] + column).flat, grad_output.flat, strict=True):\n"
            "        grad_input[at] += g",
            "offsets = self._offsets(shape)\n    for offset in offsets:\n"
            "        np.add.at(grad_input, corner.ravel() + offset, grad_output.ravel() / len(offsets))",
            "That is the way back of the mean",
        ),
    ),
}
