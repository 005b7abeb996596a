"""The pytest plugin as its users meet it: the page's example, what is wrong with a marker, runs that don't use it."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from slow_cases import slow

from nn_manual import Layer, Linear, Sequential
from nn_manual.check.catalogue.labels import label
from nn_manual.config.module_folder import forget
from nn_manual.registry import components, examples

pytest_plugins = ["pytester"]

PAGE = Path(__file__).parent.parent / "docs" / "pytest_plugin.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
LAYER, MARKED, DOMAIN, UNMARKED, FUNCTION = BLOCKS
REPORT = re.findall(r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[0]
RIGHT = LAYER.replace("mean(axis=0)", "sum(axis=0)")


@pytest.fixture(scope="module", autouse=True)
def _loaded_for_good() -> None:
    """What an inner run would unload with all that it loads first: torch can't load its part twice."""
    importlib.import_module("torch._inductor.test_operators")
    importlib.import_module("nn_manual.check.catalogue.catalogue")


KINDS = ["random", "negative", "tied", "zero", "tiny", "scattered"]


def run(pytester: pytest.Pytester, layer: str, test: str, *arguments: str) -> pytest.RunResult:
    """pytest in a folder of the two files, with warnings as errors."""
    forget("my_layers")  # that of another test, which its config's folder keeps until the next config is read
    pytester.makepyfile(my_layers=layer, test_my_layers=test)
    pytester.syspathinsert()
    return pytester.runpytest_inprocess("-W", "error", "--strict-markers", "-p", "no:cacheprovider", *arguments)


def without_rounding(line: str) -> str:
    """A line of a report without what another processor rounds differently: the errors of the tensors that agree and
    the last digits of a value. The length of pytest's rules is left out, too.
    """
    line = re.sub(r"^(\S+ +\S+) +\S+ +\S+ +(1\.0e-12) +\S+$", r"\1 \2", line.strip(" _"))
    return re.sub(r"\d+\.\d{9,}", lambda value: f"{float(value[0]):.9g}", line)


def test_a_layer_of_a_model_stays_as_it_is(gradient_check: Callable[..., None]) -> None:
    """A copy of it is drawn anew and checked."""
    model = Sequential(Linear(3, 2), dtype="float64")
    before = model.param_arena.copy()
    for part in (model.layers[0], model):
        gradient_check(part, (4, 3))
    assert np.shares_memory(model.layers[0].param.weight, model.param_arena)
    np.testing.assert_array_equal(model.param_arena, before)


def test_the_example_fails_as_the_page_shows(pytester: pytest.Pytester) -> None:
    result = run(pytester, LAYER, MARKED)
    # An upstream gradient of zero makes a mean equal a sum, in both dtypes.
    result.assert_outcomes(failed=10, passed=2)
    shown = [without_rounding(line) for line in REPORT.splitlines()]
    printed = [without_rounding(line) for line in result.outlines]
    first = printed.index(shown[0])
    assert printed[first : first + len(shown)] == shown
    assert printed[first + len(shown)].startswith("test_gradients[")  # the next report: the page shows all of this one


def test_the_example_passes_once_it_is_right(pytester: pytest.Pytester) -> None:
    run(pytester, RIGHT, MARKED).assert_outcomes(passed=12)


def test_a_case_for_each_layer_shape_dtype_and_kind(pytester: pytest.Pytester) -> None:
    two_examples = RIGHT.replace("[(cls(3), (4, 3))]", "[(cls(3), (4, 3)), (cls(1), (5, 1))]")
    imported_and_private = "from nn_manual import Tanh\n_Private = Tanh\n" + two_examples
    result = run(pytester, imported_and_private, MARKED, "--collect-only", "-q")
    collected = [line for line in result.outlines if "::" in line]
    assert collected == [
        f"test_my_layers.py::test_gradients[{layer}-{dtype}-{kind}]"
        for layer in ("Scale(3)-4x3", "Scale(1)-5x1")
        for dtype in ("float32", "float64")
        for kind in KINDS
    ]


def test_the_fixture_without_the_marker(pytester: pytest.Pytester) -> None:
    run(pytester, RIGHT, UNMARKED).assert_outcomes(passed=2)
    result = run(pytester, LAYER, UNMARKED)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["gradient check failed: wrong first in 0.1 (Scale): 0.1.grad_weight"])


def test_a_layer_that_makes_no_model_fails_with_a_message_alone(pytester: pytest.Pytester) -> None:
    methods = ("noise_shapes(self, input_shape)", "draw_noise(self, generator)")
    random = "".join(f"    def {method}:\n        return {{}}\n\n" for method in methods) + "    def forward("
    result = run(pytester, RIGHT.replace("    def forward(", random), MARKED, "-k", "float64-random")
    result.assert_outcomes(failed=1, deselected=11)
    result.stdout.fnmatch_lines(["Scale has noise_shapes: it must define infer(input), or evaluation would take the *"])
    result.stdout.no_fnmatch_line("*contract.py*")


@pytest.mark.slow
def test_the_packages_own_layers(pytester: pytest.Pytester) -> None:
    """It alone lets the plugin find the layers of the package, and runs it on some of them."""
    test = MARKED.replace("my_layers", "nn_manual.layers")
    layers = [label(layer) for layer, _ in examples(components(Layer))]
    num_chosen = sum("norm" in layer.lower() for layer in layers)
    result = run(pytester, "", test, "-k", "float32-random and norm")
    result.assert_outcomes(passed=num_chosen, deselected=2 * len(KINDS) * len(layers) - num_chosen)


def test_a_weight_that_is_never_active_proves_nothing(pytester: pytest.Pytester) -> None:
    """The layer scales by its weights, rectified, which all start below 0."""
    dead = RIGHT.replace("uniform(0.5, 1.5,", "uniform(-1.5, -0.5,")
    dead = dead.replace("input * self.param.weight, input", "input * self.param.weight.clip(0), input")
    dead = dead.replace("return grad_output * self.param.weight\n", "return grad_output * self.param.weight.clip(0)\n")
    dead = dead.replace("input).sum(axis=0)\n        ret", "input).sum(axis=0) * (self.param.weight > 0)\n        ret")
    dead = dead.replace("        return input * weight\n", "        return input * weight.clamp(0)\n")
    result = run(pytester, dead, MARKED, "-k", "float64 and (random or zero)")
    result.assert_outcomes(failed=1, passed=1, deselected=10)
    result.stdout.fnmatch_lines(["gradient check failed: it proves nothing about 0 (Scale): 0.grad_input is zero"])


@pytest.mark.parametrize(
    ("layer", "test", "message"),
    [
        (RIGHT, MARKED.replace("my_layers", "no_layers"), "gradient_layers: there is no module 'no_layers'"),
        ("", MARKED, "gradient_layers: the module 'my_layers' defines no dataclass that is a Layer"),
        (RIGHT, MARKED.replace("layer_case, ", ""), "a test marked gradient_layers takes the fixture layer_case"),
        slow(RIGHT, MARKED.replace('("my_layers")', ""), "gradient_layers takes the name of one module*"),
        (RIGHT, MARKED.replace('"my_layers"', '"my_layers", "b"'), "gradient_layers takes the name of one module*"),
        (
            RIGHT.partition("    @classmethod")[0],
            MARKED,
            "gradient_layers: *missing 1 required positional argument: 'num_features': define its classmethod*",
        ),
        *(
            slow(
                RIGHT.replace("[(cls(3), (4, 3))]", wrong),
                MARKED,
                f"gradient_layers: Scale.examples() returned {returned}: define its classmethod*pairs",
            )
            for wrong, returned in (
                *(("(cls(3), (4, 3))", "*"), ("[(cls(3),)]", "*"), ("[(cls(3), 4)]", "*")),
                ("[]", "[[]]"),
            )
        ),
    ],
    ids=[
        *("no module", "no layer", "no fixture", "no argument", "two arguments", "no examples"),
        *("one pair", "no shape", "a number", "none"),
    ],
)
def test_what_is_wrong_is_said_at_collection(pytester: pytest.Pytester, layer: str, test: str, message: str) -> None:
    result = run(pytester, layer, test)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_an_import_error_inside_the_module_is_shown_as_it_is(pytester: pytest.Pytester) -> None:
    result = run(pytester, "import no_such_library\n" + RIGHT, MARKED)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*my_layers.py:1: *", "*No module named 'no_such_library'*"])


@pytest.mark.slow
def test_the_pages_domain(pytester: pytest.Pytester) -> None:
    """It alone runs the page's layer with a domain."""
    log = f'''
import numpy as np
{DOMAIN}
    def forward(self, input):
        return np.log(input), input

    def backward(self, saved, grad_output):
        return grad_output / saved

    def reference(self, input):
        return input.log()
'''
    run(pytester, log, MARKED).assert_outcomes(passed=24)
    result = run(pytester, log.replace('"positive"', '"negative"'), MARKED)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ValueError: Log.domain is *, not 'negative'"])


def test_a_run_without_the_marker_loads_nothing(pytester: pytest.Pytester) -> None:
    """In a process of its own: installed, the plugin is there, imports only pytest, and changes no environment."""
    pytester.makepyfile(
        """
        import os
        import sys

        def test_nothing_is_loaded(request):
            assert request.config.pluginmanager.get_plugin("nn_manual").__name__ == "_nn_manual_pytest_plugin"
            assert not {"nn_manual", "numpy", "torch"} & sys.modules.keys()
            assert not {name for name in os.environ if name.startswith(("OPENBLAS_", "GOMP_"))}
        """
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS_", "GOMP_"))}
    command = [sys.executable, "-m", "pytest", "-W", "error", "-p", "no:hypothesispytest", "-p", "no:cacheprovider"]
    done = subprocess.run(command, cwd=pytester.path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout


def test_it_is_this_module_that_pytest_finds() -> None:
    project = tomllib.loads((PAGE.parents[1] / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"nn_manual": "_nn_manual_pytest_plugin"}
    assert project["tool"]["setuptools"]["py-modules"] == ["_nn_manual_pytest_plugin"]


def test_a_function_is_checked_by_the_fixture(pytester: pytest.Pytester) -> None:
    run(pytester, LAYER, FUNCTION).assert_outcomes(passed=1)
    wrong = FUNCTION.replace("x.sigmoid()", "x.sigmoid().detach()")
    assert wrong != FUNCTION
    result = run(pytester, LAYER, wrong)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["gradient check failed: wrong first in silu: grad_x, random upstream"])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("function_check(torch.sin, torch.sin, [torch.ones(2)], kinds=['odd'])", "there is no kind 'odd': it must be"),
        ("function_check(torch.sin, lambda x: x[9], [torch.ones(2)])", "the reference raised IndexError: index 9 is"),
        ("function_check(torch.sin, torch.sin, lambda generator, N: 1 / 0, sizes={'N': 4})", "raised by the function"),
    ],
)
def test_arguments_that_do_not_fit_are_one_line(pytester: pytest.Pytester, call: str, words: str) -> None:
    result = run(pytester, LAYER, f"import torch\n\n\ndef test_it(function_check):\n    {call}\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{words}*"])
    assert "check_function.py" not in result.stdout.str()
    assert "another exception" not in result.stdout.str()


def test_memory_that_is_not_there_is_no_difference(pytester: pytest.Pytester) -> None:
    large = RIGHT.replace("return input * self.param.weight, input", "return np.empty((1 << 40, 1 << 10)), None")
    large = f"import numpy as np\n{large}"
    result = run(pytester, large, MARKED, "-k", "float64-random")
    result.assert_outcomes(failed=1, deselected=11)
    result.stdout.fnmatch_lines(["not enough memory: Unable to allocate 8.00 PiB *"])
    result.stdout.no_fnmatch_line("*Traceback*")
    function = FUNCTION.replace("x * x.sigmoid()", "torch.empty(1 << 45)")
    result = run(pytester, RIGHT, function)
    result.stdout.fnmatch_lines(["not enough memory: torch tried to allocate 140,737,488,355,328 bytes"])
