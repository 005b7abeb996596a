"""The same of layers."""

from __future__ import annotations

from mistake import Student

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
        ('np.einsum("no,ni->oi", g, x)', "g.T @ x / len(x)", ""),
        ('np.einsum("no,ni->oi", g, x)', "-g.T @ x", ""),
        ("self.grad.weight[...] =", "self.grad.weight[...] +=", ""),
        ("g.sum(0)", "g.mean(0)", ""),
        ("self.grad.bias[...] = g.sum(0)", "self.grad.bias[...] += g.sum(0)", ""),
        ("self.grad.bias[...] = g.sum(0)", "pass", ""),
        ("g.sum(0)", "g[0]", None),
        ("(g @ self.param.weight)", "(2 * g @ self.param.weight)", ""),
    ),
    "log_softmax": Student(
        """
        def backward(self, saved, grad_output):
            p = np.exp(saved)
            return grad_output - p * grad_output.sum(axis=self.dim, keepdims=True)
        """,
        ("np.exp(saved)", "saved", ""),
        ("- p * grad_output.sum(axis=self.dim, keepdims=True)", "- p * grad_output", ""),
        ("- p * grad", "+ p * grad", ""),
        ("grad_output - p", "p * grad_output - p", ""),
        (" - p * grad_output.sum(axis=self.dim, keepdims=True)", "", ""),
        ("- p * grad", "- grad", ""),
        (".sum(", ".mean(", ""),
        ("p * grad_output.sum(axis=self.dim, keepdims=True)", "p * (grad_output * p).sum(axis=self.dim, keepdims=True)", ""),
    ),
    "relu_layer": Student(
        """
        def backward(self, saved, grad_output):
            return (saved > 0) * grad_output
        """,
        ("(saved > 0)", "(saved >= 0)", ""),
        ("(saved > 0)", "saved", ""),
        ("(saved > 0) * grad_output", "grad_output", ""),
        ("(saved > 0)", "(grad_output > 0)", ""),
        ("(saved > 0) * grad_output", "saved > 0", ""),
    ),
    "tanh_layer": Student(
        """
        def derivative(self, saved):
            return (1 - saved) * (1 + saved)
        """,
        ("(1 - saved) * (1 + saved)", "1 - saved", ""),
        ("(1 - saved) * (1 + saved)", "1 + saved**2", ""),
        ("(1 - saved) * (1 + saved)", "1 - np.tanh(saved) ** 2", ""),
        ("(1 - saved) * (1 + saved)", "saved * (1 - saved)", ""),
        ("(1 - saved) * (1 + saved)", "1 / np.cosh(saved) ** 2", ""),
    ),
    "sigmoid": Student(
        """
        def derivative(self, saved):
            s = saved
            return s - s**2
        """,
        ("s - s**2", "s", ""),
        ("s - s**2", "1 - s**2", ""),
        ("s - s**2", "s * (1 + s)", ""),
        ("s - s**2", "(1 - s)", ""),
        ("s = saved", "s = 1 / (1 + np.exp(-saved))", ""),
        ("s - s**2", "s**2 - s", ""),
    ),
    "silu": Student(
        """
        def derivative(self, saved):
            x, s = saved
            return s * (1 + x * (1 - s))
        """,
        ("s * (1 + x * (1 - s))", "s", ""),
        ("s * (1 + x * (1 - s))", "s + x * (1 - s)", ""),
        ("s * (1 + x * (1 - s))", "x * s * (1 - s)", ""),
        ("s * (1 + x * (1 - s))", "s * (1 - s)", ""),
        ("s * (1 + x * (1 - s))", "s * (1 - x * (1 - s))", ""),
        ("s * (1 + x * (1 - s))", "s + x * s", ""),
    ),
    "softmax_layer": Student(
        """
        def backward(self, saved, grad_output):
            weighted = saved * grad_output
            return weighted - saved * weighted.sum(axis=self.dim, keepdims=True)
        """,
        ("weighted - saved * weighted.sum(axis=self.dim, keepdims=True)", "saved * (1 - saved) * grad_output", ""),
        ("weighted.sum(axis=self.dim, keepdims=True)", "grad_output.sum(axis=self.dim, keepdims=True)", ""),
        ("return weighted - saved * weighted.sum", "return grad_output - saved * weighted.sum", ""),
        ("return weighted - saved * weighted.sum", "return weighted - weighted.sum", ""),
        ("weighted.sum(axis=self.dim", "weighted.mean(axis=self.dim", ""),
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
        ("- x * (gn * x).sum(axis=1, keepdims=True) / (F * rms**3)", "", ""),
        ("/ (F * rms**3)", "/ rms**3", ""),
        ("/ (F * rms**3)", "/ (F * rms**2)", ""),
        ("gn / rms - x", "gn / rms + x", ""),
        ("gn = g * self.param.weight.reshape(-1)", "gn = g", ""),
        ("gn / rms - x", "gn - x", ""),
        ("(g * n).sum(axis=0)", "g.sum(axis=0)", ""),
        ("(g * n).sum(axis=0)", "(g * n * rms).sum(axis=0)", ""),
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
        ("+ dvar * 2 * centered / F + dmean / F", "", ""),
        (" + dvar * 2 * centered / F", "", ""),
        (" + dmean / F", "", ""),
        ("dvar * 2 * centered / F", "dvar * centered / F", ""),
        ("dvar * 2 * centered / F", "dvar * 2 * centered", ""),
        ("+ dmean / F", "+ dmean", ""),
        ("* -0.5 * std**-3", "* 0.5 * std**-3", ""),
        ("* -0.5 * std**-3", "* -0.5 * std**-2", ""),
        ("-dxhat.sum(axis=1, keepdims=True) / std", "-dxhat.sum(axis=1, keepdims=True)", ""),
        ("dxhat = g * self.param.weight.reshape(-1)", "pass", ""),
        ("(g * xhat).sum(axis=0)", "(g * xhat).mean(axis=0)", ""),
        ("(g * xhat).sum(axis=0)", "(g * xhat * std).sum(axis=0)", ""),
        ("dx = dxhat / std", "dx = dxhat", ""),
        ("dvar * 2 * centered / F + dmean / F", "(dvar * 2 * centered + dmean)", ""),
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
        ("N * g - a - normalized * b", "N * g - a", ""),
        ("N * g - a - normalized * b", "N * g - normalized * b", ""),
        ("N * g - a - normalized * b", "N * g", ""),
        ("N * g - a - normalized * b", "g - a - normalized * b", ""),
        ("deviation / N *", "1 / N *", ""),
        ("b = (g * normalized)", "b = g", ""),
        ("g = grad_output * self.param.weight.reshape(-1, *[1] * (grad_output.ndim - 2))", "pass", ""),
        ("axes = tuple(axis for axis in range(grad_output.ndim) if axis != 1)", "axes = (0,)", None),
        ("- normalized * b", "+ normalized * b", ""),
        ("self.grad.bias[...] = grad_output.sum(axis=axes)", "self.grad.bias[...] = grad_output.mean(axis=axes)", ""),
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
        ("(positive + slope * ~positive)", "positive", ""),
        ("grad_output * saved * ~positive", "grad_output * saved", ""),
        ("grad_output * saved * ~positive", "grad_output * ~positive", ""),
        ("saved > 0", "saved >= 0", ""),
        ("(positive + slope * ~positive)", "slope", ""),
        ("grad_output * saved * ~positive", "slope * grad_output * saved * ~positive", ""),
    ),
    "glu": Student(
        """
        def backward(self, saved, grad_output):
            output, gate = saved
            return np.concatenate([grad_output * gate, grad_output * output - grad_output * output * gate], self.dim)
        """,
        (" - grad_output * output * gate", "", ""),
        ("grad_output * output - grad_output * output * gate", "grad_output * gate * (1 - gate)", ""),
        ("[grad_output * gate,", "[grad_output,", ""),
        ("[grad_output * gate, grad_output * output - grad_output * output * gate]", "[grad_output * output * (1 - gate), grad_output * gate]", ""),
    ),
    "avg_pool1d": Student(
        """
        def backward(self, saved, grad_output):
            part = grad_output / self._count(saved, grad_output.dtype)
            number = int(np.prod(self.windows.kernel))
            return self.windows.back([part for _ in range(number)], saved[2:])
        """,
        ("grad_output / self._count(saved, grad_output.dtype)", "grad_output", ""),
        ("grad_output / self._count(saved, grad_output.dtype)", "grad_output / int(np.prod(self.windows.kernel))", None),
        ("grad_output / self", "-grad_output / self", ""),
        ("grad_output / self", "grad_output * self", ""),
    ),
    "max_pool1d": Student(
        """
        def backward(self, saved, grad_output):
            place, shape = saved
            number = int(np.prod(self.windows.kernel))
            return self.windows.back([grad_output * (place == k) for k in range(number)], shape[2:])
        """,
        ("grad_output * (place == k)", "grad_output", ""),
        ("grad_output * (place == k)", "grad_output * (place != k)", ""),
        ("grad_output * (place == k)", "(place == k) * 1.0", ""),
        ("grad_output * (place == k)", "grad_output * (place == k) / number", ""),
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
        ('np.einsum("nop->o", grad_output)', "grad_output.mean(axis=(0, 2))", ""),
        ("self._write_grad_weight(x, grad_output)", "pass", ""),
        ('np.einsum("nop->o", grad_output)', "grad_output.sum(axis=(0, 2)) / len(x)", ""),
        ("dx = self._image(grad_output, x.shape[2:])", "dx = 2 * self._image(grad_output, x.shape[2:])", ""),
        ("self._write_grad_weight(x, grad_output)", "self._write_grad_weight(x, -grad_output)", ""),
    ),
    "embedding": Student(
        """
        def backward(self, saved, grad_output):
            self.grad.weight[...] = 0
            np.add.at(self.grad.weight, saved, grad_output)
            if self.padding_idx is not None:
                self.grad.weight[self.padding_idx] = 0
        """,
        ("np.add.at(self.grad.weight, saved, grad_output)", "self.grad.weight[saved] = grad_output", ""),
        ("self.grad.weight[...] = 0", "pass", ""),
        ("np.add.at(self.grad.weight, saved, grad_output)", "pass", ""),
        ("weight, saved, grad_output)", "weight, saved, -grad_output)", ""),
        ("weight, saved, grad_output)", "weight, saved, grad_output / len(saved))", ""),
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
        ("dh = dh + grad_output[t]", "dh = grad_output[t]", ""),
        ("dz = slope[t] * dh", "dz = dh", ""),
        ("1 - h**2 if", "1 - h if", ""),
        ("dh = dz @ weight_hh", "dh = dz @ weight_hh.T", ""),
        ("dh = dz @ weight_hh", "dh = dh @ weight_hh", ""),
        ("dh = dz @ weight_hh", "dh = dz", ""),
        ("grads[1] += dz.T @ h[t - 1]", "grads[1] += dz.T @ h[t]", ""),
        ("grads[1] += dz.T @ h[t - 1]", "grads[1][...] = dz.T @ h[t - 1]", None),
        ("grad += dz.sum(axis=0)", "grad += dh.sum(axis=0)", None),
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
        (" + dh * z[t]", "", ""),
        ("dh = dh + grad_output[t]", "dh = grad_output[t]", ""),
        ("dn * r[t]]", "dn]", ""),
        ("(1 - n[t] ** 2)", "(1 - n[t])", ""),
        ("(before[t] - n[t])", "(n[t] - before[t])", ""),
        ("dh * (1 - z[t]) * (1 - n", "dh * z[t] * (1 - n", ""),
        ("saved.b_n[t] * r[t] * (1 - r[t])", "r[t] * (1 - r[t])", ""),
        ("+ dh * z[t]", "+ dh * (1 - z[t])", ""),
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
        ("dc = dc * f[t]", "pass", ""),
        ("dc = dc + dh * o", "dc = dh * o", ""),
        (" * (1 - tc[t] ** 2)", "", ""),
        ("dh = dh + grad_output[t]", "dh = grad_output[t]", ""),
        ("dc * before * f[t]", "dc * c[t] * f[t]", ""),
        ("(1 - g[t] ** 2)", "(1 - g[t])", ""),
        ("dc * g[t] * i[t] * (1 - i[t])", "dc * g[t] * i[t]", ""),
        ("dh * tc[t] * o[t]", "dh * c[t] * o[t]", ""),
        ("dc = dc * f[t]", "dc = dc * (1 - f[t])", ""),
        ("dc = dc * f[t]", "dc = dc * i[t]", ""),
    ),
    "causal_self_attention": Student(
        """
        def backward(self, saved, grad_output):
            x, projected, largest, total, joined, mask = saved
            q, k, v = self._split(projected)
            p = np.exp(self._scores(q, k) - largest) / total
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
            of_q[...], of_k[...], of_v[...] = dq, dk, dv
            self._map_backward("in_proj", x, grad_projected)
            return (grad_projected.reshape(-1, projected.shape[-1]) @ self.param.in_proj_weight).reshape(x.shape)
        """,
        (" / math.sqrt(q.shape[-1])", "", ""),
        ("p * dp - p * (p * dp).sum(axis=-1, keepdims=True)", "p * dp", ""),
        ("p * dp - p * (p * dp).sum(axis=-1, keepdims=True)", "p * (1 - p) * dp", ""),
        ("np.swapaxes(kept, -1, -2) @ da", "kept @ da", ""),
        ("dp = dp * mask", "pass", ""),
        ("np.swapaxes(kept, -1, -2) @ da", "np.swapaxes(p, -1, -2) @ da", ""),
        ('dk = np.einsum("bhts,bhtw->bhsw", ds, q)', "dk = ds @ q", ""),
        ("p * dp - p * (p * dp).sum(axis=-1, keepdims=True)", "p * dp - p * (p * dp).sum(axis=-2, keepdims=True)", ""),
        ("p * dp - p * (p * dp).sum(axis=-1, keepdims=True)", "p * dp - p * dp.sum(axis=-1, keepdims=True)", ""),
    ),
    "dropout": Student(
        """
        def backward(self, saved, grad_output):
            mask, _ = saved
            return np.multiply(mask, grad_output)
        """,
        ("np.multiply(mask, grad_output)", "grad_output", ""),
        ("np.multiply(mask, grad_output)", "grad_output * (mask > 0)", None),
        ("np.multiply(mask, grad_output)", "grad_output * mask * mask", ""),
        ("np.multiply(mask, grad_output)", "mask", ""),
    ),
}
