"""A class of the user's own, named in a config by its import path: layers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from no_files import NO_FILES

from nn_manual.config import dump_config, load_config

from .conftest import MY_LAYERS, VALID, ErrorsOf

pytestmark = pytest.mark.usefixtures("modules")


def with_layer(layer: str) -> str:
    return VALID.replace("  - ReLU\n", f"  - {layer}\n")


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


def test_what_a_module_imports_of_its_folder_is_read_again_too(tmp_path: Path) -> None:
    """And what another folder has under this name is another module."""
    for folder, beta in (("one", 2.0), ("two", 3.0), ("one", 4.0)):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "my_layers.py").write_text(MY_LAYERS.replace("= 1.0", "= my_formulas.BETA"))
        (tmp_path / folder / "my_formulas.py").write_text(f"BETA = {beta}")
        (tmp_path / folder / "run.yaml").write_text(with_layer("my_layers:Softplus"))
        assert vars(load_config(tmp_path / folder / "run.yaml").model[1]) == {"beta": beta}


def test_an_environment_in_the_folder_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = tmp_path / ".venv" / "lib"
    packages.mkdir(parents=True)
    (packages / "installed_there.py").write_text("")
    monkeypatch.syspath_prepend(packages)
    (tmp_path / "my_layers.py").write_text(MY_LAYERS + "\nimport installed_there\n")
    (tmp_path / "run.yaml").write_text(with_layer("my_layers:Softplus"))
    load_config(tmp_path / "run.yaml")
    installed = sys.modules["installed_there"]
    load_config(tmp_path / "run.yaml")
    assert sys.modules["installed_there"] is installed


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


@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
@pytest.mark.parametrize("name", ["waiting", "package.waiting", "waiting.more", "package.__init__"])
def test_what_is_no_file(
    tmp_path: Path, errors_of: ErrorsOf, make: Callable[[Path], object], words: str, name: str
) -> None:
    """Python passes over it, and says that there is no such module."""
    (tmp_path / "package").mkdir()
    file = tmp_path / f"{name.removesuffix('.more').replace('.', '/')}.py"
    make(file)
    module = name.removesuffix(".__init__")
    assert errors_of(with_layer(f"{module}:Softplus")) == [f"run.yaml:8:5: {file}: {words}"]


@pytest.mark.parametrize(
    ("layer", "error"),
    [
        ("my_layer:Softplus", "no module 'my_layer' in {folder}, and none of that name is installed; "
                              "did you mean 'my_layers'?"),
        ("my_layers.more:Softplus", "no module 'my_layers.more' in {folder}, and none of that name is installed; "
                                    "did you mean 'my_layers'?"),
        ("my_layers:SoftPlus", "module 'my_layers' has no 'SoftPlus'; did you mean 'Softplus'?"),
        ("my_layers:Other", "my_layers:Other is no Layer: derive it from nn_manual.layers.Layer"),
        ("my_layers:Plain", "my_layers:Plain is not a dataclass: write @dataclass(eq=False) above the class"),
        ("my_layers:Unfinished", "my_layers:Unfinished lacks backward, which every layer has"),
        ("my_layers:Weighted", "my_layers:Weighted: a config can't hold its field weight, of type numpy.ndarray"),
        ("my_layers:Refusing", "my_layers:Refusing raised RuntimeError: out of order ({folder}/my_layers.py:{line})"),
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
        ("'my_layers:'", "'my_layers:' is no import path: a class of one's own is named module:Class"),
        ("../my_layers:Softplus", "'../my_layers:Softplus' is no import path: a class of one's own is named "
                                  "module:Class"),
    ],
)  # fmt: skip - one case a line
def test_a_layer_that_cannot_be_had(tmp_path: Path, errors_of: ErrorsOf, layer: str, error: str) -> None:
    line = 1 + MY_LAYERS[: MY_LAYERS.index("raise RuntimeError")].count("\n")
    assert errors_of(with_layer(layer)) == [f"run.yaml:8:5: {error.format(folder=tmp_path, line=line)}"]


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
        f"run.yaml:8:5: module '{name}' in {tmp_path} has the name of an installed one: rename it"
    ]
    assert sys.modules[name] is before


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("__post_init__", "my_layers:Exits raised SystemExit: 0 ({folder}/my_layers.py:{line})"),
        ("output_shape", "output_shape raised SystemExit: 0"),
    ],
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
    error = error.format(folder=tmp_path, line=(MY_LAYERS + code).count("\n"))
    assert errors_of(with_layer("my_layers:Exits")) == [f"run.yaml:8:5: {error}"]
