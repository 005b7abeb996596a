from pathlib import Path

import pytest

from nn_manual.config import EarlyStopping, RunConfig, load_config
from nn_manual.data import Arrays
from nn_manual.layers import Linear, ReLU, Tanh
from nn_manual.losses import CrossEntropyLoss, MSELoss
from nn_manual.messages.text import quoted
from nn_manual.optim import Optimizer, StepLR
from nn_manual.registry import components

from .conftest import VALID, ErrorsOf, valid_but


def load(tmp_path: Path, *overrides: str) -> RunConfig:
    path = tmp_path / "run.yaml"
    path.write_text(VALID)
    return load_config(path, overrides)


def test_values_are_replaced(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        "optimizer.SGD.lr=5e-2",
        "epochs=3",
        "model.0.Linear.out_features=16",
        "model.2.Linear.in_features=16",
        "model.1=Tanh",
        "epochs=4",
    )
    assert config.optimizer.keywords["lr"] == 0.05
    assert config.optimizer.keywords["momentum"] == 0.9
    assert config.epochs == 4  # the last one counts
    first, second, third = config.model
    assert isinstance(first, Linear)
    assert isinstance(second, Tanh)
    assert isinstance(third, Linear)
    assert first.out_features == third.in_features == 16


def test_keyword_arguments_of_a_component_named_alone(tmp_path: Path) -> None:
    loss = load(tmp_path, "loss.CrossEntropyLoss.label_smoothing=0.1").loss
    assert isinstance(loss, CrossEntropyLoss)
    assert loss.label_smoothing == 0.1


def test_keys_are_added(tmp_path: Path) -> None:
    config = load(tmp_path, "early_stopping.patience=2", "lr_scheduler.StepLR.step_size=5", "clip_grad_norm=1.5")
    assert config.early_stopping == EarlyStopping(patience=2)
    assert config.lr_scheduler == StepLR(step_size=5)
    assert config.clip_grad_norm == 1.5
    assert load(tmp_path, "early_stopping.patience=2", "early_stopping=null").early_stopping is None
    config = load(tmp_path, "early_stopping=null", "early_stopping.patience=2")
    assert config.early_stopping == EarlyStopping(patience=2)


def test_values_may_be_lists_and_mappings(tmp_path: Path) -> None:
    model = load(tmp_path, "model=[{Linear: {in_features: 64, out_features: 10}}, ReLU]").model
    assert [type(layer) for layer in model] == [Linear, ReLU]
    loss = load(tmp_path, "loss={CrossEntropyLoss: {reduction: sum}}").loss
    assert isinstance(loss, CrossEntropyLoss)
    assert loss.reduction == "sum"


def test_a_component_may_be_replaced_and_then_configured(tmp_path: Path) -> None:
    config = load(
        tmp_path, "data=Diabetes", "loss=MSELoss", "loss.MSELoss.reduction=sum", "model.0.Linear.in_features=10"
    )
    assert isinstance(config.loss, MSELoss)
    assert config.loss.reduction == "sum"


@pytest.mark.parametrize("dash", ["-", " - ", "'-'", '"-"'])
def test_standard_input_is_a_file(tmp_path: Path, dash: str) -> None:
    """To YAML, a lone dash would be a list of nothing."""
    arrays = "data={Arrays: {file: a.csv, target: class, task: classification}}"
    data = load(tmp_path, arrays, f"data.Arrays.file={dash}").data
    assert isinstance(data, Arrays)
    assert data.file == Path("-")


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("optimizer.SGD.lr=abc", "lr must be a number, not the text 'abc'"),
        ("optimizer.SGD.lr=1e-99999", "lr must be a number, not the text '1e-99999'; it is so near to 0 that it would "
         "become 0"),
        ("optimizer.SGD.lr=-1e-400", "lr must be a number, not the text '-1e-400'; it is so near to 0 that it would "
         "become 0"),
        ("optimizer.SGD.lr='1e-400'", "lr must be a number, not the text '1e-400'; it is so near to 0 that it would "
         "become 0"),
        ("optimizer.SGD.lr='0e-400'", "lr must be a number, not the text '0e-400'; numbers are decimal, finite and "
         "without quotes: 10, 0.5, 1e-3"),
        ("optimizer.SGD.lr=1e99999", "lr must be a number, not the text '1e99999'; it is so large that it would "
         "become infinite"),
        ("seed=1e999", "seed must be an integer, not the text '1e999'; it is so large that it would become infinite"),
        ("optimizer.SGD.momentum=1e-99999", "momentum must be a number, not the text '1e-99999'; it is so near to 0 "
         "that it would become 0"),
        ("optimizer.SGD.lr=-", "lr must be a number, not the text '-'"),
        ("optimizer.SGD.lr=- 1", "lr must be a number, not a list"),
        ("optimizer.SGD.lr=-1", "lr must be at least 0, not -1.0"),
        ("optimizer.SGD.momentun=0.5", "unknown key 'momentun' in SGD; did you mean 'momentum'?"),
        ("optimizer.sgd.lr=0.5",
         "unknown optimizer 'sgd'; did you mean 'SGD'?"),
        ("optimizer.Adm.lr=1", "unknown optimizer 'Adm'; did you mean 'Adam'?"),
        ("optimizer.Foo.lr=1", f"unknown optimizer 'Foo'; known: {', '.join(components(Optimizer))}"),
        ("optimizer.Adam.lr=1",
         "the optimizer is SGD: to replace it, write 'optimizer={Adam: {KEY: VALUE, ...}}'"),
        ("optimizer.lr=1", "lr is a key of SGD: write optimizer.SGD.lr"),
        ("model.0.Linea.bias=false", "unknown layer 'Linea'; did you mean 'Linear'?"),
        ("model.1.RelU.dim=3", "unknown layer 'RelU'; did you mean 'ReLU'?"),
        ("epoch=3", "unknown key 'epoch' in the config; did you mean 'epochs'?"),
        ("early_stoping.patience=3", "unknown key 'early_stoping' in the config; did you mean 'early_stopping'?"),
        ("epochs.a.b=3", "epochs is 20 and has no 'a'"),
        ("dtype.a=3", "dtype is the text 'float32' and has no 'a'"),
        ("loss.CrossEntropy.reduction=sum", "unknown loss 'CrossEntropy'; did you mean 'CrossEntropyLoss'?"),
        ("model.3=ReLU", "model is a list of 0 to 2 and has no '3'"),
        ("model.-1=ReLU", "model is a list of 0 to 2 and has no '-1'"),
        ("model.Linear.bias=false", "model is a list of 0 to 2 and has no 'Linear'"),
        ("model.1=Rulu", "unknown layer 'Rulu'; did you mean 'ReLU'?"),
        ("model.1=own.Layer", "unknown layer 'own.Layer'; a class of your own is module:Class"),
        (
            "loss=own:Loss",
            "no module 'own' in {folder}, and none of that name is installed",
        ),
        ("model=[]", "model takes a list of layers, not an empty list"),
        ("epochs", "is not KEY=VALUE"),
        ("epochs=", "has no value after '='"),
        ("epochs= ", "has no value after '='"),
        ("epochs=# 3", "is empty"),
        ("=3", "unknown key '' in the config; known: seed, dtype, data, batch_size, epochs, model, tied, layer_folder, "
         "initializer, init_from, loss, optimizer, lr_scheduler, lr_step, clip_grad_norm, clip_grad_value, slices, "
         "bitwise, "
         "shard_optimizer, sync_batch_norm, early_stopping, ema, gradient_check, checkpoint, compiled, "
         "blas, threads, loop_threads"),
        ("epochs=[3", "expected ',' or ']', but got '<stream end>' while parsing a flow sequence"),
        ("epochs=*a", "alias *a is not supported: write the value out"),
        ("seed=\udcff", "YAML doesn't allow '\\udcff'"),
    ],
)  # fmt: skip - one case a line
def test_an_error_is_placed_in_the_override(
    errors_of: ErrorsOf, override: str, error: str, tmp_path: Path
) -> None:
    expected = error.replace("{folder}", str(tmp_path))
    assert errors_of(VALID, override)[0] == f"override {override!r}: {expected}"


@pytest.mark.parametrize(
    ("value", "errors"),
    [
        (
            "[{Linear: {in_features: 64, out_features: 0}}, Relu]",
            [
                "model.0: out_features must be at least 1, not 0",
                "unknown layer 'Relu'; did you mean 'ReLU'?",
            ],
        ),
        (
            "[Tanh, {Residual: [Tanh, {Linear: {in_features: 8, out_features: 8}}]}, {Linear: {in_features: 7, "
            "out_features: 10}}]",
            [
                "model.1.Residual.1: Linear takes in_features=8 in the last dimension, the input has shape (64, 64)",
                "model.2: Linear takes in_features=7 in the last dimension, the input has shape (64, 8)",
            ],
        ),
    ],
)
def test_an_error_in_a_list_of_an_override_has_the_path_of_the_item(
    errors_of: ErrorsOf, value: str, errors: list[str]
) -> None:
    """Of a layer that is wrong by itself, of one that doesn't fit, and of one in another."""
    override = f"model={value}"
    assert errors_of(VALID, override) == [f"override {quoted(override)}: {error}" for error in errors]


def test_what_cannot_be_printed_is_escaped(errors_of: ErrorsOf) -> None:
    assert errors_of(VALID, "\x1b=1", "\x1b.a=1")[1:] == [
        "override '\\x1b.a=1': \\x1b is 1 and has no 'a'",
    ]


def test_errors_of_overrides_come_after_those_of_the_file_in_their_order(errors_of: ErrorsOf) -> None:
    assert errors_of(valid_but(1, "seed: -1"), "epochs=0", "seeds=1", "model.7=ReLU", "batch_size=x") == [
        "run.yaml:1:1: seed must be at least 0, not -1",
        "override 'epochs=0': epochs must be at least 1, not 0",
        "override 'seeds=1': unknown key 'seeds' in the config; did you mean 'seed'?",
        "override 'model.7=ReLU': model is a list of 0 to 2 and has no '7'",
        "override 'batch_size=x': batch_size must be an integer, not the text 'x'",
    ]


def test_a_size_that_an_override_changed_is_an_error_where_it_no_longer_fits(errors_of: ErrorsOf) -> None:
    assert errors_of(VALID, "model.0.Linear.out_features=16") == [
        "run.yaml:9:5: Linear takes in_features=32 in the last dimension, the input has shape (64, 16)"
    ]
