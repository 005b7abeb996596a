"""Run directories edited at random: links, names, folders and files of other kinds, and the edits of `edited_files`.

A folder beside the run stands for everything outside of it: it has a copy of the whole run, to which a link can lead,
and files whose contents nobody may see.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable
from contextlib import chdir
from dataclasses import dataclass, field
from pathlib import Path

from numpy.random import Generator

from benchmarks.reliability.edited_files import (
    Edit,
    cited,
    edit_arrays,
    edit_bytes,
    edit_counts,
    edit_header,
    edit_names,
    edit_threads,
    edit_value_of_line,
    edit_values,
    one_of,
    put_in_lines,
)
from benchmarks.reliability.made_runs import BUNDLE
from benchmarks.reliability.signing import sign_again
from nn_manual.run.training_run import BEST_FILE
from nn_manual.run_directory.checkpoints import CHECKPOINTS_DIRECTORY, MANIFEST_FILE, checkpoints_of
from nn_manual.run_directory.ledger import GRADIENTS_FILE
from nn_manual.run_directory.metrics import CONFIG_FILE, DATA_FILE, METRICS_FILE, SUMMARY_FILE, WEIGHTS_FILE

#: The text of a canary, in a file that has nothing to do with any run.
SECRET = "CANARY-7d1f0c"

_OF_A_MODEL = (CONFIG_FILE, DATA_FILE, SUMMARY_FILE, WEIGHTS_FILE, BEST_FILE)
#: The files that a command reads beside checkpoints and bundles.
READ = {
    "resume": (CONFIG_FILE, DATA_FILE, METRICS_FILE, GRADIENTS_FILE, SUMMARY_FILE),
    "evaluate": _OF_A_MODEL,
    "predict": _OF_A_MODEL,
    "sample": _OF_A_MODEL,
    "plot": (CONFIG_FILE, METRICS_FILE, GRADIENTS_FILE, SUMMARY_FILE),
    "replay": (),
}
#: Names for a manifest, of files that the checkpoint doesn't have. Those in the first line exist, but outside.
NAMES = [
    *("../../../outside/secret.txt", "../../../outside/twin/metrics.jsonl", "/dev/zero"),
    *("../../../x", "../manifest.json", "", ".", "..", "/", "~", "a/b", "a\0b", "x" * 5000, "\ud800", "\x1b[2J"),
    *("manifest.json", "losses.safetensors"),
]
#: Names of a checkpoint's folder.
STEPS = ["step-" + name for name in ("", "-4", "004", "0", "5", "99", "9" * 200, "٣", "1e3", "4 ", "2147483648")]


@dataclass
class Scene:
    """A case before its command runs: `run/`, a copy of the run that was made with a name, and `outside/` in a folder.
    Edits may change the `arguments` of the command. `words` say what was done; `edited` are the names of the files.
    `is_wrong` says that the command can't succeed with it.
    """

    folder: Path
    command: str
    name: str
    arguments: list[str]
    random: Generator
    words: list[str] = field(default_factory=list)
    edited: set[str] = field(default_factory=set)
    is_wrong: bool = False

    @property
    def run(self) -> Path:
        """The run directory."""
        return self.folder / "run"

    @property
    def outside(self) -> Path:
        """The folder that has nothing to do with the run."""
        return self.folder / "outside"

    @property
    def secrets(self) -> list[Path]:
        """The files there that nobody may read."""
        return [self.outside / "secret.txt", self.outside / "folder" / "secret.json"]

    def targets(self) -> list[Path]:
        """What can be edited: mostly what the command reads. A bundle itself may be reached through any link."""
        if self.random.random() < 0.05:
            return sorted(path for path in self.run.rglob("*") if path.name != BUNDLE)
        if self.command == "replay":
            return sorted((self.run / BUNDLE).iterdir())
        found = [self.run / name for name in READ[self.command] if (self.run / name).exists()]
        newest = checkpoints_of(self.run)[:1] if self.command != "plot" else []
        if newest and (self.command == "resume" or not (self.run / SUMMARY_FILE).exists()):
            found += [self.run / CHECKPOINTS_DIRECTORY, *newest, *sorted(newest[0].iterdir())]
            found += [newest[0] / MANIFEST_FILE] * len(found)  # it says the most
        return found


def write_outside(scene: Scene) -> None:
    """Write what no command may touch: a copy of the run, files and a folder."""
    shutil.copytree(scene.run, scene.outside / "twin")
    (scene.outside / "folder").mkdir()
    for path in scene.secrets:
        path.write_text(json.dumps({"sha256": SECRET, "step": SECRET}, indent=2) + "\n")


Change = Callable[[Scene, Path], None]


def edit(scene: Scene) -> None:
    """One edit, sometimes two of different files. Links come last, since no edit may follow a link."""
    changes = list[tuple[Path, Change]]()
    for _ in range(1 + int(scene.random.random() < 0.25)):
        target = one_of(scene.random, scene.targets())
        if all(not target.is_relative_to(other) and not other.is_relative_to(target) for other, _ in changes):
            changes.append((target, one_of(scene.random, _OF_FOLDERS if target.is_dir() else _OF_FILES)))
    for target, change in sorted(changes, key=lambda pair: pair[1] is not _content):
        change(scene, target)
        scene.edited.add(target.name)
    scene.is_wrong &= len(changes) == 1


def _content(scene: Scene, target: Path) -> None:
    edits = _EDITS.get(target.name) or _EDITS.get(target.suffix, [])
    change = one_of(scene.random, [*edits, edit_bytes])
    scene.words.append(f"{_name(scene, target)}: {change(target, scene.random)}")
    is_read = scene.command == "resume" and target.parent in checkpoints_of(scene.run)[:1]
    scene.is_wrong = is_read and change in (edit_threads, edit_counts)
    if scene.random.random() < 0.85:
        sign_again(target, scene.run)
        scene.words[-1] += ", signed"


def _name_another_file(path: Path, random: Generator) -> str:
    """Another name among a manifest's files, in the place of one of them or beside them, with the digest of the
    replaced file or with the right one.
    """
    manifest = json.loads(path.read_bytes())
    name = one_of(random, [*NAMES, str(path.parents[3] / "outside" / "secret.txt")])
    digest = manifest["files"].get(old := one_of(random, list(manifest["files"])))
    if random.random() < 0.5:
        del manifest["files"][old]
    if random.random() < 0.5 and name.endswith((".txt", ".jsonl")):
        digest = hashlib.sha256((path.parent / name).read_bytes()).hexdigest()
    manifest["files"][name] = digest
    path.write_text(json.dumps(manifest, indent=2) + "\n")
    return f"files has {cited(name)}"


def _link(scene: Scene, target: Path) -> None:
    """A link in the place of a file or a folder."""
    inside, outside, name = target.relative_to(scene.run), scene.outside, target.name
    links = {
        "to a copy outside": outside / "twin" / inside,
        "to a copy outside, by ..": Path(*[".."] * len(inside.parts), "outside", "twin", inside),
        "to a file outside": outside / "secret.txt",
        "to a folder outside": outside / "folder",
        "to what isn't there, outside": outside / "none",
        "to what isn't there": Path("none"),
        "to itself": Path(name),
        "to /dev/zero": Path("/dev/zero"),
        "to /dev/full": Path("/dev/full"),
        "to ..": Path(".."),
        "to another file of the run": Path(*[".."] * (len(inside.parts) - 1), CONFIG_FILE),
    }
    words = str(one_of(scene.random, list(links)))
    _take_away(target)
    target.symlink_to(links[words])
    scene.words.append(f"{_name(scene, target)} is a link {words}")


def move_within(scene: Scene, target: Path) -> None:
    """Give a file or folder another name, and put a link to it in its place: that makes no difference."""
    kept = target.rename(target.with_name(f"kept {target.name}"))
    target.symlink_to(kept.name)
    scene.words.append(f"{_name(scene, target)} is a link to itself, moved within its folder")


def _remove(scene: Scene, target: Path) -> None:
    _take_away(target)
    scene.words.append(f"{_name(scene, target)} is removed")


def _other_kind(scene: Scene, target: Path) -> None:
    """A folder, a file, a FIFO or a socket in the place of something else."""
    was_folder = target.is_dir()
    _take_away(target)
    kind = str(one_of(scene.random, ["a FIFO", "a socket", "a file" if was_folder else "a folder"]))
    if kind == "a FIFO":
        os.mkfifo(target)
    elif kind == "a socket":
        with chdir(target.parent), socket.socket(socket.AF_UNIX) as bound:  # the whole path may be too long
            bound.bind(target.name)
    elif was_folder:
        target.touch()
    else:
        target.mkdir()
    scene.words.append(f"{_name(scene, target)} is {kind}")


def _rename(scene: Scene, target: Path) -> None:
    """A checkpoint with another name, or beside one; the command line may name it, or a longer one."""
    if target.name == CHECKPOINTS_DIRECTORY:
        target = checkpoints_of(scene.run)[0]
    other = target.with_name(str(one_of(scene.random, STEPS)))
    if scene.random.random() < 0.5:
        target.rename(other)
    else:
        shutil.copytree(target, other)
    scene.words.append(f"a checkpoint is called {cited(other.name)}")
    if scene.command == "resume" and scene.random.random() < 0.5:
        longer = other.with_name("step-" + "9" * 5000)
        scene.arguments[2] = str(one_of(scene.random, [other, longer]))
        scene.words.append(f"the command names {cited(Path(scene.arguments[2]).name)}")


def _temporary(scene: Scene, target: Path) -> None:
    """A file as a killed process may leave it."""
    path = target.parent / f".{target.name}.77.tmp"
    others = {"a folder outside": scene.outside / "folder", "a file outside": scene.outside / "secret.txt",
              "a folder of the run": scene.run, "itself": path, "nothing": Path("none")}  # fmt: skip
    words = str(one_of(scene.random, list(others)))
    path.symlink_to(others[words])
    scene.words.append(f"{_name(scene, path)} is a link to {words}")


def _take_away(target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink()


def _name(scene: Scene, target: Path) -> str:
    return cited(str(target.relative_to(scene.run)))[1:-1]


_OF_FILES: tuple[Change, ...] = (*[_content] * 10, _link, _link, move_within, _remove, _other_kind, _temporary)
_OF_FOLDERS: tuple[Change, ...] = (_link, _link, move_within, _remove, _other_kind, _rename, _rename, _temporary)
#: By the name or the ending of a file.
_EDITS: dict[str, list[Edit]] = {
    MANIFEST_FILE: [edit_values, edit_values, edit_values, edit_threads, edit_counts, edit_counts, _name_another_file],
    DATA_FILE: [edit_values, edit_names],
    ".json": [edit_values, edit_values, edit_values],
    ".yaml": [edit_values, edit_values, edit_values],
    ".jsonl": [edit_value_of_line, put_in_lines],
    ".safetensors": [edit_arrays, edit_arrays, edit_arrays, edit_header],
}
