"""What a notebook shows of a step."""

from __future__ import annotations

from html_pages import page_of
from nets import batch, net

from nn_manual import SGD, MSELoss, Trainer
from nn_manual.trainer.steps import Step


def test_a_notebook_shows_a_row() -> None:
    page = page_of(Step(7, 0.123456, 1500, 32.0, None))
    assert [row.cells for row in page.rows] == [
        ("step", "loss", "examples", "check"),
        ("7", "0.1235", "1,500", "not checked"),
    ]


def test_it_says_what_the_check_has_found() -> None:
    model = net()
    step = Trainer(model, MSELoss(), SGD(model, lr=0.1)).train_step(*batch())
    assert step.check is not None
    assert page_of(step).rows[1].cells[3] == f"{len(step.check.tensors)} tensors equal torch's"
