"""The tests, without lint, on other processors, users and versions: `python scripts/run_tests.py SETTING ...`.

`--list` names the settings and says which of them this machine can't run. The arguments after `--` go to pytest:
`python scripts/run_tests.py one_core busy --times 3 -- tests/cli`. Each setting is read back before its tests run: a
setting without effect has failed. `oldest` and `newest` have their own environments, in build/settings, with the
versions that pip chooses. On Linux the registry's torch is a build for CUDA: 3 GB to fetch, 6 GB on disk. With
PIP_FIND_LINKS or another setting of pip's, it takes a smaller build, and PIP_CONSTRAINT holds `newest` at another
version.

The exit status is 1 if a test failed, if a setting took no effect, or if a named setting can't run here. It is 2 for
wrong usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from benchmarks.settings import suite
from benchmarks.settings.setting import SettingError
from benchmarks.settings.table import SETTINGS


def main(given: Sequence[str]) -> int:
    """Run the tests in the settings, and return the exit status."""
    parser = argparse.ArgumentParser(prog="run_tests.py", description=__doc__)
    parser.add_argument("settings", nargs="*", metavar="SETTING", help=f"{', '.join(SETTINGS)}; or all")
    parser.add_argument("--list", action="store_true", help="say what each is, and whether this machine can run it")
    parser.add_argument("--times", type=int, default=1, metavar="N", help="run each N times; default 1")
    arguments = list(given)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:end])
    names: list[str] = options.settings
    if unknown := [name for name in names if name not in {*SETTINGS, "all"}]:
        parser.error(f"unknown setting {', '.join(unknown)}; known: {', '.join(SETTINGS)}; or all")
    if options.list == bool(names):
        parser.error("name one setting or several, or all, or --list")
    if options.times < 1:
        parser.error(f"--times must be at least 1, not {options.times}")
    chosen = SETTINGS.values() if "all" in names else [SETTINGS[name] for name in dict.fromkeys(names)]
    try:
        if options.list:
            return suite.describe(SETTINGS.values())
        return suite.main(chosen, options.times, arguments[end + 1 :], may_skip="all" in names)
    except SettingError as error:  # in this environment itself; an error in a setting's own is a part of its outcome
        print(f"run_tests.py: {error}", file=sys.stderr)
        return 1
