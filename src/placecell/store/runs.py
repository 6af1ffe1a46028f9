"""The folder of one run: its status, its metrics, and the run read back from them."""

from __future__ import annotations

import contextlib
import csv
import functools
import io
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from placecell.config.labels import label
from placecell.config.run import RunConfig, read_toml
from placecell.config.values import check_value
from placecell.errors import InputError
from placecell.registry import HOW_TO_LOAD, NO_MODULE, TASKS
from placecell.store import files, locks
from placecell.store.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor, nn

Status = Literal["running", "done", "diverged", "interrupted", "failed"]


class Row(NamedTuple):
    """One measurement.

    Parameters
    ----------
    step : int
        Training step.
    split : str
        `train`, `valid` or `test`.
    name : str
        The metric, such as `loss`.
    value : float
        Its value.
    """

    step: int
    split: str
    name: str
    value: float


ENDED = ("done", "diverged")


@dataclass(frozen=True, repr=False)
class RunResult:
    """A run that ended or was interrupted: how it ended and what was measured.

    Parameters
    ----------
    config : RunConfig
        Its configuration, complete.
    folder : Path
        Its folder, with the weights and all else.
    status : str
        `done`, `diverged`, `interrupted`, `failed` or `running`.
    step : int
        Training steps done.
    seconds : float
        Time spent in training steps.
    rows : tuple of Row
        The measurements.
    reused : bool
        Whether the run was done before and only read back.

    Examples
    --------
    >>> result = placecell.run(placecell.preset("latin_square"), "runs/mine")  # doctest: +SKIP
    >>> result  # doctest: +SKIP
    RunResult(latin_square-…: encoding learnable σ=0.1, seed 0, status done, step 700, …)
    >>> result.table.shape, result.final("test", "accuracy")  # doctest: +SKIP
    (torch.Size([16, 64]), 0.93)
    """

    config: RunConfig
    folder: Path
    status: Status
    step: int
    seconds: float
    rows: tuple[Row, ...]
    reused: bool = False

    def final(self, split: str, name: str) -> float:
        """Return the last value of a metric.

        Parameters
        ----------
        split : str
            `train`, `valid` or `test`.
        name : str
            The metric.

        Returns
        -------
        float
            NaN if it was never measured.
        """
        return next(
            (r.value for r in reversed(self.rows) if (r.split, r.name) == (split, name)),
            float("nan"),
        )

    @property
    def measurements(self) -> Table:
        """Every measurement as a table with the columns step, split, name and value."""
        return Table.from_rows(row._asdict() for row in self.rows)

    def to_frame(self) -> pd.DataFrame:
        """Return `measurements` as a pandas data frame."""
        return self.measurements.to_frame()

    @property
    def model(self) -> nn.Module:
        """The trained model, read from the run's folder at the first use."""
        model: nn.Module = self._loaded[1]
        return model

    @property
    def table(self) -> Tensor | None:
        """The learned table (n d) of the positional encoding; None if it has none."""
        task, model = self._loaded
        table: Tensor | None = model.table(task.places)
        return table

    @functools.cached_property
    def _loaded(self) -> tuple[Any, Any]:
        import placecell  # its public face: a store itself knows no models

        _, task, model = placecell.train.load_model(self.folder)
        return task, model

    def __repr__(self) -> str:
        facts = ", ".join(f"{name} {value}" for name, value in self._facts().items())
        return f"RunResult({self.config.name}: {facts})"

    def _repr_html_(self) -> str:
        facts = {"run": self.config.name, **self._facts(), "folder": self.folder}
        last = Table.from_rows(
            {"split": split} | {r.name: r.value for r in self.rows if r.split == split}
            for split in dict.fromkeys(row.split for row in self.rows)
        )
        settings = Table.from_rows({"": name, " ": value} for name, value in facts.items())
        return settings._repr_html_() + last._repr_html_()

    def _facts(self) -> dict[str, Any]:
        """What a reader asks first: the encoding, how the run ended, the last test metrics."""
        encoding = label(self.config, ["encoding.sigma"])
        facts: dict[str, Any] = {"encoding": encoding, "seed": self.config.seed}
        facts |= {"status": self.status, "step": self.step}
        # a metric of a part of the samples has the part in its name: accuracy/2v1s
        last = {r.name: r.value for r in self.rows if r.split == "test" and "/" not in r.name}
        return facts | {f"test {name}": f"{value:.4g}" for name, value in last.items()}


def finished(folder: Path) -> bool:
    """Return whether the run of a folder is done (or diverged). Nothing is changed.

    Parameters
    ----------
    folder : Path
        Folder of the run.

    Returns
    -------
    bool
        False also if there is no run.
    """
    return (folder / "status.json").exists() and read_status(folder)["status"] in ENDED


def reuse(folder: Path) -> RunResult:
    """Return the result of a finished run, to be used again.

    A checkpoint that a kill just before the end left is removed.

    Parameters
    ----------
    folder : Path
        Folder of the run.

    Returns
    -------
    RunResult
        The result, marked `reused`.
    """
    with contextlib.suppress(OSError):
        files.remove(folder / "checkpoint.safetensors")
    return replace(load_result(folder), reused=True)


def mark_failed(out: Path, config: RunConfig, message: str) -> None:
    """Write into the folder of a run that it failed; its checkpoint stays.

    Parameters
    ----------
    out : Path
        The folder of the runs. If it cannot be written, nothing happens.
    config : RunConfig
        The run, which may not have a folder yet.
    message : str
        Why.
    """
    folder = out / config.name
    with contextlib.suppress(InputError):
        files.make_folder(folder)
        with locks.lock(folder):
            if finished(folder):
                return
            if not (folder / "config.toml").exists():
                files.write_text(folder / "config.toml", config.to_toml())
            step, seconds = 0, 0.0
            if (folder / "status.json").exists():
                before = read_status(folder)
                step, seconds = before["step"], before["seconds"]
            write_status(folder, "failed", step, seconds, message)


def read_status(folder: Path) -> dict[str, Any]:
    """Return the status of a run.

    Parameters
    ----------
    folder : Path
        Folder of the run.

    Returns
    -------
    dict
        `status`, `step`, `seconds` and `message`.
    """
    path = folder / "status.json"
    written = files.read_json(path)
    try:
        step, seconds = (
            check_value(written[key], kind, key, at_least=0)
            for key, kind in (("step", int), ("seconds", float))
        )
        status, message = (
            check_value(written["status"], Status, "status"),
            check_value(written.get("message", ""), str, "message"),
        )
    except (KeyError, TypeError, InputError):
        raise InputError(f"{path}: not the status of a run.") from None
    return {"status": status, "step": step, "seconds": seconds, "message": message}


def write_status(
    folder: Path, status: Status, step: int, seconds: float, message: str = ""
) -> None:
    """Write the status of a run.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    status : str
        One of `Status`.
    step : int
        Training steps done.
    seconds : float
        Time spent in training steps.
    message : str
        Why it failed; the first line, up to 500 characters, is kept.
    """
    message = message.partition("\n")[0][:500]  # a compiler may say pages
    content = {"status": status, "step": step, "seconds": round(seconds, 3), "message": message}
    files.write_json(folder / "status.json", content)


def metrics_csv(rows: list[Row]) -> str:
    """Return measurements as the text of a `metrics.csv`.

    Parameters
    ----------
    rows : list of Row
        The measurements.

    Returns
    -------
    str
        CSV with a header; values read back unchanged.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Row._fields)
    writer.writerows((r.step, r.split, r.name, repr(float(r.value))) for r in rows)
    return text.getvalue()


def load_config(folder: Path) -> RunConfig:
    """Return the configuration of a run.

    Parameters
    ----------
    folder : Path
        Folder of the run.

    Returns
    -------
    RunConfig
        The configuration. If its task is not known, the error says which plugin had it.
    """
    path = folder / "config.toml"
    try:
        return RunConfig.from_toml(path)
    except InputError:
        task = read_toml(path).get("task")
        if isinstance(task, str) and task not in TASKS.names():
            raise not_known(folder, TASKS.kind, task) from None
        raise


def not_known(folder: Path, kind: str, name: str) -> InputError:
    """Return an error for a run whose task or encoding is not known here.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    kind : str
        `task` or `encoding`.
    name : str
        The name that is not known.

    Returns
    -------
    InputError
        It names the plugin that the run was made with.
    """
    try:
        source = files.read_json(folder / "environment.json")["plugins"][kind]
    except (InputError, KeyError, TypeError):
        source = "a plugin"
    if source in NO_MODULE:
        source = "a script or a notebook"
    return InputError(f"{folder}: unknown {kind} {name!r}, which was of {source}; {HOW_TO_LOAD}.")


def load_result(folder: Path | str) -> RunResult:
    """Return a run read back from its folder.

    Parameters
    ----------
    folder : Path or str
        Folder of the run.

    Returns
    -------
    RunResult
        The run, whatever its status.
    """
    folder = Path(folder)
    config = load_config(folder)
    task, _, digits = folder.name.rpartition("-")
    # a copy may be called anything
    named = task in TASKS.names() and re.fullmatch("[0-9a-f]{12}", digits)
    if named and folder.name != config.name:
        raise InputError(
            f"{folder}: its config.toml is that of {config.name}: of another run, or another "
            "version."
        )
    status = read_status(folder)
    ended = status["status"] in ENDED
    path = folder / "metrics.csv"
    rows: list[Row] = []
    try:
        with path.open(newline="") as file:
            header, *lines = [line for line in csv.reader(file) if line] or [[]]
        if header != list(Row._fields) or (ended and not lines):
            raise ValueError(f"found {len(lines)} lines below {','.join(header)!r}")
        rows = [Row(int(step), split, name, float(value)) for step, split, name, value in lines]
    except FileNotFoundError:
        if ended:
            raise InputError(
                f"{path}: missing, of a run that is {status['status']}; remove its folder."
            ) from None
    except (ValueError, OSError, csv.Error) as error:
        raise InputError(
            f"{path}: not a metrics file (expected step,split,name,value): {error}."
        ) from None
    return RunResult(
        config, folder, status["status"], status["step"], status["seconds"], tuple(rows)
    )
