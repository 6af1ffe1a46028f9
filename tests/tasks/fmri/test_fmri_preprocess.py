"""Each step of the cleaning does what it says, alone and together."""

from __future__ import annotations

import numpy as np
import pytest

from placecell.errors import InputError
from placecell.tasks.fmri.config import Config
from placecell.tasks.fmri.preprocess import preprocess

TIME = 600
OFF = {"detrend": False, "standardize": False}


def series(seed: int = 0, n: int = 4) -> np.ndarray:
    return np.random.default_rng(seed).normal(500, 3, (TIME, n))


def test_everything_off_takes_the_mean_away_only() -> None:
    x = series()
    assert preprocess(x, None, Config(**OFF)) == pytest.approx(x - x.mean(0))


def test_a_straight_line_is_taken_away_and_nothing_else() -> None:
    x = series()
    line = np.linspace(0, 40, TIME)[:, None]
    plain, drifted = (preprocess(v, None, Config(standardize=False)) for v in (x, x + line))
    assert drifted == pytest.approx(plain, abs=1e-9)
    assert abs(np.polyfit(np.arange(TIME), drifted[:, 0], 1)[0]) < 1e-10


def test_standardised_per_region() -> None:
    x = preprocess(series() * [1, 10, 100, 1000], None, Config())
    assert x.mean(0) == pytest.approx(0, abs=1e-9)
    assert x.std(0) == pytest.approx(1)


def test_the_band_is_kept_and_the_rest_is_not() -> None:
    t = np.arange(TIME) * 0.72
    waves = {f: np.sin(2 * np.pi * f * t) for f in (0.002, 0.04, 0.4)}
    given = np.stack(list(waves.values()), 1)
    for band, kept in (
        ({"high_pass": 0.01, "low_pass": 0.1}, [False, True, False]),
        ({"high_pass": 0.01}, [False, True, True]),
        ({"low_pass": 0.1}, [True, True, False]),
    ):
        cleaned = preprocess(given, None, Config(**band, **OFF), seconds=0.72)
        power = cleaned[100:-100].std(0) / given[100:-100].std(0)
        assert (power[kept] > 0.9).all()
        assert (power[~np.array(kept)] < 0.1).all()


def test_a_filter_goes_by_the_seconds_of_each_run() -> None:
    config = Config(low_pass=0.3)
    with pytest.raises(InputError, match=r"slow\.npy: low_pass must lie below 0\.2 Hz"):
        preprocess(series(), None, config, "slow.npy", 2.5)
    with pytest.raises(InputError, match=r"a\.npy: a filter needs the seconds .* repetition_time"):
        preprocess(series(), None, config, "a.npy")
    assert not np.allclose(
        preprocess(series(), None, config, "a", 0.5), preprocess(series(), None, config, "a", 1.0)
    )


def test_confounds_are_gone_afterwards_also_with_a_filter() -> None:
    rng = np.random.default_rng(3)
    motion = rng.normal(size=(TIME, 2)).cumsum(0)
    x = series() + motion @ rng.normal(size=(2, 4)) * 5
    for config in (Config(), Config(high_pass=0.01, low_pass=0.1)):
        clean = preprocess(x, motion, config, seconds=0.72)
        left = preprocess(
            motion, None, Config(high_pass=config.high_pass, low_pass=config.low_pass), seconds=0.72
        )
        correlation = np.corrcoef(np.concatenate([clean, left], 1).T)[:4, 4:]
        assert np.abs(correlation).max() < 1e-6


def test_the_global_signal_is_gone_afterwards() -> None:
    x = series() + np.random.default_rng(4).normal(size=(TIME, 1)) * 10
    before, after = (
        np.corrcoef(preprocess(x, None, Config(global_signal=g)).T)[0, 1] for g in (False, True)
    )
    assert before > 0.8
    assert after < 0.1


def test_a_region_that_is_only_a_confound_is_refused() -> None:
    x = series()
    with pytest.raises(InputError, match=r"run\.npy: nothing is left of region 2"):
        preprocess(x, x[:, [1]], Config(), "run.npy")
    with pytest.raises(InputError, match="leave nothing over"):
        preprocess(x[:60], np.random.default_rng(0).normal(size=(60, 70)), Config(), "run.npy")
