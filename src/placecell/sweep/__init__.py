"""Sweeps: many configurations through the same arrow.

The module is also the function: `placecell.sweep(configs, "runs/mine")` trains them all, and
`placecell.sweep.grid` plans them.
"""

from __future__ import annotations

import os
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from placecell.config import RunConfig
from placecell.config.labels import flatten, label, varying
from placecell.errors import InputError
from placecell.store.index import Store, load_store
from placecell.sweep import driver
from placecell.sweep.backends.base import MakeBackend
from placecell.sweep.backends.local import local
from placecell.sweep.driver import Outcome, Tally
from placecell.sweep.estimate import worth_compiling
from placecell.sweep.grid import grid
from placecell.sweep.outcomes import Outcomes
from placecell.train.run import complete, make_task

__all__ = [
    "Outcome",
    "Outcomes",
    "Store",
    "Tally",
    "flatten",
    "grid",
    "label",
    "load_store",
    "local",
    "sweep",
    "varying",
]


def sweep(
    configs: Sequence[RunConfig | Mapping[str, Any]],
    out: Path | str,
    backend: MakeBackend | None = None,
    *,
    device: str = "auto",
    threads: int = 1,
    checkpoint_seconds: float = 30.0,
    retries: int = 2,
    compile: bool | Literal["auto"] = False,
    on_done: Callable[[Outcome], None] = lambda outcome: None,
    on_tick: Callable[[Tally], None] = lambda tally: None,
) -> Outcomes:
    """Train many configurations, each in a folder of its own under `out`.

    Runs that are done already are reused; one that fails does not stop the others; one that another
    process is working on is waited for. Ctrl-C (or SIGTERM) once: running runs save a checkpoint
    and the rest are left for the next time. Twice: the workers are ended at once, and what they
    saved before is there.

    Parameters
    ----------
    configs
        The runs, as `placecell.sweep.grid` plans them, or dicts that `RunConfig.of` takes.
    out
        The folder of the runs.
    backend
        Who works on them: `placecell.sweep.local(n)` for n processes of this machine (0: this
        process itself), or `placecell.sweep.backends.ray.on_ray(...)`. None takes one process per
        core. A script that uses processes needs `if __name__ == "__main__":` around its call.
    device
        `auto`, `cpu`, `cuda` and so on, for every run.
    threads
        Threads of each run.
    checkpoint_seconds
        Seconds between checkpoints of a run.
    retries
        How often a run whose worker died is begun again from its last checkpoint.
    compile
        Whether to compile the training step; each worker does it once for all runs that differ in
        values only. `auto` compiles where an estimate says that it pays, which is for long sweeps.
        Compiled results differ from others by rounding.
    on_done
        Called with the outcome of each run as it ends.
    on_tick
        Called twice a second with how the sweep stands.

    Returns
    -------
    Outcomes
        A list of how each run went, with `counts` and `to_frame()`.

    Examples
    --------
    >>> base = placecell.preset("latin_square", "quick")  # doctest: +SKIP
    >>> axes = {"encoding": "learnable", "sigma": [0.1, 2.0]}  # doctest: +SKIP
    >>> configs = placecell.sweep.grid(base, [], axes, seeds=3)  # doctest: +SKIP
    >>> print(placecell.sweep(configs, "runs/mine"))  # doctest: +SKIP
    runs/mine: 6 done; 0 were there already
    """
    cores = max(1, (os.cpu_count() or 1) // max(1, threads))
    if backend is None:
        backend = local(cores)
    if isinstance(configs, RunConfig | Mapping):
        raise InputError("a sweep takes a list of configurations; placecell.run takes one.")
    runs = [config if isinstance(config, RunConfig) else _from_dict(config) for config in configs]
    compiled = frozenset(config.name for config in runs if compile is True)
    if compile == "auto":
        workers = getattr(backend, "keywords", {}).get("workers") or cores
        compiled = worth_compiling(runs, Path(out), device, workers)
    outcomes = driver.sweep(
        runs,
        out,
        backend,
        device=device,
        threads=threads,
        checkpoint_seconds=checkpoint_seconds,
        retries=retries,
        compiled=compiled,
        on_done=on_done,
        on_tick=on_tick,
    )
    return Outcomes(outcomes, out)


def _from_dict(values: Mapping[str, Any]) -> RunConfig:
    """A run with all its settings, so that its name is that of its folder."""
    config = RunConfig.of(values)
    return complete(config, make_task(config))


class _Sweep(types.ModuleType):
    __call__ = staticmethod(sweep)


sys.modules[__name__].__class__ = _Sweep
