"""The same of layers."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "linear": Student(
        """
        def backward(self, saved, grad_output):
            x = saved.reshape(-1, saved.shape[-1])
            g = grad_output.reshape(-1, grad_output.shape[-1])
            self.grad.weight[...] = np.einsum("no,ni->oi", g, x)
            if self.bias:
                self.grad.bias[...] = g.sum(0)
            return (g @ self.param.weight).reshape(saved.shape)
        """,
        ('np.einsum("no,ni->oi", g, x)', "g.T @ x / len(x)", "with the mean in the place of the sum"),
        ('np.einsum("no,ni->oi", g, x)', "-g.T @ x", "with its sign turned"),
        ("self.grad.weight[...] =", "self.grad.weight[...] +=", "grad_weight is not a number anywhere"),
        ("g.sum(0)", "g.mean(0)", "with `mean` in the place of `sum`"),
        ("self.grad.bias[...] = g.sum(0)", "self.grad.bias[...] += g.sum(0)", "grad_bias is not a number anywhere"),
        ("self.grad.bias[...] = g.sum(0)", "pass", "grad_bias is not a number anywhere"),
        ("g.sum(0)", "g[0]", "with the first of `rows(grad_output)` alone, in the place of the sum of all"),
        ("(g @ self.param.weight)", "(2 * g @ self.param.weight)", "times 2"),
    ),
    "log_softmax": Student(
        """
        def backward(self, saved, grad_output):
            p = np.exp(saved)
            return grad_output - p * grad_output.sum(axis=self.dim, keepdims=True)
        """,
        ("np.exp(saved)", "saved", "without the `exp` of `exp(output)`"),
        (
            "- p * grad_output.sum(axis=self.dim, keepdims=True)",
            "- p * grad_output",
            "without the `sum` of `grad_output.sum(axis=dim, keepdims=True)`",
        ),
        (
            "- p * grad",
            "+ p * grad",
            "with `+ exp(output) * grad_output.sum(axis=dim, keepdims=True)` in the place of `- exp(output) * "
            "grad_output.sum(axis=dim, keepdims=True)`",
        ),
        (
            "grad_output - p",
            "p * grad_output - p",
            "with `exp(output)` in all terms of `grad_output - exp(output) * grad_output.sum(axis=dim, keepdims=True)`",
        ),
        (
            " - p * grad_output.sum(axis=self.dim, keepdims=True)",
            "",
            "without `- exp(output) * grad_output.sum(axis=dim, keepdims=True)`",
        ),
        ("- p * grad", "- grad", "without the factor `exp(output)`"),
        (".sum(", ".mean(", "with `mean` in the place of `sum`"),
        (
            "p * grad_output.sum(axis=self.dim, keepdims=True)",
            "p * (grad_output * p).sum(axis=self.dim, keepdims=True)",
            "with `grad_output * exp(output)` in the `sum` of `grad_output.sum(axis=dim, keepdims=True)`",
        ),
    ),
    "relu_layer": Student(
        """
        def backward(self, saved, grad_output):
            return (saved > 0) * grad_output
        """,
        (
            "(saved > 0)",
            "(saved >= 0)",
            "with `grad_output` everywhere, in the place of `where(output > 0, grad_output, 0)`",
        ),
        ("(saved > 0)", "saved", "times `input`"),
        (
            "(saved > 0) * grad_output",
            "grad_output",
            "with `grad_output` everywhere, in the place of `where(output > 0, grad_output, 0)`",
        ),
        ("(saved > 0)", "(grad_output > 0)", "with `grad_output` in the place of `output`"),
        ("(saved > 0) * grad_output", "saved > 0", "with 1 in the place of `grad_output`"),
    ),
    "tanh_layer": Student(
        """
        def derivative(self, saved):
            return (1 - saved) * (1 + saved)
        """,
        ("(1 - saved) * (1 + saved)", "1 - saved", "without the power"),
        ("(1 - saved) * (1 + saved)", "1 + saved**2", "with `+ output ** 2` in the place of `- output ** 2`"),
        ("(1 - saved) * (1 + saved)", "1 - np.tanh(saved) ** 2", "with `tanh(output)` in the place of `output`"),
        (
            "(1 - saved) * (1 + saved)",
            "saved * (1 - saved)",
            "with `output * (1 - output)` in the place of `1 - output ** 2`",
        ),
        ("(1 - saved) * (1 + saved)", "1 / np.cosh(saved) ** 2", "with `tanh(output)` in the place of `output`"),
    ),
    "sigmoid": Student(
        """
        def derivative(self, saved):
            s = saved
            return s - s**2
        """,
        ("s - s**2", "s", "without `* (1 - output)`"),
        ("s - s**2", "1 - s**2", "with `1 - output * output` in the place of `output * (1 - output)`"),
        ("s - s**2", "s * (1 + s)", "with `+ output` in the place of `- output`"),
        ("s - s**2", "(1 - s)", "without `* output`"),
        ("s = saved", "s = 1 / (1 + np.exp(-saved))", "with `expit(output)` in the place of `output`"),
        ("s - s**2", "s**2 - s", "with its sign turned"),
    ),
    "silu": Student(
        """
        def derivative(self, saved):
            x, s = saved
            return s * (1 + x * (1 - s))
        """,
        ("s * (1 + x * (1 - s))", "s", "without `+ output * expit(-input)`"),
        ("s * (1 + x * (1 - s))", "s + x * (1 - s)", "with `input` in the place of `output`"),
        ("s * (1 + x * (1 - s))", "x * s * (1 - s)", "without `sigmoid`"),
        (
            "s * (1 + x * (1 - s))",
            "s * (1 - s)",
            "with `sigmoid * expit(-input)` in the place of `sigmoid + output * expit(-input)`",
        ),
        (
            "s * (1 + x * (1 - s))",
            "s * (1 - x * (1 - s))",
            "with `- output * expit(-input)` in the place of `+ output * expit(-input)`",
        ),
        ("s * (1 + x * (1 - s))", "s + x * s", "without `* expit(-input)`"),
    ),
    "softmax_layer": Student(
        """
        def backward(self, saved, grad_output):
            weighted = saved * grad_output
            return weighted - saved * weighted.sum(axis=self.dim, keepdims=True)
        """,
        (
            "weighted - saved * weighted.sum(axis=self.dim, keepdims=True)",
            "saved * (1 - saved) * grad_output",
            "without the `sum` of `(grad_output * output).sum(axis=dim, keepdims=True)`",
        ),
        (
            "weighted.sum(axis=self.dim, keepdims=True)",
            "grad_output.sum(axis=self.dim, keepdims=True)",
            "without `* output`",
        ),
        (
            "return weighted - saved * weighted.sum",
            "return grad_output - saved * weighted.sum",
            "with `(grad_output * output).sum(axis=dim, keepdims=True)` alone times `output`, in the place of all of "
            "`grad_output - (grad_output * output).sum(axis=dim, keepdims=True)`",
        ),
        (
            "return weighted - saved * weighted.sum",
            "return weighted - weighted.sum",
            "with `grad_output` alone times `output`, in the place of all of `grad_output - (grad_output * "
            "output).sum(axis=dim, keepdims=True)`",
        ),
        ("weighted.sum(axis=self.dim", "weighted.mean(axis=self.dim", "with `mean` in the place of `sum`"),
    ),
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
    "prelu": Student(
        """
        def backward(self, saved, grad_output):
            positive = saved > 0
            slope = self._slope(saved.ndim)
            of_weight = grad_output * saved * ~positive
            axes = tuple(a for a in range(saved.ndim) if a != 1 or self.num_parameters == 1)
            self.grad.weight[...] = of_weight.sum(axis=axes)
            return grad_output * (positive + slope * ~positive)
        """,
        ("(positive + slope * ~positive)", "positive", "with 0 in the place of `slope * grad_output`"),
        (
            "grad_output * saved * ~positive",
            "grad_output * saved",
            "with `input * grad_output` everywhere, in the place of `where(input > 0, 0, input * grad_output)`",
        ),
        ("grad_output * saved * ~positive", "grad_output * ~positive", "without the factor `input`"),
        ("saved > 0", "saved >= 0", "with `input >= 0` in the place of `input > 0`"),
        (
            "(positive + slope * ~positive)",
            "slope",
            "with `slope * grad_output` everywhere, in the place of `where(input > 0, grad_output, slope * "
            "grad_output)`",
        ),
        (
            "grad_output * saved * ~positive",
            "slope * grad_output * saved * ~positive",
            "with `output` in the place of `input`",
        ),
    ),
    "glu": Student(
        """
        def backward(self, saved, grad_output):
            output, gate = saved
            return np.concatenate([grad_output * gate, grad_output * output - grad_output * output * gate], self.dim)
        """,
        (" - grad_output * output * gate", "", "without `* (1 - gate)`"),
        (
            "grad_output * output - grad_output * output * gate",
            "grad_output * gate * (1 - gate)",
            "with `gate` in the place of `output`",
        ),
        ("[grad_output * gate,", "[grad_output,", "without `* gate`"),
        (
            "[grad_output * gate, grad_output * output - grad_output * output * gate]",
            "[grad_output * output * (1 - gate), grad_output * gate]",
            "with `grad_value` and `grad_gate` swapped",
        ),
    ),
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
    "embedding": Student(
        """
        def backward(self, saved, grad_output):
            self.grad.weight[...] = 0
            np.add.at(self.grad.weight, saved, grad_output)
            if self.padding_idx is not None:
                self.grad.weight[self.padding_idx] = 0
        """,
        (
            "np.add.at(self.grad.weight, saved, grad_output)",
            "self.grad.weight[saved] = grad_output",
            "with `=` for `+=` at an index that stands several times",
        ),
        ("self.grad.weight[...] = 0", "pass", "grad_weight is not a number in some places"),
        ("np.add.at(self.grad.weight, saved, grad_output)", "pass", "with 0 everywhere"),
        ("weight, saved, grad_output)", "weight, saved, -grad_output)", "with its sign turned"),
        ("weight, saved, grad_output)", "weight, saved, grad_output / len(saved))", None),
        (
            "if self.padding_idx is not None",
            "self.grad.weight /= np.maximum(np.bincount(saved.ravel(), minlength=len(self.grad.weight)), 1)[:, None]\n"
            "    if self.padding_idx is not None",
            "The gradients of an index that stands several times are added: there is no mean.",
        ),
    ),
    "rnn": Student(
        """
        def one_way_backward(self, parameters, grads, saved, grad_output):
            weight_ih, weight_hh = parameters[:2]
            x, h = saved.input, saved.output
            slope = 1 - h**2 if self.nonlinearity == "tanh" else (h > 0) * 1.0
            for grad in grads:
                grad[...] = 0
            dx = np.zeros(x.shape)
            dh = np.zeros(h[0].shape)
            for t in reversed(range(len(x))):
                dh = dh + grad_output[t]
                dz = slope[t] * dh
                grads[0] += dz.T @ x[t]
                if t > 0:
                    grads[1] += dz.T @ h[t - 1]
                for grad in grads[2:]:
                    grad += dz.sum(axis=0)
                dx[t] = dz @ weight_ih
                dh = dz @ weight_hh
            return dx
        """,
        ("dh = dh + grad_output[t]", "dh = grad_output[t]", "without `+ grad_h`"),
        ("dz = slope[t] * dh", "dz = dh", "without the factor `dh_dz[t]`"),
        ("1 - h**2 if", "1 - h if", "without the factor `h`"),
        (
            "dh = dz @ weight_hh",
            "dh = dz @ weight_hh.T",
            "with `grad_z[t] @ weight_hh.mT` in the place of `grad_z[t] @ weight_hh`",
        ),
        ("dh = dz @ weight_hh", "dh = dh @ weight_hh", "with `grad_output[t] + grad_h` in the place of `grad_z[t]`"),
        ("dh = dz @ weight_hh", "dh = dz", "without `weight_hh`"),
        (
            "grads[1] += dz.T @ h[t - 1]",
            "grads[1] += dz.T @ h[t]",
            "with `saved.output[1:]` in the place of `saved.output[:-1]`",
        ),
        (
            "grads[1] += dz.T @ h[t - 1]",
            "grads[1][...] = dz.T @ h[t - 1]",
            "with the first of `grad_hh[1:]` and of `saved.output[:-1]` alone, as with `=` for `+=`",
        ),
        ("grad += dz.sum(axis=0)", "grad += dh.sum(axis=0)", None),
        ("if t > 0:", "if True:", "with `saved.output` of the last time, which has the index -1, before the first one"),
        (
            "if t > 0:\n            grads[1] += dz.T @ h[t - 1]",
            "if True:\n            grads[1] += dz.T @ h[t]",
            "with `saved.output` of the same time in the place of that of the time before",
        ),
        ("grads[0] += dz", "grads[0][...] = dz", "with the first of `grad_ih` and of `saved.input` alone"),
        ("grad += dz.sum(axis=0)", "grad += dz.mean(axis=0)", "with the mean along the second axis of `grad`"),
    ),
    "gru": Student(
        """
        def one_way_backward(self, parameters, grads, saved, grad_output):
            weight_hh, h = parameters[1], saved.output
            r, z, n = (saved.gates[:, :, k] for k in range(3))
            before = np.concatenate([np.zeros_like(h[:1]), h[:-1]])
            da, db = np.zeros_like(saved.gates), np.zeros_like(saved.gates)
            dh = np.zeros_like(h[0])
            for t in reversed(range(len(h))):
                dh = dh + grad_output[t]
                dn = dh * (1 - z[t]) * (1 - n[t] ** 2)
                dz = dh * (before[t] - n[t]) * z[t] * (1 - z[t])
                dr = dn * saved.b_n[t] * r[t] * (1 - r[t])
                da[t] = np.stack([dr, dz, dn], axis=1)
                db[t] = np.stack([dr, dz, dn * r[t]], axis=1)
                dh = db[t].reshape(len(dh), -1) @ weight_hh + dh * z[t]
            shape = (*h.shape[:2], -1)
            return self.over_all_times(parameters, grads, saved, da.reshape(shape), db.reshape(shape))
        """,
        (" + dh * z[t]", "", "without `+ grad_h * z[t]`"),
        ("dh = dh + grad_output[t]", "dh = grad_output[t]", "without `+ grad_h`"),
        ("dn * r[t]]", "dn]", "without `* r`"),
        ("(1 - n[t] ** 2)", "(1 - n[t])", "without the factor `n`"),
        ("(before[t] - n[t])", "(n[t] - before[t])", "with the sign of `dh_da[:, :, 1]` turned in `dh_da[:, :, 1] ="),
        ("dh * (1 - z[t]) * (1 - n", "dh * z[t] * (1 - n", "with `z` in the place of `1 - z`"),
        ("saved.b_n[t] * r[t] * (1 - r[t])", "r[t] * (1 - r[t])", "without `* saved.b_n`"),
        ("+ dh * z[t]", "+ dh * (1 - z[t])", "with `1 - z[t]` in the place of `z[t]`"),
        (
            "for k in range(3))",
            "for k in range(3))\n    z = 1 - z",
            "with `z` in the place of `1 - z` in `dh_da_n = (1 - z) * (1 - n * n)`, and with `1 - z[t]`",
        ),
    ),
    "lstm": Student(
        """
        def one_way_backward(self, parameters, grads, saved, grad_output):
            weight_hh = parameters[1]
            i, f, g, o = (saved.gates[:, :, k] for k in range(4))
            c, tc = saved.c, saved.tanh_c
            dz = np.zeros_like(saved.gates)
            dh, dc = np.zeros_like(c[0]), np.zeros_like(c[0])
            for t in reversed(range(len(c))):
                before = c[t - 1] if t else np.zeros_like(c[0])
                dh = dh + grad_output[t]
                dc = dc + dh * o[t] * (1 - tc[t] ** 2)
                dz[t, :, 0] = dc * g[t] * i[t] * (1 - i[t])
                dz[t, :, 1] = dc * before * f[t] * (1 - f[t])
                dz[t, :, 2] = dc * i[t] * (1 - g[t] ** 2)
                dz[t, :, 3] = dh * tc[t] * o[t] * (1 - o[t])
                dh = dz[t].reshape(len(dh), -1) @ weight_hh
                dc = dc * f[t]
            dz = dz.reshape(*c.shape[:2], -1)
            return self.over_all_times(parameters, grads, saved, dz, dz)
        """,
        ("dc = dc * f[t]", "pass", "without the line `grad_c = grad_c * f[t]`"),
        ("dc = dc + dh * o", "dc = dh * o", "without `+ grad_c`"),
        (" * (1 - tc[t] ** 2)", "", "without `* (1 - tanh_c * tanh_c)`"),
        ("dh = dh + grad_output[t]", "dh = grad_output[t]", "without `+ grad_after`"),
        ("dc * before * f[t]", "dc * c[t] * f[t]", "with `saved.c` in the place of `c_before`"),
        ("(1 - g[t] ** 2)", "(1 - g[t])", "without the factor `g`"),
        ("(1 - g[t] ** 2)", "g[t] * (1 - g[t])", "That is the derivative of the sigmoid: g is a tanh."),
        ("dc * g[t] * i[t] * (1 - i[t])", "dc * g[t] * i[t]", "without `* (1 - i)`"),
        ("dh * tc[t] * o[t]", "dh * c[t] * o[t]", "with `saved.c` in the place of `tanh_c`"),
        ("dc = dc * f[t]", "dc = dc * (1 - f[t])", "with `1 - f[t]` in the place of `f[t]`"),
        (
            "dh = dz[t].reshape",
            "dz[t] = dz[t][:, [0, 1, 3, 2]]\n        dh = dz[t].reshape",
            "with gates 2 and 3 exchanged, counted from 0",
        ),
        ("dc = dc * f[t]", "dc = dc * i[t]", "with `saved.gates[:, :, 0]` in the place of `saved.gates[:, :, 1]`"),
    ),
    "causal_self_attention": Student(
        """
        def backward(self, saved, grad_output):
            from nn_manual.layers.attention_places import rotate

            x, projected, largest, total, joined, mask, _ = saved
            q, k, v = self._split(projected)
            k, v = self._repeated(k), self._repeated(v)
            p = np.exp(self._scores(q, k, None) - largest) / total
            kept = p if mask is None else p * mask
            self._map_backward("out_proj", joined, grad_output)
            (da,) = self._split(grad_output @ vars(self.param)["out_proj.weight"])
            dv = np.swapaxes(kept, -1, -2) @ da
            dp = da @ np.swapaxes(v, -1, -2)
            if mask is not None:
                dp = dp * mask
            ds = p * dp - p * (p * dp).sum(axis=-1, keepdims=True)
            dq = ds @ k / math.sqrt(q.shape[-1])
            dk = np.einsum("bhts,bhtw->bhsw", ds, q)
            grad_projected = np.empty_like(projected)
            of_q, of_k, of_v = self._split(grad_projected)
            of_q[...] = dq
            of_k[...], of_v[...] = (self._by_group(each).sum(axis=2) for each in (dk, dv))
            if self.positions == "rotary":
                rotate(of_q, back=True)
                rotate(of_k, back=True)
            self._map_backward("in_proj", x, grad_projected)
            return (grad_projected.reshape(-1, projected.shape[-1]) @ self.param.in_proj_weight).reshape(x.shape)
        """,
        (" / math.sqrt(q.shape[-1])", "", "without `* (1 / math.sqrt(query.shape[-1]))`"),
        ("p * dp - p * (p * dp).sum(axis=-1, keepdims=True)", "p * dp", "without `- mean`"),
        (
            "p * dp - p * (p * dp).sum(axis=-1, keepdims=True)",
            "p * (1 - p) * dp",
            "without the `sum` of `(probability * grad_probability).sum(axis=-1, keepdims=True)`",
        ),
        (
            "np.swapaxes(kept, -1, -2) @ da",
            "kept @ da",
            "with `kept @ grad_attended[part]` in the place of `kept.mT @ grad_attended[part]`",
        ),
        (
            "dp = dp * mask",
            "pass",
            "with `grad_kept` in the place of `grad_kept if mask is None else np.multiply(grad_kept, mask[part], "
            "out=grad_kept)`",
        ),
        (
            "np.swapaxes(kept, -1, -2) @ da",
            "np.swapaxes(p, -1, -2) @ da",
            "with `probability` in the place of `probability if mask is None else probability * mask[part]`",
        ),
        (
            'dk = np.einsum("bhts,bhtw->bhsw", ds, q)',
            "dk = ds @ q",
            "with `grad_scores @ query[part]` in the place of `grad_scores.mT @ query[part]`",
        ),
        (
            "p * dp - p * (p * dp).sum(axis=-1, keepdims=True)",
            "p * dp - p * (p * dp).sum(axis=-2, keepdims=True)",
            "with the `sum` over axis -2 in the place of `(probability * grad_probability).sum(axis=-1, "
            "keepdims=True)`",
        ),
        (
            "p * dp - p * (p * dp).sum(axis=-1, keepdims=True)",
            "p * dp - p * dp.sum(axis=-1, keepdims=True)",
            "without the factor `probability`",
        ),
    ),
    "dropout": Student(
        """
        def backward(self, saved, grad_output):
            mask, _ = saved
            return np.multiply(mask, grad_output)
        """,
        ("np.multiply(mask, grad_output)", "grad_output", "without `* mask`"),
        ("np.multiply(mask, grad_output)", "grad_output * (mask > 0)", "with `mask > 0` in the place of `mask`"),
        ("np.multiply(mask, grad_output)", "grad_output * mask * mask", "with `* mask` twice"),
        ("np.multiply(mask, grad_output)", "mask", "without the factor `grad_output`"),
    ),
}
