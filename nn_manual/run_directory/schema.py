"""The type and the range of each value that is read back from a run directory, which anybody may have written.

docs/runs.md says what each key means. A key that isn't here is passed over, so that a run of another version is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired, TypeAlias

from pydantic import AfterValidator, AllowInfNan, Field, Strict, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails
from typing_extensions import TypedDict

from nn_manual.errors import DataError
from nn_manual.run_directory.records import shown

#: An array of NumPy holds no larger integer.
LARGEST_INTEGER = 2**63 - 1
#: No machine has more cores.
MAX_THREADS = 4096

Count: TypeAlias = Annotated[int, Strict(), Field(ge=0, le=LARGEST_INTEGER)]
Positive: TypeAlias = Annotated[int, Strict(), Field(ge=1, le=LARGEST_INTEGER)]
#: An integer may stand for a float: 1 for 1.0.
Real: TypeAlias = Annotated[float, Strict()]
Finite: TypeAlias = Annotated[float, Strict(), AllowInfNan(False)]
NotNegative: TypeAlias = Annotated[float, Strict(), AllowInfNan(False), Field(ge=0)]
Fraction: TypeAlias = Annotated[float, Strict(), AllowInfNan(False), Field(ge=0, le=1)]
Bool: TypeAlias = Annotated[bool, Strict()]
Text: TypeAlias = Annotated[str, Strict()]
SHA256: TypeAlias = Annotated[str, Strict(), Field(pattern=r"^[0-9a-f]{64}$")]
Threads: TypeAlias = Annotated[int, Strict(), Field(ge=1, le=MAX_THREADS)]
#: Of a file beside the manifest that names it.
FileName: TypeAlias = Annotated[str, Strict(), Field(pattern=r"^[a-z]+\.safetensors$")]


def _not_nan(value: float) -> float:
    if value != value:
        raise ValueError("is NaN")
    return value


#: Infinity where there is nothing yet, as of a lowest loss.
NotNaN: TypeAlias = Annotated[Real, AfterValidator(_not_nan)]


def _all_or(few: frozenset[str], keys: frozenset[str]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """A check that an object has all of the `keys`, or just the `few`."""

    def check(value: dict[str, Any]) -> dict[str, Any]:
        if value.keys() not in (keys, few):
            raise ValueError(f"lacks {', '.join(sorted(keys - value.keys()))}")
        return value

    return check


class Step(TypedDict, total=False):
    """What a line of gradients.jsonl says of a checked step and of its worst tensor."""

    step: Count
    tensors: Count
    worst: Text
    absolute: Real | None
    relative: Real | None
    tolerance: Real | None
    ulps: Real | None
    rounding: list[Text]
    not_judged: list[Text]


class Epoch(TypedDict, total=False):
    """The last line of metrics.jsonl; empty before the first."""

    epoch: Count
    step: Count
    train_loss: Real | None
    num_train_examples: Count
    train_bits_per_character: Real | None
    validation_loss: Real | None
    num_validation_examples: Count
    validation_bits_per_character: Real | None
    validation_accuracy: Fraction
    lr: Real | None
    seconds: NotNegative | None


class Best(TypedDict, total=False):
    """Where and how low the lowest validation loss was; empty before the first."""

    epoch: Count
    step: Count
    validation_loss: Finite


def _worst(step: Step) -> Step:
    """Nothing before the first; else what a run's end says of it is there, and its tolerance can be divided by."""
    if step:
        if missing := sorted({"step", "worst", "relative", "tolerance"} - step.keys()):
            raise ValueError(f"lacks {', '.join(missing)}")
        if step["relative"] is None or not (step["tolerance"] or 0) > 0:
            raise ValueError("has no relative error, or no tolerance above 0")
    return step


class Tally(TypedDict):
    """What the checked steps add up to."""

    num_tensors: Count
    num_steps: Count
    num_rounding: Count
    num_together: NotRequired[Count]  # older runs don't say
    worst: Annotated[Step, AfterValidator(_worst)]
    worst_severity: NotNaN


class Zeros(TypedDict):
    """The gradients that are zero in theory, for one shape of the input."""

    shape: list[Count]
    steps: Count
    multiples: list[tuple[Count, Real]]


class Update(TypedDict):
    """Whether the optimizer's formulas were compared in float64, and what it has raised there."""

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


class Ledger(TypedDict, total=False):
    """The steps that wait for a line of gradients.jsonl; where none wait, `window` alone."""

    window: Positive
    num_steps: Positive
    first_step: Count
    last_step: Count
    record: Step
    not_judged: list[Text]
    errors: dict[Text, tuple[NotNegative, NotNegative]]


#: The bytes of the files that grow, when the checkpoint was written.
Sizes = TypedDict("Sizes", {"metrics.jsonl": Count, "gradients.jsonl": Count})

class Blas(TypedDict, total=False):
    """numpy's BLAS, and that of compiled steps."""

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
    losses: NotRequired[list[tuple[Real, Real]]]  # of older runs: they have a file of their own now
    last: Epoch
    schedule: dict[Text, NotNaN]
    early_stopping: EarlyStop
    tally: Tally
    check: Check | None
    unproven: list[Text]
    vacuous: NotRequired[list[Text]]  # older runs don't say: it was all that is unproven
    best: Annotated[Best, AfterValidator(_all_or(frozenset(), frozenset(Best.__annotations__)))]
    sizes: Sizes
    ledger: Annotated[Ledger, AfterValidator(_all_or(frozenset({"window"}), frozenset(Ledger.__annotations__)))]
    config: Text
    data: SHA256
    sources: dict[Text, SHA256]
    versions: dict[Text, Text]
    blas: Blas


#: The SHA-256 of what a run was trained with.
Digests = TypedDict("Digests", {"config.yaml": SHA256, "data.json": SHA256, "examples": SHA256}, total=False)


class BestWeights(TypedDict):
    """The weights with the lowest validation loss, which a run has left."""

    sha256: SHA256


class Summary(TypedDict, total=False):
    """How a run ended: `stopped` says why before its end, then `epoch` of `epochs`."""

    stopped: Text
    epoch: Count
    epochs: Count
    model_sha256: SHA256
    sha256: Digests
    best: BestWeights | None


#: pydantic's kinds of errors in our words.
EXPECTED = {
    "int_type": "a 64-bit integer",
    "float_type": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a string",
    "string_pattern_mismatch": "a string of the form {pattern}",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "an object",
    "dataclass_type": "an object",
    "too_long": "a list of {max_length}",
    "greater_than_equal": "at least {ge:g}",
    "less_than_equal": "at most {le:g}",
}


def validated(place: str, value: Any, kind: TypeAdapter[Any], key: str = "") -> Any:
    """`value` as its type has it. Raises DataError, with the place, the key and the value of the first fault in it;
    `key` is that of `value` itself.
    """
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        fault = error.errors()[0]
    path = ".".join(filter(None, (key, *map(str, fault["loc"]))))
    named = f'"{path}" ' if path else ""
    raise DataError(f"{place}: {named}{_problem(fault)}")


def _problem(fault: ErrorDetails) -> str:
    context: Mapping[str, Any] = fault.get("ctx", {})
    match fault["type"]:
        case "missing":
            return "is missing"
        case "value_error":
            return str(context["error"])
        case "less_than_equal" if context["le"] == LARGEST_INTEGER:
            expected = EXPECTED["int_type"]
        case kind:
            expected = EXPECTED.get(kind, fault["msg"]).format(**context)
    return f"is {shown(fault['input'])}, expected {expected}"
