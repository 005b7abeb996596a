"""docs/your_own_layer.md: its layer trains as it stands, and is compared with what the page says."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest

import nn_manual.check.catalogue.catalogue  # noqa: F401 - before any inner run, which unloads what it loads first
from nn_manual import cli

pytest_plugins = ["pytester"]

PAGE = (Path(__file__).parents[1] / "docs" / "your_own_layer.md").read_text(encoding="utf-8")
PYTHON = re.compile(r"```python\n(.*?)```", re.DOTALL)
PRELU, LAYER, REFERENCE, COMPOSITE, WITH_DOMAIN, *OTHERS = PYTHON.findall(PAGE)
RANDOM, RANDOM_COMPOSITE, WITH_LENGTHS, WITH_BUFFER = OTHERS
PRELU_CONFIG, CONFIG, OF_COMPOSITE, OF_SEQUENCES = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
PLUGIN_PAGE = (Path(__file__).parents[1] / "docs" / "pytest_plugin.md").read_text(encoding="utf-8")
PLUGIN_TEST = PYTHON.findall(PLUGIN_PAGE)[1]
PRELU_SENTENCE, SENTENCE, NOTE, HEADLINE = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The two files, in the current folder."""
    monkeypatch.chdir(tmp_path)
    Path("my_layers.py").write_text(LAYER)
    Path("swish.yaml").write_text(CONFIG)


def test_the_layer_with_weights_trains_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert sum(map(bool, PRELU.splitlines())) <= 25  # what a student must write
    Path("my_layers.py").write_text(PRELU)
    Path("prelu.yaml").write_text(PRELU_CONFIG)
    assert cli.main(["train", "prelu.yaml", "--run-dir", "run"]) == 0
    capsys.readouterr()
    assert cli.main(["check", "prelu.yaml"]) == 0
    assert capsys.readouterr().out.endswith(PRELU_SENTENCE)
    wrong = PRELU.replace("input > 0, 0, input * grad", "input > 0, input, input * grad")
    assert wrong != PRELU
    Path("my_layers.py").write_text(wrong)
    assert cli.main(["check", "prelu.yaml"]) == 3
    assert capsys.readouterr().out.startswith("gradient check failed: wrong first in 1 (PReLU): 1.grad_weight\n")


def test_the_layer_trains_checked() -> None:
    assert cli.main(["train", "swish.yaml", "--run-dir", "run"]) == 0
    assert cli.main(["check", "run/config.yaml"]) == 0


def test_no_input_is_too_large_for_the_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Warnings are errors here: an exp that overflows would be one."""
    monkeypatch.syspath_prepend(Path.cwd())
    layer = importlib.import_module("my_layers").Swish(slope=1.5)
    input = np.array([-1e30, -1000, 0, 1000, 1e30], np.float32)
    output, saved = layer.forward(input)
    assert output.tolist() == [0, 0, 0, 1000, np.float32(1e30)]
    assert layer.backward(saved, np.ones_like(input)).tolist() == [0, 0, 0.5, 1, 1]


def test_the_report_says_what_it_is_compared_with(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "swish.yaml"]) == 0
    assert capsys.readouterr().out.endswith(SENTENCE)


def test_a_reference_takes_the_place_of_central_differences(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_layers.py").write_text(f"import torch\n{LAYER}\n{REFERENCE}")
    assert cli.main(["check", "swish.yaml", "dtype=float64"]) == 0
    report = capsys.readouterr().out
    assert report.endswith("\n1 (Swish) is compared with its own reference\n")
    assert "1.0e-07" not in report


def test_a_reference_that_asks_for_a_value_is_named_once(capsys: pytest.CaptureFixture[str]) -> None:
    asking = REFERENCE.replace("        return", "        if input.sum() > 0:\n            pass\n        return")
    Path("my_layers.py").write_text(f"import torch\n{LAYER}\n{asking}")
    assert cli.main(["train", "swish.yaml", "--run-dir", "run"]) == 0
    assert capsys.readouterr().err.split() == NOTE.split()
    Path("my_layers.py").write_text(f"import torch\n{LAYER}\n{REFERENCE}")
    assert cli.main(["train", "swish.yaml", "--run-dir", "other"]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_the_mistake_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    """It alone shows the page's mistake in each of its checks."""
    wrong = LAYER.replace("self.slope * output * (1", "output * (1")
    assert wrong != LAYER
    Path("my_layers.py").write_text(wrong)
    assert cli.main(["check", "swish.yaml"]) == 3
    assert capsys.readouterr().out.startswith(HEADLINE)
    assert cli.main(["train", "swish.yaml", "--run-dir", "run"]) == 3
    error = capsys.readouterr().err
    assert HEADLINE in error
    assert "stopped in epoch 1 at step 1;" in error


SWISH = "  - my_layers:Swish: {slope: 1.5}\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layer", "lines"),
    [
        (COMPOSITE, OF_COMPOSITE),
        (RANDOM, "  - my_layers:Jitter: {scale: 0.3}\n"),
        (RANDOM_COMPOSITE, "  - my_layers:StochasticDepth: {branch: {Sequential: [BatchNorm1d: {num_features: 8}]}}\n"),
        (WITH_BUFFER, "  - my_layers:Centered: {num_features: 8}\n"),
    ],
)
def test_the_other_layers_train_checked(layer: str, lines: str) -> None:
    """It alone trains the page's other layers."""
    Path("my_layers.py").write_text(layer)
    assert SWISH in CONFIG
    Path("own.yaml").write_text(CONFIG.replace(SWISH, lines))
    assert cli.main(["train", "own.yaml", "--run-dir", "run"]) == 0
    assert cli.main(["check", "run/config.yaml"]) == 0


@pytest.mark.slow
def test_the_layer_over_sequences_trains_checked(capsys: pytest.CaptureFixture[str]) -> None:
    """It alone trains the page's layer over sequences."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 6, 40, endpoint=True)
    np.savez("sequences.npz", x=generator.standard_normal((40, 6, 3)), y=np.arange(40) % 2, lengths=lengths)
    Path("own.yaml").write_text(OF_SEQUENCES)
    Path("sequence_layers.py").write_text(WITH_LENGTHS)
    assert cli.main(["train", "own.yaml", "--run-dir", "run"]) == 0
    assert cli.main(["check", "own.yaml"]) == 0
    capsys.readouterr()
    right = "grad_input[last] = grad_output"
    assert right in WITH_LENGTHS
    Path("sequence_layers.py").write_text(WITH_LENGTHS.replace(right, "grad_input[last[0], 0] = grad_output"))
    assert cli.main(["check", "own.yaml"]) == 3
    assert "wrong first in 1 (LastTime): 1.grad_input" in capsys.readouterr().out


def test_the_composite_is_named_not_its_children(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = COMPOSITE.replace("return grad_of_value + grad_of_gate", "return grad_of_value")
    assert wrong != COMPOSITE
    Path("my_layers.py").write_text(wrong)
    Path("own.yaml").write_text(CONFIG.replace(SWISH, OF_COMPOSITE))
    assert cli.main(["check", "own.yaml"]) == 3
    assert "wrong first in 1 (Gated): 1.grad_input" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("layer", "lines", "right", "wrong", "tensor"),
    [
        (RANDOM, "  - my_layers:Jitter\n", "return grad_output * saved", "return grad_output", "1.grad_input"),
        (RANDOM, "  - my_layers:Jitter\n", "        return input\n", "        return 2 * input\n", "1.infer"),
        (
            RANDOM_COMPOSITE, "  - my_layers:StochasticDepth: {branch: Tanh}\n", "(branch_saved, keep * grad_output)",
            "(branch_saved, grad_output)", "1.branch.grad_output",
        ),
        (
            WITH_BUFFER, "  - my_layers:Centered: {num_features: 8}\n", "+= self.momentum * (mean", "+= (mean",
            "1.running_mean",
        ),
    ],
)  # fmt: skip - a table
def test_mistakes_in_these_are_found(
    layer: str, lines: str, right: str, wrong: str, tensor: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("my_layers.py").write_text(layer.replace(right, wrong, 1))
    Path("own.yaml").write_text(CONFIG.replace(SWISH, lines))
    assert cli.main(["check", "own.yaml"]) == 3
    assert f": {tensor}" in capsys.readouterr().out.split("\n\n")[0]


@pytest.mark.parametrize("layer", [LAYER, COMPOSITE, RANDOM, RANDOM_COMPOSITE, WITH_BUFFER])
def test_the_plugin_checks_them(layer: str, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(my_layers=layer, test_it=PLUGIN_TEST)
    pytester.syspathinsert()
    outcomes = pytester.runpytest_inprocess("-q", "-k", "float64 and (random or negative)").parseoutcomes()
    assert outcomes.keys() == {"passed", "deselected"}


TABLE = """\
from dataclasses import dataclass

from nn_manual import Embedding, Layer


@dataclass(eq=False)
class Table(Layer):
    table: Layer

    @classmethod
    def examples(cls):
        return [(cls(Embedding(5, 2)), (4,))]

    def output_shape(self, input_shape):
        return self.table.output_shape(input_shape)

    def forward(self, input):
        return self.table.forward(input)

    def backward(self, saved, grad_output):
        return self.table.backward(saved, grad_output)

    def reference(self, input, table):
        return table(input)

"""


def test_a_composite_around_an_embedding_needs_the_domain(pytester: pytest.Pytester) -> None:
    test_the_plugin_checks_them(TABLE + WITH_DOMAIN, pytester)
    with pytest.raises(AssertionError):
        test_the_plugin_checks_them(TABLE, pytester)


def test_the_command_checks_the_file_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    Path("my_layers.py").write_text(PRELU)
    assert cli.main(["check", "my_layers.py:PReLU"]) == 0
    assert capsys.readouterr().out.count(" ok\n") == 2
    Path("my_layers.py").write_text(PRELU.replace("input > 0, 0, input * grad", "input > 0, input, input * grad"))
    assert cli.main(["check", "my_layers.py"]) == 3
    assert "wrong first in 0 (PReLU): 0.grad_weight" in capsys.readouterr().out
