"""A config's model as a table."""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest
import torch
from runs import CONFIG, write_config

from nn_manual.config import load_config
from nn_manual.errors import ConfigError, DataError
from nn_manual.run.needed_memory import sizes_of
from nn_manual.use import summary as the_summary
from nn_manual.use.summary import summary

ROOT = Path(__file__).parents[2]


def table(folder: Path, text: str = CONFIG, *overrides: str) -> list[str]:
    lines = summary(load_config(write_config(folder, text), overrides)).splitlines()
    assert max(map(len, lines)) <= 80
    return lines


def test_a_small_model(tmp_path: Path) -> None:
    assert table(tmp_path) == [
        "Spirals: examples of 2",
        "",
        "layer         output  parameters  products  checked against",
        "0 Linear           8          24        16  nn.Linear",
        "1 Tanh             8                        nn.Tanh",
        "2 Linear           2          18        16  nn.Linear",
        "total                         42        32",
        "",
        "of one example: output, and products, about the multiplications of forward",
        "memory: 0.00017 MB of parameters, 0.00017 MB of gradients, 0.00017 MB of the",
        "  optimizer's vectors",
        "training step: a batch of 16 takes 1,440 multiplications in products, and 0.0015",
        "  MB beside model, optimizer and batch",
        "gradient check: every step, up to 256 proven together in 2.6 MB, those of an",
        "  epoch in 0.03 MB",
    ]


LOOKS = """
from dataclasses import dataclass

from nn_manual import Layer


@dataclass(eq=False)
class Looks(Layer):
    def forward(self, input):
        return input if input.sum() > 0 else -input, input

    def backward(self, saved, grad_output):
        return grad_output
"""


def test_a_layer_that_can_not_be_traced(tmp_path: Path) -> None:
    (tmp_path / "my_layers.py").write_text(LOOKS)
    lines = table(tmp_path, CONFIG.replace("  - Tanh\n", "  - my_layers:Looks\n"), "gradient_check.every=0")
    assert " ".join(map(str.strip, lines)).partition("training step: ")[2] == (
        "what it takes isn't known: 1 (Looks).forward, my_layers.py:10: the value of an array decides what comes next: "
        "np.where(condition, one, other) takes both ways gradient check: none"
    )


SUMMED = """
from dataclasses import dataclass

import numpy as np
from nn_manual import Layer


@dataclass(eq=False)
class Summed(Layer):
    def forward(self, input):
        return np.cumsum(input, axis=1), None

    def backward(self, saved, grad_output):
        return np.cumsum(grad_output[:, ::-1], axis=1)[:, ::-1]
"""


def test_what_of_it_is_compiled(tmp_path: Path) -> None:
    assert "compiled: the whole step" in table(tmp_path, CONFIG, "compiled=true")
    (tmp_path / "my_layers.py").write_text(SUMMED)
    config = CONFIG.replace("  - Tanh\n", "  - my_layers:Summed\n")
    lines = table(tmp_path, config, "compiled=true", "gradient_check.every=0")
    assert " ".join(map(str.strip, lines)).partition("compiled: ")[2] == (
        "all but what NumPy runs: 1 (Summed).forward, my_layers.py:11: cumsum has no compiled form; "
        "1 (Summed).backward, my_layers.py:14: cumsum has no compiled form gradient check: none"
    )


@pytest.mark.parametrize(
    ("setting", "stated"),
    [
        ("every=0", "none"),
        ("every=3", "1 step of 3, up to 256 proven together in 2.6 MB, those of an epoch in 0.01 MB"),
        ("memory=100 kB", "every step, up to 8 proven together in 0.081 MB, those of an epoch in 0.03 MB"),
        (
            "memory=0 kB",
            "every step, each proven by itself in 0.0084 MB, and torch itself 270 MB: fewer than 4 steps, of 0.0101 MB "
            "each, fit into 0 MB",
        ),
    ],
)
def test_how_steps_are_proven(tmp_path: Path, setting: str, stated: str) -> None:
    """A step's copies take 3,584 bytes: 577 numbers of forward and backward, 5 vectors of 42, and the batch, in lines
    of 64. torch takes two and a half times these numbers, and vectors of its own. Of a step by itself, these numbers
    are there three times, 4 vectors of parameters and 2 of the optimizer's.
    """
    assert stated_check(table(tmp_path, CONFIG, f"gradient_check.{setting}")) == stated


def test_steps_that_are_too_large_are_proven_one_by_one() -> None:
    lines = summary(load_config(ROOT / "config" / "digits_convnet.yaml")).splitlines()
    reason = "a step takes copies of 2.8 MB, and above 2.5 MB that is faster"
    assert stated_check(lines) == f"every step, each proven by itself in 8.2 MB, and torch itself 270 MB: {reason}"


def test_nothing_is_written_or_trained(tmp_path: Path) -> None:
    config = load_config(write_config(tmp_path))
    assert summary(config) == summary(config)
    assert [path.name for path in tmp_path.iterdir()] == ["small.yaml"]


GPT2 = """\
data: {Text: {context: 64}}
batch_size: 12
epochs: 1
model:
  - Embedding: {num_embeddings: 50257, embedding_dim: 768}
  - LearnedPositions: {num_positions: 1024, embedding_dim: 768}
  - Repeat:
      times: 12
      layers:
        - Residual:
            - LayerNorm: {normalized_shape: 768}
            - CausalSelfAttention: {embed_dim: 768, num_heads: 12}
        - Residual:
            - LayerNorm: {normalized_shape: 768}
            - Linear: {in_features: 768, out_features: 3072}
            - GELU: {approximate: tanh}
            - Linear: {in_features: 3072, out_features: 768}
  - LayerNorm: {normalized_shape: 768}
  - Flatten: {start_dim: 0, end_dim: 1}
  - Linear: {in_features: 768, out_features: 50257, bias: false}
tied: [[0.weight, 28.weight]]
initializer: GPT2
loss: CrossEntropyLoss
optimizer: {AdamW: {lr: 2e-3, groups: [{parameters: "*.bias", weight_decay: 0}]}}
"""


def test_a_large_model_is_known_from_shapes_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPT-2 with 124 million parameters: nothing of its size is made, by NumPy or by torch."""
    table(tmp_path)  # what is imported takes memory, too

    def made(*arguments: object, **keywords: object) -> None:
        raise AssertionError(f"a tensor was filled: {arguments}, {keywords}")

    for name in ("uniform_", "normal_"):
        monkeypatch.setattr(torch.Tensor, name, lambda tensor, *_, **__: tensor if tensor.is_meta else made(tensor))
    tracemalloc.start()
    lines = table(tmp_path, GPT2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000
    start = lines.index("of one example: output, and products, about the multiplications of forward")
    assert lines[start - 2].split() == ["total", "124,439,808", "7,986,364,416"]
    assert lines[start:] == [
        "of one example: output, and products, about the multiplications of forward",
        "a parameter that several layers share counts once in the total",
        # 4 bytes each; both uses of the shared one have a gradient of their own, 50,257 x 768; Adam has two vectors.
        "memory: 498 MB of parameters, 807 MB of gradients, 996 MB of the optimizer's",
        "  vectors",
        "not measured above 1,000,000 parameters: what a step multiplies and keeps in",
        "  memory; how many steps are proven together, and in how much memory. --measure",
        "  makes a step to find out, which takes the time and the memory of one",
        "gradient check: every step",
    ]


def test_what_else_is_not_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(the_summary, "MOST_MEASURED", 41)
    monkeypatch.setattr(the_summary, "machine_memory", lambda: 503)
    assert table(tmp_path, CONFIG, "compiled=true", "gradient_check.every=0")[-6:] == [
        "memory: 0.00017 MB of parameters, 0.00017 MB of gradients, 0.00017 MB of the",
        "  optimizer's vectors; this machine has 0.0005 MB",
        "not measured above 41 parameters: what a step multiplies and keeps in memory;",
        "  what of it is compiled. --measure makes a step to find out, which takes the",
        "  time and the memory of one",
        "gradient check: none",
    ]
    monkeypatch.setattr(the_summary, "MOST_MEASURED", 42)
    assert "compiled: the whole step" in table(tmp_path, CONFIG, "compiled=true")


@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.stem)
def test_shapes_say_what_a_model_and_its_optimizer_take(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = load_config(path)
    model = config.new_model()
    optimizer = config.optimizer(model)
    made = [
        model.param_arena.nbytes,
        model.grad_arena.nbytes + sum(grad.nbytes for grad in model.ties.use_grads.values()),
        sum(vector.nbytes for vector in optimizer.vectors.values()),
    ]
    sizes = sizes_of(config)
    assert [size * model.dtype.itemsize for size in sizes[:3]] == made
    monkeypatch.setattr(the_summary, "MOST_MEASURED", 0)
    lines = summary(config).splitlines()
    end = lines.index("of one example: output, and products, about the multiplications of forward")
    assert TABLES[path.stem] == lines[end - 2].split()[1:]


#: Parameters, and multiplications of forward for one example.
TABLES = {
    "autoencoder": ["9,416", "9,216"],
    "brackets": ["8,218", "131,072"],
    "convnet": ["20,538", "1,069,376"],
    "denoising_autoencoder": ["24,928", "24,576"],
    "diabetes": ["193", "176"],
    "digits": ["4,810", "4,736"],
    "digits_convnet": ["6,138", "87,296"],
    "digits_encoder": ["18,026", "146,240"],
    "digits_lstm": ["11,402", "86,656"],
    "fashion_mnist": ["101,770", "101,632"],
    "fizzbuzz": ["1,666", "1,536"],
    "gpt": ["817,920", "55,853,056"],
    "huber": ["193", "176"],
    "lenet5": ["61,706", "416,520"],
    "lstm": ["124,032", "7,405,568"],
    "resnet": ["73,082", "5,814,784"],
    "spirals": ["352", "320"],
    "trace_relu": ["16", "16"],
    "unet": ["43,345", "759,808"],
    "vit": ["18,154", "306,496"],
    "word_vectors": ["64,000", "32,128"],
}


def stated_check(lines: list[str]) -> str:
    """What is said of the gradient check, as one line."""
    (start,) = (i for i, line in enumerate(lines) if line.startswith("gradient check: "))
    return " ".join(line.strip() for line in lines[start:]).removeprefix("gradient check: ")


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted((ROOT / "config").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_config_has_a_row_for_each_layer_and_the_models_parameters(path: Path) -> None:
    """It alone summarizes each config."""
    config = load_config(path)
    lines = summary(config).splitlines()
    assert max(map(len, lines)) <= 80
    (total,) = (line for line in lines if line.startswith("total"))
    assert total.split()[1] == f"{config.new_model().num_parameters:,}"
    names = [row.split()[1] for row in lines[3 : lines.index(total)]]
    # A branch of several layers is a Sequential, which has a row and isn't among the named layers.
    layers = [type(layer).__name__ for layer in config.named_layers().values()]
    assert [name for name in names if name != "Sequential"] == layers


def test_composites_and_shared_parameters() -> None:
    lines = summary(load_config(ROOT / "config" / "gpt.yaml")).splitlines()
    assert lines[3:8] == [
        "0 Embedding              64x128      16,384              nn.Embedding",
        "1 LearnedPositions       64x128       8,192              its own reference",
        "2 Residual               64x128                          its own reference",
        "  0 LayerNorm            64x128         256      16,384  nn.LayerNorm",
        "  1 CausalSelfAttention  64x128      66,048   5,275,648  nn.MultiheadAttention",
    ]
    assert "a parameter that several layers share counts once in the total" in lines


@pytest.mark.slow
def test_images() -> None:
    """It alone shows the layers of config/convnet.yaml."""
    lines = summary(load_config(ROOT / "config" / "convnet.yaml")).splitlines()
    assert lines[0] == "FashionMNIST: examples of 784"
    # 28 x 28 places with 3 x 3 weights of 16 channels; 1 / std and weight for each element.
    assert lines[3:6] == [
        "0 Unflatten     1x28x28                         nn.Unflatten",
        "1 Conv2d       16x28x28         144    112,896  nn.Conv2d",
        "2 BatchNorm2d  16x28x28          32     25,088  nn.BatchNorm2d",
    ]


def test_a_sequential_in_another(tmp_path: Path) -> None:
    lines = table(tmp_path, CONFIG, "model.1=Sequential: [Tanh, Residual: [Linear: {in_features: 8, out_features: 8}]]")
    assert [line.split("  ")[-1].strip() for line in lines[3:-9]] == [
        "nn.Linear", "its layers", "nn.Tanh", "its own reference", "nn.Linear", "nn.Linear"
    ]  # fmt: skip
    assert [line[:12].rstrip() for line in lines[4:8]] == [
        "1 Sequential", "  0 Tanh", "  1 Residual", "    0 Linear"
    ]  # fmt: skip


def test_a_name_that_is_wider_than_its_column_stands_below(tmp_path: Path) -> None:
    layer = "WeightNorm: {layer: {Linear: {in_features: 8, out_features: 8}}}"
    lines = table(tmp_path, CONFIG, f"model.1=Residual: [Residual: [Residual: [{layer}, Tanh]]]")
    assert lines[7:10] == [
        "      0 WeightNorm       8          80        96",
        "                                           nn.utils.parametrizations.weight_norm",
        "      1 Tanh             8                        nn.Tanh",
    ]


OWN = """
from dataclasses import dataclass

import numpy as np
from nn_manual import Layer, Linear


@dataclass(eq=False)
class Squash(Layer):
    def forward(self, input):
        return input / (1 + np.abs(input)), input

    def backward(self, saved, grad_output):
        return grad_output / (1 + np.abs(saved)) ** 2


@dataclass(eq=False)
class Both(Layer):
    first: Linear
    second: Linear

    def output_shape(self, input_shape):
        return self.second.output_shape(self.first.output_shape(input_shape))

    def forward(self, input):
        inner, saved = self.first.forward(input)
        output, other = self.second.forward(inner)
        return output, (saved, other)

    def backward(self, saved, grad_output):
        return self.first.backward(saved[0], self.second.backward(saved[1], grad_output))
"""


def test_layers_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "my_layers.py").write_text(OWN)
    first, second = (f"{{Linear: {{in_features: {n}, out_features: {m}}}}}" for n, m in ((8, 4), (4, 8)))
    both = f"my_layers:Both: {{first: {first}, second: {second}}}"
    text = CONFIG.replace("  - Tanh\n", f"  - my_layers:Squash\n  - {both}\n")
    lines = summary(load_config(write_config(tmp_path, text))).splitlines()
    assert lines[4:8] == [
        "1 Squash              8                        differences",
        "2 Both                8                        nothing",
        "  first Linear        4          36        32  nn.Linear",
        "  second Linear       ?          40            nn.Linear",  # it doesn't say what its second layer gets
    ]
    assert max(map(len, lines)) <= 80
    notes = [line for line in lines[8:] if not line.startswith("  ")][-5:-3]
    assert notes[0].startswith("1 Squash is checked against its own forward in float64, the gradients with")
    assert notes[1].startswith("2 Both can't be checked: it is made of layers and has no reference:")
    assert "isn't known" in stated_check(lines)


def test_data_that_must_be_read(tmp_path: Path) -> None:
    text = CONFIG.replace(
        "{Spirals: {num_examples: 60, turns: 0.5, validation_fraction: 0.2}}",
        "{Arrays: {file: data.csv, target: y, task: classification}}",
    )
    with pytest.raises(DataError, match=r"/data.csv: No such file or directory$"):
        table(tmp_path, text)
    (tmp_path / "data.csv").write_text("a,b,y\n1,2,0\n3,4,1\n")
    assert table(tmp_path, text)[0] == "Arrays: examples of 2"
    (tmp_path / "data.csv").write_text("a,b,c,y\n1,2,3,0\n3,4,3,1\n")
    with pytest.raises(ConfigError, match=r"small.yaml:5:5: Linear takes in_features=2 "):
        table(tmp_path, text)


def test_data_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard input has nothing left for a second time."""
    text = CONFIG.replace(
        "{Spirals: {num_examples: 60, turns: 0.5, validation_fraction: 0.2}}",
        "{Arrays: {file: -, target: y, task: classification}}",
    )
    content = "a,b,y\n" + "1,2,0\n3,4,1\n" * 30
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    assert table(tmp_path, text) == ["Arrays: examples of 2", *table(tmp_path)[1:]]


def test_a_model_larger_than_the_memory(tmp_path: Path) -> None:
    wide = 10**9
    settings = [f"model.0.Linear.out_features={wide}", f"model.2.Linear.in_features={wide}"]
    lines = summary(load_config(write_config(tmp_path), settings), measure=True).splitlines()
    assert lines[3].split()[2:] == ["1000000000", "3,000,000,000", "2,000,000,000", "nn.Linear"]
    unknown = r"every step; how many are proven together isn't known: .* with their gradients, the model takes 37 GiB"
    assert re.match(unknown, stated_check(lines))


def test_long_names_are_cut(tmp_path: Path) -> None:
    (tmp_path / "my_layers.py").write_text(OWN.replace("Squash", "Squash" * 15))
    lines = summary(load_config(write_config(tmp_path, CONFIG.replace("Tanh", f"my_layers:{'Squash' * 15}"))))
    row = lines.splitlines()[4]
    assert len(row) <= 80
    assert row.startswith("1 SquashSquash")
    assert "..." in row


def test_the_batch_size_does_not_matter(tmp_path: Path) -> None:
    end = -4  # without what a step of so many takes
    assert table(tmp_path, CONFIG, "batch_size=1")[:end] == table(tmp_path)[:end]


def test_a_run_of_it_leaves_torch_alone_until_it_is_needed(tmp_path: Path) -> None:
    program = "import sys, nn_manual.use.summary; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "False\n"
