"""as_layer: a pair of functions in a Sequential and in a config."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_manual import SGD, GradientMismatch, Linear, MSELoss, Sequential, Trainer, as_layer, check_gradients
from nn_manual.arrays import Shape
from nn_manual.cli import main


def affine(x: Any, W: Any, b: Any) -> Any:
    return x @ W + b, (x, W)


def affine_back(dout: Any, cache: Any) -> Any:
    x, W = cache
    return dout @ W.T, x.T @ dout, dout.sum(0)


def saved_first(saved: Any, grad: Any) -> Any:
    names = ("dx", "dW", "db")
    return dict(zip(names, affine_back(grad, saved), strict=True))


def averaged(dout: Any, cache: Any) -> Any:
    return (*affine_back(dout, cache)[:2], dout.mean(0))


def shapes(d_in: int, d_out: int = 2) -> dict[str, Shape]:
    return {"W": (d_in, d_out), "b": (d_out,)}


def definition(input: Any, W: Any, b: Any) -> Any:
    return input @ W + b


def data() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    return generator.standard_normal((4, 3)).astype("float32"), generator.standard_normal((4, 2)).astype("float32")


@pytest.mark.parametrize("backward", [affine_back, saved_first])
@pytest.mark.parametrize("reference", [None, definition])
def test_it_trains_as_the_same_layer_of_ours(backward: Any, reference: Any) -> None:
    """Its first parameters have ours of a Linear; then all are equal after each step."""
    Affine = as_layer((affine, backward), shapes, reference=reference, name="Affine")
    assert Affine(3).parameter_shapes() == {"W": (3, 2), "b": (2,)}
    assert Affine(3).output_shape((5, 3)) == (5, 2)
    ours, linear = Sequential(Affine(3), Linear(2, 2), seed=0), Sequential(Linear(3, 2), Linear(2, 2), seed=0)
    for name in ("weight", "bias"):
        getattr(ours.layers[1].param, name)[...] = getattr(linear.layers[1].param, name)
    own, other = ours.layers[0].param, linear.layers[0].param
    own.W[...], own.b[...] = other.weight.T, other.bias
    trainers = [Trainer(model, MSELoss(), SGD(model, lr=0.1)) for model in (ours, linear)]
    for _ in range(3):
        one, two = (trainer.train_step(*data()).loss for trainer in trainers)
        assert one == pytest.approx(two, rel=1e-6)
    np.testing.assert_allclose(own.W.T, other.weight, rtol=1e-5, atol=1e-7)


def test_a_wrong_backward_is_named_where_it_trains() -> None:
    model = Sequential(as_layer((affine, averaged), shapes, reference=definition, name="Averaged")(3), seed=0)
    with pytest.raises(GradientMismatch, match=r"wrong first in 0 \(Averaged\): 0.grad_b"):
        Trainer(model, MSELoss(), SGD(model, lr=0.1)).train_step(*data())
    report = check_gradients(model, MSELoss(), *data())
    assert "1/4 of the reference" in report.diagnosis


def test_how_parameters_begin() -> None:
    model = Sequential(as_layer((affine, affine_back), shapes)(100, 50), seed=0)
    W = model.layers[0].param.W
    assert 0.099 < np.abs(W).max() <= 0.1
    assert not model.layers[0].param.b.any()
    assert type(model.layers[0]).__name__ == "affine"


def test_one_without_parameters_and_in_float64() -> None:
    square = as_layer((lambda x: (x**2, x), lambda dout, cache: 2 * dout * cache), name="Square")
    model = Sequential(square(), seed=0, dtype="float64")
    assert check_gradients(model, MSELoss(), *(array.astype("float64") for array in data()[:1] * 2)).passed


@pytest.mark.parametrize("forward", [partial(affine), lambda *arguments: affine(*arguments)])
def test_a_forward_without_a_name(forward: Any) -> None:
    assert as_layer((forward, affine_back), shapes).__name__ == "PairLayer"
    assert as_layer((forward, affine_back), shapes, name="Affine").__name__ == "Affine"


def test_what_does_not_fit() -> None:
    with pytest.raises(TypeError, match=r"pair must be \(forward, backward\), not 3"):
        as_layer(3)  # type: ignore[arg-type] # what is tested
    Affine = as_layer((affine, affine_back), shapes, name="Affine")
    with pytest.raises(ValueError, match=r"Affine: an input of shape \(4, 5\) doesn't fit: forward raised ValueError"):
        Affine(3).output_shape((4, 5))
    few = as_layer((affine, lambda dout, cache: affine_back(dout, cache)[:2]), shapes, name="Few")
    model = Sequential(few(3), seed=0)
    with pytest.raises(ValueError, match="Few: backward returned 2 gradients, not those of the input, W, b"):
        Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=0).train_step(*data())


MODULE = '''
from nn_manual import as_layer


def affine(x, W, b):
    return x @ W + b, (x, W)


def affine_back(dout, cache):
    x, W = cache
    return dout @ W.T, x.T @ dout, dout.sum(0)


def shapes(d_in: int, d_out: int):
    return {"W": (d_in, d_out), "b": (d_out,)}


def definition(input, W, b):
    return input @ W + b


Affine = as_layer((affine, affine_back), shapes, reference=definition, name="Affine")
'''

CONFIG = """
seed: 0
epochs: 1
batch_size: 20
data: {Spirals: {num_examples: 60}}
model:
  - my_pairs:Affine: {d_in: 2, d_out: 8}
  - Tanh
  - my_pairs:Affine: {d_in: 8, d_out: 2}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1}}
"""


def test_in_a_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my_pairs.py").write_text(MODULE)
    (tmp_path / "config.yaml").write_text(CONFIG)
    assert main(["train", "config.yaml", "--run-dir", "run"]) == 0, capsys.readouterr().err
    assert "every gradient right" in capsys.readouterr().out
    assert main(["check", "config.yaml"]) == 0
    (tmp_path / "config.yaml").write_text(CONFIG.replace("d_in: 2", "d_in: two"))
    assert main(["check", "config.yaml"]) == 2
    assert "d_in" in capsys.readouterr().err


def test_parameters_that_are_no_function() -> None:
    pair: Any = (affine, affine_back)
    sizes: Any = {"W": (3, 2)}
    with pytest.raises(TypeError, match=r"^parameters must be a function of the sizes, as lambda d_in, d_out: .*3, 2"):
        as_layer(pair, sizes)


@pytest.mark.parametrize(
    ("forward", "backward", "words"),
    [
        (lambda x, *_: x, affine_back, "forward must return (output, saved), one output"),
        (lambda x, *_: ("none", x), affine_back, "forward's output is str, not an array of numbers"),
        (affine, lambda d, c: (d @ c[1].T, c[0].T @ d, d.sum(0)[:1]), "gradient of b has shape (1,), not (2,)"),
        (affine, lambda d, c: (d @ c[1].T, None, d.sum(0)), "gradient of W is NoneType, not an array of numbers"),
        (affine, lambda d, c: (None, c[0].T @ d, d.sum(0)), "gradient of the input is NoneType, not an array of"),
        (affine, lambda d, c: {"x": d @ c[1].T, "dx": d, "dW": c[0].T @ d, "db": d.sum(0)}, "2 gradients for x: 'dx'"),
    ],
)
def test_what_a_pair_returns_otherwise(forward: Any, backward: Any, words: str) -> None:
    """A bias's gradient of another shape would be broadcast, and be wrong in silence."""
    model = Sequential(as_layer((forward, backward), shapes, name="Affine")(3), seed=0)
    trainer = Trainer(model, MSELoss(), SGD(model, lr=0.1), check_every=0)
    with pytest.raises((ValueError, LookupError), match=re.escape(words)):
        trainer.train_step(*data())
