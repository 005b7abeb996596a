"""Large data files, each read in a process of its own: the resident memory at its peak, beside the arrays."""

from __future__ import annotations

import gzip
import struct
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from nn_manual.data import MNIST, Arrays, Dataset, Split, Text

#: What a load may take beside twice the arrays: its buffers, slices of the numbers, a text's table of all characters,
#: and for a small file the most that deflate could unpack from it.
FIXED_BYTES = 8 << 20
NUM_COLUMNS = 20
#: Kinds of large files, and whether their numbers are standardised, for which float64 is needed on the way to float32.
CASES = [
    *((kind, standardize) for kind in ("csv", "csv.gz", "stored npz", "deflated npz") for standardize in (False, True)),
    *(("npz, first index fastest", True), ("idx", False), ("idx.gz", False), ("txt", False)),
]


def memory(num_rows: int = 1_000_000) -> bool:
    """Print the peak of each case beside its arrays. Returns whether all are within twice the arrays and FIXED_BYTES.
    """
    print(f"{'large files, float32':40} {'arrays':>8} {'peak':>8} {'peak/arrays':>12}")
    passed = True
    for kind, standardize in CASES:
        num_bytes, peak = peak_of(kind, standardize, num_rows)
        passed &= peak <= 2 * num_bytes + FIXED_BYTES
        name = f"{kind}{', standardised' if standardize else ''}"
        print(f"{name:40} {num_bytes / 2**20:4.0f} MiB {peak / 2**20:4.0f} MiB {peak / num_bytes:12.2f}", flush=True)
    print(f"at most 2.00, beside {FIXED_BYTES >> 20} MiB\n")
    return passed


def peak_of(kind: str, standardize: bool, num_rows: int) -> tuple[int, int]:
    """The bytes of a file's arrays, and the bytes by which the process that loads it grows."""
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), kind, num_rows)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return pool.submit(_load, Path(folder), kind, standardize).result()


def _load(folder: Path, kind: str, standardize: bool) -> tuple[int, int]:
    """In the new process."""
    _write(folder / "small", kind, 100)
    dtype = np.dtype(np.float32)
    _dataset(folder / "small", kind, standardize).load(0, dtype)  # what the first load alone imports
    Path("/proc/self/clear_refs").write_text("5")  # the peak becomes what there is now
    before = _resident("VmHWM")
    split = _dataset(folder, kind, standardize).load(0, dtype)
    return bytes_of(split), _resident("VmHWM") - before


def _resident(field: str) -> int:
    """Bytes, as Linux counts them."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(field))


def _dataset(folder: Path, kind: str, standardize: bool) -> Dataset:
    if kind.startswith("idx"):
        return MNIST(folder)
    if kind == "txt":
        return Text(folder / "file.txt")
    file, input = (folder / "file.npz", "x") if "npz" in kind else (folder / f"file.{kind}", None)
    return Arrays(file, "y", "classification", input, standardize=standardize)


def _write(folder: Path, kind: str, num_rows: int) -> None:
    """Write a table of so many rows, or as much text or as many images as give arrays of about that size."""
    folder.mkdir(exist_ok=True)
    if kind.startswith("csv"):
        header = ",".join(f"x{column}" for column in range(NUM_COLUMNS)) + ",y\n"
        values = np.random.default_rng(0).normal(size=(10, NUM_COLUMNS)).round(6)
        rows = "".join(",".join(map(str, [*row, target % 2])) + "\n" for target, row in enumerate(values.tolist()))
        content = (header + rows * (num_rows // len(values))).encode()
        (folder / f"file.{kind}").write_bytes(gzip.compress(content, 1, mtime=0) if kind.endswith("gz") else content)
    elif "npz" in kind:
        x = np.random.default_rng(0).integers(9, size=(num_rows, NUM_COLUMNS)).astype(np.float64)
        x, y = np.asfortranarray(x) if "first" in kind else x, np.arange(num_rows) % 2
        (np.savez if "stored" in kind else np.savez_compressed)(folder / "file.npz", x=x, y=y)
    elif kind == "txt":
        (folder / "file.txt").write_text("To be, or not to be. " * num_rows)
    else:
        for part in ("train", "t10k"):
            for name, shape in (("images-idx3", (num_rows // 40, 28, 28)), ("labels-idx1", (num_rows // 40,))):
                content = bytes([0, 0, 8, len(shape)]) + struct.pack(f">{len(shape)}I", *shape) + bytes(np.prod(shape))
                file = folder / f"{part}-{name}-ubyte{kind.removeprefix('idx')}"
                file.write_bytes(gzip.compress(content, 1, mtime=0) if kind.endswith("gz") else content)


def bytes_of(split: Split) -> int:
    """The memory of all arrays; memory that the windows of a text share counts once."""
    arrays = [array for part in (split.train, split.validation) for array in part if array.size]
    num_bytes, reached = 0, 0
    for start, stop in sorted(map(np.lib.array_utils.byte_bounds, arrays)):
        num_bytes += max(0, stop - max(start, reached))
        reached = max(reached, stop)
    return num_bytes
