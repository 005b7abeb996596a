"""Common mistakes in optimizers' updates."""

from __future__ import annotations

KEPT = "{} is the part that is kept."
INSIDE = "eps is added to the root, not below it."
CORRECTION = "The correction is missing: the average starts as 0, and is too small in the first steps."

MISTAKES: dict[str, dict[str, str]] = {
    "sgd": {
        "with `+ lr * direction` in the place of `- lr * direction`": "The step goes down, against the gradient.",
        "without the factor `momentum`, in momentum_buffer": "The buffer decays by momentum in each step.",
        "direction if step == 1 else momentum * momentum_buffer + (1 - dampening) * direction => momentum * "
        "momentum_buffer + (1 - momentum) * direction": "That is a running mean: torch's momentum adds the gradients "
        "as they are.",
        "direction if step == 1 else momentum * momentum_buffer + (1 - dampening) * direction => momentum * "
        "momentum_buffer + (1 - dampening) * direction":
            "The first step isn't dampened: the buffer becomes the gradient.",
    },
    "rmsprop": {
        "with `sqrt(variance + eps)` in the place of `sqrt(variance) + eps`": INSIDE,
        "without the `sqrt` of `sqrt(variance)`": "The square root is missing: the average is one of squares.",
        "with `alpha` and `1 - alpha` swapped": KEPT.format("alpha"),
        "without `- grad_avg ** 2`": "The square of the mean is never subtracted, as `centered` asks.",
    },
    "adam": {
        "without `/ (1 - beta1 ** step)`": CORRECTION,
        "without `/ (1 - beta2 ** step)`": CORRECTION,
        "with `sqrt(mean_sq + eps)` in the place of `sqrt(mean_sq) + eps`": INSIDE,
        "with `step + 1` in the place of `step`": "Steps are counted from 1.",
        "with `step - 1` in the place of `step`": "Steps are counted from 1, not from 0.",
        "with `beta1` and `1 - beta1` swapped": KEPT.format("beta1"),
        "with `beta2` and `1 - beta2` swapped": KEPT.format("beta2"),
        "without the power in `direction ** 2`": "The second average is one of squares.",
    },
    "adadelta": {
        "with `delta` computed again from the new `acc_delta`":
            "acc_delta holds the squares of the steps before: this step is made first, and then counted.",
        "without the factor `sqrt(acc_delta + eps)`":
            "The root of the mean square of the steps is missing: without it the step hasn't the unit of the "
            "parameter, which is RMSprop.",
        "with `direction` in the place of `delta`":
            "acc_delta averages the squares of the steps, not of the gradients.",
        "delta ** 2 => (lr * delta) ** 2": "acc_delta averages the steps before lr scales them.",
        "sqrt(acc_delta + eps) / sqrt(square_avg + eps) => (sqrt(acc_delta) + eps) / (sqrt(square_avg) + eps)":
            "eps stands below both roots here. acc_delta starts as 0, and sqrt(eps) is much more than eps: with eps "
            "beside the root, the first steps would be far smaller.",
        "with `rho` and `1 - rho` swapped": KEPT.format("rho"),
    },
    "adagrad": {
        "without `initial_accumulator_value if step == 1 else sum`":
            "Nothing is forgotten: sum holds the squares of all steps.",
        "with `initial_accumulator_value` in the place of `initial_accumulator_value if step == 1 else sum`":
            "The sum begins with it in the first step alone, and then goes on.",
        "without `- 1`, in rate": "The first step has the whole lr: lr_decay counts the steps before.",
        "with `sqrt(sum + eps)` in the place of `sqrt(sum) + eps`": INSIDE,
        "without the `sqrt` of `sqrt(sum)`": "The square root is missing: the sum is one of squares.",
    },
    "adamax": {
        "without `/ (1 - beta1 ** step)`": CORRECTION,
        "lr / (1 - beta1 ** step) * exp_avg / exp_inf => lr / (1 - beta1 ** step) * exp_avg * (1 - beta2 ** step) / "
        "exp_inf": "A maximum needs no correction: in the first step it is the size of the direction, and not a part "
        "of it.",
        "maximum(beta2 * exp_inf, abs(direction) + eps) => beta2 * exp_inf + (1 - beta2) * (abs(direction) + eps)":
            "exp_inf is the largest of the sizes, not their mean.",
        "without the factor `beta2`": "Old numbers are forgotten, too: they lose 1 - beta2 of their size in each step.",
        "without the `abs` of `abs(direction)`": "A negative direction is large, too: its size counts.",
        "abs(direction) => direction ** 2": "The sizes themselves count: a maximum needs neither square nor root.",
    },
    "radam": {
        "with `4` in the place of `5`": "The paper's bound is 4, torch's is 5: it rectifies one step later.",
        "without `/ (1 - beta1 ** step)`": CORRECTION,
        "without `- beta2 ** step`, in root": CORRECTION,
        "without the factor `rectified`":
            "The step is made smaller as long as exp_avg_sq is the mean of few gradients.",
        "rectified * root / (sqrt(exp_avg_sq) + eps) if known > 5 else 1 => (rectified if known > 5 else 1) * root / "
        "(sqrt(exp_avg_sq) + eps)": "In the first steps the mean isn't divided by exp_avg_sq at all, which says little "
        "yet.",
        "with `sqrt(exp_avg_sq + eps)` in the place of `sqrt(exp_avg_sq) + eps`": INSIDE,
    },
    "asgd": {
        "with the new `eta` in the place of the one before the step,":
            "eta is made at the end of a step, for the next one.",
        "with `param` as it was before the step, in the place of the new one,":
            "ax is the mean of the parameters behind each step.",
        "without `- 1`, in mu": "The mean begins with step t0 + 2: up to then ax is the parameters themselves.",
        "without `- ax`": "A mean moves by a part of the difference to the new number.",
        "without `* eta`": "The decay is a part of the step: it shrinks with eta.",
    },
    "nadam": {
        "without `* mu_next`": "exp_avg is taken with the share of the next step: its correction has this share, too.",
        "without `+ (1 - mu) * direction / (1 - mu_product)`":
            "The new direction has a part of its own: by it the step looks ahead.",
        "with `mu` in the place of `mu_next`": "The momentum is taken with the share that the next step will have.",
        "with `beta1` in the place of `mu`": "exp_avg decays by beta1, but the step is shared out by mu and mu_next.",
        "mu_next * exp_avg / (1 - mu_product * mu_next) + (1 - mu) * direction / (1 - mu_product) => exp_avg / (1 - "
        "beta1 ** step)": "That is Adam's mean: it doesn't look ahead.",
        "without `/ (1 - beta2 ** step)`": CORRECTION,
    },
    "lion": {
        "without the `sign` of `sign(beta1 * exp_avg + (1 - beta1) * direction)`":
            "Each number moves by lr: only the sign of the momentum counts.",
        "with the new `exp_avg` in the place of the one before the step,":
            "The step is made first: exp_avg learns of this direction behind it.",
        "with `beta1` in the place of `beta2`":
            "There are two momenta: the one that is kept remembers longer than the one that is moved along.",
        "with `beta2` in the place of `beta1`":
            "There are two momenta: the one that is moved along isn't the one that is kept.",
        "with the decay of the parameters as a part of the gradient, as Adam has it,":
            "In a sign the size of the decay is lost.",
    },
    "rprop": {
        "with `direction` everywhere, in the place of `np.where(agreement < 0, 0, direction)`":
            "Where the sign has changed, the next step is made as if there were no gradient before.",
        "with `direction` in the place of `prev`": "Where the sign has changed, no step is made.",
        "without the `sign` of `np.sign(prev)`": "Only the sign of the gradient counts: step_size says how far.",
        "np.sign(prev) * step_size => self.lr * (np.sign(prev) * step_size)":
            "step_size is the whole step: it only begins with lr.",
        "without `* (step == 1)`": "step_size begins with lr, in the first step alone.",
    },
    "muon": {
        "np.sqrt(np.sum(direction * direction)) => np.linalg.norm(direction, 2)":
            "norm is the root of the sum of squares: no singular value is larger, and it needs no decomposition.",
        "with `gram * gram` in the place of `gram @ gram`":
            "A product of matrices squares the singular values; one of numbers doesn't.",
        "without the factor `coefficients['add']`, in momentum_buffer":
            "The buffer is a mean: grad counts 1 - momentum.",
        "without `* self._ratio(param.shape)`":
            "By the ratio, steps of matrices of all shapes are about equally large.",
        "max(1, rows / columns) => max(1, columns / rows)":
            "A matrix with more rows than columns has the larger step, not a wide one.",
    },
    "adafactor": {
        "without `/ np.maximum(mean, coefficients['eps1'])`":
            "A product of two mean squares is like a fourth power: divided by the mean of all, it is like a square.",
        "without the factor `np.maximum(rms, coefficients['eps2'])`":
            "The step is a share of the parameter's own size.",
        "size / np.maximum(length / coefficients['d'], 1) => size":
            "An update whose root mean square is above d is shortened.",
        "without the `min` of `min(self.lr, 1 / math.sqrt(step))`": "The share falls at least as 1 / sqrt(step).",
        "without `/ param.shape[-1]`": "row_var is a mean over the row, not a sum.",
        "without the `sqrt` of `np.sqrt(np.maximum(estimate, coefficients['eps1_squared']))`":
            "The square root is missing: the estimate is one of squares.",
    },
}
