"""Arrays: what the user's own .csv and .npz become, and its fields."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from user_files import CSV, FLOAT64, X, Y, changed, load, message, write, write_npz

from nn_manual.data import Arrays, Names, Transform
from nn_manual.errors import DataError

CONFIG_DATA = Path(__file__).parents[2] / "config" / "data"

# CSV


def test_csv_classification(tmp_path: Path) -> None:
    split = load(write(tmp_path, CSV), input=["height", "age"])
    assert split.train.input.tolist() == [[1.5 * row, row] for row in range(12)]
    assert split.train.target.tolist() == [0, 1, 2] * 4
    assert split.train.target.dtype == np.int64
    assert split.num_classes == 3
    assert split.validation.input.shape == (0, 2)


def test_csv_input_is_every_other_column(tmp_path: Path) -> None:
    split = load(write(tmp_path, "a,b,c\n1,2,3\n4,5,6\n"), target=["b"], task="regression")
    assert split.train.input.tolist() == [[1, 3], [4, 6]]
    assert split.train.target.tolist() == [[2], [5]]
    assert split.num_classes is None


def test_csv_order_of_several_targets(tmp_path: Path) -> None:
    split = load(write(tmp_path, "a,b,c\n1,2,3\n4,5,6\n"), target=["c", "a"], task="regression")
    assert split.train.input.tolist() == [[2], [5]]
    assert split.train.target.tolist() == [[3, 1], [6, 4]]


def test_csv_quotes_spaces_blank_lines_and_byte_order_mark(tmp_path: Path) -> None:
    split = load(write(tmp_path, '\ufeff"a, b", class\r\n\r\n"1e-3", 0\r\n-2,1.0\r\n\r\n'))
    assert split.train.input.tolist() == [[0.001], [-2]]
    assert split.train.target.tolist() == [0, 1]


@pytest.mark.parametrize("num_marks", [0, 1, 2, 5])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("before", ["", "\n"])
def test_byte_order_marks_are_no_part_of_a_name(tmp_path: Path, num_marks: int, line_end: str, before: str) -> None:
    """A program that writes one puts it before the one that the file has already."""
    lines = ["\ufeff" * num_marks + before + '"a",b,class', "1,2,0", "3,4,1"]
    split = load(write(tmp_path, line_end.join(lines)), input=["a", "b"])
    assert split.transform.names.input == ("a", "b")
    assert split.train.input.tolist() == [[1, 2], [3, 4]]


def test_split_and_standardised_when_asked(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(5, 3, (40, 3))
    file = write(tmp_path, "a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in rows.tolist()))
    plain = load(file, target="y", task="regression", validation_fraction=0.25)
    scaled = load(file, target="y", task="regression", validation_fraction=0.25, standardize=True)
    assert len(plain.validation.input) == len(scaled.validation.input) == 10
    assert sorted(np.vstack([plain.train.input, plain.validation.input]).tolist()) == sorted(rows[:, :2].tolist())
    for part, scaled_part in ((plain.train, scaled.train), (plain.validation, scaled.validation)):
        for values, standardised, train in zip(part, scaled_part, plain.train, strict=True):
            # A few roundings of numbers up to 3, and sums of 30.
            np.testing.assert_allclose(standardised, (values - train.mean(0)) / train.std(0), rtol=0, atol=1e-14)


def test_standardised_before_the_cast(tmp_path: Path) -> None:
    """In float32 these differ by nothing."""
    file = write(tmp_path, "time,y\n" + "".join(f"{1_700_000_000 + second},0\n" for second in range(5)))
    arrays = Arrays(file=file, target="y", task="regression", standardize=True, validation_fraction=0.0)
    input = arrays.load(0, np.dtype(np.float32)).train.input
    assert input[:, 0].tolist() == (np.arange(-2, 3) / np.sqrt(2)).astype(np.float32).tolist()


def test_seed_004_is_what_torch_draws() -> None:
    split = Arrays(
        file=CONFIG_DATA / "seed_004.csv",
        target=["y0", "y1", "y2", "y3"],
        task="regression",
        validation_fraction=0.0,
    ).load(0, np.dtype(np.float32))
    random = torch.Generator().manual_seed(0)
    x, _weight, y = (torch.randn(shape, generator=random).numpy() for shape in ((10, 4), (4, 4), (10, 4)))
    # torch's kernels for other processors draw numbers with other last bits: 5 eps as measured, 8 allowed.
    np.testing.assert_allclose(split.train.input, x, rtol=0, atol=8 * 2.0**-23)
    np.testing.assert_allclose(split.train.target, y, rtol=0, atol=8 * 2.0**-23)


def test_csv_names_are_kept(tmp_path: Path) -> None:
    file = write(tmp_path, CSV)
    assert load(file, input=["height", "age"]).transform.names == Names(
        ("height", "age"), ("class",), ("0", "1", "2")
    )
    file = write(tmp_path, "a,b,c\n1,2,3\n4,5,6\n")
    names = load(file, target=["c", "a"], task="regression").transform.names
    assert (names.input, names.target, names.classes) == (("b",), ("c", "a"), None)


def test_csv_of_integers(tmp_path: Path) -> None:
    split = load(write(tmp_path, CSV.replace("1.5", "3")), input="age", integer_input=True)
    assert split.train.input.dtype == np.int64
    assert split.train.input[:, 0].tolist() == list(range(12))
    assert split.transform.input is None
    for cell in ("1.5", "1e+300", "-9007199254740994"):
        text = message(write(tmp_path, f"a,b,class\n1,2,0\n\n3,{cell},1\n"), integer_input=True)
        assert text == f":4: column 'b' holds {cell}, not an integer up to 2**53"


@pytest.mark.parametrize(("dtype", "value"), [("float32", "1e39"), ("float64", "1e200")])
def test_numbers_too_large_for_the_dtype(tmp_path: Path, dtype: str, value: str) -> None:
    file = write(tmp_path, f"a,y\n1,1\n-{value},2\n")
    arrays = Arrays(file=file, target="y", task="regression", standardize=dtype == "float64", validation_fraction=0.0)
    with pytest.raises(DataError) as caught:
        arrays.load(0, np.dtype(dtype))
    expected = {
        "float32": "holds -1e+39, too large for float32",
        "float64": "holds 1e+200, too large to be standardised in float64",  # the largest magnitude
    }
    assert str(caught.value) == f"{file}:3: column 'a' {expected[dtype]}"


# NPZ


@pytest.mark.parametrize("target", [Y, Y.reshape(4, 1), Y.astype(np.float32), Y == 1, Y.astype(np.uint8)])
def test_npz_classification(tmp_path: Path, target: np.ndarray) -> None:
    split = load(write_npz(tmp_path, x=X, y=target, other="text"), input="x", target="y")
    assert np.array_equal(split.train.input, X)
    assert split.train.input.dtype == np.float64
    assert split.train.target.tolist() == [0, 1, 1, 0]
    assert split.train.target.dtype == np.int64
    assert split.num_classes == 2


@pytest.mark.parametrize("target", [[[0, 1, -100], [2, -100, -100]], [[[1, 2], [0, 2]], [[-100, 1], [1, 1]]]])
@pytest.mark.parametrize(("dtype", "order"), [("int64", "C"), ("float32", "F"), ("int8", "C")])
def test_npz_of_several_classes(tmp_path: Path, target: list[Any], dtype: str, order: Any) -> None:
    split = load(write_npz(tmp_path, x=X[:2], y=np.array(target, dtype, order=order)), input="x", target="y")
    assert split.train.target.tolist() == target
    assert split.train.target.dtype == np.int64
    assert (split.num_classes, split.transform.names.classes) == (3, ("0", "1", "2"))


@pytest.mark.parametrize("target", [[[3, 1, 2]], [[1, -100, 2], [3, 3, 3]]])
def test_the_blank_need_not_occur(tmp_path: Path, target: list[list[int]]) -> None:
    split = load(write_npz(tmp_path, x=X[: len(target)], y=np.array(target)), input="x", target="y")
    assert split.train.target.tolist() == target
    assert split.num_classes == 4


def test_several_classes_are_held_out_with_their_sequences(tmp_path: Path) -> None:
    rows, lengths = np.arange(1, 11), np.arange(10) % 3 + 1
    target = np.where(np.arange(3) < lengths[:, np.newaxis], rows[:, np.newaxis], -100)
    x = np.repeat(rows, 3).reshape(10, 3, 1)
    fields: dict[str, Any] = {"input": "x", "target": "y", "lengths": "n", "validation_fraction": 0.3}
    split = load(write_npz(tmp_path, x=x, y=target, n=lengths), **fields)
    assert (len(split.train.target), len(split.validation.target), split.num_classes) == (7, 3, 11)
    for part in (split.train, split.validation):
        assert np.array_equal((part.target >= 0).sum(axis=1), part.input.lengths)
        assert np.array_equal(part.target[:, 0], part.input.array[:, 0, 0])


def test_a_length_of_no_sequence(tmp_path: Path) -> None:
    for lengths, found in (([2, 0], "'n'[1] holds 0, not a length 1, 2, 3, ..."), ([-4, 1], "'n'[0] holds -4, not a ")):
        file = write_npz(tmp_path, x=np.ones((2, 3, 1)), y=[0, 1], n=lengths)
        assert message(file, input="x", target="y", lengths="n").startswith(f": array {found}")


def test_several_classes_as_in_training(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"input": "x", "target": "y", "task": "classification", "validation_fraction": 0.0}
    known = load(write_npz(tmp_path, x=X[:1], y=[[0, 1, 2]]), **fields).transform
    split = Arrays(write_npz(tmp_path, x=X[:1], y=[[2, -100]]), **fields).load(0, FLOAT64, known)
    assert (split.train.target.tolist(), split.num_classes) == ([[2, -100]], 3)
    with pytest.raises(DataError, match=r"array 'y'\[0, 1\] holds class 3, training had 3 classes$"):
        Arrays(write_npz(tmp_path, x=X[:1], y=[[2, 3]]), **fields).load(0, FLOAT64, known)


@pytest.mark.parametrize("target", [[4, 1, 1, 4], [[4, 1], [1, -100], [-100, -100], [1, 1]], np.full((4, 2), -100)])
@pytest.mark.parametrize("num_classes", [5, 9])
def test_classes_that_do_not_occur(tmp_path: Path, target: Any, num_classes: int) -> None:
    """Also where none occurs: the loss says that."""
    split = load(write_npz(tmp_path, x=X, y=target), input="x", target="y", num_classes=num_classes)
    assert split.train.target.tolist() == np.asarray(target).tolist()
    assert (split.num_classes, split.transform.names.classes) == (num_classes, tuple("012345678"[:num_classes]))


def test_a_class_beyond_their_number(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"input": "x", "target": "y", "num_classes": 4}
    text = message(write_npz(tmp_path, x=X, y=[[0, 1], [1, 4], [5, 0], [0, 0]]), **fields)
    assert text == ": array 'y'[2, 0] holds class 5, and num_classes is 4"
    text = message(write_npz(tmp_path, x=X, y=[0, 1, 4, 0]), **fields)
    assert text == ": array 'y'[2] holds class 4, and num_classes is 4"
    assert message(write(tmp_path, "a,y\n1,0\n2,7\n"), target="y", num_classes=7) == (
        ":3: column 'y' holds class 7, and num_classes is 7"
    )


def test_the_number_of_classes_is_that_of_training(tmp_path: Path) -> None:
    fields: dict[str, Any] = {"input": "x", "target": "y", "task": "classification", "validation_fraction": 0.0}
    known = load(write_npz(tmp_path, x=X, y=Y), **fields, num_classes=5).transform
    file = write_npz(tmp_path, x=X, y=[4, 4, 2, 2])
    for num_classes in (None, 5, 9):
        split = Arrays(file, **fields, num_classes=num_classes).load(0, FLOAT64, known)
        assert (split.train.target.tolist(), split.num_classes) == ([4, 4, 2, 2], 5)
    with pytest.raises(DataError, match=r"array 'y'\[1\] holds class 5, training had 5 classes$"):
        Arrays(write_npz(tmp_path, x=X, y=[4, 5, 2, 2]), **fields, num_classes=9).load(0, FLOAT64, known)


def test_classes_of_a_csv_that_do_not_occur(tmp_path: Path) -> None:
    file = write(tmp_path, "a,y\n" + "1,5\n2,2\n" * 10)
    fields: dict[str, Any] = {"target": "y", "num_classes": 8, "stratify": True, "validation_fraction": 0.2}
    split = load(file, **fields)
    assert (split.num_classes, len(split.transform.names.classes or ())) == (8, 8)
    assert np.bincount(split.validation.target).tolist() == [0, 0, 2, 0, 0, 2]
    other = write(tmp_path, "a,y\n1,7\n", "other.csv")
    split = load(file, **fields | {"stratify": False, "validation_file": other})
    assert (split.validation.target.tolist(), split.num_classes) == ([7], 8)
    with pytest.raises(DataError, match=r"other\.csv:2: column 'y' holds class 7, training had 6 classes$"):
        load(file, **fields | {"stratify": False, "validation_file": other, "num_classes": 6})
    for settings, cells in [({}, "a,y\n1,red\n"), ({"categories": ["y"]}, "a,y\n1,3\n")]:
        text = message(write(tmp_path, cells), target="y", num_classes=6, **settings)
        assert text == ": num_classes must be null where the classes are names"


def test_several_classes_are_not_stratified(tmp_path: Path) -> None:
    text = message(write_npz(tmp_path, x=X, y=np.eye(4)), input="x", target="y", stratify=True)
    assert text == ": stratify must be false where an example has several classes"


@pytest.mark.parametrize(("shape", "expected"), [((4,), (4, 1)), ((4, 2), (4, 2))])
def test_npz_regression(tmp_path: Path, shape: tuple[int, ...], expected: tuple[int, ...]) -> None:
    target = np.linspace(-1, 1, np.prod(shape)).reshape(shape)
    split = load(write_npz(tmp_path, x=X, y=target), input=["x"], target=["y"], task="regression")
    assert split.train.target.shape == expected
    assert np.array_equal(split.train.target.ravel(), target.ravel())
    assert split.num_classes is None


@pytest.mark.parametrize("dtype", ["int64", "uint8", "float32"])
def test_npz_of_integers(tmp_path: Path, dtype: str) -> None:
    tokens = np.arange(12).reshape(4, 3).astype(dtype)
    fields: dict[str, Any] = {"input": "x", "target": "y"}
    as_numbers = load(write_npz(tmp_path, x=tokens, y=Y), **fields)
    assert as_numbers.train.input.dtype == np.float64
    split = load(write_npz(tmp_path, x=tokens, y=Y), integer_input=True, **fields)
    assert split.train.input.dtype == np.int64
    assert np.array_equal(split.train.input, tokens)
    assert split.transform == Transform(names=Names(classes=("0", "1")))
    text = message(write_npz(tmp_path, x=changed(tokens, (2, 1), 0.5), y=Y), integer_input=True, **fields)
    assert text == ": array 'x'[2, 1] holds 0.5, not an integer up to 2**53"


def test_targets_beside_integers_are_standardised(tmp_path: Path) -> None:
    file = write_npz(tmp_path, x=np.arange(4).reshape(4, 1), y=np.array([1.0, 3.0, 1.0, 3.0]))
    fields: dict[str, Any] = {"input": "x", "target": "y", "task": "regression", "standardize": True}
    split = load(file, integer_input=True, **fields)
    assert split.train.input.tolist() == [[0], [1], [2], [3]]
    assert split.train.target.tolist() == [[-1], [1], [-1], [1]]


# Fields


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"file": "data.txt"}, "file must be - or end in .csv, .csv.gz or .npz, not data.txt"),
        ({"task": "ranking"}, "task must be classification or regression or labels, not ranking"),
        ({"target": []}, "target must be one name for an .npz or task=classification, not []"),
        ({"target": ["a", "b"]}, "target must be one name for an .npz or task=classification, not ['a', 'b']"),
        ({"target": [], "task": "regression"}, "target must name at least one column"),
        ({"input": []}, "input must name at least one column, or be null: all but the targets"),
        ({"input": [], "task": "regression"}, "input must name at least one column, or be null: all but the targets"),
        ({"file": "a.npz", "input": []}, "input must name one array of the .npz, not []"),
        ({"target": ["a", "a"], "task": "regression"}, "target must name a once, and input must not name it"),
        ({"target": "a", "input": ["b", "b"]}, "input must name b once"),
        ({"target": "a", "input": ["b", "a"]}, "target must name a once, and input must not name it"),
        ({"file": "a.npz"}, "input must name one array of the .npz, not None"),
        ({"file": "a.npz", "input": ["a", "b"]}, "input must name one array of the .npz, not ['a', 'b']"),
        (
            {"standardize": True, "integer_input": True},
            "standardize must be false where the inputs are integers and task=classification",
        ),
        ({"num_classes": 3, "task": "regression"}, "num_classes must be null where the targets are no classes"),
        ({"num_classes": 3, "task": "labels"}, "num_classes must be null where the targets are no classes"),
        ({"num_classes": 0}, "num_classes must be from 1 to 1,048,576, not 0"),
        ({"num_classes": 2**40}, "num_classes must be from 1 to 1,048,576, not 1,099,511,627,776"),
        ({"validation_fraction": 1.5}, "validation_fraction must be at least 0 and less than 1, not 1.5"),
    ],
)
def test_field_out_of_range(fields: dict[str, Any], expected: str) -> None:
    arguments = {"file": "data.csv", "target": "y", "task": "classification"} | fields
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared below
        Arrays(**arguments)
    assert str(caught.value) == expected


def test_labels(tmp_path: Path) -> None:
    """Inputs are standardised, labels are not."""
    file = write(tmp_path, "a,u,b,v\n1,0,2,1\n3,1,4,1\n")
    split = load(file, target=["u", "v"], task="labels", standardize=True)
    assert split.train.input.tolist() == [[-1, -1], [1, 1]]
    assert split.train.target.tolist() == [[0, 1], [1, 1]]
    assert split.train.target.dtype == np.float64
    assert (split.num_classes, split.transform.target) == (None, None)
    assert split.transform.names.target == ("u", "v")
    again = Arrays(file, ["u", "v"], "labels", validation_fraction=0.0).load(0, FLOAT64, split.transform)
    assert again.train.target.tolist() == [[0, 1], [1, 1]]
    npz = write_npz(tmp_path, x=np.ones((2, 3)), y=np.array([[1, 0], [0, 0]], bool))
    assert load(npz, input="x", target="y", task="labels").train.target.tolist() == [[1, 0], [0, 0]]


def test_a_label_that_is_neither_0_nor_1(tmp_path: Path) -> None:
    file = write(tmp_path, "a,u,v\n1,0,1\n3,1,0.5\n")
    assert message(file, target=["u", "v"], task="labels") == ":3: column 'v' holds 0.5, not 0 or 1"
    npz = write_npz(tmp_path, x=np.ones((2, 3)), y=np.array([[1, 0], [-1, 0]]))
    assert message(npz, input="x", target="y", task="labels") == ": array 'y'[1, 0] holds -1, not 0 or 1"
    with pytest.raises(ValueError, match=r"^standardize must be false where the inputs are integers and task=labels$"):
        Arrays(file, "u", "labels", integer_input=True, standardize=True)
