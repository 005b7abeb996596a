"""MNIST and FashionMNIST: IDX files made here, broken ones, and the real ones where they are installed."""

import gzip
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from no_files import NO_FILES

from nn_manual.data import MNIST, FashionMNIST, reading
from nn_manual.data.idx import read_idx
from nn_manual.errors import DataError

FLOAT64 = np.dtype(np.float64)
INSTALLED = Path("/usr/share/datasets/fashion-mnist")  # where Debian's package dataset-fashion-mnist puts it


def idx_bytes(values: np.ndarray) -> bytes:
    return bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def write_part(folder: Path, part: str, images: np.ndarray, labels: np.ndarray, gzipped: bool = False) -> None:
    for name, values in ((f"{part}-images-idx3-ubyte", images), (f"{part}-labels-idx1-ubyte", labels)):
        content = idx_bytes(values.astype(np.uint8))
        if gzipped:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


@pytest.fixture
def images() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (7, 28, 28), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path, images: np.ndarray) -> Path:
    """Five training images, and two for validation."""
    write_part(tmp_path, "train", images[:5], np.arange(5))
    write_part(tmp_path, "t10k", images[5:], np.array([9, 0]))
    return tmp_path


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize("dataset", [MNIST, FashionMNIST])
def test_images_divided_by_255_and_standardised(
    tmp_path: Path, images: np.ndarray, dataset: type[MNIST], gzipped: bool, dtype: str
) -> None:
    write_part(tmp_path, "train", images[:5], np.arange(5), gzipped)
    write_part(tmp_path, "t10k", images[5:], np.array([9, 0]), gzipped)
    train, validation, num_classes, transform = dataset(tmp_path).load(0, np.dtype(dtype))
    pixels = images.reshape(7, 784) / 255
    standardised = (pixels - pixels[:5].mean()) / pixels[:5].std()
    # Up to 1.7 large and rounded once to the dtype; before that, a few roundings in float64 and two sums.
    tolerance = 2 * np.finfo(dtype).eps + 10 * np.finfo(np.float64).eps
    np.testing.assert_allclose(train.input, standardised[:5], rtol=0, atol=tolerance)
    np.testing.assert_allclose(validation.input, standardised[5:], rtol=0, atol=tolerance)
    assert train.input.dtype == validation.input.dtype == np.dtype(dtype)
    assert train.input.flags.c_contiguous
    assert (train.target.tolist(), validation.target.tolist()) == ([0, 1, 2, 3, 4], [9, 0])
    assert train.target.dtype == np.int64
    assert transform.input is not None
    kept = transform.input.apply(images.reshape(7, 784)).astype(dtype)
    assert np.array_equal(kept, np.concatenate([train.input, validation.input]))
    assert transform.names.classes is not None
    assert transform.names.classes[9] == ("9" if dataset is MNIST else "Ankle boot")
    assert (num_classes, dataset(tmp_path).num_classes, dataset(tmp_path).example_shape) == (10, 10, (784,))


def test_blank_images_stay_blank(tmp_path: Path) -> None:
    for part in ("train", "t10k"):
        write_part(tmp_path, part, np.full((2, 28, 28), 7), np.zeros(2))
    assert not MNIST(tmp_path).load(0, FLOAT64).train.input.any()


def test_read_idx_dimensions(tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    (tmp_path / "values").write_bytes(idx_bytes(values))
    assert np.array_equal(read_idx(tmp_path / "values", 3), values)


@pytest.mark.skipif(not INSTALLED.is_dir(), reason="Debian's package dataset-fashion-mnist is not installed")
@pytest.mark.slow
def test_the_real_fashion_mnist() -> None:
    """It alone reads all 70,000 images."""
    train, validation, *_ = FashionMNIST(INSTALLED).load(0, np.dtype(np.float32))
    assert train.input.shape == (60000, 784)
    assert validation.input.shape == (10000, 784)
    assert np.bincount(train.target).tolist() == [6000] * 10
    assert np.bincount(validation.target).tolist() == [1000] * 10
    # Each number is rounded to float32.
    rounding = float(np.finfo(np.float32).eps)
    assert train.input.mean(dtype=np.float64) == pytest.approx(0, abs=rounding)
    assert train.input.std(dtype=np.float64) == pytest.approx(1, abs=rounding)
    # The mean and std of the training pixels that the set's users write down: 0.2860 and 0.3530.
    assert train.input.min() == pytest.approx(-0.2860 / 0.3530, abs=2e-4)  # two numbers of four digits


def assert_message(folder: Path, *parts: object) -> None:
    with pytest.raises(DataError) as caught:
        MNIST(folder).load(0, FLOAT64)
    message = str(caught.value)
    for part in parts:
        assert str(part) in message
    assert "\n" not in message


def test_missing_folder(tmp_path: Path) -> None:
    assert_message(tmp_path / "nowhere", f"{tmp_path / 'nowhere'}: no such folder")


def test_missing_file(folder: Path) -> None:
    (folder / "t10k-labels-idx1-ubyte").unlink()
    assert_message(folder, f"{folder}: no file t10k-labels-idx1-ubyte or t10k-labels-idx1-ubyte.gz in it")


def test_file_is_a_folder(folder: Path) -> None:
    (folder / "train-images-idx3-ubyte").unlink()
    (folder / "train-images-idx3-ubyte").mkdir()
    assert_message(folder, folder / "train-images-idx3-ubyte", "Is a directory")


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(("make", "words"), NO_FILES.values(), ids=NO_FILES)
def test_what_is_no_file(folder: Path, make: Callable[[Path], object], words: str, ending: str) -> None:
    (folder / "train-images-idx3-ubyte").unlink()
    file = folder / f"train-images-idx3-ubyte{ending}"
    make(file)
    assert_message(folder, f"{file}: {words}")


def test_wrong_magic(folder: Path) -> None:
    file = folder / "train-images-idx3-ubyte"
    file.write_bytes((folder / "train-labels-idx1-ubyte").read_bytes())
    assert_message(folder, f"{file}: begins with the bytes [00 00 08 01]", "3 dimensions", "[00 00 08 03]")


def test_empty_file(folder: Path) -> None:
    (folder / "train-images-idx3-ubyte").write_bytes(b"")
    assert_message(folder, folder / "train-images-idx3-ubyte", "begins with the bytes []")


def test_header_cut_off(folder: Path) -> None:
    file = folder / "train-images-idx3-ubyte"
    file.write_bytes(file.read_bytes()[:11])
    assert_message(folder, f"{file}: ends after 11 bytes, within the header of 16 bytes")
    labels = folder / "train-labels-idx1-ubyte"
    labels.write_bytes(labels.read_bytes()[:1])
    with pytest.raises(DataError, match=r"begins with the bytes .00., an IDX file of unsigned bytes with 1 dimension "):
        read_idx(labels, 1)


@pytest.mark.parametrize(("change", "found"), [(-1, 3919), (1, 3921)])
def test_shorter_or_longer_than_the_header_says(folder: Path, change: int, found: int) -> None:
    file = folder / "train-images-idx3-ubyte"
    file.write_bytes((file.read_bytes() + b"\0")[: 16 + 3920 + change])
    assert_message(folder, f"{file}: the header says 5 x 28 x 28 = 3,920 bytes from offset 16, the file has {found:,}")


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda content: content[:-20],
        lambda content: content[:3],
        lambda content: content[:10] + b"\x07" + content[11:],  # a block of the type that deflate reserves
        lambda _: b"not gzip",
    ],
)
def test_broken_gzip(folder: Path, corrupt: Callable[[bytes], bytes]) -> None:
    file = folder / "train-images-idx3-ubyte"
    file.with_suffix(".gz").write_bytes(corrupt(gzip.compress(file.read_bytes())))
    file.unlink()
    assert_message(folder, file.with_suffix(".gz"))


def test_flipped_bit_in_gzip(folder: Path) -> None:
    file = folder / "train-images-idx3-ubyte"
    content = bytearray(gzip.compress(file.read_bytes()))
    content[len(content) // 2] ^= 1
    file.with_suffix(".gz").write_bytes(content)
    file.unlink()
    assert_message(folder, file.with_suffix(".gz"))


def test_gzip_that_goes_on_is_not_read_on(folder: Path) -> None:
    file = folder / "train-labels-idx1-ubyte"
    content = file.read_bytes()
    gzipped = file.with_suffix(".gz")
    gzipped.write_bytes(gzip.compress(content + bytes(2**26)))
    file.unlink()
    tracemalloc.start()
    assert_message(folder, f"{gzipped}: the header says 5 = 5 bytes from offset 8, the file has more")
    assert tracemalloc.get_traced_memory()[1] < 2**20
    tracemalloc.stop()
    gzipped.write_bytes(gzip.compress(content[:-1]))
    assert_message(folder, f"{gzipped}: the header says 5 = 5 bytes from offset 8, the file has 4")


def test_more_than_gzip_can_hold(folder: Path) -> None:
    file = folder / "train-images-idx3-ubyte"
    content = gzip.compress(bytes([0, 0, 8, 3]) + struct.pack(">3I", 2**31, 28, 28))
    file.with_suffix(".gz").write_bytes(content)
    file.unlink()
    assert_message(
        folder,
        f"{file}.gz: the header says 2147483648 x 28 x 28 = 1,683,627,180,032 bytes from offset 16, "
        f"which {len(content)} bytes of gzip can't hold",
    )


def test_more_images_than_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "machine_memory", lambda: 8 * 5 * 28 * 28 - 1)
    assert_message(folder, f"{folder / 'train-images-idx3-ubyte'}: its numbers take 0 GiB, and this machine has 0")


def test_number_of_images_and_labels_differ(folder: Path, images: np.ndarray) -> None:
    write_part(folder, "train", images[:5], np.arange(4))
    assert_message(folder, "train-images-idx3-ubyte has 5 images, but", "train-labels-idx1-ubyte has 4 labels")


def test_one_image(folder: Path, images: np.ndarray) -> None:
    write_part(folder, "train", images[:1], np.arange(2))
    assert_message(folder, "train-images-idx3-ubyte has 1 image, but", "train-labels-idx1-ubyte has 2 labels")


def test_images_of_another_size(folder: Path) -> None:
    write_part(folder, "train", np.zeros((5, 32, 30)), np.arange(5))
    assert_message(folder, "train-images-idx3-ubyte: the images have 32 x 30 pixels, not 28 x 28")


def test_no_images(folder: Path) -> None:
    write_part(folder, "t10k", np.zeros((0, 28, 28)), np.zeros(0))
    assert_message(folder, "t10k-images-idx3-ubyte: holds no images")


def test_label_out_of_range(folder: Path, images: np.ndarray) -> None:
    write_part(folder, "t10k", images[5:], np.array([3, 10]))
    assert_message(folder, "t10k-labels-idx1-ubyte: label 10 of image 1, counted from 0, is not in 0 to 9")
