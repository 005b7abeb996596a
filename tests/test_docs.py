"""The pages for learners: what they show is what happens."""

from __future__ import annotations

import doctest
import inspect
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from nn_manual import EmbeddingBag, Linear, Sequential, ops
from nn_manual.data import MiddleWord

DOCS = Path(__file__).parents[1] / "docs"
WALKTHROUGH = (DOCS / "walkthrough.md").read_text(encoding="utf-8")
#: The pages whose code runs, with their numbers of blocks and of examples.
PAGES = [("walkthrough", 6, 25), ("attention", 8, 26), ("first_questions", 4, 14)]


@pytest.mark.parametrize(("name", "num_blocks", "num_examples"), PAGES)
def test_every_code_block_runs_and_prints_what_the_page_says(name: str, num_blocks: int, num_examples: int) -> None:
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == page.count("```") / 2 == num_blocks
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, f"{name}.md", f"docs/{name}.md", 0)
    report: list[str] = []
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=report.append)
    assert results.failed == 0, "".join(report)
    assert results.attempted == num_examples


def test_the_exercises_that_questions_lead_to_are_there() -> None:
    from nn_manual.exercises.kinds.every_exercise import every_exercise

    page = (DOCS / "first_questions.md").read_text(encoding="utf-8")
    lines = re.findall(r"^Exercises: [^.]+", page, re.MULTILINE)
    names = {name for line in lines for name in re.findall(r"`(\w+)`", line)}
    assert len(names) >= 15
    assert names <= set(every_exercise().exercises)


def test_the_operation_that_it_quotes_is_the_one_in_the_code() -> None:
    """Apart from the types, which the page leaves out."""
    source = re.sub(r": Tensor| -> Differentiated", "", inspect.getsource(ops.exp.rule))
    quoted = inspect.cleandoc(WALKTHROUGH[WALKTHROUGH.index("    @operation") : WALKTHROUGH.index("## 3.")])
    assert quoted == source.strip()


def test_python_works_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / "python.md").read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks[0].splitlines()) <= 40
    exec(compile("\n".join(blocks[:-1]), "docs/python.md", "exec"), {})
    *_, best, accuracy, _, last = capsys.readouterr().out.splitlines()
    assert float(best) < 0.5
    assert float(accuracy) > 0.8
    assert last.startswith("('cloud 0', 'cloud 1', 'cloud 2') 0.")


@pytest.mark.slow
def test_python_with_scikit_learn_works_as_it_stands(capsys: pytest.CaptureFixture[str]) -> None:
    """It alone runs the page's search."""
    *_, block = re.findall(r"```python\n(.*?)```", (DOCS / "python.md").read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(block, "docs/python.md", "exec"), {})
    scores, best = capsys.readouterr().out.splitlines()
    assert all(float(score) > 0.8 for score in scores.strip("[]").split())
    assert best.startswith("{'manualclassifier__activation': <class 'nn_manual.layers.activations.Tanh'>, ")


@pytest.mark.slow
def test_the_kernel_of_the_command_line_passes(tmp_path: Path) -> None:
    """It alone runs the page's command."""
    page = (DOCS / "checking_your_own_code.md").read_text(encoding="utf-8")
    section = page[page.index("## From the command line") : page.index("## Float16")]
    (module,), (command,) = (re.findall(rf"```{kind}\n(.*?)```", section, re.DOTALL) for kind in ("python", "sh"))
    (tmp_path / "my_kernels.py").write_text(module)
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "\nfull size      bfloat16\n" in done.stdout


@pytest.mark.slow
def test_the_vector_of_a_word(tmp_path: Path) -> None:
    """The line that the page has for it, of a run's model and its data."""
    (tmp_path / "words.txt").write_text("a list of words, a list of the words of a list, and the words")
    data = MiddleWord(tmp_path / "words.txt", radius=1, num_words=4, validation_fraction=0)
    split = data.load(0, np.dtype(np.float32))
    assert split.transform.names.classes == ("a", "list", "of", "words")
    model = Sequential(EmbeddingBag(4, 2), Linear(2, 4, bias=False))
    (line,) = re.findall(r"`(run\.model\.state_dict.*)`", (DOCS / "using_a_model.md").read_text(encoding="utf-8"))
    vector = eval(line, {"run": SimpleNamespace(model=model, transform=split.transform)})
    np.testing.assert_array_equal(vector, model.layers[0].infer(np.array([[1, 1]]))[0])


@pytest.mark.slow
def test_using_a_model_works_as_it_stands(tmp_path: Path) -> None:
    """It alone runs the page's commands one after the other."""
    page = (DOCS / "using_a_model.md").read_text(encoding="utf-8")
    (tmp_path / "page.sh").write_text("\n".join(re.findall(r"```sh\n(.*?)```", page, re.DOTALL)))
    (tmp_path / "page.py").write_text("\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)))
    path = f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}"
    for command in (["bash", "-e", "page.sh"], [sys.executable, "page.py"]):
        done = subprocess.run(
            command, cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")
        if command[0] == "bash":
            (table,) = re.findall(r"```text\n(.*?)```", page, re.DOTALL)
            assert table in done.stdout
            (config,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
            assert (tmp_path / "flowers.yaml").read_text() == config
    assert done.stdout == "('setosa', 'versicolor', 'virginica') [[1. 0. 0.]]\n"
    assert (tmp_path / "predictions.csv").read_text().startswith("predicted_class,setosa,versicolor,virginica\nsetosa,")
