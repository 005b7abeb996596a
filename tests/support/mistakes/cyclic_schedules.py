"""Schedules: those that rise and fall."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "cosine_annealing_lr": Student(
        """
        def lr(self, initial_lr, count):
            cosine = np.cos(np.pi * count / self.T_max)
            return float(self.eta_min + 0.5 * (initial_lr - self.eta_min) * (1 + cosine))
        """,
        ("0.5 * (initial", "(initial", "without `/ 2`"),
        (
            "(1 + cosine)",
            "(1 - cosine)",
            "with `- math.cos(math.pi * count / self.T_max)` in the place of `+ math.cos(math.pi * count / "
            "self.T_max)`",
        ),
        ("self.eta_min + 0.5", "0.5", "without `self.eta_min`"),
        ("(initial_lr - self.eta_min)", "initial_lr", "without `- self.eta_min`"),
        (
            "np.pi * count",
            "2 * np.pi * count",
            "with `math.cos(2 * (math.pi * count / self.T_max))` in the place of `math.cos(math.pi * count / "
            "self.T_max)`",
        ),
        ("np.pi * count", "np.pi * (count + 1)", "with `count + 1` in the place of `count`"),
        ("np.pi * count", "np.pi * min(count, self.T_max)", "with `min(count, self.T_max)` in the place of `count`"),
        (
            "self.eta_min + 0.5 * (initial_lr - self.eta_min)",
            "initial_lr",
            "without `/ 2`, and for eta_min=0.0: your code ignores `eta_min`",
        ),
        ("(1 + cosine)", "cosine", "without `1`"),
    ),
    "cosine_annealing_warm_restarts": Student(
        """
        def lr(self, initial_lr, count):
            length = self.T_0
            while count >= length:
                count, length = count - length, length * self.T_mult
            return self.eta_min + (initial_lr - self.eta_min) / 2 * (1 + math.cos(math.pi * count / length))
        """,
        ("length * self.T_mult", "length", "Each further fall takes T_mult times as long"),
        ("count >= length", "count > length", "with `since > length` in the place of `since >= length`"),
        (
            "count, length = count - length, length * self.T_mult",
            "length *= self.T_mult\n        count -= length",
            "The fall that is over is taken off first",
        ),
        (
            "while count >= length:\n        count, length = count - length, length * self.T_mult",
            "pass",
            "After each fall it begins anew",
        ),
        ("/ 2 *", "*", "1 + cos goes from 2 to 0."),
        ("1 + math.cos", "1 - math.cos", "It begins at the minimum"),
        ("length * self.T_mult", "length + self.T_mult", None),
    ),
    "cyclic_lr": Student(
        """
        def lr(self, initial_lr, count):
            return self.base_lr + (self.max_lr - self.base_lr) * self.height(count)

        def momentum(self, initial_momentum, count):
            return self.max_momentum - (self.max_momentum - self.base_momentum) * self.height(count)

        def height(self, count):
            up = self.step_size_up
            period = up + (up if self.step_size_down is None else self.step_size_down)
            cycle, place = divmod(count, period)
            height = place / up if place <= up else (period - place) / (period - up)
            return height * {"triangular": 1, "triangular2": 0.5**cycle, "exp_range": self.gamma**count}[self.mode]
        """,
        ("self.gamma**count", "self.gamma**cycle", "The factor gamma comes with each step, not with each cycle."),
        (
            "self.max_momentum - (self.max_momentum - self.base_momentum)",
            "self.base_momentum + (self.max_momentum - self.base_momentum)",
            "The momentum moves against the lr",
        ),
    ),
    "one_cycle_lr": Student(
        """
        def lr(self, initial_lr, count):
            first = self.max_lr / self.div_factor
            least = first / self.final_div_factor
            return self.way(count, [first, self.max_lr, *([first] if self.three_phase else []), least])

        def momentum(self, initial_momentum, count):
            low, high = self.base_momentum, self.max_momentum
            return self.way(count, [high, low, *([high] if self.three_phase else []), high])

        def way(self, count, values):
            peak, last = self.pct_start * self.total_steps - 1, self.total_steps - 1
            ends = [0, peak, *([2 * self.pct_start * self.total_steps - 2] if self.three_phase else []), last]
            part = next((n for n in range(len(ends) - 1) if count <= ends[n + 1]), len(ends) - 2)
            done = (count - ends[part]) / (ends[part + 1] - ends[part])
            if self.anneal_strategy == "linear":
                return values[part] + (values[part + 1] - values[part]) * done
            return values[part + 1] + (values[part] - values[part + 1]) / 2 * (1 + math.cos(math.pi * done))
        """,
        ("least = first / self", "least = self.max_lr / self", "final_div_factor divides the lr at the beginning."),
        (
            "low, high = self.base_momentum, self.max_momentum",
            "high, low = self.base_momentum, self.max_momentum",
            "The momentum goes against the lr",
        ),
        (
            "peak, last = self.pct_start * self.total_steps - 1",
            "peak, last = self.pct_start * self.total_steps",
            "of n steps, the last has the count n - 1",
        ),
        ("(count - ends[part]) / (ends", "count / (ends", "done goes from 0, where the phase begins, to 1"),
        ("(ends[part + 1] - ends[part])", "ends[part + 1]", "done goes from 0, where the phase begins, to 1"),
        (", self.total_steps - 1", ", self.total_steps", "of n steps, the last has the count n - 1"),
        ("/ 2 * (1 + math.cos", "* (1 + math.cos", "1 + cos goes from 2 to 0."),
        ('if self.anneal_strategy == "linear"', "if False", "your code ignores `anneal_strategy`"),
    ),
}
