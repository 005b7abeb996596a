"""Convolution, pooling and images: convolution, and what moves the numbers of an image."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "conv1d": Student(
        """
        def backward(self, saved, grad_output):
            x = self._framed(saved)
            self._write_grad_weight(x, grad_output)
            if self.bias:
                self.grad.bias[...] = np.einsum("nop->o", grad_output)
            dx = self._image(grad_output, x.shape[2:])
            return dx if self.frame is None else self.frame.back(dx)
        """,
        ('np.einsum("nop->o", grad_output)', "grad_output.mean(axis=(0, 2))", "with `mean` in the place of `sum`"),
        ("self._write_grad_weight(x, grad_output)", "pass", "grad_weight is not a number anywhere"),
        ('np.einsum("nop->o", grad_output)', "grad_output.sum(axis=(0, 2)) / len(x)", "with the mean along the first"),
        ("dx = self._image(grad_output, x.shape[2:])", "dx = 2 * self._image(grad_output, x.shape[2:])", "times 2"),
        (
            "self._write_grad_weight(x, grad_output)",
            "self._write_grad_weight(x, -grad_output)",
            "with the sign of `+ (grads[part] @ self._columns(image[part], places.shape[2:]).mT).sum(axis=0)` turned",
        ),
        (
            "self._write_grad_weight(x, grad_output)",
            "for own, g in zip(x, grad_output, strict=True):\n        self._write_grad_weight(own[None], g[None])",
            "All examples use the same weight",
        ),
        (
            "dx = self._image(grad_output, x.shape[2:])",
            "own = self.param\n"
            "    self.param = type(own)(weight=own.weight[..., ::-1].copy())\n"
            "    dx = self._image(grad_output, x.shape[2:])\n"
            "    self.param = own",
            "is multiplied by weight[k] on the way back, too",
        ),
        (
            'np.einsum("nop->o", grad_output)',
            "grad_output.mean(axis=2).sum(axis=0)",
            "with the mean along the last axis of `grad_output`, in the place of the sum",
        ),
        (
            "self.frame.back(dx)",
            "dx[:, :, self.frame.sides[0][0] :][:, :, : saved.shape[2]]",
            "for padding_mode='zeros': your code ignores `padding_mode`",
        ),
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
    "unfold": Student(
        """
        def backward(self, saved, grad_output):
            n, c, *size = saved
            num_windows = self.num_windows(saved)
            parts = grad_output.reshape(n, c, *self.windows.kernel, *num_windows)
            parts = [parts[:, :, i, j] for i, j in np.ndindex(self.windows.kernel)]
            image = self.windows.back(parts, size)
            return image
        """,
        (
            "parts = grad_output.reshape(n, c, *self.windows.kernel, *num_windows)",
            "parts = grad_output.reshape(n, c, *self.windows.kernel[::-1], *num_windows).swapaxes(2, 3)",
            "with rows and columns of the windows exchanged",
        ),
        (
            "parts = grad_output.reshape(n, c, *self.windows.kernel, *num_windows)",
            "parts = grad_output.reshape(n, *self.windows.kernel, c, *num_windows).transpose(0, 3, 1, 2, 4, 5)",
            "A column has all numbers of the first channel",
        ),
        (
            "image = self.windows.back(parts, size)",
            "image, ((a, b), (s, t), (p, q)) = np.zeros(saved), ("
            "self.windows._steps, self.windows._strides, self.windows._frame)\n"
            "    for i, j, y, x in np.ndindex(*num_windows, *self.windows.kernel):\n"
            "        row, column = i * s - p + y * a, j * t - q + x * b\n"
            "        if 0 <= row < size[0] and 0 <= column < size[1]:\n"
            "            image[:, :, row, column] = parts[y * self.windows.kernel[1] + x][:, :, i, j]",
            "with `=` for `+=` where windows overlap",
        ),
        (
            "return image",
            "return image / np.maximum(self.images(np.ones_like(grad_output), size), 1)",
            "has the sum of their gradients. There is no mean.",
        ),
    ),
    "circular_pad1d": Student(
        """
        def backward(self, saved, grad_output):
            before, behind = self.sides[0]
            size = saved[2]
            grad_input = grad_output[:, :, before : before + size].copy()
            if before:
                grad_input[:, :, -before:] += grad_output[:, :, :before]
            if behind:
                grad_input[:, :, :behind] += grad_output[:, :, -behind:]
            return grad_input
        """,
        ("grad_input[:, :, :behind] +=", "grad_input[:, :, :behind] -= 0 *", "without the last round of `for ... in"),
        (
            "grad_input[:, :, -before:] += grad_output[:, :, :before]\n    if behind:\n        "
            "grad_input[:, :, :behind] += grad_output[:, :, -behind:]",
            "pass",
            "The numbers of the frame are numbers of the other end, too",
        ),
        (
            "grad_input[:, :, -before:] += grad_output[:, :, :before]\n    if behind:\n        "
            "grad_input[:, :, :behind] += grad_output[:, :, -behind:]",
            "grad_input[:, :, :before] += grad_output[:, :, :before]\n    if behind:\n        "
            "grad_input[:, :, -behind:] += grad_output[:, :, -behind:]",
            "The frame at one side has the numbers of the other end",
        ),
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
}
