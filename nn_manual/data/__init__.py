"""Data: what a config can name, loaded into a training and a validation part, and batches of it."""

from nn_manual.data.arrays_dataset import Arrays
from nn_manual.data.base import Dataset, Examples, Split
from nn_manual.data.batches import batches, num_batches
from nn_manual.data.bundled import Diabetes, Digits, Iris
from nn_manual.data.generated import Brackets, LinearTeacher, Spirals
from nn_manual.data.idx import MNIST, FashionMNIST
from nn_manual.data.middle_word import MiddleWord
from nn_manual.data.reconstruction import Reconstruction
from nn_manual.data.split import split_examples
from nn_manual.data.text import Text
from nn_manual.data.transform import Names, Standardization, Transform

__all__ = [
    "MNIST",
    "Arrays",
    "Brackets",
    "Dataset",
    "Diabetes",
    "Digits",
    "Examples",
    "FashionMNIST",
    "Iris",
    "LinearTeacher",
    "MiddleWord",
    "Names",
    "Reconstruction",
    "Spirals",
    "Split",
    "Standardization",
    "Text",
    "Transform",
    "batches",
    "num_batches",
    "split_examples",
]
