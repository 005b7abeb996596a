"""Tables whose cells are names, or empty; what is held out of them, and what later uses do with others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from user_files import FLOAT64, load, message, write

from nn_manual.data import Arrays, Split, Transform
from nn_manual.errors import DataError

FLOWERS = "length,species\n1.5,setosa\n2.5,virginica\n0.5, setosa\n3.5,versicolor\n"
COLORS = "color,size,class\nred,1,0\nblue,2,1\nred,4,0\ngreen,8,1\n"


def of(file: Path, **fields: Any) -> Arrays:
    defaults: dict[str, Any] = {"target": "class", "task": "classification", "validation_fraction": 0.0}
    return Arrays(file=file, **(defaults | fields))


def again(split: Split) -> Transform:
    """The transform, by way of data.json."""
    return Transform.from_json(json.loads(json.dumps(split.transform.as_json())))


class TestClasses:
    def test_names_are_classes_in_the_order_of_the_alphabet(self, tmp_path: Path) -> None:
        split = load(write(tmp_path, FLOWERS), target="species")
        assert split.transform.names.classes == ("setosa", "versicolor", "virginica")
        assert split.train.target.tolist() == [0, 2, 0, 1]
        assert split.train.target.dtype == np.int64
        assert split.num_classes == 3

    def test_others_keep_the_classes_of_training(self, tmp_path: Path) -> None:
        known = again(load(write(tmp_path, FLOWERS), target="species"))
        other = write(tmp_path, "species,length\nvirginica,1\nversicolor,2\n", "other.csv")
        assert of(other, target="species").load(0, FLOAT64, known).train.target.tolist() == [2, 1]
        wrong = write(tmp_path, "species,length\nvirginica,1\nrose,2\n", "wrong.csv")
        words = "wrong.csv:3: column 'species' holds 'rose', which training never saw; it had 'setosa', 'versicolor', "
        with pytest.raises(DataError) as caught:
            of(wrong, target="species").load(0, FLOAT64, known)
        assert words in str(caught.value)

    def test_numbers_that_are_names(self, tmp_path: Path) -> None:
        file = write(tmp_path, "x,class\n1,3\n2,10\n3,3\n")
        assert message(file).startswith(":3: column 'class' holds class 10, but class 0 doesn't occur: classes are ")
        split = load(file, categories=["class"])
        assert split.transform.names.classes == ("10", "3")
        assert split.train.target.tolist() == [1, 0, 1]

    @pytest.mark.parametrize(
        ("cells", "expected"),
        [
            (["red", "3"], ":3: column 'class' holds '3', a number among names; if it is a name, list 'class' in cat"),
            (["0", "red"], ":3: column 'class' holds 'red', not a number"),
            (["1_0", "0"], ":2: column 'class' holds '1_0', not a number"),
            (["nan", "red"], ":2: column 'class' holds 'nan', not a finite number"),
            (["red", ""], ":3: 1 cell of column 'class' is empty; `missing: mean` or `missing: drop` takes them"),
        ],
    )
    def test_what_is_neither(self, tmp_path: Path, cells: list[str], expected: str) -> None:
        assert message(write(tmp_path, "x,class\n" + "".join(f"1,{cell}\n" for cell in cells))).startswith(expected)

    def test_one_class_alone(self, tmp_path: Path) -> None:
        assert load(write(tmp_path, "x,class\n1,red\n2,red\n")).num_classes == 1

    def test_a_class_that_only_the_validation_file_has(self, tmp_path: Path) -> None:
        file = write(tmp_path, FLOWERS)
        other = write(tmp_path, "length,species\n1,setosa\n1,rose\n", "other.csv")
        with pytest.raises(DataError, match=r"other\.csv:3: column 'species' holds 'rose', which training never saw"):
            load(file, target="species", validation_file=other)

    @pytest.mark.parametrize("name", ["a,b", 'a "b"', "a\nb", "\x1b[31m", "é"])
    def test_odd_names(self, tmp_path: Path, name: str) -> None:
        quoted = '"' + name.replace('"', '""') + '"'
        split = load(write(tmp_path, f"x,class\n1,{quoted}\n2,plain\n"))
        assert sorted(split.transform.names.classes or ()) == sorted([name, "plain"])
        assert again(split).names == split.transform.names


    def test_codes_are_no_names(self, tmp_path: Path) -> None:
        """Where training had names, a number isn't taken for the place of one."""
        file = write(tmp_path, FLOWERS)
        codes = write(tmp_path, "length,species\n1,2\n2,0\n", "codes.csv")
        words = r"codes\.csv:2: column 'species' holds '2', which training never saw; it had 'setosa', "
        with pytest.raises(DataError, match=words):
            of(codes, target="species").load(0, FLOAT64, again(load(file, target="species")))
        with pytest.raises(DataError, match=words):
            load(file, target="species", validation_file=codes)

    def test_an_integer_with_zeros_behind_the_point_is_the_same_name(self, tmp_path: Path) -> None:
        split = load(write(tmp_path, "x,class\n1,3\n2,10\n3,3.0\n4,003\n"), categories=["class"])
        assert split.transform.names.classes == ("003", "10", "3")
        assert split.train.target.tolist() == [2, 1, 2, 0]


class TestColumns:
    def test_a_number_for_each_name(self, tmp_path: Path) -> None:
        split = load(write(tmp_path, COLORS), categories=["color"])
        assert split.train.input.tolist() == [[0, 0, 1, 1], [1, 0, 0, 2], [0, 0, 1, 4], [0, 1, 0, 8]]
        assert split.transform.categories == (("color", ("blue", "green", "red")),)
        assert again(split).categories == split.transform.categories

    def test_names_are_no_numbers_unless_they_are_listed(self, tmp_path: Path) -> None:
        assert message(write(tmp_path, COLORS)) == ":2: column 'color' holds 'red', not a number"

    def test_others_keep_the_names_of_training(self, tmp_path: Path) -> None:
        known = again(load(write(tmp_path, COLORS), categories=["color"]))
        other = write(tmp_path, "class,color,size\n1,red,1\n", "other.csv")
        assert of(other, categories=["color"]).load(0, FLOAT64, known).train.input.tolist() == [[0, 0, 1, 1]]
        wrong = write(tmp_path, "class,color,size\n1,pink,1\n", "wrong.csv")
        with pytest.raises(DataError, match="column 'color' holds 'pink', which training never saw"):
            of(wrong, categories=["color"]).load(0, FLOAT64, known)

    @pytest.mark.parametrize("stratify", [False, True])
    def test_each_name_is_in_the_training_part(self, tmp_path: Path, stratify: bool) -> None:
        rows = [f"{'rare' if row == 5 else 'often'},{row},{'odd' if row in (3, 7) else 'even'}" for row in range(40)]
        file = write(tmp_path, "color,number,class\n" + "\n".join(rows) + "\n")
        for seed in range(30):
            data = of(file, categories=["color"], validation_fraction=0.5, stratify=stratify)
            split = data.load(seed, FLOAT64)
            assert 5 in split.train.input[:, 2]
            assert set(split.train.target.tolist()) == {0, 1}
            assert len(split.validation.input) in (range(18, 21) if stratify else range(17, 21))

    def test_standardised_as_other_columns(self, tmp_path: Path) -> None:
        split = load(write(tmp_path, COLORS), categories=["color"], standardize=True)
        np.testing.assert_allclose(split.train.input.mean(axis=0), 0, atol=1e-15)
        np.testing.assert_allclose(split.train.input.std(axis=0), 1)


class TestEmptyCells:
    GAPS = "color,size,class\nred,1,0\n,2,1\nred,,0\ngreen,6,1\n"

    def test_are_refused_with_their_count(self, tmp_path: Path) -> None:
        file = write(tmp_path, "a,b,class\n1,,0\n2,,1\n")
        assert message(file) == ":2: 2 cells of column 'b' are empty; `missing: mean` or `missing: drop` takes them"

    def test_rows_are_dropped(self, tmp_path: Path) -> None:
        split = load(write(tmp_path, self.GAPS), categories=["color"], missing="drop")
        assert split.train.input.tolist() == [[0, 1, 1], [1, 0, 6]]
        assert split.train.target.tolist() == [0, 1]
        assert message(write(tmp_path, "a,class\n,0\n1,\n"), missing="drop") == (
            ": has a header and no rows without empty cells"
        )

    def test_the_mean_of_the_training_part(self, tmp_path: Path) -> None:
        file = write(tmp_path, self.GAPS)
        split = load(file, categories=["color"], missing="mean")
        third = pytest.approx(1 / 3)
        assert split.train.input.tolist() == [[0, 1, 1], [third, pytest.approx(2 / 3), 2], [0, 1, 3], [1, 0, 6]]
        assert split.transform.filled is not None
        assert split.transform.filled.tolist() == [third, pytest.approx(2 / 3), 3]
        other = write(tmp_path, "color,size,class\n,,0\n", "other.csv")
        filled = of(other, categories=["color"], missing="mean").load(0, FLOAT64, again(split))
        assert filled.train.input.tolist() == [split.transform.filled.tolist()]

    def test_others_are_not_filled_where_training_filled_nothing(self, tmp_path: Path) -> None:
        """Their own mean would be no number that training had."""
        known = again(load(write(tmp_path, "a,class\n1,0\n2,1\n")))
        others = of(write(tmp_path, "a,class\n5,0\n,1\n", "other.csv"), missing="mean")
        words = "other.csv:3: 1 cell of column 'a' is empty; a run trained with `missing: mean` takes them"
        with pytest.raises(DataError, match=f"{words}$"):
            others.load(0, FLOAT64, known)
        whole = of(write(tmp_path, "a,class\n5,0\n6,1\n", "other.csv"), missing="mean").load(0, FLOAT64, known)
        assert (whole.train.input.tolist(), whole.transform.filled) == ([[5], [6]], None)

    def test_the_held_out_part_has_no_say(self, tmp_path: Path) -> None:
        rows = [f"{'' if row % 3 else 100 * row},{row % 2}" for row in range(30)]
        split = load(write(tmp_path, "a,class\n" + "\n".join(rows) + "\n"), missing="mean", validation_fraction=0.4)
        kept = [value for value in split.train.input[:, 0] if value % 300 == 0]
        assert split.transform.filled is not None
        assert split.transform.filled[0] == pytest.approx(np.mean(kept))
        assert split.transform.filled[0] in split.validation.input

    def test_a_column_without_numbers(self, tmp_path: Path) -> None:
        file = write(tmp_path, "a,b,class\n,1,0\n,2,1\n")
        assert message(file, missing="mean") == ": column 'a' has no number in the training part"

    def test_rows_without_a_target_are_left_out(self, tmp_path: Path) -> None:
        split = load(write(tmp_path, "a,class\n1,0\n2,\n,1\n"), missing="mean")
        assert split.train.input.tolist() == [[1], [1]]
        assert split.train.target.tolist() == [0, 1]

    def test_a_column_of_names_without_any(self, tmp_path: Path) -> None:
        file = write(tmp_path, "a,b,class\n1,,0\n2,,1\n")
        assert message(file, missing="mean", categories=["b"]) == ": column 'b' has no name, only empty cells"

    def test_a_rare_number_stays_in_the_training_part(self, tmp_path: Path) -> None:
        rows = "".join(f"{row},{7 if row == 3 else ''},{row % 2}\n" for row in range(20))
        file = write(tmp_path, "a,b,class\n" + rows)
        for seed in range(10):
            split = of(file, missing="mean", validation_fraction=0.5).load(seed, FLOAT64)
            assert split.transform.filled is not None
            assert split.transform.filled[1] == 7


class TestHeldOut:
    def test_stratified(self, tmp_path: Path) -> None:
        rows = [f"{row},{int(row % 10 == 0)}" for row in range(100)]
        file = write(tmp_path, "a,class\n" + "\n".join(rows) + "\n")
        for seed in range(5):
            split = of(file, stratify=True, validation_fraction=0.3).load(seed, FLOAT64)
            assert np.bincount(split.validation.target).tolist() == [27, 3]
            assert np.bincount(split.train.target).tolist() == [63, 7]

    def test_a_second_file(self, tmp_path: Path) -> None:
        file = write(tmp_path, COLORS)
        other = write(tmp_path, "size,class,color\n5,1,red\n", "other.csv")
        split = load(file, categories=["color"], validation_file=other, validation_fraction=0.2)
        assert len(split.train.input) == 4
        assert split.validation.input.tolist() == [[0, 0, 1, 5]]
        assert split.validation.target.tolist() == [1]


class TestDelimiters:
    @pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
    def test_the_header_shows_it(self, tmp_path: Path, delimiter: str) -> None:
        file = write(tmp_path, CSV.replace(",", delimiter))
        assert load(file).train.input.tolist() == [[1, 2], [3, 4]]
        name = "tab" if delimiter == "\t" else delimiter
        assert load(file, delimiter=name).train.input.tolist() == [[1, 2], [3, 4]]

    def test_another_in_quotes(self, tmp_path: Path) -> None:
        split = load(write(tmp_path, '\n"a;b;c;d;e",class\n1,0\n'))
        assert split.transform.names.input == ("a;b;c;d;e",)

    def test_a_wrong_one_is_named(self, tmp_path: Path) -> None:
        file = write(tmp_path, "\n" + CSV)
        assert message(file, delimiter=";") == ":2: the header has no ';', the delimiter; ',' gives it 3 columns"


CSV = "a,b,class\n1,2,0\n3,4,1\n"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"missing": "median"}, "missing must be null, mean or drop, not median"),
        ({"delimiter": ";;"}, "delimiter must be one character or tab, not ';;'"),
        ({"delimiter": "\n"}, r"delimiter must be one character or tab, not '\\n'"),
        ({"stratify": True, "task": "regression"}, "stratify must be false where the targets are no classes"),
        ({"categories": ["class"], "task": "regression"}, "categories must not name class: only classes have names"),
        ({"categories": ["a", "a"]}, "categories must name a once"),
        ({"categories": ["b"], "input": "a"}, "categories must name columns of input or the target, not b"),
        ({"categories": ["a"], "integer_input": True}, "integer_input must be false with categories"),
        ({"missing": "mean", "file": "a.npz", "input": "x"}, "missing must be left out for an .npz"),
        ({"categories": "class"}, "categories must be a list of columns, not 'class'"),
        ({"validation_file": "b.npz", "file": "a.npz", "input": "x", "lengths": "n"}, "validation_file must be null"),
        ({"validation_file": "a.txt"}, "validation_file must be - or end in .csv"),
        ({"validation_file": "a.npz"}, "validation_file must be of the same kind as file"),
        ({"validation_file": "-"}, "validation_file must be null where a file is standard input"),
    ],
)
def test_fields_that_do_not_go_together(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=f"^{expected}"):
        of(**({"file": Path("a.csv")} | fields))
