"""Every exercise, in chapters, and the components that aren't exercises, each with the reason."""

from __future__ import annotations

import functools
import inspect
import re
from typing import Any, NamedTuple

from nn_manual import ops
from nn_manual.errors import ConfigError
from nn_manual.exercises.kinds.exercise import WITH_IT, Exercise
from nn_manual.exercises.kinds.of_layers import LayerExercise
from nn_manual.exercises.kinds.of_losses import LossExercise
from nn_manual.exercises.kinds.of_nets import NetExercise, small_net
from nn_manual.exercises.kinds.of_operations import OperationExercise
from nn_manual.exercises.kinds.of_optimizers import OptimizerExercise
from nn_manual.exercises.kinds.of_schedules import ScheduleExercise
from nn_manual.layers import Layer
from nn_manual.losses import Loss
from nn_manual.messages.text import nearest, quoted
from nn_manual.optim import Optimizer, Scheduler
from nn_manual.registry import components


class Chapter(NamedTuple):
    """A title, and the names of its exercises in the order in which they are best solved. `modules` are the modules
    whose other exercises follow them: a new component is an exercise of the chapter that has its module.
    """

    title: str
    first: tuple[str, ...]
    modules: tuple[str, ...]


SCHEDULES = Chapter("Schedules", ("step_lr", "cosine_annealing_lr"), ())
CHAPTERS = (
    Chapter(
        "Calculus of arrays",
        ("square", "tanh", "log", "power", "multiply", "sum", "mean", "outer", "matmul", "trace", "max"),
        ("ops.",),
    ),
    Chapter(
        "Linear maps and the squared error",
        ("linear", "mse_loss", "trace_loss"),
        ("layers.linear", "layers.shape"),
    ),
    Chapter(
        "Softmax and cross entropy",
        ("softmax", "log_softmax", "nll_loss", "cross_entropy_loss"),
        ("layers.softmax", "losses."),
    ),
    Chapter(
        "Activations",
        ("relu", "tanh_layer", "sigmoid", "silu", "softplus", "gelu"),
        (
            *("layers.activations", "layers.exponential_units", "layers.gated", "layers.hard", "layers.learned_slope"),
            *("layers.piecewise", "layers.random_slope", "layers.smooth"),
        ),
    ),
    Chapter(
        "Normalizations",
        ("rms_norm", "layer_norm", "batch_norm1d", "group_norm"),
        (
            *("layers.batch_norm", "layers.group_norm", "layers.instance", "layers.normalization", "layers.local"),
            *("layers.weight_norm", "layers.spectral_norm"),
        ),
    ),
    Chapter(
        "Convolution, pooling and images",
        ("avg_pool1d", "max_pool1d", "conv1d", "conv_transpose1d"),
        (
            *("layers.adaptive", "layers.average", "layers.convolution", "layers.folding", "layers.max_pool"),
            *("layers.padding", "layers.power_pool", "layers.rearranging", "layers.transposed", "layers.upsampling"),
        ),
    ),
    Chapter(
        "Sequences and recurrent nets",
        ("embedding", "rnn", "gru", "lstm"),
        (
            *("layers.embedding", "layers.gru", "layers.lstm", "layers.masked", "layers.padded"),
            *("layers.positions", "layers.rnn", "layers.time_pooling"),
        ),
    ),
    Chapter("Attention", ("causal_self_attention",), ("layers.attention", "layers.self_att")),
    Chapter("Layers of layers, noise, and others", ("residual", "dropout"), ("layers.",)),
    Chapter("Optimizers' updates", ("sgd", "rmsprop", "adam"), ("optim.",)),
    SCHEDULES,
    Chapter("A whole net", ("whole_net",), ()),
)

#: A part of a name that has fewer letters tells nothing, and one that more names have as little.
SHORTEST_PART, MOST_MEANT = 3, 5

EXERCISES: dict[type, type[Exercise]] = {
    Layer: LayerExercise,
    Loss: LossExercise,
    Optimizer: OptimizerExercise,
    Scheduler: ScheduleExercise,
}


class Listed(NamedTuple):
    """All exercises by their names, in the order of the chapters, and for each other component the reason."""

    exercises: dict[str, Exercise]
    chapters: dict[str, list[str]]
    left_out: dict[str, str]

    @property
    def path(self) -> list[str]:
        """The names in the order of the path: what each chapter begins with, then all others."""
        first = [name for chapter in CHAPTERS for name in chapter.first]
        return list(dict.fromkeys([*first, *self.exercises]))


@functools.cache
def every_exercise() -> Listed:
    """The exercises of all components of the package."""
    made: dict[str, Exercise] = {}
    left_out: dict[str, str] = {}
    for name in ops.__all__:
        operation = getattr(ops, name)
        if isinstance(operation, ops.Operation):
            made[name] = OperationExercise(name, operation, ("backward",))
    for kind, exercise_class in EXERCISES.items():
        for owner in components(kind).values():
            method = next(name for name in exercise_class.methods if hasattr(owner, name))
            chosen = _chosen(owner, kind, method)
            if chosen is not owner:
                left_out[owner.__name__] = f"its {method} is that of {chosen.__name__}"
                continue
            name = exercise_name(owner, kind)
            name = f"{name}_layer" if name in made else name
            made[name] = exercise_class(name, owner, _checked(owner, taken_out(owner, method)))
    made["whole_net"] = NetExercise("whole_net", small_net, ("whole_net",))
    chapters: dict[str, list[str]] = {chapter.title: list(chapter.first) for chapter in CHAPTERS}
    for name, exercise in made.items():
        if not any(name in names for names in chapters.values()):
            chapters[_chapter_of(exercise)].append(name)
    return Listed({name: made[name] for names in chapters.values() for name in names}, chapters, left_out)


def _chosen(owner: type, kind: type, method: str) -> type:
    """Of all components that have a method in common, the one that defines it, or else the first."""
    function = inspect.getattr_static(owner, method)
    same = [own for own in components(kind).values() if inspect.getattr_static(own, method, None) is function]
    return next((own for own in same if method in vars(own)), same[0])


def taken_out(owner: type, method: str) -> tuple[str, ...]:
    """What the reader writes: this method, and those that go with it. Where forward saves the derivative itself, this
    is forward: it would show what is asked.
    """
    if method == "derivative" and inspect.getsource(getattr(owner, method)).rstrip().endswith("return saved"):
        return ("forward", method)
    return (method, *(other for other in WITH_IT.get(method, ()) if other in vars(owner)))


def _checked(owner: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    """These methods without momentum where no example moves it: nothing would check it."""
    if "momentum" not in names or any(schedule.moves_momentum for schedule in owner.examples()):
        return names
    return tuple(name for name in names if name != "momentum")


def _chapter_of(exercise: Exercise) -> str:
    if isinstance(exercise, ScheduleExercise):
        return SCHEDULES.title
    module = (exercise.owner.rule if isinstance(exercise.owner, ops.Operation) else exercise.owner).__module__
    own = module.partition(".")[2]
    return next(chapter.title for chapter in CHAPTERS if any(own.startswith(each) for each in chapter.modules))


def exercise_name(owner: type, kind: type) -> str:
    """LayerNorm is layer_norm, PReLU is prelu, RMSprop is rmsprop: as torch's functions, and its modules of optimizers,
    are called.
    """
    if kind is Optimizer:
        return owner.__name__.lower()
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])(?!LU)|(?<=[A-Z])(?=[A-Z][a-z])(?!ReLU)", "_", owner.__name__)
    return words.lower()


def find_exercise(name: str) -> Exercise:
    """The exercise with this name. Raises ConfigError, with the nearest name, where there is none, and with the reason
    where the component isn't an exercise.
    """
    listed = every_exercise()
    if name in listed.exercises:
        return listed.exercises[name]
    for other, reason in listed.left_out.items():
        if name.replace("_", "").lower() == other.lower():
            raise ConfigError(f"{quoted(name)} is no exercise: {reason}")
    by_title = {exercise.title: own for own, exercise in listed.exercises.items()}
    if name in by_title:
        raise ConfigError(f"there is no exercise {quoted(name)}: it is called {by_title[name]}")
    raise ConfigError(f"there is no exercise {quoted(name)}{_meant(name, list(listed.exercises))}")


def _meant(name: str, known: list[str]) -> str:
    """Which exercises were probably meant: those whose names contain this one, or else the nearest."""
    part = name.replace("_", "").lower()
    containing = [other for other in known if part in other.replace("_", "")] if len(part) >= SHORTEST_PART else []
    meant = containing or list(filter(None, [nearest(name, known)]))
    if not meant or len(meant) > MOST_MEANT:
        return "; nn-manual exercise lists them"
    return f"; did you mean {' or '.join(map(repr, meant))}?"
