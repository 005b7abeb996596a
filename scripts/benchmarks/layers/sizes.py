"""The two sizes in which each class is measured: a small one, and one as it has in a real net.

Each class of torch.nn that ours has a class for stands here; a test says which is missing. Some stand here before ours
has them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from nn_manual.arrays import Shape


class Size(NamedTuple):
    """The settings of a class, and the shape of its input; for a loss, that of the prediction."""

    shape: Shape
    settings: dict[str, Any]


class Subject(NamedTuple):
    """Both sizes of a class. `values` says what a loss's target is made of, and what a layer's input is."""

    small: Size
    real: Size
    values: str = "numbers"


#: What an activation gets: a few units of a batch, and a layer of a real net.
ROWS = (32, 16), (128, 1024)
#: Sequences, images and volumes: (batch, channels, *size).
PLACES = (
    ((8, 4, 32), (32, 32, 512)),
    ((8, 4, 8, 8), (32, 32, 28, 28)),
    ((2, 4, 4, 4, 4), (8, 16, 8, 16, 16)),
)
#: (batch, time, features).
TIMES = (8, 6, 8), (32, 32, 128)


def _both(shapes: tuple[Shape, Shape], values: str = "numbers", **settings: Any) -> Subject:
    """The same settings in both sizes."""
    return Subject(Size(shapes[0], settings), Size(shapes[1], settings), values)


def _channels(num_dims: int, *names: str, **settings: Any) -> Subject:
    """Settings with these names are the number of channels."""
    small, real = (Size(shape, dict.fromkeys(names, shape[1]) | settings) for shape in PLACES[num_dims - 1])
    return Subject(small, real)


def _of_each_dimension(name: str, *channels: str, **settings: Any) -> dict[str, Subject]:
    return {f"{name}{num_dims}d": _channels(num_dims, *channels, **settings) for num_dims in (1, 2, 3)}


ACTIVATIONS = {
    name: _both(ROWS)
    for name in (
        *("CELU", "ELU", "GELU", "GLU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity"),
        *("LeakyReLU", "LogSigmoid", "Mish", "PReLU", "ReLU", "ReLU6", "RReLU", "SiLU", "Sigmoid", "Softplus"),
        *("Softshrink", "Softsign", "Tanh", "Tanhshrink", "Dropout", "AlphaDropout"),
    )
} | {
    "Threshold": _both(ROWS, threshold=0.5, value=-2.0),
    **{name: _both(ROWS, dim=-1) for name in ("LogSoftmax", "Softmax", "Softmin")},
    "Softmax2d": _channels(2),
}

IMAGES = {
    **_of_each_dimension("AdaptiveAvgPool", output_size=2),
    **_of_each_dimension("AdaptiveMaxPool", output_size=2),
    **_of_each_dimension("AvgPool", kernel_size=2),
    **_of_each_dimension("MaxPool", kernel_size=2),
    **_of_each_dimension("LPPool", norm_type=2.0, kernel_size=2),
    **_of_each_dimension("Conv", "in_channels", "out_channels", kernel_size=3, padding=1),
    **_of_each_dimension("ConvTranspose", "in_channels", "out_channels", kernel_size=2, stride=2),
    **_of_each_dimension("BatchNorm", "num_features"),
    **_of_each_dimension("InstanceNorm", "num_features"),
    **_of_each_dimension("Dropout"),
    **_of_each_dimension("CircularPad", padding=1),
    **_of_each_dimension("ReflectionPad", padding=1),
    **_of_each_dimension("ReplicationPad", padding=1),
    **_of_each_dimension("ZeroPad", padding=1),
    **_of_each_dimension("ConstantPad", padding=1, value=0.5),
    "FeatureAlphaDropout": _channels(2),
    "FractionalMaxPool2d": _channels(2, kernel_size=2, output_ratio=0.5),
    "FractionalMaxPool3d": _channels(3, kernel_size=2, output_ratio=0.5),
    "GroupNorm": _channels(2, "num_channels", num_groups=4),
    "LocalResponseNorm": _channels(2, size=3),
    "ChannelShuffle": _channels(2, groups=2),
    "PixelShuffle": _channels(2, upscale_factor=2),
    "PixelUnshuffle": _channels(2, downscale_factor=2),
    "Upsample": _channels(2, scale_factor=2),
    "UpsamplingNearest2d": _channels(2, scale_factor=2),
    "UpsamplingBilinear2d": _channels(2, scale_factor=2),
    "Unfold": _channels(2, kernel_size=3),
    "Fold": Subject(
        Size((8, 4 * 9, 36), {"output_size": [8, 8], "kernel_size": 3}),
        Size((32, 32 * 9, 676), {"output_size": [28, 28], "kernel_size": 3}),
    ),
}

#: BatchNorm1d has rows here: with places, it would be what BatchNorm2d is.
OTHERS = {
    "BatchNorm1d": Subject(Size((32, 16), {"num_features": 16}), Size((128, 1024), {"num_features": 1024})),
    "Linear": Subject(
        Size((32, 16), {"in_features": 16, "out_features": 16}),
        Size((128, 512), {"in_features": 512, "out_features": 512}),
    ),
    "Bilinear": Subject(
        Size((32, 8), {"in1_features": 8, "in2_features": 8, "out_features": 8}),
        Size((128, 64), {"in1_features": 64, "in2_features": 64, "out_features": 64}),
    ),
    "Flatten": _channels(2),
    "Unflatten": Subject(
        Size((32, 16), {"dim": 1, "unflattened_size": [4, 4]}),
        Size((128, 1024), {"dim": 1, "unflattened_size": [32, 32]}),
    ),
    **{
        name: Subject(Size(TIMES[0], {"normalized_shape": 8}), Size(TIMES[1], {"normalized_shape": 128}))
        for name in ("LayerNorm", "RMSNorm")
    },
    **{
        name: Subject(
            Size((32, 6), {"num_embeddings": 20, "embedding_dim": 8}),
            Size((32, 64), {"num_embeddings": 5000, "embedding_dim": 128}),
            "indices",
        )
        for name in ("Embedding", "EmbeddingBag")
    },
    **{
        name: Subject(
            Size(TIMES[0], {"input_size": 8, "hidden_size": 8, "batch_first": True}),
            Size(TIMES[1], {"input_size": 128, "hidden_size": 128, "batch_first": True}),
        )
        for name in ("GRU", "LSTM", "RNN")
    },
    **{
        name: Subject(
            Size(TIMES[0], {"embed_dim": 8, "num_heads": 2}), Size((16, 64, 128), {"embed_dim": 128, "num_heads": 4})
        )
        for name in ("MultiheadAttention", "CausalSelfAttention")
    },
    "TransformerEncoderLayer": Subject(
        Size(TIMES[0], {"d_model": 8, "nhead": 2, "dim_feedforward": 16}),
        Size((16, 64, 128), {"d_model": 128, "nhead": 4, "dim_feedforward": 512}),
    ),
}

LOSSES = {
    **{name: _both(ROWS) for name in ("HuberLoss", "L1Loss", "MSELoss", "PoissonNLLLoss", "SmoothL1Loss")},
    **{name: _both(ROWS, "labels") for name in ("BCEWithLogitsLoss", "MultiLabelSoftMarginLoss")},
    **{name: _both(ROWS, "signs") for name in ("HingeEmbeddingLoss", "SoftMarginLoss")},
    **{name: _both(ROWS, "classes") for name in ("CrossEntropyLoss", "MultiMarginLoss", "NLLLoss")},
    "BCELoss": _both(ROWS, "probabilities"),
    "KLDivLoss": _both(ROWS, "probabilities", reduction="batchmean"),
    "MultiLabelMarginLoss": _both(ROWS, "two labels"),
}

SUBJECTS: dict[str, Subject] = ACTIVATIONS | IMAGES | OTHERS | LOSSES
#: Classes of ours that torch.nn has, too, and that aren't measured, with the reason.
NOT_MEASURED = {
    "GaussianNLLLoss": "torch's takes the variance as a third array",
    "CTCLoss": "torch's gradient is that of its value behind a LogSoftmax alone",
    "TransformerEncoder": "it is made of TransformerEncoderLayers",
}
