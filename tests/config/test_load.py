"""What is made of a valid config, and each kind of error in one that isn't."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import nn_manual.layers
from nn_manual.config import EarlyStopping, GradientCheck, load_config
from nn_manual.data import Arrays, Digits
from nn_manual.layers import Linear, ReLU, Tanh
from nn_manual.losses import CrossEntropyLoss
from nn_manual.model import Sequential
from nn_manual.model.initializers import KaimingNormal
from nn_manual.optim import SGD, StepLR

from .conftest import VALID, ErrorsOf, valid_but


def test_a_valid_config(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(VALID)
    config = load_config(path)
    assert (config.seed, config.dtype, config.batch_size, config.epochs) == (3, "float32", 64, 20)
    assert config.data == Digits(validation_fraction=0.2)
    first, second, third = config.model
    assert isinstance(first, Linear)
    assert isinstance(second, ReLU)
    assert isinstance(third, Linear)
    assert (first.in_features, first.out_features, third.in_features, third.out_features) == (64, 32, 32, 10)
    assert isinstance(config.loss, CrossEntropyLoss)
    optimizer = config.optimizer(config.new_model())
    assert isinstance(optimizer, SGD)
    assert (optimizer.lr, optimizer.momentum, optimizer.dampening) == (0.1, 0.9, 0.0)
    assert [type(layer) for layer in optimizer.model.layers] == [Linear, ReLU, Linear]
    assert config.gradient_check == GradientCheck(every=1, memory="128 MB")
    optional = (config.initializer, config.lr_scheduler, config.clip_grad_norm, config.early_stopping)
    assert optional == (None, None, None, None)
    assert str(config.places["model.2"]) == f"{path}:9:5"


def test_optional_parts(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(
        VALID.replace("  - ReLU\n", "  - Sequential: [ReLU, Tanh]\n")
        + "initializer: {KaimingNormal: {mode: fan_out}}\nlr_scheduler: {StepLR: {step_size: 3}}\n"
        "clip_grad_norm: 1\nearly_stopping: {patience: 4, min_delta: 1e-3}\n"
    )
    config = load_config(path)
    assert config.initializer == KaimingNormal(mode="fan_out")
    assert config.lr_scheduler == StepLR(step_size=3)
    assert config.clip_grad_norm == 1.0
    assert isinstance(config.clip_grad_norm, float)
    assert config.early_stopping == EarlyStopping(patience=4, min_delta=0.001)
    inner = config.model[1]
    assert isinstance(inner, Sequential)
    assert [type(layer) for layer in inner.layers] == [ReLU, Tanh]
    assert {path: type(layer) for path, layer in config.named_layers().items()} == {
        "model.0": Linear, "model.1.Sequential.0": ReLU, "model.1.Sequential.1": Tanh, "model.2": Linear
    }  # fmt: skip - one table
    assert str(config.places["model.1.Sequential.1"]) == f"{path}:8:24"


@pytest.mark.parametrize(
    ("text", "num_bytes"), [("0 kB", 0), ("1 kB", 1000), ("64 MB", 64_000_000), ("007 GB", 7_000_000_000)]
)
def test_the_memory_of_the_check(tmp_path: Path, text: str, num_bytes: int) -> None:
    (tmp_path / "run.yaml").write_text(valid_but(12, f"gradient_check: {{memory: {text}}}"))
    assert load_config(tmp_path / "run.yaml").gradient_check.num_bytes == num_bytes
    check = load_config(tmp_path / "run.yaml", ["gradient_check.memory=2 MB"]).gradient_check
    assert (check.every, check.num_bytes) == (1, 2_000_000)


def test_a_config_serves_several_models(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(valid_but(8, "  - Sequential: [ReLU, Linear: {in_features: 32, out_features: 32}]"))
    config = load_config(path)
    first, second = config.new_model(), config.new_model()
    np.testing.assert_array_equal(first.param_arena, second.param_arena)
    first.param_arena[...] = 7
    for model, is_seven in ((first, True), (second, False)):
        for _, layer in model.named_layers():
            assert all(np.all(view == 7) == is_seven for view in vars(layer.param).values())
    assert not any(hasattr(layer, "param") for layer in config.named_layers().values())


def test_paths_count_from_the_folder_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/run.yaml").write_text(
        valid_but(3, "data: {Arrays: {file: mine.csv, target: 'no', task: regression}}")
    )
    monkeypatch.chdir(tmp_path)
    data = load_config("config/run.yaml").data
    assert isinstance(data, Arrays)
    assert data.file == tmp_path / "config/mine.csv"
    assert data.target == "no"
    data = load_config("config/run.yaml", ["data.Arrays.file=/data/a.csv", "data.Arrays.target=[off, 'on']"]).data
    assert isinstance(data, Arrays)
    assert data.file == Path("/data/a.csv")
    assert data.target == ["off", "on"]


def test_a_new_layer_needs_no_other_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(eq=False)
    class Twice(Tanh):
        times: int = 2

    monkeypatch.setattr(nn_manual.layers, "Twice", Twice, raising=False)
    path = tmp_path / "run.yaml"
    path.write_text(valid_but(8, "  - Twice: {times: 4}"))
    layer = load_config(path).model[1]
    assert isinstance(layer, Twice)
    assert layer.times == 4


@pytest.mark.parametrize(
    ("line", "text", "error"),
    [
        # unknown names
        (12, "gradient_chek: {every: 1}",
         "12:1: unknown key 'gradient_chek' in the config; did you mean 'gradient_check'?"),
        (3, "data: Digit", "3:7: unknown data set 'Digit'; did you mean 'Digits'?"),
        (8, "  - relu", "8:5: unknown layer 'relu'; did you mean 'ReLU'?"),
        (8, "  - Sequental: [ReLU]", "8:5: unknown layer 'Sequental'; did you mean 'Sequential'?"),
        (8, "  - Tahn", "8:5: unknown layer 'Tahn'; did you mean 'Tanh'?"),
        (10, "loss: {MSE: {}}", "10:8: unknown loss 'MSE'; did you mean 'MSELoss'?"),
        (11, "optimizer: sdg", "11:12: unknown optimizer 'sdg'; did you mean 'SGD'?"),
        (11, "optimizer: {SGD: {lr: 0.1, momentun: 0.9}}",
         "11:28: unknown key 'momentun' in SGD; did you mean 'momentum'?"),
        (11, "optimizer: {SGD: {model: 3}}", "11:19: unknown key 'model' in SGD; "
         "known: lr, groups, momentum, dampening, weight_decay, nesterov, maximize"),
        (12, "lr_scheduler: {StepLR: {step: 3, step_size: 3}}",
         "12:25: unknown key 'step' in StepLR; did you mean 'step_size'?"),
        (12, "lr_scheduler: CosineAnnealing",
         "12:15: unknown lr_scheduler 'CosineAnnealing'; did you mean 'CosineAnnealingLR'?"),
        (12, "initializer: KaimingUnifrom",
         "12:14: unknown initializer 'KaimingUnifrom'; did you mean 'KaimingUniform'?"),
        (8, "  - ReLU: {inplace: true}", "8:12: unknown key 'inplace' in ReLU; it has none"),
        (8, "  - LayerNorm", "8:5: LayerNorm needs normalized_shape"),
        # types
        (8, "  - LayerNorm: {normalized_shape: 3.5}",
         "8:17: normalized_shape must be an integer or a list, not 3.5"),
        (8, "  - LayerNorm: {normalized_shape: [2, x]}",
         "8:39: normalized_shape[1] must be an integer, not the text 'x'"),
        (8, "  - GELU: {approximate: erf}", "8:12: approximate must be 'none' or 'tanh', not the text 'erf'"),
        (1, "seed: abc", "1:1: seed must be an integer, not the text 'abc'"),
        (1, "seed: 1.0", "1:1: seed must be an integer, not 1.0"),
        (1, "seed: true", "1:1: seed must be an integer, not true"),
        (1, "seed: [1]", "1:1: seed must be an integer, not a list"),
        (1, "seed:", "1:1: seed must be an integer, not null"),
        (1, "seed: 010", "1:1: seed must be an integer, not the text '010'; "
         "numbers are decimal, finite and without quotes: 10, 0.5, 1e-3"),
        (1, "seed: '1'", "1:1: seed must be an integer, not the text '1'; "
         "numbers are decimal, finite and without quotes: 10, 0.5, 1e-3"),
        (2, "dtype: float16", "2:1: dtype must be 'float32' or 'float64', not the text 'float16'"),
        (5, "epochs: 1:30", "5:1: epochs must be an integer, not the text '1:30'; "
         "numbers are decimal, finite and without quotes: 10, 0.5, 1e-3"),
        (11, "optimizer: {SGD: {lr: .inf}}", "11:19: lr must be a number, not the text '.inf'; "
         "numbers are decimal, finite and without quotes: 10, 0.5, 1e-3"),
        (11, "optimizer: {SGD: {lr: true}}", "11:19: lr must be a number, not true"),
        (11, "optimizer: {SGD: {nesterov: no}}", "11:19: nesterov must be true or false, not the text 'no'; "
         "only these two words, in lower case and without quotes, are bools"),
        (11, "optimizer: {SGD: {nesterov: 1}}", "11:19: nesterov must be true or false, not 1"),
        (10, "loss: {CrossEntropyLoss: {reduction: 3}}", "10:27: reduction must be text, not 3"),
        (3, "data: {Arrays: {file: 3, target: y, task: regression}}", "3:17: file must be a path, not 3"),
        (3, "data: {Arrays: {file: a.csv, target: 3, task: regression}}",
         "3:30: target must be text or a list, not 3"),
        (3, "data: {Arrays: {file: a.csv, target: [x, 3], task: regression}}",
         "3:42: target[1] must be text, not 3"),
        (3, "data: {Arrays: {file: '', target: y, task: regression}}",
         "3:17: file must be a path, not the text ''"),
        (12, "layer_folder: ''", "12:1: layer_folder must be a path, not the text ''"),
        (12, "gradient_check: true", "12:1: gradient_check takes keys and values, not true"),
        (12, "early_stopping: {}", "12:1: early_stopping needs patience"),
        # shapes of components
        (10, "loss: 3", "10:1: loss takes a name, or a name with keyword arguments, not 3"),
        (10, "loss: {}", "10:1: loss takes a name, or a name with keyword arguments, not an empty mapping"),
        (10, "loss: {MSELoss: 3}", "10:8: MSELoss takes keys and values, not 3"),
        (8, "  - Sum: [ReLU, Tanh]", "8:5: Sum takes keys and values, not a list: it goes under 'branches'"),
        (8, "  - Linear: [3, 4]", "8:5: Linear takes keys and values, not a list"),
        (8, "  - Dropout: [0.5]", "8:5: Dropout takes keys and values, not a list"),
        (8, "  - Softmax: [1]", "8:5: Softmax takes keys and values, not a list"),
        (8, "  - Sequential", "8:5: Sequential takes a list of layers, not an empty mapping"),
        (8, "  - Sequential: []", "8:5: Sequential takes a list of layers, not an empty list"),
        (8, "  - Linear: {in_features: 32}", "8:5: Linear needs out_features"),
        (8, "  - Linear", "8:5: Linear needs in_features and out_features"),
        (8, "  - Linear:\n    in_features: 32", "9:5: layer: 'in_features' stands beside 'Linear'; "
         "keyword arguments are indented under the name"),
        (6, "model: ReLU\nx:", "6:1: model takes a list of layers, not the text 'ReLU'"),
        # ranges
        (8, "  - LayerNorm: {normalized_shape: 32, eps: -1}", "8:39: eps must be at least 0, not -1.0"),
        (8, "  - LayerNorm: {normalized_shape: []}",
         "8:17: normalized_shape must be a size of at least 1, or a list of such sizes, not []"),
        (1, "seed: -1", "1:1: seed must be at least 0, not -1"),
        (4, "batch_size: 0", "4:1: batch_size must be at least 1, not 0"),
        (5, "epochs: 0", "5:1: epochs must be at least 1, not 0"),
        (3, "data: {Digits: {validation_fraction: 1}}",
         "3:17: validation_fraction must be at least 0 and less than 1, not 1.0"),
        (10, "loss: {CrossEntropyLoss: {reduction: none}}", "10:27: reduction must be mean or sum, not 'none'"),
        (11, "optimizer: {SGD: {lr: -0.1}}", "11:19: lr must be at least 0, not -0.1"),
        (11, "optimizer: {SGD: {nesterov: true}}",
         "11:19: nesterov needs a momentum above 0 and a dampening of 0"),
        (12, "clip_grad_norm: 0", "12:1: clip_grad_norm must be above 0, not 0"),
        (1, "seed: 99999999999999999999",
         "1:1: seed must be an integer, not 1e+20; integers have at most 64 bits"),
        (5, "epochs: 1099511627777", "5:1: epochs must be at most 1099511627776, not 1099511627777"),
        (5, "epochs: 9223372036854775807", "5:1: epochs must be at most 1099511627776, not 9223372036854775807"),
        (8, "  - Unflatten: {dim: 1, unflattened_size: [1, 2199023255552]}",
         "8:25: unflattened_size must be at most 1099511627776, not 2199023255552"),
        (12, "early_stopping: {patience: 0}", "12:18: patience must be at least 1, not 0"),
        (12, "gradient_check: {every: -1}", "12:18: every must be at least 0, not -1"),
        (
            12,
            "gradient_check: {memory: 64}",
            "12:18: memory must be an integer and kB, MB or GB, like `500 kB` or `128 MB` or `1 GB`, not 64",
        ),
        (
            12,
            "gradient_check: {memory: 64MB}",
            "12:18: memory must be an integer and kB, MB or GB, like `500 kB` or `128 MB` or `1 GB`, not '64MB'",
        ),
        (
            12,
            "gradient_check: {every: 2, memory: -1 GB}",
            "12:28: memory must be an integer and kB, MB or GB, like `500 kB` or `128 MB` or `1 GB`, not '-1 GB'",
        ),
        (12, "lr_scheduler: {StepLR: {step_size: 0}}", "12:25: step_size must be at least 1, not 0"),
    ],
)  # fmt: skip - one case a line
def test_an_error(errors_of: ErrorsOf, line: int, text: str, error: str) -> None:
    assert errors_of(valid_but(line, text))[0] == f"run.yaml:{error}"
    if line not in (3, 6):  # other data may not fit the model, and a line that isn't a list any more not its key
        assert len(errors_of(valid_but(line, text))) == 1


def test_all_errors_at_once(errors_of: ErrorsOf) -> None:
    assert errors_of("""\
seed: -1
data: {Digits: {validation_fraction: 0.2}}
batch_size: 010
epochs: 20
epochs: 30
model:
  - Linear: {in_features: 64, out_feature: 32}
  - ReUL
  - Linear: {in_features: 32, out_features: 32}
  - Linear: {in_features: 31, out_features: 10}
loss: CrossEntropyLos
optimizer: {SGD: {lr: -0.1, momentum: -0.9, nesterov: "true"}}
lr_scheduler: {StepLR: {step_size: 0, gamma: -1}}
""") == [
        "run.yaml:1:1: seed must be at least 0, not -1",
        "run.yaml:3:1: batch_size must be an integer, not the text '010'; "
        "numbers are decimal, finite and without quotes: 10, 0.5, 1e-3",
        "run.yaml:5:1: duplicate key 'epochs', already given at run.yaml:4:1",
        "run.yaml:7:5: Linear needs out_features",
        "run.yaml:7:31: unknown key 'out_feature' in Linear; did you mean 'out_features'?",
        "run.yaml:8:5: unknown layer 'ReUL'; did you mean 'ReLU'?",
        "run.yaml:10:5: Linear takes in_features=31 in the last dimension, the input has shape (1, 32)",
        "run.yaml:11:7: unknown loss 'CrossEntropyLos'; did you mean 'CrossEntropyLoss'?",
        "run.yaml:12:19: lr must be at least 0, not -0.1",
        "run.yaml:12:29: momentum must be at least 0, not -0.9",
        "run.yaml:12:45: nesterov must be true or false, not the text 'true'; "
        "only these two words, in lower case and without quotes, are bools",
        "run.yaml:13:25: step_size must be at least 1, not 0",
        "run.yaml:13:39: gamma must be at least 0 and finite, not -1.0",
    ]


def test_a_field_with_an_error_is_not_blamed_for_its_stand_in(errors_of: ErrorsOf) -> None:
    spirals = "data: {Spirals: {num_classes: 2000, num_examples: many}}"  # the default of num_examples is too small
    assert errors_of(valid_but(3, spirals)) == [
        "run.yaml:3:37: num_examples must be an integer, not the text 'many'"
    ]


def test_a_word_without_a_default_does_not_hide_the_other_errors(errors_of: ErrorsOf) -> None:
    """The first of the words stands in for a wrong one, and for one that is missing."""
    for mode, error in (("mode: rows", "31: mode must be 'batch' or 'row', not the text 'rows'"),
                        ("", "5: StochasticDepth needs mode")):
        found = errors_of(valid_but(8, f"  - StochasticDepth: {{p: 1.5, {mode}}}"))
        errors = [f"run.yaml:8:{error}", "run.yaml:8:23: p must be between 0 and 1, not 1.5"]
        assert sorted(each for each in found if "the input has" not in each) == sorted(errors)


def test_the_stand_in_of_a_word_is_not_blamed(errors_of: ErrorsOf) -> None:
    """Several targets, and standardized integers, go with a regression."""
    for settings in ("target: [b, c]", "target: b, integer_input: true, standardize: true"):
        found = errors_of(valid_but(3, f"data: {{Arrays: {{file: a.csv, task: regresion, input: a, {settings}}}}}"))
        assert len(found) == 1
        assert found[0].endswith("task must be 'classification', 'regression' or 'labels', not the text 'regresion'")


def test_settings_that_go_together_are_not_blamed_for_a_stand_in(errors_of: ErrorsOf) -> None:
    """Without its only size, an Upsample has none; 1 channel stands in for 0."""
    for layer, error in (
        ("Upsample: {size: 0}", "size must be at least 1, not 0"),
        ("Upsample: {size: two}", "size must be an integer or a list, not the text 'two'"),
        ("Upsample: {scale_factor: [1, 0]}", "scale_factor must be above 0, not [1.0, 0.0]"),
        ("Conv1d: {in_channels: 0, out_channels: 4, kernel_size: 1, groups: 2}",
         "in_channels must be at least 1, not 0"),
    ):
        [found] = [each for each in errors_of(valid_but(8, f"  - {layer}")) if "the input has" not in each]
        assert found.endswith(f": {error}")


def test_missing_keys_are_named_together(errors_of: ErrorsOf) -> None:
    assert errors_of("seed: 1\n") == [
        "run.yaml:1:1: the config needs data and batch_size and epochs and model and loss and optimizer"
    ]


def test_a_seed_counts_nothing(tmp_path: Path) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(valid_but(1, "seed: 9223372036854775807"))
    assert load_config(path).seed == 2**63 - 1


def test_more_errors_than_anybody_reads(errors_of: ErrorsOf) -> None:
    lines = errors_of(VALID + "".join(f"key_{index}: 1\n" for index in range(300)))
    assert len(lines) == 101
    assert lines[99].startswith("run.yaml:112:1: unknown key 'key_99'")
    assert lines[100] == "and 200 more errors"
    lines = errors_of(VALID + "".join(f"key_{index}: 1\n" for index in range(101)))
    assert lines[100:] == ["and 1 more error"]
