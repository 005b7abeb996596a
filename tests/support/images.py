"""A part of Fashion-MNIST: enough for a test, as files of its own."""

from __future__ import annotations

import struct
from pathlib import Path

from nn_manual.data.idx import read_idx

#: How many images the convnet sees, of those that it trains on and of the others: 64 steps.
NUM_IMAGES = {"train": 4096, "t10k": 1024}


def first_images(folder: Path, directory: Path, train: int = NUM_IMAGES["train"]) -> Path:
    """The directory, with the first images and labels of the folder, `train` of them to train on."""
    directory.mkdir()
    for part, count in (NUM_IMAGES | {"train": train}).items():
        for kind, num_dimensions in (("images-idx3", 3), ("labels-idx1", 1)):
            (file,) = folder.glob(f"{part}-{kind}-ubyte*")
            values = read_idx(file, num_dimensions)[:count]
            header = struct.pack(f">4B{num_dimensions}I", 0, 0, 8, num_dimensions, *values.shape)
            (directory / f"{part}-{kind}-ubyte").write_bytes(header + values.tobytes())
    return directory
