"""`PlaceMap`: the hidden arrangement of a table's columns, as a scikit-learn estimator."""

from __future__ import annotations

import sys
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from placecell.discover import layout
from placecell.discover.clean import Cleaned, clean_columns
from placecell.discover.frames import Categories, column_names, to_numbers
from placecell.errors import InputError, unknown
from placecell.store.table import Table

if TYPE_CHECKING:
    from placecell.discover.fit import Fitted

Array = NDArray[np.float64]
READOUTS = (
    "auto",
    "consensus",
    "ablation",
    "signed ablation",
    "partial correlation",
    "absolute partial correlation",
    "correlation",
    "rank correlation",
    "mutual information",
    "usual difference",
)
NEAREST = 3
TOO_FEW = 30  # rows below which nothing can be tested
FEWEST_UNITS = 3  # groups of rows of a test


class PlaceMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Which columns of a table lie next to which: a map that nobody told it.

    Rows are samples and columns are variables. A small transformer with a learnable table of
    positions, on top of a Gaussian copula, learns to predict hidden columns from visible ones. Rows
    that were used for nothing else say whether columns tell anything about each other at all. Then
    similarities are read out in several ways, from the model and pair by pair; the one whose
    nearest columns tell most about a column, on rows not trained on, is taken and laid out.

    Parameters
    ----------
    n_components : int
        Number of coordinates of the map.
    steps : int
        Training steps of a network, at most.
    batch_size : int
        Rows a step, at most; fewer of more than 75 columns.
    learning_rate : float
        Of Muon and AdamW.
    readout : str
        "auto" chooses by held-out rows; or the name of a read-out, such as "ablation",
        "partial correlation" or "usual difference".
    alpha : float
        `found_` is whether `p_value_` is at most this.
    random_state : int, RandomState or None
        Source of all randomness.
    n_jobs : int, optional
        How many networks are trained at a time. −1: as many as there are cores.
    device : str
        "cpu", "cuda", "mps", or "auto".
    verbose : bool or int
        Whether to say on stderr what is being done.

    Attributes
    ----------
    found_ : bool
        Whether there is anything to find: `p_value_` ≤ `alpha`. If not, a map shows noise.
    gain_, p_value_ : float
        What columns tell about each other on rows untouched by training and choice (nats a value),
        and its one-sided p-value; NaN below 30 rows.
    embedding_ : array of shape (n, n_components)
        The map: coordinates of the columns. NaN for a column that was left out.
    similarity_ : array of shape (n, n)
        Similarities that the map was made from, scaled by each column's largest; 0 for a column
        that was left out, unless it repeats another: then it has that one's.
    table_ : array of shape (n, d) or None
        Learned positions of the network without linear base; None if none was trained.
    neighbours_ : dict
        The three nearest columns of each column, by name, nearest first.
    labels_ : int array of shape (n,)
        Module of each column, from the largest, 0; −1 for a column that was left out. Modules are
        found in the data, by several read-outs together; nobody says they are true.
    n_dimensions_ : int
        How many coordinates the arrangement seems to need.
    stability_ : array of shape (n,)
        Share of a column's three nearest on which two maps agree, from halves of the rows or from
        two seeds.
    readout_ : str
        The read-out that was used.
    readout_scores_ : dict
        Of each read-out, what nearest columns tell about a column ("told", on rows not trained
        on), on how many of them two maps agree ("agreement"), and the "score" of the choice.
    left_out_ : dict
        Columns that could not be used, and why.
    notes_ : list of str
        What else should be known: few rows, a wide table, nearly equal columns.
    column_names_ : list of str
        Names of the columns.
    model_ : torch.nn.Module or None
        The network (with its base) whose gain was tested.
    partial_ : bool
        Whether Ctrl-C cut the fit short.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> walk = rng.normal(size=(300, 6)).cumsum(axis=1)
    >>> PlaceMap(steps=5, random_state=0).fit(walk).found_
    True
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        steps: int = 500,
        batch_size: int = 128,
        learning_rate: float = 1.5e-2,
        readout: str = "auto",
        alpha: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: bool | int = False,
    ) -> None:
        self.n_components = n_components
        self.steps = steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.readout = readout
        self.alpha = alpha
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> PlaceMap:
        """Find the arrangement of the columns.

        Parameters
        ----------
        X : array or data frame of shape (rows, n)
            The table. NaN is a missing value. Columns of a data frame may be numbers, booleans,
            categories or text; categories of a column have no order unless its dtype says so.
        y : ignored
        sample_weight : array of shape (rows,), optional
            Weights of the rows.
        groups : array of shape (rows,), optional
            Rows of one group (a person, a block of time) stay together when rows are split, and
            count as one in the test.

        Returns
        -------
        PlaceMap
            Itself.
        """
        from placecell.discover.evidence import split_rows
        from placecell.discover.fit import fit_map
        from placecell.discover.prepared import Prepared

        self._check_parameters()
        x, nominal = self._numbers(X, reset=True)
        if x.shape[1] < 2:
            raise InputError(
                f"n_features = {x.shape[1]}: expected at least 2 columns, to be arranged."
            )
        if len(x) < 3:
            raise InputError(f"n_samples = {len(x)}: expected at least 3 rows.")
        weight = _check_sample_weight(sample_weight, x, dtype=np.float64)
        if (weight < 0).any() or not weight.any():
            raise InputError("sample_weight: expected numbers that are 0 or more, not all 0.")
        group = _group_numbers(groups, len(x))
        rows = (weight > 0) & np.isfinite(x).any(axis=1)
        if len(set(group[rows].tolist())) < 3:
            raise InputError(
                "expected at least 3 rows with a value and a weight above 0, of at least 3 groups."
            )
        seed = int(check_random_state(self.random_state).randint(2**31 - 10))
        self.column_names_ = column_names(self, x.shape[1])
        cleaned = clean_columns(x[rows], nominal, self.column_names_)
        self.left_out_, self.notes_ = cleaned.left_out, list(cleaned.notes)
        self._kept = cleaned.kept
        data = Prepared(cleaned.x, weight[rows], group[rows], nominal[cleaned.kept])
        split = split_rows(data.groups, np.random.default_rng(seed))
        self._say(f"{len(data.x)} rows, {len(cleaned.kept)} columns")
        if len(cleaned.kept) < 2:
            raise InputError(
                "expected at least 2 columns that vary; left out: "
                + "; ".join(f"{k} ({v})" for k, v in list(self.left_out_.items())[:5])
                + "."
            )
        fitted = fit_map(data, split, self._settings(seed))
        self._keep(fitted, len(data.x), cleaned)
        return self

    def transform(self, X: Any) -> Array:
        """Where in the map the values of rows are high.

        Parameters
        ----------
        X : array or data frame of shape (rows, n)

        Returns
        -------
        array of shape (rows, n_components)
            Mean of the columns' coordinates, weighted by the row's normal scores.
        """
        check_is_fitted(self)
        scores = self._coded.encode(self._kept_numbers(X))[1]
        place: Array = scores @ self.embedding_[self._kept] / len(self._kept)
        return place

    def score(self, X: Any, y: Any = None) -> float:
        """What the columns of some rows tell about each other: mean gain in nats a value.

        Parameters
        ----------
        X : array or data frame of shape (rows, n)
        y : ignored

        Returns
        -------
        float
        """
        import torch

        from placecell.discover.network import Rows, gains

        check_is_fitted(self)
        bins, scores = self._coded.encode(self._kept_numbers(X))
        rows = Rows(
            torch.from_numpy(bins[:, self._part]),
            torch.from_numpy(scores[:, self._part]).float(),
            torch.ones(len(bins)),
        )
        return float(gains(self.model_, rows, 0).mean())

    def columns(self) -> Table:
        """One row a column: name, coordinates, module, nearest columns, stability.

        Returns
        -------
        Table
            A dict of columns; `to_frame()` makes it a data frame.
        """
        check_is_fitted(self)
        rows: list[dict[str, Any]] = []
        for i, name in enumerate(self.column_names_):
            used = name not in self.left_out_
            near = [*self.neighbours_.get(name, []), *[None] * NEAREST][:NEAREST]
            row: dict[str, Any] = {"column": name}
            row |= {
                f"coordinate_{axis + 1}": float(value) if used else None
                for axis, value in enumerate(self.embedding_[i])
            }
            row["module"] = int(self.labels_[i]) + 1 if used else None
            row |= {f"nearest_{place + 1}": other for place, other in enumerate(near)}
            stable = float(self.stability_[i])
            row["stability"] = stable if used and np.isfinite(stable) else None
            row["left_out"] = self.left_out_.get(name)
            rows.append(row)
        return Table.from_rows(rows)

    def _check_parameters(self) -> None:
        for name in ("n_components", "steps", "batch_size"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < (0 if name == "steps" else 1):
                raise InputError(f"{name}: expected a whole number above 0, not {value!r}.")
        if not self.learning_rate > 0:
            raise InputError(f"learning_rate: expected a number above 0, not {self.learning_rate}.")
        if self.readout not in READOUTS:
            raise unknown("readout", str(self.readout), READOUTS)

    def _numbers(self, X: Any, reset: bool) -> tuple[Array, NDArray[np.bool_]]:
        """The table as float64 with NaN for what is missing, and which columns have no order."""
        known: Categories | None = None if reset else self._categories
        numbers, nominal, categories = to_numbers(X, known)
        checked = validate_data(
            self,
            X if numbers is None else numbers,
            reset=reset,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_min_samples=1,
        )
        if reset:
            self._categories: Categories = categories
        if nominal is None:
            nominal = np.zeros(checked.shape[1], dtype=bool)
        return checked, nominal

    def _kept_numbers(self, X: Any) -> Array:
        x, _ = self._numbers(X, reset=False)
        return x[:, self._kept]

    def _settings(self, seed: int) -> Any:
        import joblib

        from placecell.discover.fit import Settings
        from placecell.discover.network import Training
        from placecell.train.device import pick_device

        training = Training(steps=self.steps, batch_size=self.batch_size, lr=self.learning_rate)
        training = replace(training, on_step=self._on_step)
        jobs = joblib.effective_n_jobs(self.n_jobs) if self.n_jobs is not None else 1
        device = pick_device(self.device)
        return Settings(training, device, seed, jobs, self.readout, self.alpha, self._say)

    def _say(self, text: str) -> None:
        if self.verbose:
            print(f"placecell: {text}", file=sys.stderr, flush=True)

    def _on_step(self, step: int) -> None:
        if self.verbose and step % 100 == 0:
            self._say(f"step {step} of {self.steps}")

    def _keep(self, fitted: Fitted, n_rows: int, cleaned: Cleaned) -> None:
        """Set every attribute that is there after `fit`."""
        n, kept = len(self.column_names_), cleaned.kept
        self.gain_, self.p_value_ = fitted.evidence.gain, fitted.evidence.p_value
        units = fitted.evidence.units
        if n_rows < TOO_FEW or units < FEWEST_UNITS:
            self.p_value_ = float("nan")
            few = f"{n_rows} rows"
            if units < FEWEST_UNITS:
                few = f"{units} groups in the test"
            self.notes_.append(
                f"{few} are too few for a test: whether there is anything is not known."
            )
            warnings.warn(self.notes_[-1], stacklevel=3)
        self.notes_ += fitted.notes
        self.found_ = bool(self.p_value_ <= self.alpha)
        self.readout_ = fitted.readout
        self.readout_scores_ = {
            name: {"told": fitted.told[name], "agreement": fitted.agreement[name], "score": value}
            for name, value in fitted.score.items()
        }
        self.similarity_ = np.zeros((n, n))
        self.similarity_[np.ix_(kept, kept)] = fitted.similarity
        for i, first in cleaned.repeats.items():
            self.similarity_[i] = self.similarity_[:, i] = self.similarity_[first]
            self.similarity_[i, i] = 0.0
            self.similarity_[i, first] = self.similarity_[first, i] = 1.0
        self.embedding_ = np.full((n, self.n_components), np.nan)
        self.embedding_[kept] = layout.lay_out(fitted.similarity, self.n_components)
        self.labels_ = np.full(n, -1, dtype=np.int64)
        self.labels_[kept] = fitted.labels
        self.n_dimensions_ = layout.estimate_dimensions(fitted.similarity)
        self.stability_ = np.full(n, np.nan)
        self.stability_[kept] = fitted.stability
        names = [self.column_names_[i] for i in kept]
        near = layout.nearest(fitted.similarity, min(NEAREST, len(names) - 1))
        self.neighbours_ = {
            name: [names[j] for j in row] for name, row in zip(names, near, strict=True)
        }
        self.table_ = fitted.table
        self.model_ = fitted.net.cpu()
        self.partial_ = fitted.partial
        self._coded, self._part = fitted.coded, fitted.part
        self._n_features_out = self.n_components

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.random_state is None
        return tags


def _group_numbers(groups: ArrayLike | None, rows: int) -> NDArray[np.int64]:
    if groups is None:
        return np.arange(rows, dtype=np.int64)
    given = np.asarray(groups)
    if given.shape != (rows,):
        raise InputError(f"groups: expected one for each of {rows} rows, found {given.shape}.")
    return np.unique(given.astype(str), return_inverse=True)[1].astype(np.int64)
