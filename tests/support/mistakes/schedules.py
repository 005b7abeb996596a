"""Schedules: those that go one way, by the loss, or in parts."""

from __future__ import annotations

from student import Student

STUDENTS = {
    "step_lr": Student(
        """
        def lr(self, initial_lr, count):
            return initial_lr * self.gamma ** (count // self.step_size)
        """,
        (
            "count // self.step_size",
            "count / self.step_size",
            "with `count / self.step_size` in the place of `count // self.step_size`",
        ),
        (
            "initial_lr * self.gamma ** (count // self.step_size)",
            "initial_lr * self.gamma ** count",
            "with `count` in the place of `count // self.step_size`",
        ),
        ("(count // self", "((count + 1) // self", "with `count + 1` in the place of `count`"),
        (
            "initial_lr * self.gamma ** (count // self.step_size)",
            "initial_lr",
            "with `initial_lr` in the place of `_decayed(initial_lr, self.gamma, count // self.step_size)`",
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
    "multi_step_lr": Student(
        """
        def lr(self, initial_lr, count):
            return initial_lr * self.gamma ** sum(milestone <= count for milestone in self.milestones)
        """,
        ("in self.milestones)", "in set(self.milestones))", "A milestone that stands twice counts twice."),
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
    "linear_lr": Student(
        """
        def lr(self, initial_lr, count):
            t = min(count, self.total_iters) / max(1, self.total_iters)
            return initial_lr * ((1 - t) * self.start_factor + t * self.end_factor)
        """,
        ("min(count, self.total_iters)", "count", "without the `min` of `min(count, self.total_iters)`"),
        (
            "(1 - t) * self.start_factor + t * self.end_factor",
            "t * self.start_factor + (1 - t) * self.end_factor",
            "with `1 - progress` in the place of `progress`",
        ),
        (
            "(1 - t) * self.start_factor + t * self.end_factor",
            "self.start_factor + t * self.end_factor",
            "without `- self.start_factor`",
        ),
        (
            "max(1, self.total_iters)",
            "max(1, self.total_iters - 1)",
            "with `self.total_iters - 1` in the place of `self.total_iters`",
        ),
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
}
