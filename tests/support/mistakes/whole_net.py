"""A whole net."""

from __future__ import annotations

from student import Student

STUDENTS = {
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
