"""MNIST and FashionMNIST: images and labels in IDX files, gzipped or not.

The format, from yann.lecun.com/exdb/mnist: two zero bytes, a byte for the type (8: unsigned byte), a byte for the
number of dimensions, the size of each as a big-endian 32-bit integer, and then the values, the last index fastest.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from nn_manual.arrays import Array, Shape
from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.reading import MOST_A_BYTE, SLICE_SIZE, check_memory, reading
from nn_manual.data.transform import Names, Standardization, Transform
from nn_manual.errors import DataError
from nn_manual.messages.text import counted
from nn_manual.opening import open_file

IMAGE_SHAPE = (28, 28)
PIXEL = np.dtype(np.uint8)


@dataclass
class _Images(Dataset):
    """Four IDX files in `folder`. The files determine the split, not the seed."""

    folder: Path

    example_shape = (math.prod(IMAGE_SHAPE),)
    num_classes = 10
    class_names: ClassVar[tuple[str, ...]]

    def load(
        self, seed: int, dtype: np.dtype[Any], transform: Transform | None = None  # noqa: ARG002 - the files are the split
    ) -> Split:
        """Read the four files. Pixels are standardised by the mean and std of all training pixels together."""
        train, validation = self._read("train", dtype), self._read("t10k", dtype)
        # A pixel is one of 256 values: these are counted, standardised, and then looked up in one pass over the images.
        # A division by 255 before would change nothing: (pixel/255 - mean/255) / (std/255).
        pixel = np.arange(256)
        if transform is None:
            counts = _counts(train.input)
            mean = np.average(pixel, weights=counts)
            std = np.sqrt(np.average(np.square(pixel - mean), weights=counts)) or 1.0  # blank images stay blank
            standardization = Standardization(np.array(mean), np.array(std))
        else:
            standardization = transform.input or Standardization(np.array(0.0), np.array(1.0))
        standardized_pixel = standardization.apply(pixel).astype(dtype)
        return Split(
            Examples(_looked_up(standardized_pixel, train.input), train.target),
            Examples(_looked_up(standardized_pixel, validation.input), validation.target),
            self.num_classes,
            Transform(input=standardization, names=Names(classes=self.class_names)),
        )

    def _read(self, part: str, dtype: np.dtype[Any]) -> Examples:
        """uint8 images (examples, 784) and int64 labels (examples,) of the part "train" or "t10k". The memory must be
        enough for the images in `dtype`.
        """
        images_file = _find(Path(self.folder), f"{part}-images-idx3-ubyte")
        labels_file = _find(Path(self.folder), f"{part}-labels-idx1-ubyte")
        images, labels = read_idx(images_file, 3, dtype), read_idx(labels_file, 1, np.dtype(np.int64))
        if images.shape[1:] != IMAGE_SHAPE:
            raise DataError(f"{images_file}: the images have {images.shape[1]} x {images.shape[2]} pixels, not 28 x 28")
        if len(images) != len(labels):
            num_images, num_labels = counted(len(images), "image"), counted(len(labels), "label")
            raise DataError(f"{images_file} has {num_images}, but {labels_file} has {num_labels}")
        if len(images) == 0:
            raise DataError(f"{images_file}: holds no images")
        wrong = np.flatnonzero(labels >= self.num_classes)
        if wrong.size:
            raise DataError(
                f"{labels_file}: label {labels[wrong[0]]} of image {wrong[0]}, counted from 0, is not in "
                f"0 to {self.num_classes - 1}"
            )
        return Examples(images.reshape(len(images), -1), labels.astype(np.int64))


def _counts(pixels: Array) -> Array:
    """How often each of the values 0 to 255 occurs."""
    flat = pixels.reshape(-1)  # in slices, here and below: numpy converts what it counts, and indices, to int64
    slices = (flat[start : start + SLICE_SIZE] for start in range(0, len(flat), SLICE_SIZE))
    return sum((np.bincount(part, minlength=256) for part in slices), np.zeros(256, np.int64))


def _looked_up(values: Array, indices: Array) -> Array:
    """values[indices], in slices."""
    result = np.empty(indices.shape, values.dtype)
    to, of = result.reshape(-1), indices.reshape(-1)
    for start in range(0, len(of), SLICE_SIZE):
        to[start : start + SLICE_SIZE] = values[of[start : start + SLICE_SIZE]]
    return result


@dataclass
class FashionMNIST(_Images):
    """70,000 photographs of clothes, 28 x 28 grey pixels: input (784,), standardised, 10 classes.

    `folder` holds train-images-idx3-ubyte, train-labels-idx1-ubyte (60,000, the training part) and t10k-images-...,
    t10k-labels-... (10,000, the validation part), each as it is or with .gz.

    Xiao, Rasul and Vollgraf, "Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine Learning
    Algorithms", 2017.
    """

    class_names = (
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    )


@dataclass
class MNIST(_Images):
    """70,000 handwritten digits, 28 x 28 grey pixels: input (784,), standardised, 10 classes.

    `folder` holds train-images-idx3-ubyte, train-labels-idx1-ubyte (60,000, the training part) and t10k-images-...,
    t10k-labels-... (10,000, the validation part), each as it is or with .gz.

    LeCun, Bottou, Bengio and Haffner, "Gradient-Based Learning Applied to Document Recognition", 1998.
    """

    class_names = tuple("0123456789")


def read_idx(file: Path, num_dimensions: int, dtype: np.dtype[Any] = PIXEL) -> Array:
    """The uint8 array of `num_dimensions` dimensions in an IDX file, gunzipped if its name ends in .gz.

    No more numbers are read than the header declares, and none if so many can't be in the file, or if as many of
    `dtype` don't fit into the memory. Raises DataError if the file can't be read, begins with other bytes, or is
    shorter or longer than the header says.
    """
    is_gzipped = file.suffix == ".gz"
    with reading(file, EOFError, zlib.error), open_file(file) as raw, gzip.open(raw) if is_gzipped else raw as stream:
        shape, offset = _header(file, stream, num_dimensions)
        size, file_size = math.prod(shape), file.stat().st_size
        declared = f"the header says {' x '.join(map(str, shape))} = {counted(size, 'byte')} from offset {offset}"
        if is_gzipped and offset + size > MOST_A_BYTE * file_size:
            raise DataError(f"{file}: {declared}, which {counted(file_size, 'byte')} of gzip can't hold")
        if not is_gzipped and offset + size != file_size:
            raise DataError(f"{file}: {declared}, the file has {file_size - offset:,}")
        check_memory(file, size * dtype.itemsize)
        pixels = np.empty(size, PIXEL)
        num_read = 0
        while count := stream.readinto(pixels[num_read : num_read + SLICE_SIZE].data):
            num_read += count
        if num_read < size:
            raise DataError(f"{file}: {declared}, the file has {num_read:,}")
        if stream.read(1):
            raise DataError(f"{file}: {declared}, the file has more")
    return pixels.reshape(shape)


def _header(file: Path, stream: BufferedIOBase, num_dimensions: int) -> tuple[Shape, int]:
    """The shape that an IDX file declares, and where its numbers begin."""
    offset = 4 + 4 * num_dimensions
    header, magic = stream.read(offset), bytes([0, 0, 8, num_dimensions])
    if header[:4] != magic:
        raise DataError(
            f"{file}: begins with the bytes [{header[:4].hex(' ')}], an IDX file of unsigned bytes with "
            f"{counted(num_dimensions, 'dimension')} with [{magic.hex(' ')}]"
        )
    if len(header) < offset:
        raise DataError(f"{file}: ends after {counted(len(header), 'byte')}, within the header of {offset} bytes")
    return struct.unpack(f">{num_dimensions}I", header[4:]), offset


def _find(folder: Path, name: str) -> Path:
    """The file `name` or `name`.gz in `folder`."""
    with reading(folder):
        for file in (folder / name, folder / f"{name}.gz"):
            if file.exists():
                return file
        problem = f"no file {name} or {name}.gz in it" if folder.is_dir() else "no such folder"
    raise DataError(f"{folder}: {problem}")
