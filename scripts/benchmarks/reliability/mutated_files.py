"""Valid data files of each kind, and damage: bits flipped, bytes cut off, put in or doubled, other sizes and headers.

Checksums find damage to compressed bytes. So half of the compressed files are damaged before they are compressed: their
checksums are right.
"""

from __future__ import annotations

import gzip
import io
import re
import struct
import zipfile
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.random import Generator

Damage: TypeAlias = Callable[[bytes, Generator], bytes]

#: What is put in: characters that end or quote a cell, texts that Python takes for a number but a table must not, and
#: texts that aren't numbers.
TOKENS = [
    *(b",", b"\n", b"\r", b"\r\n", b'"', b"\0", b" ", b"\xef\xbb\xbf", b"\xff", b"\xff\xfe", b"\xc3\xa9", b"\x1b[2J"),
    *(b"1_0", "\u0661".encode(), "\uff11".encode(), b"nan", b"-inf", b"1e999", b"-1", b"0.5", b"9" * 400, b"0x10"),
]
#: Sizes that a header may declare in 32 bits.
SIZES = (0, 1, 2, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1)
#: What numpy's headers may say.
DTYPES = [
    *("'<f8'", "'>f4'", "'<f2'", "'<f16'", "'|b1'", "'|i1'", "'>i8'", "'<u4'", "'|O'", "'<U3'", "'|S0'", "'<c16'"),
    *("'<M8[s]'", "'|V8'", "[('a', '<f4')]", "[('a', '<f4', (2,))]", "'zz'", "3", "None", "'\\d'", "1if 2else 3"),
]
SHAPES = [
    *("()", "(0,)", "(12,)", "(12, 1)", "(4, 9)", "(3, 12)", "(12, 0)", "(-12, -3)", "(12, True)", "(1.5,)", "12"),
    *("(4294967296, 4294967296)", "(0, 1180591620717411303424)", f"({'1, ' * 70})", f"({'(' * 300}", "(12,) * 10**9"),
]


def damaged(kind: str, random: Generator) -> bytes:
    """A damaged file of one of the KINDS."""
    content, pack = KINDS[kind]
    if pack is None or random.random() < 0.5:
        content = _damage(content if pack is None else pack(content), random)
    else:
        content = pack(_damage(content, random))
    return content


def valid(kind: str) -> bytes:
    """The file before the damage."""
    content, pack = KINDS[kind]
    return content if pack is None else pack(content)


def _damage(content: bytes, random: Generator) -> bytes:
    """One or two kinds of damage."""
    for _ in range(random.integers(1, 3)):
        content = DAMAGES[random.integers(len(DAMAGES))](content, random)
    return content


def _flip_bits(content: bytes, random: Generator) -> bytes:
    flipped = bytearray(content)
    for _ in range(random.integers(1, 9) if content else 0):
        flipped[random.integers(len(content))] ^= 1 << random.integers(8)
    return bytes(flipped)


def _cut_off(content: bytes, random: Generator) -> bytes:
    return content[: random.integers(len(content) + 1)]


def _put_in(content: bytes, random: Generator) -> bytes:
    place = random.integers(len(content) + 1)
    token = TOKENS[random.integers(len(TOKENS))] if random.random() < 0.7 else random.bytes(int(random.integers(1, 40)))
    replaced = random.integers(4) if random.random() < 0.5 else 0
    return content[:place] + token + content[place + replaced :]


def _take_out(content: bytes, random: Generator) -> bytes:
    start, stop = sorted(random.integers(len(content) + 1, size=2))
    return content[:start] + content[stop:]


def _double(content: bytes, random: Generator) -> bytes:
    start, stop = sorted(random.integers(len(content) + 1, size=2))
    return content[:stop] + content[start:stop] * int(random.integers(1, 4)) + content[stop:]


def _resize(content: bytes, random: Generator) -> bytes:
    """Another size in four bytes: near the header, as in IDX, or near the end, as in zip and gzip."""
    size = int(random.choice(SIZES)) if random.random() < 0.7 else int(random.integers(2**12))
    if random.random() < 0.5:
        place = 4 * int(random.integers(5))
        return content[:place] + struct.pack(">I", size) + content[place + 4 :]
    place = max(0, len(content) - int(random.integers(4, 120)))
    return content[:place] + struct.pack("<I", size) + content[place + 4 :]


def _other_header(content: bytes, random: Generator) -> bytes:
    """The beginning of another kind of file, or another header of numpy's."""
    what = random.integers(3)
    if what == 0:
        kinds = list(KINDS)
        head = valid(kinds[random.integers(len(kinds))])[: random.integers(1, 60)]
        return head + content[len(head) :]
    name, values = ("descr", DTYPES) if what == 1 else ("shape", SHAPES)
    text = values[random.integers(len(values))].encode()
    pattern = rb"('%s': )('[^']*'|\([^)]*\))" % name.encode()
    return re.sub(pattern, lambda match: match[1] + text, content)


DAMAGES: list[Damage] = [_flip_bits, _cut_off, _put_in, _take_out, _double, _resize, _other_header]


def _npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def _zipped(content: bytes, method: int) -> bytes:
    """An archive of `x`, an .npy, and of an intact `y`. The sizes that it declares are those of `content`."""
    stream = io.BytesIO()
    members = {"x.npy": content, "y.npy": _npy(np.arange(12) % 3)}
    with zipfile.ZipFile(stream, "w") as archive:
        for name, member in members.items():  # a ZipInfo of ours has a date that is always the same
            archive.writestr(zipfile.ZipInfo(name), member, method)
    return stream.getvalue()


def _idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


_CSV = b'name,a,"b",y\r\n' + b"".join(b'"row, %d",%d,%.1f,%d\r\n' % (row, row, row, row % 3) for row in range(12))
_X = _npy(np.arange(36.0).reshape(12, 3))
_IMAGES = _idx((np.arange(3 * 784) % 251).astype(np.uint8).reshape(3, 28, 28))

#: For each kind of file: the content, and the function that packs it.
KINDS: dict[str, tuple[bytes, Callable[[bytes], bytes] | None]] = {
    ".csv": (_CSV, None),
    ".csv.gz": (_CSV, lambda content: gzip.compress(content, 1, mtime=0)),
    "stored.npz": (_X, lambda content: _zipped(content, zipfile.ZIP_STORED)),
    "deflated.npz": (_X, lambda content: _zipped(content, zipfile.ZIP_DEFLATED)),
    "idx": (_IMAGES, None),
    "idx.gz": (_IMAGES, lambda content: gzip.compress(content, 1, mtime=0)),
    ".txt": ("Bäume\r\n\twachsen 🌲 ".encode() * 20, None),
}
#: The labels beside the images.
LABELS = _idx(np.array([0, 1, 9], np.uint8))
