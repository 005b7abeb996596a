"""Bad input: each is refused with a message and an exit status, by train, check and plot alike."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from runs import CONFIG, names, write_config
from trained_runs import write_trained

from nn_manual.cli import main

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
            ("5,6,1", "5,6,7", "data.csv:4: column 'y' holds class 7, but class 2 doesn't occur"),
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

    def test_a_current_folder_that_is_gone(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        run = write_trained(small)
        (small / "gone").mkdir()
        os.chdir(small / "gone")
        (small / "gone").rmdir()
        assert main(["evaluate", str(run)]) == 5
        assert capsys.readouterr() == ("", "nn-manual: the current folder: No such file or directory\n")

    def test_no_run_to_plot(self, small: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["plot", "nowhere"]) == 5
        message = "nn-manual: nowhere: no such run\n"
        assert capsys.readouterr() == ("", message)
        assert names(small) == ["small.yaml"]
