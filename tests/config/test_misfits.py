from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from nn_manual.arrays import Array
from nn_manual.config import RunConfig, check_sizes, load_config
from nn_manual.data import Digits, Examples, Split, Transform
from nn_manual.errors import ConfigError
from nn_manual.layers import Linear
from nn_manual.losses import CrossEntropyLoss, MSELoss
from nn_manual.optim import SGD, Optimizer

from .conftest import VALID, ErrorsOf, valid_but


def test_every_misfit_is_reported_where_it_stands(errors_of: ErrorsOf) -> None:
    assert errors_of(VALID.replace("""\
  - Linear: {in_features: 64, out_features: 32}
  - ReLU
  - Linear: {in_features: 32, out_features: 10}
""", """\
  - Linear: {in_features: 65, out_features: 32}
  - Sequential: [ReLU, {Linear: {in_features: 31, out_features: 20}}, Sequential: [ReLU,
      Linear: {in_features: 21, out_features: 5}]]
  - Linear: {in_features: 5, out_features: 10}
  - Linear: {in_features: 9, out_features: 11}
""")) == [
        "run.yaml:7:5: Linear takes in_features=65 in the last dimension, the input has shape (64, 64)",
        "run.yaml:8:25: Linear takes in_features=31 in the last dimension, the input has shape (64, 32)",
        "run.yaml:9:7: Linear takes in_features=21 in the last dimension, the input has shape (64, 20)",
        "run.yaml:11:5: Linear takes in_features=9 in the last dimension, the input has shape (64, 10)",
        "run.yaml:11:5: the model puts out 11 values, but the data has 10 classes",
    ]  # fmt: skip - the config as it looks in its file


def test_a_normalization_of_another_size(errors_of: ErrorsOf) -> None:
    assert errors_of(valid_but(8, "  - LayerNorm: {normalized_shape: 31}")) == [
        "run.yaml:8:5: LayerNorm takes normalized_shape=31 in the last dimension, the input has shape (64, 32)",
    ]
    assert errors_of(valid_but(8, "  - LayerNorm: {normalized_shape: [2, 32]}")) == [
        "run.yaml:8:5: LayerNorm takes normalized_shape=[2, 32] in the last dimensions, the input has shape (64, 32)",
    ]
    assert errors_of(valid_but(8, "  - LayerNorm: {normalized_shape: 0, eps: -1}")) == [
        "run.yaml:8:17: normalized_shape must be a size of at least 1, or a list of such sizes, not 0",
        "run.yaml:8:38: eps must be at least 0, not -1.0",
    ]


def test_an_eps_that_would_become_0(errors_of: ErrorsOf) -> None:
    norm = "{BatchNorm1d: {num_features: 32, eps: 1e-50}}"
    words = "eps 1e-50 is so near to 0 that it would become 0 in float32"
    assert errors_of(valid_but(8, f"  - {norm}")) == [f"run.yaml:8:6: {words}"]
    assert errors_of(valid_but(8, f"  - Residual: [{norm}]")) == [f"run.yaml:8:17: {words}"]


def test_a_setting_beyond_what_the_dtype_can_hold(errors_of: ErrorsOf) -> None:
    threshold = "Threshold: {threshold: 0, value: -1e300}"
    words = "value -1e+300 is beyond what float32 can hold"
    assert errors_of(valid_but(8, f"  - {threshold}")) == [f"run.yaml:8:5: {words}"]
    assert errors_of(valid_but(8, f"  - Residual: [Tanh, {threshold}]")) == [f"run.yaml:8:22: {words}"]
    assert errors_of(valid_but(10, f"loss: {{CrossEntropyLoss: {{weight: {[1.0] * 9 + [1e39]}}}}}")) == [
        "run.yaml:10:8: weight 1e+39 is beyond what float32 can hold"
    ]


def test_indices_come_from_the_data_alone(errors_of: ErrorsOf) -> None:
    embedding = "Embedding: {num_embeddings: 3, embedding_dim: 32}"
    words = "Embedding takes integers alone, and the layer before it makes none"
    assert errors_of(valid_but(8, f"  - {embedding}")) == [f"run.yaml:8:5: {words}"]
    assert errors_of(valid_but(8, f"  - Residual: [Tanh, {embedding}]")) == [f"run.yaml:8:22: {words}"]


def test_misfits_in_branches_are_reported_where_they_stand(errors_of: ErrorsOf) -> None:
    narrow, wide = "Linear: {in_features: 31, out_features: 5}", "Linear: {in_features: 32, out_features: 5}"
    words = "Linear takes in_features=31 in the last dimension, the input has shape (64, 32)"
    assert errors_of(valid_but(8, f"  - Sum: {{branches: [Sequential: [ReLU, {narrow}], {narrow}]}}")) == [
        f"run.yaml:8:41: {words}",
        f"run.yaml:8:86: {words}",
    ]
    assert errors_of(valid_but(8, f"  - Sum: {{branches: [{wide}, Identity]}}")) == [
        "run.yaml:8:5: Sum adds its branches' outputs, whose shapes differ: (64, 5) and (64, 32)",
    ]
    assert errors_of(valid_but(8, f"  - Concat: {{branches: [{wide}, Identity]}}")) == [
        "run.yaml:9:5: Linear takes in_features=32 in the last dimension, the input has shape (64, 37)",
    ]
    embedding = "Embedding: {num_embeddings: 3, embedding_dim: 32}"
    assert errors_of(valid_but(8, f"  - Sum: {{branches: [{embedding}]}}")) == [
        "run.yaml:8:22: Embedding takes integers alone, and the layer before it makes none"
    ]
    assert errors_of(valid_but(8, f"  - Sum: {{branches: [Tanh, {embedding}]}}")) == [
        "run.yaml:8:11: branches must take the same numbers, not range(0, 3) and real numbers"
    ]
    assert errors_of(valid_but(8, "  - Concat: {branches: []}")) == [
        "run.yaml:8:14: branches takes a list of layers, not an empty list",
    ]
    assert errors_of(valid_but(8, "  - Concat: {branches: [Tanh], dim: 0}")) == [
        "run.yaml:8:32: dim must not be 0, the batch",
    ]


def test_misfits_behind_a_faulty_layer_are_found(errors_of: ErrorsOf) -> None:
    assert errors_of(valid_but(8, "  - Sequential: [Rulu, {Linear: {in_features: 32, out_features: 31}}]")) == [
        "run.yaml:8:18: unknown layer 'Rulu'; did you mean 'ReLU'?",
        "run.yaml:9:5: Linear takes in_features=32 in the last dimension, the input has shape (64, 31)",
    ]


def test_without_data_of_known_shape_the_first_layer_sets_it(errors_of: ErrorsOf) -> None:
    arrays = "data: {Arrays: {file: a.csv, target: y, task: regression}}"
    assert errors_of(valid_but(3, arrays).replace("in_features: 32", "in_features: 31")) == [
        "run.yaml:9:5: Linear takes in_features=31 in the last dimension, the input has shape (64, 32)"
    ]


@pytest.mark.parametrize("loss", ["MSELoss", "TraceLoss"])
def test_a_regression_loss_on_classes(errors_of: ErrorsOf, loss: str) -> None:
    (error,) = errors_of(valid_but(10, f"loss: {loss}"))
    assert error.startswith(f"run.yaml:10:7: {loss} doesn't fit data with 10 classes: ")
    assert "(1, 10)" in error
    assert "(1,)" in error


def arrays_config(tmp_path: Path, *overrides: str) -> RunConfig:
    path = tmp_path / "run.yaml"
    path.write_text(valid_but(3, "data: {Arrays: {file: a.csv, target: y, task: classification}}"))
    return load_config(path, overrides)


def split(num_features: int, target: Array, num_classes: int | None) -> Split:
    examples = Examples(np.zeros((len(target), num_features), np.float32), target)
    return Split(examples, examples, num_classes)


def test_a_number_of_classes_does_not_say_how_many_an_example_has(tmp_path: Path) -> None:
    """The file may have a class for each of the 2 places."""
    path = tmp_path / "run.yaml"
    arrays = "data: {Arrays: {file: a.npz, input: x, target: y, task: classification, num_classes: 5}}"
    path.write_text(valid_but(3, arrays).replace("loss:", "  - Unflatten: {dim: 1, unflattened_size: [5, 2]}\nloss:"))
    examples = Examples(np.zeros((3, 64), np.float32), np.ones((3, 2), np.int64))
    check_sizes(load_config(path), Split(examples, examples, 5))


def test_sizes_against_loaded_data(tmp_path: Path) -> None:
    config = arrays_config(tmp_path)
    labels = np.arange(10)
    check_sizes(config, split(64, labels, 10))
    with pytest.raises(ConfigError) as caught:
        check_sizes(config, split(63, labels, 12))
    assert str(caught.value) == (
        f"{tmp_path}/run.yaml:7:5: Linear takes in_features=64 in the last dimension, the input has shape (64, 63)\n"
        f"{tmp_path}/run.yaml:9:5: the model puts out 10 values, but the data has 12 classes"
    )
    with pytest.raises(ConfigError) as caught:
        check_sizes(config, split(64, labels * 0, 1))
    assert str(caught.value) == (
        f"{tmp_path}/run.yaml:9:5: the model puts out 10 values, but the data has 1 class; set num_classes of the data "
        "where some don't occur"
    )
    named = split(64, labels * 0, 1)._replace(transform=Transform(has_named_classes=True))
    with pytest.raises(ConfigError, match=r"the model puts out 10 values, but the data has 1 class$"):
        check_sizes(config, named)
    config = arrays_config(tmp_path, "model.2.Linear.out_features=1")
    with pytest.raises(ConfigError) as caught:
        check_sizes(config, split(64, labels, 10))
    assert str(caught.value) == f"{tmp_path}/run.yaml:9:5: the model puts out 1 value, but the data has 10 classes"


def test_a_shape_that_does_not_fit_is_that_of_the_model(tmp_path: Path) -> None:
    """Not the one that the data's classes would need."""
    path = tmp_path / "run.yaml"
    path.write_text(valid_but(3, "data: {Arrays: {file: a.npz, input: x, target: y, task: classification}}"))
    target = np.zeros((3, 7), np.int64)
    examples = Examples(np.zeros((3, 7, 64), np.float32), target)
    with pytest.raises(ConfigError) as caught:
        check_sizes(load_config(path), Split(examples, examples, 2))
    assert str(caught.value) == (
        f"{path}:10:7: CrossEntropyLoss doesn't fit data with 2 classes: CrossEntropyLoss takes a prediction (batch, "
        "classes, ...), and as target indices (batch, ...) or probabilities in the prediction's shape, not (3, 7, 10) "
        "and int64 (3, 7)"
    )


def test_a_loss_for_classes_on_values(tmp_path: Path) -> None:
    values = np.full((5, 10), -0.5, np.float32)
    with pytest.raises(ConfigError) as caught:
        check_sizes(arrays_config(tmp_path), split(64, values, None))
    assert str(caught.value) == (
        f"{tmp_path}/run.yaml:10:7: CrossEntropyLoss doesn't fit data with targets of shape (10,): CrossEntropyLoss: "
        "probability -0.5 at index (0, 0) is outside 0 ... 1"
    )
    check_sizes(arrays_config(tmp_path), split(64, np.full((5, 10), 0.1, np.float32), None))


@pytest.mark.parametrize(("part", "name"), [(0, "training"), (1, "validation")])
@pytest.mark.parametrize(
    ("setting", "words"),
    [("ignore_index: 3", "ignores every target"), ("weight: [1, 1, 1, 0, 1, 1, 1, 1, 1, 1]", "gives every target")],
)
def test_data_of_which_no_target_counts(tmp_path: Path, part: int, name: str, setting: str, words: str) -> None:
    parts = [split(64, np.arange(10), 10).train, split(64, np.arange(10), 10).validation]
    parts[part] = Examples(parts[part].input, np.full(10, 3))
    config = arrays_config(tmp_path, f"loss={{CrossEntropyLoss: {{{setting}}}}}")
    message = rf"^override 'loss=.*': CrossEntropyLoss {words} of the {name} part( the weight 0)?$"
    with pytest.raises(ConfigError, match=message):
        check_sizes(config, Split(parts[0], parts[1], 10))
    nothing = Examples(np.zeros((0, 64), np.float32), np.zeros(0, np.int64))
    check_sizes(config, Split(parts[1 - part], nothing, 10))


@pytest.mark.parametrize(
    ("settings", "slices", "refused"),
    [
        ("label_smoothing: 0.1", 2, True),
        ("label_smoothing: 0.1", 1, False),
        ("label_smoothing: 0", 2, False),
        ("label_smoothing: 0.1, reduction: sum", 2, False),
        ("label_smoothing: 0.1, ignore_index: 3", 2, False),
    ],
)
def test_a_slice_of_targets_of_weight_0_has_no_mean_for_what_smoothing_gives_it(
    tmp_path: Path, settings: str, slices: int, *, refused: bool
) -> None:
    """Class 3 alone weighs 0."""
    loss = f"loss={{CrossEntropyLoss: {{weight: [1, 1, 1, 0, 1, 1, 1, 1, 1, 1], {settings}}}}}"
    config = arrays_config(tmp_path, loss, f"slices={slices}")
    check_sizes(config, split(64, np.arange(3), 10))  # no target is of that class
    message = (
        r"^override 'loss=.*': CrossEntropyLoss with label_smoothing must give targets a weight above 0 where batches "
        r"are cut into slices, not 0, that of class 3: a slice of such targets alone has no mean$"
    )
    with pytest.raises(ConfigError, match=message) if refused else nullcontext():
        check_sizes(config, split(64, np.arange(10), 10))


LANGUAGE_MODEL = """\
data: {Arrays: {file: a.csv, target: y, task: classification}}
batch_size: 4
epochs: 1
model:
  - Embedding: {num_embeddings: 7, embedding_dim: 3}
  - Flatten: {start_dim: 0, end_dim: 1}
  - Linear: {in_features: 3, out_features: 7}
loss: {CrossEntropyLoss: {weight: [1, 2, 1, 1, 1, 1, 1]}}
optimizer: {SGD: {lr: 0.1}}
"""


@pytest.mark.parametrize(
    ("override", "error"),
    [
        ("batch_size=4", None),
        ("batch_size=3", None),  # the last batch is smaller
        ("loss.CrossEntropyLoss.weight=[1, 2]", "a weight for 2 classes, the prediction 7"),
        ("model.2.Linear.out_features=6", "run.yaml:7:5: the model puts out 6 values, but the data has 7 classes"),
        ("model.1.Flatten.end_dim=-1", "not (10, 7) and int64 (10, 5)"),
    ],
)
def test_several_predictions_of_each_example(tmp_path: Path, override: str, error: str | None) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(LANGUAGE_MODEL)
    tokens = np.arange(50).reshape(10, 5) % 7
    data = Examples(tokens, tokens[:, ::-1])
    overrides = [override] + ["model.1.Flatten.start_dim=1", "model.2.Linear.in_features=15"] * ("end_dim" in override)
    config = load_config(path, overrides)
    if error is None:
        check_sizes(config, Split(data, Examples(data.input[:3], data.target[:3]), 7))
        return
    with pytest.raises(ConfigError) as caught:
        check_sizes(config, Split(data, data, 7))
    assert error in str(caught.value)


def test_as_many_outputs_as_targets(tmp_path: Path) -> None:
    config = arrays_config(tmp_path, "loss=MSELoss")
    check_sizes(config, split(64, np.zeros((5, 10), np.float32), None))
    with pytest.raises(ConfigError) as caught:
        check_sizes(config, split(64, np.zeros((5, 3), np.float32), None))
    assert "override 'loss=MSELoss': MSELoss doesn't fit data with targets of shape (3,): " in str(caught.value)


def test_a_label_that_the_loss_refuses(tmp_path: Path) -> None:
    config = arrays_config(tmp_path)
    for labels in (np.array([0, 1, 10]), np.array([0, -1])):
        part = Examples(np.zeros((len(labels), 64), np.float32), labels)
        message = rf"label {labels[-1]} at index {len(labels) - 1} is outside 0 \.\.\. 9$"
        for train in (part, split(64, np.arange(10), 10).train):
            with pytest.raises(ConfigError, match=message):
                check_sizes(config, Split(train, part, 10))


def test_weights_for_other_classes(errors_of: ErrorsOf) -> None:
    assert errors_of(valid_but(10, "loss: {CrossEntropyLoss: {weight: [1, 0.5]}}")) == [
        "run.yaml:10:8: CrossEntropyLoss doesn't fit data with 10 classes: CrossEntropyLoss has a weight for 2 "
        "classes, the prediction 10"
    ]
    assert errors_of(valid_but(10, "loss: {CrossEntropyLoss: {weight: [1, -2], ignore_index: 0.5}}")) == [
        "run.yaml:10:27: weight must be finite and at least 0, not -2.0, that of class 1",
        "run.yaml:10:44: ignore_index must be an integer, not 0.5",
    ]


def test_integers_for_a_layer_that_takes_none(tmp_path: Path) -> None:
    config = arrays_config(tmp_path)
    indices = Examples(np.zeros((10, 64), np.int64), np.arange(10))
    with pytest.raises(ConfigError, match=r"run\.yaml:7:5: Linear takes no integers, and the data's input is int64$"):
        check_sizes(config, Split(indices, indices, 10))


def test_a_config_made_in_python_names_the_path() -> None:
    config = RunConfig(
        data=Digits(),
        batch_size=2,
        epochs=1,
        model=[Linear(3, 10)],
        loss=CrossEntropyLoss(),
        optimizer=cast(partial[Optimizer], partial(SGD, lr=0.1)),
    )
    with pytest.raises(ConfigError, match=r"^model\.0: Linear takes in_features=3 .* \(2, 4\)$"):
        check_sizes(config, split(4, np.arange(10), 10))
    with pytest.raises(ConfigError, match=r"^loss: MSELoss doesn't fit"):
        check_sizes(replace(config, loss=MSELoss()), split(3, np.arange(10), 10))


def test_sizes_that_no_machine_has(errors_of: ErrorsOf) -> None:
    million = 10**6
    text = valid_but(7, f"  - Linear: {{in_features: 64, out_features: {million * million}}}")
    assert errors_of(text)[0] == (
        "run.yaml:7:5: Linear has 65,000,000,000,000 parameters, more than any machine holds"
    )
    images = "  - Unflatten: {dim: 1, unflattened_size: [1, 8, 8]}\n  - AdaptiveAvgPool2d: {output_size: 1048577}"
    assert errors_of(valid_but(7, images))[0] == (
        "run.yaml:8:5: AdaptiveAvgPool2d puts out 1,099,513,724,929 values for each example, more than any machine "
        "holds"
    )
