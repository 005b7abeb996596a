"""Linear maps and the squared error."""

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
    "mse_loss": Student(
        """
        def backward(self, saved):
            d = saved
            return (d + d) / d.size if self.reduction == "mean" else d + d

        def backward_target(self, saved):
            return -self.backward(saved)
        """,
        ("(d + d) / d.size", "d / d.size", "without the factor `2`"),
        ("(d + d) / d.size", "d + d", "without `/ N`"),
        ("(d + d) / d.size", "(d + d) / len(d)", "with `rows` in the place of `N`"),
        ("(d + d) / d.size", "-(d + d) / d.size", "with its sign turned"),
        ("(d + d) / d.size", "2 * d**2 / d.size", "with `* (prediction - target)` twice"),
        ("return -self.backward", "return self.backward", "with its sign turned"),
        ("else d + d", "else (d + d) / d.size", "for reduction='mean': your code ignores `reduction`"),
        (
            '(d + d) / d.size if self.reduction == "mean" else d + d',
            "d / d.size",
            "without the factor `2`, and for reduction='mean': your code ignores `reduction`",
        ),
    ),
    "flatten": Student(
        """
        def backward(self, saved, grad_output):
            return grad_output.reshape(saved)
        """,
        ("reshape(saved)", "reshape(saved, order='F')", "with the numbers in the order of columns"),
    ),
    "identity": Student(
        """
        def backward(self, saved, grad_output):
            return grad_output * 1
        """,
        ("grad_output * 1", "np.ones(saved)", "comes from above is missing"),
        ("grad_output * 1", "np.zeros(saved)", "with 0 everywhere"),
    ),
}
