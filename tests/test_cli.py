"""The command line as a person, a shell or a scheduler meets it: words, exit statuses, and files left behind."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import resource
import signal
import statistics
import struct
import subprocess
import sys
import sysconfig
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from runs import CONFIG, lines, names, write_config

from nn_manual.cli import main
from nn_manual.layers import Tanh
from nn_manual.run_directory.metrics import read_run

ROOT = Path(__file__).parents[1]
COMMAND = Path(sysconfig.get_path("scripts")) / "nn-manual"

#: More epochs than a test waits for.
ENDLESS = "epochs=1000000"
UNCHECKED = "gradient_check.every=0"
#: What lies in a run directory while a run goes on.
GROWING = ["config.yaml", "data.json", "gradients.jsonl", "metrics.jsonl"]


@pytest.fixture(autouse=True)
def _restore_signal_handler() -> Iterator[None]:
    """main() is made to own its process."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with small.yaml in it."""
    monkeypatch.chdir(tmp_path)
    write_config(tmp_path)
    return tmp_path


def start(
    *arguments: str,
    stdout: int | IO[str] = subprocess.PIPE,
    stderr: int = subprocess.PIPE,
    file_limit: int = resource.RLIM_INFINITY,
) -> subprocess.Popen[str]:
    """nn-manual in a process of its own, in which no file grows beyond `file_limit` bytes."""

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_limit, resource.RLIM_INFINITY))

    # Unbuffered, nothing would be left to write, and to fail, at exit.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen(
        [COMMAND, *arguments], stdout=stdout, stderr=stderr, preexec_fn=prepare, env=environment, text=True
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, standard output, standard error."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


class TestHelp:
    def test_is_quick(self) -> None:
        seconds = []
        for _ in range(5):
            began = time.perf_counter()
            assert finish(start("--help"))[0] == 0
            seconds.append(time.perf_counter() - began)
        assert statistics.median(seconds) < 0.3

    @pytest.mark.parametrize("arguments", [[], ["train"], ["check"], ["plot"]])
    def test_imports_nothing_heavy(self, arguments: list[str]) -> None:
        program = (
            "import sys, nn_manual.cli\n"
            "try: nn_manual.cli.main([*sys.argv[1:], '--help'])\n"
            "except SystemExit as end: print(end.code, {'torch', 'sklearn', 'matplotlib', 'numpy'} & {*sys.modules})"
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
            ([], "the following arguments are required: train | check | plot"),
            (["trian", "small.yaml"], "invalid choice: 'trian'"),
            (["train"], "the following arguments are required: CONFIG\n"),
            (["train", "small.yaml", "--epochs", "3"], "unrecognized arguments: --epochs 3"),
            (["train", "small.yaml", "--run-dir"], "argument --run-dir: expected one argument"),
            (["plot"], "the following arguments are required: RUN"),
            (["plot", "run", "--smoothing", "much"], "argument --smoothing: invalid float value: 'much'"),
        ],
    )
    def test_wrong_usage(self, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as end:
            main(arguments)
        assert end.value.code == 2
        assert message in capsys.readouterr().err

    @pytest.mark.parametrize(
        "arguments", [[], ["small.yaml", "--ops"], ["--ops", "--catalogue"], ["small.yaml", "--catalogue", "--ops"]]
    )
    def test_check_takes_one_thing(self, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", *arguments]) == 2
        message = "nn-manual: check takes one of these: CONFIG, --replay BUNDLE, --catalogue, --ops\n"
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


CSV = "a,b,y\n1,2,0\n3,4,1\n5,6,1\n"


def of_csv(text: str) -> str:
    """A config whose data.csv is this."""
    Path("data.csv").write_text(text)
    return re.sub("data: .*", "data: {Arrays: {file: data.csv, target: y, task: classification}}", CONFIG)


class TestBadInput:
    """One message that names the place, the exit status of its kind, no traceback, and nothing written."""

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("Tanh", "Tanhh", "small.yaml:6:5: unknown layer 'Tanhh'; did you mean 'Tanh'?"),
            ("batch_size: 16", "batch_size: 0", "small.yaml:2:1: batch_size must be at least 1, not 0"),
            ("lr: 0.5", "lr: -0.5", "small.yaml:9:19: lr must be at least 0, not -0.5"),
            ("loss:", "los: 1\nloss:", "small.yaml:8:1: unknown key 'los' in the config; did you mean 'loss'?"),
            ("in_features: 8", "in_features: 9", "small.yaml:7:5: Linear takes in_features=9"),
            ("out_features: 2}", "out_features: 3}", "small.yaml:7:5: the model puts out 3 values"),
            ("model:", "model: [", "small.yaml:5:"),
        ],
    )
    def test_config(self, small: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str) -> None:
        write_config(small, CONFIG.replace(old, new))
        assert main(["train", "small.yaml"]) == 2
        assert f"nn-manual: {message}" in capsys.readouterr().err
        assert names(small) == ["small.yaml"]

    @pytest.mark.parametrize(
        ("path", "message"),
        [("nowhere.yaml", "No such file or directory"), (".", "Is a directory")],
    )
    def test_no_config(self, small: Path, capsys: pytest.CaptureFixture[str], path: str, message: str) -> None:
        assert main(["train", path]) == 2
        assert capsys.readouterr().err == f"nn-manual: {path}: {message}\n"
        assert names(small) == ["small.yaml"]

    def test_overrides_all_at_once(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "small.yaml", "epochs=no", "optimizer.SGD.lr=-1", "nonsense"]) == 2
        assert capsys.readouterr().err.splitlines() == [
            "nn-manual: override 'epochs=no': epochs must be an integer, not the text 'no'",
            "override 'optimizer.SGD.lr=-1': lr must be at least 0, not -1.0",
            "override 'nonsense': is not KEY=VALUE",
        ]
        assert names(small) == ["small.yaml"]

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ("3,4,1", "3,four,1", "data.csv:3: column 'b' holds 'four', not a number"),
            ("3,4,1", "3,nan,1", "data.csv:3: column 'b' holds 'nan', not a finite number"),
            ("5,6,1", "5,inf,1", "data.csv:4: column 'b' holds 'inf', not a finite number"),
            ("5,6,1", "5,6,7", "data.csv:4: column 'y' holds class 7, but class 2 is nowhere"),
            ("5,6,1", "5,6", "data.csv:4: the header names 3 columns, this row has 2"),
            ("a,b,y", "a,b,z", "data.csv: has no column 'y'"),
            (CSV, "", "data.csv: is empty"),
        ],
    )
    def test_data(self, small: Path, capsys: pytest.CaptureFixture[str], old: str, new: str, message: str) -> None:
        write_config(small, of_csv(CSV.replace(old, new)))
        assert main(["train", "small.yaml"]) == 5
        assert message in capsys.readouterr().err
        assert names(small) == ["data.csv", "small.yaml"]

    def test_no_data(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        write_config(small, re.sub("data: .*", "data: {FashionMNIST: {folder: nowhere}}", CONFIG))
        assert main(["train", "small.yaml", "model.0.Linear.in_features=784", "model.2.Linear.out_features=10"]) == 5
        assert re.search(r"^nn-manual: .*nowhere.*", capsys.readouterr().err)
        assert names(small) == ["small.yaml"]

    def test_more_data_than_memory(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "small.yaml", "data.Spirals.num_examples=1000000000000"]) == 2
        assert capsys.readouterr().err.startswith("nn-manual: not enough memory: Unable to allocate ")
        assert names(small) == ["small.yaml"]

    def test_a_run_directory_that_is_a_file(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "small.yaml", "--run-dir", "small.yaml"]) == 5
        message = "nn-manual: small.yaml: the run directory can't be made: Not a directory\n"
        assert capsys.readouterr() == ("", message)
        assert (small / "small.yaml").read_text() == CONFIG

    @pytest.mark.usefixtures("small")
    def test_a_run_directory_that_holds_something(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "small.yaml", "--run-dir", "."]) == 5
        message = "nn-manual: .: the run directory exists and isn't empty, it holds small.yaml\n"
        assert capsys.readouterr() == ("", message)

    def test_no_run_to_plot(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["plot", "nowhere"]) == 5
        message = "nn-manual: nowhere/config.yaml: can't be read: No such file or directory\n"
        assert capsys.readouterr() == ("", message)
        assert names(small) == ["small.yaml"]


class TestTrain:
    def test_says_one_line_an_epoch_and_a_summary(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "small.yaml", "--run-dir", "run"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        *epochs, _, result, compared, worst, where = out.splitlines()
        number = r"[\d.e-]+"
        for epoch, line in enumerate(epochs, start=1):
            pattern = rf"epoch {epoch}/3  train loss {number} +validation loss {number} +accuracy +{number}%"
            assert re.fullmatch(pattern, line)
        assert len(epochs) == 3
        assert re.fullmatch(rf"train loss {number}, validation loss {number}, accuracy {number}% after 9 steps", result)
        assert compared == "171 tensors of 9 steps compared with torch's, 0 mismatches"
        assert re.fullmatch(rf"worst error {number} of 1e-0\d allowed: [\w. ]+ at step \d", worst)
        assert where == "run directory run"
        assert max(map(len, out.splitlines())) <= 80
        assert names(small / "run")[0] == "config.yaml"

    def test_the_default_run_directory(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "small.yaml", "epochs=1", UNCHECKED]) == 0
        (directory,) = (small / "runs" / "small").iterdir()
        out = capsys.readouterr().out.splitlines()
        assert out[-2:] == ["no gradient was checked", f"run directory {directory.relative_to(small)}"]

    @pytest.mark.usefixtures("small")
    def test_a_bar_that_fits_the_terminal(self) -> None:
        terminal, program_side = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        # Long enough for the bar to move: it is drawn ten times a second.
        settings = ["epochs=1", "batch_size=1", "data.Spirals.num_examples=1200", "optimizer.SGD.lr=0.001"]
        process = start("train", "small.yaml", *settings, "--run-dir", "run", stdout=program_side, stderr=program_side)
        os.close(program_side)
        shown = _read_terminal(terminal)
        assert finish(process)[0] == 0
        states = re.split(r"[\r\n]+", shown)
        assert max(map(len, states)) <= 80
        moving = [state for state in states if re.search(r"epoch 1/1 +\d+%\|.* steps/s, loss [\d.e-]+", state)]
        assert moving
        assert all(re.search(r", worst error \de-\d\d$", state) for state in moving)
        assert [state for state in states if state.strip()][-1] == "run directory run"

    @pytest.mark.usefixtures("small")
    def test_unchecked_never_imports_torch(self) -> None:
        program = (
            "import sys\n"
            "from nn_manual.cli import main\n"
            "assert main(['train', 'small.yaml', 'gradient_check.every=0', '--run-dir', 'run']) == 0\n"
            "assert main(['plot', 'run', '-o', 'run.svg']) == 0\n"
            "print('torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "False"

    def test_a_wrong_gradient(
        self, small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(Tanh, "backward", lambda self, saved, grad_output: grad_output * (1 - saved))  # noqa: ARG005
        assert main(["train", "small.yaml", "--run-dir", "run"]) == 3
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("nn-manual: gradient check failed: wrong first in 1 (Tanh): 1.grad_input\n")
        assert re.search(r"^1\.grad_input +16x8 .* WRONG", err, re.MULTILINE)
        assert err.splitlines()[-2:] == [
            "stopped in epoch 1 at step 1; the run so far lies in run",
            "to run this step again: nn-manual check --replay run/mismatch-step-1",
        ]
        assert names(small / "run") == [*GROWING, "mismatch-step-1"]

    @pytest.mark.usefixtures("small")
    def test_overflow(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["train", "small.yaml", "optimizer.SGD.lr=1e39", UNCHECKED, "--run-dir", "run"]) == 4
        assert capsys.readouterr() == (
            "",
            "nn-manual: the loss is nan at step 2\n"
            "a smaller lr, or clip_grad_norm, keeps most runs finite\n"
            "stopped in epoch 1 at step 2; the run so far lies in run\n",
        )


def _read_terminal(terminal: int) -> str:
    shown = b""
    while True:
        try:
            read = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that the other side is closed
            read = b""
        if not read:
            os.close(terminal)
            return shown.decode()
        shown += read


class TestCheck:
    def test_prints_the_table(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["check", "small.yaml", "dtype=float64"]) == 0
        out, err = capsys.readouterr()
        assert err == ""
        assert out.startswith("12 tensors equal torch's; worst ")
        assert re.search(r"^0\.grad_weight +8x2 ", out, re.MULTILINE)
        assert names(small) == ["small.yaml"]

    @pytest.mark.usefixtures("small")
    def test_a_wrong_gradient(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        monkeypatch.setattr(Tanh, "backward", lambda self, saved, grad_output: grad_output * (1 - saved))  # noqa: ARG005
        assert main(["check", "small.yaml"]) == 3
        assert capsys.readouterr().out.startswith("gradient check failed: wrong first in 1 (Tanh): 1.grad_input\n")


@pytest.mark.parametrize(
    ("settings", "status"),
    [
        ([], 0),
        (["initializer=Zeros"], 3),
        (["model=[Linear: {in_features: 2, out_features: 2}, ReLU]", "initializer={Constant: {value: 0}}"], 3),
        (["model=[Tanh]"], 2),
    ],
)
@pytest.mark.usefixtures("small")
def test_check_and_train_agree_on_what_proves_nothing(
    capsys: pytest.CaptureFixture[str], settings: list[str], status: int
) -> None:
    assert main(["check", "small.yaml", *settings]) == status
    checked = capsys.readouterr()
    assert main(["train", "small.yaml", *settings]) == status
    trained = capsys.readouterr()
    if status == 3:
        words = "0 (Linear): 0.grad_weight is zero everywhere"
        assert words in checked.out
        assert f"not proven: {words}, in every step" in trained.out
    if status == 2:
        assert checked.err == trained.err
    assert main(["train", "small.yaml", *settings, UNCHECKED]) == (2 if status == 2 else 0)


def test_plot(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "small.yaml", UNCHECKED, "--run-dir", "run"]) == 0
    capsys.readouterr()
    assert main(["plot", "run", "run", "-o", "both.svg", "--smoothing", "0.5", "--log-y"]) == 0
    assert capsys.readouterr() == ("both.svg\n", "")
    assert (small / "both.svg").read_text().startswith("<?xml")


class TestStopped:
    """A signal, a reader that leaves, a disk that is full: the files are whole, and it is said where they lie."""

    @pytest.mark.parametrize(
        ("number", "status", "word", "every"),
        [(signal.SIGINT, 130, "interrupted", 1), (signal.SIGTERM, 143, "terminated", 0)],
    )
    def test_by_a_signal(self, small: Path, number: signal.Signals, status: int, word: str, every: int) -> None:
        process = start("train", "small.yaml", ENDLESS, f"gradient_check.every={every}", "--run-dir", "run")
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(number)
        code, _, err = finish(process)
        assert code == status
        said, where = err.splitlines()
        assert said == f"nn-manual: {word}"
        stopped = re.fullmatch(r"stopped in epoch \d+ at step (\d+); the run so far lies in run", where)
        assert stopped
        assert names(small / "run") == GROWING
        recorded = read_run(small / "run")
        assert recorded.metrics["epoch"].size >= 1
        # The step at which it stopped may have been under way.
        assert recorded.gradients["step"].size in (every * int(stopped[1]), every * (int(stopped[1]) - 1))

    @pytest.mark.usefixtures("small")
    def test_while_it_still_loads(self) -> None:
        process = start("train", "small.yaml", ENDLESS)
        time.sleep(0.15)  # Python has started, numpy is being imported
        process.send_signal(signal.SIGTERM)
        code, _, err = finish(process)
        assert code in (143, -signal.SIGTERM)  # the latter before the program's first line
        assert "Traceback" not in err

    def test_by_a_reader_that_leaves(self, small: Path) -> None:
        process = start("train", "small.yaml", ENDLESS, UNCHECKED, "--run-dir", "run")
        assert process.stdout is not None
        assert process.stdout.readline().startswith("epoch       1/1000000 ")
        process.stdout.close()
        assert process.wait(timeout=60) == 141
        assert process.stderr is not None
        with process.stderr:
            assert process.stderr.read() == ""
        assert read_run(small / "run").metrics["epoch"].size >= 1

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
    def test_by_an_output_that_is_full(self, small: Path) -> None:
        train = ["train", "small.yaml", UNCHECKED, "--run-dir", "run"]  # prints while it runs
        plot = ["plot", "run"]  # prints at its end, when Python would only flush at exit
        for command in (train, plot):
            with open("/dev/full", "w") as full:
                code, _, err = finish(start(*command, stdout=full))
            assert code == 5
            assert err.splitlines()[0] == "nn-manual: standard output: No space left on device"
        assert read_run(small / "run").metrics["epoch"].size == 1

    @pytest.mark.parametrize(
        ("limit", "settings", "file", "left"),
        [
            (2000, [ENDLESS, UNCHECKED], "metrics.jsonl", GROWING),
            (20000, [UNCHECKED], "loss.png", [*GROWING, "model.safetensors", "summary.json"]),
        ],
    )
    def test_by_a_disk_that_is_full(
        self, small: Path, limit: int, settings: list[str], file: str, left: list[str]
    ) -> None:
        code, _, err = finish(start("train", "small.yaml", *settings, "--run-dir", "run", file_limit=limit))
        assert code == 5
        said, where = err.splitlines()
        assert said == f"nn-manual: run/{file}: can't be written: File too large"
        assert re.fullmatch(r"stopped in epoch \d+ at step \d+; the run so far lies in run", where)
        assert names(small / "run") == left
        written = (small / "run" / "metrics.jsonl").read_bytes()
        assert written.endswith(b"}\n")
        assert len(lines(small / "run" / "metrics.jsonl")) >= 3


@pytest.mark.parametrize(
    ("script", "arguments", "status", "said"),
    [
        ("train.py", ["small.yaml", UNCHECKED, "--run-dir", "run"], 0, "run directory run\n"),
        ("check_gradients.py", ["nowhere.yaml"], 2, "nn-manual: nowhere.yaml: No such file or directory\n"),
        ("plot_loss.py", ["nowhere"], 5, "nn-manual: nowhere/config.yaml: can't be read: No such file or directory\n"),
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
