"""What a sweep says of the time left, by a clock that the test turns."""

from __future__ import annotations

import pytest

from placecell.cli import progress
from placecell.cli.progress import SweepProgress
from placecell.config.presets import base_config
from placecell.sweep import Outcome, Tally
from placecell.train import RunResult


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


def test_the_time_left_of_a_resumed_sweep_is_by_the_steps_made_now(
    clock: list[float], tmp_path
) -> None:
    configs = [
        base_config("latin_square")[0].override({"seed": seed, "steps": 1000}) for seed in range(3)
    ]
    names = [config.name for config in configs]
    shown = SweepProgress(configs, lambda config: config.name)
    tally = Tally(3, running=dict(zip(names[:2], configs, strict=False)))
    clock[0] += 60  # workers start and draw data
    shown.on_tick(tally)
    assert "left" not in shown._times()
    tally.steps = {names[0]: 901, names[1]: 1}  # the first goes on from its checkpoint
    shown.on_tick(tally)
    clock[0] += 1
    tally.steps = {names[0]: 911, names[1]: 11}
    shown.on_tick(tally)
    assert "left" not in shown._times(), "too early to tell"
    clock[0] += 4
    tally.steps = {names[0]: 951, names[1]: 51}
    shown.on_tick(tally)
    # 100 steps in 5 seconds, and 49 + 949 + 1000 to go
    assert shown._times() == f" (65 s, about {1998 / 20:.0f} s left)"


def test_runs_that_end_before_they_are_seen_count(clock: list[float], tmp_path, capsys) -> None:
    configs = [
        base_config("latin_square")[0].override({"seed": seed, "steps": 10}) for seed in range(3)
    ]
    shown = SweepProgress(configs, lambda config: "run")
    shown.on_tick(Tally(3, steps={configs[0].name: 1}))
    for config in configs[:2]:
        clock[0] += 5
        shown.on_done(Outcome(config, RunResult(config, tmp_path, "done", 10, 5.0, ())))
    # 9 steps of the first (it was seen after one) and 10 of the second took 10 s; 10 are left
    assert f"about {10 / 19 * 10:.0f} s left" in capsys.readouterr().err
