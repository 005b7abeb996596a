"""Common mistakes in schedules."""

from __future__ import annotations

MISTAKES: dict[str, dict[str, str]] = {
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
