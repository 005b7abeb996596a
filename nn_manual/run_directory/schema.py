"""The objects that are read back from a run directory: the type of each key. Anybody may have written them.

docs/runs.md says what each key means. A key that isn't here is passed over, so that runs of other versions can be read.
The file is long because it is a list, in which each object stands beside those that it is made of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, NotRequired

from pydantic import AfterValidator, Field
from typing_extensions import TypedDict

from nn_manual.run_directory.values import (
    SHA256,
    Bool,
    Count,
    Finite,
    Fraction,
    NotNaN,
    NotNegative,
    Positive,
    Real,
    Size,
    Text,
    Threads,
)


def _all_or(few: frozenset[str], keys: frozenset[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A check that an object has all of the `keys`, or only the `few` of them."""

    def check(value: dict[str, Any]) -> dict[str, Any]:
        if value.keys() & keys not in (keys, few):
            raise ValueError(f"lacks {', '.join(sorted(keys - value.keys()))}")
        return value

    return check


class Figures(TypedDict, total=False):
    """The figures of a checked step: how many tensors were compared, and the name of the worst one; for that one,
    max|ours - torch|, the same divided by max|torch|, the most that this may be, and the error in ULPs.
    """

    step: Count
    tensors: Count
    worst: Text
    absolute: Size | None
    relative: Size | None
    tolerance: Size | None
    ulps: Size | None


class Line(Figures, total=False):
    """A line of gradients.jsonl without its lists. It stands for `num_steps` checked steps from `first_step` to
    `last_step`, and `step` is the one with the worst error.
    """

    first_step: Count
    last_step: Count
    num_steps: Count


class LineVerdict(TypedDict):
    """What becomes of the line's lists: how many tensors were beyond their tolerance by rounding, and the first tensor
    that was wrong, empty where none was.
    """

    rounding: Count
    mismatch: Text


class StepRecord(Figures, total=False):
    """What a checkpoint keeps of a checked step."""

    rounding: list[Text]
    not_judged: list[Text]


class Epoch(TypedDict, total=False):
    """A line of metrics.jsonl. Losses are means over the epoch's examples. A loss whose reduction is sum is a sum over
    them, and the line also has their number. Bits per character are the mean cross-entropy divided by ln 2.
    Accuracy is a fraction of 1, lr the learning rate of the epoch's last step, seconds the time since the run's start.
    """

    epoch: Count
    step: Count
    train_loss: Real | None
    num_train_examples: Count
    train_bits_per_character: Real | None
    validation_loss: Real | None
    num_validation_examples: Count
    validation_bits_per_character: Real | None
    validation_accuracy: Fraction | None
    lr: Real | None
    seconds: NotNegative | None


#: What each line of metrics.jsonl has, whatever the run.
OF_EACH_EPOCH = frozenset({"epoch", "step", "train_loss", "lr", "seconds"})


class Best(TypedDict, total=False):
    """The lowest validation loss, and where it was; empty before the first one."""

    epoch: Count
    step: Count
    validation_loss: Finite


def _worst(step: StepRecord) -> StepRecord:
    """Check that the worst step is empty, before the first one, or has all that the end of a run says of it, with a
    tolerance by which the error can be divided.
    """
    if step:
        if missing := sorted({"step", "worst", "relative", "tolerance"} - step.keys()):
            raise ValueError(f"lacks {', '.join(missing)}")
        if step["relative"] is None or not (step["tolerance"] or 0) > 0:
            raise ValueError("has no relative error, or no tolerance above 0")
    return step


class Tally(TypedDict):
    """Counts over the checked steps, and their worst error."""

    num_tensors: Count
    num_steps: Count
    num_rounding: Count
    num_together: NotRequired[Count]  # older runs don't say
    worst: Annotated[StepRecord, AfterValidator(_worst)]
    worst_severity: Annotated[NotNaN, Field(ge=-1)]


def _tally(tally: Tally) -> Tally:
    """Check that a tally without steps has no worst one and the severity -1, and that any other has both."""
    if tally["num_steps"] and tally["worst"] and tally["worst_severity"] >= 0:
        return tally
    if tally["num_steps"] or tally["worst"] or tally["worst_severity"] != -1:
        raise ValueError("has some of num_steps, worst and worst_severity, and not all")
    return tally


class Zeros(TypedDict):
    """The gradients that are zero in theory, for one shape of the input."""

    shape: list[Count]
    steps: Count
    multiples: list[tuple[Count, Real]]


class Update(TypedDict):
    """Whether the optimizer's formulas were compared in float64, and what the optimizer has raised there."""

    compared_in_float64: Bool
    raised_in_float64: Text


class Check(TypedDict):
    """What the check remembers."""

    not_zero: list[Count]
    judged: list[Text]
    zeros: list[Zeros]
    unproven: list[Text]
    zero_in_theory: NotRequired[list[Text] | None]  # older runs don't say
    update: NotRequired[Update]  # nor this


class EarlyStop(TypedDict):
    """What early stopping remembers."""

    best: NotNaN
    num_epochs_since: Count


class WaitingSteps(TypedDict, total=False):
    """The steps that wait for a line of gradients.jsonl. Where none wait, there is only `window`."""

    window: Positive
    num_steps: Positive
    first_step: Count
    last_step: Count
    record: StepRecord
    not_judged: list[Text]
    errors: dict[Text, tuple[NotNegative, NotNegative]]


#: The sizes, in bytes, of the files that grow, when the checkpoint was written.
Sizes = TypedDict("Sizes", {"metrics.jsonl": Count, "gradients.jsonl": Count})


class Blas(TypedDict, total=False):
    """numpy's BLAS, and the BLAS of compiled steps."""

    internal_api: Text | None
    version: Text | None
    architecture: Text | None
    num_threads: Threads | None
    compiled_blas: Text
    compiled_threads: Threads


class Manifest(TypedDict):
    """What a checkpoint says beside its arrays."""

    step: Count
    epoch: Count
    batch: Count
    seconds: NotNegative
    losses: NotRequired[list[tuple[Real, Real]]]  # only in older runs: now they have a file of their own
    last: Annotated[Epoch, AfterValidator(_all_or(frozenset(), OF_EACH_EPOCH))]
    schedule: dict[Text, NotNaN]
    early_stopping: EarlyStop
    tally: Annotated[Tally, AfterValidator(_tally)]
    check: Check | None
    unproven: list[Text]
    vacuous: NotRequired[list[Text]]  # older runs don't say: there it was all that is unproven
    best: Annotated[Best, AfterValidator(_all_or(frozenset(), frozenset(Best.__annotations__)))]
    sizes: Sizes
    ledger: Annotated[
        WaitingSteps, AfterValidator(_all_or(frozenset({"window"}), frozenset(WaitingSteps.__annotations__)))
    ]
    config: Text
    data: SHA256
    data_file: NotRequired[SHA256]  # older runs don't say
    sources: dict[Text, SHA256]
    versions: dict[Text, Text]
    blas: Blas


#: The SHA-256 of what a run was trained with.
Digests = TypedDict("Digests", {"config.yaml": SHA256, "data.json": SHA256, "examples": SHA256}, total=False)


class BestWeights(TypedDict):
    """The file with the weights that had the lowest validation loss."""

    sha256: SHA256


class GradientCheck(TypedDict, total=False):
    """What a run that has ended says of its check. `vacuous` are the sentences for which it has failed."""

    vacuous: list[Text]


class Summary(TypedDict, total=False):
    """How a run ended. If it ended early, `stopped` says why, in the epoch `epoch` of `epochs`."""

    stopped: Text
    epoch: Count
    epochs: Count
    gradient_check: GradientCheck
    model_sha256: SHA256
    sha256: Digests
    best: BestWeights | None
