"""`benchmark.py reliability directories`: a sample, and that each kind of fault is found."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from benchmarks.reliability import directories, made_runs
from benchmarks.reliability.edited_runs import SECRET, Scene, edit
from benchmarks.reliability.kills import quick_runs
from benchmarks.reliability.watched import Ended, digest_of

from nn_manual.run_directory import files, metrics

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the memory of a process is read from /proc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the runs that are edited."""
    path = tmp_path_factory.mktemp("made")
    with quick_runs(), directories._silent():
        made_runs.make(path)
        yield path


def scene_of(folder: Path, case: Path, command: str, seed: int) -> tuple[Scene, int]:
    return directories._scene(folder, case, command, np.random.default_rng(seed))


def test_a_sample(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(directories, "on_all_cores", map)
    passed = directories.main(range(3, 33))
    heading, *rows = capsys.readouterr().out.splitlines()
    assert passed, "\n".join(rows)
    assert all(len(line) <= 80 for line in (heading, *rows))
    assert [row.split()[:2] for row in rows[:-1]] == [*([name, "5"] for name in made_runs.COMMANDS), ["all", "30"]]
    assert [int(row.split()[-1]) for row in rows[:-1]] == 7 * [0]


@pytest.mark.parametrize("command", made_runs.COMMANDS)
def test_what_is_not_edited_ends_as_it_should(folder: Path, tmp_path: Path, command: str) -> None:
    """Or every status would be right for every case."""
    number = made_runs.COMMANDS.index(command)
    outcome = directories.run_case(folder, tmp_path / "case", number)
    assert outcome.problems == []
    assert outcome.status in {"resume": {0, 3}, "replay": {0, 3}}.get(command, {0})
    assert not (tmp_path / "case").exists()


def test_the_same_number_is_the_same_case(folder: Path, tmp_path: Path) -> None:
    found = []
    for seed in (1, 1, 2):
        scene, _ = scene_of(folder, tmp_path / "case", "resume", seed)
        edit(scene)
        found.append((digest_of(scene.run), scene.words, scene.arguments))
        shutil.rmtree(tmp_path / "case")
    first, again, other = found
    assert first == again != other


def test_what_is_known_to_be_wrong_must_be_refused(folder: Path, tmp_path: Path) -> None:
    scene, status = scene_of(folder, tmp_path / "case", "resume", 0)
    assert directories.statuses(scene, status) == {0, 3, 4, 5}
    scene.edited.add("manifest.json")
    assert directories.statuses(scene, status) == {0, 2, 3, 4, 5}
    scene.is_wrong = True
    assert directories.statuses(scene, status) == {5}


def touching(path: str) -> Callable[[Path], bytes]:
    """A `read_file` that reads another file, too."""
    read = files.read_file

    def read_file(file: Path) -> bytes:
        (file.parents[1] / path).read_bytes()
        return read(file)

    return read_file


def raising(file: Path) -> bytes:
    raise KeyError(f"no {file.name}")


@pytest.mark.parametrize(
    ("read_file", "status", "problem"),
    [
        (touching("outside/secret.txt"), 0, "it 'reads "),
        (raising, 1, "a traceback: nn_manual/run_directory/metrics.py:"),
    ],
)
def test_a_fault_is_found(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    read_file: Callable[[Path], bytes],
    status: int,
    problem: str,
) -> None:
    monkeypatch.setattr(metrics, "read_file", read_file)
    outcome = directories.run_case(folder, tmp_path / "case", made_runs.COMMANDS.index("plot"))
    assert outcome.status == status
    assert len(outcome.problems) == 1
    assert outcome.problems[0].startswith(problem)


@pytest.mark.parametrize(
    ("ended", "problem"),
    [
        (Ended(None, "", "", []), "didn't end in 60 s"),
        (Ended(3, "", "no\n", []), "status 3, not 0 or 5: 'no\\n'"),
        (Ended(5, "", "nn-manual: it is broken\n", []), "names no file: 'nn-manual: it is broken\\n'"),
        (Ended(0, "", "a\n" * 13, []), "13 lines on standard error"),
        (Ended(0, "\x1b[2J", "", []), "unprintable: '\\x1b[2J'"),
        (Ended(0, f"{SECRET}\n", "", []), "what lies outside is printed"),
        (Ended(0, "", "x" * 1300, []), f"a line of 1300 characters: {'x' * 100!r}"),
        (Ended(0, "", "", ["'reads /x'"]), "it 'reads /x'"),
    ],
)
def test_what_is_wrong_with_an_end(folder: Path, tmp_path: Path, ended: Ended, problem: str) -> None:
    scene, status = scene_of(folder, tmp_path / "case", "plot", 0)
    assert directories.problems_of(scene, Ended(status, "", "", []), {0, 5}, "/data") == []
    assert directories.problems_of(scene, ended, {0, 5}, "/data") == [problem]


def test_another_file_beside_the_run_is_found(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(arguments: list[str]) -> int:
        (Path(arguments[1]).parent / "outside" / "secret.txt").write_text("x")
        return 0

    monkeypatch.setattr(directories, "nn_manual", command)
    outcome = directories.run_case(folder, tmp_path / "case", made_runs.COMMANDS.index("plot"))
    assert "what lies beside the run is another" in outcome.problems


def test_a_folder_around_the_run_is_not_taken_for_data(tmp_path: Path) -> None:
    """A path that was cut off names one: in it, nothing would be heard."""
    (tmp_path / "run").mkdir()
    (tmp_path / "data").mkdir()
    for named, heard in ((tmp_path, []), (tmp_path / "run", []), (tmp_path / "data", 2 * [str(tmp_path / "data")])):
        (tmp_path / "run" / "config.yaml").write_text(f"data:\n  Arrays:\n    file: {named}")
        assert directories._named_in(tmp_path / "run") == heard
