"""HTML for notebooks: it is well formed, whatever the texts are, and says what is wrong in words."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from drawing import write_run
from html_pages import Page
from notebooks import executed
from trained_runs import write_trained

from nn_manual.messages import notebook
from nn_manual.messages.notebook import Row


def test_a_table() -> None:
    page = Page(notebook.table(("name", "size", ""), [Row(("a", "1", "")), Row(("b", "2", "WRONG"), True)], "<><"))
    assert page.rows == [
        (("name", "size", ""), False),
        (("a", "1", ""), False),
        (("b", "2", "WRONG"), True),
    ]
    assert [row.cells for row in Page(notebook.table((), [Row(("data", "Digits"))], "<<")).rows] == [("data", "Digits")]


def test_numbers_are_aligned_to_the_right() -> None:
    html = notebook.table(("name", "size"), [Row(("a", "1"))], "<>")
    assert html.count("text-align: left") == html.count("text-align: right") == 2


@pytest.mark.parametrize("text", ["<b>bold</b>", "</td></tr>", "a & b", "\"quoted\" 'twice'", "<script>f()</script>"])
def test_texts_are_escaped(text: str) -> None:
    page = Page(
        notebook.page(
            notebook.title(text),
            notebook.verdict(text),
            notebook.words(text),
            notebook.lines([text, text]),
            notebook.table((text,), [Row((text,), True)], "<"),
            notebook.picture(b"", text),
        )
    )
    assert page.texts == [text, f"✓ {text}", text, f"{text}\n{text}"]
    assert page.rows == [((text,), False), ((text,), True)]
    assert page.pictures[0]["alt"] == text


def test_what_can_not_be_seen_is_escaped() -> None:
    assert Page(notebook.words("one\ntwo\x1b[31m\u202e")).texts == [r"one\ntwo\x1b[31m\u202e"]


def test_the_verdict_says_in_its_text_what_it_is() -> None:
    assert Page(notebook.verdict("all")).texts == ["✓ all"]
    assert Page(notebook.verdict("failed", is_wrong=True)).texts == ["✗ failed"]


def test_a_picture_lies_in_the_page() -> None:
    (picture,) = Page(notebook.picture(b"bytes", "curves")).pictures
    assert picture["src"] == f"data:image/png;base64,{base64.b64encode(b'bytes').decode()}"


def test_mathjax_leaves_names_alone() -> None:
    assert notebook.page("").startswith('<div class="tex2jax_ignore mathjax_ignore">')


def test_no_colour_of_a_text_or_of_the_page_is_set() -> None:
    """Dark text on a dark notebook couldn't be read. A tint is mostly transparent."""
    html = notebook.page(
        notebook.verdict("", is_wrong=True), notebook.table(("",), [Row(("",), True)], "<"), notebook.lines([""])
    )
    assert " color:" not in html
    assert html.count("background: rgba(220, 50, 50, 0.2)") == html.count("background") == 2


CELLS = [
    """
import numpy as np
from nn_manual import *
inputs = np.random.default_rng(0).standard_normal((40, 2), np.float32)
targets = (inputs.sum(axis=1) > 0).astype(np.int64)
model = Sequential(Linear(2, 8), Tanh(), Linear(8, 2))
model
""",
    "model.summary(inputs.shape)",
    """
trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=1e-9))
history = trainer.fit((inputs, targets), (inputs, targets), epochs=9, batch_size=20, patience=2, min_delta=0.1)
""",
    "trainer.train_step(inputs, targets)",
    """
class Twice(Layer):
    def forward(self, input):
        return 2 * input, None
    def backward(self, saved, grad_output):
        return 3 * grad_output
check_gradients(Sequential(Linear(2, 2), Twice()), CrossEntropyLoss(), inputs, targets)
""",
    """
import torch
class Square(torch.autograd.Function):
    @staticmethod
    def forward(context, x):
        context.save_for_backward(x)
        return x * x
    @staticmethod
    def backward(context, grad_output):
        return 2 * context.saved_tensors[0] * grad_output
check_function(Square, torch.square, [torch.randn(3, dtype=torch.float64)], skip=["sizes", "cost"])
""",
    "load_run('run')",
]


@pytest.mark.slow
@pytest.mark.parametrize("has_widgets", [True, False])
def test_in_a_real_notebook(tmp_path: Path, *, has_widgets: bool) -> None:
    """It alone sees what IPython takes of each object, and where tqdm's bar goes."""
    write_trained(tmp_path)
    for file in ("metrics.jsonl", "gradients.jsonl"):
        (write_run(tmp_path / file) / file).rename(tmp_path / "run" / file)
    without = "import sys\nsys.modules['ipywidgets'] = None\n"
    outputs = executed(tmp_path, [("" if has_widgets else without) + CELLS[0], *CELLS[1:]])
    assert [output for cell in outputs for output in cell if output.get("name") == "stderr"] == []
    model, summary, fit, step, wrong, function, run = outputs

    assert [row.cells for row in page_in(model).rows][:2] == [
        ("layer", "parameters", "shapes"), ("0 Linear", "24", "weight 8x2, bias 8")
    ]  # fmt: skip
    assert page_in(summary).rows[0].cells == ("layer", "output", "parameters", "products", "shapes")
    assert [row.cells[0] for row in page_in(step).rows] == ["step", "7"]
    assert page_in(wrong).texts[0] == "✗ gradient check failed: wrong first in 1 (Twice): 1.grad_input"
    assert [cells[0] for cells in page_in(wrong).marked] == [
        "1.grad_input", "0.grad_weight", "0.grad_bias", "0.grad_input"
    ]  # fmt: skip
    assert page_in(function).texts[0].startswith("✓ ")
    assert ("kinds", "right") in [row.cells[:2] for row in page_in(function).rows]
    assert len(page_in(run).pictures) == 1

    # The bar's place is empty at the end, and nothing stands between the lines.
    bars = [output.data for output in fit if output.output_type != "stream"]
    assert bars == ([{}] if has_widgets else [])
    assert [output.output_type for output in fit[len(bars) :]] == ["stream"] * (len(fit) - len(bars))
    lines = "".join(output.text for output in fit[len(bars) :]).splitlines()
    starts = [line.split()[0] for line in lines]
    assert starts == ["validation", "epoch", "1/9", "2/9", "3/9", "stopped", "the"]


def page_in(outputs: list[Any]) -> Page:
    """The page that is all that a cell shows."""
    (output,) = outputs
    assert output.output_type == "execute_result"
    return Page(output.data["text/html"])
