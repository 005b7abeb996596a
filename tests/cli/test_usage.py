"""What the command line takes, its help, and the ways to start it."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from runs import lines
from slow_cases import slow

from nn_manual.cli import main
from nn_manual.cli.options import new_parser

from .conftest import UNCHECKED

COMMANDS = ["train", "check", "check-function", "plot", "evaluate", "predict", "summary", "unroll", "list", "sample"]
COMMANDS += ["schema", "exercise", "exercise start", "exercise check", "exercise hint", "exercise solution"]
COMMANDS += ["exercise make", "exercise grade"]

#: What the help calls an argument that is no path and no single number. Every other one is a path.
NO_PATHS = {"KEY=VALUE", "NAME", "NAME|FILE", "FILE.py:CLASS", "MODULE:NAME", "SHAPES", "SIZES", "PLACE=BELOW", "DTYPE"}
NO_PATHS |= {"KIND,...", "ROW,...", "SECONDS", "TEXT"}

ROOT = Path(__file__).parents[2]


def arguments_with_values(
    parser: argparse.ArgumentParser, *command: str
) -> Iterator[tuple[tuple[str, ...], argparse.Action]]:
    """Each argument that takes any text, of this command and of those below it, and what stands in front of its value.
    """
    behind = command
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield from arguments_with_values(below, *command, name)
        elif action.nargs != 0 and action.choices is None and action.type not in (int, float):
            yield (*command, action.option_strings[-1]) if action.option_strings else behind, action
            if not action.option_strings:
                behind = *behind, "given"


VALUES = [*arguments_with_values(new_parser())]
#: The name of each path in messages, by the command line in front of its value.
PATHS = {
    arguments: "/".join(action.option_strings) or str(action.metavar)
    for arguments, action in VALUES
    if action.metavar not in NO_PATHS
}


class TestHelp:
    def test_loads_little(self) -> None:
        """Beside a Python that only reads its command line: modules, since seconds depend on the machine's load."""
        plain = "import argparse, sys; argparse.ArgumentParser().parse_args([]); print(len(sys.modules))"
        own = "import sys, nn_manual.cli as cli\ntry: cli.main(['--help'])\nexcept SystemExit: print(len(sys.modules))"
        programs = [subprocess.check_output([sys.executable, "-c", text], text=True) for text in (plain, own)]
        before, after = (int(text.splitlines()[-1]) for text in programs)
        assert after - before < 60  # 27 as measured; numpy alone has 140

    @pytest.mark.parametrize("arguments", [[], *(name.split() for name in COMMANDS)])
    def test_imports_nothing_heavy(self, arguments: list[str]) -> None:
        program = (
            "import sys, nn_manual.cli\n"
            "try: nn_manual.cli.main([*sys.argv[1:], '--help'])\n"
            "except SystemExit as end:\n"
            "    print(end.code, {'torch', 'sklearn', 'matplotlib', 'numpy', 'argcomplete'} & {*sys.modules})"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, *arguments],
            env=os.environ | {"COLUMNS": "80"}, capture_output=True, text=True, check=True,
        )  # fmt: skip
        *usage, last = done.stdout.splitlines()
        assert last == "0 set()"
        assert usage[0].startswith("usage: nn-manual")
        assert max(map(len, usage)) <= 80


class TestUsage:
    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ([], "the following arguments are required: COMMAND"),
            (["trian", "small.yaml"], "invalid choice: 'trian'"),
            (["train", "small.yaml", "--epochs", "3"], "unrecognized arguments: --epochs 3"),
            (["train", "small.yaml", "--run-dir"], "argument --run-dir: expected one argument"),
            (["plot"], "the following arguments are required: RUN"),
            (["sample", "run"], "the following arguments are required: --prompt"),
            (["sample", "run", "--prompt", "a", "seed=3"], "unrecognized arguments: seed=3"),
            (["plot", "run", "--smoothing", "much"], "argument --smoothing: invalid float value: 'much'"),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 2
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize(("arguments", "name"), PATHS.items(), ids=map(" ".join, PATHS))
    def test_no_path_is_empty(
        self,
        arguments: tuple[str, ...],
        name: str,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """An empty one would be the current folder."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as end:
            main([*arguments, ""])
        assert end.value.code == 2
        last = capsys.readouterr().err.splitlines()[-1]
        assert last.partition(": error: ")[2] == f"argument {name}: the path is empty; the current folder is ."

    def test_the_arguments_that_are_no_paths(self) -> None:
        assert {action.metavar for _, action in VALUES} >= NO_PATHS
        assert len(PATHS) >= 28

    @pytest.mark.parametrize(
        "arguments", [[], ["small.yaml", "--ops"], ["--ops", "--catalogue"], ["small.yaml", "--catalogue", "--ops"]]
    )
    def test_check_takes_one_thing(self, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", *arguments]) == 2
        message = "nn-manual: check takes one of these: CONFIG, FILE.py, --replay BUNDLE, --catalogue, --ops\n"
        assert capsys.readouterr().err == message

    @pytest.mark.parametrize(
        "arguments",
        [
            ["epochs=1", "seed=7", UNCHECKED, "--run-dir", "run"],
            ["--run-dir", "run", "epochs=1", "seed=7", UNCHECKED],
            ["epochs=1", "--run-dir", "run", "seed=7", UNCHECKED],
        ],
    )
    def test_overrides_may_stand_on_both_sides_of_an_option(self, small: Path, arguments: list[str]) -> None:
        assert main(["train", "small.yaml", *arguments]) == 0
        assert len(lines(small / "run" / "metrics.jsonl")) == 1
        assert (small / "run" / "config.yaml").read_text().startswith("seed: 7\n")


@pytest.mark.parametrize(
    ("script", "arguments", "status", "said"),
    [
        slow("train.py", ["small.yaml", UNCHECKED, "--run-dir", "run"], 0, "run directory run\n"),
        ("check_gradients.py", ["nowhere.yaml"], 2, "nn-manual: nowhere.yaml: No such file or directory\n"),
        ("plot_loss.py", ["nowhere"], 5, "nn-manual: nowhere: no such run\n"),
    ],
)
@pytest.mark.usefixtures("small")
def test_scripts(script: str, arguments: list[str], status: int, said: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert (done.stdout + done.stderr).endswith(said)


def test_python_m() -> None:
    done = subprocess.run([sys.executable, "-m", "nn_manual", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("usage: nn-manual")


def test_python_m_looks_for_layers_where_the_config_says(tmp_path: Path) -> None:
    """Not in the current folder, which Python puts before all others there."""
    (tmp_path / "my_layers.py").touch()
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "run.yaml").write_text("model: [my_layers:Swish]\n")
    command = [sys.executable, "-m", "nn_manual", "check", "far/run.yaml"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"no module 'my_layers' in {tmp_path / 'far'}" in done.stderr
