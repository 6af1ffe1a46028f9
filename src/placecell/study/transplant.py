"""The causal check: do fresh models generalise with the frozen tables that others learned?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from placecell import analysis
from placecell.config import EncodingConfig, RunConfig
from placecell.errors import InputError
from placecell.seeds import numpy_stream
from placecell.store import Table, load_result
from placecell.sweep import Outcomes, sweep
from placecell.train.run import complete, make_task

if TYPE_CHECKING:
    import pandas as pd

    from placecell.sweep.backends.base import MakeBackend

# added to a donor's seed for the weights of the receiver, so that only the table is carried over
FRESH = 1000
FEWEST_SEEDS = 3  # of fewer, the text shows no interval


class TransplantPlan(NamedTuple):
    """The runs of a transplant: `donors` are trained first, then `receivers`."""

    pairs: list[tuple[RunConfig, RunConfig]]  # for each seed, the donors at small and at large σ
    arms: list[dict[str, RunConfig]]  # for each seed, the receivers by the name of their arm

    @property
    def donors(self) -> list[RunConfig]:
        """The runs that learn a table."""
        return [config for pair in self.pairs for config in pair]

    @property
    def receivers(self) -> list[RunConfig]:
        """The runs that take one over."""
        return [config for arms in self.arms for config in arms.values()]


@dataclass(frozen=True)
class Arm:
    """The scores of one arm, or differences of scores, over seeds.

    Attributes
    ----------
    seeds
        One value per seed.
    mean, low, high
        Their mean and its bootstrap interval.
    first_minus_this
        The first arm minus this one, paired by seed; None for the first arm, and for a difference.
    """

    seeds: list[float]
    mean: float
    low: float
    high: float
    first_minus_this: Arm | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the arm as plain values.

        Returns
        -------
        dict
        """
        values = {"mean": self.mean, "low": self.low, "high": self.high, "seeds": self.seeds}
        less = self.first_minus_this
        return values if less is None else values | {"first_minus_this": less.to_dict()}


@dataclass(frozen=True)
class Transplant:
    """Fresh models with frozen tables, compared.

    `print(transplant)` gives the text that `placecell transplant` prints.

    Attributes
    ----------
    headline
        The metric, on the test set.
    arms
        Name to scores: a table learned at small σ, the same with its rows shuffled, a random one
        with the same row norms, a table learned at large σ.
    """

    headline: str
    arms: dict[str, Arm]

    @property
    def table(self) -> Table:
        """One row per arm and seed: its score, and that of the first arm minus it."""
        return Table.from_rows(
            {
                "arm": name,
                "seed": seed,
                self.headline: value,
                "first_minus_this": arm.first_minus_this and arm.first_minus_this.seeds[seed],
            }
            for name, arm in self.arms.items()
            for seed, value in enumerate(arm.seeds)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values: what `placecell transplant --json` prints.

        Returns
        -------
        dict
        """
        arms = {name: arm.to_dict() for name, arm in self.arms.items()}
        return {"headline": self.headline, "arms": arms}

    def to_frame(self) -> pd.DataFrame:
        """Return `table` as a pandas data frame.

        Returns
        -------
        pd.DataFrame
            One row per arm and seed.
        """
        return self.table.to_frame()

    def __str__(self) -> str:
        seeds = len(next(iter(self.arms.values())).seeds)
        lines = [
            f"test {self.headline} of fresh models with a frozen table ({seeds} seeds); "
            "the first minus each, by seed:"
        ]
        for name, arm in self.arms.items():
            less = arm.first_minus_this
            paired = "" if less is None else f"   {_words(less, '+')}"
            lines.append(f"  {name:<28} {_words(arm)}{paired}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for name, arm in self.arms.items():
            less = arm.first_minus_this
            difference = "" if less is None else _words(less, "+")
            rows.append({"arm": name, f"test {self.headline}": _words(arm)})
            rows[-1]["first minus this, by seed"] = difference
        return Table.from_rows(rows)._repr_html_()


def transplant(
    base: RunConfig,
    out: Path | str,
    *,
    small: float = 0.1,
    large: float = 2.0,
    seeds: int = 1,
    backend: MakeBackend | None = None,
    device: str = "auto",
    threads: int = 1,
    checkpoint_seconds: float = 30.0,
    retries: int = 2,
    on_round: Callable[[str, Outcomes], None] = lambda name, outcomes: None,
) -> Transplant:
    """Train models that learn a table, then fresh models with these tables, frozen; and compare
    those.

    Parameters
    ----------
    base
        The settings of all runs. Encoding and seeds are set here.
    out
        The folder of the runs. Those that are done already are used again.
    small, large
        The σ at which the tables are learned.
    seeds
        The number of seeds.
    backend, device, threads, checkpoint_seconds, retries
        As for `placecell.sweep`.
    on_round
        Called with `"donors"` and then `"receivers"`, and how these runs went.

    Returns
    -------
    Transplant
        The scores by arm, paired by seed.

    Raises
    ------
    InputError
        If a run failed, or the work was interrupted; the same call goes on from there.

    Examples
    --------
    >>> base = placecell.preset("latin_square", "quick")  # doctest: +SKIP
    >>> print(placecell.transplant(base, "runs/transplant", seeds=3))  # doctest: +SKIP
    """
    plan = plan_transplant(base, small, large, seeds)
    for name, configs in (("donors", plan.donors), ("receivers", plan.receivers)):
        outcomes = sweep(
            configs,
            out,
            backend,
            device=device,
            threads=threads,
            checkpoint_seconds=checkpoint_seconds,
            retries=retries,
        )
        on_round(name, outcomes)
        failed = next((one for one in outcomes if one.status == "failed"), None)
        if failed is not None:
            raise InputError(f"{out}: {failed.config.name} failed: {failed.message}")
        if len(outcomes) < len(configs) or "interrupted" in outcomes.counts:
            raise InputError(f"{out}: interrupted; the same call goes on from here.")
    return compare_transplants(out, plan.pairs, plan.arms)


def plan_transplant(base: RunConfig, small: float, large: float, seeds: int) -> TransplantPlan:
    """Plan the runs of a transplant; nothing is trained.

    Parameters
    ----------
    base : RunConfig
        The settings of all runs. Encoding and seeds are set here.
    small, large : float
        The σ at which the tables are learned.
    seeds : int
        The number of seeds.

    Returns
    -------
    TransplantPlan
    """
    pairs = donors(base, small, large, seeds)
    return TransplantPlan(pairs, [receivers(*pair) for pair in pairs])


def compare_transplants(
    out: Path | str,
    pairs: Sequence[tuple[RunConfig, RunConfig]],
    arms: Sequence[dict[str, RunConfig]],
) -> Transplant:
    """Compare the receivers of a transplant whose runs are done.

    Parameters
    ----------
    out : Path or str
        The folder of the runs.
    pairs : sequence of (RunConfig, RunConfig)
        The donors, as `plan_transplant` gives them.
    arms : sequence of dict[str, RunConfig]
        The receivers, as `plan_transplant` gives them.

    Returns
    -------
    Transplant
    """
    headline = make_task(pairs[0][0]).headline
    scores = {
        name: [load_result(Path(out) / of[name].name).final("test", headline) for of in arms]
        for name in arms[0]
    }
    first = next(iter(scores))
    compared: dict[str, Arm] = {}
    for name, values in scores.items():
        arm = _arm(values, f"transplant/{name}")
        if name != first:
            less = [one - other for one, other in zip(scores[first], values, strict=True)]
            arm = replace(arm, first_minus_this=_arm(less, f"transplant/{name}/paired"))
        compared[name] = arm
    return Transplant(headline, compared)


def donors(
    base: RunConfig, small: float, large: float, seeds: int
) -> list[tuple[RunConfig, RunConfig]]:
    """Plan the runs that learn tables.

    Parameters
    ----------
    base : RunConfig
        The settings of all runs.
    small, large : float
        The σ at which the tables are learned.
    seeds : int
        The number of seeds.

    Returns
    -------
    list of (RunConfig, RunConfig)
        For each seed, the run at small σ and the run at large σ.
    """
    if seeds < 1:
        raise InputError(f"seeds must be at least 1, not {seeds}.")
    if not small < large:
        raise InputError(f"the small σ must be below the large one: {small:g}, {large:g}.")

    def donor(sigma: float, seed: int) -> RunConfig:
        config = replace(base, encoding=EncodingConfig("learnable", sigma=sigma), seed=seed)
        return complete(config, make_task(config))

    return [(donor(small, seed), donor(large, seed)) for seed in range(seeds)]


def receivers(small: RunConfig, large: RunConfig) -> dict[str, RunConfig]:
    """Plan the four runs with fresh weights and a frozen table.

    The table is (a) learned at small σ, (b) the same with its rows shuffled, (c) random with the
    same row norms, (d) learned at large σ.

    Parameters
    ----------
    small, large : RunConfig
        The donors of one seed.

    Returns
    -------
    dict
        The runs by the name of their arm.
    """

    def receiver(source: RunConfig, change: str) -> RunConfig:
        config = replace(
            source,
            encoding=EncodingConfig("random"),
            weights_seed=source.seed + FRESH,
            donor=source.name,
            donor_change=change,  # type: ignore[arg-type]
        )
        return complete(config, make_task(config))

    return {
        f"table learned at σ={small.encoding.sigma}": receiver(small, "kept"),
        "the same, rows shuffled": receiver(small, "shuffled"),
        "random, the same norms": receiver(small, "norms"),
        f"table learned at σ={large.encoding.sigma}": receiver(large, "kept"),
    }


def _arm(values: list[float], stream: str) -> Arm:
    interval = analysis.bootstrap_interval(values, numpy_stream(0, stream))
    return Arm(values, interval.estimate, interval.low, interval.high)


def _words(arm: Arm, sign: str = "") -> str:
    """The mean, with its interval where there are seeds enough for one."""
    if len(arm.seeds) < FEWEST_SEEDS:
        return f"{arm.mean:{sign}.4f}"
    return f"{arm.mean:{sign}.4f}  [{arm.low:{sign}.4f}, {arm.high:{sign}.4f}]"
