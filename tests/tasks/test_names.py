"""Names of places: of the tasks, of one's own files, and those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from placecell import Positions
from placecell.config.presets import preset
from placecell.errors import InputError
from placecell.tasks.base import Truth, counted
from placecell.tasks.fmri.config import Config as FmriConfig
from placecell.tasks.fmri.loaders import load_series
from placecell.tasks.fmri.task import Fmri
from placecell.tasks.graph.config import Config as GraphConfig
from placecell.tasks.graph.task import GraphValues
from placecell.tasks.names import tidy
from placecell.tasks.optional import place_names
from placecell.train import make_task

TOWNS = ["Ulm", "Bonn", "Köln", "a<b>&", "$x$", "Wien", "Graz", "Bern"]


# ------------------------------------------------------------------ of any task


class Named:
    """A task with these names."""

    def __init__(self, *names: str, n: int = 3) -> None:
        self.places, self.given = Positions.sequence(n), list(names)

    def names(self) -> list[str]:
        return self.given


def test_places_without_names_are_counted_from_1(tiny_task) -> None:
    class Plain:
        places = Positions.sequence(2)

    assert place_names(Plain()) == ["position 1", "position 2"]  # type: ignore[arg-type]
    assert place_names(tiny_task)[:5] == [
        *(f"row 1, column {c}" for c in "1234"),
        "row 2, column 1",
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("a", "b"), "2 for 3 places"),
        (("a", "", "c"), "place 2 is empty"),
        (("a", "b", " a\n"), "places 1 and 3 are both called 'a'"),
    ],
)
def test_names_that_cannot_be_used(names: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError, match=f"names of the places of Named.*{said}"):
        place_names(Named(*names))  # type: ignore[arg-type]


def test_a_name_is_one_line() -> None:
    assert place_names(Named("a\tb\n", "\x1b[1mc", '"d e"')) == ["a b", "[1mc", "d e"]  # type: ignore[arg-type]
    assert tidy("V" * 500) == "V" * 500, "a table has it whole"


def test_labels_are_shown_by_name_where_they_have_one() -> None:
    values = np.array([0, 2, 0, 1])
    named = Truth(np.zeros((4, 4)), {"network": values}, value_names={"network": ["A", "B", "C"]})
    assert named.named("network") == ["A", "C", "A", "B"]
    plain = Truth(np.zeros((4, 4)), {"year": np.array([1990, 1991, 1990, 7])})
    assert plain.named("year") == ["1990", "1991", "1990", "7"]
    short = Truth(np.zeros((4, 4)), {"module": values}, value_names={"module": ["A"]})
    assert short.named("module") == ["A", "2", "A", "1"]
    assert counted(values) == ["1", "2", "3"]


@pytest.mark.parametrize("name", ["latin_square", "images", "text"])
def test_labels_and_names_of_places_count_alike(name: str) -> None:
    task = make_task(preset(name))
    truth, names = task.truth(), place_names(task)
    assert truth is not None
    for label in truth.labels:
        assert all(
            f"{label} {value}" in place
            for value, place in zip(truth.named(label), names, strict=True)
        )


def test_modules_are_counted_from_1() -> None:
    task = make_task(preset("nmar").override({"modules": "3x4"}))
    assert set(task.truth().named("module")) == {"1", "2", "3"}  # type: ignore[union-attr]
    assert place_names(task)[0] == "node 1"


# ------------------------------------------------------------------ fMRI


def runs(folder: Path, header: str, regions: int = 4) -> FmriConfig:
    rows = np.random.default_rng(0).normal(size=(260, regions)).round(4)
    text = "\n".join(",".join(map(str, row)) for row in rows)
    (folder / "run.csv").write_text(f"{header}\n{text}\n", encoding="utf-8")
    return FmriConfig(dataset="files", train_files=[str(folder / "run.csv")], test_share=0.3)


def test_two_regions_may_not_share_a_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"run\.csv.*regions 1 and 3 are both called 'V1'"):
        Fmri(runs(tmp_path, "V1,V2,V1,M1"))


def test_a_column_without_a_name_has_its_number(tmp_path: Path) -> None:
    task = Fmri(runs(tmp_path, "V1,,M1,S1"))
    assert task.names() == ["V1", "region 2", "M1", "S1"]
    assert task.runs["train"][0].region(1) == "region 2"
    with pytest.raises(InputError, match="both called 'region 2'"):
        Fmri(runs(tmp_path, "region 2,,M1,S1"))


def test_quoted_names_may_have_the_separator_in_them(tmp_path: Path) -> None:
    assert Fmri(runs(tmp_path, '"V1","left, V2",M1,S1')).names() == ["V1", "left, V2", "M1", "S1"]


@pytest.mark.parametrize("head", ["", "region,t1,t2,t3\n", "t1,t2,t3\n", ",0,1,2\n"])
def test_rows_of_a_table_of_regions_name_them(head: str, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"{head}V1,7,2,3\nM1,4,5,6\n")
    series = load_series(tmp_path / "x.csv", "regions-first")
    assert series.names == ("V1", "M1")
    assert series.values.tolist() == [[7, 4], [2, 5], [3, 6]]
    (tmp_path / "x.csv").write_text("t1,t2,t3\n7,2,3\n4,5,6\n")
    series = load_series(tmp_path / "x.csv", "regions-first")
    assert series.names == ()
    assert series.values.tolist() == [[7, 4], [2, 5], [3, 6]]


def test_networks_have_the_names_of_their_file(tmp_path: Path) -> None:
    (tmp_path / "networks.txt").write_text("motor\nvision\nmotor\nvision\n")
    config = runs(tmp_path, "V1,V2,M1,S1")
    named = FmriConfig(**vars(config) | {"networks": str(tmp_path / "networks.txt")})
    assert Fmri(named).truth().named("network") == ["motor", "vision", "motor", "vision"]


# ------------------------------------------------------------------ graphs


def adjacency(path: Path, above: list[str], left: list[str], corner: str | None = "") -> Path:
    """A ring of eight, with names above its columns and to the left of its rows."""
    ring = nx.to_numpy_array(nx.cycle_graph(8)).astype(int).astype(str).tolist()
    rows = [[name, *row] for name, row in zip(left, ring, strict=True)] if left else ring
    head = [[*([corner] if left and corner is not None else []), *above]] if above else []
    path.write_text("\n".join(map(",".join, head + rows)) + "\n", encoding="utf-8")
    return path


def graph(path: Path, **more: str) -> GraphValues:
    return GraphValues(GraphConfig(graph="files", adjacency=str(path), **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("above", "left", "corner"),
    [
        (TOWNS, [], None),
        (TOWNS, TOWNS, ""),
        (TOWNS, TOWNS, "town"),
        (TOWNS, TOWNS, None),
        ([], TOWNS, None),
    ],
    ids=["above", "both", "corner", "as R writes it", "left"],
)
def test_names_in_an_adjacency(
    above: list[str], left: list[str], corner: str | None, tmp_path: Path
) -> None:
    task = graph(adjacency(tmp_path / "a.csv", above, left, corner))
    assert task.names() == TOWNS
    assert task.truth().relation.sum() == 16
    plain = graph(adjacency(tmp_path / "a.csv", [], []))
    assert plain.names()[:2] == ["node 1", "node 2"]
    assert plain.config.contents == task.config.contents, "a name changes no run"


@pytest.mark.parametrize(
    "names",
    [
        list("12345678"),
        [str(101 + i) for i in range(8)],
        ["NA", *TOWNS[1:]],
        [f'"{name}"' for name in TOWNS],
        ['"Ulm, D"', *TOWNS[1:]],
    ],
    ids=["counted", "numbers", "NA", "quotes", "a comma in a name"],
)
def test_names_that_could_be_numbers_or_cells(names: list[str], tmp_path: Path) -> None:
    """As pandas and R write them, above the columns and to the left of the rows."""
    task = graph(adjacency(tmp_path / "a.csv", names, names))
    assert task.names() == [name.strip('"') for name in names]
    assert task.truth().relation.sum() == 16


def test_a_first_row_of_0_1_2_is_a_row_of_weights_where_it_makes_a_square(tmp_path: Path) -> None:
    weights = np.zeros((6, 6), int)
    weights[0] = weights[:, 0] = range(6)
    np.savetxt(tmp_path / "a.csv", weights, delimiter=",", fmt="%d")
    task = graph(tmp_path / "a.csv")
    assert task.names()[0] == "node 1"
    assert task.network.weights[0].tolist() == list(range(6))
    heads = ",".join(map(str, range(6)))
    (tmp_path / "b.csv").write_text(f"{heads}\n{(tmp_path / 'a.csv').read_text()}")
    assert graph(tmp_path / "b.csv").names() == list("012345")


def test_a_file_of_names_comes_before_those_in_the_adjacency(tmp_path: Path) -> None:
    path = adjacency(tmp_path / "a.csv", list("abcdefgh"), [])
    (tmp_path / "names.txt").write_text("\n".join(TOWNS), encoding="utf-8")
    assert graph(path, names=str(tmp_path / "names.txt")).names() == TOWNS


def test_names_above_ones_own_values(tmp_path: Path) -> None:
    plain = adjacency(tmp_path / "a.csv", [], [])
    values = tmp_path / "v.csv"
    rows = np.random.default_rng(0).normal(size=(40, 8)).round(3)

    def write(names: list[str]) -> None:
        text = "\n".join(",".join(map(str, row)) for row in rows)
        values.write_text(f"{','.join(names)}\n{text}\n", encoding="utf-8")

    write(TOWNS)
    assert graph(plain, values=str(values)).names() == TOWNS
    write(list("01234567"))
    named = adjacency(tmp_path / "b.csv", TOWNS, [])
    assert graph(named, values=str(values)).names() == TOWNS, "columns that are numbered name none"
    write([*TOWNS[:6], "Bern", "Graz"])
    with pytest.raises(InputError, match=r"v\.csv: column 7 is called 'Bern' and node 7 'Graz'"):
        graph(named, values=str(values))
    write([*TOWNS[:7], "Ulm"])
    with pytest.raises(InputError, match=r"v\.csv: columns 1 and 8 are both called 'Ulm'"):
        graph(plain, values=str(values))
    rows[3, 2] = 1e300
    write(TOWNS)
    with pytest.raises(InputError, match=r"values must be finite.*those of Köln are not"):
        graph(plain, values=str(values))
    rows[:, 2] = 1.0
    write(TOWNS)
    with pytest.raises(InputError, match="Köln is constant in the 28 training samples"):
        graph(plain, values=str(values)).splits()


def test_names_of_nodes_that_cannot_be_used(tmp_path: Path) -> None:
    plain, names = adjacency(tmp_path / "a.csv", [], []), tmp_path / "names.txt"
    names.write_text("\n".join([*TOWNS[:7], "Ulm"]), encoding="utf-8")
    with pytest.raises(InputError, match=r"names\.txt: nodes 1 and 8 are both called 'Ulm'"):
        graph(plain, names=str(names))
    names.write_text("\n".join([*TOWNS[:4], "", *TOWNS[5:]]), encoding="utf-8")
    with pytest.raises(InputError, match=r"names\.txt: the name of node 5 is empty"):
        graph(plain, names=str(names))
    twice = adjacency(tmp_path / "b.csv", [*TOWNS[:7], "Ulm"], [])
    with pytest.raises(InputError, match=r"b\.csv: nodes 1 and 8 are both called 'Ulm'"):
        graph(twice)
    other = adjacency(tmp_path / "c.csv", TOWNS, [*TOWNS[:6], "Bern", "Graz"])
    with pytest.raises(InputError, match=r"c\.csv: row 7 is called 'Bern' and column 7 'Graz'"):
        graph(other)
