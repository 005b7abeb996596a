"""Sequences and recurrent nets."""

from __future__ import annotations

from student import Student

STUDENTS = {
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
    "learned_positions": Student(
        """
        def backward(self, saved, grad_output):
            self.grad.weight[...] = 0
            for example in grad_output:
                self.grad.weight[: saved[1]] += example
            return grad_output
        """,
        ("+= example", "= example", "With `=` for `+=`, the last one's is kept alone."),
        ("+= example", "+= example / len(grad_output)", "There is no mean."),
        ("+= example", "+= example.sum(axis=0)", "and not over the times"),
        ("[: saved[1]] += example", "[-saved[1] :] += example", "The first rows are used"),
        ("return grad_output", "return grad_output + self.param.weight[: saved[1]]", "what is added doesn't depend on"),
        ("self.grad.weight[...] = 0", "self.grad.weight[: saved[1]] = 0", "grad_weight is not a number in some places"),
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
    "masked_fill": Student(
        """
        def backward(self, saved, grad_output):
            grad_input = np.zeros_like(grad_output)
            for row, counts in enumerate(saved):
                length = counts.sum()
                grad_input[row, :length] = grad_output[row, :length]
            return grad_input
        """,
        ("grad_input = np.zeros_like(grad_output)", "grad_input = 1 * grad_output", "The padding holds a constant"),
        ("np.zeros_like(grad_output)", "np.zeros_like(grad_output) + self.value", "The padding holds a constant"),
        ("length] = grad_output[row, :length]", "length] = 0", "with 0 everywhere"),
        (
            "grad_input[row, :length] = grad_output[row, :length]",
            "grad_input[row, length:] = grad_output[row, length:]",
            "The mask is true where",
        ),
    ),
    "padded_transformer_encoder_layer": Student(
        """
        def backward(self, saved, grad_output):
            of_layers, counts = saved
            return TransformerEncoderLayer.backward(self, of_layers, counts * grad_output)
        """,
        ("counts * grad_output", "grad_output", "A padded output is 0 whatever the input is"),
        ("counts * grad_output", "~counts * grad_output", "The mask is true where"),
        ("counts * grad_output)", "grad_output) * counts", "The mask comes before the way back"),
    ),
    "sinusoidal_positions": Student(
        """
        def backward(self, saved, grad_output):
            time, size = saved[1:]
            feature = np.arange(size)
            angle = np.arange(time)[:, None] / 10000 ** (2 * (feature // 2) / self.embedding_dim)
            return 1 * grad_output
        """,
        ("1 * grad", "(1 + np.where(feature % 2 == 0, np.cos(angle), -np.sin(angle))) * grad", "their derivative is 0"),
        ("1 * grad", "np.where(feature % 2 == 0, np.sin(angle), np.cos(angle)) * grad", "what is added doesn't depend"),
        ("1 * grad", "0 * grad", "it is input + waves"),
        ("1 * grad", "np.where(feature % 2 == 0, np.sin(angle), np.cos(angle)) + grad", "what is added doesn't depend"),
    ),
    "time_pool": Student(
        """
        def backward(self, saved, grad_output):
            weight, shape = saved
            grad_input = np.zeros(shape)
            for time in range(shape[1]):
                grad_input[:, time] = weight[:, time] * grad_output
            return grad_input
        """,
        ("weight[:, time] * grad_output", "grad_output", "as much of the gradient as it has in the output"),
        ("weight[:, time] * grad_output", "(weight[:, time] > 0) * grad_output", "weight is no mask"),
        ("weight[:, time] * grad_output", "weight[:, time] * grad_output / shape[1]", "share in it already"),
        ("weight[:, time] * grad_output", "grad_output / shape[1]", "The mean alone shares the gradient"),
        ("weight[:, time] * grad_output", "grad_output * (time == shape[1] - 1)", "With mode = last alone"),
        ("weight[:, time] * grad_output", "weight[:, time]", "the weights are multiplied by grad_output"),
        ("weight[:, time] * grad_output", "weight[:, time] ** 2 * grad_output", "with `* weight` twice"),
    ),
}
