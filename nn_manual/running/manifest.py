"""What a checkpoint of a run says beside its arrays: the types of its manifest, and what must agree in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, NotRequired

from pydantic import Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

Count = Annotated[int, Field(ge=0)]


class Best(TypedDict, total=False):
    """Where and how low the lowest validation loss was; empty before the first."""

    epoch: int
    step: int
    validation_loss: float


class Tally(TypedDict):
    """What the checked steps add up to."""

    num_tensors: Count
    num_steps: Count
    num_rounding: Count
    num_together: NotRequired[Count]  # older runs don't say
    worst: dict[str, Any]
    worst_severity: float


class Zeros(TypedDict):
    """The gradients that are zero in theory, for one shape of the input."""

    shape: list[int]
    steps: int
    multiples: list[tuple[int, float]]


class Update(TypedDict):
    """Whether the optimizer's formulas were compared in float64, and what it has raised there."""

    compared_in_float64: bool
    raised_in_float64: str


class Check(TypedDict):
    """What the check remembers."""

    not_zero: list[int]
    judged: list[str]
    zeros: list[Zeros]
    unproven: list[str]
    zero_in_theory: NotRequired[list[str] | None]  # older runs don't say
    update: NotRequired[Update]  # nor this


class Ledger(TypedDict, total=False):
    """The steps that wait for a line of gradients.jsonl; `window` is always there."""

    window: Annotated[int, Field(ge=1)]
    num_steps: int
    first_step: int
    last_step: int
    record: dict[str, Any]
    not_judged: list[str]
    errors: dict[str, tuple[float, float]]


class Manifest(TypedDict):
    """docs/runs.md says what each key means."""

    step: Count
    epoch: Count
    batch: Count
    seconds: float
    losses: NotRequired[list[tuple[float, float]]]  # of older runs: they have a file of their own now
    last: dict[str, Any]
    schedule: dict[str, float]
    early_stopping: dict[str, float]
    tally: Tally
    check: Check | None
    unproven: list[str]
    vacuous: NotRequired[list[str]]  # older runs don't say: it was all that is unproven
    best: Best
    sizes: dict[str, Count]
    ledger: Ledger
    config: str
    data: str
    sources: dict[str, str]
    versions: dict[str, str]
    blas: dict[str, Any]


_manifests = TypeAdapter(Manifest)


def check_manifest(manifest: Mapping[str, Any]) -> None:
    """Raise ValueError, with the key, for a value of another type and for numbers that don't agree."""
    try:
        _manifests.validate_python(manifest)
    except ValidationError as error:
        fault = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None
    if "window" not in manifest["ledger"]:
        raise ValueError("ledger: has no window")
    if manifest["best"] and manifest["best"].keys() != Best.__annotations__.keys():
        raise ValueError("best: lacks a key")


def check_step(manifest: Mapping[str, Any], num_batches: int) -> None:
    """Raise ValueError unless step, epoch and batch are of one place in a run with so many batches an epoch."""
    step = manifest["epoch"] * num_batches + manifest["batch"]
    if manifest["step"] != step or manifest["batch"] >= num_batches:
        where = f"epoch {manifest['epoch']} and batch {manifest['batch']} of {num_batches}"
        raise ValueError(f"step: is {manifest['step']}, and {where} make {step}")
