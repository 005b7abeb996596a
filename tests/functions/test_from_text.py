"""check_function from text: one message for each mistake, and for each reference that doesn't fit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kernel_files import SCALE
from no_files import NO_FILES

from nn_manual.errors import ConfigError
from nn_manual.functions.from_text import check_named_function
from nn_manual.functions.request import Request

KERNELS = SCALE + """
import numpy



def definition(x, weight):
    return x * weight


def constant(x, weight):
    return (x * weight).detach()


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


class ReLU:
    def forward(self, x):
        return x

    def backward(self, dout):
        return dout


relu = ReLU()


def rows(indices, table):
    return table[indices], (indices, table.shape)


def rows_backward(dout, cache):
    gradient = numpy.zeros(cache[1])
    numpy.add.at(gradient, cache[0], dout)
    return None, gradient


def forward(x, weight):
    return numpy.multiply(x, weight), (x, weight)


def backward(grad, cache):
    x, weight = cache
    return grad * weight, (grad * x).sum(0)


def wrong_backward(grad, cache):
    x, weight = cache
    return grad * weight, (grad * x).mean(0)


pair = forward, backward


def lookup(indices, table):
    return table[indices]


def scaled_lookup(indices, table):
    return 2 * table[indices]
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
    (tmp_path / "silent_kernels.py").write_text("def __getattr__(name):\n    raise RuntimeError(f'no {name}')\n")
    yield path
    for name in ("the_kernels", "broken_kernels", "unreadable_kernels", "ending_kernels", "silent_kernels"):
        sys.modules.pop(name, None)


def check(
    function: str = "Scale",
    reference: str = "definition",
    shapes: str = "NxD,D",
    sizes: str = "N=4,D=6",
    dtypes: tuple[str, ...] = (),
    **options: Any,
) -> None:
    path = function if ":" in function else f"the_kernels:{function}"
    check_named_function(
        Request(path, f"the_kernels:{reference}", shapes, sizes, dtypes=dtypes, **options)
    )


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("no_kernels:Scale", {}, "no module 'no_kernels' in "),
        ("broken_kernels:Scale", {}, "broken_kernels.py:3"),
        ("Scael", {}, "'the_kernels' has no 'Scael': did you mean 'Scale'?"),
        ("silent_kernels:Scale", {}, "'silent_kernels:Scale' can't be read: Scale raised RuntimeError: no Scale at "),
        ("the_kernels.py:Scale", {}, "names a file: write the module, 'the_kernels:Scale'"),
        ("./some/kernels.py:Scale", {}, "names a file: write the module, 'some.kernels:Scale'"),
        ("the_kernels:", {}, "is no import path: write module:name"),
        ("number", {}, "the_kernels:number is int, not a function"),
        ("Norm", {}, "the_kernels:Norm is a class: name an instance of it"),
        ("ReLU", {}, "the_kernels:ReLU is a class: name HandwrittenClass(ReLU, gradients), made in its module"),
        ("relu", {}, "relu is ReLU, not a function: name HandwrittenClass(ReLU, gradients), made in its module"),
        ("unreadable_kernels:Scale", {}, "raised SyntaxError: invalid syntax"),
        ("unreadable_kernels:Scale", {}, "unreadable_kernels.py:2"),
        ("ending_kernels:Scale", {}, "raised KeyboardInterrupt at "),
        ("Scale", {"sizes": "N=4"}, "--sizes: there is no size for D, which --shapes has"),
        ("Scale", {"sizes": "N=4,D=6,E=2"}, "--sizes: E is in none of the shapes"),
        ("Scale", {"sizes": "N=four,D=6"}, "--sizes: 'N=four' is no size"),
        ("Scale", {"sizes": "N=4,D===6"}, "--sizes: 'D===6' is no size"),
        ("Scale", {"sizes": "N=4,D=0"}, "--sizes: NxD is empty at the full sizes: there is nothing to compare"),
        ("Scale", {"sizes": "N=4,D=0,D=0"}, "--sizes: NxD is empty at the full sizes: there is nothing to compare"),
        (
            "Scale",
            {"sizes": f"N={10**20 - 1},D=3"},
            "--sizes: NxD has 299,999,999,999,999,999,997 numbers: a tensor has at most 1,152,921,504,606,846,975",
        ),
        ("Scale", {"sizes": f"N={'9' * 100},D=3"}, "is no size: write N=8,D=128"),
        ("Scale", {"integers": ("3=N",)}, "--integers: '3=N' doesn't fit: write 2=C or 2=10 for the second of 2 in"),
        ("Scale", {"integers": ("2=C",)}, "--integers: '2=C' doesn't fit"),
        ("Scale", {"integers": ("2",)}, "--integers: '2' doesn't fit"),
        ("Scale", {"kinds": ("negativ",)}, "there is no kind 'negativ': it must be negative, tied"),
        ("Scale", {"tolerance": 2.0}, "tolerance must be above 0 and below"),
        ("Scale", {"dtypes": ("int8",)}, "the_kernels:Scale: dtype 'int8' can't be judged"),
        ("Scale", {"skip": ("sise",)}, "there is no row 'sise' to skip"),
        ("Scale", {"skip": ("settings",), "only": ("settings",)}, "skip leaves out every row that only names"),
    ],
)
def test_a_mistake_is_one_line(function: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(function, **options)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file(kernels: Path, make: Callable[[Path], object], words: str) -> None:
    """Python passes over it, and says that there is no such module."""
    file = kernels.with_name("waiting_kernels.py")
    make(file)
    with pytest.raises(ConfigError) as caught:
        check("waiting_kernels:Scale")
    assert str(caught.value) == f"{file}: {words}"


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
def test_a_reference_or_shapes_that_do_not_fit(reference: str, shapes: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(reference=reference, shapes=shapes)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def passes(function: str, reference: str | None, shapes: str = "NxD,D", sizes: str = "N=4,D=6", **options: Any) -> bool:
    path = None if reference is None else f"the_kernels:{reference}"
    rows = ("retain_graph", "sizes", "kinds")
    request = Request(f"the_kernels:{function}", path, shapes, sizes, only=rows, **options)
    return check_named_function(request).passed


@pytest.mark.slow
@pytest.mark.usefixtures("kernels")
def test_a_pair() -> None:
    """It gets NumPy arrays. It alone names the two functions of a pair."""
    assert passes("forward", "definition", backward="the_kernels:backward")
    assert passes("pair", "definition")
    assert not passes("forward", "definition", backward="the_kernels:wrong_backward")


@pytest.mark.slow
@pytest.mark.usefixtures("kernels")
def test_no_reference() -> None:
    """It alone puts handwritten pairs without a reference through the whole battery."""
    assert passes("pair", None, sizes="N=4,D==3")
    assert not passes("forward", None, sizes="N=4,D==3", backward="the_kernels:wrong_backward")


@pytest.mark.usefixtures("kernels")
def test_indices_that_are_no_integers_are_an_error_of_forward() -> None:
    """Without a reference, forward itself runs in its place."""
    request = Request("the_kernels:rows", None, "N,CxD", "N=5,C=4,D=3", backward="the_kernels:rows_backward")
    words = r"^the_kernels:rows: forward raised IndexError: arrays used as .* at .*py:\d+$"
    with pytest.raises(ConfigError, match=words):
        check_named_function(request)


@pytest.mark.usefixtures("kernels")
def test_inputs_of_integers() -> None:
    assert passes("lookup", "lookup", "N,CxD", "N=5,C=4,D=3", integers=("1=C",))
    assert not passes("scaled_lookup", "lookup", "N,CxD", "N=5,C=4,D=3", integers=("1=C",))


@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize(("sizes", "tried"), [("N=4,D==6", ["D=6"]), ("N=4,D=3,D=6", ["D=3", "D=6"])])
def test_sizes_of_which_no_others_are_tried(sizes: str, tried: list[str]) -> None:
    request = Request("the_kernels:Scale", "the_kernels:definition", "NxD,D", sizes, only=("sizes",))
    report = check_named_function(request)
    assert report.passed, report
    assert [row.variant for row in report.rows if row.family == "sizes" and row.variant.startswith("D")] == tried


@pytest.mark.usefixtures("kernels")
def test_kinds_and_tolerance() -> None:
    request = Request("the_kernels:Scale", "the_kernels:definition", "NxD,D", "N=4,D=6", kinds=("tied",), tolerance=0.1)
    report = check_named_function(request._replace(only=("kinds",)))
    assert [row.variant for row in report.rows if row.family == "kinds"] == ["tied"]
    assert {comparison.tolerance for comparison in report.comparisons} == {0.1}
