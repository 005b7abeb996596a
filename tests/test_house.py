"""No two files need each other, nobody reaches into another object's private names, and a step enters few files."""

from __future__ import annotations

import ast
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType

import numpy as np

import nn_manual
from nn_manual import SGD, CrossEntropyLoss, Linear, ReLU, Sequential, Trainer

PACKAGE = Path(nn_manual.__file__).parent
BENCHMARKS = PACKAGE.parent / "scripts" / "benchmarks"

#: Private names of libraries, for which these have no public ones; and those that every NamedTuple has.
OF_LIBRARIES = {
    *("_version", "_schema", "_to_copy", "_softmax", "_safe_softmax", "_log_softmax", "_cdata", "_reduce_lr"),  # torch
    *("_implementation", "_getframe"),  # numpy, sys
    *("_replace", "_asdict", "_fields", "_make"),
}


def needed_by(folder: Path) -> dict[str, set[str]]:
    """Of each module of a package, those of it that it imports: at its top, for types alone, or within a function."""
    names = {
        ".".join(part for part in path.relative_to(folder.parent).with_suffix("").parts if part != "__init__"): path
        for path in folder.rglob("*.py")
    }
    needed: dict[str, set[str]] = {}
    for name, path in names.items():
        needed[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                found = {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
                inner = found & names.keys()
                needed[name] |= {each for each in inner if not any(other.startswith(f"{each}.") for other in inner)}
            elif isinstance(node, ast.Import):
                needed[name] |= {alias.name for alias in node.names} & names.keys()
        needed[name].discard(name)
    return needed


def test_no_files_need_each_other() -> None:
    for folder in (PACKAGE, BENCHMARKS):
        needed = needed_by(folder)
        assert sum(map(len, needed.values())) > len(needed)  # it has read the imports
        TopologicalSorter(needed).prepare()  # raises CycleError with the circle


def private_names(path: Path) -> set[str]:
    """The private names that a file takes from other objects, and defines nowhere itself."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    own = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    own |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    attributes = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr.startswith("_")]
    is_self = {node: isinstance(node.value, ast.Name) and node.value.id in ("self", "cls") for node in attributes}
    own |= {node.attr for node in attributes if is_self[node] and isinstance(node.ctx, ast.Store)}
    of_super = {node.attr for node in attributes if ast.unparse(node.value) == "super()"}
    others = {node.attr for node in attributes if not is_self[node] and not node.attr.startswith("__")}
    return others - own - of_super


def test_nobody_reaches_into_another_objects_private_names() -> None:
    found = {path: private_names(path) - OF_LIBRARIES for path in PACKAGE.rglob("*.py")}
    assert {str(path.relative_to(PACKAGE)): names for path, names in found.items() if names} == {}


def test_a_plain_step_enters_few_files() -> None:
    """The third one of README's example; layers, losses and optimizers aside."""
    generator = np.random.default_rng(0)
    input = generator.standard_normal((64, 2), dtype=np.float32)
    target = (input[:, 0] * input[:, 1] > 0).astype(np.int64)
    model = Sequential(Linear(2, 16), ReLU(), Linear(16, 2), seed=0)
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.5), check_every=0)
    for _ in range(2):
        trainer.train_step(input, target)
    entered = set[Path]()

    def note(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001 - sys.setprofile's
        entered.add(Path(frame.f_code.co_filename))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        trainer.train_step(input, target)
    finally:
        sys.setprofile(before)
    inside = {path.relative_to(PACKAGE) for path in entered if path.is_relative_to(PACKAGE)}
    stages = {str(path) for path in inside if path.parts[0] not in ("layers", "losses", "optim")}
    assert "step/train_step.py" in stages
    assert len(stages) <= 5, stages


def test_one_place_says_that_a_value_is_wrong() -> None:
    made_at = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("GradientMismatch")
    }
    assert made_at == {"check/judge/report.py"}
