"""A layer of the user's own, named in a config by its import path."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from nn_manual import cli
from nn_manual.config import dump_config, load_config

from .conftest import VALID, ErrorsOf

MY_LAYERS = '''\
from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import Field

import my_formulas
from nn_manual.layers import Layer


@dataclass(eq=False)
class Softplus(Layer):
    """log(1 + exp(beta * input)) / beta, which torch.nn has under the same name."""

    beta: Annotated[float, Field(gt=0)] = 1.0

    def forward(self, input):
        return my_formulas.softplus(input, self.beta), input

    def backward(self, saved, grad_output):
        return grad_output / (1 + np.exp(-self.beta * saved))


class Plain(Softplus):
    pass


@dataclass(eq=False)
class Unfinished(Layer):
    def forward(self, input):
        return input, None


@dataclass(eq=False)
class Weighted(Softplus):
    weight: np.ndarray = None


@dataclass(eq=False)
class Refusing(Softplus):
    def __post_init__(self):
        raise RuntimeError("out of order")


@dataclass(eq=False)
class Shapeless(Softplus):
    def parameter_shapes(self):
        return {"weight": 3}


@dataclass(eq=False)
class Lost(Softplus):
    def output_shape(self, input_shape):
        pass


@dataclass(eq=False)
class Stumbling(Softplus):
    def output_shape(self, input_shape):
        return input_shape + self.no_such_field


@dataclass(eq=False)
class Sized(Softplus):
    size: int = 1

    def __post_init__(self):
        if self.size < 1:
            raise ValueError(f"size must be at least 1, not {self.size}")


@dataclass(eq=False)
class Jitter(Softplus):
    def noise_shapes(self, input_shape):
        return {"factor": input_shape}

    def draw_noise(self, generator):
        self.noise.factor[...] = generator.random(self.noise.factor.shape)


@dataclass(eq=False)
class Around(Layer):
    inner: Layer

    def forward(self, input):
        return self.inner.forward(input)

    def backward(self, saved, grad_output):
        return self.inner.backward(saved, grad_output)


class Other:
    pass
'''
MY_FORMULAS = "import numpy as np\n\n\ndef softplus(input, beta):\n    return np.logaddexp(0, beta * input) / beta\n"
#: A run of six steps.
TRAINED = """\
data: {Spirals: {num_examples: 60, turns: 0.5, validation_fraction: 0.2}}
batch_size: 16
epochs: 2
model:
  - Linear: {in_features: 2, out_features: 8}
  - my_layers:Softplus: {beta: 2.0}
  - Linear: {in_features: 8, out_features: 2}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.5}}
"""


def with_layer(layer: str) -> str:
    return VALID.replace("  - ReLU\n", f"  - {layer}\n")


@pytest.fixture(autouse=True)
def modules(tmp_path: Path) -> None:
    """my_layers.py and what it imports."""
    (tmp_path / "my_layers.py").write_text(MY_LAYERS)
    (tmp_path / "my_formulas.py").write_text(MY_FORMULAS)


@pytest.mark.parametrize(
    ("layer", "beta"), [("my_layers:Softplus: {beta: 2.0}", 2.0), ("my_layers:Softplus", 1.0)]
)
def test_a_layer_by_its_import_path(tmp_path: Path, layer: str, beta: float) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(with_layer(layer))
    softplus = load_config(path).named_layers()["model.1"]
    assert (type(softplus).__module__, type(softplus).__name__) == ("my_layers", "Softplus")
    assert vars(softplus) == {"beta": beta}
    output, _ = softplus.forward(np.zeros(1))
    assert output[0] == np.log(2) / beta
    override = [] if "{" not in layer else ["model.1.my_layers:Softplus.beta=3"]
    assert vars(load_config(path, override).model[1])["beta"] == (3 if override else 1)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["my_formulas.py", "my_layers.py", "run.yaml"]
    assert str(tmp_path) not in sys.path


def test_a_layer_of_a_package_in_the_folder(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/__init__.py").write_text("")
    (tmp_path / "mine/activations.py").write_text(MY_LAYERS)
    (tmp_path / "run.yaml").write_text(with_layer("mine.activations:Softplus"))
    assert type(load_config(tmp_path / "run.yaml").model[1]).__module__ == "mine.activations"


@pytest.mark.parametrize("layer", ["mine.layers:Softplus", "mine.layers:Softplus: {beta: 3.0}"])
def test_an_override_reaches_into_a_layer_whose_path_has_dots(tmp_path: Path, layer: str) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "layers.py").write_text(MY_LAYERS)
    (tmp_path / "dotted.yaml").write_text(with_layer(layer))
    config = load_config(tmp_path / "dotted.yaml", ["model.1.mine.layers:Softplus.beta=0.5", "epochs=3"])
    assert vars(config.model[1])["beta"] == 0.5
    assert config.epochs == 3


def test_a_layer_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    for name in ("my_layers.py", "my_formulas.py"):
        (tmp_path / name).rename(tmp_path / "elsewhere" / name)
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    (tmp_path / "run.yaml").write_text(with_layer("my_layers:Softplus"))
    assert type(load_config(tmp_path / "run.yaml").model[1]).__name__ == "Softplus"


def test_the_built_in_layer_by_its_import_path_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(with_layer("nn_manual.layers:Tanh"))
    assert "- Tanh\n" in dump_config(load_config(tmp_path / "run.yaml"))


def test_a_module_changed_since_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(with_layer("my_layers:Softplus"))
    load_config(path)
    (tmp_path / "my_layers.py").write_text(MY_LAYERS.replace("= 1.0", "= 4.0"))
    assert vars(load_config(path).model[1]) == {"beta": 4.0}


def test_a_resolved_config_finds_the_layer_from_any_folder(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(with_layer("my_layers:Softplus: {beta: 2.0}"))
    dumped = dump_config(load_config(tmp_path / "run.yaml"))
    assert "- my_layers:Softplus: {beta: 2.0}\n" in dumped
    assert f"layer_folder: {tmp_path}\n" in dumped
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/config.yaml").write_text(dumped)
    again = load_config(tmp_path / "runs/config.yaml")
    assert vars(again.model[1]) == {"beta": 2.0}
    assert dump_config(again) == dumped


def test_a_folder_is_no_module(tmp_path: Path, errors_of: ErrorsOf) -> None:
    """It isn't suggested either; and of no module there is, none is the nearest."""
    message = f"run.yaml:8:5: no module 'other' in {tmp_path / 'empty'}, and none of that name is installed"
    (tmp_path / "empty" / "other.py").mkdir(parents=True)
    assert errors_of(with_layer("other:Softplus") + "layer_folder: empty\n") == [message]


@pytest.mark.parametrize(
    ("layer", "error"),
    [
        ("my_layer:Softplus", "no module 'my_layer' in {folder}, and none of that name is installed; "
                              "did you mean 'my_layers'?"),
        ("my_layers.more:Softplus", "no module 'my_layers.more' in {folder}, and none of that name is installed; "
                                    "did you mean 'my_layers'?"),
        ("my_layers:SoftPlus", "module 'my_layers' has no 'SoftPlus'; did you mean 'Softplus'?"),
        ("my_layers:Other", "my_layers:Other is not a Layer: derive it from nn_manual.layers.Layer"),
        ("my_layers:Plain", "my_layers:Plain is not a dataclass: write @dataclass(eq=False) above the class"),
        ("my_layers:Unfinished", "my_layers:Unfinished lacks backward, which every layer has"),
        ("my_layers:Weighted", "my_layers:Weighted: a config can't hold its field weight, of type numpy.ndarray"),
        ("my_layers:Refusing", "my_layers:Refusing raised RuntimeError: out of order"),
        (
            "my_layers:Shapeless",
            "Shapeless.parameter_shapes must return a dict of tuples such as {{'weight': (3,)}}, not {{'weight': 3}}",
        ),
        ("my_layers:Lost", "output_shape returned None, not a tuple"),
        ("my_layers:Stumbling", "output_shape raised AttributeError: 'Stumbling' object has no attribute "
                                "'no_such_field'"),
        ("my_layers:Jitter", "Jitter has noise_shapes: it must define infer(input), or evaluation would take the "
                             "random numbers of the last training step"),
        ("my_layers:Around: {inner: Dropout}", "Around is made of layers of which inner (Dropout) evaluates otherwise "
                                               "than it trains: it must define infer(input), which runs theirs"),
        ("'my_layers:'", "'my_layers:' is no import path: a layer of one's own is named module:Class"),
        ("../my_layers:Softplus", "'../my_layers:Softplus' is no import path: a layer of one's own is named "
                                  "module:Class"),
    ],
)  # fmt: skip - one case a line
def test_a_layer_that_cannot_be_had(tmp_path: Path, errors_of: ErrorsOf, layer: str, error: str) -> None:
    assert errors_of(with_layer(layer)) == [f"run.yaml:8:5: {error.format(folder=tmp_path)}"]


@pytest.mark.parametrize(
    ("arguments", "column", "error"),
    [
        ("{beta: 0.0}", 26, "beta must be above 0, not 0.0"),
        ("{bta: 1.0}", 26, "unknown key 'bta' in my_layers:Softplus; did you mean 'beta'?"),
    ],
)
def test_a_users_keyword_arguments_are_validated(
    errors_of: ErrorsOf, arguments: str, column: int, error: str
) -> None:
    assert errors_of(with_layer(f"my_layers:Softplus: {arguments}")) == [f"run.yaml:8:{column}: {error}"]


def test_a_value_that_post_init_refuses(errors_of: ErrorsOf) -> None:
    assert errors_of(with_layer("my_layers:Sized: {size: 0}")) == [
        "run.yaml:8:23: size must be at least 1, not 0"
    ]


@pytest.mark.parametrize(
    ("file", "code", "line", "error"),
    [
        ("my_layers.py", "import numpy\n\nnumpy.no_such_thing\n", 3, "AttributeError: module 'numpy' has no "),
        ("my_layers.py", "\nclass Softplus(:\n", 2, "SyntaxError: invalid syntax"),
        ("my_layers.py", "import no_such_module\n", 1, "ModuleNotFoundError: No module named 'no_such_module'"),
        ("my_layers.py", "raise SystemExit(3)\n", 1, "SystemExit: 3"),
        ("my_layers.py", "import numpy\nnumpy.zeros(-1)\n", 2, "ValueError: negative dimensions are not allowed"),
        ("my_formulas.py", "\n\n1 / 0\n", 3, "ZeroDivisionError: division by zero"),
    ],
)
def test_an_error_inside_the_module(
    tmp_path: Path, errors_of: ErrorsOf, file: str, code: str, line: int, error: str
) -> None:
    (tmp_path / file).write_text(code)
    (found,) = errors_of(with_layer("my_layers:Softplus"))
    assert found.startswith(f"run.yaml:8:5: {tmp_path}/{file}:{line}: {error}")


@pytest.mark.parametrize("name", ["json", "yaml"])
def test_a_module_may_not_bear_an_installed_ones_name(tmp_path: Path, errors_of: ErrorsOf, name: str) -> None:
    (tmp_path / f"{name}.py").write_text(MY_LAYERS)
    before = sys.modules[name]
    assert errors_of(with_layer(f"{name}:Softplus")) == [
        f"run.yaml:8:5: module '{name}' in {tmp_path} bears the name of an installed one: rename it"
    ]
    assert sys.modules[name] is before


def test_only_a_layer_may_be_the_users(errors_of: ErrorsOf) -> None:
    (found,) = errors_of(VALID.replace("loss: CrossEntropyLoss", "loss: my_layers:Softplus"))
    assert found.startswith("run.yaml:10:7: unknown loss 'my_layers:Softplus'")


def test_it_trains_checked_and_plot_never_runs_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, run = tmp_path / "small.yaml", tmp_path / "run"
    config.write_text(TRAINED)
    assert cli.main(["train", str(config), "--run-dir", str(run)]) == 0
    assert cli.main(["check", str(run / "config.yaml")]) == 0
    assert "1.output" in capsys.readouterr().out
    (tmp_path / "my_layers.py").write_text("raise SystemExit('plot ran a module of the user')\n")
    del sys.modules["my_layers"]
    assert cli.main(["plot", str(run), "-o", str(tmp_path / "loss.svg")]) == 0
    assert "my_layers" not in sys.modules
    wrong = MY_LAYERS.replace("grad_output / (1 +", "grad_output / (2 +")
    assert wrong != MY_LAYERS
    (tmp_path / "my_layers.py").write_text(wrong)
    assert cli.main(["check", str(config)]) == 3
    assert "wrong first in 1 (Softplus): 1.grad_input" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["train", "check"])
def test_an_error_while_it_runs_is_reported_by_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Where no check is there to name the layer: at its first values, and in a step."""
    (tmp_path / "small.yaml").write_text(TRAINED)
    forward = "    def forward(self, input):\n"
    raises = "        raise KeyError('w')\n"
    first_values = "    def reset_parameters(self, generator):\n" + raises + forward
    code = MY_LAYERS.replace(forward, first_values if command == "check" else forward + raises, 1)
    (tmp_path / "my_layers.py").write_text(code)
    options = ["gradient_check.every=0", "--run-dir", str(tmp_path / "run")] if command == "train" else []
    assert cli.main([command, str(tmp_path / "small.yaml"), *options]) == 2
    line = 1 + code[: code.index("raise KeyError")].count("\n")
    assert capsys.readouterr().err.startswith(f"nn-manual: {tmp_path}/my_layers.py:{line}: KeyError: 'w'\n")


def test_what_a_layer_should_not_have_returned_is_reported_where_nothing_checks_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "small.yaml").write_text(TRAINED)
    forgetful = MY_LAYERS.replace("return grad_output / (1 +", "grad_output / (1 +")
    assert forgetful != MY_LAYERS
    (tmp_path / "my_layers.py").write_text(forgetful)
    options = ["gradient_check.every=0", "--run-dir", str(tmp_path / "run")]
    assert cli.main(["train", str(tmp_path / "small.yaml"), *options]) == 2
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first.endswith("AttributeError: 'NoneType' object has no attribute 'shape'")
    assert second == "Softplus may have returned it: gradient_check.every=1 names the layer"


@pytest.mark.parametrize("every", [0, 1])
@pytest.mark.parametrize("command", ["train", "check"])
@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("noise_shapes(self, input_shape)", "must return a dict of tuples such as {'weight': (3,)}, not None"),
        ("infer(self, input)", "must return the output, an array, not None"),
    ],
)
def test_a_broken_contract_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, every: int, method: str, words: str
) -> None:
    (tmp_path / "small.yaml").write_text(TRAINED)
    forward = "    def forward(self, input):\n"
    own = "".join(
        f"    def {own}:\n        pass\n" for own in ("draw_noise(self, generator)", "infer(self, input)", method)
    )
    own += forward
    (tmp_path / "my_layers.py").write_text(MY_LAYERS.replace(forward, own, 1))
    options = [f"gradient_check.every={every}", *(["--run-dir", str(tmp_path / "run")] if command == "train" else [])]
    status = cli.main([command, str(tmp_path / "small.yaml"), *options])
    output, error = capsys.readouterr()
    name = method.partition("(")[0]
    if (command, name) == ("check", "infer"):  # its conduct is looked at first
        assert status == 3
        assert "1 (Softplus): infer must return an array, it returned" in output
    else:
        assert status == 2
        assert error.splitlines()[0] == f"nn-manual: Softplus.{name} {words}"
        assert "may have returned it" not in error


@pytest.mark.parametrize("every", [0, 1])
@pytest.mark.parametrize("command", ["train", "check"])
def test_a_layer_that_ends_the_program_does_not_end_it_silently(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, every: int
) -> None:
    (tmp_path / "small.yaml").write_text(TRAINED)
    forward = "    def forward(self, input):\n"
    code = MY_LAYERS.replace(forward, forward + "        raise SystemExit(0)\n", 1)
    (tmp_path / "my_layers.py").write_text(code)
    options = ["--run-dir", str(tmp_path / "run")] if command == "train" else []
    checked = command == "check" or every
    arguments = [command, str(tmp_path / "small.yaml"), f"gradient_check.every={every}", *options]
    assert cli.main(arguments) == (3 if checked else 2)
    printed = " ".join("".join(capsys.readouterr()).split())
    place = f"{tmp_path}/my_layers.py:{1 + code[: code.index('raise SystemExit')].count(chr(10))}"
    words = f"1 (Softplus): forward raised SystemExit: 0 ({place})" if checked else f"{place}: SystemExit: 0"
    assert words in printed


@pytest.mark.parametrize(
    ("method", "error"),
    [("__post_init__", "my_layers:Exits raised SystemExit: 0"), ("output_shape", "output_shape raised SystemExit: 0")],
)
def test_a_layer_that_ends_the_program_while_a_config_is_read(
    tmp_path: Path, errors_of: ErrorsOf, method: str, error: str
) -> None:
    code = f"""

@dataclass(eq=False)
class Exits(Softplus):
    def {method}(self, *arguments):
        raise SystemExit(0)
"""
    (tmp_path / "my_layers.py").write_text(MY_LAYERS + code)
    assert errors_of(with_layer("my_layers:Exits")) == [f"run.yaml:8:5: {error}"]
