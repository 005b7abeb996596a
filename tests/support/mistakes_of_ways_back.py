"""The same of ways back whose mistakes are settings, windows, lines in another order, and parts that are left out."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "celu": Student(
        """
        def derivative(self, saved):
            return np.where(saved < 0, np.exp(saved), 1)
        """,
        ("np.exp(saved)", "np.expm1(saved)", "The 1 is constant, and no part of the slope."),
        ("np.exp(saved)", "np.exp(saved) / self.alpha", "its slope is exp(x / alpha)."),
        ("np.exp(saved)", "self.alpha * np.exp(saved)", "the 1 / alpha of the chain rule cancel"),
        ("np.where(saved < 0, np.exp(saved), 1)", "np.exp(saved) / self.alpha", "its slope is exp(x / alpha)."),
        ("np.where(saved < 0, np.exp(saved), 1)", "self.alpha * np.exp(saved)", "chain rule cancel"),
    ),
    "elu": Student(
        """
        def derivative(self, saved):
            x = saved
            return np.where(x > 0, 1, self.alpha * np.exp(np.minimum(x, 0)))
        """,
        ("self.alpha * np.exp(np.minimum(x, 0))", "x + self.alpha", "what is saved is the input"),
        ("x > 0, 1,", "x > 0, x,", "with `where(input > 0, input, alpha"),
        ("self.alpha * np.exp", "np.expm1", "without the factor `alpha`, and with `expm1` in the place of `exp`"),
    ),
    "softplus": Student(
        """
        def derivative(self, saved):
            s = 1 / (1 + np.exp(-saved))
            return np.where(saved > self.threshold, 1, s)
        """,
        ("1, s)", "1, self.beta * s)", "with `beta * expit(scaled)` in the place of `expit(scaled)`"),
        ("np.where(saved > self.threshold, 1, s)", "self.beta * s", "with `expit(scaled)` everywhere"),
    ),
    "bce_loss": Student(
        """
        def derivative(self, saved):
            p, t = saved
            q = np.clip(p, 1e-12, 1 - 1e-12)
            return self.weighted((1 - t) / (1 - q) - t / q)
        """,
        ("(1 - t) / (1 - q) - t / q", "-t / q", "The term of the no adds (1 - target) / (1 - prediction)."),
        ("(1 - t) / (1 - q) - t / q", "(1 - t) / (1 - q)", "The term of the yes adds -target / prediction."),
        ("(1 - t) / (1 - q) - t / q", "-(1 - t) / (1 - q) - t / q", "with a plus"),
    ),
    "gaussian_nll_loss": Student(
        """
        def derivative(self, saved):
            return saved / self.var
        """,
        ("/ self.var", "/ np.sqrt(self.var)", "with the root of `var` in the place of `var`"),
        ("saved / self.var", "-saved", "with its sign turned, and without `/ var`"),
    ),
    "flatten": Student(
        """
        def backward(self, saved, grad_output):
            return grad_output.reshape(saved)
        """,
        ("reshape(saved)", "reshape(saved, order='F')", "with the numbers in the order of columns"),
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
    "embedding_bag": Student(
        """
        def backward(self, saved, grad_output):
            indices, share = saved
            grads = np.broadcast_to(share * grad_output[:, None], (*indices.shape, self.embedding_dim))
            self.grad.weight[...] = 0
            np.add.at(self.grad.weight, indices.ravel(), grads.reshape(-1, self.embedding_dim))
            if self.padding_idx is not None:
                self.grad.weight[self.padding_idx] = 0
        """,
        (
            "np.add.at(self.grad.weight, indices.ravel(), grads.reshape(-1, self.embedding_dim))",
            "self.grad.weight[indices.ravel()] = grads.reshape(-1, self.embedding_dim)",
            "keeps the last one alone",
        ),
        ("share * grad", "(share if self.mode != 'mean' else (share > 0) / indices.shape[1]) * grad", "padding isn't"),
    ),
    "multi_step_lr": Student(
        """
        def lr(self, initial_lr, count):
            return initial_lr * self.gamma ** sum(milestone <= count for milestone in self.milestones)
        """,
        ("in self.milestones)", "in set(self.milestones))", "A milestone that stands twice counts twice."),
    ),
    "cyclic_lr": Student(
        """
        def lr(self, initial_lr, count):
            return self.base_lr + (self.max_lr - self.base_lr) * self.height(count)

        def momentum(self, initial_momentum, count):
            return self.max_momentum - (self.max_momentum - self.base_momentum) * self.height(count)

        def height(self, count):
            up = self.step_size_up
            period = up + (up if self.step_size_down is None else self.step_size_down)
            cycle, place = divmod(count, period)
            height = place / up if place <= up else (period - place) / (period - up)
            return height * {"triangular": 1, "triangular2": 0.5**cycle, "exp_range": self.gamma**count}[self.mode]
        """,
        ("self.gamma**count", "self.gamma**cycle", "The factor gamma comes with each step, not with each cycle."),
        (
            "self.max_momentum - (self.max_momentum - self.base_momentum)",
            "self.base_momentum + (self.max_momentum - self.base_momentum)",
            "The momentum moves against the lr",
        ),
    ),
}
