"""A method of the user's own that doesn't take what it is called with: named by its own line, not by ours."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from own_components import MINE, write_own

from nn_manual import cli

LOAD = "load(self, seed, dtype, transform=None)"
#: A layer that is added to the page's classes, and where it stands in their config.
LAYER = """

from nn_manual.layers import Layer


@dataclass(eq=False)
class Scaled(Layer):
    def parameter_shapes(self):
        return {"weight": (8,)}

    def reset_parameters(self, generator):
        self.param.weight[...] = 1

    def forward(self, input):
        return input * self.param.weight, input

    def backward(self, saved, grad_output):
        self.grad.weight[...] = (saved * grad_output).sum(axis=0)
        return grad_output * self.param.weight

    def reference(self, input, weight):
        return input * weight
"""


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """mine.py is another one in each test."""
    monkeypatch.delitem(sys.modules, "mine", raising=False)


def line_of(code: str, text: str) -> int:
    return 1 + code[: code.index(text)].count("\n")


def said(folder: Path, capsys: pytest.CaptureFixture[str], code: str, *options: str) -> str:
    """What a training with these classes says on standard error, in one line."""
    config = write_own(folder, code)
    config.write_text(config.read_text().replace("  - Tanh\n", "  - Tanh\n  - mine:Scaled\n"))
    assert cli.main(["train", str(config), "--run-dir", str(folder / "run"), *options]) in (2, 3)
    sys.modules.pop("mine", None)
    return " ".join(capsys.readouterr().err.split())


#: The method, its wrong parameters, and what Python says of the call.
WRONG = {
    "LogCoshLoss.term(self, prediction, target)": ("self, prediction", "takes 2 positional arguments but 3 were given"),
    "LogCoshLoss.derivative(self, saved)": ("self", "takes 1 positional argument but 2 were given"),
    "SignSGD.move(self, param, grad, vectors, coefficients)": (
        "self, param, grad", "takes 3 positional arguments but 5 were given"
    ),
    "SignSGD.coefficients(self, step)": ("self", "takes 1 positional argument but 2 were given"),
    "SignSGD.reference(self, param, grad, vectors, step)": (
        "self, param, grad, vectors, step, lr", "missing 1 required positional argument: 'lr'"
    ),
    "Warmup.lr(self, initial_lr, count)": ("self, count", "takes 2 positional arguments but 3 were given"),
    "Laplace.fill(self, weight, generator)": ("self, weight", "takes 2 positional arguments but 3 were given"),
    f"Waves.{LOAD}": ("self, seed", "takes 2 positional arguments but 3 were given"),
    "Scaled.reset_parameters(self, generator)": ("self", "takes 1 positional argument but 2 were given"),
    "Scaled.forward(self, input)": ("self, input, mask", "missing 1 required positional argument: 'mask'"),
    "Scaled.backward(self, saved, grad_output)": ("self, saved", "takes 2 positional arguments but 3 were given"),
}  # fmt: skip - one method a line


@pytest.mark.parametrize("method", WRONG)
def test_its_line_and_its_signature_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], method: str
) -> None:
    (owner, _, needed), (parameters, words) = method.partition("."), WRONG[method]
    name = needed.partition("(")[0]
    before, begin, rest = (MINE + LAYER).partition(f"class {owner}(")
    assert f"def {needed}:" in rest
    code = before + begin + rest.replace(f"def {needed}:", f"def {name}({parameters}):", 1)
    message = said(tmp_path, capsys, code)
    place = f"{tmp_path}/mine.py:{line_of(code, f'def {name}({parameters}):')}"
    assert place in message
    assert f"TypeError: {owner}.{name}() {words}: its signature must be {needed}" in message
    assert "may have returned it" not in message
    assert "nn_manual/" not in message.replace(str(tmp_path), "")


def test_also_where_nothing_is_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = (MINE + LAYER).replace("def backward(self, saved, grad_output)", "def backward(self, saved)")
    message = said(tmp_path, capsys, code, "gradient_check.every=0")
    words = "Scaled.backward() takes 2 positional arguments but 3 were given"
    place = f"{tmp_path}/mine.py:{line_of(code, 'def backward(self, saved)')}"
    needed = "its signature must be backward(self, saved, grad_output)"
    assert message.startswith(f"nn-manual: {place}: TypeError: {words}: {needed} ")


def test_a_layers_reference_takes_what_the_layer_has(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """So its base class says no signature of it."""
    code = (MINE + LAYER).replace("def reference(self, input, weight)", "def reference(self, input)")
    message = said(tmp_path, capsys, code)
    place = f"{tmp_path}/mine.py:{line_of(code, 'def reference(self, input):')}"
    assert f"TypeError: Scaled.reference() got an unexpected keyword argument 'weight' ({place})" in message


def test_a_wrong_call_of_the_users_own_is_named_by_its_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The method that it calls is right."""
    call = "        self.coefficients()\n        momentum_buffer *="
    code = (MINE + LAYER).replace("        momentum_buffer *=", call)
    message = said(tmp_path, capsys, code)
    words = "SignSGD.coefficients() missing 1 required positional argument: 'step'"
    assert message.startswith(f"nn-manual: {tmp_path}/mine.py:{line_of(code, call)}: TypeError: {words} stopped in ")
