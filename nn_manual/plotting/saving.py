"""The file of a figure: which endings it may have, and how it is written."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nn_manual.errors import ConfigError
from nn_manual.run_directory.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The endings of a figure's file, with metadata that leave out the time of drawing: the same runs give the same bytes.
FORMATS: dict[str, dict[str, Any]] = {".png": {}, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}

#: matplotlib's settings: the size of text in points, and a salt for the ids in an SVG, which would be random without.
#: Its type is Any, because matplotlib's stubs have a type for each key.
SETTINGS: Any = {"font.size": 9, "svg.hashsalt": "nn_manual"}


def check_ending(output: Path) -> None:
    """Raise ConfigError for a file that is no .png, .svg or .pdf."""
    if output.suffix.lower() not in FORMATS:
        raise ConfigError(f"{output}: the name of a figure must end in {', '.join(FORMATS)}")


def save(draw: Callable[[], Figure], output: Path) -> Path:
    """Write what `draw` draws to the file `output`, atomically; returns `output`. Raises DataError where it can't be
    written, and ConfigError as `check_ending` does.
    """
    check_ending(output)
    write_atomically(output, rendered(draw, output.suffix.lower()))
    return output


def rendered(draw: Callable[[], Figure], ending: str) -> bytes:
    """What `draw` draws, as a file with this ending has it."""
    import matplotlib

    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # A name may have letters that the font lacks: the figure shows boxes in their place.
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        # All losses may be 0: their marks say so.
        warnings.filterwarnings("ignore", "Data has no positive values")
        with matplotlib.rc_context(SETTINGS):
            draw().savefig(buffer, format=ending[1:], metadata=FORMATS[ending], dpi=150)
    return buffer.getvalue()
