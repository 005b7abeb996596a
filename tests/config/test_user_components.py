"""Losses, optimizers, schedules, initializers and data sets of the user's own that a config can't have."""

from __future__ import annotations

from pathlib import Path

import pytest
from own_components import CONFIG, MINE

from nn_manual.cli import main
from nn_manual.config import load_config
from nn_manual.errors import ConfigError

from .conftest import ErrorsOf

#: Classes that a config refuses, behind those of the page.
BROKEN = (
    MINE
    + '''

@dataclass(eq=False)
class Unreduced(LogCoshLoss):
    reduction: int = 3

    def __post_init__(self):
        pass


@dataclass(eq=False)
class Half(ElementwiseLoss):
    def term(self, prediction, target):
        return prediction - target, None


@dataclass(eq=False)
class Stumbling(LogCoshLoss):
    def __post_init__(self):
        raise RuntimeError("out of order")


class Undecorated(SignSGD):
    pass


@dataclass(eq=False)
class Nameless(SignSGD):
    def vector_names(self):
        return "momentum_buffer"


@dataclass(eq=False)
class Numberless(SignSGD):
    def coefficients(self, step):
        return None


@dataclass(eq=False)
class WithArray(SignSGD):
    mask: np.ndarray = None


@dataclass(frozen=True)
class Rateless(Warmup):
    def lr(self, initial_lr, count):
        return None


@dataclass(frozen=True)
class Watching(Warmup):
    def observe(self, validation_loss):
        pass


@dataclass(frozen=True)
class Fill(Initializer):
    def draw(self, weight):
        pass


@dataclass
class Shapeless(Waves):
    example_shape = 1


@dataclass
class Classless(Waves):
    num_classes = 2.0


class Other:
    pass
'''
)


def with_part(key: str, value: str) -> str:
    """CONFIG with another value of a key."""
    lines = [f"{key}: {value}" if line.startswith(f"{key}:") else line for line in CONFIG.splitlines()]
    assert f"{key}: {value}" in lines
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("key", "name", "error"),
    [
        ("loss", "mine:Other", "mine:Other is no Loss: derive it from nn_manual.losses.Loss"),
        ("optimizer", "mine:Other", "mine:Other is no Optimizer: derive it from nn_manual.optim.Optimizer"),
        ("lr_scheduler", "mine:Other", "mine:Other is no Scheduler: derive it from nn_manual.optim.Scheduler"),
        (
            "initializer", "mine:Other",
            "mine:Other is no Initializer: derive it from nn_manual.model.initializers.Initializer",
        ),
        ("data", "mine:Other", "mine:Other is no Dataset: derive it from nn_manual.data.Dataset"),
        ("loss", "mine:Warmup", "mine:Warmup is no Loss: it derives from Scheduler"),
        ("data", "mine:SignSGD", "mine:SignSGD is no Dataset: it derives from Optimizer"),
        ("loss", "mine:LogCosh", "module 'mine' has no 'LogCosh'; did you mean 'LogCoshLoss'?"),
        ("loss", "mine:Half", "mine:Half lacks derivative, which every loss has"),
        ("loss", "mine:Stumbling", "mine:Stumbling raised RuntimeError: out of order ({folder}/mine.py:{line})"),
        ("loss", "mine:Unreduced", "Unreduced.reduction must be a text such as mean or sum, not 3"),
        ("loss", "mines:LogCoshLoss", "no module 'mines' in {folder}, and none of that name is installed; "
                                      "did you mean 'mine'?"),
        ("loss", "mine.LogCoshLoss", "unknown loss 'mine.LogCoshLoss'; a class of your own is module:Class"),
        ("loss", "'mine:'", "'mine:' is no import path: a class of one's own is named module:Class"),
        ("optimizer", "mine:Undecorated", "mine:Undecorated is not a dataclass: write @dataclass(eq=False) above the "
                                          "class"),
        ("optimizer", "mine:Nameless", "Nameless.vector_names must return a list of names, not 'momentum_buffer'"),
        ("optimizer", "mine:Numberless", "Numberless.coefficients must return a dict of numbers by name, not None"),
        ("optimizer", "mine:WithArray", "mine:WithArray: a config can't hold its field mask, of type numpy.ndarray"),
        ("lr_scheduler", "mine:Rateless", "Rateless.lr must return a finite number of at least 0, not None"),
        ("lr_scheduler", "mine:Watching", "Watching.observe: a schedule of one's own follows the count, and no losses"),
        ("initializer", "mine:Fill", "mine:Fill lacks fill, which every initializer has"),
        ("data", "mine:Shapeless", "Shapeless.example_shape must be a tuple such as (2,), or None, not 1"),
        ("data", "mine:Classless", "Classless.num_classes must be an integer above 0, or None, not 2.0"),
    ],
)  # fmt: skip - one case a line
def test_a_class_that_cannot_be_had(tmp_path: Path, errors_of: ErrorsOf, key: str, name: str, error: str) -> None:
    (tmp_path / "mine.py").write_text(BROKEN)
    text = with_part(key, name)
    line = 1 + text.splitlines().index(f"{key}: {name}")
    raised = 1 + BROKEN[: BROKEN.index("raise RuntimeError")].count("\n")
    error = error.format(folder=tmp_path, line=raised)
    assert errors_of(text) == [f"run.yaml:{line}:{len(key) + 3}: {error}"]


@pytest.mark.parametrize(
    ("key", "value", "column", "error"),
    [
        ("loss", "{mine:LogCoshLoss: {reduction: median}}", 27, "reduction must be mean or sum, not 'median'"),
        ("loss", "{mine:LogCoshLoss: {reductoin: sum}}", 27, "unknown key 'reductoin' in mine:LogCoshLoss; did you "
                                                             "mean 'reduction'?"),
        ("optimizer", "{mine:SignSGD: {momentum: 1}}", 28, "momentum must be at least 0 and below 1, not 1"),
        ("optimizer", "{mine:SignSGD: {groups: [{parameters: '*.bias', momentum: 2}]}}", 60,
         "groups.0.momentum must be at least 0 and below 1, not 2"),
        ("optimizer", "{mine:SignSGD: {groups: [{parameters: '*.table'}]}}", 37,
         "groups.0.parameters '*.table' matches no parameter; there are 0.weight, 0.bias, 2.weight, 2.bias"),
        ("data", "{mine:Waves: {num_examples: many}}", 21, "num_examples must be an integer, not the text 'many'"),
    ],
)  # fmt: skip - one case a line
def test_keyword_arguments_are_validated(
    tmp_path: Path, errors_of: ErrorsOf, key: str, value: str, column: int, error: str
) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    text = with_part(key, value)
    (found,) = errors_of(text)
    assert error.partition(" ")[2] in found
    assert found.startswith(f"run.yaml:{1 + text.splitlines().index(f'{key}: {value}')}:{column}: ")


def test_all_errors_at_once(tmp_path: Path, errors_of: ErrorsOf) -> None:
    (tmp_path / "mine.py").write_text(BROKEN)
    text = with_part("loss", "mine:Half").replace("mine:Laplace", "mine:Fill").replace("mine:Waves", "mine:Shapeless")
    assert [line.split(":")[1] for line in errors_of(text)] == ["1", "8", "9"]


def test_a_module_with_an_error_is_named_with_its_line(tmp_path: Path, errors_of: ErrorsOf) -> None:
    (tmp_path / "mine.py").write_text("\n\nimport no_such_module\n")
    found = errors_of(with_part("loss", "MSELoss"))
    assert len(found) == 4
    assert f"{tmp_path}/mine.py:3: ModuleNotFoundError: No module named 'no_such_module'" in found[0]


def test_a_name_that_two_files_have(tmp_path: Path, errors_of: ErrorsOf) -> None:
    (tmp_path / "mine").mkdir()
    for file in ("mine.py", "mine/__init__.py"):
        (tmp_path / file).write_text(MINE)
    found = errors_of(CONFIG)
    files = f"{tmp_path}/mine.py and {tmp_path}/mine/__init__.py"
    assert found[0] == f"run.yaml:1:8: {files} are both the module 'mine': rename one of them"


def test_overrides_reach_into_them(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "run.yaml").write_text(CONFIG)
    overrides = ["loss.mine:LogCoshLoss.reduction=sum", "optimizer.mine:SignSGD.momentum=0.5"]
    config = load_config(tmp_path / "run.yaml", overrides)
    assert config.loss.reduction == "sum"
    assert config.optimizer.keywords["momentum"] == 0.5


def test_an_initializer_that_leaves_numbers_out_is_named_at_its_place(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MINE.replace("weight[...] = generator", "weight = generator"))
    (tmp_path / "run.yaml").write_text(CONFIG)
    config = load_config(tmp_path / "run.yaml")
    line = 1 + CONFIG.splitlines().index("initializer: mine:Laplace")
    with pytest.raises(ConfigError, match=rf"run\.yaml:{line}:14: initializer: 0\.weight: Laplace\.fill must"):
        config.new_model()


#: What goes wrong while a run is under way: a line of mine.py, what takes its place, and the message in a checked run
#: and in one that isn't. {line} is the number of the line.
RAISING = {
    "forward": ("        size = np.abs(error)\n", "        raise KeyError('size')\n"),
    "move": ("        momentum_buffer += grad\n", "        grad += momentum_buffer\n"),
    "load": ("        random = np.random.default_rng(seed)\n", "        raise OSError('no network')\n"),
    "fill": ("        weight[...] = generator.laplace(0, self.scale, weight.shape)\n", "        generator.more(0)\n"),
    "reference": ("        momentum_buffer = self.momentum * vectors", "        1 / 0; momentum_buffer = vectors"),
}


@pytest.mark.parametrize("every", [0, 1])
@pytest.mark.parametrize("where", RAISING)
def test_an_error_while_it_runs_has_its_line(
    tmp_path: Path, where: str, every: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    right, wrong = RAISING[where]
    assert right in MINE
    Path("mine.py").write_text(MINE.replace(right, wrong, 1))
    Path("mine.yaml").write_text(CONFIG)
    status = main(["train", "mine.yaml", f"gradient_check.every={every}", "--run-dir", "run"])
    printed = " ".join(capsys.readouterr().err.split())
    if where == "reference":
        assert status == (3 if every else 0)
    else:
        assert status == 2
    if status:
        assert f"mine.py:{1 + MINE[: MINE.index(right)].count(chr(10))}" in printed
        assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("missing.py", "missing.py: there is no such file"),
        ("mine.py:LogCosh", "mine.py: has no 'LogCosh'; did you mean 'LogCoshLoss'?"),
        ("mine.py:Other", "mine.py: Other is none of Dataset, Layer, Initializer, Loss, Optimizer, Scheduler: "
                          "derive it from one of them"),
        ("mine.py:Half", "mine.py: mine:Half lacks derivative, which every loss has"),
        ("empty.py", "empty.py: defines no dataclass that is one of Dataset, Layer, Initializer, Loss, Optimizer, "
                     "Scheduler"),
        ("broken.py", "broken.py: {folder}/broken.py:2: SyntaxError: invalid syntax"),
    ],
)  # fmt: skip - one case a line
def test_a_file_that_cannot_be_checked(
    tmp_path: Path, text: str, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(BROKEN)
    Path("empty.py").write_text("import mine\n")
    Path("broken.py").write_text("\nclass (:\n")
    assert main(["check", text]) == 2
    assert capsys.readouterr().err == f"nn-manual: {words.format(folder=tmp_path)}\n"
    assert main(["check", text, "epochs=3"]) == 2

TAGS = '''
from dataclasses import dataclass

import numpy as np

from nn_manual.data import Dataset, Examples, split_examples


@dataclass
class Tags(Dataset):
    """A class for each of eight times."""

    example_shape = (2, 8)
    num_classes = 3

    def load(self, seed, dtype, transform=None):
        random = np.random.default_rng(seed)
        input, target = random.standard_normal((20, 2, 8)), random.integers(0, 3, (20, 8))
        return split_examples(Examples(input, target), 3, 0.0, seed, dtype, standardize=False, transform=transform)
'''


def test_data_with_a_class_for_each_time_may_say_how_many_there_are(
    tmp_path: Path, errors_of: ErrorsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tags.py").write_text(TAGS)
    layer = "  - Conv1d: {in_channels: 2, out_channels: 3, kernel_size: 1}\n"
    text = f"data: tags:Tags\nbatch_size: 5\nepochs: 1\nmodel:\n{layer}loss: CrossEntropyLoss\n"
    text += "optimizer: {SGD: {lr: 0.1}}\n"
    Path("tags.yaml").write_text(text)
    assert main(["train", "tags.yaml", "--run-dir", "run"]) == 0

    flat = "  - Conv1d: {in_channels: 2, out_channels: 4, kernel_size: 8}\n  - Flatten\n"
    (error,) = errors_of(text.replace(layer, flat))
    assert error.startswith("run.yaml:6:5: the model puts out 4 values, but the data has 3 classes")
