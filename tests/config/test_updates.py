"""Optimizers with several numbers and groups, and schedules made of others, in a config."""

from __future__ import annotations

from pathlib import Path

import pytest

from nn_manual.config import dump_config, load_config
from nn_manual.optim import Adam, AdamW, CosineAnnealingLR, LinearLR, ReduceLROnPlateau, SequentialLR

from .conftest import ErrorsOf, valid_but

GROUPS = "optimizer: {SGD: {lr: 0.1, momentum: 0.9, groups: [%s]}}"


def test_several_numbers(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(valid_but(11, "optimizer: {Adam: {betas: [0.9, 0.99]}}"))
    config = load_config(tmp_path / "run.yaml")
    optimizer = config.optimizer(config.new_model())
    assert isinstance(optimizer, Adam)
    assert optimizer.betas == (0.9, 0.99)
    assert optimizer.coefficients(1)["keep_sq"] == 0.99


def test_groups(tmp_path: Path) -> None:
    text = """optimizer:
  AdamW:
    lr: 0.01
    groups:
      - {parameters: "*.bias", weight_decay: 0}
      - parameters: 2.weight
        betas: [0.5, 0.9]
"""
    (tmp_path / "run.yaml").write_text(valid_but(11, text))
    config = load_config(tmp_path / "run.yaml", ["optimizer.AdamW.groups.0.lr=0.5"])
    optimizer = config.optimizer(config.new_model())
    assert isinstance(optimizer, AdamW)
    assert optimizer.groups == [
        {"parameters": "*.bias", "weight_decay": 0.0, "lr": 0.5},
        {"parameters": "2.weight", "betas": (0.5, 0.9)},
    ]
    assert [member.lr for member in optimizer.members] == [0.01, 0.5, 0.01]
    (tmp_path / "again.yaml").write_text(dump_config(config))
    again = load_config(tmp_path / "again.yaml")
    assert again.optimizer.keywords == config.optimizer.keywords


def test_a_schedule_of_schedules(tmp_path: Path) -> None:
    text = "lr_scheduler: {SequentialLR: {schedulers: [LinearLR, CosineAnnealingLR: {T_max: 15}], milestones: [5]}}"
    (tmp_path / "run.yaml").write_text(valid_but(12, text + "\nlr_step: step"))
    config = load_config(tmp_path / "run.yaml", ["lr_scheduler.SequentialLR.schedulers.0.LinearLR.total_iters=3"])
    assert config.lr_step == "step"
    assert config.lr_scheduler == SequentialLR([LinearLR(total_iters=3), CosineAnnealingLR(15)], [5])
    (tmp_path / "again.yaml").write_text(dump_config(config))
    assert load_config(tmp_path / "again.yaml").lr_scheduler == config.lr_scheduler


def test_each_run_has_a_schedule_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(valid_but(12, "lr_scheduler: {ReduceLROnPlateau: {patience: 0}}"))
    config = load_config(tmp_path / "run.yaml")
    first = config.new_scheduler()
    assert isinstance(first, ReduceLROnPlateau)
    first.observe(1.0)
    assert config.new_scheduler() == config.lr_scheduler != None  # noqa: E711 - all three
    assert config.lr_scheduler is not None
    assert config.lr_scheduler.state()["best"] == float("inf")


@pytest.mark.parametrize(
    ("line", "text", "error"),
    [
        (11, "optimizer: {Adam: {betas: [0.9]}}", "11:20: betas must be a list of 2, not of 1"),
        (11, "optimizer: {Adam: {betas: [0.9, x]}}", "11:33: betas[1] must be a number, not the text 'x'"),
        (11, "optimizer: {Adam: {betas: 0.9}}", "11:20: betas must be a list, not 0.9"),
        (11, "optimizer: {Adam: {betas: [0.9, 1.5]}}",
         "11:20: betas must be at least 0 and below 1, not [0.9, 1.5]"),
        # groups
        (11, GROUPS % "{parameters: '*.gain'}", "11:52: groups.0.parameters '*.gain' matches no parameter; "
         "there are 0.weight, 0.bias, 2.weight, 2.bias"),
        (11, GROUPS % "{parameters: '0.*'}, {parameters: 0.bias}",
         "11:73: groups.1.parameters '0.bias' matches only parameters of groups before it"),
        (11, GROUPS % "{parameters: '*', weight_decay: -1}",
         "11:70: groups.0.weight_decay must be at least 0, not -1.0"),
        (11, GROUPS % "{parameters: '*', weight_decay: much}",
         "11:70: weight_decay must be a number, not the text 'much'"),
        (11, GROUPS % "{parameters: '*', momentun: 0}",
         "11:70: unknown key 'momentun' in a group; did you mean 'momentum'?"),
        (11, GROUPS % "{parameters: '*', nesterov: true, momentum: 0}",
         "11:70: groups.0.nesterov needs a momentum above 0 and a dampening of 0"),
        (11, "optimizer: {SGD: {groups: [{parameters: '*', momentum: 0.5}]}}",
         "11:46: groups.0.momentum must not be 0.5 if SGD itself has momentum 0.0, and so no momentum_buffer"),
        (11, GROUPS % "{lr: 0}", "11:52: a group needs parameters, a pattern of parameter names"),
        (11, GROUPS % "'*.bias'", "11:52: a group takes keys and values, not the text '*.bias'"),
        (11, "optimizer: {SGD: {groups: {parameters: '*'}}}", "11:19: groups takes a list of groups, not a mapping"),
        # clipping
        (12, "clip_grad_norm: 1\nclip_grad_value: 1",
         "13:1: one of clip_grad_norm and clip_grad_value must go: what a step does would depend on which comes first"),
        # matrices
        (11, "optimizer: Muon", "11:12: Muon moves parameters with 2 dimensions, and 0.bias has 1"),
        (11, "optimizer: Muon\nshard_optimizer: true",
         "11:12: Muon moves parameters with 2 dimensions, and 0.bias has 1\n"
         "run.yaml:12:1: shard_optimizer must be false: Muon needs whole parameters"),
        # schedules
        (12, "lr_step: batch", "12:1: lr_step must be 'epoch' or 'step', not the text 'batch'"),
        (12, "lr_scheduler: {SequentialLR: {schedulers: [LinearLR], milestones: [3]}}",
         "12:55: milestones must be one fewer than the 1 scheduler, not 1"),
        (12, "lr_scheduler: {SequentialLR: {schedulers: LinearLR, milestones: []}}",
         "12:31: schedulers takes a list, not the text 'LinearLR'"),
        (12, "lr_scheduler: {SequentialLR: {schedulers: [LinearLr], milestones: []}}",
         "12:44: unknown lr_scheduler 'LinearLr'; did you mean 'LinearLR'?"),
        (12, "lr_scheduler: {SequentialLR: {schedulers: [LinearLR: {total_iters: -1}], milestones: []}}",
         "12:55: total_iters must be at least 0, not -1"),
        (12, "lr_scheduler: {SequentialLR: {schedulers: [ReduceLROnPlateau], milestones: []}}",
         "12:31: schedulers must not hold a ReduceLROnPlateau: torch's SequentialLR can't"),
        (12, "lr_scheduler: {ReduceLROnPlateau: {mode: max}}", "12:36: mode must be 'min', not the text 'max'"),
        (12, "lr_scheduler: ReduceLROnPlateau\nlr_step: step",
         "12:15: ReduceLROnPlateau needs lr_step epoch: a validation loss comes once an epoch"),
    ],
)  # fmt: skip - one case a line
def test_an_error(errors_of: ErrorsOf, line: int, text: str, error: str) -> None:
    assert "\n".join(errors_of(valid_but(line, text))) == f"run.yaml:{error}"


def test_all_errors_of_groups_at_once(errors_of: ErrorsOf) -> None:
    groups = "{parameters: '*', lr: -1, weight_decay: -2}, {lr: x}, {parameters: '0*', lr: -3}"
    assert errors_of(valid_but(11, GROUPS % groups)) == [
        "run.yaml:11:70: groups.0.lr must be at least 0, not -1.0",
        "run.yaml:11:78: groups.0.weight_decay must be at least 0, not -2.0",
        "run.yaml:11:97: a group needs parameters, a pattern of parameter names",
        "run.yaml:11:98: lr must be a number, not the text 'x'",
        "run.yaml:11:125: groups.2.lr must be at least 0, not -3.0",
    ]


def test_an_override_of_a_group(errors_of: ErrorsOf) -> None:
    override = "optimizer.SGD.groups=[{parameters: '*.gain'}]"
    assert errors_of(valid_but(12, ""), override)[0].startswith(f"override {override!r}: groups.0.parameters '*.gain'")


def test_no_parameter_is_missed_where_a_layer_has_an_error(errors_of: ErrorsOf) -> None:
    """The layer that can't be made may have had the parameter."""
    text = valid_but(11, GROUPS % "{parameters: '2.weight'}").replace(", out_features: 10", "")
    assert errors_of(text) == ["run.yaml:9:5: Linear needs out_features"]
