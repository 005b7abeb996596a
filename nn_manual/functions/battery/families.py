"""Every family of rows, in the order in which they run."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import torch
from tqdm import tqdm

from nn_manual.check.compare.comparison import CannotCompare
from nn_manual.errors import first_words_of, out_of_memory, raise_if_nobodys_fault
from nn_manual.functions.battery.changed_tensors import changed
from nn_manual.functions.battery.determinism import determinism
from nn_manual.functions.battery.dimensions import sizes
from nn_manual.functions.battery.double_backward import twice
from nn_manual.functions.battery.dtypes import dtype, full_size
from nn_manual.functions.battery.grad_output import grad_output
from nn_manual.functions.battery.in_place import in_place
from nn_manual.functions.battery.layouts_and_kinds import kinds, layouts
from nn_manual.functions.battery.modes import autocast, evaluation, no_grad
from nn_manual.functions.battery.not_finite import not_finite
from nn_manual.functions.battery.requires import requires_grad
from nn_manual.functions.battery.runs import retain_graph, settings, two_forwards
from nn_manual.functions.battery.time_and_memory import cost
from nn_manual.functions.battery.trial import Family, Run, Skip, Trial, Wrong
from nn_manual.functions.battery.writes import writes
from nn_manual.functions.device import wait_for_kernels, what_lost_the_device
from nn_manual.functions.exceptions import is_of_the_reference, met_in, place_of
from nn_manual.functions.exceptions import told as what_was_raised
from nn_manual.functions.function_report import AS_ABOVE, AS_ASKED, FULL_SIZE, WRITES, BatteryRow
from nn_manual.functions.low_precision import TooCoarse
from nn_manual.functions.randomness import AT_RANDOM
from nn_manual.functions.settings import kept_generators
from nn_manual.messages.text import nearest, one_line

#: Seconds after which a bar shows how far the rows are.
BAR_AFTER = 2


def cuda(trial: Trial) -> Iterator[tuple[str, Run]]:
    """The same rows on CUDA tensors, where there is a device."""
    if trial.is_pair or trial.case.is_on_cuda or not torch.cuda.is_available():
        yield "", lambda: _no_cuda(trial)
        return
    on_device = replace(trial, device="cuda")
    for name, family in FAMILIES.items():
        if family is not cuda:
            yield from ((f"{name} {variant}".rstrip(), run) for variant, run in family(on_device))


def _no_cuda(trial: Trial) -> None:
    if not torch.cuda.is_available():
        raise Skip("there is no CUDA device here")
    if trial.case.is_on_cuda:
        raise Skip("the inputs lie on a CUDA device: all rows have run there")
    raise Skip("a pair runs on its inputs' device")


FAMILIES: dict[str, Family] = {
    "grad_output": grad_output,
    "requires_grad": requires_grad,
    "two forwards": two_forwards,
    WRITES: writes,
    "in place": in_place,
    "changed": changed,
    "retain_graph": retain_graph,
    "no_grad": no_grad,
    "autocast": autocast,
    "eval": evaluation,
    "determinism": determinism,
    "settings": settings,
    "inputs": layouts,
    "kinds": kinds,
    "not finite": not_finite,
    "sizes": sizes,
    "dtype": dtype,
    "twice": twice,
    FULL_SIZE: full_size,
    "cuda": cuda,
    "cost": cost,
}


#: Is called with what begins, "row no_grad", and then with the row: nothing else is known once a function has ended the
#: process.
Told: TypeAlias = Callable[[str | BatteryRow], object]
#: Verdicts and notes of rows, by name, from a process that one of them ended. The empty name stands for all others.
Known: TypeAlias = Mapping[str, tuple[str, str]]


def nobody_listens(_: str | BatteryRow) -> None:
    """Ignore what begins, and what came of it."""


@contextmanager
def naming_what_runs(what: str, trial: Trial, told: Told) -> Iterator[None]:
    """A context for what begins, which adds its name to an interrupt and to a lack of memory. So the user learns where
    a function hung, or where it asked for too much memory.
    """
    told(what)
    try:
        yield
    except (KeyboardInterrupt, MemoryError, RuntimeError) as ended:
        if isinstance(ended, KeyboardInterrupt) or out_of_memory(ended) is not None:
            ended.add_note(f"in {what} of {trial.label}")
        raise


class Chosen(NamedTuple):
    """Which rows run: none of those that `skip` names, and none but those that `only` names, unless that is empty."""

    skip: Sequence[str] = ()
    only: Sequence[str] = ()

    def leaves_out(self, row: str) -> bool:
        """Whether a row doesn't run."""
        return _is_named(row, self.skip) or (bool(self.only) and not _is_named(row, self.only))

    def check_lists(self) -> None:
        """Raise ValueError for a text, or anything else, in the place of a list of texts."""
        for what, names in self._asdict().items():
            is_text = isinstance(names, str)
            if is_text or not isinstance(names, Collection) or not all(isinstance(name, str) for name in names):
                example = names if is_text else "cost"
                raise ValueError(f"{what} must be a list of rows, as [{example!r}], not {names!r}")

    def check(self, known: Collection[str]) -> None:
        """Raise ValueError for a name that none of the `known` rows has, and if `skip` leaves out all of `only`."""
        for what, names in self._asdict().items():
            for name in names:
                if not any(_is_named(row, [name]) for row in known):
                    alike = [row for row in known if "=" in name and row.endswith(f"={name.partition('=')[2]}")]
                    meant = nearest(name, alike) or nearest(name, known)
                    words = f"there is no row {name!r} to {WHAT_FOR[what]}"
                    raise ValueError(words + (f": did you mean {meant!r}?" if meant else ""))
        if self.only and all(map(self.leaves_out, known)):
            raise ValueError("skip leaves out every row that only names")


#: What the names in each list of Chosen are given for.
WHAT_FOR = {"skip": "skip", "only": "run alone"}


def run_rows(
    trial: Trial, chosen: Chosen, met: Collection[str], told: Told, known_rows: Known
) -> tuple[BatteryRow, ...]:
    """Run every row that is chosen and not known already, and return all rows with their verdicts. `met` is the error
    that made the comparison of the values impossible, by `met_in`, and AT_RANDOM if it was that the function is random:
    a row that meets the same error is skipped. Raises ValueError for the name of a row that isn't there.
    """
    planned = [(name, variant, run) for name, family in FAMILIES.items() for variant, run in family(trial)]
    chosen.check({f"{name} {variant}".rstrip() for name, variant, _ in planned} | FAMILIES.keys())
    bar = tqdm(planned, desc=trial.label, unit="row", delay=BAR_AFTER, leave=False, disable=None)
    rows = []
    for name, variant, run in bar:
        row = f"{name} {variant}".rstrip()
        if found := known_rows.get(row, known_rows.get("")):
            rows.append(BatteryRow(name, variant, *found))
            continue
        with naming_what_runs(f"row {row}", trial, told):
            rows.append(_row(name, variant, run, chosen, met))
        if what_lost_the_device():
            known_rows = {"": ("skipped", AS_ABOVE)}
        told(rows[-1])
    return tuple(rows)


def _is_named(row: str, names: Sequence[str]) -> bool:
    """Whether `names` has the row's name, or the words with which it begins, such as its family's name. For a row of
    another family on a device or in a dtype, the name within that family counts, too.
    """
    if any(f"{row} ".startswith(f"{name} ") for name in names):
        return True
    if not row.startswith(("cuda ", "dtype ")):
        return False
    words = row.split(" ")
    inner = (" ".join(words[i:]) for i in range(1, len(words)))
    found = next((tail for tail in inner if any(f"{tail} ".startswith(f"{family} ") for family in FAMILIES)), "")
    return bool(found) and _is_named(found, names)


def _row(family: str, variant: str, run: Run, chosen: Chosen, met: Collection[str]) -> BatteryRow:
    if chosen.leaves_out(f"{family} {variant}".rstrip()):
        return BatteryRow(family, variant, "skipped", AS_ASKED)
    try:
        with warnings.catch_warnings(), kept_generators():
            warnings.simplefilter("ignore")  # a function may warn about unusual inputs
            note = run() or ""
            wait_for_kernels()
            return BatteryRow(family, variant, "right", note)
    except Exception as error:  # a reference, too, may raise anything
        raise_if_nobodys_fault(error)
        if (failed := what_lost_the_device()) and not is_of_the_reference(error):
            words = f"a kernel of it ended the use of the device in this process: {failed}{place_of(error)}"
            return BatteryRow(family, variant, "WRONG", words)
        at_random = isinstance(error, Wrong) and family == "kinds" and AT_RANDOM in met
        if at_random or set(met).intersection(met_in(error)):
            return BatteryRow(family, variant, "skipped", AS_ABOVE)
        if isinstance(error, Wrong | CannotCompare):
            return BatteryRow(family, variant, "WRONG", one_line(str(error)))
        if isinstance(error, Skip | TooCoarse):
            return BatteryRow(family, variant, "skipped", one_line(str(error)))
        has_a_note = bool(getattr(error, "__notes__", []))  # about who raised it
        words = what_was_raised(error) if has_a_note else f"the check raised {first_words_of(error)}{place_of(error)}"
        return BatteryRow(family, variant, "skipped", words)
