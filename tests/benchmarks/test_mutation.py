"""The mutation score on a sample: mistakes are made where they should be, caught, and blamed on the right tensor."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from benchmarks.mutation import smallest as smallest_error
from benchmarks.mutation.executed import Executed
from benchmarks.mutation.handwritten import LOSSES
from benchmarks.mutation.handwritten_layers import LAYERS
from benchmarks.mutation.mutants import Mutant, mutants, previous
from benchmarks.mutation.score import Verdict, score, verdict
from benchmarks.mutation.smallest import Fault, smallest, tensors
from benchmarks.mutation.subjects import LAYER_HELPERS, LOSS_HELPERS, Subject, Trial, firsts_with_direction, subjects
from benchmarks.mutation.survivors import SURVIVORS
from every_component import family_of

from nn_manual import layers
from nn_manual.arrays import Array
from nn_manual.check.catalogue.cases import CaseResult
from nn_manual.check.judge.report import GradientReport
from nn_manual.layers import Composite, Layer, LayerWithBuffers, LayerWithLengths, LayerWithNoise, Linear, ReLU, Tanh
from nn_manual.layers.base import LayerDefaults
from nn_manual.losses import CrossEntropyLoss, Loss, MSELoss
from nn_manual.losses.base import LossDefaults
from nn_manual.model import Sequential
from nn_manual.optim import Optimizer, Scheduler, SequentialLR
from nn_manual.optim.l2 import WithL2
from nn_manual.registry import components

CONTRACTS: set[type] = {
    *(Layer, LayerDefaults, Composite, LayerWithBuffers, LayerWithLengths, LayerWithNoise),
    *(Loss, LossDefaults, Optimizer, Scheduler),
}

SUBJECTS = {subject.owner: subject for subject in subjects()}

#: Classes that have the kinds of mistakes which few classes have.
RARE = {layers.ELU, layers.GELU, layers.PReLU, layers.RMSNorm, layers.TimePool, ReLU, CrossEntropyLoss}


@functools.cache
def made(owner: type) -> list[Mutant]:
    """All mutants of a class: of some, that takes seconds."""
    return list(SUBJECTS[owner].mutants())


def test_every_component_with_a_formula_is_a_subject() -> None:
    owners = [owner for kind in (Layer, Loss, Optimizer, Scheduler) for owner in components(kind).values()]
    families = {family_of(owner): owner for owner in reversed(owners)}  # Conv1d has all formulas of Conv2d
    paddings = {layers.ConstantPad1d, layers.ReflectionPad1d, layers.ReplicationPad1d, layers.ZeroPad1d}
    of_others: set[type] = {layers.AvgPool3d, layers.BatchNorm2d}  # as AvgPool1d, BatchNorm1d
    of_others |= {layers.Dropout1d, layers.FeatureAlphaDropout, layers.Softmax2d, layers.StochasticDepth}
    of_others |= {layers.PaddedLSTM, layers.PaddedRNN, layers.PaddedTimePool, layers.TransformerEncoderLayer}
    of_others |= {layers.MultiheadAttention, layers.PaddedMultiheadAttention}
    assert SUBJECTS.keys() == {*families.values(), *paddings, Sequential} - of_others


@pytest.mark.parametrize("owner", list(SUBJECTS)[::8])
def test_a_mutant_is_caught_and_named(owner: type) -> None:
    """One of every eighth class, from the middle; `scripts/benchmark.py check mutants` takes all of all classes."""
    keys = {each: (f"{owner.__name__}.{each.method}", each.line, each.mutated) for each in made(owner)}
    unproven = [each for each, key in keys.items() if key not in SURVIVORS]
    result = score(SUBJECTS[owner], [unproven[len(unproven) // 2]])
    assert result.passed, f"missed {result.missed}, misnamed {result.misnamed}"
    assert result.num_caught + len(result.raised) == 1


def test_a_new_layer_is_a_subject_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layers, "Doubled", Doubled, raising=False)
    monkeypatch.setattr(Doubled, "__module__", layers.__name__)
    subject = next(subject for subject in subjects() if subject.owner is Doubled)
    generated = list(subject.mutants())
    assert {mutant.method for mutant in generated} == {"forward", "backward"}
    assert "by hand" not in {mutant.operator for mutant in generated}
    assert score(subject, generated[:4]).num_caught == 4


def test_every_kind_of_mistake_is_made_in_every_method_that_computes() -> None:
    """And each proof is of a mutant that exists, in a sample of the classes; `scripts/benchmark.py check mutants` takes
    all.
    """
    sample = {*list(SUBJECTS)[::6], *RARE}
    assert {mutant.operator for owner in sample for mutant in made(owner)} == {
        "sign", "factor 1.001", "factor 2", "eps", "transpose", "stale", "another value", "dropped term",
        "dropped line", "dropped function", "swapped operands", "operation", "comparison", "condition", "axis",
        "mean for sum", "sum for mean", "argmin for argmax", "exp for expm1", "expm1 for exp", "minimum for maximum",
        "by hand",
    }  # fmt: skip - a list of words
    for owner in sample:
        generated = {mutant.method for mutant in made(owner) if mutant.operator != "by hand"}
        assert generated == methods_that_compute(owner), owner
        existing = {(f"{owner.__name__}.{m.method}", m.line, m.mutated) for m in made(owner)}
        assert existing >= {proof for proof in SURVIVORS if proof[0].startswith(f"{owner.__name__}.")}, owner


def methods_that_compute(owner: type) -> set[str]:
    computing = {
        *("forward", "backward", "backward_parameters", "backward_target", *LAYER_HELPERS, *LOSS_HELPERS),
        *("infer", "derivative", "term", "_affine", "update_buffers", "_move", "_move_running"),
        *("counted", "_labels", "_q"),
        *("run", "summed", "joined"),
        *("coefficients", "decay_factor", "decay", "direction", "move", "_ratio"),
        *("lr", "observe", "momentum", "_phases", "_at", "_between"),
    }
    if owner is Sequential:  # the check sees those of layers; tests/model/test_sequential.py has the model's
        computing -= {"infer", "update_buffers"}
    if owner is SequentialLR:  # none of its examples moves a momentum; tests/optim/test_schedulers.py has one
        computing -= {"momentum"}
    others = {base for base in owner.__mro__[1:] if base in SUBJECTS}  # whose methods are mutated there
    own = [vars(base) for base in owner.__mro__ if base not in CONTRACTS | others]
    found = computing & {name for members in own for name, value in members.items() if callable(value)}
    if issubclass(owner, WithL2) and owner not in firsts_with_direction():
        found.discard("direction")  # which is mutated there
    if not issubclass(owner, Loss | Layer):
        return found
    kind = Loss if issubclass(owner, Loss) else Layer
    before = list(itertools.takewhile(lambda other: other is not owner, components(kind).values()))
    before = [other for other in before if not issubclass(other, owner)]
    return {name for name in found if all(getattr(owner, name) is not getattr(other, name, None) for other in before)}


@pytest.mark.parametrize(("owner", "tables"), [*LAYERS.items(), *LOSSES.items()])
def test_ten_mistakes_by_hand(owner: type, tables: dict[str, dict[str, Any]]) -> None:
    by_hand = {str(mutant) for mutant in made(owner) if mutant.operator == "by hand"}
    assert len(by_hand) == sum(map(len, tables.values())) >= 10


@dataclass(eq=False)
class Doubled(Layer):
    """A layer to be mutated here: twice the input, by way of a local name."""

    def forward(self, input: Array) -> tuple[Array, None]:
        return input + input, None

    def reference(self, input: Any) -> Any:
        return 2 * input

    def backward(self, saved: None, grad_output: Array) -> Array:  # noqa: ARG002 - the contract's signature
        twice = 2 * grad_output
        return twice  # noqa: RET504 - the local name is what is looked at


RETURNS = frozenset({"grad_input"})


def run(layer_class: type[Any]) -> None:
    layer_class().backward(None, np.ones((2, 3)))


def test_the_mutants_of_a_method_line_by_line() -> None:
    found = list(mutants(Doubled, "backward", (RETURNS,), RETURNS, run))
    assert [mutant.mutated for mutant in found] == [
        "twice = -(2 * grad_output)",
        "twice = 2 * grad_output * 1.001",
        "twice = 2 * grad_output * 2",
        "twice = 2 * grad_output + 1e-08",
        "twice = (2 * grad_output).T",
        "twice = previous(self, 2 * grad_output)",
        "twice = 2",
        "twice = grad_output",
        "twice = 2 / grad_output",
        "twice = -2 * grad_output",
        "twice = 2 * 1.001 * grad_output",
        "twice = 2 * 2 * grad_output",
        "twice = (2 + 1e-08) * grad_output",
        "twice = 2 * -grad_output",
        "twice = 2 * (grad_output * 1.001)",
        "twice = 2 * (grad_output * 2)",
        "twice = 2 * (grad_output + 1e-08)",
        "twice = 2 * grad_output.T",
        "twice = 2 * previous(self, grad_output)",
        "return -twice",
        "return twice * 1.001",
        "return twice * 2",
        "return twice + 1e-08",
        "return twice.T",
        "return previous(self, twice)",
        "return grad_output",
    ]
    assert {mutant.tensors for mutant in found} == {RETURNS}
    wrong = found[0].changed()
    assert type(wrong).__name__ == "Doubled"
    np.testing.assert_array_equal(wrong.backward(None, np.ones(3)), [-2, -2, -2])
    np.testing.assert_array_equal(Doubled().backward(None, np.ones(3)), [2, 2, 2])


@dataclass(eq=False)
class Counts(Doubled):
    """A layer whose method may end before its last line."""

    total: float = 0.0

    def count(self, input: Array) -> None:
        if not input.size:
            return
        self.total += float(input.sum())


def test_a_return_of_nothing_computes_nothing() -> None:
    found = list(mutants(Counts, "count", (), RETURNS, lambda changed: changed().count(np.ones(3))))
    assert {mutant.tensors for mutant in found} == {RETURNS}
    assert "self.total -= float(input.sum())" in {mutant.mutated for mutant in found}


def test_a_method_that_no_example_runs_has_no_mutants() -> None:
    with pytest.raises(ValueError, match="no example of Counts runs its count"):
        next(mutants(Counts, "count", (), RETURNS, lambda changed: changed().forward(np.ones(3))))


class Filled(Doubled):
    """A layer that makes arrays of the shape of another."""

    def forward(self, input: Array) -> tuple[Array, None]:
        output = np.zeros_like(input)
        output += np.full_like(input, 3)
        output += np.arange(len(input))[np.newaxis, :][0]
        return output, None


def test_a_multiple_of_zeros_is_no_mistake_nor_is_another_array_of_the_shape() -> None:
    output = frozenset({"output"})
    found = list(mutants(Filled, "forward", (output,), output, lambda changed: changed().forward(np.ones(3))))
    mutated = [mutant.mutated for mutant in found if mutant.line != "return (output, None)"]
    assert mutated == [
        "output = np.zeros_like(input) + 1e-08",
        "pass",
        "output -= np.full_like(input, 3)",
        "output += -np.full_like(input, 3)",
        "output += np.full_like(input, 3) * 1.001",
        "output += np.full_like(input, 3) * 2",
        "output += np.full_like(input, 3) + 1e-08",
        "output += previous(self, np.full_like(input, 3))",
        "pass",
        "output -= np.arange(len(input))[np.newaxis, :][0]",
        "output += previous(self, np.arange(len(input))[np.newaxis, :][0])",  # which row, isn't looked at
        "output += np.arange(len(input))[np.newaxis, :].T[0]",
        "output += len(input)[np.newaxis, :][0]",
    ]


class Moved(Doubled):
    """A layer that gives on what its base computes."""

    def forward(self, input: Array) -> tuple[Array, None]:
        return super().forward(input + 1)


def test_a_mistake_in_what_another_method_makes_counts_for_all_of_it() -> None:
    output, grad_input = frozenset({"output"}), frozenset({"grad_input"})
    both = output | grad_input
    found = list(mutants(Moved, "forward", (output, grad_input), both, lambda changed: changed().forward(np.ones(3))))
    assert {mutant.tensors for mutant in found} == {both}
    (wrong,) = (mutant.changed for mutant in found if mutant.mutated == "return super().forward(input - 1)")
    np.testing.assert_array_equal(wrong().forward(np.ones(3))[0], [0, 0, 0])
    np.testing.assert_array_equal(Moved().forward(np.ones(3))[0], [4, 4, 4])


def test_a_mistake_counts_for_what_comes_of_its_line() -> None:
    tensors_of = {str(mutant): mutant.tensors for mutant in made(Linear)}
    assert tensors_of["Linear.backward_parameters, sign: input = -saved"] == {"grad_weight"}
    assert tensors_of["Linear.backward_parameters, sign: sum_rows(-grad_output, out=self.grad.bias)"] == {"grad_bias"}
    assert tensors_of["Linear.backward, dropped line: pass"] == {"grad_weight", "grad_bias", "grad_input"}
    result = "with_leading(output, input.shape)"
    assert tensors_of[f"Linear.forward, sign: return (-{result}, input)"] == {"output"}
    assert tensors_of[f"Linear.forward, sign: return ({result}, -input)"] == {"grad_weight", "grad_bias", "grad_input"}


def test_a_mistake_counts_for_all_that_another_backward_writes() -> None:
    owner = layers.PaddedGRU
    changed = next(mutant for mutant in made(owner) if mutant.method == "backward")
    assert changed.mutated == "grad_output = -kept(grad_output, mask).swapaxes(0, 1)"
    parameters = {name for layer, _ in owner.examples() for name in layer.parameter_shapes()}
    assert changed.tensors == {"grad_input", *(f"grad_{name}" for name in parameters)}
    tensors_of = {mutant.mutated: mutant.tensors for mutant in made(layers.SpectralNorm)}
    assert "grad_bias" in tensors_of["grad_input = inner.backward(saved_of_layer, -grad_output)"]
    buffers = {"parametrizations.weight.0._u", "parametrizations.weight.0._v"}
    assert buffers < tensors_of["left = self._normalize(matrix @ -right)"]


def test_what_a_check_lets_through_is_missed_and_what_it_misnames_is_reported() -> None:
    right = Mutant(ReLU, "backward", "none", "", "", RETURNS, ReLU)
    result = score(SUBJECTS[ReLU], [right])
    assert result.missed == [right]
    assert not result.passed

    wrong = next(mutant for mutant in made(ReLU) if mutant.mutated.startswith("return -"))
    blamed = Mutant(ReLU, "backward", "sign", "", "", frozenset({"output"}), wrong.changed)
    result = score(SUBJECTS[ReLU], [blamed])
    assert result.num_caught == 1
    assert result.misnamed == [(blamed, "0 (ReLU): 0.grad_input")]
    assert not result.passed


def test_a_mutant_from_which_no_model_can_be_made_has_raised_its_own_error() -> None:
    turned = "reshape(-1, self._moved_shape[0])"  # the first u and v are made with it
    raising = next(mutant for mutant in made(layers.SpectralNorm) if mutant.mutated.endswith(turned))
    assert score(SUBJECTS[layers.SpectralNorm], [raising]).raised == [raising]


def test_a_mistake_that_needs_lengths_is_caught_in_the_class_that_has_some() -> None:
    without = "tied = input == output[:, np.newaxis]"  # where padding equals the largest number
    wrong = next(mutant for mutant in made(layers.TimePool) if mutant.mutated == without)
    subject = SUBJECTS[layers.TimePool]
    trials = subject.trials(wrong.changed, "float32")
    failed = [trial.label for trial in trials if isinstance(verdict(wrong, trial), Verdict)]
    assert failed
    assert {label.partition(" ")[2] for label in failed} == {"(PaddedTimePool)"}


def test_a_trial_that_does_not_run_the_mistake_passes_and_is_left_out() -> None:
    subject = SUBJECTS[layers.AvgPool1d]
    executed = Executed(subject)
    in_branch = [each for each in made(layers.AvgPool1d) if each.lines and not all(runs_in(each, executed))]
    assert in_branch
    for mutant in in_branch[::8]:
        found = [verdict(mutant, trial) for trial in subject.trials(mutant.changed, "float32")]
        assert not any(result and not runs for result, runs in zip(found, runs_in(mutant, executed), strict=True))
        whole, less = (score(subject, [mutant], given) for given in (None, executed))
        assert (whole.num_caught, whole.missed, whole.misnamed) == (less.num_caught, less.missed, less.misnamed)


def runs_in(mutant: Mutant, executed: Executed) -> list[bool]:
    """Whether each trial runs the mistake."""
    num_trials = len([*SUBJECTS[mutant.owner].trials(mutant.owner, "float32")])
    return [executed.runs(mutant, "float32", number) for number in range(num_trials)]


def test_a_mutant_needs_no_more_trials_of_a_dtype_once_it_has_failed_there() -> None:
    wrong = next(mutant for mutant in made(ReLU) if mutant.mutated.startswith("return -"))
    ran: list[tuple[str, str]] = []

    def counted(trial: Trial, dtype: str) -> Iterator[CaseResult]:
        for case in trial.cases:
            ran.append((dtype, trial.label))
            yield case

    def trials(owner: Any, dtype: str) -> Iterator[Trial]:
        for trial in SUBJECTS[ReLU].trials(owner, dtype):
            yield Trial(counted(trial, dtype), trial.label, trial.prefix)

    result = score(Subject(ReLU, {}, trials), [wrong], only_first=True)
    assert result.num_caught == 1
    assert result.passed
    assert ran == [("float32", "0 (ReLU)"), ("float64", "2 (ReLU)")]
    ran.clear()
    score(Subject(ReLU, {}, trials), [wrong])
    assert len(ran) == 4 * len(ReLU.examples())  # alone and in a net, in two dtypes


def test_a_proof_does_not_excuse_a_mutant_that_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = next(mutant for mutant in made(ReLU) if mutant.mutated.startswith("return -"))
    monkeypatch.setitem(SURVIVORS, (f"ReLU.{wrong.method}", wrong.line, wrong.mutated), "no proof")
    result = score(SUBJECTS[ReLU], [wrong])
    assert result.wrongly_proven == [wrong]
    assert not result.passed


def test_previous_gives_what_was_there_before() -> None:
    keeper = Doubled()
    first, second = np.ones(3), np.zeros(3)
    assert previous(keeper, first) is first
    first[...] = 5  # a copy was kept
    np.testing.assert_array_equal(previous(keeper, second), [1, 1, 1])
    assert previous(keeper, np.zeros(4)).shape == (4,)


@pytest.mark.parametrize(
    ("place", "expected"),
    [("everywhere", [[1.5, -6], [0, 3]]), ("one row", [[1.5, -6], [0, 2]]), ("one element", [[1, -6], [0, 2]])],
)
def test_a_fault_is_where_the_largest_magnitude_is(place: str, expected: list[list[float]]) -> None:
    right = np.array([[1.0, -4], [0, 2]])
    fault = Fault(place, 0.5)
    np.testing.assert_array_equal(fault(right), expected)
    assert fault.made
    fault.made = None
    fault(np.zeros((2, 2)))
    assert fault.made is False


@pytest.mark.parametrize(
    ("owner", "tensor", "dtype", "error"),
    [(Tanh, "grad_input", "float32", 2e-5), (MSELoss, "grad_target", "float64", 2e-12)],
)
def test_twice_the_tolerance_is_always_caught_and_a_tenth_never(
    owner: Any, tensor: str, dtype: str, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(smallest_error.ERRORS, dtype, (error, error / 20))
    result = smallest(owner, tensor, dtype)
    assert result.error == error
    assert result.num_errors > 100


@pytest.mark.parametrize(("twice_is_caught", "error", "num_alone"), [(True, np.inf, 0), (False, 1e-10, 3)])
def test_an_error_that_is_not_caught_counts_unless_twice_the_gradient_is_not_caught_either(
    twice_is_caught: bool, error: float, num_alone: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_case(owner: type[Tanh], dtype: str) -> Iterator[CaseResult]:
        grad_output, output = np.array([1.0, -2]), np.array([0.5, 0.25])
        is_twice = np.array_equal(owner().backward(grad_output, output), 2 * Tanh().backward(grad_output, output))
        report = GradientReport((), problem="wrong") if is_twice and twice_is_caught else None
        yield CaseResult(dtype, num_tensors=1, worst=0, failure=report)

    monkeypatch.setattr(smallest_error, "_cases", one_case)
    monkeypatch.setitem(smallest_error.ERRORS, "float64", (1e-10,))
    assert smallest(Tanh, "grad_input", "float64")[3:] == (error, 3 if num_alone else 1, num_alone)


def test_the_tensors_of_a_class() -> None:
    assert tensors(Linear) == ["grad_weight", "grad_bias", "grad_input"]
    assert tensors(MSELoss) == ["grad_prediction", "grad_target"]
    assert tensors(CrossEntropyLoss) == ["grad_prediction"]
