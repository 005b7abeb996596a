"""Configs for tables, arrays and texts of one's own: they load, fit their data, and say why they are as they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nn_manual.config import RunConfig, load_config
from nn_manual.config.json_schema import schema_text
from nn_manual.data import Arrays, Text
from nn_manual.data.held_out import held_out
from nn_manual.errors import ConfigError, DataError
from nn_manual.run.loading import load
from nn_manual.use import table_columns
from nn_manual.use.new_config import new_config

FLOWERS = "length,width,species\n" + "".join(f"{row},{row % 5}.5,{'abc'[row % 3]}\n" for row in range(1, 31))
#: Rows without an empty cell.
PEOPLE = "id,name,city,age,income\n" + "".join(
    f"{row},name {row},{'Ulm' if row % 2 else 'Bonn'},{20 + row % 50},{1000.5 + row}\n" for row in range(200)
)


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunConfig]:
    """A function that makes a config for a table with this text, writes it into another folder and loads it, with its
    data and its model: a layer of another size would be refused.
    """
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()

    def make(text: str, *targets: str, **options: Any) -> RunConfig:
        Path("table.csv").write_text(text)
        new_config(Path("table.csv"), targets, Path("out/new.yaml"), **options)
        config = load_config(Path("out/new.yaml"))
        split, model = load(config)
        assert model(split.train.input).shape[1] == (split.num_classes or split.train.target.shape[1])
        return config

    return make


def arrays_of(config: RunConfig) -> Arrays:
    assert isinstance(config.data, Arrays)
    return config.data


def test_a_table_of_numbers_with_classes(written: Callable[..., RunConfig]) -> None:
    data = arrays_of(written(FLOWERS, "species"))
    assert (data.task, data.categories, data.standardize, data.stratify) == ("classification", [], True, True)
    assert (data.missing, data.input, data.delimiter) == (None, None, None)
    assert Path("out/new.yaml").read_text().splitlines()[:7] == [
        "# yaml-language-server: $schema=nn_manual.schema.json",
        "data:",
        "  Arrays:",
        "    file: ../table.csv                      # 30 rows with a target",
        "    target: species                         # 3 classes: a, b, c",
        "    task: classification                    # the other one: --task",
        "    standardize: true                       # columns of different sizes would train badly",
    ]


def test_the_schema_lies_beside_the_config_that_names_it(written: Callable[..., RunConfig]) -> None:
    written(FLOWERS, "species")
    assert sorted(path.name for path in Path("out").iterdir()) == ["new.yaml", "nn_manual.schema.json"]
    assert Path("out/nn_manual.schema.json").read_text(encoding="utf-8") == schema_text()
    Path("out/nn_manual.schema.json").write_text(schema_text()[:1000])  # as another version might have it
    new_config(Path("table.csv"), ["species"], Path("out/another.yaml"))
    assert Path("out/nn_manual.schema.json").read_text(encoding="utf-8") == schema_text()
    assert new_config(Path("table.csv"), ["species"]).text.startswith("data:\n")


def test_where_no_schema_can_be_written_there_is_no_config(written: Callable[..., RunConfig]) -> None:
    written(FLOWERS, "species")
    schema = Path("out/nn_manual.schema.json")
    words = r"^out/nn_manual\.schema\.json stands where the schema belongs, and isn't one: choose another folder"
    schema.write_text('{"mine": 1}')
    with pytest.raises(ConfigError, match=words):
        new_config(Path("table.csv"), ["species"], Path("out/another.yaml"))
    assert schema.read_text() == '{"mine": 1}'
    schema.unlink()
    schema.mkdir()
    with pytest.raises(ConfigError, match=words):
        new_config(Path("table.csv"), ["species"], Path("out/another.yaml"))
    assert not Path("out/another.yaml").exists()
    Path("out/link.yaml").symlink_to("nowhere.yaml")
    with pytest.raises(ConfigError, match=r"^-o out/link\.yaml exists"):
        new_config(Path("table.csv"), ["species"], Path("out/link.yaml"))


def test_the_notes_say_what_is_predicted_and_what_is_left_out(written: Callable[..., RunConfig]) -> None:
    written(FLOWERS, "species")
    assert new_config(Path("table.csv"), ["species"]).notes == ("a classification of 'species': 3 classes: a, b, c",)
    rows = "".join(f"{row}.5 m²,x,{row % 7}.25,{row * 100}.5,{row}.5\n" for row in range(1, 31))
    Path("out/new.yaml").unlink()
    written("area,same,first,second,size\n" + rows, "second", "first")
    assert new_config(Path("table.csv"), ["second", "first"]).notes == (
        "a regression of 'second', 'first': numbers from 100.5 to 3000.5, 0.25 to 6.25",
        "left out: 'area', 30 different names, such as '1.5 m²': a number has a point and nothing else",
        "left out: 'same', always the same",
    )


def test_nothing_is_wider_than_100_columns(written: Callable[..., RunConfig]) -> None:
    written(PEOPLE.replace("Ulm", ""), "income")
    assert max(map(len, Path("out/new.yaml").read_text().splitlines())) <= 100


def test_columns_that_say_nothing_are_left_out(written: Callable[..., RunConfig]) -> None:
    data = arrays_of(written(PEOPLE, "income"))
    assert (data.task, data.input, data.categories) == ("regression", ["city", "age"], ["city"])
    text = Path("out/new.yaml").read_text()
    assert "    # without 'id' (a number for each row), 'name' (200 different names)\n    input: [city, age]\n" in text


@pytest.mark.parametrize(
    ("cells", "task", "categories"),
    [
        (["0", "1", "2"], "classification", []),
        (["3", "5", "8"], "classification", ["y"]),
        (["no", "yes"], "classification", []),
        ([str(number) for number in range(21)], "regression", []),
        (["0.5", "1"], "regression", []),
    ],
)
def test_what_the_target_looks_like(
    written: Callable[..., RunConfig], cells: list[str], task: str, categories: list[str]
) -> None:
    rows = [f"{row * 0.7},{cells[row % len(cells)]}" for row in range(60)]
    data = arrays_of(written("x,y\n" + "\n".join(rows) + "\n", "y"))
    assert (data.task, data.categories) == (task, categories)


def test_the_task_can_be_chosen(written: Callable[..., RunConfig]) -> None:
    rows = "x,y\n" + "".join(f"{row * 0.7},{row % 5}\n" for row in range(60))
    assert arrays_of(written(rows, "y", task="regression")).task == "regression"


def test_several_targets(written: Callable[..., RunConfig]) -> None:
    data = arrays_of(written("x,y,z\n" + "".join(f"{row * 0.7},{row},{-row}\n" for row in range(9)), "y", "z"))
    assert (data.task, data.target) == ("regression", ["y", "z"])


def test_empty_cells_become_the_mean(written: Callable[..., RunConfig]) -> None:
    data = arrays_of(written(PEOPLE.replace("Ulm,2", ",").replace(",45,", ",,"), "income"))
    assert (data.missing, data.categories) == ("mean", ["city"])


def test_rows_without_a_target_are_left_out(written: Callable[..., RunConfig]) -> None:
    """The name that only they have gets no number."""
    rows = "x,color,y\n" + "".join(f"{row * 0.7},{'red' if row % 2 else 'blue'},{row % 2}\n" for row in range(20))
    config = written(rows + "1,pink,\n", "y")
    assert arrays_of(config).missing == "mean"
    assert "in_features: 3" in Path("out/new.yaml").read_text()


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_delimiters(written: Callable[..., RunConfig], delimiter: str) -> None:
    assert arrays_of(written(FLOWERS.replace(",", delimiter), "species")).delimiter is None  # the header shows it


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("NA", "holds 'NA'; 199 of 200 cells of the column are numbers: a number has a point, and a missing one "),
        ("nan", "holds 'nan'; "),
        ("1,5", "holds '1,5'; "),
    ],
)
def test_numbers_that_are_written_otherwise(written: Callable[..., RunConfig], cell: str, message: str) -> None:
    for target in ("income", "age"):
        with pytest.raises(DataError, match=rf"table\.csv:14: column 'age' {message}"):
            written(PEOPLE.replace("Bonn,32,", f'Bonn,"{cell}",', 1), target)
    commas = "x;y\n" + "".join(f"{row},5;{row % 2}\n" for row in range(20))
    with pytest.raises(DataError, match=r"table\.csv:2: column 'x' holds '0,5'; 0 of 20 cells of the column are "):
        written(commas, "y")


def test_dates_are_names(written: Callable[..., RunConfig]) -> None:
    rows = "".join(f"2024-01-{1 + row % 9:02},{row * 0.3},{row % 2}\n" for row in range(40))
    assert arrays_of(written("day,x,y\n" + rows, "y")).categories == ["day"]


@pytest.mark.parametrize("name", ["id", "", "user_id", "ID"])
def test_ids_are_left_out(written: Callable[..., RunConfig], name: str) -> None:
    rows = "".join(f"{1000 + 7 * row},{row * 0.3},{row % 2}\n" for row in range(40))
    assert arrays_of(written(f"{name},x,y\n{rows}", "y")).input == ["x"]


def test_many_rows_are_counted_as_few(written: Callable[..., RunConfig], monkeypatch: pytest.MonkeyPatch) -> None:
    """Different cells aren't counted for ever: an id stays one, and a text is a text of so many names or more."""
    monkeypatch.setattr(table_columns, "MOST_COUNTED", 150)
    assert arrays_of(written(PEOPLE, "income")).input == ["city", "age"]
    words = "without 'id' (a number for each row), 'name' (150 different names or more)"
    assert words in Path("out/new.yaml").read_text()


def test_few_rows(written: Callable[..., RunConfig]) -> None:
    """Nothing is held out, and so nothing stops early."""
    for rows in ("1,0\n2,1\n3,0\n", "".join(f"{row},{row % 5}\n" for row in range(10))):
        config = written("x,y\n" + rows, "y")
        assert (arrays_of(config).validation_fraction, config.early_stopping) == (0, None)
        Path("out/new.yaml").unlink()


def test_rows_that_all_have_a_name_of_their_own(written: Callable[..., RunConfig]) -> None:
    """Training needs one row of each name, so that none is left to hold out."""
    is_held_out = held_out(10, 0.2, 0)
    cities = [f"city {row}" if is_held_out[row] else ("Ulm", "Bonn")[row % 2] for row in range(10)]
    rows = "".join(f"{row * 1.5},{cities[row]},{row * 2.7 % 7}\n" for row in range(10))
    config = written("x,city,y\n" + rows, "y")
    assert (arrays_of(config).validation_fraction, config.early_stopping) == (0, None)
    Path("out/new.yaml").unlink()
    others = rows.replace(cities[int(is_held_out.argmax())], "Ulm")
    assert arrays_of(written("x,city,y\n" + others, "y")).validation_fraction == 0.2


def test_the_same_number_in_two_forms(written: Callable[..., RunConfig]) -> None:
    rows = "".join(f"{row * 0.3},{('0', '0.0', '1', '1.0')[row % 4]}\n" for row in range(40))
    assert "2 classes: 0, 1" in new_text(written, "x,y\n" + rows, "y")
    other = rows.replace(",0", ",3")
    assert "2 classes: 1, 3" in new_text(written, "x,y\n" + other, "y")


def new_text(written: Callable[..., RunConfig], text: str, target: str) -> str:
    Path("out/new.yaml").unlink(missing_ok=True)
    written(text, target)
    return Path("out/new.yaml").read_text()


def test_a_row_without_a_target_changes_nothing_else(written: Callable[..., RunConfig]) -> None:
    """What is left out, and why, is decided by the rows that stay."""
    rows = "".join(f"{row},{row * 0.3},{'' if row == 9 else row % 2}\n" for row in range(150))
    data = arrays_of(written("id,x,y\n" + rows, "y"))
    assert (data.input, data.missing) == (["x"], "mean")


def test_through_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("deep/inside").mkdir(parents=True)
    Path("link").symlink_to(tmp_path / "deep" / "inside")
    Path("table.csv").write_text(FLOWERS)
    new_config(Path("table.csv"), ["species"], Path("link/new.yaml"))
    load(load_config(Path("link/new.yaml")))


@pytest.mark.parametrize("name", ["a,b", "a: b", "- a", "'", '"', "#", "no", "1", "1e3", "é", "{a}"])
def test_odd_names(written: Callable[..., RunConfig], name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    rows = "".join(f"{'x' if row % 2 else quoted},{row * 0.1},{'p' if row % 3 else quoted}\n" for row in range(30))
    data = arrays_of(written(f"{quoted},number,y\n" + rows, "y"))
    assert name in data.categories


@pytest.mark.parametrize("name", ["\x1b[31m", "a\nb"])
def test_names_that_no_config_can_hold(written: Callable[..., RunConfig], name: str) -> None:
    rows = "".join(f"{row * 0.1},{row % 3}\n" for row in range(30))
    written(f'"{name}",y\n{rows}', "y")  # it isn't named
    Path("out/new.yaml").unlink()
    with pytest.raises(DataError, match="isn't one line of printable characters, as a config needs"):
        written(f'y,"{name}"\n{rows}', name)
    assert not Path("out/new.yaml").exists()


@pytest.mark.parametrize(
    ("text", "targets", "message"),
    [
        ("", ["y"], r"^table\.csv: is empty; the first line of a CSV file names the columns$"),
        ("x,y\n", ["y"], r"^table\.csv: has a header and no rows$"),
        ("x,y\n1,0\n1,1\n", ["z"], r"^table\.csv:1: has no column 'z'; it has 'x', 'y'$"),
        ("x,x\n1,0\n", ["x"], r"^table\.csv:1: column 'x' occurs 2 times$"),
        ("x,y\n1\n", ["y"], r"^table\.csv:2: the header names 2 columns, this row has 1$"),
        ("x,y\n1,red\n2,red\n", ["y"], r"^table\.csv: column 'y' is always the same: there is nothing to predict$"),
        ("x,y\n1,0\n1,1\n", ["y"], r"^table\.csv: has no column to predict from: 'x' \(always the same\)$"),
        (
            "x,y,z\n1,0,a\n1,1,b\n",
            ["y", "z"],
            r"^table\.csv:2: column 'z' has names, and a regression needs numbers, not 'a'$",
        ),
        (
            "x,y,z\n1,0,2.5 €\n1,1,3 €\n",
            ["y", "z"],
            r"^table\.csv:2: column 'z' has names, and a regression needs numbers, not '2\.5 €': "
            "a number has a point and nothing else$",
        ),
        (
            "x,y\n" + "".join(f"{row},{row / 4} €\n" for row in range(1, 9)),
            ["y"],
            r"^table\.csv:2: column 'y' has 8 different cells in 8 rows, too many for classes, such as '0\.25 €': "
            "a number has a point and nothing else$",
        ),
        ("x,y\n,red\n,blue\n", ["y"], r"^table\.csv: has no column to predict from: 'x' \(always empty\)$"),
        ("\x00\x01PNG\n", ["y"], r"^table\.csv:1: has no column 'y'; it has "),
        ("x,y\n1,\n2,\n", ["y"], r"^table\.csv: "),
    ],
)
def test_what_is_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, targets: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        new_config(Path("table.csv"), targets, Path("new.yaml"))
    assert not Path("new.yaml").exists()


def test_too_many_names_for_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(PEOPLE)
    words = r"^table\.csv:2: column 'name' has 200 different cells in 200 rows, too many for classes, such as 'name 0'$"
    with pytest.raises(DataError, match=words):
        new_config(Path("table.csv"), ["name"])
    words = r"table\.csv: column 'id' has 200 different cells in 200 rows, too many for classes$"
    with pytest.raises(DataError, match=words):
        new_config(Path("table.csv"), ["id"], task="classification")


@pytest.mark.parametrize(
    ("file", "targets", "output", "message"),
    [
        ("table.txt", ["y"], None, "--target is for tables and arrays: a text predicts its next character"),
        ("table.csv", [], None, "--target must name what to predict"),
        ("table.xlsx", ["y"], None, r"FILE must end in one of \.csv, \.csv\.gz, \.npz, \.txt, not table\.xlsx"),
        ("table.csv", ["y"], "there.yaml", r"-o there\.yaml exists: choose another name, or remove it"),
        ("two.npz", ["y", "x"], None, "--target must name one array of an .npz"),
        ("table.csv", ["y", "y"], None, "--target must name each column once"),
        ("table.csv", ["y"], "nn_manual.schema.json", r"-o nn_manual\.schema\.json: the schema beside the .*"),
    ],
)
def test_wrong_usage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, targets: list[str], output: str | None, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.yaml").write_text("kept")
    np.savez("two.npz", x=np.zeros((2, 2)), y=np.arange(2))
    with pytest.raises(ConfigError, match=f"^{message}$"):
        new_config(Path(file), targets, None if output is None else Path(output))
    assert Path("there.yaml").read_text() == "kept"


@pytest.mark.parametrize(
    ("input", "target", "task"),
    [
        (np.random.default_rng(0).random((40, 3)), np.arange(40) % 4, "classification"),
        (np.random.default_rng(0).random((40, 3, 5)), np.arange(40) % 2, "classification"),
        (np.random.default_rng(0).random((40, 3)), np.random.default_rng(1).random((40, 2)), "regression"),
        (np.random.default_rng(0).random((40, 1)), np.arange(40) * 2, "regression"),
        (np.random.default_rng(0).random((40, 1)), np.arange(40).reshape(40, 1) % 3, "classification"),
    ],
)
def test_arrays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, input: np.ndarray, target: np.ndarray, task: str
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=input, y=target)
    new_config(Path("data.npz"), ["y"], Path("new.yaml"))
    config = load_config(Path("new.yaml"))
    split, model = load(config)
    assert arrays_of(config).task == task
    assert model(split.train.input).shape[1] == (split.num_classes or split.train.target.shape[1])


def test_arrays_that_do_not_go_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", x=np.zeros((4, 2)), y=np.arange(3), z=np.zeros(4))
    with pytest.raises(DataError, match=r"^data\.npz: has 2 arrays beside the target, and one is needed$"):
        new_config(Path("data.npz"), ["y"])
    np.savez("data.npz", x=np.zeros((4, 2)), y=np.arange(3))
    with pytest.raises(DataError, match=r"^data\.npz: array 'x' has 4 examples, but 'y' has shape \(3,\)$"):
        new_config(Path("data.npz"), ["y"])
    for arrays, words in (
        ({"x": np.array([["a"], ["b"]]), "y": np.arange(2)}, "array 'x' has dtype <U1, not real numbers"),
        ({"x": np.array([[np.nan], [1]]), "y": np.arange(2)}, r"array 'x'\[0, 0\] holds nan, not a finite number"),
        ({"x": np.ones((2, 1)), "y": np.ones(2)}, "array 'y' is always the same"),
        ({"x": np.ones((2, 1)), "y": np.array(3)}, r"array 'x' has 2 examples, but 'y' has shape \(\)"),
        ({"x": np.ones((2, 1)), "y": np.ones((2, 3, 4))}, r"array 'y' has shape \(2, 3, 4\), not \(examples, out"),
        ({"x": np.ones(2), "y": np.arange(2)}, r"array 'x' has shape \(2,\), not \(examples, features\)"),
    ):
        np.savez("data.npz", **arrays)
        with pytest.raises(DataError, match=rf"^data\.npz: {words}"):
            new_config(Path("data.npz"), ["y"])
    np.save("one.npy", np.ones(2))
    Path("one.npy").rename("data.npz")
    with pytest.raises(DataError, match=r"^data\.npz: is not an \.npz archive$"):
        new_config(Path("data.npz"), ["y"])
    np.savez("data.npz", x=np.zeros((3, 2)), y=np.array([1, 2, 3]))
    words = r"the classes in 'y' must be 0, 1, 2, \.\.\. without gaps: number them with np\.unique\(y, return_inv"
    with pytest.raises(DataError, match=rf"^data\.npz: {words}"):
        new_config(Path("data.npz"), ["y"], task="classification")
    np.savez("data.npz", x=np.zeros((3, 2)), y=np.array([[0, 1], [1, 0], [2, -100]]))
    words = r"array 'y' has 2 classes for each example, and a new config is for one"
    with pytest.raises(DataError, match=rf"^data\.npz: {words}$"):
        new_config(Path("data.npz"), ["y"], task="classification")


def test_a_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("own.txt").write_text("A text that says the same again. " * 60)
    text = new_config(Path("own.txt"), [], Path("new.yaml")).text
    config = load_config(Path("new.yaml"))
    assert isinstance(config.data, Text)
    split, model = load(config)
    assert f"num_embeddings: {split.num_classes}" in text
    assert model(split.train.input[:2]).shape == (2 * 64, split.num_classes)
