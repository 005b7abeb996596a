"""What the processes of a run must have in common: one message names process, key and both values."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from nn_manual.config import load_config
from nn_manual.errors import ConfigError, DataError
from nn_manual.run.agreement import agree, check_all_see
from nn_manual.run.loading import load
from nn_manual.run.new_run import run
from nn_manual.step.slices.process_group import ProcessGroup

CONFIG = Path(__file__).parents[2] / "config" / "digits.yaml"


class Pair(ProcessGroup):
    """Process 0 of two, of which the other gives what `change` makes of what this one gives."""

    size = 2

    def __init__(self, change: Callable[[Any], Any]) -> None:
        self.change = change

    def gather(self, value: Any) -> list[Any]:
        return [value, self.change(copy.deepcopy(value))]


def setting(*path: str, to: Any) -> Callable[[Any], Any]:
    """A change of one value."""

    def change(value: Any) -> Any:
        inner = value
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = to
        return value

    return change


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (setting("config", "optimizer", "SGD", "lr", to=0.2), ConfigError, "optimizer.SGD.lr than process 0: 0.2, not"),
        (setting("config", "bitwise", to=False), ConfigError, "bitwise than process 0: false, not true"),
        (setting("config", "slices", to=6), ConfigError, "slices than process 0: 6, not 4"),
        (setting("versions", "numpy", to="1.0"), ConfigError, "versions.numpy than process 0: '1.0', not "),
        (setting("source", "model.py", to="f" * 64), ConfigError, f"source.model.py than process 0: {'f' * 16}, not "),
        (setting("source", "a/b.py", to="f" * 64), ConfigError, f"{'f' * 16}, not no such file"),
        (setting("number of BLAS threads", to=99), ConfigError, "number of BLAS threads than process 0: 99, not "),
        (setting("data", to="abc"), DataError, "data than process 0: abc, not "),
        (setting("initial parameters", "2.bias", to="abc"), ConfigError, "parameters.2.bias than process 0: abc, not "),
        (setting("checkpoint", to="step-3"), ConfigError, "checkpoint than process 0: step-3, not step-9"),
    ],
)  # fmt: skip - a table
def test_the_first_difference_is_named(change: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    config = load_config(CONFIG, ["slices=4", "bitwise=true"])
    split, model = load(config)
    agree(config, split, model, Pair(lambda value: value), checkpoint="step-9")
    with pytest.raises(error) as caught:
        agree(config, split, model, Pair(change), checkpoint="step-9")
    assert str(caught.value).startswith("process 1 has another ")
    assert message in str(caught.value)


def test_threads_may_differ_where_bits_may() -> None:
    config, group = load_config(CONFIG, ["slices=4"]), Pair(lambda value: value)
    split, model = load(config)
    given = list[Any]()
    group.change = lambda value: given.append(value) or value  # type: ignore[func-returns-value]  # for its effect
    agree(config, split, model, group)
    assert given[0]["number of BLAS threads"] is None


def test_the_run_directory_is_there_and_empty(tmp_path: Path) -> None:
    check_all_see(tmp_path, Pair(lambda value: value))
    seen_by_one = Pair(lambda value: False if value is not None else None)
    for directory, group, rank in ((tmp_path, seen_by_one, 1), (tmp_path / "none", Pair(lambda value: value), 0)):
        with pytest.raises(DataError, match=f": process {rank} doesn't see the run directory, which process"):
            check_all_see(directory, group)
    (tmp_path / "of_another_day").touch()
    with pytest.raises(DataError, match="process 0 doesn't see the run directory"):
        check_all_see(tmp_path, Pair(lambda value: value))


def test_a_run_is_remembered_once_there_is_something_to_go_on_from(tmp_path: Path) -> None:
    """Processes that end before begin anew where torchrun starts them again."""

    class Remembering(ProcessGroup):
        has_config = False

        def remember_run(self, directory: str) -> None:
            self.has_config = Path(directory, "config.yaml").exists()

    group = Remembering()
    run(load_config(CONFIG, ["epochs=1", "gradient_check.every=0"]), tmp_path / "run", group)
    assert group.has_config
