"""What a notebook shows of the report of a function: its values, and the rows of the battery, each with its verdict."""

from __future__ import annotations

from html_pages import page_of

from nn_manual.functions.function_report import AS_ABOVE, NOT_BY_AUTOGRAD, BatteryRow, FunctionReport

ROWS = (
    BatteryRow("in place", "", "right"),
    BatteryRow("kinds", "tied", "right"),
    BatteryRow("kinds", "zero", "right"),
    BatteryRow("cost", "", "right", "forward 2 us"),
    BatteryRow("settings", "no_grad", "WRONG", "<b>raised</b> & lost"),
    BatteryRow("kinds", "large", "skipped", AS_ABOVE),
    BatteryRow("cuda", "", "skipped", "there is no device"),
)


def test_the_rows_have_their_verdicts_and_wrong_ones_are_marked() -> None:
    page = page_of(FunctionReport((), rows=ROWS))
    assert page.texts == [
        "✗ gradient check failed: the values agree, settings no_grad is wrong",
        "4 rows right, 1 wrong, 2 skipped",
    ]
    assert [row.cells for row in page.rows] == [
        ("family", "", "rows"),
        ("in place", "right", ""),
        ("kinds", "right", "tied, zero"),
        ("cost", "right", "forward 2 us"),
        ("", "", "the same error as above in 1 row: kinds"),
        ("cuda", "skipped", "there is no device"),
        ("settings", "WRONG", "no_grad; <b>raised</b> & lost"),
    ]
    assert page.marked == [("settings", "WRONG", "no_grad; <b>raised</b> & lost")]


def test_the_terminal_shows_the_same_rows() -> None:
    assert str(FunctionReport((), rows=ROWS)).splitlines()[2:] == [
        "4 rows right, 1 wrong, 2 skipped",
        "in place  right",
        "kinds     tied, zero",
        "cost      forward 2 us",
        "the same error as above in 1 row: kinds",
        "cuda      skipped: there is no device",
        "settings  no_grad WRONG: <b>raised</b> & lost",
    ]


def test_without_rows_there_is_no_table_of_them() -> None:
    page = page_of(FunctionReport((), problem="Product can't be called"))
    assert (page.texts, page.rows) == (["✗ gradient check failed: Product can't be called"], [])


def test_that_every_row_was_skipped_stands_at_the_head() -> None:
    report = FunctionReport((), rows=ROWS[-1:])
    assert str(report).splitlines()[0] == "0 tensors equal torch's; every row was skipped"
    assert "every row" not in str(FunctionReport((), rows=(ROWS[0], ROWS[-1])))


def test_its_repr_is_short() -> None:
    assert repr(FunctionReport((), rows=ROWS)) == (
        "<FunctionReport: gradient check failed: the values agree, settings no_grad is wrong>"
    )


def test_rows_that_are_not_for_a_pair_have_one_line() -> None:
    skipped = [BatteryRow(*row, "skipped", NOT_BY_AUTOGRAD) for row in (("changed", "inputs"), ("twice", ""))]
    lines = str(FunctionReport((), rows=(*ROWS, *skipped))).splitlines()
    assert lines[7] == "2 rows skipped, autograd doesn't run it: changed, twice"
    assert len(lines) == 10


def test_of_a_family_that_runs_in_part_the_rows_are_named() -> None:
    skipped = BatteryRow("grad_output", "absent", "skipped", NOT_BY_AUTOGRAD)
    rows = (BatteryRow("grad_output", "zero", "right", ""), skipped)
    assert "1 row skipped, autograd doesn't run it: grad_output absent" in str(FunctionReport((), rows=rows))


def test_notes_that_differ_in_numbers_alone_stand_once() -> None:
    """Two of them are both shown: the second still says where the first is no accident."""
    sizes = {3: -15.5, 7: 2, 13: 1.5e-7}
    rows = [BatteryRow("sizes", f"D={size}", "WRONG", f"grad_x[0, {size - 1}] is {x}") for size, x in sizes.items()]
    rows.append(BatteryRow("kinds", "tied", "WRONG", "grad_x[0, 2] is 1"))
    other = BatteryRow("sizes", "N=1", "WRONG", "grad_w[0] is 1")
    lines = str(FunctionReport((), rows=(*rows, other))).splitlines()
    assert lines[-4:] == [
        "sizes  D=3 WRONG: grad_x[0, 2] is -15.5",
        "sizes  D=7, 13 WRONG: the same, with other numbers",
        "kinds  tied WRONG: grad_x[0, 2] is 1",
        "sizes  N=1 WRONG: grad_w[0] is 1",
    ]
    lines = str(FunctionReport((), rows=(rows[0], rows[1]))).splitlines()
    assert lines[-2:] == ["sizes  D=3 WRONG: grad_x[0, 2] is -15.5", "sizes  D=7 WRONG: grad_x[0, 6] is 2"]
