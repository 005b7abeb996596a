"""`benchmark.py tests`: one-line faults in the package, and whether the tests find them."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from benchmarks.planted.faults import NUM_FAULTS, drawn
from benchmarks.planted.running import State
from benchmarks.processes import ROOT

_EXAMPLE = "another example of the same kind, which the tests take as well"
#: Faults that change nothing that could be seen, by their names, with the reason.
EQUIVALENT: dict[str, str] = {
    "nn_manual/layers/normalization.py: (cls(3, bias=False), (2, 5, 3)), -> (cls(3, bias=False), (2, 6, 3)),": _EXAMPLE,
    "nn_manual/layers/pooling.py: (cls([3, 2]), (2, 1, 4, 5)), -> (cls([3, 2]), (2, 1, 5, 5)),": _EXAMPLE,
    "nn_manual/layers/embedding.py: return [(cls(4, 2), (3, 4, 2)), (cls(5, 3), (2, 3, 3)), (cls(3, 3), (3, 3, 3))] -> "
    "return [(cls(4, 2), (3, 4, 2)), (cls(5, 3), (2, 4, 3)), (cls(3, 3), (3, 3, 3))]": _EXAMPLE,
    "nn_manual/layers/embedding.py: return [(cls(5, 3), (4,)), (cls(3, 2, padding_idx=1), (4, 3)), "
    "(cls(4, 4, padding_idx=-1), (4, 2, 2))] -> return [(cls(5, 3), (4,)), (cls(3, 2, padding_idx=2), (4, 3)), "
    "(cls(4, 4, padding_idx=-1), (4, 2, 2))]": _EXAMPLE,
    "nn_manual/optim/schedulers.py: return [cls(), cls(factor=1e-3, total_iters=1500), cls(total_iters=0)] -> "
    "return [cls(), cls(factor=1e-3, total_iters=1500), cls(total_iters=1)]": (
        "another example; tests/optim/test_schedulers.py has total_iters=0 of its own"
    ),
    "nn_manual/unroll/script.py: return own._replace(lines=lines, fixed=dict(zip(own.fixed, texts, strict=True))) -> "
    "return own._replace(lines=lines, fixed=dict(zip(own.fixed, texts, strict=False)))": (
        "the texts are made of own.fixed, one for each: strict only says so"
    ),
    "nn_manual/compile/program.py: return Fence(Access(-1, 0, (), byte), tuple(reads), trace.operations[-1]) -> "
    "return Fence(Access(-1, 0, (), byte), tuple(reads), trace.operations[-2])": (
        "the operation only says at which line a kernel is that doesn't compile, and this one always does"
    ),
}


def main(commit: str | None, folder: Path, count: int = NUM_FAULTS) -> int:
    """Plant faults in the last commit, and in `commit` if there is one; print for each state how many the tests find.
    What is known is in `folder`: another call goes on there. Returns 1 where a fault survives.
    """
    folder.mkdir(parents=True, exist_ok=True)
    trees = {name: _tree(folder, name) for name in ("HEAD", *([commit] if commit else []))}
    own = [_tree_of(each) for each in trees.values()]
    survived = 0
    for i, (name, home) in enumerate(trees.items()):
        others = [tree for j, tree in enumerate(own) if j != i]
        faults = drawn(own[i], others[0] if others else None, count)
        state = State(own[i], home, faults)
        state.find_tests()
        results = _outcomes(home, faults_of=(own[i], others[0] if others else None, count))
        survived += _print(name, results)
    return int(survived > 0)


def _tree_of(home: Path) -> Path:
    return home / "tree"


def _tree(folder: Path, commit: str) -> Path:
    """The folder of a commit, with a clone of it."""
    found = subprocess.run(["git", "rev-parse", commit], cwd=ROOT, check=True, capture_output=True, text=True)
    home = folder / found.stdout.strip()[:12]
    if not _tree_of(home).exists():
        home.mkdir(exist_ok=True)
        subprocess.run(["git", "clone", "-q", str(ROOT), str(_tree_of(home))], check=True)
        subprocess.run(["git", "-C", str(_tree_of(home)), "checkout", "-q", found.stdout.strip()], check=True)
    return home


def _outcomes(home: Path, faults_of: tuple[Path, Path | None, int]) -> list[dict[str, object]]:
    """The outcome of each fault, of those that are known already, too: one line of results.jsonl each."""
    path = home / "results.jsonl"
    known = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    names = {each["fault"] for each in known}
    left = [number for number, fault in enumerate(drawn(*faults_of)) if fault.name not in names]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(os.cpu_count(), mp_context=context) as pool:
        for ended in as_completed([pool.submit(_one, home, faults_of, number) for number in left]):
            known.append(ended.result())
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(ended.result()) + "\n")
            print(f"{len(known)} of {len(left) + len(names)}: {ended.result()}", flush=True)
    return known


def _one(home: Path, faults_of: tuple[Path, Path | None, int], number: int) -> dict[str, object]:
    """The outcome of one fault, in a clone of this process's own."""
    faults = drawn(*faults_of)
    own = home / f"tree-{os.getpid()}"
    if not own.exists():
        subprocess.run(["git", "clone", "-q", str(_tree_of(home)), str(own)], check=True)
    return State(own, home, faults).outcome(number)


def _print(name: str, results: list[dict[str, object]]) -> int:
    """Print how many faults are found; returns how many survive."""
    counted = [each for each in results if each["fault"] not in EQUIVALENT]
    quick, of_all = (sum(each[which] is not None for each in counted) for which in ("quick", "all"))
    for each in results:
        if each["all"] is None:
            reason = EQUIVALENT.get(str(each["fault"]))
            print(f"  {f'equivalent, {reason}' if reason else 'survives'}: {each['fault']}")
    print(f"{name}: {len(counted)} faults; the tests find {of_all}, those that aren't slow {quick}")
    return len(counted) - of_all
