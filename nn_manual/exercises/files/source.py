"""The source text of a component's methods, which methods they call, and the imports that a text needs."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import re
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator
from types import FunctionType
from typing import Any, NamedTuple

from nn_manual.docstrings import CONTRACTS, text_of, texts_of_family

#: What a line tells linters and type checkers.
_FOR_TOOLS = re.compile(r"  # (?:noqa|type: ignore)\b.*")


class Method(NamedTuple):
    """A function of a class: its name, its source text as at the left margin, and the module that it stands in."""

    name: str
    text: str
    module: str

    @property
    def tree(self) -> ast.FunctionDef:
        """The function as syntax."""
        (tree,) = ast.parse(self.text).body
        assert isinstance(tree, ast.FunctionDef)
        return tree


def method(owner: type, name: str) -> Method:
    """The method of a class, wherever it inherits it from. Raises AttributeError where there is no function."""
    found = inspect.getattr_static(owner, name)
    function = inspect.unwrap(found.__func__ if isinstance(found, classmethod | staticmethod) else found)
    if not isinstance(function, FunctionType):
        raise AttributeError(f"{owner.__name__}.{name} is no function")
    text = textwrap.dedent(inspect.getsource(function))
    return Method(name, _FOR_TOOLS.sub("", text), function.__module__)


def called(owner: type, names: Iterable[str]) -> list[Method]:
    """These methods of a class, and the helpers that they call in turn: those that the class itself has, beside what
    every component of its kind has. One that goes on with `super()` is left out: a copy in a derived class would run
    both.
    """
    found: dict[str, Method] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop(0)
        try:
            one = method(owner, name)
        except (AttributeError, TypeError):  # a setting, a property, or an attribute of NumPy's
            continue
        if name not in found and "super()" not in one.text:
            found[name] = one
            waiting += [other for other in _attributes_of_self(one.tree) if not is_of_contract(owner, other)]
    return list(found.values())


def _attributes_of_self(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            yield node.attr


def is_of_contract(owner: type, name: str) -> bool:
    """Whether every component of this class's kind has an attribute of this name: so it is no helper."""
    return any(issubclass(owner, kind) and hasattr(kind, name) for kind in CONTRACTS)


def read_names(tree: ast.AST) -> set[str]:
    """The names that a piece of code reads and doesn't define itself."""
    names = {(node.id, isinstance(node.ctx, ast.Load)) for node in ast.walk(tree) if isinstance(node, ast.Name)}
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    functions = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node is not tree}
    errors = {node.name for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name}
    written = {name for name, is_read in names if not is_read} | arguments | functions | errors
    return {name for name, is_read in names if is_read} - written


def bound_names(text: str) -> set[str]:
    """The names that the imports and the definitions of a file bind."""
    found = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            found |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
    return found


def imports(methods: Iterable[Method], room: str = "", but: Collection[str] = ()) -> str:
    """The import statements for the names that these methods read, and for a room of the package, `but` for some."""
    plain: set[str] = set()
    taken: dict[str, set[str]] = {"nn_manual": {room}} if room else {}
    for one in methods:
        statements = _statements(one.module)
        for name in read_names(one.tree) - {*but}:
            if name in statements:
                module, written = statements[name]
            elif not hasattr(builtins, name):
                module, written = one.module, name
            else:
                continue
            if module:
                taken.setdefault(module, set()).add(written)
            else:
                plain.add(written)
    lines = [*plain, *(f"from {module} import {', '.join(sorted(names))}" for module, names in taken.items())]
    groups: dict[int, list[str]] = {}
    for line in sorted(lines, key=lambda line: (line.startswith("from"), line)):
        top = line.split()[1].partition(".")[0]
        groups.setdefault(2 if top == "nn_manual" else int(top not in sys.stdlib_module_names), []).append(line)
    return "\n\n".join("\n".join(groups[number]) for number in sorted(groups))


@functools.cache
def _statements(module: str) -> dict[str, tuple[str, str]]:
    """How a module imports each name: the module that it takes it from, and what it takes; or "" and the statement."""
    found: dict[str, tuple[str, str]] = {}
    for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
        for alias in node.names if isinstance(node, ast.Import | ast.ImportFrom) else ():
            written = f"{alias.name} as {alias.asname}" if alias.asname else alias.name
            if isinstance(node, ast.ImportFrom):
                found[alias.asname or alias.name] = (node.module or "", written)
            else:
                found[alias.asname or alias.name.partition(".")[0]] = ("", f"import {written}")
    return found


def opened(one: Method, asked: str) -> str:
    """A method without its body: its first lines, `asked` and the fields of what was saved as its docstring, and what a
    reader replaces.
    """
    body = one.tree.body[0]
    head = one.text.splitlines()[: body.lineno - 1]
    if body.lineno == one.tree.lineno:  # all in one line
        head = [f"def {one.name}({ast.unparse(one.tree.args)}) -> Any:"]
    return "\n".join([*head, *_docstring(asked, _fields(one)), "    raise NotImplementedError"])


def _fields(one: Method) -> str:
    """The fields of what forward saved, and what they are, where it is a NamedTuple of the method's module."""
    saved = next((argument.annotation for argument in one.tree.args.args if argument.arg == "saved"), None)
    kind: Any = getattr(sys.modules[one.module], ast.unparse(saved), None) if isinstance(saved, ast.Name) else None
    if not hasattr(kind, "_fields"):
        return ""
    return f"saved.{', .'.join(kind._fields)}: {' '.join(text_of(kind).split())}"


def _docstring(*paragraphs: str) -> list[str]:
    first, *lines = "\n\n".join(textwrap.fill(text, 110) for text in paragraphs if text).split("\n")
    if not lines:
        return [f'    """{first}"""']
    return [f'    """{first}', *(f"    {line}".rstrip() for line in lines), '    """']


def plain_text(owner: Any) -> str:
    """The docstring of a class or an operation, and where it has no formulas, that of its base that has some."""
    own = text_of(owner)
    if "\n    " in own or not isinstance(owner, type):
        return own
    other = next((text for text in texts_of_family(owner) if "\n    " in text), "")
    first, _, rest = other.partition("\n\n")
    if {*re.findall(r"\w+", first)} <= {*re.findall(r"\w+", own)}:
        other = rest  # its first paragraph says nothing more
    return f"{own}\n\n{other}" if other else own


def leading_to(answer: ast.expr, statements: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that the answer depends on, and those that refuse operands."""
    read, kept = {*names_in(answer, ast.Load)}, []
    for one in reversed(statements):
        is_refusal = isinstance(one, ast.If) and isinstance(one.body[-1], ast.Raise)
        written = {one.name} if isinstance(one, ast.FunctionDef) else {*names_in(one, ast.Store)}
        if is_refusal or written & read:
            kept.append(one)
            read |= {*names_in(one, ast.Load)}
    return kept[::-1]


def names_in(tree: ast.AST, context: type[Any]) -> Iterator[str]:
    """The names that are read in a tree, or written, by the context."""
    return (node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, context))
