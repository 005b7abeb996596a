"""Common mistakes in schedules."""

from __future__ import annotations

HALVES = "1 + cos goes from 2 to 0."
COSINE = "It begins at the minimum, and ends at the initial lr."
STAYS = "After total_iters the lr stays."
FACTORS = "initial_lr * math.prod((scheduler.lr(1.0, count) for scheduler in self.schedulers))"
ONCE = "The initial lr counts once: each schedule gives a factor."
AT_FIRST = "The factor holds at first, and then no more."
ALL_FACTORS = "The schedules' factors are multiplied, as each one changes what the others have left."
FROM_0 = "The count begins with 0: at first it is the initial lr."

MISTAKES: dict[str, dict[str, str]] = {
    "step_lr": {
        "with `count / self.step_size` in the place of `count // self.step_size`":
            "The lr changes in steps: the quotient is a whole number.",
    },
    "cosine_annealing_lr": {
        "without `/ 2`": HALVES,
        "with `- math.cos(math.pi * count / self.T_max)` in the place of `+ math.cos(math.pi * count / self.T_max)`":
            COSINE,
    },
    "cosine_annealing_warm_restarts": {
        "without `/ 2`": HALVES,
        "with `- math.cos(math.pi * since / length)` in the place of `+ math.cos(math.pi * since / length)`": COSINE,
        "math.pi * since / length => math.pi * count / self.T_0":
            "After each fall it begins anew: along the cosine alone it would rise.",
        "without `* self.T_mult`, in length": "Each further fall takes T_mult times as long as the one before.",
        "with `length *= self.T_mult` before `since -= length`":
            "The fall that is over is taken off first, and then the next one is longer.",
        "with `since > length` in the place of `since >= length`":
            "A fall has the counts from 0 to length - 1: at the count length the next one has begun.",
    },
    "multi_step_lr": {
        "bisect_right(self.milestones, count) => bisect_right(sorted(set(self.milestones)), count)":
            "A milestone that stands twice counts twice.",
    },
    "exponential_lr": {
        "with `count + 1` in the place of `count`": FROM_0,
        "with `1 - self.gamma` in the place of `self.gamma`":
            "gamma is the part that is kept, not the part that is lost.",
        "_decayed(initial_lr, self.gamma, count) => initial_lr * math.exp(-self.gamma * count)":
            "gamma is itself the factor of one epoch or step, and no rate.",
        "_decayed(initial_lr, self.gamma, count) => initial_lr * self.gamma * count":
            "Each epoch or step multiplies by gamma: many factors are a power.",
    },
    "polynomial_lr": {
        "without the `min` of `min(count, self.total_iters)`": STAYS,
        "with `min(count, self.total_iters) / self.total_iters` in the place of `1 - min(count, self.total_iters) / "
        "self.total_iters`": "It falls with the part of the way that is left.",
        "(1 - min(count, self.total_iters) / self.total_iters) ** self.power => 1 - (min(count, self.total_iters) / "
        "self.total_iters) ** self.power": "The power is one of what is left, not of what is done.",
        "with `count + 1` in the place of `count`": FROM_0,
    },
    "cyclic_lr": {
        "self.gamma ** count => self.gamma ** (cycle - 1)":
            "The factor gamma comes with each step, not with each cycle.",
        "self.max_momentum - self._at(count, self.max_momentum - self.base_momentum) => self.base_momentum + "
        "self._at(count, self.max_momentum - self.base_momentum)":
            "The momentum moves against the lr: where the lr is largest, it is smallest.",
    },
    "one_cycle_lr": {
        "with `self.max_lr` in the place of `initial`, in least,": "final_div_factor divides the lr at the beginning.",
        "(self.base_momentum, self.max_momentum, self.total_steps - 1) => (self.max_momentum, self.base_momentum, "
        "self.total_steps - 1)": "The momentum goes against the lr: where the lr is largest, it is smallest.",
        "without `- begin`": "done goes from 0, where the phase begins, to 1, where it ends.",
        "without `- 1`, in least,": "The first count is 0: of n steps, the last has the count n - 1.",
        "without `- 1`, in base,": "The first count is 0: of n steps, the last has the count n - 1.",
        "without `/ 2`": HALVES,
    },
    "linear_lr": {
        "without the `min` of `min(count, self.total_iters)`": STAYS,
    },
    "constant_lr": {
        "with `count <= self.total_iters` in the place of `count < self.total_iters`":
            "The first total_iters counts are those from 0 to total_iters - 1.",
        "without `self.total_iters == 0`": "With total_iters 0 the factor always holds, as in torch.",
        "with `count > self.total_iters` in the place of `count < self.total_iters`":
            AT_FIRST,
        "count < self.total_iters => count >= self.total_iters": AT_FIRST,
        "self.factor if count < self.total_iters or self.total_iters == 0 else 1 => 1 if count < self.total_iters or "
        "self.total_iters == 0 else self.factor": AT_FIRST,
    },
    "sequential_lr": {
        "without `- (self.milestones[index - 1] if index else 0)`":
            "Each schedule begins with a count of 0, whenever its turn comes.",
        "with `count - 1` in the place of `count`, in index": "At its milestone a schedule has begun.",
        "with `count + 1` in the place of `count`": FROM_0,
    },
    "chained_scheduler": {
        f"{FACTORS} => math.prod((scheduler.lr(initial_lr, count) for scheduler in self.schedulers))": ONCE,
        "scheduler.lr(1.0, count) => scheduler.lr(initial_lr, count)": ONCE,
        f"{FACTORS} => initial_lr * sum((scheduler.lr(1.0, count) for scheduler in self.schedulers))": ALL_FACTORS,
        f"{FACTORS} => self.schedulers[-1].lr(initial_lr, count)":
            f"The last schedule's lr alone is left. {ALL_FACTORS}",
    },
    "reduce_lr_on_plateau": {
        "with `self.num_bad_epochs >= self.patience` in the place of `self.num_bad_epochs > self.patience`":
            "As many bad epochs as patience are borne: the next one is too many.",
        "without the `max` of `max(lr * self.factor, self.min_lr)`": "The lr never falls below min_lr.",
        "(0, self.cooldown) => (self.num_bad_epochs, self.cooldown)":
            "Behind a reduction the bad epochs are counted anew.",
        "without `self.cooldown_counter > 0`": "While it cools down, bad epochs aren't counted.",
        "with `self.best = min(self.best, validation_loss)` whatever `is_better` is":
            "A loss that is lower by less than the threshold isn't better: best stays.",
        "with `is_better` always true": "best is the lowest loss so far, not the last one.",
        "with `reduced` in the place of `reduced if lr - reduced > self.eps else lr`":
            "A reduction by eps or less isn't made.",
    },
}
