"""docs/walkthrough.md: what it shows a learner is what happens."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path

from nn_manual import ops

PAGE = (Path(__file__).parents[2] / "docs" / "walkthrough.md").read_text(encoding="utf-8")


def test_every_code_block_runs_and_prints_what_the_page_says() -> None:
    blocks = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) == PAGE.count("```") / 2 == 6
    test = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "walkthrough.md", "docs/walkthrough.md", 0)
    report: list[str] = []
    results = doctest.DocTestRunner().run(test, out=report.append)
    assert results.failed == 0, "".join(report)
    assert results.attempted == 25


def test_the_operation_that_it_quotes_is_the_one_in_the_code() -> None:
    """Apart from the types, which the page leaves out."""
    source = re.sub(r": Tensor| -> Differentiated", "", inspect.getsource(ops.exp.rule))
    quoted = inspect.cleandoc(PAGE[PAGE.index("    @operation") : PAGE.index("## 3.")])
    assert quoted == source.strip()
