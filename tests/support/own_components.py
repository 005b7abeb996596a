"""The classes of docs/your_own_component.md, and a small run with them."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "your_own_component.md").read_text(encoding="utf-8")
MINE, DIGIT_LINES, READ_LINES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
#: Nine steps: three epochs of three.
CONFIG = """\
data: {mine:Waves: {num_examples: 60}}
batch_size: 16
epochs: 3
model:
  - Linear: {in_features: 1, out_features: 8}
  - Tanh
  - Linear: {in_features: 8, out_features: 1}
initializer: mine:Laplace
loss: mine:LogCoshLoss
optimizer: {mine:SignSGD: {lr: 0.01}}
lr_scheduler: {mine:Warmup: {num_counts: 3}}
"""


def write_own(folder: Path, mine: str = MINE) -> Path:
    """mine.py, and mine.yaml, which names its classes."""
    (folder / "mine.py").write_text(mine)
    (folder / "mine.yaml").write_text(CONFIG)
    return folder / "mine.yaml"
