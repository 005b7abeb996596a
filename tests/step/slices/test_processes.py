"""Runs of several processes, as torchrun starts them: the same bytes, proven, and ended together.

Each case that a chosen test needs runs once, one after the other. The slow ones alone see each setting and message.
"""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from filelock import FileLock
from processes import Case, log_of, run_cases, statuses_of
from slow_cases import slow

from nn_manual.run_directory.weights import read_weights

#: With what depends on the slices: dropout, clipping, a batch that doesn't divide, and one with empty slices, of 3.
CONFIG = """
seed: 1
data: {Spirals: {num_examples: 71, validation_fraction: 0}}
batch_size: 17
epochs: 4
model:
  - Linear: {in_features: 2, out_features: 8}
  - Dropout: {p: 0.2}
  - ReLU
  - Linear: {in_features: 8, out_features: 2}
loss: CrossEntropyLoss
optimizer: {SGD: {lr: 0.1, momentum: 0.9}}
clip_grad_norm: 0.5
slices: 4
gradient_check: {every: 3}
"""
#: Batches of 24 in slices of 4, and a validation part.
NORM = (
    CONFIG.replace("71, validation_fraction: 0", "90, validation_fraction: 0.2")
    .replace("Dropout: {p: 0.2}", "BatchNorm1d: {num_features: 8}")
    .replace("out_features: 8}", "out_features: 8, bias: false}")
    .replace("batch_size: 17", "batch_size: 24")
    .replace("slices: 4", "slices: 6")
)
#: The last batch of 75 has 3 examples: of 3 processes, the last has no slice of it.
SYNC = NORM.replace("num_examples: 90", "num_examples: 94") + "sync_batch_norm: true\n"
#: A file of data, as an override: each process has its own.
TABLE = "data={Arrays: {file: /proc/self/cwd/data.csv, target: class, task: classification}}"
LONG = ["epochs=100000", "gradient_check.every=0"]
#: Each checked step is the last one of an epoch, of 3 examples: the second of two processes has no slice in any.
LAST = ["slices=6", "bitwise=true", "gradient_check.every=5"]
EPOCH = "     1/100000"


def needed(request: pytest.FixtureRequest) -> set[str]:
    """The names of the cases that the chosen tests of this file look at."""
    names = set[str]()
    for item in request.session.items:
        if item.path == request.path:
            parameters = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
            names.update(str(parameters[key]) for key in ("name", "other") if key in parameters)
            for marker in item.iter_markers("cases"):
                names.update(marker.args)
    return names


@pytest.fixture(scope="module")
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Where the cases have run, each in the folder of its name. Of pytest-xdist's workers, the first runs them."""
    own = tmp_path_factory.getbasetemp()
    folder = (own if worker_id == "master" else own.parent) / "processes"
    with FileLock(f"{folder}.lock"):
        if not (folder / "ended").exists():
            folder.mkdir()
            run_all(needed(request), folder)
            (folder / "ended").touch()
    return folder


def run_all(names: set[str], folder: Path) -> None:
    """Run the cases of these names."""
    for name, text in {"own": CONFIG, "norm": NORM, "sync": SYNC}.items():
        (folder / f"{name}.yaml").write_text(text)

    def case(name: str, size: int, *arguments: str, function: str = "train", config: str = "own", **more: Any) -> Any:
        given = [str(folder / f"{config}.yaml"), *arguments] if function.startswith("train") else list(arguments)
        directory, logs = str(folder / more.pop("of", name)), str(folder / f"{name}.logs")
        own = Case(directory=directory, logs=logs, size=size, function=function, arguments=given)
        return {**own, **more}

    # Until it has passed, the one that hangs is waited for. Up to then no other wait is so long, on a slow machine too.
    limit = {"NN_MANUAL_TIME_LIMIT": "10"}
    cases = [
        case("alone", 1),
        case("two", 2, "bitwise=true"),
        case("four", 4, "bitwise=true", "shard_optimizer=true"),
        case("fast", 2),
        case("norm_alone", 1, config="norm"),
        case("norm_three", 3, "bitwise=true", config="norm"),
        case("sync_alone", 1, config="sync"),
        case("sync_two", 2, "bitwise=true", "shard_optimizer=true", config="sync"),
        case("sync_three", 3, "bitwise=true", config="sync"),
        case("sync_fast", 3, config="sync"),
        case("four_before", 4, "bitwise=true", "epochs=2", "checkpoint.every=3 steps"),
        case("two_after", 2, "epochs=4", function="resume", of="four_before"),
        case("averaged_alone", 1, "ema={decay: 0.8}"),
        case("averaged_two", 2, "bitwise=true", "shard_optimizer=true", "ema={decay: 0.8}"),
        case("compiled_alone", 1, "compiled=true", "bitwise=true", config="norm"),
        case("compiled_three", 3, "compiled=true", "bitwise=true", "shard_optimizer=true", "epochs=2", config="norm"),
        case("compiled_two", 2, "epochs=4", function="resume", of="compiled_three"),
        case("compiled_fast", 2, "compiled=true", config="norm"),
        case("compiled_sync", 2, "compiled=true", config="sync"),
        case("last_alone", 1, *LAST),
        case("last_two", 2, *LAST),
        case("killed", 3, *LONG, "slices=3", victim=1, signum=signal.SIGKILL, after=EPOCH),
        case("hung", 2, *LONG, victim=1, signum=signal.SIGSTOP, after=EPOCH, environment=limit),
        case("first_killed", 2, *LONG, victim=0, signum=signal.SIGKILL, after=EPOCH),
        case("asked", 2, *LONG, victim=1, signum=signal.SIGTERM, after=EPOCH),
        case("divided", 3),
        case("many", 1, "slices=18"),
        case("many_two", 2, "slices=18"),
        case("few", 3, "slices=2"),
        case("override", 2, "1: optimizer.SGD.lr=0.2"),
        case("length", 2, "1: model=[Linear: {in_features: 2, out_features: 2}]"),
        case("config", 2, str(folder / "norm.yaml"), function="train_another_config"),
        case("no_config", 2, str(folder / "missing.yaml"), function="train_another_config"),
        case("usage", 2, "--epochs=3"),
        case("no_run", 2, function="nothing"),
        case("died_at_first", 2, function="train_where_one_dies_at_first"),
        case("directory", 2, function="train_another_directory"),
        case("elsewhere", 2, function="train_elsewhere"),
        case("package", 2, function="train_another_package"),
        case("data", 2, TABLE, function="train_other_data"),
        case("threads", 2, "bitwise=true", function="train_with_other_threads"),
        case("limit", 2, environment={"NN_MANUAL_TIME_LIMIT": "1 minute"}),
        case("wrong_layer", 2, "gradient_check.every=1", "slices=2", function="train_with_a_wrong_layer"),
        case("wrong_process", 2, "gradient_check.every=1", function="train_with_a_wrong_process"),
        case("broken", 2, "gradient_check.every=0", function="train_with_a_broken_process"),
        case("wrong_sum", 2, "gradient_check.every=1", function="train_with_a_wrong_sum"),
        case("sync_wrong_sum", 3, "gradient_check.every=1", function="train_with_a_wrong_sum", config="sync"),
        case("sync_wrong", 2, "gradient_check.every=2", function="train_with_a_wrong_sync_batch_norm", config="sync"),
        case("sync_killed", 3, *LONG, config="sync", victim=2, signum=signal.SIGKILL, after=EPOCH),
        case("wrong_parameters", 2, "gradient_check.every=1", function="train_with_other_parameters"),
        case("ddp", 2, function="beside_ddp"),
        case("collectives", 3, function="collectives"),
        case("leave", 2, function="leave"),
        case("memory", 2, function="memory_of_vectors"),
        case("buckets", 2, function="many_buckets"),
    ]
    run_cases([each for each in cases if {Path(each["logs"]).stem, Path(each["directory"]).name} & names], folder)


def results_of(directory: Path) -> dict[str, Any]:
    """The bytes of the weights and of the optimizer's state at the end, the metrics, and the ledger."""
    lines = [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]
    last = max((int(path.name.removeprefix("step-")), path) for path in directory.glob("checkpoints/step-*"))[1]
    return {
        "weights": (directory / "model.safetensors").read_bytes(),
        "state": (last / "state.safetensors").read_bytes(),
        "metrics": [{key: value for key, value in line.items() if key != "seconds"} for line in lines],
        "ledger": (directory / "gradients.jsonl").read_text(),
    }


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("two", "alone"),
        slow("four", "alone"),
        slow("averaged_two", "averaged_alone"),
        slow("last_two", "last_alone"),
        slow("norm_three", "norm_alone"),
        slow("sync_two", "sync_alone"),
        slow("sync_three", "sync_alone"),
        slow("four_before", "alone"),
        slow("compiled_three", "compiled_alone"),
    ],
)
def test_the_same_slices_give_the_same_bytes_on_any_number_of_processes(folder: Path, name: str, other: str) -> None:
    """Sharded and not, compiled and not; in a run that 4 processes begin and 2 end, too."""
    ours, theirs = results_of(folder / name), results_of(folder / other)
    assert len(ours["metrics"]) == 4
    assert [key for key in ours if ours[key] != theirs[key]] == []


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("fast", "alone"),
        slow("sync_fast", "sync_alone"),
        slow("compiled_alone", "norm_alone"),
        slow("compiled_fast", "norm_alone"),
    ],
)
def test_without_bitwise_they_are_equal_within_rounding(folder: Path, name: str, other: str) -> None:
    """It alone adds gradients in another order on each number of processes."""
    fast, alone = (read_weights(folder / each / "model.safetensors") for each in (name, other))
    for name, weight in alone.items():
        np.testing.assert_allclose(fast[name], weight, rtol=0, atol=1e-5)


@pytest.mark.cases("fast", "two")
def test_the_first_alone_prints(folder: Path) -> None:
    assert statuses_of(folder / "fast.logs") == [0, 0]
    first = log_of(folder / "fast.logs", 0)
    lines = first.splitlines()
    assert lines[0] == "2 processes, 4 slices a batch; gradients are added up as is fastest"
    assert [line.split()[0] for line in lines[2:4]] == ["epoch", "1/4"]
    assert "gradient right: " in first
    assert log_of(folder / "fast.logs", 1) == ""
    assert "added up one by one: the same bits on any number of processes" in log_of(folder / "two.logs", 0)


TOO_MANY = "nn-manual: override 'slices=18': slices must be at most 17, the examples in a batch, not 18\n"


@pytest.mark.parametrize(
    ("name", "statuses", "message"),
    [
        ("killed", [7, -9, 7], "nn-manual: process 1 died\nstopped in epoch "),
        slow("hung", [7, -9], "nn-manual: process 1 didn't come within 10 s\nstopped in epoch "),
        slow("first_killed", [-9, 7], "nn-manual: process 0 died\nstopped in epoch "),
        slow("broken", [7, 2], "nn-manual: not enough memory: broken\nstopped in epoch 2 at step 6; the run so far "),
        slow("asked", [143, 143], "nn-manual: terminated\nstopped in epoch "),
        slow("divided", [2] * 3, "nn-manual: slices must be a multiple of 3, the processes, not 4\n"),
        slow("many", [2], TOO_MANY),
        slow("compiled_sync", [2, 2], "nn-manual: compiled must be false with sync_batch_norm: its slices wait "),
        ("override", [2, 2], "nn-manual: process 1 has another optimizer.SGD.lr than process 0: 0.2, not 0.1\n"),
        slow("many_two", [2, 2], TOO_MANY),
        slow("few", [2] * 3, "nn-manual: slices must be a multiple of 3, the processes, not 2\n"),
        slow("length", [2, 2], "nn-manual: process 1 has another model than process 0: [{Linear: "),
        slow("config", [2, 2], "process 1 has another data.Spirals.num_examples than process 0: 90, not 71\n"),
        slow("no_config", [7, 2], "missing.yaml: No such file or directory\nprocess 1 says so, of 2\n"),
        slow("usage", [2, 2], "nn-manual: error: unrecognized arguments: --epochs=3\n"),
        slow("no_run", [2, 2], "nn-manual: train takes one of these: CONFIG, --resume RUN\n"),
        slow("died_at_first", [7, -9], "nn-manual: process 1 died\n"),
        slow("directory", [2, 2], "nn-manual: process 1 has another --run-dir than process 0: "),
        slow("elsewhere", [5, 5], "run: process 1 doesn't see the run directory, which process 0 has made\n"),
        slow("package", [2, 2], "nn-manual: process 1 has another source.layers/linear.py than process 0: "),
        slow("data", [5, 5], "nn-manual: process 1 has another data than process 0: "),
        slow("threads", [2, 2], "nn-manual: process 1 has another number of BLAS threads than process 0: 2, not 1\n"),
        slow("limit", [2, 2], "NN_MANUAL_TIME_LIMIT must be a number of seconds above 0 and below 86400, not '1 "),
        slow("wrong_layer", [3, 3], "nn-manual: gradient check failed: wrong first in 3 (Linear): 3.grad_weight\n"),
        slow("wrong_process", [3, 3], "gradient check failed: process 1: wrong first in 3 (Linear): 3.grad_weight."),
        slow("wrong_sum", [3, 3], "nn-manual: gradient check failed: process 1: "),
        slow("sync_wrong_sum", [3] * 3, "gradient check failed: process 1: wrong first in sum over the slices"),
        slow("sync_wrong", [3, 3], "computed\nstopped in epoch 1 at step 2; the run so far lies in "),
        slow("sync_killed", [7, 7, -9], "nn-manual: process 2 died\nstopped in epoch "),
        slow("wrong_parameters", [3, 3], "updated 3.bias of process 1 is not that of process"),
    ],
)
def test_one_message_says_what_ended_all(folder: Path, name: str, statuses: list[int], message: str) -> None:
    logs = folder / f"{name}.logs"
    assert statuses_of(logs) == statuses
    both = "".join(log_of(logs, rank) for rank in range(len(statuses)))
    assert message in both
    assert both.count("nn-manual: ") == 1
    assert "Traceback" not in both


@pytest.mark.slow
@pytest.mark.cases("sync_wrong")
def test_a_wrong_synchronised_layer_is_named_and_can_be_run_again(folder: Path) -> None:
    """By the tensor, and the process that computed its worst row; with the bundle."""
    log = log_of(folder / "sync_wrong.logs", 0)
    assert "nn-manual: gradient check failed: wrong first in 1 (BatchNorm1d): 1.grad_input\n" in log
    assert re.search(r"\nthat is row (1[2-9]|2[0-3]) of the batch, which process 1 computed\n", log)
    assert (folder / "sync_wrong" / "mismatch-step-2" / "tensors.safetensors").exists()


@pytest.mark.slow
@pytest.mark.cases("asked")
def test_all_stop_at_the_same_step_and_can_go_on(folder: Path) -> None:
    log = log_of(folder / "asked.logs", 0)
    assert "to go on from step " in log
    assert list((folder / "asked" / "checkpoints").glob("step-*"))


@pytest.mark.slow
@pytest.mark.cases("ddp")
def test_what_torch_distributed_data_parallel_computes(folder: Path) -> None:
    """On the same slices, in float64."""
    assert statuses_of(folder / "ddp.logs") == [0, 0]
    for rank in range(2):
        ours, theirs = np.load(folder / f"ddp.{rank}.npy")
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-13)
    assert np.array_equal(*(np.load(folder / f"ddp.{rank}.npy")[0] for rank in range(2)))


@pytest.mark.cases("collectives")
def test_the_calls_of_a_group(folder: Path) -> None:
    """They end when the third process leaves without a word."""
    assert statuses_of(folder / "collectives.logs") == [0, 0, 9], log_of(folder / "collectives.logs", 0)


@pytest.mark.slow
@pytest.mark.cases("leave")
def test_no_thread_stays_behind(folder: Path) -> None:
    """One that is in torch's code while Python ends aborts the process."""
    assert statuses_of(folder / "leave.logs") == [0, 0], log_of(folder / "leave.logs", 0)


@pytest.mark.slow
@pytest.mark.cases("memory")
def test_a_sharded_optimizer_keeps_its_part(folder: Path) -> None:
    sizes = [np.load(folder / f"memory.{rank}.npy").tolist() for rank in range(2)]
    whole = 600 * 601 * 4
    assert sizes == [[whole, whole // 2]] * 2


@pytest.mark.slow
@pytest.mark.cases("buckets")
def test_buckets_that_share_memory_are_added_up_one_after_the_other(folder: Path) -> None:
    assert statuses_of(folder / "buckets.logs") == [0, 0], log_of(folder / "buckets.logs", 0)
    for rank in range(2):
        alone, *ways = np.load(folder / f"buckets.{rank}.npy")
        assert all(np.array_equal(way, alone) for way in ways)
