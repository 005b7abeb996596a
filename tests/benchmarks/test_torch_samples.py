"""scripts/benchmark.py check samples: the verdict on a sample, and torch's samples themselves."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.samples.campaign import is_as_wanted, lines_of, torch_samples
from benchmarks.samples.modules import Sample
from benchmarks.samples.optimizers import OptimizerSample
from benchmarks.samples.verdicts import ADAPTED, DIFFERENT, EQUAL, MISSING, NO_FIT, REFUSED, Verdict, difference

from nn_manual.arrays import Array
from nn_manual.layers import BatchNorm1d, Linear, Tanh
from nn_manual.losses import MSELoss
from nn_manual.optim import SGD

#: Of shape (4, 3).
INPUT = torch.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [-2.0, 1.0, 0.1], [0.3, 0.9, -1.1]], dtype=torch.float64)
CLASSES = torch.tensor([0, 2, 1, 1])
#: (2, 2, 4, 3), and what draws their windows: more than there are images, as torch takes it.
IMAGES = torch.arange(48.0, dtype=torch.float64).reshape(2, 2, 4, 3) % 7
SAMPLES = torch.tensor([[[0.1, 0.9], [0.6, 0.2]]] * 3, dtype=torch.float64)
#: The layer inside of an encoder, whose first dimension is the batch, or the time.
ENCODER_LAYER = torch.nn.TransformerEncoderLayer(2, 1, 3, 0.0, torch.nn.functional.gelu, batch_first=True, bias=False)
TIME_FIRST = torch.nn.TransformerEncoderLayer(2, 2, 3, 0.0, norm_first=True)


def sample(name: str, *inputs: Any, **arguments: Any) -> Sample:
    return Sample(getattr(torch.nn, name), arguments, inputs, "float64")


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (sample("Linear", INPUT, in_features=3, out_features=2), Verdict(EQUAL)),
        (sample("Linear", INPUT, in_features=3, out_features=2, device=None), Verdict(EQUAL)),
        (sample("BatchNorm1d", INPUT, num_features=3), Verdict(EQUAL)),
        (sample("MaxPool1d", INPUT[None], kernel_size=2, return_indices=False), Verdict(EQUAL)),
        (sample("Embedding", CLASSES, num_embeddings=3, embedding_dim=2), Verdict(EQUAL)),
        (sample("Tanh", torch.tensor(5.0, dtype=torch.float64)), Verdict(EQUAL)),
        (
            sample("MaxPool1d", INPUT, kernel_size=2),
            Verdict(ADAPTED, "0 (MaxPool1d) takes (batch, channels, length), the input has shape (4, 3)"),
        ),
        (
            sample("GRU", INPUT, input_size=3, hidden_size=2),
            Verdict(ADAPTED, "0 (GRU) takes (time, batch, input_size=3), the input has shape (4, 3)"),
        ),
        (
            sample("CrossEntropyLoss", INPUT, CLASSES, weight=torch.tensor([1.0, -2.0, 4.0], dtype=torch.float64)),
            Verdict(ADAPTED, "weight must be finite and at least 0, not -2.0, that of class 1"),
        ),
        (
            sample("BCELoss", INPUT[0, 0], INPUT[3, 0], weight=-INPUT[0, 0]),
            Verdict(ADAPTED, "BCELoss: weight must be a list of numbers or None, not -0.5"),
        ),
        (
            sample("BCEWithLogitsLoss", INPUT, INPUT.abs() / 2, weight=INPUT[0, 0]),
            Verdict(ADAPTED, "BCEWithLogitsLoss: weight must be a list of numbers or None, not 0.5"),
        ),
        (
            sample("FractionalMaxPool2d", IMAGES, kernel_size=2, output_size=(2, 1), _random_samples=SAMPLES),
            Verdict(EQUAL),
        ),
        (
            sample("MultiLabelSoftMarginLoss", INPUT, (INPUT > 0).to(torch.int64)),
            Verdict(ADAPTED, "MultiLabelSoftMarginLoss takes equal dtypes, not prediction float64 and target int64"),
        ),
        (
            sample("MultiLabelMarginLoss", INPUT, torch.tensor([[2, 0, -1], [-1, 1, 1], [1, -1, 0], [0, 1, 2]])),
            Verdict(ADAPTED, "MultiLabelMarginLoss takes equal dtypes, not prediction float64 and target int64"),
        ),
        (
            sample("Embedding", CLASSES, num_embeddings=3, embedding_dim=2, max_norm=1.0),
            Verdict(REFUSED, "Embedding has no setting max_norm"),
        ),
        (
            sample("LazyLinear", INPUT, out_features=2),
            Verdict(ADAPTED, "LazyLinear isn't here: Linear, whose sizes are written out"),
        ),
        (
            sample("LazyConv1d", INPUT, out_channels=2, kernel_size=2),  # without a batch, too
            Verdict(ADAPTED, "LazyConv1d isn't here: Conv1d, whose sizes are written out"),
        ),
        (
            sample("TransformerEncoder", INPUT[None, :, :2], encoder_layer=ENCODER_LAYER, num_layers=2),
            Verdict(EQUAL),
        ),
        (
            sample("TransformerEncoder", INPUT[:, None, :2], encoder_layer=TIME_FIRST, num_layers=1),
            Verdict(ADAPTED, "TransformerEncoderLayer takes the batch first"),
        ),
        (sample("CosineSimilarity", INPUT), Verdict(MISSING)),
        (
            sample("GaussianNLLLoss", INPUT, INPUT, INPUT.abs()),
            Verdict(NO_FIT, "it takes more than a prediction and a target"),
        ),
        (
            sample("MSELoss", INPUT, INPUT, reduction="none"),
            Verdict(NO_FIT, "reduction is none: the loss is no number"),
        ),
        (
            sample("MaxPool1d", INPUT[None], kernel_size=2, return_indices=True),
            Verdict(NO_FIT, "it returns more than one array"),
        ),
        (
            sample("KLDivLoss", INPUT, -INPUT.abs()),
            Verdict(NO_FIT, "torch's own value, or a gradient of it, isn't finite"),
        ),
        (
            sample("LPPool1d", INPUT[None], norm_type=1.5, kernel_size=3),  # of negative numbers
            Verdict(NO_FIT, "torch's own value, or a gradient of it, isn't finite"),
        ),
        (sample("LPPool1d", INPUT[None].abs(), norm_type=1.5, kernel_size=2), Verdict(EQUAL)),
    ],
    ids=str,
)  # fmt: skip
def test_the_verdict_on_a_sample(given: Sample, verdict: Verdict) -> None:
    assert given.verdict() == verdict


def wrong(method: Any) -> Any:
    """The same, a thousandth too large."""
    return lambda self, *arguments: method(self, *arguments) * 1.001


def no_update(self: Any, saved: Any) -> None:
    """A buffer that stays."""


@pytest.mark.parametrize(
    ("given", "owner", "name", "changed", "what"),
    [
        (sample("Tanh", INPUT), Tanh, "backward", wrong(Tanh.backward), "grad_input"),
        (sample("Tanh", INPUT), Tanh, "infer", wrong(Tanh.infer), "output in evaluation"),
        (sample("BatchNorm1d", INPUT, num_features=3), BatchNorm1d, "update_buffers", no_update, "running_mean after"),
        (sample("MSELoss", INPUT, INPUT + 1), MSELoss, "backward", wrong(MSELoss.backward), "grad_prediction"),
    ],
)
def test_a_wrong_formula_differs(
    given: Sample, owner: type, name: str, changed: Any, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert given.verdict().word == EQUAL
    monkeypatch.setattr(owner, name, changed)
    verdict = given.verdict()
    assert verdict.word == DIFFERENT
    assert verdict.why.startswith(what)


def test_a_weight_that_is_ones_at_first_is_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    """A formula without it would agree."""
    plain = BatchNorm1d.forward

    def without_weight(self: BatchNorm1d, input: Array) -> Any:
        output, saved = plain(self, input)
        return (output - self.param.bias) / self.param.weight + self.param.bias, saved

    monkeypatch.setattr(BatchNorm1d, "forward", without_weight)
    assert sample("BatchNorm1d", INPUT, num_features=3).verdict().why.startswith("output differs")


def test_the_gradients_of_parameters_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = Linear.backward

    def with_wrong_bias(self: Linear, saved: Any, grad_output: Array) -> Array:
        grad_input = plain(self, saved, grad_output)
        self.grad.bias[0] += 1e-6
        return grad_input

    monkeypatch.setattr(Linear, "backward", with_wrong_bias)
    verdict = sample("Linear", INPUT, in_features=3, out_features=2).verdict()
    assert verdict.why.startswith("grad_bias differs by 1.0e-06")


def test_an_optimizer_is_compared_over_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    given = OptimizerSample(torch.optim.SGD, {"lr": torch.tensor(0.5), "momentum": 0.9, "foreach": True}, "float64")
    assert given.verdict() == Verdict(EQUAL)
    muon = OptimizerSample(torch.optim.Muon, {"lr": 0.1}, "float64")
    assert muon.verdict() == Verdict(EQUAL)
    assert OptimizerSample(torch.optim.LBFGS, {}, "float64").verdict() == Verdict(MISSING)
    assert OptimizerSample(torch.optim.LBFGS, {}, "float64", "why not").verdict() == Verdict(NO_FIT, "why not")
    refused = OptimizerSample(torch.optim.SGD, {"lr": -1.0}, "float64").verdict()
    assert refused == Verdict(REFUSED, "lr must be at least 0, not -1.0")
    plain = SGD.coefficients

    def later(self: SGD, step: int) -> dict[str, float]:
        return {name: value * (1 if step < 3 else 1.001) for name, value in plain(self, step).items()}

    monkeypatch.setattr(SGD, "coefficients", later)
    assert given.verdict().why.startswith("after 3 steps, 0.weight differs by")


def of(*numbers: float, dtype: str = "float64") -> Array:
    return np.array(numbers, dtype)


@pytest.mark.parametrize(
    ("ours", "torchs", "what"),
    [
        ({"output": of(1, 2)}, {"output": of(1, 2 + 1e-12)}, ""),
        ({"output": of(1, 2)}, {"output": of(1, 2 + 3e-12)}, "output differs by 3.0e-12, of 2.0e+00"),
        ({"grad_input": of(0, 2)}, {"grad_input": of(3e-12, 2)}, ""),
        ({"output": of(np.inf, 2)}, {"output": of(np.inf, 2)}, ""),
        ({"output": of(1, 2)}, {"output": of(np.inf, 2)}, "output differs where torch's isn't finite"),
        ({"output": of(np.nan, 2)}, {"output": of(1, 2)}, "output differs by nan, of 2.0e+00"),
        ({"output": of(1)}, {"output": of(1), "grad_input": of(1)}, "ours has output, torch output, grad_input"),
        (
            {"output": of(1, dtype="float32")},
            {"output": of(1)},
            "output is float32 of shape (1,), torch's float64 of shape (1,)",
        ),
        ({"count": np.array(1)}, {"count": np.array(2)}, "count differs"),
    ],
)
def test_what_differs(ours: dict[str, Array], torchs: dict[str, Array], what: str) -> None:
    assert difference(ours, torchs, upstream=10.0) == what


def test_how_many_are_wanted() -> None:
    assert is_as_wanted(Counter({EQUAL: 90, ADAPTED: 5, REFUSED: 5, NO_FIT: 1000}))
    assert not is_as_wanted(Counter({EQUAL: 90, ADAPTED: 4, REFUSED: 6}))
    assert not is_as_wanted(Counter({EQUAL: 90, ADAPTED: 4, MISSING: 6}))
    assert not is_as_wanted(Counter({EQUAL: 999, DIFFERENT: 1}))


def test_the_table_and_the_reasons() -> None:
    given = sample("Tanh", INPUT)
    verdicts = [Verdict(EQUAL), Verdict(REFUSED, "too large"), Verdict(REFUSED, "too large"), Verdict(NO_FIT, "two")]
    text = "\n".join(lines_of([(given, verdict) for verdict in verdicts]))
    assert [line.split() for line in text.splitlines() if line.startswith(("Tanh ", "all "))] == [
        ["Tanh", "1", "2", "1"],
        ["all", "1", "2", "1"],
    ]
    assert "of those that fit: equal 33.3%, in the form that the message asks for 0.0%" in text
    assert "refused:\nTanh, 2 samples: too large; the first: Tanh() of float64 (4, 3)" in text


def test_without_expecttest_one_line_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert not torch_samples(())
    assert "pip install 'nn_manual[dev]'" in capsys.readouterr().err


def run_campaign(*classes: str) -> subprocess.CompletedProcess[str]:
    """torch's tests change settings of the process in which they are imported."""
    pytest.importorskip("expecttest", reason="torch's tests import it")
    code = f"from benchmarks.samples.campaign import torch_samples\nraise SystemExit(not torch_samples({classes!r}))"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def test_samples_of_a_few_classes() -> None:
    ran = run_campaign("Linear", "GELU", "MSELoss", "MarginRankingLoss", "SGD", "LBFGS")
    rows = [line.split() for line in ran.stdout.splitlines()[:8]]
    assert rows[0][:5] == ["samples", "equal", "adapted", "refused", "DIFFERENT"], ran.stderr
    assert sorted(rows[1:7]) == [
        ["GELU", "6"],
        ["LBFGS", "10"],
        ["Linear", "6"],
        ["MSELoss", "12", "4"],
        ["MarginRankingLoss", "10"],
        ["SGD", "18"],
    ]
    assert rows[7] == ["all", "42", "24"]
    assert ran.returncode == 0


def test_no_sample_of_torchs_differs() -> None:
    """All of them: alone it runs layers, losses and optimizers on what torch's authors found worth testing."""
    ran = run_campaign()
    row = next(line for line in ran.stdout.splitlines() if line.startswith("all "))
    assert int(row[24:34]) > 700, ran.stderr
    assert not row[54:64].strip(), ran.stdout
