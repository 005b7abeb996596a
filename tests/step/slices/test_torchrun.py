"""What a process makes of the environment that it was started in."""

from __future__ import annotations

import signal

import pytest

from nn_manual.errors import ConfigError, Interrupted
from nn_manual.step.slices import torchrun
from nn_manual.step.slices.process_group import ALONE
from nn_manual.step.slices.torchrun import TorchGroup, processes

SECOND_OF_TWO = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the second of two processes."""
    for name, value in SECOND_OF_TWO.items():
        monkeypatch.setenv(name, value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("WORLD_SIZE", "0", "WORLD_SIZE must be an integer from 1, as torchrun sets it, not '0'"),
        ("WORLD_SIZE", "two", "WORLD_SIZE must be an integer from 1, as torchrun sets it, not 'two'"),
        ("RANK", "2", "RANK must be an integer from 0 to 1, as torchrun sets it, not '2'"),
        ("RANK", "-1", "RANK must be an integer from 0 to 1, as torchrun sets it, not '-1'"),
        ("TORCHELASTIC_RESTART_COUNT", "", "RESTART_COUNT must be an integer from 0, as torchrun sets it, not ''"),
        ("MASTER_PORT", "http", "MASTER_PORT must be an integer from 0 to 65535, as torchrun sets it, not 'http'"),
        ("MASTER_PORT", None, "MASTER_ADDR and MASTER_PORT must say where the processes meet, as torchrun has them do"),
        ("MASTER_ADDR", None, "MASTER_ADDR and MASTER_PORT must say where the processes meet, as torchrun has them do"),
    ],
)
def test_what_cannot_be_meant_is_named(
    name: str, value: str | None, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is None:
        monkeypatch.delenv(name)
    else:
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError) as caught, processes():
        pass
    assert message in str(caught.value)


@pytest.mark.parametrize("name", ["RANK", "WORLD_SIZE"])
def test_one_name_alone_makes_no_group(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job that something else has started may have either."""
    monkeypatch.delenv(name)
    with processes() as group:
        assert group is ALONE


@pytest.mark.parametrize(("rank", "is_told"), [("0", False), ("1", True)])
def test_of_those_that_are_stopped_before_they_meet_the_first_says_so(
    rank: str, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(limit: float) -> None:  # noqa: ARG001 - TorchGroup's argument
        raise Interrupted(signal.SIGTERM)

    monkeypatch.setenv("RANK", rank)
    monkeypatch.setattr(torchrun, "TorchGroup", stopped)
    with pytest.raises(Interrupted) as caught, processes():
        pass
    assert caught.value.is_told is is_told  # type: ignore[attr-defined]  # any error can carry it


@pytest.mark.parametrize(
    ("rank", "by_torchrun", "is_master"), [("0", "False", True), ("1", "False", False), ("0", "True", False)]
)
def test_the_first_process_has_the_store_unless_torchrun_has_it(
    rank: str, by_torchrun: str, is_master: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def new_store(group: TorchGroup, prefix: str, *, is_master: bool = False) -> None:  # noqa: ARG001 - the method's
        made.append(is_master)

    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("TORCHELASTIC_USE_AGENT_STORE", by_torchrun)
    monkeypatch.setattr(TorchGroup, "_new_store", new_store)
    monkeypatch.setattr(torchrun, "RollCall", lambda *_: None)
    TorchGroup(1.0)
    assert made == [is_master, False]  # that of this start is one more connection
