"""nn-manual check-function: exit statuses 0, 2 and 3, and one message for each mistake."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nn_manual.cli import main

KERNELS = """
import torch
from torch.autograd.function import once_differentiable


class Scale(torch.autograd.Function):
    factor = 1.0

    @staticmethod
    def forward(context, x, weight):
        context.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    @once_differentiable
    def backward(context, grad_output):
        x, weight = context.saved_tensors
        return grad_output * weight, (grad_output.float() * x.float()).sum(0).to(x.dtype)


class Half(Scale):
    @staticmethod
    @once_differentiable
    def backward(context, grad_output):
        grad_x, grad_weight = Scale.backward(context, grad_output)
        return grad_x, grad_weight / 2


def definition(x, weight):
    return x * weight


def constant(x, weight):
    return (x * weight).detach()


def several(x, weight):
    return x * weight, x


def raises(x, weight):
    raise KeyError("nothing")


def leaves(x, weight):
    raise SystemExit(0)


class Ends(Scale):
    @staticmethod
    def backward(context, grad_output):
        raise SystemExit(0)


def no_way_back(x, weight):
    return Ends.apply(x, weight)


class Norm(torch.nn.Module):
    def forward(self, x, weight):
        return x * weight


number = 3
"""


@pytest.fixture
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "the_kernels.py"
    path.write_text(KERNELS)
    (tmp_path / "broken_kernels.py").write_text("\n\n1 / 0\n")
    (tmp_path / "unreadable_kernels.py").write_text("\nx = = 2\n")
    (tmp_path / "ending_kernels.py").write_text("import sys\nsys.stdout = None\nraise KeyboardInterrupt\n")
    yield path
    for name in ("the_kernels", "broken_kernels", "unreadable_kernels", "ending_kernels"):
        sys.modules.pop(name, None)


def run(function: str = "Scale", *more: str, reference: str = "definition", shapes: str = "NxD,D") -> int:
    path = function if ":" in function else f"the_kernels:{function}"
    given = ["--shapes", shapes, *([] if "--sizes" in more else ["--sizes", "N=4,D=6"]), *more]
    return main(["check-function", path, "--reference", f"the_kernels:{reference}", *given])


@pytest.mark.usefixtures("kernels")
def test_a_right_kernel_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("Scale", "--dtype", "bfloat16", "--dtype", "float32") == 0
    said = capsys.readouterr().out
    assert said.startswith("5 tensors equal torch's")
    assert "dtype          float32\n" in said


@pytest.mark.usefixtures("kernels")
def test_a_wrong_one_ends_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("Half") == 3
    said = capsys.readouterr().out
    assert said.startswith("gradient check failed: wrong first in Half: grad_weight, random upstream")
    assert "1/2 of the reference" in said


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("kernel", "method"), [("leaves", "forward"), ("Ends", "backward")])
def test_a_kernel_that_ends_python_is_a_mismatch(
    kernel: str, method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(kernel) == 3
    assert f"{kernel}: {method} raised RuntimeError: sys.exit(0)" in capsys.readouterr().out


@pytest.mark.usefixtures("kernels")
def test_another_structure_is_a_mismatch(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("Scale", reference="several") == 3
    assert "Scale: 1 outputs, the reference has 2" in capsys.readouterr().out


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["no_kernels:Scale"], "no module 'no_kernels' in "),
        (["broken_kernels:Scale"], "broken_kernels.py:3"),
        (["Scael"], "'the_kernels' has no 'Scael': did you mean 'Scale'?"),
        (["the_kernels:"], "is no import path: write module:name"),
        (["number"], "the_kernels:number is int, not a function"),
        (["Norm"], "the_kernels:Norm is a class: name an instance of it"),
        (["unreadable_kernels:Scale"], "raised SyntaxError: invalid syntax"),
        (["unreadable_kernels:Scale"], "unreadable_kernels.py:2\n"),
        (["ending_kernels:Scale"], "raised KeyboardInterrupt at "),
        (["Scale", "--sizes", "N=4"], "--sizes: there is no size for D, which --shapes has"),
        (["Scale", "--sizes", "N=4,D=6,E=2"], "--sizes: E is in none of the shapes"),
        (["Scale", "--sizes", "N=four,D=6"], "--sizes: 'N=four' is no size"),
        (["Scale", "--dtype", "int8"], "the_kernels:Scale: dtype 'int8' can't be judged"),
        (["Scale", "--skip", "sise"], "there is no row 'sise' to skip"),
    ],
)
def test_a_mistake_ends_with_2(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1
    assert not said.out


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    ("reference", "shapes", "words"),
    [
        ("raises", "NxD,D", "the reference the_kernels:raises raised KeyError: 'nothing' at "),
        ("leaves", "NxD,D", "the reference the_kernels:leaves raised RuntimeError: sys.exit(0)"),
        ("no_way_back", "NxD,D", "the reference the_kernels:no_way_back raised RuntimeError: sys.exit(0)"),
        ("constant", "NxD,D", "no output of the reference depends on a floating input"),
        ("definition", "NxD", "the reference the_kernels:definition raised TypeError"),
        ("definition", "NxD,N", "the reference the_kernels:definition raised RuntimeError"),
        ("definition", "N*D,D", "--shapes: 'N*D' is no shape"),
        ("definition", "3,3", "--sizes: D is in none of the shapes"),
    ],
)
def test_a_reference_or_shapes_that_do_not_fit_end_with_2(
    reference: str, shapes: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(reference=reference, shapes=shapes) == 2
    said = capsys.readouterr()
    assert words in said.err
    assert said.err.count("\n") == 1


def test_help_has_the_exit_statuses_and_several_dtypes(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["check-function", "--help"])
    said = capsys.readouterr().out
    assert "  3    a value or a row is wrong" in said
    assert "bfloat16,float32" in said
