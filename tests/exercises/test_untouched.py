"""A right gradient whose code also writes into a parameter, or changes a setting, isn't right."""

from __future__ import annotations

from pathlib import Path

import pytest
from exercise_files import OPEN

from nn_manual.exercises.commands.checking import check_file
from nn_manual.exercises.files.started import started
from nn_manual.exercises.kinds.every_exercise import find_exercise

LINEAR = """\
        x, g, weight = rows(saved), rows(grad_output), self.param.weight
        self.grad.weight[...] = g.T @ x
        if self.bias:
            self.grad.bias[...] = g.sum(0)
        grad_input = (g @ self.param.weight).reshape(saved.shape)
        {}
        return grad_input
"""
ONLY_READ = "the optimizer alone moves parameters"
SETTING = "which is a setting: another value needs another name"
INPLACE = f"it writes into self.param.weight: {ONLY_READ}"


def explanation(name: str, body: str, line: str, folder: Path) -> tuple[int, str]:
    """What is said first of a file with this body, which has this line; and where the line stands."""
    file = folder / f"{name}.py"
    text = started(find_exercise(name), file.name).replace(OPEN, body.format(line))
    imported = "from __future__ import annotations\n"
    file.write_text(text.replace(imported, f"{imported}from nn_manual.layers.fast_forms import rows\n", 1))
    verdict = check_file(file).verdict
    assert not verdict.passed
    number = next(n for n, each in enumerate(file.read_text().splitlines(), 1) if line.splitlines()[-1] in each)
    said = next(each for each in verdict.explanation if each.startswith(f"{file}:"))
    return number, said.removeprefix(f"{file}:")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("self.param.weight -= 0.1 * self.grad.weight", INPLACE),
        ("self.param.weight[...] = 0", INPLACE),
        ("weight *= 0", INPLACE),
        ("weight.T[0] += 1", INPLACE),
        ("self.param.weight.fill(0)", INPLACE),
        ("np.negative(weight[:1], out=weight[:1])", INPLACE),
        ("grad_output -= grad_output", "it writes into its input, which other code still reads"),
        ("self.param.weight = weight.copy()", f"it changes self.param.weight: {ONLY_READ}"),
        ("self.in_features = 2 * self.in_features", f"it changes self.in_features, {SETTING}"),
    ],
)
def test_of_a_layer(line: str, words: str, tmp_path: Path) -> None:
    number, said = explanation("linear", LINEAR, line, tmp_path)
    assert said == f"{number}: {words}"


def test_a_parameter_that_was_made_writable_again(tmp_path: Path) -> None:
    line = "weight.base.setflags(write=True); weight.setflags(write=True); weight += 1"
    _, said = explanation("linear", LINEAR, line, tmp_path)
    assert said == f" it changes self.param.weight: {ONLY_READ}"


BATCH_NORM = """\
        grad_input = super(layers.BatchNorm1d, self).backward(saved, grad_output)
        {}
        return grad_input
"""


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("self.buffer.running_mean[...] = 0", "it writes into self.buffer.running_mean"),
        ("self.buffer.running_var *= 0.9", "it writes into self.buffer.running_var"),
        ("self.buffer.running_var = 2 * self.buffer.running_var", "it changes self.buffer.running_var"),
    ],
)
def test_a_buffer(line: str, words: str, tmp_path: Path) -> None:
    number, said = explanation("batch_norm1d", BATCH_NORM, line, tmp_path)
    assert said == f"{number}: {words}: update_buffers alone moves buffers"


COMPOSITE = """\
        grad_input = super(layers.Residual, self).backward(saved, grad_output)
        {}
        return grad_input
"""


def test_a_parameter_and_a_setting_of_a_layer_inside(tmp_path: Path) -> None:
    name = "0.weight"
    line = f'vars(self.param)["{name}"] *= 2'
    number, said = explanation("residual", COMPOSITE, line, tmp_path)
    assert said == f'{number}: it writes into vars(self.param)["{name}"]: {ONLY_READ}'
    line = "self.layers[0].in_features = 7"
    (tmp_path / "residual.py").unlink()
    number, said = explanation("residual", COMPOSITE, line, tmp_path)
    assert said == f"{number}: it changes in_features of the layer 0, {SETTING}"


@pytest.mark.parametrize(
    ("name", "body", "line", "setting"),
    [
        ("huber_loss", "        {}\n        return 0 * saved[0]\n", "self.delta = 7.0", "delta"),
        ("sgd", "        {}\n", "vars(self)['weight_decay'] = 7.0", "weight_decay"),
        ("sgd", "        {}\n", "self.weight_decay = 7.0", "weight_decay"),
        ("reduce_lr_on_plateau", "        {}\n        return 1.0\n", "self.factor /= 2", "factor"),
    ],
)
def test_a_setting_of_other_kinds(name: str, body: str, line: str, setting: str, tmp_path: Path) -> None:
    number, said = explanation(name, body, line, tmp_path)
    where = f"{number}: " if line.startswith("self.") else " "
    assert said == f"{where}it changes self.{setting}, {SETTING}"
