"""`placecell discover` beside what a person would use instead, on tables with known arrangement.

    python benchmarks/discover.py run digits chain --seeds 3      # measures, one JSON a table, seed
    python benchmarks/discover.py run --steps 0                   # the same without any network
    python benchmarks/discover.py rivals digits chain --seeds 3   # the same of the rivals
    python benchmarks/discover.py null --null-tables 200          # alarms on tables without any
    python benchmarks/discover.py show                            # tables of what is measured

nb is the share of true neighbours among as many nearest columns; R² is Procrustes' of the map with
the true places; ARI compares modules. A measurement that is there is not made again."""

from __future__ import annotations

import argparse
import json
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.spatial import procrustes
from scipy.stats import binomtest
from sklearn.metrics import adjusted_rand_score

from discover_rivals import CLUSTERINGS, LAYOUTS, RIVALS
from discover_tables import TABLES, Known
from placecell.discover import PlaceMap
from placecell.discover.modules import find_modules, partitions
from placecell.discover.prepared import Prepared
from placecell.discover.variables import find_variables

Array = np.ndarray


def neighbour_share(similarity: Array, neighbours: Array) -> float:
    s = similarity.astype(float).copy()
    np.fill_diagonal(s, -np.inf)
    order = np.argsort(-s, 1, kind="stable")
    count = neighbours.sum(1)
    return float(
        np.mean([neighbours[i, order[i, :c]].mean() for i, c in enumerate(count) if c > 0])
    )


def procrustes_r2(coords: Array, truth: Array) -> float:
    placed = np.isfinite(coords).all(1)  # a column that repeats another has no place of its own
    coords, truth = coords[placed], truth[placed]
    width = max(coords.shape[1], truth.shape[1])
    one, two = (np.pad(a, ((0, 0), (0, width - a.shape[1]))) for a in (truth, coords))
    return float(1 - procrustes(one, two)[2])


SIMPLE = ("correlation", "partial correlation")  # what no map should be worse than


def measure(name: str, seed: int, jobs: int, steps: int) -> dict[str, Any]:
    known = TABLES[name](np.random.default_rng(seed))
    wall, used = time.perf_counter(), time.process_time()
    found = PlaceMap(steps=steps, random_state=seed, n_jobs=jobs).fit(
        known.values, groups=known.groups
    )
    result = {
        "table": name,
        "seed": seed,
        "shape": list(known.values.shape),
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - used,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "gain": found.gain_,
        "p": found.p_value_,
        "readout": found.readout_,
        "scores": found.readout_scores_,
        "stability": float(np.nanmean(found.stability_)),
        "dimensions": found.n_dimensions_,
    }
    for simple in SIMPLE:
        similarity = RIVALS[simple](known.values)
        result[simple] = scores(known, similarity, {}, modules_by(simple, similarity, known))
    return result | scores(known, found.similarity_, {"ours": found.embedding_}, found.labels_)


def scores(
    known: Known, similarity: Array, coords: dict[str, Array], labels: Array | None
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if known.neighbours is not None:
        found["nb"] = neighbour_share(similarity, known.neighbours)
    if known.coords is not None:
        found["R2"] = {k: procrustes_r2(v, known.coords) for k, v in coords.items()}
    if known.modules is not None and labels is not None:
        found["ARI"] = float(adjusted_rand_score(known.modules, labels))
    return found


def measure_rivals(name: str, seed: int) -> dict[str, Any]:
    known = TABLES[name](np.random.default_rng(seed))
    wide = known.values.shape[1] > 200
    result: dict[str, Any] = {"table": name, "seed": seed}
    for rival, similarity_of in RIVALS.items():
        if wide and rival in ("graphical lasso", "distance correlation", "pseudo-likelihood"):
            continue
        start = time.perf_counter()
        try:
            similarity = similarity_of(known.values)
        except (FloatingPointError, ValueError, np.linalg.LinAlgError) as error:
            result[rival] = {"failed": str(error)[:80]}
            continue
        taken = time.perf_counter() - start
        coords = {}
        for layout, lay_out in LAYOUTS.items() if known.coords is not None else ():
            try:
                coords[layout] = lay_out(similarity, 2)
            except ImportError:
                continue  # umap-learn is not installed
        labels = modules_by(rival, similarity, known)
        result[rival] = {"seconds": taken} | scores(known, similarity, coords, labels)
        if known.modules is not None:
            result[rival]["usual ARI"] = {
                name: float(adjusted_rand_score(known.modules, find(similarity)))
                for name, find in CLUSTERINGS.items()
            }
    return result


def modules_by(rival: str, similarity: Array, known: Known) -> Array | None:
    """Modules of a rival's similarity by our method, halves of the rows and all."""
    if known.modules is None:
        return None
    rows = np.arange(len(known.values)) if known.groups is None else known.groups
    data = Prepared(known.values, np.ones(len(rows)), rows)
    rng, halves = np.random.default_rng(0), []
    for seed in range(3):
        one, two = (partitions({rival: RIVALS[rival](h.x)}, rng) for h in data.halves(seed))
        halves.append((one, two))
    return find_modules({rival: similarity}, rng, halves)


def null_table(kind: str, seed: int) -> tuple[Array, Array | None]:
    """A table whose columns know nothing about each other."""
    rng = np.random.default_rng(10_000 + seed)
    rows, n = int(rng.integers(100, 400)), int(rng.integers(5, 20))
    x = rng.normal(size=(rows, n))
    if kind == "heavy tails":
        x = rng.standard_t(2, size=(rows, n))
    elif kind == "ties":
        x = rng.poisson(0.7, size=(rows, n)).astype(float)
    elif kind == "time":
        for t in range(1, rows):
            x[t] = 0.9 * x[t - 1] + np.sqrt(1 - 0.81) * x[t]
        frame = pd.DataFrame(x).rename(columns=str).assign(when=np.arange(rows))
        return x, find_variables(frame, time="when").groups  # as --time would
    return x, None


def measure_null(seed: int) -> dict[str, Any]:
    kinds = ("normal", "heavy tails", "ties", "time")
    kind = kinds[seed % len(kinds)]
    x, groups = null_table(kind, seed)
    used = time.process_time()
    found = PlaceMap(random_state=seed).fit(x, groups=groups)
    return {
        "seed": seed,
        "kind": kind,
        "shape": list(x.shape),
        "p": found.p_value_,
        "cpu_seconds": time.process_time() - used,
    }


def keep(path: Path, work: Any) -> None:
    if path.exists():
        return
    result = work()
    path.write_text(json.dumps(result, indent=1))
    print(json.dumps({k: v for k, v in result.items() if k != "scores"}), flush=True)


def show(folder: Path) -> None:
    """Medians over seeds, ours beside the rivals, as tables of Markdown."""
    for kind, title in (("ours", "defaults"), ("steps0", "without any network")):
        print(f"\n{title}\n")
        print("| table (rows × columns) | seeds | nb | R² | ARI | read-out | correlation |"
              " partial correlation | s |")  # fmt: skip
        print("|---|---|---|---|---|---|---|---|---|")
        for name in TABLES:
            found = _measured(folder, kind, name)
            if found:
                rows, n = found[0]["shape"]
                simple = [_best([one[other] for one in found]) for other in SIMPLE]
                cells = [
                    f"{name} ({rows} × {n})",
                    ", ".join(str(one["seed"]) for one in found),
                    *(_spread([_value(one, key) for one in found]) for key in ("nb", "R2", "ARI")),
                    ", ".join(sorted({one["readout"] for one in found})),
                    *simple,
                    f"{np.median([one['cpu_seconds'] for one in found]):.0f}",
                ]
                print("|", " | ".join(cells), "|")
    print("\nrivals: nb, the best R² of their layouts, ARI by our modules and by the usual ones\n")
    for name in TABLES:
        measured = _measured(folder, "rivals", name)
        for rival in RIVALS if measured else ():
            having = [one[rival] for one in measured if "seconds" in one.get(rival, {})]
            if having:
                keys = ("nb", "R2", "ARI", "usual ARI")
                values = [_spread([_value(one, key) for one in having]) for key in keys]
                best = {
                    max(one[key], key=one[key].get)
                    for one in having
                    for key in ("R2", "usual ARI")
                    if one.get(key)
                }
                print("|", " | ".join([name, rival, *values, ", ".join(sorted(best))]), "|")
    null = [json.loads(path.read_text()) for path in folder.glob("null-*.json")]
    print()
    for kind in (*sorted({one["kind"] for one in null}), "all") if null else ():
        p = [one["p"] for one in null if kind in (one["kind"], "all")]
        alarms = sum(value <= 0.05 for value in p)
        low, high = binomtest(alarms, len(p)).proportion_ci()  # Clopper and Pearson's, 95 %
        print(f"null, {kind}: {alarms} alarms of {len(p)} ({low:.1%} to {high:.1%})")


def _measured(folder: Path, kind: str, name: str) -> list[dict[str, Any]]:
    """All seeds of one table."""
    paths = sorted(folder.glob(f"{kind}-{name}-[0-9]*.json"))
    return [one for path in paths if (one := json.loads(path.read_text()))["table"] == name]


def _best(of_seeds: list[dict[str, Any]]) -> str:
    """nb of a rival, or its ARI."""
    key = "nb" if "nb" in of_seeds[0] else "ARI"
    said = _spread([one[key] for one in of_seeds])
    if key == "nb" and "ARI" in of_seeds[0]:
        said += f", ARI {_spread([one['ARI'] for one in of_seeds])}"
    return said


def _value(result: dict[str, Any], key: str) -> float:
    value = result.get(key, np.nan)
    return max(value.values(), default=np.nan) if isinstance(value, dict) else value


def _spread(values: list[float]) -> str:
    """The median, and the smallest and the largest."""
    if np.isnan(values).all():
        return ""
    low, middle, high = (f"{f(values):.2f}" for f in (min, np.median, max))
    return middle if low == high else f"{middle} ({low} to {high})"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "rivals", "null", "show"))
    parser.add_argument("tables", nargs="*", help=f"of: {', '.join(TABLES)} (default: all)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--steps", type=int, default=500, help="0: without any network")
    parser.add_argument("--jobs", type=int, default=1, help="networks trained at a time")
    parser.add_argument("--null-tables", type=int, default=200)
    parser.add_argument("--folder", type=Path, default=Path("runs/discover-benchmark"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    folder = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    if arguments.what == "show":
        return show(folder)
    if arguments.what == "null":
        for seed in range(arguments.first, arguments.null_tables):
            keep(folder / f"null-{seed}.json", lambda seed=seed: measure_null(seed))
        return None
    for name in arguments.tables or TABLES:
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            if arguments.what == "run":
                kind = "ours" if arguments.steps == 500 else f"steps{arguments.steps}"
                path = folder / f"{kind}-{name}-{seed}.json"
                keep(path, lambda n=name, s=seed: measure(n, s, arguments.jobs, arguments.steps))
            else:
                path = folder / f"rivals-{name}-{seed}.json"
                keep(path, lambda n=name, s=seed: measure_rivals(n, s))
    return None


if __name__ == "__main__":
    main()
