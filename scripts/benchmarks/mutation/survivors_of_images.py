"""Mutants of the layers of images that compute the same: each with the proof."""

from __future__ import annotations

NO_DIVISOR = "AvgPool1d has no divisor of its own"
ALL_COUNT = "counted one by one, all numbers of each window count: nothing lies beyond the frame, which counts, too"
SAME_NUMBER = "it is the same number each time"
ONE_DIMENSION = "the kernel has one dimension: its size is the product, and has the shape (1,)"
READ_ONCE = "the sizes are read once, whether they are a tuple or a generator"

FIRST_INSIDE = "np.full_like(first, self.windows.first_inside(num_windows), np.min_scalar_type(len(others)))"

OF_SHAPE = "the matrices depend on the shape of the input alone"

SAME_AXIS = "of three axes the middle one stays: it is that of the channels, and all others are gone through alike"

BIAS_SUM = "np.sum(grad_output, axis=(0, *range(2, grad_output.ndim)), out=self.grad.bias)"
ADD_BIAS = "output += self.param.bias[:, *[np.newaxis] * self.num_dims]"

#: The proof, as in survivors.py.
IMAGES: dict[tuple[str, str, str], str] = {
    ("AvgPool1d._count", "self.divisor is not None", "False"): NO_DIVISOR,
    ("AvgPool1d._count", "self.count_include_pad and (not self.ceil_mode)", "False"): ALL_COUNT,
    (
        "AvgPool1d._count",
        "return np.asarray(math.prod(self.windows.kernel), dtype)",
        "return previous(self, np.asarray(math.prod(self.windows.kernel), dtype))",
    ): SAME_NUMBER,
    (
        "AvgPool1d._count",
        "return np.asarray(math.prod(self.windows.kernel), dtype)",
        "return np.asarray(self.windows.kernel, dtype)",
    ): ONE_DIMENSION,
    (
        "AvgPool1d._count",
        "size = tuple((n + 2 * frame for n, frame in zip(size, of_each(self.padding, self.num_dims), strict=True)))",
        "size = (n + 2 * frame for n, frame in zip(size, of_each(self.padding, self.num_dims), strict=True))",
    ): READ_ONCE,
    **{
        ("MaxPool1d.forward", f"place = {FIRST_INSIDE}", f"place = {mutated}"): SAME_NUMBER
        for mutated in (
            f"previous(self, {FIRST_INSIDE})",
            FIRST_INSIDE.replace(
                "self.windows.first_inside(num_windows)", "previous(self, self.windows.first_inside(num_windows))"
            ),
        )
    },
    **{
        (f"AdaptiveAvgPool1d.{method}", line, line.replace(part, f"previous(self, {part})", 1)): OF_SHAPE
        for method, line, part in (
            ("forward", "output = _along(matrix, output, axis)", "matrix"),
            ("backward", "grad_input = _along(matrix.T, grad_input, axis)", "matrix.T"),
            ("backward", "grad_input = _along(matrix.T, grad_input, axis)", "matrix"),
            ("matrices", "yield matrix", "matrix"),
        )
    },
    **{
        (f"{name}.{method}", line, line.replace(part, f"{part}.T")): SAME_AXIS
        for name, method, line, part in (
            *((name, "forward", "self._add_bias(output)", "output") for name in ("Conv1d", "ConvTranspose1d")),
            *(
                (name, "backward_parameters", "self._write_grad_bias(grad_output)", "grad_output")
                for name in ("Conv1d", "ConvTranspose1d")
            ),
            ("Conv1d", "_write_grad_bias", BIAS_SUM, "sum(grad_output"),
        )
    },
    ("Conv1d._add_bias", ADD_BIAS, ADD_BIAS.replace(" * self.num_dims", "")): "an image has one dimension",
}
