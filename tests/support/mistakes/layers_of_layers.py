"""Layers of layers, noise, and others."""

from __future__ import annotations

from student import Student

STUDENTS = {
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
}
