"""An exercise of a teacher's own class: the file to hand out, and its check where the teacher's file isn't."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from nn_manual.check.catalogue.catalogue import CatalogueReport
from nn_manual.errors import ConfigError, DataError, GradientMismatch
from nn_manual.exercises.commands import made
from nn_manual.exercises.commands.checking import check_file
from nn_manual.exercises.commands.made import make
from nn_manual.exercises.commands.starting import hint, solution
from nn_manual.exercises.running.answer import Answer
from nn_manual.exercises.running.reference import Reference, read_reference
from nn_manual.exercises.verdicts.judging import judge

TEACHERS = '''\
"""Layers of a course."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from nn_manual.layers import Layer
from nn_manual.layers.activations import Activation, expit
from nn_manual.optim import Optimizer

LIMIT = 30.0


def clipped(input):
    return np.clip(input, -LIMIT, LIMIT)


def secret(gate):
    return gate * (1 - gate)


@dataclass(eq=False)
class Swish(Layer):
    """Swish, any shape.

        gate       = expit(beta * input)
        output     = input * gate
        grad_input = grad_output * (gate + input * beta * gate * (1 - gate))

    Derivation: the product rule.
    """

    beta: float = 1.0
    unused: int = 1

    @classmethod
    def examples(cls):
        """Two slopes."""
        return [(cls(), (4, 3)), (cls(2.0), (3, 3))]

    def forward(self, input):
        """The output; saves input and gate."""
        gate = self._gate(clipped(input))
        return input * gate, (input, gate)

    def _gate(self, input):
        return expit(self.beta * input)

    # What stands above backward.
    def backward(self, saved, grad_output):
        """By the product rule."""
        input, gate = saved
        return grad_output * (gate + self._slope(input, gate))  # both terms

    def _slope(self, input, gate):
        return input * self.beta * secret(gate)


@dataclass(eq=False)
class Step(Activation):
    """Where it is positive.

        output = input > 0
    """

    def forward(self, input):
        return np.heaviside(input, 0), input

    def derivative(self, saved):
        return math.no_such_function(saved)


@dataclass(eq=False)
class Inherits(Swish):
    pass
'''
SOLVED = """\
        input, gate = saved
        return grad_output * (gate + self.beta * input * gate * (1 - gate))
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The current folder, with the teacher's file in it."""
    monkeypatch.chdir(tmp_path)
    Path("my_layers.py").write_text(TEACHERS)
    if "checks_the_class" not in request.fixturenames:  # seconds, for each test
        monkeypatch.setattr(made, "check_classes", lambda _: CatalogueReport(()))
    return tmp_path


@pytest.fixture
def checks_the_class() -> None:
    """`make` checks the class, as it does outside of these tests."""


def test_the_file_has_what_is_needed_and_gives_nothing_away() -> None:
    assert make("my_layers.py:Swish", Path("swish.py")) == Path("swish.exercise")
    text = Path("swish.py").read_text()
    fields = "    beta: float = 1.0\n    unused: int = 1\n"
    for needed in ("def clipped", "LIMIT = 30.0", "def _gate", fields, "examples"):
        assert needed in text
    for hidden in ("secret", "_slope", "product rule", "above backward", "both terms", "grad_input =", "Step"):
        assert hidden not in text
    assert "import numpy as np\nfrom nn_manual.layers import Layer\n" in text
    assert text.count("raise NotImplementedError") == 1


@pytest.mark.parametrize(
    "docstring",
    [
        """output     = input * gate,  gate = expit(beta * input) = 1 / (1 + exp(-beta * input))
    grad_input = grad_output * (gate + HIDDEN)
    """,
        """Swish, any shape.

        output = input * gate
        gate   = expit(beta * input)
          grad_gate = HIDDEN
            + HIDDEN
        helper = HIDDEN

    The derivative is HIDDEN.
    """,
        """output = input * gate, grad_input = HIDDEN
    gate   = expit(beta * input)

    Backward: HIDDEN
    """,
    ],
)
def test_no_layout_of_a_docstring_tells_the_way_back(docstring: str) -> None:
    before, _, rest = TEACHERS.partition('"""Swish')
    forward = '"""The output; saves input and gate."""'
    told = rest.partition('"""')[2].replace(forward, '"""The output.\n\n        grad_input = HIDDEN\n        """')
    told = told.replace("clipped(input))", "clipped(input))  # HIDDEN")
    Path("my_layers.py").write_text(f'{before}"""{docstring}"""{told}')
    make("my_layers.py:Swish", Path("swish.py"))
    text = Path("swish.py").read_text()
    assert "HIDDEN" not in text
    assert re.search(r"output += input \* gate\n", text)
    assert re.search(r"gate += expit\(beta \* input\)", text)
    assert "grad_input =" not in text
    assert "#" not in text


def test_it_is_checked_without_the_teachers_file(tmp_path: Path) -> None:
    make("my_layers.py:Swish", Path("swish.py"))
    Path("my_layers.py").unlink()
    file = Path("swish.py")
    file.write_text(file.read_text().replace("        raise NotImplementedError\n", SOLVED))
    assert check_file(file).verdict.passed
    other = tmp_path / "handins" / "anna.py"
    other.parent.mkdir()
    other.write_text(file.read_text().replace("self.beta * input", "input"))
    said = str(check_file(other))
    assert "grad_input  WRONG on" in said
    assert "Swish(beta=2.0)" in said
    assert hint("swish.py") == "swish.py is an exercise of a teacher's, which has no hints"
    assert solution("swish.py") == "swish.py is an exercise of a teacher's, who has the solution"


def test_a_docstring_of_formulas_alone_keeps_their_indentation() -> None:
    Path("my_layers.py").write_text(TEACHERS.replace("math.no_such_function(saved)", "0 * saved"))
    make("my_layers.py:Step", Path("step.py"))
    text = Path("step.py").read_text()
    assert '    """Where it is positive.\n\n        output = input > 0\n' in text
    assert "import math" not in text


def test_numpy_is_imported_for_what_the_reader_writes() -> None:
    own = TEACHERS.replace("math.no_such_function(saved)", "0 * saved").replace("np.heaviside(input, 0)", "0 * input")
    Path("my_layers.py").write_text(own)
    make("my_layers.py:Step", Path("step.py"))
    assert "import numpy as np\n" in Path("step.py").read_text()


@pytest.mark.parametrize(
    ("component", "said"),
    [
        ("my_layers.py:Swsh", "my_layers.py: has no 'Swsh'; did you mean 'Swish'?"),
        ("my_layers.py", "'my_layers.py' names no class: write my_layers.py:Swish"),
        ("nowhere.py:Swish", "nowhere.py: there is no such file"),
        ("my_layers.py:Inherits", "my_layers.py:Inherits defines none of derivative, one_way_backward,"),
        ("my_layers.py:Step", "my_layers.py:73: AttributeError: module 'math' has no attribute 'no_such_function'"),
    ],
)
def test_what_cannot_be_made(component: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(component, Path("it.py"))
    assert said in str(caught.value)
    assert not Path("it.py").exists()
    assert not Path("it.exercise").exists()


def test_a_method_that_nothing_calls_is_not_left_to_the_reader() -> None:
    unused = "    def derivative(self, saved):\n        return 7 * saved\n\n    def _slope("
    Path("my_layers.py").write_text(TEACHERS.replace("    def _slope(", unused))
    with pytest.raises(ConfigError) as caught:
        make("my_layers.py:Swish", Path("swish.py"))
    assert str(caught.value) == (
        "my_layers.py:Swish: derivative is never called, so that nothing would check it: leave it out"
    )
    assert not Path("swish.py").exists()


@pytest.mark.usefixtures("checks_the_class")
def test_a_class_that_is_wrong_is_not_handed_out() -> None:
    Path("my_layers.py").write_text(TEACHERS.replace("(gate + self._slope", "(gate - self._slope"))
    with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(Swish\): 0\.grad_input") as caught:
        make("my_layers.py:Swish", Path("swish.py"))
    assert caught.value.exit_status == 3
    assert not Path("swish.py").exists()


LOSS = """\
import numpy as np
from dataclasses import dataclass
from nn_manual.losses import Loss


@dataclass(eq=False)
class Cubed(Loss):
    @classmethod
    def examples(cls):
        return [cls()]

    def forward(self, prediction, target):
        return (prediction**3).sum(), prediction

    def backward(self, saved):
        return 3 * saved**2
"""


@pytest.mark.usefixtures("checks_the_class")
def test_a_class_without_a_reference_gets_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_losses.py").write_text(LOSS)
    make("my_losses.py:Cubed", Path("cubed.py"))
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith("note: Cubed() can't be checked: ")
    assert said.endswith("what it computes counts as right")


@pytest.mark.parametrize("name", ["swish.py", "swish.exercise"])
def test_nothing_is_overwritten(name: str) -> None:
    Path(name).write_text("mine")
    with pytest.raises(ConfigError, match=r"is there already, and nothing is overwritten"):
        make("my_layers.py:Swish", Path("swish.py"))
    assert Path(name).read_text() == "mine"
    assert len([*Path().glob("swish.*")]) == 1


def test_a_hand_in_whose_class_has_another_name() -> None:
    make("my_layers.py:Swish", Path("swish.py"))
    Path("anna.py").write_text(Path("swish.py").read_text().replace("class Swish", "class Mine"))
    with pytest.raises(ConfigError, match=r"exercise: it needs a class Swish, of swish\.exercise$"):
        check_file(Path("anna.py"))


@pytest.mark.parametrize(
    ("factor", "said"),
    [(2, "has another forward, whose output differs"), (1, "has other settings or examples than the exercise")],
)
def test_a_hand_in_with_other_inputs(factor: int, said: str) -> None:
    array = np.arange(3.0)
    right = Reference("swish", "Swish", [("Swish()", "random")] * 2, [{"output": array}] * 2, ["output"])
    results = [{"output": factor * array}]
    assert judge(right, Answer(results), "anna.py").explanation[0].startswith(f"anna.py: Swish {said}")


def test_a_file_of_results_that_is_damaged() -> None:
    Path("swish.exercise").write_text("{}")
    with pytest.raises(DataError, match=r"swish\.exercise: is no exercise that nn-manual exercise make has written"):
        read_reference(Path("swish.exercise"))
    with pytest.raises(DataError, match=r"none\.exercise: No such file"):
        read_reference(Path("none.exercise"))
