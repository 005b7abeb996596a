"""A config for a text: a GPT that predicts the next character."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nn_manual.data import Text
from nn_manual.use.proposal import Line, in_yaml


def of_text(file: Path, shown: str) -> Iterator[Line]:
    """Its lines. `shown` is the file as the config names it. Raises DataError for a file that Text doesn't take."""
    context = 64
    split = Text(file, context=context).load(0, np.dtype(np.float32))
    assert split.num_classes is not None  # of a text
    size, characters = 128, split.num_classes
    yield Line(f"data: {{Text: {{file: {in_yaml(shown)}, context: {context}}}}}", f"{characters} different characters")
    yield Line("batch_size: 12")
    yield Line("epochs: 4", "more of them make better text")
    yield Line("model:")
    yield Line(f"  - Embedding: {{num_embeddings: {characters}, embedding_dim: {size}}}", "a vector for each character")
    yield Line(f"  - LearnedPositions: {{num_positions: {context}, embedding_dim: {size}}}")
    yield Line("  - Repeat:")
    yield Line("      times: 4", "more of them make a better model, and a slower one")
    yield Line("      layers:")
    yield Line("        - Residual:")
    yield Line(f"            - LayerNorm: {{normalized_shape: {size}}}")
    yield Line(f"            - CausalSelfAttention: {{embed_dim: {size}, num_heads: 4}}")
    yield Line("        - Residual:")
    yield Line(f"            - LayerNorm: {{normalized_shape: {size}}}")
    yield Line(f"            - Linear: {{in_features: {size}, out_features: {4 * size}}}")
    yield Line("            - GELU: {approximate: tanh}")
    yield Line(f"            - Linear: {{in_features: {4 * size}, out_features: {size}}}")
    yield Line(f"  - LayerNorm: {{normalized_shape: {size}}}")
    yield Line("  - Flatten: {start_dim: 0, end_dim: 1}", "one prediction for each character of each example")
    yield Line(f"  - Linear: {{in_features: {size}, out_features: {characters}, bias: false}}")
    yield Line("tied: [[0.weight, 12.weight]]", "what reads a character also predicts it")
    yield Line("initializer: GPT2")
    yield Line("loss: CrossEntropyLoss")
    yield Line("optimizer: {AdamW: {lr: 2e-3, betas: [0.9, 0.95], weight_decay: 0.1}}")
    yield Line("clip_grad_norm: 1")
