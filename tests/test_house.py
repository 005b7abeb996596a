"""No two files need each other, nobody reaches into another object's private names, and a step enters few files."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import nn_manual
from nn_manual import SGD, CrossEntropyLoss, Linear, ReLU, Sequential, Trainer
from nn_manual.data import Examples

PACKAGE = Path(nn_manual.__file__).parent
BENCHMARKS = PACKAGE.parent / "scripts" / "benchmarks"

#: Private names of libraries, for which these have no public ones; and those that every NamedTuple has.
OF_LIBRARIES = {
    *("_version", "_schema", "_to_copy", "_softmax", "_safe_softmax", "_log_softmax", "_cdata", "_reduce_lr"),  # torch
    *("_fused_rms_norm", "_native_batch_norm_legit", "_efficientzerotensor", "_is_zerotensor"),  # torch's, too
    "_sequence_nr",  # that, too
    *("_implementation", "_getframe", "_exit"),  # numpy, sys, os
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


def test_a_long_file_says_why_it_is_long() -> None:
    texts = {path: path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py")}
    long = {path: text for path, text in texts.items() if len(text.splitlines()) > 250}
    said = {path.relative_to(PACKAGE).as_posix(): ast.get_docstring(ast.parse(text)) for path, text in long.items()}
    assert [path for path, docstring in said.items() if "The file is long because " not in str(docstring)] == []


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


def entered(run: Callable[[], object]) -> set[tuple[str, str]]:
    """The functions of the package that `run` enters, but for layers, losses and optimizers: file and name of each."""
    functions = set[tuple[str, str]]()

    def note(frame: FrameType, event: str, argument: object) -> None:  # noqa: ARG001 - sys.setprofile's
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            functions.add((path.relative_to(PACKAGE).as_posix(), frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return {each for each in functions if not each[0].startswith(("layers/", "losses/", "optim/"))}


def example(**settings: Any) -> tuple[Trainer, Examples]:
    """A small net, and its batch."""
    generator = np.random.default_rng(0)
    input = generator.standard_normal((64, 2), dtype=np.float32)
    model = Sequential(Linear(2, 16), ReLU(), Linear(16, 2), seed=0)
    trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.5), **settings)
    return trainer, Examples(input, (input[:, 0] * input[:, 1] > 0).astype(np.int64))


@pytest.mark.parametrize(("check_every", "most"), [(0, 5), (1, 16)])
def test_a_step_enters_few_files(check_every: int, most: int) -> None:
    """The third one of such a training."""
    trainer, batch = example(check_every=check_every)
    for _ in range(2):
        trainer.train_step(*batch)
    stages = {path for path, _ in entered(lambda: trainer.train_step(*batch))}
    assert "step/train_step.py" in stages
    assert ("check/whole_step/checker.py" in stages) == bool(check_every)
    assert len(stages) <= most, stages


@pytest.mark.parametrize("check_every", [0, 1])
def test_no_step_of_a_compiled_epoch_comes_back_to_the_trainers_private_code(check_every: int) -> None:
    trainer, examples = example(check_every=check_every, compiled=True)
    for _ in trainer.epoch(examples, 8, seed=0, epoch=0):  # it makes the plan
        pass
    functions = entered(lambda: list(trainer.epoch(examples, 8, seed=0, epoch=1)))
    assert ("trainer/compiled_steps.py", "epoch") in functions
    of_trainer = {name for path, name in functions if path == "trainer/trainer.py"}
    assert "epoch" in of_trainer
    assert not {name for name in of_trainer if name.startswith("_")}


def test_one_place_says_that_a_value_is_wrong() -> None:
    made_at = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("GradientMismatch")
    }
    assert made_at == {"check/judge/report.py"}
