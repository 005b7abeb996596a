"""evaluate, predict, summary, list and --version: what they print, what they return, and what ends them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from slow_cases import slow
from text_runs import write_run
from trained_runs import OF_REGRESSION, REGRESSION, SWAPPED, write_trained

from nn_manual.cli import main
from nn_manual.config.listing import KIND_NAMES

from .conftest import finish, start

PREDICT = ["predict", "run", "--input"]
TRAIN = "a,b,y\n3,10,1\n5,6,0\n1,-2,0\n-1,-6,1\n"


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a run, the file that it was trained on, and one of new examples."""
    monkeypatch.chdir(tmp_path)
    Path("train.csv").write_text(TRAIN)
    Path("new.csv").write_text("b,a\n10,3\n")
    write_trained(tmp_path, best=SWAPPED)
    return tmp_path


class TestEvaluate:
    def test_says_how_good_it_is_and_draws(self, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["evaluate", "run", "--checkpoint", "last"]) == 0
        assert capsys.readouterr() == (
            f"training part of {trained}/train.csv, 4 examples: no validation part was held out\n"
            "last weights: loss 0.5633, accuracy 75.00%, ROC AUC 0.7500\n"
            "class         precision   recall       F1     targets\n"
            "no                0.667    1.000    0.800           2\n"
            "yes               1.000    0.500    0.667           2\n"
            "mean              0.833    0.750    0.733           4\n"
            "weighted mean     0.833    0.750    0.733           4\n"
            "confusion matrix run/confusion.png\n",
            "",
        )
        assert (trained / "run" / "confusion.png").read_bytes().startswith(b"\x89PNG")

    def test_other_data_and_another_figure(self, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
        Path("other.csv").write_text("y,b,a\n1,6,5\n")
        assert main(["evaluate", "run", "data.Arrays.file=other.csv", "-o", "o.svg"]) == 0
        out = capsys.readouterr().out.splitlines()
        assert out[0] == f"all of {trained}/other.csv, 1 example"
        assert out[1].startswith("best weights: loss 0.3133, accuracy 100.00%")
        assert out[-1] == "confusion matrix o.svg"
        assert "1 example, accuracy 100.00%" in Path("o.svg").read_text()
        assert not (trained / "run" / "confusion.png").exists()

    def test_a_regression(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "train.csv").write_text("a,b,u,v\n3,10,15,3\n")
        run = str(write_trained(tmp_path, REGRESSION, OF_REGRESSION))
        assert main(["evaluate", run]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"predictions against targets {run}/predictions.png"
        assert Path(run, "predictions.png").read_bytes().startswith(b"\x89PNG")
        assert main(["evaluate", run, "-o", str(tmp_path / "figure.svg")]) == 0
        assert "1 example" in (tmp_path / "figure.svg").read_text()

    def test_a_text_has_no_figure(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run = str(write_run(tmp_path))
        (tmp_path / "other.txt").write_text("abéabéabéb")
        arguments = ["evaluate", run, f"data.Text.file={tmp_path}/other.txt"]
        assert main(arguments) == 0
        assert len(capsys.readouterr().out.splitlines()) == 2
        assert main([*arguments, "-o", "figure.png"]) == 2
        message = "nn-manual: --output figure.png: there is nothing to draw: no classes or too many, no targets\n"
        assert capsys.readouterr().err == message


def test_a_summary_measures_what_it_is_asked_to(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("nn_manual.use.summary.MOST_MEASURED", 0)
    arguments = ["summary", str(small / "small.yaml"), "gradient_check.every=0"]
    said = []
    for more in ([], ["--measure"]):
        assert main([*arguments, *more]) == 0
        said.append(capsys.readouterr().out)
    assert "not measured above 0 parameters" in said[0]
    assert "training step: a batch of 16 takes 1,440 multiplications" in said[1]


class TestPredict:
    def test_writes_a_file(self, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main([*PREDICT, "new.csv", "--output", "out.csv"]) == 0
        assert capsys.readouterr() == ("1 prediction, by the best weights, in out.csv\n", "")
        header, row = (trained / "out.csv").read_text().splitlines()
        assert header == "predicted_class,no,yes"
        assert row.startswith("no,0.731058578")  # the columns are swapped: softmax([2, 1])
        np.savez("many.npz", input=np.zeros((1200, 2)))
        assert main(["predict", "run", "--input", "many.npz", "--output", "out.npz", "--checkpoint", "last"]) == 0
        assert capsys.readouterr().out == "1,200 predictions, by the last weights, in out.npz\n"


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["evaluate", "nowhere"], 5, "nowhere: no such run"),
        (["evaluate", "run", "epochs=3"], 2, "override 'epochs=3': an evaluation only takes other data, loss, seed"),
        (["evaluate", "run", "data.Arrays.file=no.csv"], 5, "{folder}/no.csv: No such file or directory"),
        (["evaluate", "run", "-o", "x.txt"], 2, "x.txt: the name of a figure must end in .png, .svg, .pdf"),
        ([*PREDICT, "no.csv", "--output", "o.csv"], 5, "no.csv: No such file or directory"),
        ([*PREDICT, "new.csv", "--output", "o.txt"], 2, "--output must end in .csv or .npz, not o.txt"),
        ([*PREDICT, "train.csv", "--output", "new/o.csv"], 5, "new/o.csv: can't be written: new is no "),
        (["summary", "nowhere.yaml"], 2, "nowhere.yaml: No such file or directory"),
        (["summary", "small.yaml", "epochs=no"], 2, "override 'epochs=no': epochs must be an integer, not the text "),
    ],
)
def test_what_is_wrong(
    trained: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, message: str
) -> None:
    assert main(arguments) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"nn-manual: {message.format(folder=trained)}")
    assert err.count("\n") == 1


@pytest.mark.usefixtures("trained")
def test_best_weights_that_were_not_kept(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other").mkdir()
    run = write_trained(Path("other"))
    for command in (["evaluate"], ["predict", "--input", "new.csv", "--output", "o.csv"], ["sample", "--prompt", "a"]):
        assert main([command[0], str(run), *command[1:], "--checkpoint", "best"]) == 5
        message = "nn-manual: other/run: has no best weights, only those of its last step: --checkpoint last\n"
        assert capsys.readouterr().err == message


@pytest.mark.usefixtures("trained")
def test_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["summary", "small.yaml", "model.0.Linear.bias=false"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[3].split() == ["0", "Linear", "2", "4", "4", "nn.Linear"]
    assert err == ""


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "losses"]) == 0
    assert capsys.readouterr().out.startswith("losses\n  BCELoss\n")
    assert main(["list"]) == 0
    out = capsys.readouterr().out
    assert [line for line in out.splitlines() if line and not line.startswith(" ")] == list(KIND_NAMES)


def test_list_of_what_is_no_kind(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["list", "layer"])
    assert end.value.code == 2
    assert "argument KIND: invalid choice: 'layer' (choose from 'layers', 'losses'," in capsys.readouterr().err


def test_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["schema"]) == 0
    printed = capsys.readouterr().out
    assert json.loads(printed)["required"] == ["data", "batch_size", "epochs", "model", "loss", "optimizer"]
    Path("schema.json").write_text("another one")
    assert main(["schema", "-o", "schema.json"]) == 0
    assert capsys.readouterr() == ("schema.json\n", "")
    assert Path("schema.json").read_text(encoding="utf-8") == printed


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (".", ".: can't be written: Is a directory"),
        ("folder", "folder: can't be written: Is a directory"),
        ("nowhere/schema.json", "nowhere/schema.json: can't be written: No such file or directory"),
        ("/dev/null", "/dev/null: is a character device, not a file"),
    ],
)
def test_a_schema_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    assert main(["schema", "-o", output]) == 5
    assert capsys.readouterr() == ("", f"nn-manual: {message}\n")
    assert list(tmp_path.rglob("*")) == [tmp_path / "folder"]


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--version"])
    assert end.value.code == 0
    assert capsys.readouterr().out == "nn-manual 1.0.0\n"


@pytest.mark.parametrize(("number", "word"), [(signal.SIGINT, "interrupted"), slow(signal.SIGTERM, "terminated")])
@pytest.mark.usefixtures("trained")
def test_by_a_signal(number: int, word: str) -> None:
    process = start("predict", "run", "--input", "-", "--output", "out.csv", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("a,b\n" + "1,2\n" * 2**18)  # more than a pipe holds: it waits until the command reads
    process.stdin.flush()
    process.send_signal(number)
    assert finish(process) == (128 + number, "", f"nn-manual: {word}\n")
    assert not Path("out.csv").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["list"], ["evaluate", "run"], ["predict", "run", "--input", "new.csv", "--output", "out.csv"]],
    ids=lambda arguments: arguments[0],
)
@pytest.mark.usefixtures("trained")
def test_torch_is_not_imported(arguments: list[str]) -> None:
    """It alone starts each command that must not import torch."""
    program = "import sys, nn_manual.cli; nn_manual.cli.main(sys.argv[1:]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


class TestNew:
    ROWS = (f"{row}.5,{('blue', 'red')[row % 2]},{'ab'[row % 2]}\n" for row in range(40))
    TABLE = "size,color,kind\n" + "".join(ROWS)

    def test_from_a_table_to_predictions(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
        monkeypatch.chdir(tmp_path)
        Path("table.csv").write_text(self.TABLE)
        assert main(["new", "table.csv", "--target", "kind", "-o", "new.yaml"]) == 0
        assert capsys.readouterr().out == (
            "a classification of 'kind': 2 classes: a, b\n"
            "new.yaml; to train: nn-manual train new.yaml\n"
        )
        assert Path("new.yaml").read_text().startswith("# yaml-language-server: $schema=nn_manual.schema.json\n")
        assert Path("nn_manual.schema.json").is_file()
        assert main(["train", "new.yaml", "epochs=30", "gradient_check.every=0", "--run-dir", "run"]) == 0
        capsys.readouterr()
        np.savez("arrays.npz", x=np.arange(40.0).reshape(20, 2), y=np.arange(20) % 2)
        assert main(["new", "arrays.npz", "--target", "y", "-o", "arrays.yaml"]) == 0
        assert capsys.readouterr().out == "arrays.yaml; to train: nn-manual train arrays.yaml\n"
        Path("new.csv").write_text("color,size\nblue,3\nred,4\n")
        assert main(["predict", "run", "--input", "new.csv"]) == 0
        rows = capsys.readouterr().out.splitlines()
        assert rows[0] == "predicted_class,a,b"
        assert [row.split(",")[0] for row in rows[1:]] == ["a", "b"]
        Path("new.csv").write_text("color,size\npink,3\n")
        assert main(["predict", "run", "--input", "new.csv"]) == 5
        words = "new.csv:2: column 'color' holds 'pink', which training never saw; it had 'blue', 'red'"
        assert capsys.readouterr().err == f"nn-manual: {words}\n"

    def test_without_a_file_it_is_printed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        Path("table.csv").write_text(self.TABLE)
        assert main(["new", "table.csv", "--target", "size"]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith("data:\n")
        assert "    task: regression  " in printed
        assert not Path("nn_manual.schema.json").exists()
        assert main(["new", "nowhere.csv", "--target", "size"]) == 5
        assert capsys.readouterr().err == "nn-manual: nowhere.csv: No such file or directory\n"
        assert main(["new", "table.csv"]) == 2
