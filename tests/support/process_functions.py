"""What the processes of a case run."""

from __future__ import annotations

import functools
import importlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed

from nn_manual import SGD, CrossEntropyLoss, Linear, MSELoss, ReLU, Sequential, Trainer
from nn_manual.arrays import Array
from nn_manual.cli import main
from nn_manual.errors import ProcessLostError
from nn_manual.optim import Optimizer
from nn_manual.run import agreement
from nn_manual.run.environment import set_blas_threads
from nn_manual.step.slices import gradient_sum
from nn_manual.step.slices.buckets import buckets_of
from nn_manual.step.slices.cut import Slicing
from nn_manual.step.slices.process_group import Work
from nn_manual.step.slices.sync_batch_norm import SyncBatchNorm
from nn_manual.step.slices.torchrun import TorchGroup, processes

torch.set_num_threads(1)


def warm_up(config: Path, directory: Path) -> None:
    """Load what a run loads. Nothing may be checked: torch's autograd doesn't survive a fork."""
    torch.optim.SGD([torch.zeros(1)])  # the first optimizer takes two seconds to load what torch compiles with
    main(["train", str(config), "epochs=1", "gradient_check.every=0", "--run-dir", str(directory)])


def train(directory: Path, rank: int, *arguments: str) -> int:
    """`nn-manual train ARGUMENTS --run-dir DIRECTORY`. An argument `2: ...` is that of process 2 alone."""
    own = [argument.removeprefix(f"{rank}: ") for argument in arguments]
    return main(["train", *[each for each in own if ": " not in each[:4]], "--run-dir", str(directory)])


def resume(directory: Path, rank: int, *arguments: str) -> int:  # noqa: ARG001 - all do the same
    """`nn-manual train --resume DIRECTORY`."""
    return main(["train", "--resume", str(directory), *arguments])


def nothing(directory: Path, rank: int) -> int:  # noqa: ARG001 - all do the same
    """`nn-manual train`."""
    return main(["train"])


def train_where_one_dies_at_first(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and process 1 dies where the processes agree; torchrun then sends SIGTERM to the other."""
    gather = TorchGroup.gather

    def dying(group: TorchGroup, value: Any) -> list[Any]:
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        threading.Timer(1, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return gather(group, value)

    TorchGroup.gather = dying  # type: ignore[assignment, method-assign]  # the first argument is called self there
    return train(directory, rank, *arguments)


def train_with_a_wrong_layer(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and a Linear's gradient is wrong for 8 examples: the second slice of 17 in 2."""
    return _train_with_a_fault(directory, rank, lambda grad_output: len(grad_output) == 8, *arguments)


def train_with_a_wrong_process(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and the same is wrong on process 1, whatever it gets."""
    return _train_with_a_fault(directory, rank, lambda _: rank == 1, *arguments)


def train_with_a_broken_process(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and in the seventh step the layers of process 1 raise."""
    forward = ReLU.forward

    def broken(layer: ReLU, input: Array) -> Any:
        if rank == 1 and len(steps_done) == 6:
            raise MemoryError("broken")
        return forward(layer, input)

    step, steps_done = SGD.step, list[int]()

    def counted(optimizer: Optimizer) -> None:
        step(optimizer)
        steps_done.append(optimizer.num_steps)

    ReLU.forward, SGD.step = broken, counted  # type: ignore[assignment, method-assign]  # the first argument is called self there
    return train(directory, rank, *arguments)


def train_with_a_wrong_sync_batch_norm(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and a SyncBatchNorm's gradient is wrong on process 1."""
    right = SyncBatchNorm.backward

    def wrong(layer: SyncBatchNorm, saved: Any, grad_output: Array) -> Array:
        return right(layer, saved, grad_output) * np.float32(1.01 if rank == 1 else 1)

    SyncBatchNorm.backward = wrong  # type: ignore[assignment, method-assign]  # the first argument is called self there
    return train(directory, rank, *arguments)


def train_another_config(directory: Path, rank: int, config: str, other: str) -> int:
    """`train`, and process 1 has another config."""
    return train(directory, rank, other if rank == 1 else config)


def train_another_directory(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and process 1 has another run directory."""
    return train(directory.with_name("another") if rank == 1 else directory, rank, *arguments)


def train_elsewhere(directory: Path, rank: int, *arguments: str) -> int:
    """`train` where the run directory is relative, and process 1 stands in another folder, which has one of its own."""
    folder = directory.with_name(f"{directory.name}.{rank}")
    (folder / "run").mkdir(parents=True)
    if rank == 1:
        (folder / "run" / "config.yaml").touch()
    os.chdir(folder)
    return train(Path("run"), rank, *arguments)


def train_other_data(directory: Path, rank: int, *arguments: str) -> int:
    """`train` on a file of data, in which process 1 finds another number."""
    folder = directory.with_name(f"{directory.name}.{rank}")
    folder.mkdir()
    os.chdir(folder)
    rows = [f"{0.1 * (row + rank)},{row % 3},{row % 2}" for row in range(80)]
    Path("data.csv").write_text("\n".join(["a,b,class", *rows]) + "\n")
    return train(directory, rank, *arguments)


def train_another_package(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and the package of process 1 lies elsewhere, where a file is another."""
    if rank == 1:
        package = Path(f"{directory}.package")
        source, ignore = Path(agreement.__file__).parents[1], shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, package, ignore=ignore, copy_function=shutil.copyfile)  # it may be read-only
        with (package / "layers" / "linear.py").open("a") as file:
            file.write("# changed\n")
        agreement.__file__ = str(package / "run" / "agreement.py")
    return train(directory, rank, *arguments)


def train_with_other_threads(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and the BLAS of process 1 takes two threads."""
    set_blas_threads(1 + rank)
    return train(directory, rank, *arguments)


def _train_with_a_fault(directory: Path, rank: int, is_wrong: Callable[[Array], bool], *arguments: str) -> int:
    methods: dict[str, Callable[[Linear, Any, Array], Any]] = {
        name: getattr(Linear, name) for name in ("backward", "backward_parameters")
    }

    def wrong(name: str, layer: Linear, saved: Any, grad_output: Array) -> Any:
        result = methods[name](layer, saved, grad_output)
        if layer.out_features == 2 and is_wrong(grad_output):
            layer.grad.weight[...] = 1.5
        return result

    for name in methods:
        setattr(Linear, name, functools.partialmethod(functools.partial(wrong, name)))
    return train(directory, rank, *arguments)


def train_with_a_wrong_sum(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and an all-reduce of gradients gives process 1 a wrong number."""
    start_sum = TorchGroup.start_sum

    class Spoilt:
        def __init__(self, work: Work, array: Array) -> None:
            self.work, self.array = work, array

        def wait(self) -> None:
            self.work.wait()
            if rank == 1 and self.array.dtype == np.float32:
                self.array[0] *= 1.01

    TorchGroup.start_sum = lambda self, array: Spoilt(start_sum(self, array), array)  # type: ignore[method-assign]
    return train(directory, rank, *arguments)


def train_with_other_parameters(directory: Path, rank: int, *arguments: str) -> int:
    """`train`, and after each update a parameter of process 1 has another last bit."""
    step = SGD.step

    def wrong(optimizer: Optimizer) -> None:
        step(optimizer)
        if rank == 1:
            last = optimizer.model.param_arena
            last[-1:] = np.nextafter(last[-1:], np.float32(np.inf))

    SGD.step = wrong  # type: ignore[assignment, method-assign]  # the first argument is called self there
    return train(directory, rank, *arguments)


def beside_ddp(directory: Path, rank: int) -> int:
    """Ten steps of 2 processes in float64, and the same by torch's DistributedDataParallel."""
    rng = np.random.default_rng(0)
    input, target = rng.normal(size=(10, 24, 6)), rng.integers(0, 3, (10, 24))
    model = Sequential(Linear(6, 8), ReLU(), Linear(8, 3), seed=1, dtype="float64")
    torchs = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3)).double()
    torchs.load_state_dict({name: torch.from_numpy(array.copy()) for name, array in model.state_dict().items()})
    with processes() as group:
        group.connect()
        parallel = torch.nn.parallel.DistributedDataParallel(torchs)
        torch_optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.9)
        slicing = Slicing(group.size, group)
        trainer = Trainer(model, CrossEntropyLoss(), SGD(model, lr=0.1, momentum=0.9), slicing=slicing)
        own = slice(12 * rank, 12 * (rank + 1))
        for inputs, targets in zip(input, target, strict=True):
            trainer.train_step(inputs, targets)
            torch_optimizer.zero_grad()
            prediction = parallel(torch.from_numpy(inputs[own]))
            torch.nn.functional.cross_entropy(prediction, torch.from_numpy(targets[own])).backward()  # type: ignore[no-untyped-call]  # torch's own lack of annotations
            torch_optimizer.step()
        del parallel  # with the group gone, its end would wait for ever
        theirs = np.concatenate([parameter.detach().numpy().ravel() for parameter in torchs.parameters()])
        np.save(f"{directory}.{rank}.npy", np.stack([model.param_arena, theirs]))
    return 0


def collectives(directory: Path, rank: int) -> int:  # noqa: ARG001 - as every function of a case
    """What a TorchGroup's calls give, before and after it has connected."""
    with processes() as group:
        assert group.gather({"rank": rank}) == [{"rank": other} for other in range(group.size)]
        group.connect()
        assert group.gather({"rank": rank}) == [{"rank": other} for other in range(group.size)]
        gathered = group.gather_arrays(np.full((rank, 2), rank, np.float32))  # of the first there is none
        assert [array.tolist() for array in gathered] == [[[other, other]] * other for other in range(group.size)]
        array = np.full(3, float(rank))
        group.broadcast(array, 1)
        assert array.tolist() == [1, 1, 1]
        array = np.full(3, 2.0**rank)
        group.start_sum(array).wait()
        assert array.tolist() == [2**group.size - 1] * 3
        sent, received = np.arange(5.0) + 10 * rank, np.zeros(group.size * [2, 2, 1][rank])
        group.start_exchange(sent, [2, 2, 1], received, [[2, 2, 1][rank]] * group.size).wait()
        own = [[0, 1], [2, 3], [4]][rank]
        assert received.tolist() == [10 * other + number for other in range(group.size) for number in own]
        if rank == 2:
            return 9  # it leaves without a word
        with pytest.raises(ProcessLostError, match=r"^process 2 died$"):
            group.broadcast(array, 2)
    return 0


def leave(directory: Path, rank: int) -> int:  # noqa: ARG001 - as every function of a case
    """What is loaded between the group's beginning and its end must not keep its threads."""
    names = [name for name in sys.modules if name.startswith("torch.distributed.nn")]
    for name in names:
        del sys.modules[name]
    with processes() as group:
        group.connect()
        group.gather(rank)
        assert "pt_gloo_runloop" in _threads()
        importlib.import_module("torch.distributed.nn.functional")
    assert "pt_gloo_runloop" not in _threads()
    return 0


def _threads() -> set[str]:
    """The names of this process's threads."""
    return {path.read_text().strip() for path in Path("/proc/self/task").glob("*/comm")}


def memory_of_vectors(directory: Path, rank: int) -> int:
    """The bytes that an optimizer keeps on each process, whole and sharded."""
    sizes = []
    with processes() as group:
        group.connect()
        for shard_optimizer in (False, True):
            model = Sequential(Linear(600, 600), seed=0)
            slicing = Slicing(group.size, group, shard_optimizer=shard_optimizer)
            optimizer = SGD(model, lr=0.1, momentum=0.9)
            trainer = Trainer(model, MSELoss(), optimizer, check_every=0, slicing=slicing)
            assert not trainer.slicing.is_plain
            sizes.append(sum(vector.nbytes for vector in optimizer.vectors.values()))
        np.save(f"{directory}.{rank}.npy", sizes)
    return 0


def many_buckets(directory: Path, rank: int) -> int:
    """The parameters after three steps, in buckets of 7: of 2 slices on one process, and of each way on as many."""
    gradient_sum.buckets_of = functools.partial(buckets_of, size=7)  # type: ignore[attr-defined]  # where it is called
    rng, found = np.random.default_rng(0), []
    input, target = rng.standard_normal((3, 12, 6), np.float32), rng.integers(0, 3, (3, 12))
    with processes() as group:
        group.connect()
        own = Slicing(group.size, group)
        ways = [replace(own, bitwise=True), replace(own, shard_optimizer=True)]
        for slicing in (Slicing(group.size), *ways, replace(own, bitwise=True, shard_optimizer=True)):
            model = Sequential(Linear(6, 8), ReLU(), Linear(8, 3), seed=1)
            optimizer = SGD(model, lr=0.1, momentum=0.9)
            trainer = Trainer(model, CrossEntropyLoss(), optimizer, clip_grad_norm=0.5, slicing=slicing)
            for inputs, targets in zip(input, target, strict=True):
                trainer.train_step(inputs, targets)
            found.append(model.param_arena)
        np.save(f"{directory}.{rank}.npy", found)
    return 0
