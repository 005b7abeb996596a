"""The paddings of sequences, images and volumes: each is a frame of padding.py for so many dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from nn_manual.layers.padding import CircularPad, ConstantPad, ReflectionPad, ReplicationPad, ZeroPad


@dataclass(eq=False)
class ConstantPad1d(ConstantPad):
    """A frame of one number around sequences, input (batch, channels, length)."""

    num_dims = 1


@dataclass(eq=False)
class ConstantPad2d(ConstantPad):
    """A frame of one number around images, input (batch, channels, height, width)."""

    num_dims = 2


@dataclass(eq=False)
class ConstantPad3d(ConstantPad):
    """A frame of one number around volumes, input (batch, channels, depth, height, width)."""

    num_dims = 3


@dataclass(eq=False)
class ZeroPad1d(ZeroPad):
    """A frame of zeros around sequences, input (batch, channels, length)."""

    num_dims = 1


@dataclass(eq=False)
class ZeroPad2d(ZeroPad):
    """A frame of zeros around images, input (batch, channels, height, width)."""

    num_dims = 2


@dataclass(eq=False)
class ZeroPad3d(ZeroPad):
    """A frame of zeros around volumes, input (batch, channels, depth, height, width)."""

    num_dims = 3


@dataclass(eq=False)
class ReflectionPad1d(ReflectionPad):
    """A frame of mirrored numbers around sequences, input (batch, channels, length)."""

    num_dims = 1


@dataclass(eq=False)
class ReflectionPad2d(ReflectionPad):
    """A frame of mirrored numbers around images, input (batch, channels, height, width)."""

    num_dims = 2


@dataclass(eq=False)
class ReflectionPad3d(ReflectionPad):
    """A frame of mirrored numbers around volumes, input (batch, channels, depth, height, width)."""

    num_dims = 3


@dataclass(eq=False)
class ReplicationPad1d(ReplicationPad):
    """A frame of the outermost numbers around sequences, input (batch, channels, length)."""

    num_dims = 1


@dataclass(eq=False)
class ReplicationPad2d(ReplicationPad):
    """A frame of the outermost numbers around images, input (batch, channels, height, width)."""

    num_dims = 2


@dataclass(eq=False)
class ReplicationPad3d(ReplicationPad):
    """A frame of the outermost numbers around volumes, input (batch, channels, depth, height, width)."""

    num_dims = 3


@dataclass(eq=False)
class CircularPad1d(CircularPad):
    """A frame of the numbers at the other end around sequences, input (batch, channels, length)."""

    num_dims = 1


@dataclass(eq=False)
class CircularPad2d(CircularPad):
    """A frame of the numbers at the other end around images, input (batch, channels, height, width)."""

    num_dims = 2


@dataclass(eq=False)
class CircularPad3d(CircularPad):
    """A frame of the numbers at the other end around volumes, input (batch, channels, depth, height, width)."""

    num_dims = 3
