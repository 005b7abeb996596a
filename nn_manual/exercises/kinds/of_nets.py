"""A whole net as an exercise: forward is given line by line, and the reader writes the gradient of each value."""

from __future__ import annotations

import ast
import functools
import linecache
import re
import textwrap
import traceback
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.check.catalogue.input_kinds import draw
from nn_manual.check.catalogue.labels import label
from nn_manual.errors import is_from_outside
from nn_manual.exercises.kinds.exercise import Case, Exercise, NotASolution, Reached, Results
from nn_manual.exercises.kinds.formula_words import words_of_layer, words_of_loss
from nn_manual.exercises.kinds.formulas import Formula, evaluate, formulas
from nn_manual.exercises.kinds.frozen import freeze
from nn_manual.layers import Layer, LayerNorm, Linear, Softmax, Tanh
from nn_manual.losses import Loss, MSELoss

SEED = 0
#: Examples in a batch, by what is special about them.
BATCHES = {"random input": 6, "tied input": 6, "random input, a batch of 1": 1}


class Net(NamedTuple):
    """The layers of a net, its loss, and the number of its inputs."""

    layers: list[Layer]
    loss: Loss
    num_inputs: int


def small_net() -> Net:
    """A net with matrix products, a mean, a smooth bend, and shares that depend on each other."""
    return Net([Linear(4, 5), LayerNorm(5), Tanh(), Linear(5, 3), Softmax(-1)], MSELoss(), 4)


class Lines(NamedTuple):
    """The formulas of a net: forward and the loss, then the way back. `values` are the names whose gradients are asked,
    in the order in which a mistake spreads, and `shapes` those of the parameters.
    """

    forward: list[Formula]
    backward: list[Formula]
    gradients: list[str]
    shapes: dict[str, Shape]


class NetExercise(Exercise):
    """`owner` makes the net. Its formulas are those of its layers, each name with the number of its layer behind it."""

    owner: Callable[[], Net]
    is_function: ClassVar[bool] = True

    @functools.cached_property
    def lines(self) -> Lines:
        """The formulas as lines of NumPy."""
        net = self.owner()
        forward: list[Formula] = []
        backward: list[Formula] = []
        gradients: list[str] = []
        shapes: dict[str, Shape] = {}
        shape: Shape = (2, net.num_inputs)
        for number, layer in enumerate(net.layers):
            names = _names(number, is_last=number == len(net.layers) - 1)
            shapes |= {f"{name}_{number}": own for name, own in layer.parameter_shapes().items()}
            words = words_of_layer(layer, np.zeros(shape))
            first, second = _halves(layer, "output", names, number, words)
            shape = layer.output_shape(shape)
            forward += first
            backward = [*second, *backward]
            asked = [names["grad_input"], *(f"grad_{name}_{number}" for name in layer.parameter_shapes())]
            gradients = [*asked, *gradients]
        words = words_of_loss(net.loss, np.zeros(shape)) | {"N": "prediction.size"}
        first, second = _halves(net.loss, "loss", {}, None, words)
        wanted = [line for line in second if line.name != "grad_target"]
        return Lines([*forward, *first], [*wanted, *backward], ["grad_prediction", *gradients], shapes)

    def formulas(self) -> list[Formula]:
        """The lines of the net."""
        return [*self.lines.forward, *self.lines.backward]

    def way_back(self) -> list[str]:
        """The lines of the gradients."""
        return [f"{line.name} = {line.expression}" for line in self.lines.backward]

    def cases(self) -> list[Case]:
        """Batches of each kind."""
        found = []
        for index, (kind, num_examples) in enumerate(BATCHES.items()):
            generator = np.random.default_rng([SEED, index])
            net = self.owner()
            shape: Shape = (num_examples, net.num_inputs)
            for layer in net.layers:
                shape = layer.output_shape(shape)
            known = {"input": draw(kind.split()[0], (num_examples, net.num_inputs), "float64", generator)}
            known["target"] = draw("random", shape, "float64", generator)
            known |= {name: draw("random", own, "float64", generator) for name, own in self.lines.shapes.items()}
            run = functools.partial(self._run, known=known)
            found.append(Case("the net", kind, run, known | {"np": np}, net.loss))
        return found

    def _run(self, own: Any, known: Mapping[str, Array]) -> Results:
        if own is self.owner:
            every = (*self.lines.forward, *self.lines.backward)
            results = evaluate(every, self.owner().loss, {**known, "np": np}, {})
        else:
            try:
                results = own(**{name: freeze(array.copy()) for name, array in known.items()})
            except BaseException as error:  # the reader's code may raise SystemExit
                if isinstance(error, NotImplementedError) or is_from_outside(error):
                    raise
                self._tell(error, own)
        return self._written(results)

    def _written(self, results: Mapping[str, Any]) -> Results:
        return {name: results[name] for name in self.lines.gradients if results.get(name, ...) is not ...}

    def _tell(self, error: BaseException, own: Any) -> NoReturn:
        """Raise the error of a reader's function together with the gradients that it had computed until then. One that
        comes from reading what isn't written yet says so.
        """
        for frame, line in traceback.walk_tb(error.__traceback__):
            if frame.f_code is getattr(own, "__code__", None):
                local = frame.f_locals
                read = set(re.findall(r"\w+", linecache.getline(frame.f_code.co_filename, line)))
                name = next((name for name in self.lines.gradients if name in read and local.get(name) is ...), "")
                if name and isinstance(error, TypeError | AttributeError):
                    words = f"{name} is not written yet, and this line reads it"
                    error = NotASolution(words).with_traceback(error.__traceback__)
                raise Reached(self._written(local), error) from None
        raise error

    def wanted(self) -> str:
        """What the function returns."""
        return "Derive the gradient of the loss with respect to each value of the net, from the last to the first."

    def accepts(self, own: Any) -> str:
        """A function that returns a dictionary."""
        return "" if callable(own) and not isinstance(own, type) else f"{self.name} must be a function"

    @property
    def title(self) -> str:
        """The name of the function."""
        return self.name


def _names(number: int, *, is_last: bool) -> dict[str, str]:
    """What a layer calls its input, its output and their gradients, as names in the net."""
    before = f"output_{number - 1}" if number else "input"
    own = "prediction" if is_last else f"output_{number}"
    return {"input": before, "output": own, "grad_input": f"grad_{before}", "grad_output": f"grad_{own}"}


def _halves(
    component: Layer | Loss, end: str, names: Mapping[str, str], number: int | None, words: Mapping[str, Any]
) -> tuple[list[Formula], list[Formula]]:
    """The formulas of a layer or a loss up to the one of this name, and those behind it, in the names of the net."""
    lines = [line for line in formulas(type(component)) if line.holds(component, {})]
    own = {line.name for line in lines}
    own |= set(component.parameter_shapes()) if isinstance(component, Layer) else set()
    behind = {} if number is None else {name: f"{name}_{number}" for name in own}
    rename = _Rename({**behind, **names}, {**words, **vars(component)})
    renamed = [
        line._replace(name=rename.names.get(line.name, line.name), expression=rename.text(line.expression))
        for line in lines
    ]
    place = [line.name for line in lines].index(end) + 1
    always = [line._replace(field=None) for line in renamed]
    return always[:place], always[place:]


def started_net(exercise: NetExercise) -> str:
    """The text of the function: the lines of forward, and a place for each gradient."""
    lines = exercise.lines
    arguments = ", ".join(["input", "target", *lines.shapes])
    shapes = ", ".join(f"{name} {shape}" for name, shape in lines.shapes.items())
    net = exercise.owner()
    text = [
        f"def {exercise.name}({arguments}):",
        f'    """{", ".join(map(label, net.layers))}; {label(net.loss)}.',
        "",
        *textwrap.wrap(f"input (batch, {net.num_inputs}), {shapes}; all float64.", 110, initial_indent="    ",
                       subsequent_indent="    "),
        '    """',
        *(f"    {line.name} = {line.expression}" for line in lines.forward),
        "",
        "    # The gradient of the loss with respect to each of these. Write any lines between them that you need.",
        *(f"    {name} = ..." for name in lines.gradients),
        "",
        "    return {",
        *(f'        "{name}": {name},' for name in lines.gradients),
        "    }",
    ]
    return "import numpy as np\n\n\n" + "\n".join(text) + "\n"


class _Rename(ast.NodeTransformer):
    """Puts the names of the net in the place of a layer's own, and values in the place of its settings."""

    def __init__(self, names: Mapping[str, str], words: Mapping[str, Any]) -> None:
        self.names, self._words = names, words

    def text(self, expression: str) -> str:
        """An expression in the names of the net."""
        return ast.unparse(self.visit(ast.parse(expression, mode="eval")))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """All arrays have two dimensions: they are rows already."""
        if isinstance(node.func, ast.Name) and node.func.id == "rows":
            return self.visit(node.args[0])  # type: ignore[no-any-return]
        return self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A name of the net, a value, or a function of NumPy."""
        if node.id in self.names:
            return ast.Name(self.names[node.id], node.ctx)
        if node.id in self._words:
            word = self._words[node.id]
            return ast.parse(word if isinstance(word, str) else repr(word), mode="eval").body
        return ast.parse(f"np.{node.id}", mode="eval").body if hasattr(np, node.id) else node
