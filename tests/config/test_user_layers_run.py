"""A layer of the user's own in train, check and plot: right, wrong, and broken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from nn_manual import cli

from .conftest import MY_LAYERS

pytestmark = pytest.mark.usefixtures("modules")

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
