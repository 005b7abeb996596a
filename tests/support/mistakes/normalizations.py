"""Normalizations."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "rms_norm": Student(
        """
        def backward(self, saved, grad_output):
            normalized, rms = saved
            n, g = self.examples_as_rows(normalized), self.examples_as_rows(grad_output)
            gn = g
            if self.elementwise_affine:
                self.grad.weight[...] = (g * n).sum(axis=0).reshape(self.shape)
                gn = g * self.param.weight.reshape(-1)
            x = n * rms
            F = x.shape[1]
            gx = gn / rms - x * (gn * x).sum(axis=1, keepdims=True) / (F * rms**3)
            return gx.reshape(grad_output.shape)
        """,
        ("- x * (gn * x).sum(axis=1, keepdims=True) / (F * rms**3)", "", "without `- normalized * projection`"),
        ("/ (F * rms**3)", "/ rms**3", "with `sum` in the place of `mean`"),
        (
            "/ (F * rms**3)",
            "/ (F * rms**2)",
            "with `grad_normalized` alone times `1 / rms`, in the place of all of `grad_normalized - normalized * "
            "projection`",
        ),
        (
            "gn / rms - x",
            "gn / rms + x",
            "with `+ normalized * projection` in the place of `- normalized * projection`",
        ),
        ("gn = g * self.param.weight.reshape(-1)", "gn = g", "without `* weight`"),
        (
            "gn / rms - x",
            "gn - x",
            "with `normalized * projection` alone times `1 / rms`, in the place of all of `grad_normalized - "
            "normalized * projection`",
        ),
        ("(g * n).sum(axis=0)", "g.sum(axis=0)", "without `* normalized`"),
        ("(g * n).sum(axis=0)", "(g * n * rms).sum(axis=0)", "with `input` in the place of `normalized`"),
    ),
    "layer_norm": Student(
        """
        def backward(self, saved, grad_output):
            normalized, std = saved
            xhat, g = self.examples_as_rows(normalized), self.examples_as_rows(grad_output)
            dxhat = g
            if self.elementwise_affine:
                self.grad.weight[...] = (g * xhat).sum(axis=0).reshape(self.shape)
                if self.bias:
                    self.grad.bias[...] = g.sum(axis=0).reshape(self.shape)
                dxhat = g * self.param.weight.reshape(-1)
            centered = xhat * std
            F = xhat.shape[1]
            dvar = (dxhat * centered).sum(axis=1, keepdims=True) * -0.5 * std**-3
            dmean = -dxhat.sum(axis=1, keepdims=True) / std
            dx = dxhat / std + dvar * 2 * centered / F + dmean / F
            return dx.reshape(grad_output.shape)
        """,
        (
            "+ dvar * 2 * centered / F + dmean / F",
            "",
            "with `grad_normalized` alone of `grad_normalized - grad_normalized.mean(axes, keepdims=True) - "
            "normalized * projection`",
        ),
        (" + dvar * 2 * centered / F", "", "without `- normalized * projection`"),
        (" + dmean / F", "", "without `- grad_normalized.mean(axes, keepdims=True)`"),
        ("dvar * 2 * centered / F", "dvar * centered / F", "with `projection` divided by 2 in `projection ="),
        ("dvar * 2 * centered / F", "dvar * 2 * centered", "with `sum` in the place of `mean`"),
        ("+ dmean / F", "+ dmean", "with `sum` in the place of `mean`"),
        (
            "* -0.5 * std**-3",
            "* 0.5 * std**-3",
            "with `+ normalized * projection` in the place of `- normalized * projection`",
        ),
        (
            "* -0.5 * std**-3",
            "* -0.5 * std**-2",
            "with `normalized * projection` not times `1 / std`, as the rest of `grad_normalized - "
            "grad_normalized.mean(axes, keepdims=True) - normalized * projection` is",
        ),
        (
            "-dxhat.sum(axis=1, keepdims=True) / std",
            "-dxhat.sum(axis=1, keepdims=True)",
            "with `grad_normalized.mean(axes, keepdims=True)` not times `1 / std`, as the rest of `grad_normalized - "
            "grad_normalized.mean(axes, keepdims=True) - normalized * projection` is",
        ),
        ("dxhat = g * self.param.weight.reshape(-1)", "pass", "without `* weight`"),
        ("(g * xhat).sum(axis=0)", "(g * xhat).mean(axis=0)", "with `mean` in the place of `sum`"),
        ("(g * xhat).sum(axis=0)", "(g * xhat * std).sum(axis=0)", "without `/ std`"),
        (
            "dx = dxhat / std",
            "dx = dxhat",
            "with `grad_normalized` not times `1 / std`, as the rest of `grad_normalized - "
            "grad_normalized.mean(axes, keepdims=True) - normalized * projection` is",
        ),
        ("dvar * 2 * centered / F + dmean / F", "(dvar * 2 * centered + dmean)", "with `sum` in the place of `mean`"),
    ),
    "batch_norm1d": Student(
        """
        def backward(self, saved, grad_output):
            normalized, deviation, mean, variance = saved
            axes = tuple(axis for axis in range(grad_output.ndim) if axis != 1)
            g = grad_output
            if self.affine:
                self.grad.weight[...] = (grad_output * normalized).sum(axis=axes)
                if self.bias:
                    self.grad.bias[...] = grad_output.sum(axis=axes)
                g = grad_output * self.param.weight.reshape(-1, *[1] * (grad_output.ndim - 2))
            N = normalized.size / normalized.shape[1]
            a = g.sum(axis=axes, keepdims=True)
            b = (g * normalized).sum(axis=axes, keepdims=True)
            return deviation / N * (N * g - a - normalized * b)
        """,
        ("N * g - a - normalized * b", "N * g - a", "without `- normalized * grad_cross`"),
        ("N * g - a - normalized * b", "N * g - normalized * b", "without `- grad_mean`"),
        ("N * g - a - normalized * b", "N * g", "with `grad` alone of `grad - grad_mean - normalized * grad_cross`"),
        (
            "N * g - a - normalized * b",
            "g - a - normalized * b",
            "with `/ (input.size // input.shape[1])` behind `grad`",
        ),
        ("deviation / N *", "1 / N *", "without the factor `deviation`"),
        ("b = (g * normalized)", "b = g", "without `* normalized`"),
        (
            "g = grad_output * self.param.weight.reshape(-1, *[1] * (grad_output.ndim - 2))",
            "pass",
            "without the factor `across(weight)`",
        ),
        ("axes = tuple(axis for axis in range(grad_output.ndim) if axis != 1)", "axes = (0,)", None),
        (
            "- normalized * b",
            "+ normalized * b",
            "with `+ normalized * grad_cross` in the place of `- normalized * grad_cross`",
        ),
        (
            "self.grad.bias[...] = grad_output.sum(axis=axes)",
            "self.grad.bias[...] = grad_output.mean(axis=axes)",
            "with `mean` in the place of `sum`",
        ),
    ),
    "group_norm": Student(
        """
        def backward(self, saved, grad_output):
            normalized, std, *_ = saved
            batch, channels = grad_output.shape[:2]
            x, g = normalized.reshape(batch, channels, -1), grad_output.reshape(batch, channels, -1)
            gn = g
            if self.affine:
                self.grad.weight[...] = (g * x).sum((0, 2))
                if self.bias:
                    self.grad.bias[...] = g.sum((0, 2))
                gn = g * self.param.weight[:, None]
            s = std.reshape(batch, self.num_groups, 1)
            x, gn = x.reshape(batch, self.num_groups, -1), gn.reshape(batch, self.num_groups, -1)
            dx = (gn - gn.mean(-1, keepdims=True) - x * (gn * x).mean(-1, keepdims=True)) / s
            return dx.reshape(grad_output.shape)
        """,
        (" - x * (gn * x).mean(-1, keepdims=True)", "", "without `- groups(normalized) * projection`"),
        (" - gn.mean(-1, keepdims=True)", "", "without `- grad_mean`"),
        (" / s\n", "\n", "without `/ std`"),
        ("gn = g * self.param.weight[:, None]", "gn = g", "without `* across(weight)`"),
        ("(g * x).sum((0, 2))", "g.sum((0, 2))", "without `* normalized`"),
        ("(gn * x).mean", "(gn * x).sum", "with `sum` in the place of `mean`"),
        ("g.sum((0, 2))", "g.mean((0, 2))", "with `mean` in the place of `sum`"),
    ),
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
}
