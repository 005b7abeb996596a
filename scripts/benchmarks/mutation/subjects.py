"""What is mutated, and the checks that each mutant goes through: the catalogue's, and those of a deeper net."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from benchmarks.mutation.handwritten import handwritten
from benchmarks.mutation.mutants import Mutant, Returns, mutants
from nn_manual.arrays import BLOCK_SIZE, Array, Shape
from nn_manual.check.catalogue.cases import CaseResult, layer_cases, loss_cases, optimizer_cases, scheduler_cases
from nn_manual.check.catalogue.input_kinds import KINDS, draw
from nn_manual.check.catalogue.inputs import with_lengths
from nn_manual.check.catalogue.targets import draw_target
from nn_manual.check.judge.report import GradientReport
from nn_manual.check.whole_step.checker import GradientChecker
from nn_manual.check.whole_step.gradients import check_gradients
from nn_manual.defaults import defines
from nn_manual.errors import GradientMismatch
from nn_manual.layers import Layer, LayerWithLengths, Linear, Sigmoid, Tanh
from nn_manual.layers.composite import buffer_names, has_buffers
from nn_manual.losses import Loss, MSELoss
from nn_manual.model import Sequential
from nn_manual.optim import SGD, Optimizer, Scheduler
from nn_manual.optim.l2 import WithL2
from nn_manual.registry import components

SEED = 0

#: The optimizer of a net in which something else is mutated.
MOMENTUM = functools.partial(SGD, momentum=0.9)


#: The methods that forward and backward of a layer call to compute, without those that only look at shapes.
LAYER_HELPERS = (
    *("_exact", "_tanh", "one_way", "one_way_backward", "over_all_times", "stacked", "stacked_backward", "_turn"),
    "run",
    *("_derivatives", "_nonlinearity", "_weight", "_count", "_scale", "matrices", "_neighbours", "_normalized_rows"),
    *("_grad_of_rows", "_places", "_image", "_write_grad_weight", "_add_bias", "_write_grad_bias"),
    *("around", "back", "sources", "moved", "moved_back", "_largest", "_to_places", "_take_larger"),
    *("_over", "columns", "images", "_corners", "_first"),
    *("_attend", "_map", "_map_backward", "_scores", "_exponential", "function", "passes", "write_grad_weight"),
    *("_repeated", "_add_up", "_kept"),
    *("weight_of", "write_grads", "_norm", "_matrix", "_products", "_iterate", "_normalize", "_value"),
)

#: The same of a loss.
LOSS_HELPERS = ("divided", "num_terms", "weighted", "positive", "constant", "states")


class Trial(NamedTuple):
    """Cases for a mutant, and how a failure must begin: with the label of the part to blame, and with the prefix of its
    tensors' names.
    """

    cases: Iterable[CaseResult]
    label: str
    prefix: str


@dataclass(frozen=True)
class Subject:
    """A class whose methods are mutated. For each method, `methods` has what comes from its returns, and everything
    that it computes; `trials(class, dtype)` are the checks.
    """

    owner: type
    methods: dict[str, tuple[Returns, frozenset[str]]]
    trials: Callable[[Any, str], Iterator[Trial]]

    def mutants(self) -> Iterator[Mutant]:
        """The generated mutants, then those written by hand."""
        for method, (returns, tensors) in self.methods.items():
            yield from mutants(self.owner, method, returns, tensors, self._run)
        yield from handwritten(self.owner)

    def _run(self, changed: type) -> None:
        """Run the first cases of every trial: these take each branch of a method."""
        for trial in self.trials(changed, "float32"):
            for _ in itertools.islice(trial.cases, 3):
                pass


def subjects() -> list[Subject]:
    """Every layer, loss, optimizer and schedule that a config can name, and Sequential; without those that have all
    their formulas from another one.
    """
    # The sum is what the model makes of a shared parameter's gradients.
    whole = frozenset({"Sequential", "0.grad_weight + 2.grad_weight"})
    every = [
        *(_layer(owner) for owner in components(Layer).values()),
        *(_loss(owner) for owner in components(Loss).values()),
        Subject(
            Sequential,
            {"forward": ((whole, whole), whole), "backward": ((whole,), whole), "backward_parameters": ((), whole)},
            _sequential_trials,
        ),
        *(_optimizer(owner) for owner in components(Optimizer).values()),
        *(_scheduler(owner) for owner in components(Scheduler).values()),
    ]
    return [subject for subject in every if subject.methods]


def _layer(owner: type[Layer]) -> Subject:
    layers = [layer for layer, _ in owner.examples()]
    if layers[0].children():  # whatever it makes, and whatever it gives to its layers
        whole = frozenset({""})
        known = {"forward": ((whole, whole), whole), "backward": ((whole,), whole), "infer": ((whole,), whole)}
        known |= {"update_buffers": ((), whole), "run": ((whole, whole), whole)}
        known |= dict.fromkeys(("summed", "joined"), ((whole,), whole))
        return Subject(owner, _not_before(owner, Layer, known), _layer_trials)
    parameters = {f"grad_{name}" for layer in layers for name in layer.parameter_shapes()}
    buffers = frozenset(name for layer in layers for name in buffer_names(layer))
    output, grad_input, infer = (frozenset({name}) for name in ("output", "grad_input", "infer"))
    grads = grad_input | parameters
    evaluated = infer if defines(owner, "infer") else frozenset()  # it may run forward
    known = {
        "forward": ((output | evaluated, grads | buffers | evaluated), output | grads | buffers | evaluated),
        "infer": ((infer,), infer),
        "_affine": ((output | infer,), output | infer),
        "update_buffers": ((), buffers),
        **dict.fromkeys(("_move", "_move_running"), ((), buffers)),
        "backward": ((grad_input,), grads),
        "derivative": ((grad_input,), grads),
        "backward_parameters": ((), frozenset(parameters)),
        **dict.fromkeys(LAYER_HELPERS, ((output | grads | buffers | evaluated,), output | grads | buffers | evaluated)),
    }
    # What a layer has from another one is mutated there.
    others = [base for base in owner.__mro__[1:] if base in components(Layer).values()]
    own = [name for name in known if not any(_same(owner, base, name) for base in others)]
    return Subject(owner, _not_before(owner, Layer, {name: known[name] for name in own}), _layer_trials)


def _same(owner: type, base: type, name: str) -> bool:
    """Whether a method of a class is that of its base, or neither has it."""
    return getattr(owner, name, None) is getattr(base, name, None)


def _loss(owner: type[Loss]) -> Subject:
    value, of_prediction, of_target = (frozenset({name}) for name in ("loss", "grad_prediction", "grad_target"))
    known = {
        "forward": ((value, of_prediction | of_target), value | of_prediction | of_target),
        "_labels": ((value | of_prediction, value | of_prediction), value | of_prediction),
        "_q": ((value | of_prediction, value | of_prediction), value | of_prediction),
        "counted": ((value | of_prediction,), value | of_prediction),
        "backward": ((of_prediction,), of_prediction),
        "term": ((value, of_prediction | of_target), value | of_prediction | of_target),
        "derivative": ((of_prediction,), of_prediction),
        "backward_target": ((of_target,), of_target),
        **dict.fromkeys(LOSS_HELPERS, ((value | of_prediction | of_target,), value | of_prediction | of_target)),
    }
    return Subject(owner, _not_before(owner, Loss, known), _loss_trials)


def _not_before(
    owner: type, kind: type, known: dict[str, tuple[Returns, frozenset[str]]]
) -> dict[str, tuple[Returns, frozenset[str]]]:
    """Those of the known methods that a class has. What several have from one base is mutated in the first of them, and
    a layer's helper again in the first that has buffers, which may be made of what others don't use.
    """
    classes: list[type] = list(components(kind).values())
    before = classes[: classes.index(owner)] if owner in classes else []
    others = [other for other in before if not issubclass(other, owner)]  # which has the owner's methods
    alike = [other for other in others if _with_buffers(other)] if _with_buffers(owner) else others
    own = [
        name
        for name in known
        if not any(_same(owner, base, name) for base in [kind, *(alike if name in LAYER_HELPERS else others)])
    ]
    return {name: known[name] for name in own}


def _with_buffers(owner: type) -> bool:
    return issubclass(owner, Layer) and any(has_buffers(layer) for layer, _ in owner.examples())


def _optimizer(owner: type[Optimizer]) -> Subject:
    anything = frozenset({""})  # all that an optimizer changes
    returns: dict[str, Returns] = {"move": ()}
    returns |= dict.fromkeys(("coefficients", "decay_factor", "decay", "direction", "_ratio"), (anything,))
    methods = {name: (returns[name], anything) for name in returns if hasattr(owner, name)}
    if "direction" in methods and owner not in firsts_with_direction():
        del methods["direction"]  # which is mutated there
    return Subject(owner, methods, _optimizer_trials)


def firsts_with_direction() -> set[type[Optimizer]]:
    """The first optimizer with each way to L2 regularization."""
    owners = [owner for owner in components(Optimizer).values() if issubclass(owner, WithL2)]
    return set({owner.direction: owner for owner in reversed(owners)}.values())


def _scheduler(owner: type[Scheduler]) -> Subject:
    lr, momentum, both = frozenset({"lr"}), frozenset({"momentum"}), frozenset({"lr", "momentum"})
    methods: dict[str, tuple[Returns, frozenset[str]]] = {"lr": ((lr,), lr), "observe": ((), lr)}
    if any(scheduler.moves_momentum for scheduler in owner.examples()):
        methods |= {"momentum": ((momentum,), momentum)}
    methods |= dict.fromkeys(("_phases", "_at", "_between"), ((both,), both))
    return Subject(owner, {name: methods[name] for name in methods if name in vars(owner)}, _scheduler_trials)


def _layer_trials(owner: type[Layer], dtype: str) -> Iterator[Trial]:
    """Each example alone, and in the middle of a net; then those of the classes with lengths that are made of this
    one.
    """
    for each in (owner, *_with_lengths(owner)):
        for layer, shape in each.examples():
            yield Trial(layer_cases(layer, shape, dtype, SEED), f"0 ({each.__name__})", "0.")
        for net, place, shape in layer_nets(each, dtype):
            yield Trial(net_cases(net, MSELoss(), shape), f"{place} ({each.__name__})", f"{place}.")


def _with_lengths(owner: type[Layer]) -> Iterator[type[Layer]]:
    """The classes with lengths that are made of a class, with the mistakes of `owner`, which is the class or has
    mistakes, in the methods that they have from it: those that have none are left out.
    """
    known = components(Layer).values()
    right = owner if owner in known else owner.__mro__[1]
    mistakes = {} if right is owner else {name: made for name, made in vars(owner).items() if inspect.isroutine(made)}
    for heir in known:
        if heir is not right and issubclass(heir, right) and issubclass(heir, LayerWithLengths):
            inherited = {name: made for name, made in mistakes.items() if _same(heir, right, name)}
            if inherited or right is owner:
                yield type(heir.__name__, (heir,), inherited)


def layer_nets(owner: type[Layer], dtype: str) -> Iterator[tuple[Sequential, int, Shape]]:
    """For each example, a net with the example in its middle, the example's place there, and the shape of the net's
    input.
    """
    for layer, (*leading, in_features) in owner.examples():
        out_features = layer.output_shape((*leading, in_features))[-1]
        if isinstance(layer.domain, range):  # no layer can stand before it
            net = Sequential(layer, Tanh(), Linear(out_features, 3), seed=SEED, dtype=dtype)
            yield net, 0, (*leading, in_features)
        else:
            before, after = (Linear(3, in_features), Tanh()), (Tanh(), Linear(out_features, 3))
            yield Sequential(*before, layer, *after, seed=SEED, dtype=dtype), 2, (*leading, 3)


def _loss_trials(owner: type[Loss], dtype: str) -> Iterator[Trial]:
    """Each example after a layer that does nothing, and after a net."""
    for loss in owner.examples():
        yield Trial(loss_cases(loss, dtype, SEED), "loss", "loss.")
    for loss in owner.examples(num_outputs=3):
        yield Trial(net_cases(loss_net(loss, dtype), loss, (3, 3)), "loss", "loss.")


def loss_net(loss: Loss, dtype: str) -> Sequential:
    """The net before a loss; its input and its output are (batch, 3). What a loss takes, if not any number, may lie
    between 0 and 1.
    """
    last = [] if loss.domain == "real" else [Sigmoid()]
    return Sequential(Linear(3, 3), Tanh(), Linear(3, 3), *last, seed=SEED, dtype=dtype)


def _sequential_trials(owner: type[Sequential], dtype: str) -> Iterator[Trial]:
    """A net whose first layer has no parameters, one with a Sequential in it, and one with a shared parameter."""
    net = owner(Linear(3, 3), Tanh(), Linear(3, 3), tied=[("0.weight", "2.weight")], seed=SEED, dtype=dtype)
    yield Trial(net_cases(net, MSELoss(), (3, 3)), "Sequential", "")
    for inner in ([Linear(3, 3), Tanh()], [owner(Linear(3, 3), Tanh())]):
        net = owner(Tanh(), *inner, Linear(3, 3), seed=SEED, dtype=dtype)
        yield Trial(net_cases(net, MSELoss(), (3, 3)), "Sequential", "")


def _optimizer_trials(owner: type[Optimizer], dtype: str) -> Iterator[Trial]:
    """Each setting, and a net of one matrix: it fills two of the blocks that an elementwise step goes through. Others
    go through one parameter after the other: from a second one, `previous` would have another shape.
    """
    for settings in owner.examples():
        yield Trial(optimizer_cases(owner, settings, dtype, SEED), "optimizer", "")
    examples, sizes = owner.examples(), (4, 3)
    if owner.is_elementwise:
        examples, sizes = examples[:2], (512, 2 * BLOCK_SIZE // 512)
    for settings in examples:
        net = Sequential(Linear(*sizes, bias=False), seed=SEED, dtype=dtype)
        optimizer = functools.partial(owner, **settings)
        yield Trial(net_cases(net, MSELoss(), (2, sizes[0]), ("random",), optimizer), "optimizer", "")


def _scheduler_trials(owner: type[Scheduler], dtype: str) -> Iterator[Trial]:
    """Each example, once: a schedule has no dtype."""
    base: Any = owner.__mro__[1]
    right = base if base.__name__ == owner.__name__ else owner
    for scheduler in right.examples() if dtype == "float32" else []:
        object.__setattr__(scheduler, "__class__", owner)  # a mistake may keep one from being made, or change a field
        yield Trial(scheduler_cases(scheduler), "scheduler", "")


def net_cases(
    net: Sequential,
    loss: Loss,
    input_shape: Shape,
    kinds: Iterable[str] = tuple(KINDS),
    make_optimizer: Callable[..., Optimizer] = MOMENTUM,
) -> Iterator[CaseResult]:
    """A net checked on each kind of input, then trained on it for three steps, of which the second is not checked."""
    generator = np.random.default_rng(SEED)
    optimizer = make_optimizer(net, lr=0.1)
    checker = GradientChecker(net, loss, optimizer)
    for kind, step in itertools.product(kinds, range(4)):
        net.num_steps += 1
        input, target = batch(net, loss, input_shape, kind, generator)
        description = f"{kind} input, step {step} of a net"
        if step == 0:
            report = check_gradients(net, loss, input, target)
        elif step == 2:
            checker.run(input, target)
            optimizer.step()
            continue
        else:
            report = _step_report(checker, optimizer, (input, target))
        yield CaseResult(description, len(report.comparisons), 0.0, None if report.agrees else report)


def batch(
    net: Sequential, loss: Loss, input_shape: Shape, kind: str, generator: np.random.Generator
) -> tuple[Any, Array]:
    """An input of this kind, with lengths if a layer heeds some, and a target, numbers or labels as the loss takes
    them.
    """
    dtype, output_shape = net.dtype.name, net.output_shape(input_shape)
    input = with_lengths(net, draw(kind, input_shape, dtype, generator, net.domain), generator)
    return input, draw_target(loss, "random", output_shape, dtype, generator)


def _step_report(checker: GradientChecker, optimizer: Optimizer, batch: tuple[Any, Any]) -> GradientReport:
    """A training step, checked as the trainer does: a report of its failure, or an empty one."""
    try:
        with checker.recording():
            checker.run(*batch)
            optimizer.step()
        checker.compare()
    except GradientMismatch as mismatch:
        report: GradientReport = mismatch.report
        return report
    return GradientReport(())
