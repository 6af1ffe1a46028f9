"""What a person would use instead of `placecell discover`: similarities and layouts."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

Array = np.ndarray


def standardised(x: Array) -> Array:
    return (x - x.mean(0)) / x.std(0)


def correlation(x: Array) -> Array:
    return np.abs(np.corrcoef(x.T))


def partial_correlation(x: Array) -> Array:
    """Partial correlations of the covariance that Ledoit and Wolf's rule shrinks."""
    from sklearn.covariance import ledoit_wolf

    return _partial(np.linalg.inv(ledoit_wolf(standardised(x))[0]))


def graphical_lasso(x: Array) -> Array:
    """Sparse partial correlations, with the penalty chosen by cross-validation."""
    from sklearn.covariance import GraphicalLassoCV

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it often does not converge; what it has is used
        return _partial(
            GraphicalLassoCV(alphas=3, n_refinements=2, cv=3).fit(standardised(x)).precision_
        )


def mutual_information(x: Array) -> Array:
    """Of eight bins of equal counts."""
    n = x.shape[1]
    ranks = x.argsort(0).argsort(0)
    bins = ranks * 8 // len(x)
    one_hot = (bins[:, :, None] == np.arange(8)).reshape(len(x), -1).astype(np.float32)
    joint = (one_hot.T @ one_hot).reshape(n, 8, n, 8).astype(float) / len(x)
    share = np.where(joint > 0, joint, 1.0)
    return (joint * np.log(share * 64)).sum((1, 3))


def distance_correlation(x: Array, rows: int = 500) -> Array:
    """Of the first rows: it takes rows² × columns numbers."""
    x = standardised(x[:rows])
    centred = []
    for column in x.T:
        apart = np.abs(column[:, None] - column)
        both = apart - apart.mean(0) - apart.mean(1)[:, None] + apart.mean()
        centred.append(both.ravel().astype(np.float32))
    flat = np.stack(centred)
    cross = flat @ flat.T
    return np.sqrt(np.clip(cross, 0, None) / np.sqrt(np.outer(np.diag(cross), np.diag(cross))))


def pseudo_likelihood(x: Array) -> Array:
    """A pairwise binary model (Ising) of what is above the median, column by column."""
    from sklearn.linear_model import LogisticRegression

    signs = np.where(x > np.median(x, 0), 1.0, -1.0)
    n = x.shape[1]
    weights = np.zeros((n, n))
    for i in range(n):
        if len(np.unique(signs[:, i])) < 2:
            continue
        others = np.delete(np.arange(n), i)
        model = LogisticRegression(C=0.1, max_iter=200).fit(signs[:, others], signs[:, i])
        weights[i, others] = model.coef_[0]
    return np.abs(weights + weights.T) / 2


RIVALS: dict[str, Callable[[Array], Array]] = {
    "correlation": correlation,
    "partial correlation": partial_correlation,
    "graphical lasso": graphical_lasso,
    "mutual information": mutual_information,
    "distance correlation": distance_correlation,
    "pseudo-likelihood": pseudo_likelihood,
}


def distances(similarity: Array) -> Array:
    """1 − similarity, scaled to a largest similarity of 1."""
    s = np.clip(similarity, 0, None).copy()
    np.fill_diagonal(s, 0)
    d = 1 - s / max(s.max(), 1e-12)
    np.fill_diagonal(d, 0)
    return (d + d.T) / 2


def mds(similarity: Array, dims: int) -> Array:
    d = distances(similarity)
    inner = -0.5 * (d**2 - (d**2).mean(0) - (d**2).mean(1)[:, None] + (d**2).mean())
    values, vectors = np.linalg.eigh(inner)
    return vectors[:, -dims:] * np.sqrt(values[-dims:].clip(0))


def isomap(similarity: Array, dims: int, joined: int = 5) -> Array:
    d = distances(similarity)
    keep = np.zeros(d.shape, dtype=bool)
    keep[np.arange(len(d))[:, None], np.argsort(d, 1)[:, 1 : joined + 1]] = True
    tree = minimum_spanning_tree(d + 1e-9).toarray() > 0
    keep = keep | keep.T | tree | tree.T
    paths = shortest_path(np.where(keep, d + 1e-9, 0), directed=False)
    return mds(paths.max() - paths, dims)


def spectral(similarity: Array, dims: int) -> Array:
    from sklearn.manifold import spectral_embedding

    s = np.clip(similarity, 0, None).copy()
    np.fill_diagonal(s, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return spectral_embedding(s + 1e-9, n_components=dims, random_state=0)


def umap(similarity: Array, dims: int) -> Array:
    import umap as package

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = package.UMAP(
            n_components=dims, metric="precomputed", n_neighbors=min(10, len(similarity) - 1),
            random_state=0,
        )  # fmt: skip
        return np.asarray(model.fit_transform(distances(similarity)))


LAYOUTS = {"MDS": mds, "Isomap": isomap, "spectral": spectral, "UMAP": umap}


def louvain(similarity: Array) -> Array:
    """Communities of all pairs, by networkx with its defaults."""
    import networkx as nx

    s = np.clip(similarity, 0, None).copy()
    np.fill_diagonal(s, 0)
    labels = np.zeros(len(s), dtype=int)
    graph = nx.from_numpy_array(s)
    for number, members in enumerate(nx.community.louvain_communities(graph, seed=0)):
        labels[list(members)] = number
    return labels


def spectral_clusters(similarity: Array) -> Array:
    """Spectral clustering into as many as the widest gap of eigenvalues says, from 2 to 20."""
    from sklearn.cluster import SpectralClustering

    s = np.clip(similarity, 0, None) + 1e-9
    np.fill_diagonal(s, 0)
    scale = np.sqrt(s.sum(1))
    values = np.linalg.eigvalsh(s / np.outer(scale, scale))[::-1][:21]
    count = 2 + int(np.argmax(-np.diff(values[1:])))
    model = SpectralClustering(count, affinity="precomputed", random_state=0)
    return np.asarray(model.fit_predict(s))


def average_linkage(similarity: Array) -> Array:
    """Average linkage, cut where the silhouette is best, from 2 to 20 clusters."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform
    from sklearn.metrics import silhouette_score

    d = distances(similarity)
    tree = linkage(squareform(d, checks=False), "average")
    cuts = [fcluster(tree, count, "maxclust") for count in range(2, min(21, len(d)))]
    cuts = [cut for cut in cuts if 1 < len(np.unique(cut)) < len(d)]
    one = np.ones(len(d), dtype=int)  # where no cut leaves clusters, all is one
    return max(cuts, key=lambda cut: silhouette_score(d, cut, metric="precomputed"), default=one)


CLUSTERINGS = {  # what a person would use for modules
    "Louvain": louvain,
    "spectral": spectral_clusters,
    "average linkage": average_linkage,
}


def _partial(precision: Array) -> Array:
    scale = np.sqrt(np.diag(precision))
    return np.abs(precision / np.outer(scale, scale))
