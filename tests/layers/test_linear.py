import re

import numpy as np
import pytest
import torch

from nn_manual import Linear, Sequential


@pytest.mark.parametrize(
    ("in_features", "out_features", "message"),
    [
        (0, 1, "in_features must be at least 1, not 0"),
        (1, -2, "out_features must be at least 1, not -2"),
        (0, 0, "in_features must be at least 1, not 0"),
    ],
)
def test_sizes_out_of_range(in_features: int, out_features: int, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        Linear(in_features, out_features)


@pytest.mark.parametrize("shape", [(), (2,), (5, 4), (3, 5, 2)])
def test_an_input_of_another_size_is_refused(shape: tuple[int, ...]) -> None:
    message = f"Linear takes in_features=3 in the last dimension, the input has shape {shape}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Linear(3, 2).output_shape(shape)
    message = message.replace("Linear", "0 (Linear)")
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Sequential(Linear(3, 2)).forward(np.ones(shape, np.float32))


def test_shapes_are_torchs() -> None:
    for bias in (True, False):
        ours, theirs = Linear(3, 2, bias=bias), torch.nn.Linear(3, 2, bias=bias)
        assert list(ours.parameter_shapes().items()) == [(n, tuple(p.shape)) for n, p in theirs.named_parameters()]
    assert Linear(3, 2).num_parameters == 8
    assert Linear(3, 2, bias=False).num_parameters == 6


def test_a_small_case_by_hand() -> None:
    linear = Linear(2, 1)
    Sequential(linear, dtype="float64").load_state_dict({"0.weight": np.array([[2.0, 3.0]]), "0.bias": np.array([5.0])})
    output, saved = linear.forward(np.array([[1.0, 10.0], [100.0, 0.0]]))
    assert output.tolist() == [[37.0], [205.0]]
    assert linear.backward(saved, np.array([[1.0], [-2.0]])).tolist() == [[2.0, 3.0], [-4.0, -6.0]]
    assert linear.grad.weight.tolist() == [[1.0 - 200.0, 10.0]]
    assert linear.grad.bias.tolist() == [-1.0]


def test_default_parameters_are_drawn_from_torchs_distribution() -> None:
    """Uniform in ±bound, bound = 1/sqrt(in_features). Of 1,000 draws, the fewest here, the largest falls short of 0.99
    bound with probability 4e-5; three standard errors are 9% of the mean square, and 6% of bound for the mean.
    """
    for in_features, out_features in [(16, 4000), (64, 1000)]:
        linear = Linear(in_features, out_features)
        Sequential(linear, seed=3, dtype="float64")
        torch.manual_seed(0)
        theirs = torch.nn.Linear(in_features, out_features)
        for name, array in vars(linear.param).items():
            reference = getattr(theirs, name).detach().numpy()
            bound = 1 / np.sqrt(in_features)
            assert 0.99 * bound < np.abs(array).max() <= bound
            assert np.abs(reference).max() <= bound
            assert np.mean(array**2) == pytest.approx(bound**2 / 3, rel=0.09)
            assert abs(array.mean()) < 0.06 * bound
            assert len(np.unique(array)) == array.size
