"""Clean a run's time series: each step is switched on or off by the settings, in a fixed order."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray

from placecell.errors import InputError
from placecell.tasks.fmri.config import Config

Array = NDArray[np.float64]
ORDER = 2  # of the Butterworth filter, which runs forwards and backwards to avoid a delay


def preprocess(
    series: Array,
    confounds: Array | None,
    config: Config,
    name: str = "series",
    seconds: float | None = None,
) -> Array:
    """Detrend, filter and standardise a run, and regress out confounds, as configured.

    Confounds and the global signal are filtered like the series before they are regressed out:
    regressing filtered series on unfiltered confounds would bring the removed frequencies back.

    Parameters
    ----------
    series : array of shape (time, n)
    confounds : array of shape (time, c) or None
    config : Config
        Says which steps to apply.
    name : str
        What error messages call the run.
    seconds : float, optional
        Seconds per volume; needed only for a filter.

    Returns
    -------
    array of shape (time, n)
    """
    nuisance = [np.ones((len(series), 1))]
    if config.detrend:
        nuisance.append(np.linspace(-1, 1, len(series))[:, None])
    x, signals = series - series.mean(0), []
    if confounds is not None:
        signals.append(confounds - confounds.mean(0))
    if config.global_signal:
        signals.append(x.mean(1, keepdims=True))
    if config.detrend:
        x = scipy.signal.detrend(x, axis=0)
    sections = _filter(config, name, seconds)
    x = _filtered(x, sections)
    if config.detrend:
        signals = [scipy.signal.detrend(s, axis=0) for s in signals]
    nuisance += [_filtered(s, sections) for s in signals]
    if signals:
        regressors = np.concatenate(nuisance, axis=1)
        if regressors.shape[1] >= len(series):
            raise InputError(
                f"{name}: {regressors.shape[1]} confounds for {len(series)} volumes "
                "leave nothing over."
            )
        x = x - regressors @ np.linalg.lstsq(regressors, x, rcond=None)[0]
    if config.standardize:
        spread = x.std(0)
        empty = np.flatnonzero(spread <= 1e-9 * series.std(0))
        if len(empty):
            raise InputError(f"{name}: nothing is left of region {empty[0] + 1} after cleaning.")
        x = (x - x.mean(0)) / spread
    return x


def _filter(config: Config, name: str, seconds: float | None) -> Array | None:
    """The filter that the settings ask for, in second-order sections; None if they ask for none."""
    band = {"high_pass": config.high_pass, "low_pass": config.low_pass}
    wanted = {key: frequency for key, frequency in band.items() if frequency is not None}
    if not wanted:
        return None
    if seconds is None:
        raise InputError(
            f"{name}: a filter needs the seconds a volume took, which the file does not say: "
            "set repetition_time."
        )
    for key, frequency in wanted.items():
        if frequency >= 0.5 / seconds:
            raise InputError(
                f"{name}: {key} must lie below {0.5 / seconds:.4g} Hz (half the sampling rate), "
                f"not {frequency}."
            )
    kind = "bandpass" if len(wanted) == 2 else next(iter(wanted)).replace("_", "")
    edges = [*wanted.values()] if len(wanted) == 2 else next(iter(wanted.values()))
    sections: Array = scipy.signal.butter(ORDER, edges, kind, fs=1 / seconds, output="sos")
    return sections


def _filtered(x: Array, sections: Array | None) -> Array:
    """Apply a filter along time; None changes nothing."""
    if sections is None:
        return x
    filtered: Array = scipy.signal.sosfiltfilt(sections, x, axis=0)
    return filtered
