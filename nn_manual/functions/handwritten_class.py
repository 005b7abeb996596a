"""A class whose objects run forward and backward, with the gradients of their parameters in attributes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.check.conduct.unchanged import same_values
from nn_manual.errors import first_words_of, raise_if_nobodys_fault
from nn_manual.functions.arguments import as_tensor
from nn_manual.functions.callables import Function, floats, is_array, label_of_function
from nn_manual.functions.handwritten import Checked, Handwritten, OfObject, handwritten_pair, times
from nn_manual.functions.signatures import names_of, parameters_of
from nn_manual.messages.text import LONGEST_VALUE, nearest, one_line


def handwritten_hint(owner: type) -> str:
    """What stands for a class that has forward and backward; empty for another class."""
    has_both = all(callable(getattr(owner, name, None)) for name in ("forward", "backward"))
    return f"HandwrittenClass({owner.__name__}, gradients)" if has_both else ""


@dataclass(frozen=True)
class HandwrittenClass:
    """A class to be checked, as it stands in a notebook:

        class Affine:
            def __init__(self, W, b): ...
            def forward(self, x): ...            # returns the output
            def backward(self, dout): ...        # returns the gradient of x, and writes self.dW and self.db

        check_function(HandwrittenClass(Affine, {"W": "dW", "b": "db"}), reference, [x, W, b])

    make: the class, or a function of the parameters that makes an object. It gets them by name. gradients: where the
    object has each gradient after backward: "dW", "grads[0]", "gradients['W']", "linear.dW". The names are those of
    `make`'s arguments; if backward returns nothing, the names of forward's inputs stand there, too. forward, backward:
    what the methods are called. output: where the object has its output, if forward returns nothing. backward may take
    no gradient, where the output is a scalar loss.

    The check passes forward's inputs first and then those of `make`, in the order of `gradients`, or all of them by
    name. Each run has an object of its own. Raises TypeError for a `make` that can't be called, and ValueError for a
    place that can't be read, and for an argument of `make` without a gradient.
    """

    make: Callable[..., Any]
    gradients: Mapping[str, str]
    forward: str = "forward"
    backward: str = "backward"
    output: str | None = None

    def __post_init__(self) -> None:
        if not callable(self.make):
            shown = one_line(repr(self.make), LONGEST_VALUE)
            raise TypeError(f"make must be a class, or a function that makes an object, not {shown}")
        if not isinstance(self.gradients, Mapping):
            raise TypeError(f"gradients must be a dict from names to places, as {{'W': 'dW'}}, not {self.gradients!r}")
        places = {f"gradients[{name!r}]": place for name, place in self.gradients.items()}
        for name, place in (places | ({} if self.output is None else {"output": self.output})).items():
            try:
                _steps(place)
            except (SyntaxError, ValueError, TypeError):
                raise ValueError(f"{name} is {place!r}: write 'dW', 'grads[0]', 'grads[\"W\"]'") from None
        for parameter in parameters_of(self.make):
            needed = parameter.default is parameter.empty and parameter.kind in (
                parameter.POSITIONAL_OR_KEYWORD,
                parameter.KEYWORD_ONLY,
            )
            if needed and parameter.name not in self.gradients:
                known = ", ".join(self.gradients)
                words = f"{self._label} takes {parameter.name}, and gradients names only {known or 'nothing'}"
                raise ValueError(f"{words}; to check without it, make can be a function that sets it: {self._without}")

    @property
    def _without(self) -> str:
        """How an object is made of those arguments alone that have a gradient."""
        names = [parameter.name for parameter in parameters_of(self.make)]
        first = min(i for i, name in enumerate(names) if name not in self.gradients)  # behind it, names must stand
        behind = [f"{name}={name if name in self.gradients else '...'}" for name in names[first:]]
        given = ", ".join(names[:first] + behind)
        own = ", ".join(name for name in names if name in self.gradients)
        return f"{f'lambda {own}'.rstrip()}: {self._label}({given})"

    @property
    def _label(self) -> str:
        return label_of_function(self.make)

    def handwritten(self) -> Handwritten:
        """As a pair, which saves the object."""
        of_class = isinstance(self.make, type)
        names = names_of(getattr(self.make, self.forward, self.make))[1:] if of_class else ()
        pair = _Pair(self, self._label)
        of_object = OfObject(pair.run_again, pair.after)
        return Handwritten(pair.forward, pair.backward, self._label, (*names, *pair.parameters), of_object=of_object)


class _Made(NamedTuple):
    """An object, and the names of its forward's floating inputs, as far as they were given by name."""

    object: Any
    names: tuple[str, ...] = ()


class _Pair:
    """The forward and the backward of a class, as functions of all inputs."""

    def __init__(self, given: HandwrittenClass, label: str) -> None:
        self.given, self.label = given, label
        taken = {parameter.name for parameter in parameters_of(given.make)}
        self.parameters = [name for name in given.gradients if name in taken]
        self.inputs = [name for name in given.gradients if name not in taken]

    def _split(self, positional: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """forward's inputs by position, and all others by name."""
        if self.parameters and self.parameters[0] not in keywords:
            count = len(positional) - len(self.parameters)
            keywords = keywords | dict(zip(self.parameters, positional[count:], strict=True))
            positional = positional[:count]
        return positional, keywords

    def forward(self, *positional: Any, **keywords: Any) -> tuple[Any, _Made]:
        """As in every pair."""
        made = self._made(positional, keywords)
        return self.run_again(made, *positional, **keywords), made

    def after(self, change: Callable[[Any], Any]) -> Function:
        """The forward of an object whose forward has run before, on inputs that `change` makes of the same ones."""

        def forward(*positional: Any, **keywords: Any) -> tuple[Any, _Made]:
            made = self._made(positional, keywords)
            inputs, rest = self._inputs(positional, keywords)
            self._run(made, tuple(map(change, inputs)), {name: change(each) for name, each in rest.items()})
            return self._run(made, inputs, rest), made

        return forward

    def run_again(self, made: _Made, *positional: Any, **keywords: Any) -> Any:
        """What the object's forward returns for these inputs."""
        return self._run(made, *self._inputs(positional, keywords))

    def _made(self, positional: tuple[Any, ...], keywords: dict[str, Any]) -> _Made:
        _, named = self._split(positional, keywords)
        names = tuple(name for name, each in named.items() if name not in self.parameters and floats(each))
        return _Made(self.given.make(**{name: named[name] for name in self.parameters}), names)

    def _inputs(self, positional: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Those of forward, without the parameters."""
        positional, named = self._split(positional, keywords)
        return positional, {name: each for name, each in named.items() if name not in self.parameters}

    def _run(self, made: _Made, positional: tuple[Any, ...], rest: dict[str, Any]) -> Any:
        returned = getattr(made.object, self.given.forward)(*positional, **rest)
        if returned is not None:
            return returned
        if self.given.output is None:
            known = f"; the object has {', '.join(_attributes(made.object))}" if _attributes(made.object) else ""
            words = "forward returned nothing: if the object keeps the output, output='output' says where"
            raise CannotCompare(f"{self.label}: {words}{known}")
        return _value_at(self.label, made.object, self.given.output, "forward")

    def backward(self, made: _Made, *grad_outputs: Any) -> Any:
        """As in every pair: a list, or where the inputs were given by name, a dict."""
        run = getattr(made.object, self.given.backward)
        of_loss = not parameters_of(run)
        if of_loss and any(grad.shape for grad in grad_outputs):
            raise CannotCompare(f"{self.label}: backward takes no gradient of the output, and the output is no scalar")
        returned = run() if of_loss else run(*grad_outputs)
        own = list(returned) if isinstance(returned, tuple | list) else [] if returned is None else [returned]
        places = {name: self.given.gradients[name] for name in (*self.inputs, *self.parameters)}
        found = {name: _value_at(self.label, made.object, place) for name, place in places.items()}
        if self.inputs:  # all gradients stand in attributes
            self._check_returned(own, found)
            own = []
        grads: Any = dict(zip(made.names, own, strict=False)) | found if made.names else [*own, *found.values()]
        return times(grads, grad_outputs[0]) if of_loss else grads

    def _check_returned(self, own: list[Any], found: dict[str, Any]) -> None:
        """Raise CannotCompare if backward returned an input's gradient, and its attribute has another one."""
        for name, returned in zip(self.inputs, own, strict=False):
            both = is_array(returned) and is_array(found[name]) and returned.shape == found[name].shape
            if both and not same_values(as_tensor(returned).detach(), as_tensor(found[name]).detach()):
                place = self.given.gradients[name]
                words = f"backward returned another gradient of {name} than {place} has"
                raise CannotCompare(f"{self.label}: {words}; without {name} in gradients, the returned one is checked")


#: What a user gives: a function that autograd differentiates, a pair of functions on arrays, or a class.
Given: TypeAlias = Function | tuple[Function, Function] | HandwrittenClass


def in_one_form(given: Given) -> Checked:
    """What is checked, in the form that everything after this knows."""
    if isinstance(given, HandwrittenClass):
        return given.handwritten()
    return handwritten_pair(*given) if isinstance(given, tuple) else given


def _steps(place: str) -> list[str | tuple[Any]]:
    """The steps from an object to what stands at a place: an attribute, or an index or key as a tuple of one."""
    steps: list[str | tuple[Any]] = []
    node: ast.expr = ast.parse(place, mode="eval").body
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(node.attr)
        elif isinstance(node, ast.Subscript):
            steps.append((ast.literal_eval(node.slice),))
        else:
            raise ValueError(place)
        node = node.value
    return [node.id, *reversed(steps)]


def _attributes(made: Any) -> list[str]:
    return [name for name in vars(made) if not name.startswith("_")] if hasattr(made, "__dict__") else []


def _value_at(label: str, made: Any, place: str, after: str = "backward") -> Any:
    value = made
    for step in _steps(place):
        try:
            value = getattr(value, step) if isinstance(step, str) else value[step[0]]
        except Exception as error:  # anyone's object may raise anything
            raise_if_nobodys_fault(error)
            known = _attributes(made)
            meant = nearest(place, known)
            hint = f"; did you mean {meant!r}?" if meant else f"; it has {', '.join(known)}" if known else ""
            words = f"after {after} the object has no {place} ({first_words_of(error)}){hint}"
            raise CannotCompare(f"{label}: {words}") from error
    return value
