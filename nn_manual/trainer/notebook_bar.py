"""The bar of a training in a notebook: tqdm's widget, which goes when all is done."""

from __future__ import annotations

from typing import Any

from IPython.display import display
from tqdm.notebook import tqdm_notebook


class NotebookBar(tqdm_notebook):  # type: ignore[type-arg]  # only the stubs know what it iterates over
    """tqdm's widget. Where all steps were made, nothing of it stays in the notebook: tqdm closes its widget, too, but
    leaves the place of it, and a notebook that was saved shows there the text with which the bar began.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(display=False, dynamic_ncols=True, **settings)  # as wide as the cell
        self._shown = None if self.disable else display(self.container, display_id=True)

    def close(self) -> None:
        """Remove the bar. One that isn't full stays, in red: its training was broken off."""
        if self._shown is not None and self.n == self.total:
            self._shown.update({}, raw=True)
            self._shown = None
        super().close()
