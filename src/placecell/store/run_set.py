"""Some runs to measure or report on, and what is wrong with those that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from placecell.errors import InputError
from placecell.registry import ENCODINGS
from placecell.store import files, locks
from placecell.store.runs import ENDED, RunResult, load_result, not_known, read_status


@dataclass(frozen=True)
class RunSet:
    """Runs that were read, of one folder (`Store.run_set`) or at hand (`RunSet.of`).

    Attributes
    ----------
    where
        What messages call these runs.
    results
        The runs that could be read.
    unreadable
        Name of a run to what is wrong with it.
    folder
        The folder of the runs, where analyses of them are; None for runs at hand.
    """

    where: str
    results: list[RunResult]
    unreadable: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None

    @classmethod
    def of(cls, results: Iterable[Any]) -> RunSet:
        """Make a set of results of `placecell.run`, or of outcomes of a sweep.

        Parameters
        ----------
        results : iterable
            `RunResult` or `Outcome` objects.

        Returns
        -------
        RunSet
            The set; outcomes that failed are `unreadable`, with their message.
        """
        readable, unreadable = [], {}
        for one in results:
            result = getattr(one, "result", one)
            if result is None:  # an outcome of a sweep that failed
                unreadable[one.config.name] = one.message
            elif isinstance(result, RunResult):
                readable.append(result)
            else:
                kind = type(one).__name__
                raise InputError(
                    f"expected results of placecell.run or outcomes of a sweep, found {kind}."
                )
        if not readable and not unreadable:
            raise InputError("no runs were given to report on.")
        return cls("these results", readable, unreadable)


def read_runs(folders: Iterable[Path]) -> tuple[list[RunResult], dict[str, str]]:
    """Read the runs of some folders; one that cannot be read does not hide the others.

    Parameters
    ----------
    folders : iterable of Path
        The folders of the runs.

    Returns
    -------
    list of RunResult
        The runs that could be read whole.
    dict
        Name of each other run -> what is wrong with it.
    """
    results, unreadable = [], {}
    for folder in folders:
        try:
            result = load_result(folder)
            wrong = problem_of(result)
        except InputError as error:
            wrong = str(error)
        if wrong:
            unreadable[folder.name] = wrong
        else:
            results.append(result)
    return results, unreadable


def problem_of(result: RunResult) -> str:
    """Return why a run that was read from its folder cannot be analysed.

    Parameters
    ----------
    result : RunResult
        The run.

    Returns
    -------
    str
        One sentence: its encoding is not known, metrics or weights are missing or cut off. Empty if
        there is no problem, or the run has not ended.
    """
    encoding, folder = result.config.encoding.name, result.folder
    if result.status not in ENDED:
        return ""
    if encoding not in ENCODINGS.names():
        return str(not_known(folder, ENCODINGS.kind, encoding))
    if result.status == "done":
        last = max((row.step for row in result.rows), default=None)
        if last != result.step:
            ended = f"the run ended at step {result.step}"
            none, some = "nothing was measured", f"the last measurement is of step {last}"
            return f"{folder / 'metrics.csv'}: cut off; {ended}, {none if last is None else some}."
        if not (folder / "weights.safetensors").exists():
            return f"{folder}: the weights are missing (weights.safetensors)."
    try:
        for path in (folder / "weights.safetensors", folder / "snapshots.safetensors"):
            if path.exists():
                files.check_tensors(path)
    except InputError as error:
        return str(error)
    return ""


def current_status(folder: Path, status: str) -> str:
    """Return the status of a run now.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    status : str
        What its `status.json` says.

    Returns
    -------
    str
        `stopped` for a run that says `running` and that no process works on; else the same.
    """
    return "stopped" if status == "running" and not locks.is_locked(folder) else status


def message_of(result: RunResult) -> str:
    """Return why a run failed.

    Parameters
    ----------
    result : RunResult
        The run.

    Returns
    -------
    str
        The message in its folder; empty if there is none.
    """
    try:
        return str(read_status(result.folder)["message"])
    except InputError:
        return ""


def environment_of(result: RunResult) -> dict[str, Any]:
    """Return the machine and the packages of a run.

    Parameters
    ----------
    result : RunResult
        The run.

    Returns
    -------
    dict
        The content of its `environment.json`; empty if it cannot be read.
    """
    try:
        environment = files.read_json(result.folder / "environment.json")
    except InputError:
        return {}
    return environment if isinstance(environment, dict) else {}


def unchanged_since(folder: Path, moment: float) -> bool:
    """Return whether a run is the same as at a moment, so that what was measured then is valid.

    Parameters
    ----------
    folder : Path
        Folder of the run.
    moment : float
        Seconds since 1970, as `time.time()` gives them.

    Returns
    -------
    bool
        False also if the folder cannot be read.
    """
    try:
        return (folder / "status.json").stat().st_mtime <= moment
    except OSError:
        return False
