"""Why a file isn't read as safetensors: which other format it has, or what is wrong with it."""

from __future__ import annotations

import json
import os
import zipfile
from typing import IO

#: The file begins with the number of the header's bytes; the header is a JSON object.
NUM_BYTES = 8
#: A zip archive, as np.savez and torch.save write it, and a pickle, as older versions of torch.save wrote it.
ZIP, PICKLE = b"PK\3\4", b"\x80"

OF_TORCH = (
    "is a file of torch.save's, not a safetensors file; to convert its state dict: "
    "safetensors.torch.save_file(torch.load(FILE), 'new.safetensors')"
)
OF_NUMPY = (
    "is an .npz of NumPy's, not a safetensors file; to convert it: "
    "safetensors.numpy.save_file(dict(np.load(FILE)), 'new.safetensors')"
)
OF_ZIP = "is a zip archive, as torch.save and np.savez write them, not a safetensors file"


def problem_of(file: IO[bytes]) -> str:
    """What is wrong with an open file that isn't read as safetensors, as the end of a sentence about it."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(NUM_BYTES + 1)
    if not start:
        return "is empty, not a safetensors file"
    if start.startswith(ZIP):
        return _kind_of_zip(file)
    if start[NUM_BYTES:] != b"{":
        return OF_TORCH if start.startswith(PICKLE) else "is not a safetensors file"
    end = NUM_BYTES + int.from_bytes(start[:NUM_BYTES], "little")
    if end <= size:
        file.seek(NUM_BYTES)
        num_bytes = _num_bytes_of_tensors(file.read(end - NUM_BYTES))
        if num_bytes is None or end + num_bytes == size:
            return "is not a whole safetensors file: its header is damaged"
        end += num_bytes
    return f"is not a whole safetensors file: it has {size:,} bytes, and {end:,} by its header"


def _kind_of_zip(file: IO[bytes]) -> str:
    try:
        names = zipfile.ZipFile(file).namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return OF_ZIP
    if any(name.endswith("/data.pkl") for name in names):
        return OF_TORCH
    return OF_NUMPY if names and all(name.endswith(".npy") for name in names) else OF_ZIP


def _num_bytes_of_tensors(header: bytes) -> int | None:
    """How many bytes the tensors take, by the header; None if the header doesn't say it."""
    try:
        tensors = {name: entry for name, entry in json.loads(header).items() if name != "__metadata__"}
        return max((int(entry["data_offsets"][1]) for entry in tensors.values()), default=0)
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError):
        return None
