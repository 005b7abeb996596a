"""Settings of the user: the tests run in a copy of the checkout, which belongs to another user than root, or which
nobody can write to.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.settings.facts import Facts
from benchmarks.settings.setting import Place, Setting, SettingError

#: The user as whom root starts a process: every system has this user, and nothing belongs to it.
ACCOUNT = "nobody"
#: What is left out of a copy of the checkout.
LEFT_OUT = (".venv", ".git", "build", "runs", "__pycache__", ".*_cache", ".hypothesis", "*.egg-info")


@dataclass(frozen=True)
class OrdinaryUser(Setting):
    """Another user than root, whose home is a new folder. The copy belongs to this user, or can't be written."""

    read_only: bool = False

    def why_not(self, here: Facts) -> str:
        """Empty if root can start another user's process, or if a user who isn't root is to be read-only."""
        if here.user != 0:
            return "" if self.read_only else "this user is an ordinary one: all tests run so"
        programs = ["setpriv", *(["unshare", "mount"] if closed_folders(needed_folders()) else [])]
        missing = [program for program in programs if shutil.which(program) is None]
        return f"{' and '.join(missing)} of util-linux isn't installed" if missing else ""

    @contextmanager
    def made(self, place: Place, here: Facts) -> Iterator[Place]:
        """The copy."""
        tree, home = place.folder / "checkout", place.folder / "home"
        shutil.copytree(place.tree, tree, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
        home.mkdir()
        own = {"HOME": str(home), "TMPDIR": str(home), "PYTHONPATH": str(tree)}
        kept = {name: value for name, value in place.environment.items() if not name.startswith("XDG_")}
        copy = replace(place, tree=tree, environment={**kept, **own})
        if here.user == 0:
            account = pwd.getpwnam(ACCOUNT)
            for path in (place.folder, home, *([] if self.read_only else [tree, *tree.rglob("*")])):
                os.chown(path, account.pw_uid, account.pw_gid, follow_symlinks=False)
            own |= {"USER": ACCOUNT, "LOGNAME": ACCOUNT}
            copy = replace(copy, environment={**kept, **own}, prefix=as_account(account, place.folder))
        if self.read_only:
            for path in (tree, *tree.rglob("*")):
                path.chmod(path.stat().st_mode & ~0o222)
        yield copy

    def effect(self, there: Facts) -> str:
        """The user, and whether the copy can be written."""
        if there.user == 0:
            raise SettingError("the tests' user is root")
        if there.can_write == self.read_only:
            raise SettingError(f"user {there.user} {'can' if self.read_only else 'can not'} write to the checkout")
        return f"user {there.user}, who {'can not' if self.read_only else 'can'} write to the checkout"


def needed_folders() -> list[Path]:
    """The folders in which this interpreter and its packages lie."""
    paths = [sys.base_prefix, sys.prefix, os.path.realpath(sys.executable), *sys.path]
    return sorted({path if path.is_dir() else path.parent for path in map(Path, paths) if path.exists()})


def closed_folders(needed: Sequence[Path]) -> dict[Path, list[Path]]:
    """The topmost folders that other users can't enter, such as root's home, each with the needed folders inside it."""
    closed: dict[Path, list[Path]] = {}
    for folder in needed:
        above = [*reversed(folder.parents), folder]
        first = next((path for path in above if not path.stat().st_mode & stat.S_IXOTH), None)
        if first is not None and not any(folder.is_relative_to(other) for other in closed.get(first, [])):
            closed.setdefault(first, []).append(folder)
    return closed


def as_account(account: pwd.struct_passwd, folder: Path) -> tuple[str, ...]:
    """The command that starts a process of that user.

    A folder that others can't enter is covered by an empty one, and what the interpreter needs from it is mounted
    there. Only that process and its children see this. Until then, what it needs is mounted in `folder`.
    """
    user = ["setpriv", "--reuid", str(account.pw_uid), "--regid", str(account.pw_gid), "--clear-groups"]
    lines = ["set -e"]
    for closed, needed in closed_folders(needed_folders()).items():
        held = [(path, folder / f"mount{number}") for number, path in enumerate(needed)]
        lines += [_mounted(path, aside) for path, aside in held]
        lines.append(f"mount -t tmpfs -o mode=755 tmpfs {shlex.quote(str(closed))}")
        lines += [_mounted(aside, path) for path, aside in held]
    if len(lines) == 1:
        return tuple(user)
    return ("unshare", "--mount", "sh", "-c", "\n".join([*lines, 'exec "$@"']), "sh", *user)


def _mounted(path: Path, to: Path) -> str:
    """The shell's line that mounts a folder at another path."""
    return f"mkdir -p {shlex.quote(str(to))}; mount --bind {shlex.join([str(path), str(to)])}"
