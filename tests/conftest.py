"""What every test needs: one thread, set before numpy and torch are imported, and no modules of another test."""

import gc
import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

# A step alternates between numpy's threads and torch's. With a test on every core they only wait for one another:
# twenty times as long as one thread takes, measured with two workers on two cores. For torch, giving a dozen elements
# to other threads takes a hundred times as long as the work on them.
os.environ.setdefault("OMP_NUM_THREADS", "1")


def pytest_configure(config: pytest.Config) -> None:
    """Compiled code is kept beside pytest's own cache: a second run of the tests compiles nothing."""
    if getattr(config, "cache", None) is None or "NN_MANUAL_CACHE" in os.environ:  # -p no:cacheprovider has none
        return
    try:
        os.environ["NN_MANUAL_CACHE"] = str(config.cache.mkdir("kernels"))
    except OSError:  # a checkout that can't be written: the kernels are compiled anew
        folder = tempfile.TemporaryDirectory()
        config.add_cleanup(folder.cleanup)
        os.environ["NN_MANUAL_CACHE"] = folder.name


#: The samples of the campaigns.
BENCHMARKS = Path(__file__).parent / "benchmarks"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The quick tests need not even import the slow ones that have a folder of their own: that takes seconds."""
    return True if collection_path == BENCHMARKS and config.option.markexpr == "not slow" else None


def pytest_addoption(parser: pytest.Parser) -> None:
    """A sample of the tests that are chosen otherwise."""
    words = "run each twentieth of the tests, from the K-th on (0 to 19)"
    parser.addoption("--twentieth", type=int, metavar="K", help=words)


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """The samples of the campaigns are slow. They alone catch a campaign that doesn't run, or sees nothing any more.
    When the marks have chosen, `--twentieth` does.
    """
    for item in items:
        if item.path.is_relative_to(BENCHMARKS):
            item.add_marker(pytest.mark.slow)
    yield
    if (first := config.getoption("twentieth")) is not None:
        items[:] = items[first::20]


def pytest_collection_finish(session: pytest.Session) -> None:  # noqa: ARG001 - the hook's signature
    """From here on tests write modules, some twice within a second and as long as before: Python would take the second
    one for the first, where it has kept that compiled. The tests' own modules are compiled by now.

    torch and 16,000 collected tests live to the end: the collector of garbage need not look through them again and
    again.
    """
    sys.dont_write_bytecode = True
    gc.freeze()


@pytest.fixture(autouse=True)
def _leave_nothing() -> Iterator[None]:
    """What no test may leave for the next one. This is one fixture: four took a tenth of the time of small tests.

    Each test writes its own my_layers.py: the next one must not find what this one imported. A shell that starts the
    tests with & has them ignore SIGINT, and tests raise it. A trainer says what it never proved when its memory is
    collected: that may be while a later test runs.
    """
    from nn_manual.trainer import trainer  # not at the top: it imports numpy, which reads the variable above

    before, report, is_over = signal.getsignal(signal.SIGINT), trainer._report_unproven, list[bool]()
    last_module = next(reversed(sys.modules))
    if before is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def report_in_time(numbers: list[int]) -> None:
        if not is_over:
            report(numbers)

    trainer._report_unproven = report_in_time
    yield
    is_over.append(True)
    trainer._report_unproven = report
    if signal.getsignal(signal.SIGINT) is not before:
        signal.signal(signal.SIGINT, before)
    # The newest first: 5,000 modules are loaded, and a look at each takes longer than most tests.
    for name in list(takewhile(lambda name: name != last_module, reversed(sys.modules))):
        if name.startswith(("my_", "mine")):
            del sys.modules[name]


@pytest.fixture
def config_path(tmp_path: Path) -> Path:
    """A small config."""
    from runs import write_config

    return write_config(tmp_path)


@pytest.fixture(scope="session", autouse=True)
def _without_figures() -> Iterator[None]:
    """No run of the tests' own process draws a figure at its end, which takes most of the time of a short one."""
    from nn_manual.run import writer  # not at the top: it imports numpy, which reads the variable above

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writer, "plot_runs", lambda runs, output: None)  # noqa: ARG005 - plot_runs' signature
        yield


@pytest.fixture
def with_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runs of a test draw their figures."""
    from nn_manual import plotting  # as above
    from nn_manual.run import writer

    monkeypatch.setattr(writer, "plot_runs", plotting.plot_runs)
