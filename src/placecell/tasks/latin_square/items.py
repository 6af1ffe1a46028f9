"""Load the items used with people, check their answers, and load people's accuracies.

A ``.mat`` file contains the variable ``taskData``, 144 × 17 (or its first 108 rows): 16 cells row
by row (0 for a blank, 1..4 for a symbol, 9 for the probe) and the answer. Rows 1-108 are six
conditions of 18 rows each; rows 109-144 are catch trials, which are left out.

A ``.csv`` file has the header ``c1,...,c16,answer`` or ``c1,...,c16,answer,vectors,steps`` and one
line per item. The probe is ``9`` or ``?``; a blank is ``0`` or an empty field. Error messages count
rows from 1, without the header.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from placecell.errors import InputError
from placecell.tasks.latin_square.boards import check_puzzle, classify
from placecell.tasks.latin_square.generate import CONDITIONS, Puzzles

PROBE_IN_FILES = 9
N_ITEMS = 108
N_WITH_CATCH = 144
HUMAN_ACCURACY = (0.949, 0.715, 0.870, 0.684, 0.629, 0.434)  # 41 people, in the order of CONDITIONS
HUMAN_OVERALL = 0.713

_CELLS = [f"c{i}" for i in range(1, 17)]
_HEADERS = ([*_CELLS, "answer"], [*_CELLS, "answer", "vectors", "steps"])


@dataclass(frozen=True, eq=False)
class Items:
    """Items used with people, with what was published about them.

    Attributes
    ----------
    puzzles : Puzzles
        n puzzles with the only possible answer, and vectors and steps by our rules.
    published_answer : uint8 array of shape (n,)
        The answer in the file.
    published_vectors, published_steps : uint8 array of shape (n,)
        Vectors and steps in the file; 0 where the file does not say.
    """

    puzzles: Puzzles
    published_answer: NDArray[np.uint8]  # (n,)
    published_vectors: NDArray[np.uint8]  # (n,)
    published_steps: NDArray[np.uint8]  # (n,)

    def __len__(self) -> int:
        return len(self.puzzles)

    @property
    def published_condition(self) -> NDArray[np.int8]:
        """Index (n,) into CONDITIONS; -1 where the file does not say."""
        index = (
            2 * self.published_vectors.astype(np.int8) + self.published_steps.astype(np.int8) - 3
        )
        return np.maximum(index, -1, dtype=np.int8)

    @property
    def disagree(self) -> list[int]:
        """Rows, counted from 1, whose published answer is not the only possible one."""
        return [int(i) + 1 for i in np.flatnonzero(self.published_answer != self.puzzles.answer)]


def load_items(path: str | Path) -> Items:
    """Load items from a .mat or .csv file.

    Parameters
    ----------
    path : str or Path
        A file in one of the formats described at the top of this module.

    Returns
    -------
    Items

    Raises
    ------
    InputError
        If the file does not follow the format; the message names the file and the row.
    """
    path = Path(path)
    _must_be_file(path)
    if path.suffix == ".mat":
        table = _read_mat(path)  # (n, 19): cells, answer, vectors, steps
    elif path.suffix == ".csv":
        table = _read_csv(path)
    else:
        raise InputError(
            f"{path}: items are read from .mat or .csv, found {path.suffix or 'no suffix'!r}"
        )
    checked = []
    for row, (*cells, answer, vectors, steps) in enumerate(table.tolist(), start=1):
        where = f"{path}, row {row}"
        if not 1 <= answer <= 4:
            raise InputError(f"{where}: the answer is 1 to 4, found {answer}")
        if (vectors, steps) != (0, 0) and not (1 <= vectors <= 3 and 1 <= steps <= 2):
            raise InputError(
                f"{where}: vectors are 1 to 3 and steps 1 or 2, found {vectors} and {steps}"
            )
        try:
            checked.append(check_puzzle(cells, mark=PROBE_IN_FILES))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
    boards, probes, answers = zip(*checked, strict=True)
    givens, probe = np.array(boards, np.uint64), np.array(probes, np.uint8)
    classes = classify(givens, probe)
    puzzles = Puzzles(givens, probe, np.array(answers, np.uint8), classes.vectors, classes.steps)
    return Items(puzzles, *table[:, 16:].astype(np.uint8).T)


def load_human(path: str | Path) -> NDArray[np.float64]:
    """Load people's accuracies from a CSV file with one row per item.

    Parameters
    ----------
    path : str or Path
        A file with one column, with or without a header, or with a column named ``accuracy``.
        Values are fractions from 0 to 1, or percentages from 0 to 100 if any of them is above 1.

    Returns
    -------
    array of shape (108,)
        Accuracies from 0 to 1.
    """
    path = Path(path)
    lines = _lines(path)
    column = 0
    if lines and not all(map(_is_number, lines[0])):
        header = [name.strip().lower() for name in lines.pop(0)]
        if len(header) > 1 and header.count("accuracy") != 1:
            raise InputError(
                f"{path}: one column, or one named 'accuracy', was expected; "
                f"found {', '.join(header)}"
            )
        column = header.index("accuracy") if len(header) > 1 else 0
    elif lines and len(lines[0]) > 1:
        raise InputError(
            f"{path}: {len(lines[0])} columns without a header; name one of them 'accuracy'"
        )
    if len(lines) != N_ITEMS:
        raise InputError(f"{path}: {N_ITEMS} rows of accuracies were expected, found {len(lines)}")
    values = []
    for row, line in enumerate(lines, start=1):
        text = line[column] if column < len(line) else ""
        if not _is_number(text) or not 0 <= float(text) <= 100:
            raise InputError(
                f"{path}, row {row}: an accuracy is 0 to 1 or 0 to 100, found {text.strip()!r}"
            )
        values.append(float(text))
    accuracy = np.array(values)
    return accuracy / 100 if accuracy.max() > 1 else accuracy


def _read_mat(path: Path) -> NDArray[np.int64]:
    """The 108 items (108, 19) of a MATLAB file."""
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=["taskData"])
    except Exception as error:  # on another kind of file, loadmat may raise anything
        raise InputError(f"{path}: not a MATLAB file that can be read ({error})") from None
    if "taskData" not in content:
        raise InputError(f"{path}: the variable taskData was expected, it is not in the file")
    data = np.asarray(content["taskData"])
    if data.shape not in ((N_WITH_CATCH, 17), (N_ITEMS, 17)):
        expected = f"{N_WITH_CATCH} × 17 or {N_ITEMS} × 17"
        raise InputError(
            f"{path}: taskData must be {expected}, found {' × '.join(map(str, data.shape))}"
        )
    if not np.issubdtype(data.dtype, np.number) or not np.isin(data, range(256)).all():
        raise InputError(
            f"{path}: taskData must hold whole numbers from 0 to 255, as uint8 does; it does not"
        )
    # The rows are in the order of the conditions.
    condition = np.repeat(range(len(CONDITIONS)), N_ITEMS // len(CONDITIONS))
    published = np.stack([condition // 2 + 1, condition % 2 + 1], axis=1)
    return np.concatenate([data[:N_ITEMS].astype(np.int64), published], axis=1)


def _read_csv(path: Path) -> NDArray[np.int64]:
    """The items (n, 19) of a CSV file, with zeros for vectors and steps if it has none."""
    header, *lines = _lines(path) or [[]]
    if [name.strip() for name in header] not in _HEADERS:
        raise InputError(
            f"{path}: the header must be c1,...,c16,answer[,vectors,steps], "
            f"found {','.join(header)}"
        )
    if not lines:
        raise InputError(f"{path}: no items follow the header")
    table = np.zeros((len(lines), 19), np.int64)
    for row, line in enumerate(lines, start=1):
        if len(line) != len(header):
            raise InputError(
                f"{path}, row {row}: {len(header)} values were expected, found {len(line)}"
            )
        for i, text in enumerate(map(str.strip, line)):
            if i < 16:
                text = {"": "0", "?": str(PROBE_IN_FILES)}.get(text, text)
            if not (text.isascii() and text.isdigit() and len(text) < 4):
                raise InputError(
                    f"{path}, row {row}: {header[i].strip()} is no symbol or number: {text!r}"
                )
            table[row - 1, i] = int(text)
    return table


def _lines(path: Path) -> list[list[str]]:
    """The lines of a CSV file that are not empty."""
    _must_be_file(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            return [line for line in csv.reader(file) if any(field.strip() for field in line)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: not a CSV file that can be read ({error})") from None


def _must_be_file(path: Path) -> None:
    if not path.is_file():
        raise InputError(f"{path}: no such file")


def _is_number(text: str) -> bool:
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
