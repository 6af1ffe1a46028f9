"""The page's section "Lazy or rich?": it says what the analysis wrote, and nothing in that file
stops the page."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import placecell
from placecell.cli import call
from placecell.report.page import live as live_module
from placecell.report.page.build import Page, build_page
from placecell.report.page.kernels import section
from placecell.report.page.live import Live
from placecell.store import RunSet, Store, files
from placecell.study.kernel_table import cell

Known = dict[str, dict[str, float]]
NAN = float("nan")
HEAD = [
    "label",
    "label_without_sigma",
    "encoding",
    "sigma",
    "measure",
    "block",
    "step",
    "heading",
    "seeds",
    "mean",
    "low",
    "high",
]
BEFORE = [
    name for name in HEAD if name not in ("label_without_sigma", "encoding", "sigma")
]  # of an older version
MEASURES = {
    "kernel distance": ("kernel_distance", "all"),
    "table moved": ("moved", "PE"),
    "table CKA": ("cka", "PE"),
}
VALUES = {
    "learnable σ=0.5": [(0.2, 0.1, 0.3), (0.5, 0.4, 0.6)],
    "learnable σ=0.1": [(0.4321, 0.4, 0.5), (1.25, 1.1, 1.4)],
    "learnable σ=2.0": [(0.00042, NAN, NAN), (0.03, NAN, NAN)],
    "random σ=9.0": [(0.9, 0.8, 1.0), (NAN, NAN, NAN)],
}


def settings(label: str) -> tuple[str, str, str]:
    """Of a label of these tests: what is left of it without σ, the encoding, and σ."""
    words = label.split(" ")
    sigma = next((word[2:] for word in words if word.startswith("σ=")), "")
    return " ".join(word for word in words if not word.startswith("σ=")), words[0], sigma


def write(
    store: Path, values: dict[str, list[tuple[float, float, float]]], text: str | None = None
) -> Path:
    """A summary as the analysis writes it, or a text in its place; newer than every run."""
    path = store / "analysis" / "lazy_rich_summary.csv"
    path.parent.mkdir(exist_ok=True)
    rows = [
        (label, *settings(label), measure, block, "end", heading, 3, *of)
        for label, all_of in values.items()
        for (heading, (measure, block)), of in zip(
            MEASURES.items(), [*all_of, (NAN, NAN, NAN)], strict=True
        )
    ]
    whole = (
        files.csv_bytes(dict(zip(HEAD, map(list, zip(*rows, strict=True)), strict=True)))
        if rows
        else b""
    )
    path.write_bytes(whole if text is None else text.encode())
    return path


def lazy(page: Page) -> str:
    """The section as the page has it; empty if it has none."""
    match = re.search(r'<section id="lazy".*?</section>', page.html, re.DOTALL)
    return match[0] if match else ""


def notes(html: str) -> list[str]:
    return [unescape(note) for note in re.findall(r'<p class="note" role="note">(.*?)</p>', html)]


@pytest.fixture
def built(copy: Path, known: Known) -> Callable[[], Page]:
    return lambda: build_page(Store(copy).run_set(), known=known)


def test_the_section_has_the_numbers_of_the_file(copy: Path, built: Callable[[], Page]) -> None:
    write(copy, VALUES)
    page = built()
    text = lazy(page)
    assert '<a href="#lazy">Lazy or rich?</a>' in page.html
    order = re.findall(r'<a href="#(\w+)">', page.html)
    assert order[order.index("agreement") : order.index("conditions")] == ["agreement", "lazy"]
    said = re.search(r'<p class="says">(.*?)</p>', text)
    assert said is not None
    small, large = said[1].split(". ")[:2]
    assert "smallest σ of a learned table, 0.1," in small
    assert "distance 0.432 [0.400, 0.500]" in small
    assert "moved by 1.25 [1.1, 1.4] of" in small
    assert "largest σ of a learned table, 2," in large
    assert "distance 0.0004 from" in large, "hardly moved is not 0"
    assert "moved by 0.030 of" in large
    heads = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', text)
    assert heads == ["configuration", "seeds", "kernel distance", "table moved"], (
        "what was never measured is left out"
    )
    rows = [
        re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", text)
    ][1:]
    assert [row[0] for row in rows] == list(VALUES)
    assert rows[1] == ["learnable σ=0.1", "3", "0.432 [0.400, 0.500]", "1.25 [1.1, 1.4]"]
    assert rows[3][-1] == "–"
    assert "<caption" in text
    assert text.count('<th scope="row">') == 4
    assert 'tabindex="0" role="region" aria-label="Lazy or rich?"' in text
    assert notes(text) == []
    assert "<img" not in text
    data = page.parts["data"]["grids"]["lazy"]["columns"]
    assert list(data) == HEAD
    assert data["mean"][:4] == [0.2, 0.5, None, 0.4321]


def test_configurations_of_one_sigma_are_told_together(copy: Path) -> None:
    def said() -> str:
        return str(section(Store(copy).run_set())[0][0]["sentence"])

    write(
        copy,
        {
            "learnable σ=0.1 width=8": VALUES["learnable σ=0.1"],
            "learnable σ=0.1 width=16": VALUES["learnable σ=0.5"],
        },
    )
    assert "At the only σ of a learned table, 0.1," in said()
    assert "distance 0.200 to 0.432 (means of 2 configurations) from" in said()
    write(copy, {"random σ=0.1": VALUES["learnable σ=0.1"], "learnable": VALUES["learnable σ=0.1"]})
    assert said().startswith("No learned table of a known σ")


def test_sigma_is_read_from_its_column_and_not_from_the_label(copy: Path) -> None:
    path = write(copy, {"learnable σ=0.1": VALUES["learnable σ=0.1"]})
    path.write_text(path.read_text().replace("learnable,0.1,", "learnable,0.7,"))
    [grid], no_notes = section(Store(copy).run_set())
    assert no_notes == []
    assert grid["sentence"].startswith("At the only σ of a learned table, 0.7,")
    assert grid["rows"][0][0] == "learnable σ=0.1"


def test_nothing_measured_no_section(copy: Path, built: Callable[[], Page]) -> None:
    results = Store(copy).run_set().results
    for make in (lambda: None, lambda: (copy / "analysis").write_text("a file")):
        make()
        page = built()
        assert lazy(page) == ""
        assert "#lazy" not in page.html
        assert notes(page.html) == []
    (copy / "analysis").unlink()
    write(copy, VALUES)
    assert section(RunSet.of(results)) == ([], []), "results at hand are of no folder"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column label"),
        ("label,measure\na,b\n", "no column label_without_sigma, encoding, sigma, block, step, "),
        (
            ",".join(BEFORE) + "\na,moved,PE,end,x,2,0,0,0\n",
            "no column label_without_sigma, encoding, sigma)",
        ),
        (",".join(HEAD) + "\n", "nothing is in it"),
        (
            ",".join(HEAD) + "\na,a,learnable,1,moved,PE,end,table moved,2,<b>much</b>,0,0\n",
            "line 2: not a number",
        ),
        (
            ",".join(HEAD) + "\na,a,learnable,1,moved,PE,end,table moved,2,0,0,0\na,moved,P",
            "line 3: not a number",
        ),
        (
            ",".join(HEAD) + "\na,a,learnable,<b>,moved,PE,end,table moved,2,0,0,0\n",
            "line 2: not a number",
        ),
        (",".join(HEAD) + "\n" + "a" * 200_000 + "\n", "field larger"),
    ],
)
def test_a_broken_file_is_a_note(
    copy: Path, built: Callable[[], Page], text: str, message: str
) -> None:
    path = write(copy, {}, text)
    page = built()
    assert lazy(page) == ""
    [note] = notes(page.html)
    assert note.startswith(f"{path}: cannot be shown ({message}")
    assert note.endswith(f"; run `placecell analyse {copy} --lazy-rich` again.")


def test_a_file_that_cannot_be_read_is_a_note(copy: Path) -> None:
    path = write(copy, VALUES)
    path.write_bytes(b"\xff\xfe\x00")
    assert "cannot be shown" in section(Store(copy).run_set())[1][0]
    path.unlink()
    path.mkdir()
    assert "(Is a directory)" in section(Store(copy).run_set())[1][0]


def test_runs_that_ended_later_make_it_stale(copy: Path, built: Callable[[], Page]) -> None:
    path = write(copy, VALUES)
    for status in sorted(copy.glob("*/status.json"))[:3]:
        os.utime(status, (path.stat().st_mtime + 5,) * 2)
    text = lazy(built())
    [note] = notes(text)
    assert note.startswith("Older than 3 of the 8 runs")
    assert f"`placecell analyse {copy} --lazy-rich`" in note
    assert "0.432 [0.400, 0.500]" in text
    for status in sorted(copy.glob("*/status.json"))[:3]:
        files.write_json(status, files.read_json(status) | {"status": "failed"})
        os.utime(status, (path.stat().st_mtime + 5,) * 2)
    assert notes(lazy(built())) == [], "a run that failed is not measured"


def test_only_pictures_are_embedded(copy: Path) -> None:
    path = write(copy, VALUES)
    picture = path.with_name("lazy_rich.png")
    for content in (b"", b"\x89PNG\r\n\x1a\n", b"<svg onload='alert(1)'></svg> and more of it"):
        picture.write_bytes(content)
        assert section(Store(copy).run_set())[0][0]["pictures"] == []


def test_a_live_page_takes_it_up(copy: Path, known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_module, "known_measures", lambda folder: known)
    live = Live(copy)
    before, page = live.page()
    assert lazy(page) == ""
    write(copy, VALUES)
    after, page = live.page()
    assert after != before
    assert "0.432 [0.400, 0.500]" in page.parts["main"]


def test_cells() -> None:
    assert cell(0.5, 0.25, 0.75) == "0.500 [0.250, 0.750]"
    assert cell(123.4, NAN, NAN) == "123"
    assert cell(0.0, 0.0, 0.0) == "0.000"
    assert cell(-0.00012, NAN, NAN) == "-0.0001"
    assert cell(NAN, NAN, NAN) == "–"


# ------------------------------------------------------------------ in a browser


def test_the_section_in_a_browser(
    tab: Callable[..., Any],
    copy: Path,
    tmp_path: Path,
    known: Known,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From a real analysis by the verb to the page by Python: numbers, picture, data, and no word
    to anyone."""
    assert (
        call(["analyse", str(copy), "--lazy-rich", "--probes", "8", "--learn", "8", "--json"]) == 0
    )
    monkeypatch.setattr(placecell.report, "known_measures", lambda folder: known)
    placecell.report(copy, tmp_path / "page.html")
    one = tab()
    page = one.open(tmp_path / "page.html")
    page.locator("nav a[href='#lazy']").click()
    one.see_all()
    with (copy / "analysis" / "lazy_rich_summary.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    text = page.locator("#lazy").inner_text()
    for row in rows:
        if row["heading"] in ("test accuracy", "kernel distance"):
            assert row["label"] in text
            assert cell(*(float(row[name]) for name in ("mean", "low", "high"))) in text
    assert page.locator("#lazy img").count() == 1, "these runs kept no weights on the way"
    one.until(
        "[...document.querySelectorAll('#lazy img')].every((i) => i.complete && i.naturalWidth > 0)"
    )
    assert "movement of the table" in page.locator("#lazy img").get_attribute("alt")
    with page.expect_download() as waiting:
        page.locator('[data-csv="lazy"]').click()
    saved = list(csv.DictReader(io.StringIO(waiting.value.path().read_text())))
    for row, again in zip(rows, saved, strict=True):
        assert [row[name] for name in HEAD[4:9]] == [again[name] for name in HEAD[4:9]]
        assert (
            again["mean"] == ""
            if row["mean"] == "nan"
            else float(again["mean"]) == float(row["mean"])
        )
    page.set_viewport_size({"width": 320, "height": 700})
    one.until(
        "[...document.querySelectorAll('#lazy > *, #lazy img')].every((e) => "
        "e.getBoundingClientRect().right <= 321)"
    )
    assert one.errors == []
    assert [url for url in one.requests if not url.startswith(("data:image/png", "blob:"))] == [
        (tmp_path / "page.html").as_uri()
    ]


def test_markup_in_labels_is_text(
    tab: Callable[..., Any], copy: Path, tmp_path: Path, built: Callable[[], Page]
) -> None:
    evil = "learnable σ=0.1 <script>window.evil = 1</script><img src=x onerror='window.evil = 2'>"
    path = write(copy, {evil: VALUES["learnable σ=0.1"]})
    path.write_text(
        path.read_text().replace("table moved", "</table><svg onload='window.evil = 3'>")
    )
    made = built()
    assert "<script>window" not in made.html
    one = tab()
    page = one.open(made.write(tmp_path / "page.html"))
    one.see_all()
    assert page.evaluate("window.evil") is None
    assert page.locator("#lazy tbody th").inner_text() == evil
    assert page.locator("#lazy svg, #lazy img").count() == 0
    assert one.errors == []
