"""Who trains: each makes a function that trains an epoch."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.peers.classifiers import scikit_learn, thinc
from benchmarks.peers.subjects import Subject
from nn_manual import Trainer
from nn_manual.arrays import Array
from nn_manual.compile.blas import MEASURED, Blas, Choice
from nn_manual.compile.blas import blas_of as own_blas
from nn_manual.data import Examples

if TYPE_CHECKING:  # compilers are only loaded by the contestants that need them
    from nn_manual.compile.plan import Plan

Epoch = Callable[[], object]


class OwnEpoch:
    """An epoch of a trainer of this package."""

    def __init__(self, subject: Subject, trainer: Trainer) -> None:
        inputs, targets = subject.stacked()
        self.trainer, self._batch_size = trainer, len(inputs[0])
        self._examples = Examples(np.concatenate(inputs), np.concatenate(targets))

    def __call__(self) -> None:
        """Train it."""
        for _ in self.trainer.epoch(self._examples, self._batch_size, seed=0, epoch=0):
            pass

    @property
    def choice(self) -> Choice:
        """Whose BLAS its compiled steps call, on how many threads."""
        return self.trainer.prepare(self._examples, self._batch_size)


class Products:
    """The products of a plan's steps."""

    def __init__(self, plan: Plan, inputs: Array, targets: Array, of_steps: Mapping[str, Array]) -> None:
        self._plan, self._arguments = plan, (inputs, targets, of_steps)
        self.choice = Choice(plan.blas.name, plan.threads)

    def __call__(self) -> None:
        """Make them."""
        self._plan.run(*self._arguments)


def plain(subject: Subject) -> Epoch:
    """This package: the formulas run by NumPy."""
    return OwnEpoch(subject, subject.new_trainer())


def checked(subject: Subject) -> Epoch:
    """This package, compiled, with every tensor of every step compared with torch's."""
    return OwnEpoch(subject, subject.new_trainer(checked=True, compiled=True))


def torch_eager(subject: Subject) -> Epoch:
    """torch as its users write it, with the fused optimizer."""
    return _torch(subject, lambda function: function)


def torch_compiled(subject: Subject) -> Epoch:
    """The same, with forward, loss and so backward under torch.compile."""
    import torch

    return _torch(subject, torch.compile)


def _torch(subject: Subject, compiled: Callable[[Any], Any]) -> Epoch:
    import torch

    from benchmarks.torch_nets import torch_loss, torch_net, torch_optimizer

    trainer = subject.new_trainer()
    net, loss = torch_net(trainer.model), torch_loss(trainer.loss)
    optimizer, max_norm = torch_optimizer(trainer.optimizer, net), trainer.clip_grad_norm
    batches = [(torch.from_numpy(input), torch.from_numpy(target)) for input, target in subject.batches()]
    loss_of = compiled(lambda input, target: loss(net(input), target))

    def epoch() -> None:
        for input, target in batches:
            optimizer.zero_grad()
            loss_of(input, target).backward()
            if max_norm is not None:
                torch.nn.utils.clip_grad_norm_(net.parameters(), max_norm)
            optimizer.step()

    return epoch


def jax_jit(subject: Subject) -> Epoch:
    """JAX, a compiled step at a time."""
    from benchmarks.peers.jax_training import jitted

    return jitted(subject)


def jax_scan(subject: Subject) -> Epoch:
    """JAX, an epoch in one call."""
    from benchmarks.peers.jax_training import scanned

    return scanned(subject)


def compiled(subject: Subject) -> Epoch:
    """This package, compiled."""
    return OwnEpoch(subject, subject.new_trainer(compiled=True))


def products(subject: Subject) -> Epoch:
    """The products of the compiled step alone, one after the other, on its memory: no trainer that uses the same BLAS
    is faster.
    """
    from nn_manual.compile.compile_step import compile_step
    from nn_manual.compile.plan import Plan
    from nn_manual.compile.program import KernelCall

    trainer, (inputs, targets) = subject.new_trainer(), subject.stacked()
    trainer.train_step(inputs[0], targets[0])
    model, optimizer = trainer.model, trainer.optimizer
    plan = compile_step(model, trainer.loss, optimizer, inputs[0], targets[0], trainer.clipping, lambda _: None)
    calls = [call for call in plan.program.calls if isinstance(call, KernelCall) and call.is_product]
    of_products = plan.program._replace(calls=calls)  # type: ignore[arg-type]  # a list of some
    floor = Plan(model, optimizer, of_products, plan.kernels, plan.blas, plan.threads, plan.loop_threads)
    of_steps = {
        f"{i}.{name}": np.full(len(inputs), value, model.dtype)
        for i, part in enumerate(optimizer.parts)
        for name, value in part.member.coefficients(2).items()
    }
    return Products(floor, inputs, targets, of_steps)


def blas_of(contestant: str, epoch: Epoch, threads: int) -> str:
    """Who multiplies its matrices, and on how many threads: on the given number, unless it chose by itself."""
    choice = getattr(epoch, "choice", MEASURED)
    if choice.blas is not None:
        library, threads = f"{choice.blas}'s {_short(own_blas(choice.blas))}", choice.threads or threads
    elif contestant.startswith("torch"):
        import torch

        found = re.search(r"Math Kernel Library Version (\S+?)-", torch.__config__.show())
        library = f"MKL {found[1]}" if found else "torch's own"
    elif contestant.startswith("JAX"):
        library = "XLA's own"
    elif contestant == "thinc":
        library = "BLIS of its own"
    else:
        library = f"numpy's {_short(own_blas('numpy'))}"
    return f"{library}; {threads} thread{'s' if threads > 1 else ''}"


def _short(blas: Blas) -> str:
    """The short name, openblas 0.3.31, so that a line of the table has at most 80 columns."""
    return re.sub(r"^(\w+ \d+\.\d+\.\d+)\b.*", r"\1", blas.library)


#: By name, in the order of the table.
CONTESTANTS: dict[str, Callable[[Subject], Epoch]] = {
    "compiled": compiled,
    "plain": plain,
    "torch": torch_eager,
    "torch.compile": torch_compiled,
    "JAX jit": jax_jit,
    "JAX scan": jax_scan,
    "scikit-learn": scikit_learn,
    "thinc": thinc,
    "products": products,
    "every: 1": checked,
}
