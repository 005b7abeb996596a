"""`scripts/run_tests.py`: a setting is made, read back and undone, and what the tests come to is counted."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from benchmarks.processes import ROOT
from benchmarks.settings import environments, facts, suite
from benchmarks.settings.command import main
from benchmarks.settings.environments import requirements
from benchmarks.settings.facts import Facts, parsed
from benchmarks.settings.setting import Place, Setting, SettingError
from benchmarks.settings.suite import Outcome, add_report, outcome_of
from benchmarks.settings.table import SETTINGS
from benchmarks.settings.users import closed_folders
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

#: An AMD processor with AVX-512, as the libraries describe it, and root on two cores of it.
HERE = Facts(
    num_cores=2,
    user=0,
    can_write=True,
    package=str(ROOT / "nn_manual"),
    processor=["SSE42", "AVX2", "AVX512_SKX"],
    numpy=["X86_V3", "X86_V4"],
    torch="AVX512",
    blas=["SkylakeX"],
    versions={},
    mkl="",
    onednn="Intel AVX-512",
)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tree=ROOT, python=sys.executable, environment=dict(os.environ), folder=tmp_path)


@pytest.mark.parametrize(
    ("name", "there", "wrong"),
    [
        ("one_core", {"num_cores": 1}, {"num_cores": 2}),
        ("ordinary_user", {"user": 65534}, {"user": 0}),
        ("ordinary_user", {"user": 65534}, {"user": 65534, "can_write": False}),
        ("read_only", {"user": 65534, "can_write": False}, {"user": 65534, "can_write": True}),
        ("torch_default", {"torch": "DEFAULT"}, {"torch": "AVX512"}),
        ("torch_avx2", {"torch": "AVX2"}, {"torch": "AVX512"}),
        (
            "mkl_avx2",
            {"mkl": "Advanced Vector Extensions 2 (Intel(R) AVX2)"},
            {"mkl": "Advanced Vector Extensions 512 (Intel(R) AVX-512)"},
        ),
        ("onednn_avx2", {"onednn": "Intel AVX2"}, {"onednn": "Intel AVX-512"}),
        ("openblas_haswell", {"blas": ["Haswell"]}, {"blas": ["Haswell", "SkylakeX"]}),
        ("openblas_skylakex", {"blas": ["SkylakeX"]}, {"blas": ["Haswell"]}),
        ("openblas_zen", {"blas": ["Haswell"]}, {"blas": ["SkylakeX"]}),
        ("numpy_baseline", {"numpy": []}, {"numpy": ["X86_V3"]}),
    ],
)
def test_a_setting_without_effect_is_an_error(name: str, there: dict[str, object], wrong: dict[str, object]) -> None:
    assert SETTINGS[name].effect(replace(HERE, **there))  # type: ignore[arg-type]  # any field
    with pytest.raises(SettingError):
        SETTINGS[name].effect(replace(HERE, **wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "here", "reason"),
    [
        ("torch_avx2", {"processor": ["NEON"]}, "the processor has no AVX2"),
        ("openblas_skylakex", {"processor": ["AVX2"]}, "the processor has no AVX512_SKX"),
        ("openblas_zen", {"blas": []}, "the library doesn't say which instructions it uses here"),
        ("mkl_avx2", {"mkl": ""}, "the library doesn't say which instructions it uses here"),
        ("numpy_baseline", {"numpy": []}, "numpy uses nothing above its baseline here"),
        ("ordinary_user", {"user": 1000}, "this user is an ordinary one: all tests run so"),
        ("torch_default", {"processor": ["NEON"]}, ""),
        ("read_only", {"user": 1000}, ""),
        ("busy", {}, ""),
        ("newest", {}, ""),
    ],
)
def test_why_a_machine_cannot_run_it(name: str, here: dict[str, object], reason: str) -> None:
    assert SETTINGS[name].why_not(replace(HERE, **here)) == reason  # type: ignore[arg-type]  # any field


def test_what_the_libraries_print_is_read() -> None:
    mkl = "MKL_VERBOSE oneMKL 2024.0 Update 2 Product build 20240605 for Intel(R) 64 architecture {}, Lnx 2.30GHz\n"
    avx2 = "Advanced Vector Extensions 2 (Intel(R) AVX2)"
    avx512 = "Advanced Vector Extensions 512 (Intel(R) AVX-512)"
    onednn = "onednn_verbose,v1,info,cpu,runtime:OpenMP,nthr:2\nonednn_verbose,v1,info,cpu,isa:Intel AVX2\n"
    last = (
        '{"num_cores": 2, "user": 0, "can_write": true, "package": "", "processor": [], "numpy": [], "torch": "AVX2", '
        '"blas": [], "versions": {}}\n'
    )
    read = parsed(mkl.format(f"Intel(R) {avx2} enabled processors") + onednn + last)
    assert (read.mkl, read.onednn) == (avx2, "Intel AVX2")
    assert SETTINGS["mkl_avx2"].effect(read) == read.mkl
    for newer in ("with support for INT8, BF16, and FP16 (limited) instructions", "with support of Intel(R) DL Boost"):
        assert parsed(mkl.format(f"Intel(R) {avx512} {newer}") + last).mkl == avx512
    assert parsed(mkl.format("Intel(R) Architecture processors") + last).mkl == ""


def test_a_process_says_what_it_is_run_with(place: Place) -> None:
    """With a variable that torch heeds on every processor."""
    with SETTINGS["torch_default"].made(place, HERE) as other:
        found = other.facts()
    assert found.torch == "DEFAULT"
    assert (found.user, found.can_write) == (os.getuid(), os.access(ROOT, os.W_OK))
    assert found.versions["numpy"].startswith("2.")
    assert {str(canonicalize_name(of.name)) for of in requirements()} <= found.versions.keys()
    with pytest.raises(SettingError, match=r"^nn_manual is imported from .*/nn_manual, not from .*/empty$"):
        replace(place, tree=empty_copy(place.folder)).facts()


def empty_copy(folder: Path) -> Path:
    """A checkout with nothing but what reads the facts."""
    script = folder / "empty" / Path(facts.__file__).relative_to(ROOT)
    script.parent.mkdir(parents=True)
    script.write_text(Path(facts.__file__).read_text())
    return folder / "empty"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system lets no process choose its cores")
def test_one_core_is_given_back(place: Place) -> None:
    before = os.sched_getaffinity(0)
    with SETTINGS["one_core"].made(place, HERE) as other:
        seen = other.run("-c", "import os; print(len(os.sched_getaffinity(0)))", cwd=ROOT, capture=True).stdout
    assert (seen, os.sched_getaffinity(0)) == ("1\n", before)


def test_the_loops_end_with_the_tests(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    loops: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen[bytes]):
        def __init__(self, command: list[str]) -> None:
            super().__init__(command)
            loops.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    with SETTINGS["busy"].made(place, HERE):
        assert [loop.poll() for loop in loops] == 4 * [None]
    assert None not in [loop.poll() for loop in loops]
    with pytest.raises(SettingError, match=r"^1 of 4 busy loops ended before the tests did$"):  # noqa: PT012, SIM117
        with SETTINGS["busy"].made(place, HERE):
            loops[-1].kill()
            loops[-1].wait()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others can enter: pytest's own are its user's alone."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


@pytest.mark.parametrize("name", ["ordinary_user", "read_only"])
def test_the_copy_is_another_users(name: str, place: Place, folder: Path) -> None:
    """The user can't write where root can, finds the copy's modules, and has a home that is empty."""
    setting = SETTINGS[name]
    here = replace(HERE, user=os.getuid())
    if why_not := setting.why_not(here):
        pytest.skip(why_not)
    tree = empty_copy(folder)
    (tree / "nn_manual").mkdir()
    (tree / "nn_manual" / "__init__.py").touch()
    (tree / ".venv").mkdir()
    inner = folder / "inner"
    inner.mkdir()
    with setting.made(replace(place, tree=tree, folder=inner), here) as copy:
        code = "import os, nn_manual; print(os.getuid(), nn_manual.__file__, os.listdir(os.environ['HOME']))"
        done = copy.run("-c", code, cwd=inner, capture=True)
        assert done.stderr == ""
        assert done.stdout.split()[1:] == [str(copy.tree / "nn_manual" / "__init__.py"), "[]"]
        assert done.stdout.split()[0] != "0"
        written = copy.run("-c", "open('written', 'w')", cwd=copy.tree, capture=True).returncode
        assert (written != 0) == (name == "read_only")
        assert not (copy.tree / ".venv").exists()


def test_folders_that_others_cannot_enter(tmp_path: Path) -> None:
    needed = [tmp_path / "home" / "python", tmp_path / "home" / "python" / "lib", tmp_path / "open"]
    for folder in needed:
        folder.mkdir(parents=True)
    mode = {path: path.stat().st_mode for path in tmp_path.parents}
    (tmp_path / "home").chmod(0o700)
    above = [path for path in reversed(tmp_path.parents) if not mode[path] & 0o001]
    first = [*above, *([] if tmp_path.stat().st_mode & 0o001 else [tmp_path]), tmp_path / "home"][0]
    expected = needed[:1] if first == tmp_path / "home" else [needed[0], needed[2]]
    assert closed_folders(needed) == {first: expected}


def test_the_oldest_versions_are_the_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    oldest = SETTINGS["oldest"]
    assert isinstance(oldest, environments.Oldest)
    extras = project["optional-dependencies"]
    lines = [*project["dependencies"], *extras["dev"], *extras["fast"]]
    assert len(oldest.options()) == len([line for line in lines if "win32" not in line]) == len(lines) - 1
    assert {"numpy==2.2", "types-PyYAML"} <= set(oldest.options())
    versions: dict[str, str] = {
        canonicalize_name(of.name): str(of.specifier).removeprefix(">=") or "1" for of in requirements()
    }
    assert oldest.effect(replace(HERE, versions=versions | {"torch": f"{versions['torch']}+cpu"}))
    with pytest.raises(SettingError, match=r"^numpy is 2\.3, not numpy==2\.2$"):
        oldest.effect(replace(HERE, versions=versions | {"numpy": "2.3"}))
    monkeypatch.setattr(sys, "version_info", (3, 14))
    # A distribution may write its name otherwise than the requirement does.
    monkeypatch.setattr(environments, "requirements", lambda: [Requirement("Typing_Extensions>=4.12")])
    assert oldest.effect(replace(HERE, versions={"typing-extensions": "4.12"})).endswith(" 4.12")
    assert oldest.why_not(HERE) == "it takes Python 3.11, which the oldest versions have wheels for"


REPORT = """<?xml version="1.0" encoding="utf-8"?>
<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_good" file="tests/test_a.py"/>
<testcase classname="tests.test_a.TestB" name="test_bad[1]" file="tests/test_a.py"><failure/></testcase>
<testcase classname="tests.test_a" name="test_left" file="tests/test_a.py"><skipped/></testcase>
<testcase classname="tests.test_a" name="test_end" file="tests/test_a.py"/>
<testcase classname="tests.test_a" name="test_end" file="tests/test_a.py"><error/></testcase>
</testsuite></testsuites>
"""


def test_what_is_said_of_the_tests(tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(REPORT)
    outcome = Outcome("busy")
    failed = ["tests/test_a.py::TestB::test_bad[1]", "tests/test_a.py::test_end"]
    assert [add_report(tmp_path / "report.xml", outcome) for _ in range(2)] == 2 * [failed]
    outcome.seconds = 12.3
    assert outcome.lines() == [
        "busy               2 passed, 4 failed, 2 skipped, 12 s",
        *(f"    {test} (2 times)" for test in failed),
    ]
    assert not outcome.is_good(may_skip=True)
    assert Outcome("busy", num_passed=3).is_good(may_skip=False)
    assert not Outcome("busy", num_passed=3, trouble="pytest ended with status 3").is_good(may_skip=True)
    left = Outcome("busy", why_not="it is too small")
    assert left.lines() == ["busy               can't run here: it is too small"]
    assert (left.is_good(may_skip=True), left.is_good(may_skip=False)) == (True, False)


@dataclass(frozen=True)
class Empty(Setting):
    """A place whose only tests are those of a file."""

    tests: str
    broken: str = ""

    def why_not(self, here: Facts) -> str:
        del here
        return ""

    @contextmanager
    def made(self, place: Place, here: Facts) -> Iterator[Place]:
        del here
        (place.folder / "test_it.py").write_text(self.tests)
        yield replace(place, tree=place.folder)

    def effect(self, there: Facts) -> str:
        del there
        if self.broken:
            raise SettingError(self.broken)
        return "as it is"


@pytest.mark.parametrize(
    ("setting", "passed", "failed", "trouble"),
    [
        (Empty("right", "", "def test_it(): pass"), 2, Counter(), ""),
        (Empty("wrong", "", "def test_it(): assert False"), 0, Counter({"test_it.py::test_it": 2}), ""),
        (Empty("none", "", ""), 0, Counter(), "pytest ended with status 5"),
        (Empty("broken", "", "def test_it(): pass", "no effect"), 0, Counter(), "no effect"),
    ],
    ids=lambda value: value.name if isinstance(value, Setting) else "",
)
def test_the_tests_run_and_are_counted(
    setting: Setting, passed: int, failed: Counter[str], trouble: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Place, "facts", lambda place: HERE)  # noqa: ARG005 - a method's signature
    monkeypatch.setattr(suite, "PYTEST", [*suite.PYTEST[:2], *suite.PYTEST[4:]])  # without -n 2
    outcome = outcome_of(setting, HERE, 2, ["-p", "no:cacheprovider"])
    assert (outcome.num_passed, outcome.failed, outcome.trouble) == (passed, failed, trouble)
    assert outcome.seconds > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["on_core"], "unknown setting on_core; known: one_core, busy, "),
        ([], "name one setting or several, or all, or --list"),
        (["--list", "busy"], "name one setting or several, or all, or --list"),
        (["busy", "--times", "0"], "--times must be at least 1, not 0"),
    ],
)
def test_wrong_usage(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--list"], ["busy"]])
def test_an_environment_with_another_package(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def facts(_: Place) -> Facts:
        raise SettingError("nn_manual is imported from there, not from here")

    monkeypatch.setattr(Place, "facts", facts)
    assert main(arguments) == 1
    assert capsys.readouterr().err == "run_tests.py: nn_manual is imported from there, not from here\n"


def test_what_the_command_asks_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = []
    monkeypatch.setattr(suite, "_here", lambda: HERE)
    monkeypatch.setattr(suite, "outcome_of", lambda *given: asked.append(given) or Outcome(given[0].name))  # type: ignore[func-returns-value]
    assert main(["busy", "one_core", "busy", "--times", "3", "--", "-k", "bar"]) == 0
    assert asked == [(SETTINGS[name], HERE, 3, ["-k", "bar"]) for name in ("busy", "one_core")]
    asked.clear()
    assert main(["all"]) == 0
    assert [given[0] for given in asked] == list(SETTINGS.values())
    capsys.readouterr()
    assert main(["--list"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in said] == list(SETTINGS)
    assert "mkl_avx2           torch's BLAS with AVX2; can't run here: the library doesn't say" in "\n".join(said)
