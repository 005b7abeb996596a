"""The same of layers that are made of others, of positions in time, of padded sequences, and of a whole net."""

from __future__ import annotations

from student import Student

STUDENTS = {
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
    "padded_causal_self_attention": Student(
        """
        def backward(self, saved, grad_output):
            grad = np.where(saved.counts, grad_output, 0)
            return SelfAttention.backward(self, saved, grad)
        """,
        ("np.where(saved.counts, grad_output, 0)", "grad_output", "A padded output is 0 whatever the input is"),
        ("np.where(saved.counts, grad_output, 0)", "np.where(saved.counts, 0, grad_output)", "The mask is true where"),
        (
            "np.where(saved.counts, grad_output, 0)\n    return SelfAttention.backward(self, saved, grad)",
            "grad_output\n    return SelfAttention.backward(self, saved, grad) * saved.counts",
            "The mask comes before the way back",
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
    "transformer_encoder": Student(
        """
        def backward(self, saved, grad_output):
            grad = grad_output
            for index in range(len(self.chain) - 1, -1, -1):
                grad = self.chain[index].backward(saved[index], grad)
            return grad
        """,
        ("range(len(self.chain) - 1, -1, -1)", "range(len(self.chain))", "The way back begins at the last layer"),
        ("(saved[index], grad)", "(saved[index], grad_output)", "Each layer takes the gradient of its own output"),
        ("grad = self.chain", "grad = grad + self.chain", "nothing goes round a layer"),
        ("return grad", "return grad + grad_output", "nothing goes round a layer"),
        ("return grad", "return grad_output", "it goes back through all layers"),
        ("range(len(self.chain) - 1", "range(len(self.layers) - 1", "The norm behind the layers has a way back, too"),
    ),
    "residual": Student(
        """
        def backward(self, saved, grad_output):
            grad = grad_output
            for layer, own in zip(reversed(self.layers), reversed(saved), strict=True):
                grad = layer.backward(own, grad)
            return grad_output + grad
        """,
        ("grad_output + grad", "grad_output * grad", "Along one way they would be multiplied."),
        ("grad_output + grad", "grad", "The straight way is missing"),
        ("grad_output + grad", "grad_output", "The way through the branch is missing."),
        ("grad_output + grad", "(grad_output + grad) / 2", "there is no mean"),
        ("grad = layer", "grad = grad + layer", "The input goes the straight way once"),
    ),
    "sum_layer": Student(
        """
        def backward(self, saved, grad_output):
            grads = [grad_output for _ in self.branches]
            ways = [branch.backward(*each) for branch, *each in zip(self.branches, saved[0], grads, strict=True)]
            if ways[0] is None:
                return None
            return sum(ways)
        """,
        ("sum(ways)", "ways[-1]", "The last branch's way alone is left."),
        ("sum(ways)", "ways[0]", "The first branch's way alone is left."),
        ("sum(ways)", "np.mean(ways, axis=0)", "There is no mean."),
        ("[grad_output for", "[grad_output / len(self.branches) for", "Each branch gets all of grad_output"),
    ),
    "concat": Student(
        """
        def backward(self, saved, grad_output):
            places = np.cumsum(saved[1])[:-1]
            grads = np.split(grad_output, places, self.dim)
            ways = [branch.backward(*each) for branch, *each in zip(self.branches, saved[0], grads, strict=True)]
            return sum(ways)
        """,
        ("sum(ways)", "ways[-1]", "The last branch's way alone is left."),
        ("sum(ways)", "ways[0]", "The first branch's way alone is left."),
        ("sum(ways)", "np.mean(ways, axis=0)", "There is no mean."),
        ("saved[0], grads,", "saved[0], grads[::-1],", "lie in the order of the branches"),
        (
            "places = np.cumsum(saved[1])[:-1]\n    grads = np.split(grad_output, places, self.dim)",
            "grads = np.split(grad_output, np.cumsum(saved[1][::-1])[:-1], self.dim)[::-1]",
            "lie in the order of the branches",
        ),
        ("sum(ways)", "np.prod(ways, axis=0)", "The input goes all ways, and the gradients of the ways add."),
    ),
    "swi_glu": Student(
        """
        def backward(self, saved, grad_output):
            gate, up, of_gate, of_activation, of_up, of_down = saved
            grad = self.down_proj.backward(of_down, grad_output)
            opened = self.activation.backward(of_activation, grad * up)
            way, other = self.gate_proj.backward(of_gate, opened), self.up_proj.backward(of_up, grad * gate)
            return way + other
        """,
        ("self.activation.backward(of_activation, grad * up)", "grad * up", "goes back through the activation"),
        ("gate, up, of_gate", "up, gate, of_gate", "each factor's gradient has the other one"),
        ("grad = self.down_proj.backward(of_down, grad_output)", "grad = grad_output", "grad_product is what"),
        ("(of_up, grad * gate)", "(of_up, grad_output * gate)", "grad_product is what"),
        ("(of_activation, grad * up)", "(of_activation, grad)", "each factor's gradient has the other one"),
        ("(of_up, grad * gate)", "(of_up, grad * up)", "each factor's gradient has the other one"),
        ("(of_activation, grad * up)", "(of_activation, grad * gate)", "each factor's gradient has the other one"),
        ("(of_up, grad * gate)", "(of_up, grad)", "each factor's gradient has the other one"),
        ("return way + other", "return way", "The way through up_proj is missing"),
        ("return way + other", "return other", "The way through gate_proj is missing"),
    ),
    "bilinear": Student(
        """
        def backward(self, saved, grad_output):
            x, g = (each.reshape(-1, each.shape[-1]) for each in (saved, grad_output))
            W = self.param.weight
            self.grad.weight[...] = np.einsum("no,ni,nj->oij", g, x, x)
            if self.bias:
                self.grad.bias[...] = g.sum(axis=0)
            first = np.einsum("no,oij,nj->ni", g, W, x)
            second = np.einsum("no,oij,ni->nj", g, W, x)
            return (first + second).reshape(saved.shape)
        """,
        ("(first + second)", "first", "some as the first factor, in others as the second"),
        ("(first + second)", "second", "some as the first factor, in others as the second"),
        ("(first + second)", "2 * first", "weight[o, i, j] and weight[o, j, i] are two numbers"),
        ("(first + second)", "2 * second", "weight[o, i, j] and weight[o, j, i] are two numbers"),
        ("g, x, x)", "g, x, x) / len(x)", "the gradients are added over the batch, without a mean"),
        ("g.sum(axis=0)", "g.mean(axis=0)", "the gradients are added over the batch, without a mean"),
    ),
    "whole_net": Student(
        """
        def whole_net(input, target, weight_0, bias_0, weight_1, bias_1, weight_3, bias_3):
            z = input @ weight_0.T + bias_0
            std = np.sqrt(z.var(-1, keepdims=True) + 1e-5)
            n = (z - z.mean(-1, keepdims=True)) / std
            y = n * weight_1 + bias_1
            h = np.tanh(y)
            e = np.exp(h @ weight_3.T + bias_3)
            p = e / e.sum(-1, keepdims=True)
            gp = (p - target) * 2 / p.size
            gs = p * gp - p * (p * gp).sum(-1, keepdims=True)
            gh = gs @ weight_3
            gy = gh * (1 - h * h)
            gn = gy * weight_1
            gz = (gn - gn.mean(-1, keepdims=True) - n * (gn * n).mean(-1, keepdims=True)) / std
            return {
                "grad_prediction": gp,
                "grad_output_3": gs,
                "grad_output_2": gh,
                "grad_weight_3": gs.T @ h,
                "grad_bias_3": gs.sum(0),
                "grad_output_1": gy,
                "grad_output_0": gz,
                "grad_weight_1": (gy * n).sum(0),
                "grad_bias_1": gy.sum(0),
                "grad_input": gz @ weight_0,
                "grad_weight_0": gz.T @ input,
                "grad_bias_0": gz.sum(0),
            }
        """,
        ("* 2 / p.size", "/ p.size", "The derivative of d**2 is 2 d."),
        ("* 2 / p.size", "* 2", "each of its terms is divided by their number"),
        ("* 2 / p.size", "* 2 / len(p)", "over all numbers of the prediction"),
        ("p * gp - p * (p * gp).sum(-1, keepdims=True)", "p * gp", "the sum over them is missing"),
        ("p * gp - p * (p * gp).sum(-1, keepdims=True)", "p * (1 - p) * gp", "the diagonal of the Jacobian alone"),
        ("(1 - h * h)", "(1 - h)", "output_2 is the tanh"),
        ("(1 - h * h)", "(1 - y * y)", "output_2 is tanh(output_1)"),
        (" - n * (gn * n).mean(-1, keepdims=True)", "", "The path through the variance is missing"),
        ("gn - gn.mean(-1, keepdims=True)", "gn", "The path through the mean is missing"),
        ("gn - gn.mean(-1, keepdims=True) - n * (gn * n).mean(-1, keepdims=True)", "gn", "are taken for constants"),
        ("gn = gy * weight_1", "gn = gy", "is grad_output times weight"),
        ("(gn * n).mean(-1, keepdims=True)) / std", "(gn * n).mean(-1, keepdims=True))", "so is their gradient"),
        ("gs.T @ h", "gs.T @ y", "weight_3 multiplies output_2, not output_1."),
        ("gz.T @ input", "gz.T @ input / len(p)", "added over the batch, without a mean"),
        ("(gy * n).sum(0)", "gy.sum(0)", "the slope for weight is normalized"),
        ('"grad_bias_3": gs.sum(0)', '"grad_bias_3": gs.mean(0)', "added over the batch, without a mean"),
        ('"grad_weight_1": (gy * n).sum(0)', '"grad_weight_1": (gy * n).mean(0)', "added over the batch"),
    ),
}
