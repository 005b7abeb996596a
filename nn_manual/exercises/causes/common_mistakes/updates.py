"""Common mistakes in optimizers' updates and in schedules."""

from __future__ import annotations

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
        "with `alpha` and `1 - alpha` swapped": "alpha is the part that is kept.",
        "without `- grad_avg ** 2`": "The square of the mean is never subtracted, as `centered` asks.",
    },
    "adam": {
        "without `/ (1 - beta1 ** step)`": CORRECTION,
        "without `/ (1 - beta2 ** step)`": CORRECTION,
        "with `sqrt(mean_sq + eps)` in the place of `sqrt(mean_sq) + eps`": INSIDE,
        "with `step + 1` in the place of `step`": "Steps are counted from 1.",
        "with `step - 1` in the place of `step`": "Steps are counted from 1, not from 0.",
        "with `beta1` and `1 - beta1` swapped": "beta1 is the part that is kept.",
        "with `beta2` and `1 - beta2` swapped": "beta2 is the part that is kept.",
        "without the power in `direction ** 2`": "The second average is one of squares.",
    },
    "step_lr": {
        "with `count / self.step_size` in the place of `count // self.step_size`":
            "The lr changes in steps: the quotient "
            "is a whole number.",
    },
    "cosine_annealing_lr": {
        "without `/ 2`": "1 + cos goes from 2 to 0.",
        "with `- math.cos(math.pi * count / self.T_max)` in the place of `+ math.cos(math.pi * count / self.T_max)`":
            "It "
            "begins at the minimum, and ends at the initial lr.",
    },
    "multi_step_lr": {
        "bisect_right(self.milestones, count) => bisect_right(sorted(set(self.milestones)), count)":
            "A milestone that stands twice counts twice.",
    },
    "cyclic_lr": {
        "self.gamma ** count => self.gamma ** (cycle - 1)": "The factor gamma comes with each step, not with each "
        "cycle.",
        "self.max_momentum - self._at(count, self.max_momentum - self.base_momentum) => self.base_momentum + "
        "self._at(count, self.max_momentum - self.base_momentum)":
            "The momentum moves against the lr: where the lr is largest, it is smallest.",
    },
    "linear_lr": {
        "without the `min` of `min(count, self.total_iters)`": "After total_iters the lr stays.",
    },
}
