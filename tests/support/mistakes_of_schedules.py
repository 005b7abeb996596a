"""The same of schedules."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "constant_lr": Student(
        """
        def lr(self, initial_lr, count):
            if count < self.total_iters or not self.total_iters:
                return self.factor * initial_lr
            return initial_lr
        """,
        ("count < self", "count <= self", "those from 0 to total_iters - 1"),
        (" or not self.total_iters", "", "With total_iters 0 the factor always holds"),
        ("count < self", "count > self", "The factor holds at first, and then no more."),
        (
            "count < self.total_iters or not self.total_iters",
            "count >= self.total_iters",
            "The factor holds at first, and then no more.",
        ),
        (
            "count < self.total_iters or not self.total_iters",
            "count >= self.total_iters > 0",
            "The factor holds at first, and then no more.",
        ),
    ),
    "exponential_lr": Student(
        """
        def lr(self, initial_lr, count):
            return initial_lr * self.gamma**count
        """,
        ("**count", "** (count + 1)", "The count begins with 0"),
        ("self.gamma**count", "math.exp(-self.gamma * count)", "gamma is itself the factor of one epoch"),
        ("self.gamma**count", "self.gamma * count", "Each epoch or step multiplies"),
        ("self.gamma**count", "(1 - self.gamma) ** count", "gamma is the part that is kept"),
    ),
    "polynomial_lr": Student(
        """
        def lr(self, initial_lr, count):
            if not self.total_iters:
                return initial_lr
            done = min(count, self.total_iters) / self.total_iters
            return initial_lr * (1 - done) ** self.power
        """,
        ("(1 - done) ** self.power", "(1 - done**self.power)", "The power is one of what is left"),
        ("(1 - done)", "done", "It falls with the part of the way that is left."),
        ("min(count, self.total_iters) /", "count /", "After total_iters the lr stays."),
        ("(1 - done) ** self.power", "(1 - done)", "without the power"),
        ("min(count, self", "min(count + 1, self", "The count begins with 0"),
    ),
    "chained_scheduler": Student(
        """
        def lr(self, initial_lr, count):
            for schedule in self.schedulers:
                initial_lr = schedule.lr(initial_lr, count)
            return initial_lr
        """,
        (
            "for schedule in self.schedulers:\n        initial_lr = schedule.lr(initial_lr, count)",
            "initial_lr = math.prod(one.lr(initial_lr, count) for one in self.schedulers)",
            "The initial lr counts once",
        ),
        (
            "for schedule in self.schedulers:\n        initial_lr = schedule.lr(initial_lr, count)",
            "initial_lr *= math.prod(one.lr(initial_lr, count) for one in self.schedulers)",
            "The initial lr counts once",
        ),
        (
            "for schedule in self.schedulers:\n        initial_lr = schedule.lr(initial_lr, count)",
            "initial_lr = sum(one.lr(initial_lr, count) for one in self.schedulers)",
            "The schedules' factors are multiplied",
        ),
        ("self.schedulers:", "self.schedulers[-1:]:", "The last schedule's lr alone is left."),
    ),
    "sequential_lr": Student(
        """
        def lr(self, initial_lr, count):
            begin, now = 0, self.schedulers[0]
            for milestone, schedule in zip(self.milestones, self.schedulers[1:]):
                if count >= milestone:
                    begin, now = milestone, schedule
            return now.lr(initial_lr, count - begin)
        """,
        ("count - begin", "count", "Each schedule begins with a count of 0"),
        ("count >= milestone", "count > milestone", "At its milestone a schedule has begun."),
        ("count - begin", "count - begin + 1", "The count begins with 0"),
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
    "reduce_lr_on_plateau": Student(
        """
        def observe(self, validation_loss):
            least = self.best * (1 - self.threshold) if self.threshold_mode == "rel" else self.best - self.threshold
            self.num_bad_epochs += 1
            if validation_loss < least:
                self.best, self.num_bad_epochs = validation_loss, 0
            if self.cooldown_counter:
                self.cooldown_counter -= 1
                self.num_bad_epochs = 0
            if self.num_bad_epochs > self.patience:
                self.num_bad_epochs, self.cooldown_counter = 0, self.cooldown
                self.num_reductions += 1

        def lr(self, initial_lr, count):
            for _ in range(self.num_reductions):
                lower = max(initial_lr * self.factor, self.min_lr)
                if initial_lr - lower > self.eps:
                    initial_lr = lower
            return initial_lr
        """,
        ("self.num_bad_epochs > self", "self.num_bad_epochs >= self", "As many bad epochs as patience are borne"),
        ("max(initial_lr * self.factor, self.min_lr)", "initial_lr * self.factor", "The lr never falls below min_lr."),
        ("if initial_lr - lower > self.eps:", "if True:", "A reduction by eps or less isn't made."),
        ("initial_lr - lower > self.eps", "initial_lr - lower >= self.eps", "with `lr - reduced >= self.eps`"),
        (
            "self.num_bad_epochs, self.cooldown_counter = 0, self.cooldown",
            "self.cooldown_counter = self.cooldown",
            "Behind a reduction the bad epochs are counted anew.",
        ),
        ("        self.num_bad_epochs = 0\n", "        pass\n", "While it cools down, bad epochs aren't counted."),
        ("if validation_loss < least:", "if validation_loss <= least:", "with `validation_loss <= self.best"),
        (
            "self.best, self.num_bad_epochs = validation_loss, 0",
            "self.num_bad_epochs = 0\n    self.best = validation_loss",
            "best is the lowest loss so far, not the last one.",
        ),
        (
            "self.best, self.num_bad_epochs = validation_loss, 0",
            "self.num_bad_epochs = 0\n    self.best = min(self.best, validation_loss)",
            "A loss that is lower by less than the threshold isn't better: best stays.",
        ),
        ("(1 - self.threshold)", "(1 + self.threshold)", "with `+ self.threshold` in the place of `- self.threshold`"),
    ),
}
