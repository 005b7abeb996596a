"""What handwritten functions call their arguments and gradients; nothing here needs torch."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nn_manual.errors import raise_if_nobodys_fault

#: What courses call that which forward saved.
SAVED = ("cache", "saved", "ctx", "context", "residuals")
#: How they begin the name of the gradient of an output.
UPSTREAM = ("d", "grad", "upstream", "g_")
#: What others call it, as a whole.
GRADIENTS = ("g", "go", "gout", "gy")
#: What stands before an input's name in the name of its gradient.
PREFIXES = ("grad_", "d_", "d", "")


def names_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's arguments; none for a built-in function without a signature."""
    return tuple(p.name for p in parameters_of(function) if p.kind <= p.POSITIONAL_OR_KEYWORD)


def parameters_of(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The arguments in a function's signature; none for a built-in function without one."""
    try:
        return list(inspect.signature(function).parameters.values())
    except Exception as error:  # anyone's attributes may raise anything
        raise_if_nobodys_fault(error)
        return []


def calls_saved_last(backward: Callable[..., Any]) -> bool:
    """Whether the names of backward's arguments say that what forward saved comes last: by its own name, or since the
    first one is a gradient.
    """
    names = names_of(backward)
    return len(names) > 1 and names[0] not in SAVED and (names[-1] in SAVED or _is_gradient(names[0]))


def calls_saved_first(backward: Callable[..., Any]) -> bool:
    """Whether the names of backward's arguments say that what forward saved comes first."""
    names = names_of(backward)
    is_said = len(names) > 1 and (names[0] in SAVED or _is_gradient(names[-1]))
    return is_said and not calls_saved_last(backward)


def _is_gradient(name: str) -> bool:
    return name in GRADIENTS or name.startswith(UPSTREAM)


def gradients_called(grads: Mapping[Any, Any], inputs: Sequence[Sequence[str]]) -> list[Any]:
    """The gradients of inputs in a dict by name. Each input has several names, the best one first. A dict that has all
    gradients under one prefix, and no others, is read so: "dt" may be the gradient of t where dt is an input, too.
    Raises LookupError as `_gradient_called` does.
    """
    for prefix in PREFIXES:
        for names in zip(*inputs, strict=False):
            keys = [f"{prefix}{name}" for name in names]
            if grads.keys() == set(keys):
                return [grads[key] for key in keys]
    return [_gradient_called(grads, names) for names in inputs]


def _gradient_called(grads: Mapping[Any, Any], names: Sequence[str]) -> Any:
    """The gradient of an input in a dict by name: by the first of the input's names that is there. Raises LookupError
    where there is none, or where the dict has two for one name.
    """
    for name in names:
        found = [key for key in (f"{prefix}{name}" for prefix in PREFIXES) if key in grads]
        if len(found) > 1:
            raise LookupError(f"backward returned {len(found)} gradients for {name}: {', '.join(map(repr, found))}")
        if found:
            return grads[found[0]]
    known = ", ".join(map(repr, grads))
    raise LookupError(f"backward returned no gradient for {names[0]}, only {known or 'nothing'}")
