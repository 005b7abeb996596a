"""Mutants of optimizers and of learning-rate schedules that compute the same: each with the proof."""

# ruff: noqa: E501 - a line of the package is cited as it is

from __future__ import annotations

from benchmarks.mutation.survivors_of_activations import COMMUTES, SAME_SIGN

ORDER = "a sum or a mean over all elements does not depend on their order"
ZERO = "a number is 0 exactly where its negative, its double or its 1.001-fold is"
MOVED = "coefficients['moved_keep'] * exp_avg + coefficients['moved_add'] * direction"
ADDS_ZERO = "without it (0) the line adds or subtracts 0"
TIMES_ONE = "without dampening (1 - 0) * direction = direction"
NO_DECAY = "without weight decay the line multiplies by 1 - lr * 0 = 1"
CONSTANT = "it is the same number in each step"
WHOLE = "which of two whole numbers is the larger doesn't change if 1e-8, or a thousandth of 1, is added to one of them"
FEW = "which of two whole numbers below 1,000 is the larger doesn't change if one of them grows by a thousandth of itself"
COSINE = "cos(-x) = cos(x)"
MEET = (
    "where two phases meet, both give the same value, and no other count of the examples, which are below 100, lies within "
    "a thousandth of the end of a phase"
)
INTEGERS = "counts are integers, and so is the period: a little more fills no period"
PEAK = "height = height * (place / share if place <= share else (place - 1) / (share - 1))"
AT_THE_PEAK = "at the peak both lines give 1, and no other count of the examples lies so near to it"
SYMMETRIC = "the matrix is symmetric: it is its own transpose, and so is each power of it"
EITHER_WAY = "the iteration of a matrix and that of its transpose give the same: both move the singular values alone"
POLYNOMIAL = "polynomial = coefficients['b'] * gram + coefficients['c'] * (gram @ gram)"
ITERATION = "orthogonal = coefficients['a'] * orthogonal + polynomial @ orthogonal"
SIZE = "size = np.maximum(rms, coefficients['eps2']) * coefficients['most']"
ESTIMATE = "estimate = row_var * col_var / np.maximum(mean, coefficients['eps1'])"
UPDATE = "update = direction / np.sqrt(np.maximum(estimate, coefficients['eps1_squared']))"
CLIPPED = "param -= size / np.maximum(length / coefficients['d'], 1) * update"
MOST = "return {'keep': 1 - add, 'add': add, 'most': min(self.lr, 1 / math.sqrt(step)), 'decay': 1 - self.lr * self.weight_decay, 'eps1': self.eps1, 'eps1_squared': self.eps1 ** 2, 'eps2': self.eps2, 'd': self.d}"
NESTEROV = "return {'initial': 1.0 * (step == 1), 'mu': mu, 'mu_next': mu_next, 'weight_decay': self.weight_decay, 'decay': 1 - self.lr * self.weight_decay, 'keep': beta1, 'add': 1 - beta1, 'keep_sq': beta2, 'add_sq': 1 - beta2, 'eps': self.eps * correction, 'step_size': self.lr * correction}"
NEVER_NEAR_5 = "after no step of these examples it lies between 5 and 5.005, or nearer to 5 than 1e-8"
RECTIFIED = "scale = coefficients['adaptive'] / (np.sqrt(exp_avg_sq) + coefficients['eps']) + coefficients['plain']"
SQUARED = "squared = is_known * above / (is_known * below + 1 - is_known)"

#: The proof, as in survivors.py.
OPTIMIZERS: dict[tuple[str, str, str], str] = {
    **{
        (method, line, line.replace(part, f"previous(self, {part})", 1)): CONSTANT
        for method, line, part in (
            ("Adadelta.direction", "direction = direction + coefficients['weight_decay'] * param", "coefficients['weight_decay']"),
            ("SGD.move", "momentum_buffer *= coefficients['momentum']", "coefficients['momentum']"),
            ("SGD.move", "direction = direction + coefficients['momentum'] * momentum_buffer if self.nesterov else momentum_buffer", "coefficients['momentum']"),
            ("Adam.move", "direction = self.decay(direction, coefficients['decay'], param=param)", "coefficients['decay']"),
            *(
                (f"{name}.move", line, f"coefficients['{part}']")
                for name in ("Adam", "AdamW", "NAdam", "RAdam")
                for line, part in (
                    ("exp_avg *= coefficients['keep']", "keep"),
                    ("exp_avg += coefficients['add'] * direction", "add"),
                    ("exp_avg_sq *= coefficients['keep_sq']", "keep_sq"),
                    ("exp_avg_sq += coefficients['add_sq'] * direction * direction", "add_sq"),
                )
            ),
            ("ASGD.move", "param *= 1 - coefficients['lambd'] * eta", "coefficients['lambd']"),
            ("Adafactor.move", SIZE, "coefficients['eps2']"),
            ("Adafactor.move", ESTIMATE, "coefficients['eps1']"),
            ("Adafactor.move", UPDATE, "coefficients['eps1_squared']"),
            ("Adafactor.move", CLIPPED, "coefficients['d']"),
            ("RAdam.move", RECTIFIED, "coefficients['eps']"),
        )
    },
    ("SGD.move", "momentum_buffer += coefficients['undampened'] * direction if self.dampening else direction", "momentum_buffer += coefficients['undampened'] * direction"): TIMES_ONE,
    ("SGD.move", "momentum_buffer += coefficients['undampened'] * direction if self.dampening else direction", "momentum_buffer += coefficients['undampened'] * direction if -self.dampening else direction"): ZERO,
    ("SGD.move", "momentum_buffer += coefficients['undampened'] * direction if self.dampening else direction", "momentum_buffer += coefficients['undampened'] * direction if self.dampening * 1.001 else direction"): ZERO,
    ("SGD.move", "momentum_buffer += coefficients['undampened'] * direction if self.dampening else direction", "momentum_buffer += coefficients['undampened'] * direction if self.dampening * 2 else direction"): ZERO,
    ("SGD.move", "momentum_buffer += coefficients['undampened'] * direction if self.dampening else direction", "momentum_buffer += coefficients['undampened'] * direction if self.dampening + 1e-08 else direction"): TIMES_ONE,
    ("SGD.coefficients", "return {'lr': self.lr, 'weight_decay': self.weight_decay, 'momentum': self.momentum, 'undampened': 1 - self.dampening * (step > 1)}", "return {'lr': self.lr, 'weight_decay': self.weight_decay, 'momentum': self.momentum, 'undampened': 1 - self.dampening * (step > 1 * 1.001)}"): WHOLE,
    ("SGD.coefficients", "return {'lr': self.lr, 'weight_decay': self.weight_decay, 'momentum': self.momentum, 'undampened': 1 - self.dampening * (step > 1)}", "return {'lr': self.lr, 'weight_decay': self.weight_decay, 'momentum': self.momentum, 'undampened': 1 - self.dampening * (step > 1 + 1e-08)}"): WHOLE,
    ("ConstantLR.lr", "return initial_lr * (self.factor if count < self.total_iters or self.total_iters == 0 else 1)", "return initial_lr * (self.factor if count + 1e-08 < self.total_iters or self.total_iters == 0 else 1)"): WHOLE,
    ("LinearLR.lr", "progress = min(count, self.total_iters) / max(1, self.total_iters)", "progress = min(self.total_iters, count) / max(1, self.total_iters)"): COMMUTES,
    ("LinearLR.lr", "progress = min(count, self.total_iters) / max(1, self.total_iters)", "progress = min(count, self.total_iters) / max(self.total_iters, 1)"): COMMUTES,
    ("CyclicLR._at", "share, cycle = (self.step_size_up / period, 1 + count // period)", "share, cycle = (self.step_size_up / period, 1 + (count + 1e-08) // period)"): INTEGERS,
    ("CyclicLR._at", PEAK, PEAK.replace("place <= share", "place < share")): AT_THE_PEAK,
    ("CyclicLR._at", PEAK, PEAK.replace("place <= share", "place + 1e-08 <= share")): AT_THE_PEAK,
    ("CyclicLR._at", PEAK, PEAK.replace("place <= share", "place <= share + 1e-08")): AT_THE_PEAK,
    ('OneCycleLR._at', 'while count > phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end', 'while count >= phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end'): MEET,
    ('OneCycleLR._at', 'while count > phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end', 'while count * 1.001 > phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end'): MEET,
    ('OneCycleLR._at', 'while count > phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end', 'while count > phases[0].end * 1.001 and len(phases) > 1:\n    begin = phases.pop(0).end'): MEET,
    ('OneCycleLR._at', 'while count > phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end', 'while count > phases[0].end and len(phases) > 1 * 1.001:\n    begin = phases.pop(0).end'): WHOLE,
    ('OneCycleLR._at', 'while count > phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end', 'while count + 1e-08 > phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end'): MEET,
    ('OneCycleLR._at', 'while count > phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end', 'while count > phases[0].end + 1e-08 and len(phases) > 1:\n    begin = phases.pop(0).end'): MEET,
    ('OneCycleLR._at', 'while count > phases[0].end and len(phases) > 1:\n    begin = phases.pop(0).end', 'while count > phases[0].end and len(phases) > 1 + 1e-08:\n    begin = phases.pop(0).end'): WHOLE,
    ('OneCycleLR._between', 'return last + (first - last) * (1 + math.cos(math.pi * done)) / 2', 'return last + (first - last) * (1 + math.cos(-math.pi * done)) / 2'): COSINE,
    ('OneCycleLR._between', 'return last + (first - last) * (1 + math.cos(math.pi * done)) / 2', 'return last + (first - last) * (1 + math.cos(math.pi * -done)) / 2'): COSINE,
    ('OneCycleLR._between', 'return last + (first - last) * (1 + math.cos(math.pi * done)) / 2', 'return last + (first - last) * (1 + math.cos(-(math.pi * done))) / 2'): COSINE,
    **{
        ("Muon.move", line, line.replace(old, f"previous(self, {old})")): CONSTANT
        for line, names in (
            ("momentum_buffer *= coefficients['keep']", ["keep"]),
            ("momentum_buffer += coefficients['add'] * grad", ["add"]),
            ("direction = coefficients['add'] * grad + coefficients['keep'] * momentum_buffer", ["add", "keep"]),
            ("orthogonal = orthogonal / np.maximum(norm, coefficients['eps'])", ["eps"]),
            (POLYNOMIAL, ["b", "c"]),
            (ITERATION, ["a"]),
        )
        for old in (f"coefficients['{name}']" for name in names)
    },
    **{
        ("Muon.move", "is_tall = param.shape[0] > param.shape[1]", f"is_tall = {mutated}"): EITHER_WAY
        for mutated in (
            *("param.shape[0] >= param.shape[1]", "param.shape[0] < param.shape[1]"),
            *("-param.shape[0] > param.shape[1]", "param.shape[0] > -param.shape[1]"),
            *("param.shape[0] * 1.001 > param.shape[1]", "param.shape[0] > param.shape[1] * 1.001"),
            *("param.shape[0] * 2 > param.shape[1]", "param.shape[0] > param.shape[1] * 2"),
            *("param.shape[0] + 1e-08 > param.shape[1]", "param.shape[0] > param.shape[1] + 1e-08"),
        )
    },
    **{
        ("Muon.move", line, mutated): SYMMETRIC
        for line, mutated in (
            ("gram = orthogonal @ orthogonal.T", "gram = (orthogonal @ orthogonal.T).T"),
            *(
                (POLYNOMIAL, POLYNOMIAL.replace(old, new))
                for old, new in (
                    (POLYNOMIAL.removeprefix("polynomial = "), f"({POLYNOMIAL.removeprefix('polynomial = ')}).T"),
                    ("coefficients['b'] * gram", "(coefficients['b'] * gram).T"),
                    ("coefficients['b'] * gram", "coefficients['b'] * gram.T"),
                    ("coefficients['c'] * (gram @ gram)", "(coefficients['c'] * (gram @ gram)).T"),
                    ("(gram @ gram)", "(gram @ gram).T"),
                    ("(gram @ gram)", "(gram.T @ gram)"),
                    ("(gram @ gram)", "(gram @ gram.T)"),
                )
            ),
            (ITERATION, ITERATION.replace("polynomial", "polynomial.T")),
        )
    },
    ("Muon.move", "norm = np.sqrt(np.sum(direction * direction))", "norm = np.sqrt(np.sum((direction * direction).T))"): ORDER,
    ("Muon.move", "orthogonal = orthogonal / np.maximum(norm, coefficients['eps'])", "orthogonal = orthogonal / np.maximum(coefficients['eps'], norm)"): COMMUTES,
    ("Muon._ratio", "return 0.2 * math.sqrt(max(rows, columns))", "return 0.2 * math.sqrt(max(columns, rows))"): COMMUTES,
    ("Muon._ratio", "return math.sqrt(max(1, rows / columns))", "return math.sqrt(max(rows / columns, 1))"): COMMUTES,
    ("CosineAnnealingLR.lr", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * count / self.T_max)) / 2", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(-(math.pi * count / self.T_max))) / 2"): COSINE,
    ("CosineAnnealingLR.lr", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * count / self.T_max)) / 2", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(-(math.pi * count) / self.T_max)) / 2"): COSINE,
    ("CosineAnnealingLR.lr", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * count / self.T_max)) / 2", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * count / -self.T_max)) / 2"): COSINE,
    ("CosineAnnealingLR.lr", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * count / self.T_max)) / 2", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(-math.pi * count / self.T_max)) / 2"): COSINE,
    ("CosineAnnealingLR.lr", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * count / self.T_max)) / 2", "return self.eta_min + (initial_lr - self.eta_min) * (1 + math.cos(math.pi * -count / self.T_max)) / 2"): COSINE,
    ("ReduceLROnPlateau.lr", "reduced = max(lr * self.factor, self.min_lr)", "reduced = max(self.min_lr, lr * self.factor)"): COMMUTES,
    ("ReduceLROnPlateau.observe", "self.cooldown_counter = max(0, self.cooldown_counter - 1)", "self.cooldown_counter = max(self.cooldown_counter - 1, 0)"): COMMUTES,
    ("ReduceLROnPlateau.observe", "self.num_bad_epochs = 0 if is_better or self.cooldown_counter > 0 else self.num_bad_epochs + 1", "self.num_bad_epochs = 0 if is_better or self.cooldown_counter * 1.001 > 0 else self.num_bad_epochs + 1"): SAME_SIGN,
    ("ReduceLROnPlateau.observe", "self.num_bad_epochs = 0 if is_better or self.cooldown_counter > 0 else self.num_bad_epochs + 1", "self.num_bad_epochs = 0 if is_better or self.cooldown_counter * 2 > 0 else self.num_bad_epochs + 1"): SAME_SIGN,
    ("ReduceLROnPlateau.observe", "self.num_bad_epochs = 0 if is_better or self.cooldown_counter > 0 else self.num_bad_epochs + 1", "self.num_bad_epochs = 0 if is_better or self.cooldown_counter > 0 + 1e-08 else self.num_bad_epochs + 1"): WHOLE,
    ("ReduceLROnPlateau.observe", "self.num_bad_epochs > self.patience", "self.num_bad_epochs > self.patience * 1.001"): FEW,
    ("ReduceLROnPlateau.observe", "self.num_bad_epochs > self.patience", "self.num_bad_epochs > self.patience + 1e-08"): WHOLE,
    ("Adam.decay", "decayed: Array = direction + factor * param", "decayed: Array = direction + previous(self, factor) * param"): CONSTANT,
    ("Adam.move", "np.maximum(vectors['max_exp_avg_sq'], exp_avg_sq, out=vectors['max_exp_avg_sq'])", "np.maximum(exp_avg_sq, vectors['max_exp_avg_sq'], out=vectors['max_exp_avg_sq'])"): COMMUTES,
    ("AdamW.move", "np.maximum(vectors['max_exp_avg_sq'], exp_avg_sq, out=vectors['max_exp_avg_sq'])", "np.maximum(exp_avg_sq, vectors['max_exp_avg_sq'], out=vectors['max_exp_avg_sq'])"): COMMUTES,
    **{
        (method, f"self.{setting}", mutated.format(f"self.{setting}")): ZERO
        for method, setting in (
            *(("SGD.move", "momentum"), ("RMSprop.move", "momentum"), ("Adagrad.move", "initial_accumulator_value")),
            *((f"{name}.move", "weight_decay") for name in ("Adafactor", "Adam", "AdamW", "Lion", "Muon")),
            ("Adadelta.direction", "weight_decay"),
        )
        for mutated in ("-{}", "{} * 1.001", "{} * 2")
    },
    **{
        (method, f"self.{setting}", mutated.format(f"self.{setting}")): proof
        for method, setting, proof in (
            ("Adagrad.move", "initial_accumulator_value", ADDS_ZERO),
            *((name, "weight_decay", ADDS_ZERO) for name in ("Adadelta.direction", "Adam.move")),
            *((name, "weight_decay", NO_DECAY) for name in ("Adafactor.move", "AdamW.move", "Lion.move", "Muon.move")),
        )
        for mutated in ("True", "{} + 1e-08")
    },
    **{
        ("Lion.move", line, line.replace(moved, f"{changed} * {factor}")): SAME_SIGN
        for line, moved, changed in (
            ("param -= coefficients['lr'] * np.sign(moved)", "moved", "moved"),
            (f"moved = {MOVED}", MOVED, f"({MOVED})"),
        )
        for factor in ("1.001", "2")
    },
    ("ASGD.coefficients", "add = 1 / max(1, step - 1 - self.t0)", "add = 1 / max(step - 1 - self.t0, 1)"): COMMUTES,
    ("NAdam.coefficients", NESTEROV, NESTEROV.replace("1.0 * (step == 1)", "step == 1")): "as a number of the dtype, True is 1",
    **{
        (f"Adafactor.{method}", line, line.replace(part, mutated)): proof
        for method, line, part, mutated, proof in (
            ("move", "rms = np.sqrt(np.sum(param * param) / param.size)", "param * param", "(param * param).T", ORDER),
            ("move", "length = np.sqrt(np.sum(update * update) / param.size)", "update * update", "(update * update).T", ORDER),
            ("move", SIZE, "rms, coefficients['eps2']", "coefficients['eps2'], rms", COMMUTES),
            ("move", ESTIMATE, "mean, coefficients['eps1']", "coefficients['eps1'], mean", COMMUTES),
            ("move", UPDATE, "estimate, coefficients['eps1_squared']", "coefficients['eps1_squared'], estimate", COMMUTES),
            ("move", CLIPPED, "length / coefficients['d'], 1", "1, length / coefficients['d']", COMMUTES),
            ("move", "param.ndim > 1", "1", "1 * 1.001", WHOLE),
            ("move", "param.ndim > 1", "1", "1 + 1e-08", WHOLE),
            ("coefficients", MOST, "self.eps1 **", "(-self.eps1) **", "(-x)**2 = x**2"),
            ("coefficients", MOST, "self.lr, 1 / math.sqrt(step)", "1 / math.sqrt(step), self.lr", COMMUTES),
        )
    },
    **{
        ("RAdam.coefficients", "is_known = known > 5", f"is_known = {mutated}"): NEVER_NEAR_5
        for mutated in ("known >= 5", "known > 5 * 1.001", "known + 1e-08 > 5", "known > 5 + 1e-08")
    },
    ("RAdam.coefficients", SQUARED, SQUARED.replace("is_known * below", "below")): "where it isn't known, 0 is divided: by what doesn't matter",
}
