"""Fashion-MNIST by torch alone, as its users write it.

`python -m benchmarks.torch_fashion EPOCHS BATCH_SIZE LR MOMENTUM` trains the net of
config/fashion_mnist.yaml, eager, the data in memory, and evaluates it after each epoch. It prints the seconds that the
steps took, and the last accuracy, as JSON. Nothing of nn_manual is imported: its import would count.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from pathlib import Path

import numpy as np
import torch

#: Where config/fashion_mnist.yaml has it.
FOLDER = Path("/usr/share/datasets/fashion-mnist")


def main(epochs: str, batch_size: str, lr: str, momentum: str) -> None:
    """Train, and print the two figures."""
    torch.manual_seed(0)
    images, labels = _part("train")
    mean, std = images.mean(0), images.std(0)
    std[std == 0] = 1
    test_images, test_labels = _part("t10k")
    images, test_images = (images - mean) / std, (test_images - mean) / std
    net = torch.nn.Sequential(torch.nn.Linear(784, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10))
    loss = torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=float(lr), momentum=float(momentum), fused=True)
    seconds, accuracy = 0.0, 0.0
    for _ in range(int(epochs)):
        start = time.perf_counter()
        for rows in torch.split(torch.randperm(len(images)), int(batch_size)):
            optimizer.zero_grad()
            loss(net(images[rows]), labels[rows]).backward()
            optimizer.step()
        seconds += time.perf_counter() - start
        with torch.no_grad():
            accuracy = (net(test_images).argmax(1) == test_labels).float().mean().item()
    print(json.dumps([seconds, accuracy]))


def _part(name: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Images (examples, 784) and their labels."""
    images = np.frombuffer(_bytes(f"{name}-images-idx3-ubyte")[16:], np.uint8).reshape(-1, 784)
    labels = np.frombuffer(_bytes(f"{name}-labels-idx1-ubyte")[8:], np.uint8)
    return torch.from_numpy(images.astype(np.float32)), torch.from_numpy(labels.astype(np.int64))


def _bytes(name: str) -> bytes:
    file = FOLDER / name
    return file.read_bytes() if file.exists() else gzip.decompress(Path(f"{file}.gz").read_bytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
