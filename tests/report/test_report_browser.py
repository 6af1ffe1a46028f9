"""The page in a real browser: it draws, answers, downloads, and does nothing that it should not."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from placecell import analysis
from placecell.report.page.build import Page, build_page
from placecell.store import Store, files
from placecell.study.arrangement import arrangement, contrast, full_colour
from placecell.study.records import Summary

New = Callable[..., Any]


def plotted(page: Any, plot: str, what: str = "data") -> Any:
    """What a figure shows now, as plotly has it."""
    return page.evaluate(f"JSON.parse(JSON.stringify(document.getElementById({plot!r}).{what}))")


def saved(page: Any, button: str) -> list[dict[str, str]]:
    with page.expect_download() as waiting:
        page.locator(button).click()
    return list(csv.DictReader(io.StringIO(waiting.value.path().read_text())))


@pytest.fixture
def opened(tab: New, page_file: Path) -> Any:
    one = tab()
    one.open(page_file)
    one.see_all()
    yield one
    assert one.errors == []
    assert one.requests == [page_file.as_uri()]


def test_it_draws_without_a_complaint_or_a_request(opened: Any) -> None:
    assert opened.page.locator(".js-plotly-plot").count() == 8
    assert opened.page.locator("#headline-plot .scatterlayer .trace").count() >= 3
    assert opened.page.title() == "Latin square: what the positions learned"


UNDRAWN = "document.querySelectorAll('.plot:not(.js-plotly-plot)').length"
NEVER_IDLE = "window.requestIdleCallback = () => 0"


def test_figures_below_the_fold_are_drawn_without_scrolling(tab: New, page_file: Path) -> None:
    one = tab(viewport={"width": 1000, "height": 500})
    one.open(page_file)
    one.until(f"{UNDRAWN} === 0")
    assert one.page.evaluate("scrollY") == 0
    assert one.errors == []


def test_figures_off_screen_wait_while_there_is_other_work(tab: New, page_file: Path) -> None:
    one = tab(viewport={"width": 1000, "height": 500})
    one.page.add_init_script(NEVER_IDLE)
    one.open(page_file)
    one.page.wait_for_selector("#tables-a-plot.js-plotly-plot")
    assert one.page.locator("#agreement-plot.js-plotly-plot").count() == 0


def test_on_paper_every_figure_is_there_in_light_colours(tab: New, page_file: Path) -> None:
    one = tab(viewport={"width": 1000, "height": 500}, color_scheme="dark")
    one.page.add_init_script(NEVER_IDLE)
    page = one.open(page_file)
    page.wait_for_selector("#tables-a-plot.js-plotly-plot")
    dark = plotted(page, "tables-a-plot", "layout")["font"]["color"]
    assert page.evaluate(UNDRAWN) > 0
    page.emulate_media(media="print")
    one.until(f"{UNDRAWN} === 0")
    light = plotted(page, "tables-a-plot", "layout")["font"]["color"]
    assert (dark, light) == ("#e4e9ed", "#22303c")
    for side in ("a", "b"):  # the choices are no part of paper, so what was chosen is written there
        chosen = page.locator(f"#tables-{side}").input_value()
        name = page.locator(f"#tables-{side}-name")
        assert name.is_visible()
        assert name.inner_text() == f"{chosen}, seed 0"
    assert page.locator("#repeat details:not([open])").count() == 0
    assert not page.locator("details.settings").is_visible(), "the same settings are at the end"
    assert page.locator("#tables h3").is_visible()
    assert page.locator("#tables h3").inner_text() == "the ideal"
    page.emulate_media(media="screen")
    assert not page.locator("#tables-a-name").is_visible()
    assert page.locator("main details[open]").count() == 0
    one.until(f"document.getElementById('tables-a-plot').layout?.font.color === '{dark}'")
    assert one.errors == []


def test_the_first_figure_comes_before_the_settings(opened: Any) -> None:
    settings = opened.page.locator("details.settings")
    assert settings.get_attribute("open") is None
    assert settings.locator("dt").count() > 5
    assert opened.page.evaluate("document.querySelector('figure').id") == "tables-figure"
    assert opened.page.evaluate("document.querySelector('figure').offsetTop < innerHeight")


def test_a_table_that_goes_on_to_the_right_says_so(tab: New, page_file: Path) -> None:
    one = tab(viewport={"width": 360, "height": 700}, has_touch=True)
    page = one.open(page_file)
    box = page.locator("#diagnosis .scroll")
    hint = page.locator("#diagnosis .hint")
    hint.wait_for()
    assert "scroll" in hint.inner_text()
    assert "more" in box.get_attribute("class").split()
    box.evaluate("(box) => { box.scrollLeft = box.scrollWidth; }")
    one.until("!document.querySelector('#diagnosis .scroll').classList.contains('more')")
    wide = tab(viewport={"width": 1600, "height": 900})
    wide.open(page_file)
    assert not wide.page.locator("#diagnosis .hint").is_visible()


def test_the_slider_shows_the_table_at_other_steps(opened: Any, page: Page) -> None:
    tab = opened.page
    slider = tab.locator("#tables-step")
    assert tab.locator("#tables-step-value").inner_text() == "24"
    before, ideal = plotted(tab, "tables-a-plot"), plotted(tab, "tables-ideal-plot")
    slider.focus()
    tab.keyboard.press("Home")
    assert tab.locator("#tables-step-value").inner_text() == "0"
    assert plotted(tab, "tables-a-plot")[0]["z"] != before[0]["z"]
    assert plotted(tab, "tables-ideal-plot") == ideal
    assert "step 0:" in tab.locator("#tables-a-says").inner_text()
    assert "step 0:" in tab.locator("#tables-a-plot").get_attribute("aria-label")
    tab.keyboard.press("ArrowRight")
    assert tab.locator("#tables-step-value").inner_text() == "1"


def test_the_switch_over_sigma(opened: Any) -> None:
    tab = opened.page
    assert tab.locator("#tables-a").input_value() != tab.locator("#tables-b").input_value()
    before, beside = plotted(tab, "tables-a-plot"), plotted(tab, "tables-b-plot")
    for label in ("learnable σ=0.1", "learnable σ=2.0", "sinusoidal"):
        tab.locator("#tables-a").select_option(label)
        assert label in tab.locator("#tables-a-plot").get_attribute("aria-label")
    assert plotted(tab, "tables-a-plot")[0]["z"] != before[0]["z"]
    assert plotted(tab, "tables-b-plot")[0]["z"] == beside[0]["z"]
    before = plotted(tab, "tables-b-plot")
    tab.locator("#tables-b-seed").select_option("1")
    assert plotted(tab, "tables-b-plot") != before


def test_small_maps_are_those_of_the_table_on_one_scale_with_the_ideal(
    opened: Any, page: Page
) -> None:
    tab, summary = opened.page, page.summary
    assert summary is not None
    how, runs = arrangement(summary), contrast(summary)
    tables = {"a": runs[0].table, "b": runs[1].table, "ideal": how.ideal_table}
    scales = set()
    for side, table in tables.items():
        shown, own = plotted(tab, f"tables-{side}-plot")
        expected = how.tiles(analysis.row_similarity(table))
        seen = np.array(shown["z"], dtype=float)  # null is NaN
        np.testing.assert_allclose(seen, expected, atol=1e-4)
        assert np.array_equal(np.array(own["z"], dtype=float) == 1, self_cells())
        assert len(shown["x"]) == len(shown["y"]) == 20  # edges of 19 columns, of which 3 are gaps
        scales.add((shown["zmin"], shown["zmax"], str(shown["colorscale"])))
    assert len(scales) == 1
    full = max(full_colour(analysis.row_similarity(run.table)) for run in runs)
    assert tab.locator("#tables-high").inner_text() == f"+{full:.2f}"
    assert [tab.locator(f"#tables-{side}").input_value() for side in "ab"] == [
        run.label for run in runs
    ]


def self_cells() -> Any:
    own = np.zeros((19, 19), dtype=bool)
    for r, c in np.ndindex(4, 4):
        own[6 * r, 6 * c] = True
    return own


def test_a_table_can_be_shown_as_pairs_and_as_points(opened: Any) -> None:
    tab = opened.page
    said = tab.locator("#tables-reading").inner_text()
    assert "small map" in said
    assert "share a row or a column" in said
    tab.locator("#tables-view").select_option("matrix")
    assert np.shape(plotted(tab, "tables-ideal-plot")[0]["z"]) == (16, 16)
    assert tab.locator("#tables-reading").inner_text() != said
    assert tab.locator("#tables-scale").is_visible()
    tab.locator("#tables-view").select_option("points")
    assert not tab.locator("#tables-scale").is_visible()
    assert len(plotted(tab, "tables-ideal-plot")) == 5  # lines, and four rows of points


def test_colours_and_three_dimensions(opened: Any) -> None:
    tab = opened.page
    tab.locator("#tables-view").select_option("points")
    names = [t.get("name") for t in plotted(tab, "tables-a-plot")]
    assert names[1:] == ["row 1", "row 2", "row 3", "row 4"]
    tab.locator("#tables-colour").select_option("column")
    assert [t.get("name") for t in plotted(tab, "tables-a-plot")][1:] == [
        f"column {i}" for i in range(1, 5)
    ]
    assert tab.locator("#tables-turn").is_hidden()
    tab.locator("#tables-view").select_option("space")
    before = plotted(tab, "tables-a-plot")
    tab.locator("#tables-turn").focus()
    tab.keyboard.press("ArrowRight")
    assert plotted(tab, "tables-a-plot") != before
    assert len(set(before[1]["marker"]["size"])) > 1, "what is nearer is larger"


def test_playing_goes_through_training_and_stops(opened: Any) -> None:
    tab = opened.page
    tab.locator("#tables-play").click()
    assert tab.locator("#tables-step").input_value() == "0"
    opened.until("document.getElementById('tables-play').textContent.includes('play')")
    assert tab.locator("#tables-step-value").inner_text() == "24"


def test_attention_by_layer_and_head(opened: Any) -> None:
    tab = opened.page
    seen = []
    for layer in range(2):
        for head in range(3):  # the mean, then each
            tab.locator("#attention-layer").select_option(index=layer)
            tab.locator("#attention-head").select_option(index=head)
            seen.append(plotted(tab, "attention-map")[0]["z"])
    assert all(a != b for i, a in enumerate(seen) for b in seen[:i])
    mean = [
        [(a + b) / 2 for a, b in zip(x, y, strict=True)]
        for x, y in zip(seen[1], seen[2], strict=True)
    ]
    assert all(
        abs(a - b) < 1e-6
        for x, y in zip(mean, seen[0], strict=True)
        for a, b in zip(x, y, strict=True)
    )
    ideal = plotted(tab, "attention-ideal")[0]["z"]
    assert {round(v, 3) for row in ideal for v in row} == {0, round(1 / 6, 3)}


def test_training_by_metric_and_configuration(opened: Any, page: Page) -> None:
    tab = opened.page
    everything = plotted(tab, "training-plot")
    tab.locator("#training-label").select_option("learnable σ=2.0")
    one = plotted(tab, "training-plot")
    assert 0 < len(one) < len(everything)
    assert {t["name"] for t in one} == {"learnable σ=2.0"}
    assert len(one) == 3  # a band and the mean on test, and the mean on training
    assert sum(v is None for t in one for v in t["y"]) == 0
    tab.locator("#training-lines").select_option("seed")
    seeds = plotted(tab, "training-plot")
    assert [t["y"].count(None) for t in seeds] == [1, 1]  # a gap between two seeds
    tab.locator("#training-lines").select_option("mean")
    said = tab.locator("#training-says").inner_text()
    tab.locator("#training-metric").select_option("loss")
    assert plotted(tab, "training-plot")[0]["y"] != one[0]["y"]
    assert tab.locator("#training-says").inner_text() != said
    tab.locator("#training-metric").select_option("table_gradient")
    tab.locator("#training-log").check()
    assert plotted(tab, "training-plot", "layout")["yaxis"]["type"] == "log"


def test_measures_against_the_headline(opened: Any, page: Page) -> None:
    tab = opened.page
    for measure, words in page.panels["agreement"].choices["measures"].items():
        tab.locator("#agreement-measure").select_option(measure)
        title = plotted(tab, "agreement-plot", "layout")["xaxis"]["title"]["text"]
        assert title.replace("<br>", " ") == words
        assert (
            tab.locator("#agreement-says").inner_text()
            == page.panels["agreement"].choices["sentences"][measure]
        )


def test_the_legend_hides_and_shows_by_keyboard(opened: Any) -> None:
    tab = opened.page
    before = len(plotted(tab, "training-plot"))
    key = tab.locator("#training-legend button").first
    key.focus()
    tab.keyboard.press("Enter")
    assert key.get_attribute("aria-pressed") == "false"
    assert len(plotted(tab, "training-plot")) == before - 3  # its band and two lines
    tab.keyboard.press("Enter")
    assert len(plotted(tab, "training-plot")) == before


# ------------------------------------------------------------------ downloads


def test_downloads_give_the_data(opened: Any, page: Page) -> None:
    tab = opened.page
    for name, panel in page.panels.items():
        rows = saved(tab, f'[data-csv="{name}"]')
        assert list(rows[0]) == list(panel.columns)
        for column, values in panel.columns.items():
            for row, value in zip(rows, values, strict=True):
                if isinstance(value, float) and value == value:
                    assert float(row[column]) == pytest.approx(value)
                elif value is None or value != value:
                    assert row[column] == ""
                else:
                    assert row[column] == str(value)


def test_downloads_of_tables_give_what_is_shown(opened: Any, page: Page) -> None:
    tab = opened.page
    tab.locator("#tables-a").select_option("learnable σ=0.5")
    rows = saved(tab, '[data-csv="tables-a"]')
    assert len(rows) == 16
    assert {row["configuration"] for row in rows} == {"learnable σ=0.5"}
    assert [row["row"] for row in rows] == [str(i // 4 + 1) for i in range(16)]
    assert rows[6]["name"] == "row 2, column 3"
    tab.locator("#tables-view").select_option("matrix")
    shown = plotted(tab, "tables-a-plot")[0]["z"]
    assert float(rows[2]["similarity to row 2, column 2"]) == pytest.approx(shown[2][5], abs=1e-4)
    assert page.summary is not None
    rows = saved(tab, '[data-csv="attention"]')
    assert len(rows) == 256
    assert sum(
        float(row["attention"]) for row in rows if row["query"] == "row 1, column 4"
    ) == pytest.approx(1, abs=1e-3)
    assert len(saved(tab, '[data-csv="runs"]')) == 8
    assert saved(tab, '[data-csv="diagnosis"]')[0]["signature"]
    assert len(saved(tab, '[data-csv="conditions"]')) == 4


def test_the_settings_can_be_saved(opened: Any) -> None:
    with opened.page.expect_download() as waiting:
        opened.page.locator('[data-text="sweep.toml"]').click()
    text = waiting.value.path().read_text()
    assert waiting.value.suggested_filename == "sweep.toml"
    assert "[[sweep.grid]]" in text
    assert text.startswith('task = "latin_square"')


# ------------------------------------------------------------------ light and dark, wide and narrow


def _background(page: Any) -> str:
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def _luminance(page: Any, selector: str, of: str) -> float:
    """Relative luminance of a colour on the page."""
    value = page.evaluate(f"getComputedStyle(document.querySelector({selector!r})).{of}")
    parts = [int(v) / 255 for v in value.removeprefix("rgb(").removesuffix(")").split(",")]
    linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
    return sum(w * v for w, v in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_follow_the_system_and_the_button(tab: New, page_file: Path, scheme: str) -> None:
    one = tab(color_scheme=scheme)
    page = one.open(page_file)
    one.see_all()
    light = {"light": _background(page)}
    font = plotted(page, "headline-plot", "layout")["font"]["color"]
    for name in ("light", "dark"):
        page.locator("#theme").click()
        assert name in page.locator("#theme").inner_text()
        light[name] = _background(page)
        contrast = sorted(
            (_luminance(page, "main p", "color"), _luminance(page, "body", "backgroundColor"))
        )
        assert (contrast[1] + 0.05) / (contrast[0] + 0.05) > 7
    assert light["light"] != light["dark"]
    changed = plotted(page, "headline-plot", "layout")["font"]["color"]
    page.locator("#theme").click()
    assert page.locator("#theme").inner_text().endswith("auto")
    assert _background(page) == light[scheme]
    assert (font == changed) == (scheme == "dark")
    assert one.errors == []


@pytest.mark.parametrize("width", [320, 360, 768])
def test_a_narrow_screen_needs_no_sideways_scrolling(tab: New, page_file: Path, width: int) -> None:
    one = tab(viewport={"width": width, "height": 700}, has_touch=True)
    page = one.open(page_file)
    one.see_all()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    wide = page.evaluate("""() => [...document.querySelectorAll('main *')]
        .filter((e) => !e.closest('.scroll, pre, .sr, svg, details'))
        .filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
        .map((e) => e.tagName + '#' + e.id + '.' + e.className)""")
    assert wide == []
    assert one.errors == []


LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light"},
    "dark": {"color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 800}, "has_touch": True},
    "print": {"color_scheme": "dark"},
}


@pytest.mark.parametrize("look", LOOKS)
def test_pictures_of_the_page_show_the_cross_of_the_ideal(
    tab: New, page_file: Path, tmp_path: Path, look: str
) -> None:
    """Pictures of the whole page are left in pytest's folder, for a person to look at."""
    one = tab(**LOOKS[look])
    page = one.open(page_file)
    if look == "print":
        page.emulate_media(media="print")
    one.until(f"{UNDRAWN} === 0")
    page.screenshot(path=tmp_path / f"{look}.png", full_page=True)
    ideal = page.locator("#tables-ideal-plot").screenshot(path=tmp_path / f"{look}-ideal.png")
    pixels = np.asarray(Image.open(io.BytesIO(ideal)).convert("RGB")).astype(int)
    red, blue = pixels[..., 0], pixels[..., 2]
    alike, unlike = (red - blue > 60).sum(), (blue - red > 60).sum()
    assert alike / unlike == pytest.approx(6 / 9, rel=0.15), "of 15 others, 6 share row or column"
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(map(int, re.findall(r"\d+", paper))) < 60) == (look == "dark")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert one.errors == []


def test_every_control_has_a_name_and_can_be_reached_by_keyboard(opened: Any) -> None:
    page = opened.page
    nameless = page.evaluate("""() => [...document.querySelectorAll('button, select, input')]
        .filter((e) => !e.getAttribute('aria-label') && !e.textContent.trim())
        .filter((e) => !(e.labels && e.labels.length))
        .map((e) => e.id)""")
    assert nameless == []
    assert (
        page.evaluate(
            "document.querySelectorAll("
            '\'[tabindex]:not([tabindex="0"]):not([tabindex="-1"])\').length'
        )
        == 0
    )
    page.evaluate("scrollTo(0, 0)")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id"))
    assert {
        "theme",
        "tables-step",
        "tables-play",
        "tables-a",
        "attention-layer",
        "agreement-measure",
    } <= reached
    assert page.evaluate("""() => { document.getElementById('theme').focus(); return 1; }""") == 1
    headings = page.evaluate(
        "[...document.querySelectorAll('h1,h2,h3')].map((h) => Number(h.tagName[1]))"
    )
    assert headings[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(headings))


# ------------------------------------------------------------------ names with markup

EVIL = [
    "<script>window.evil = 1; alert(1)</script>",
    "</script><script>window.evil = 2</script>",
    "<img src=x onerror='window.evil = 3'>",
    '"><svg onload="window.evil=4">',
]


def evil_summary(summary: Summary) -> dict[str, str]:
    return dict(zip(summary.labels, EVIL, strict=True))


def test_names_with_markup_are_text(
    tab: New, copy: Path, tmp_path: Path, page: Page, known: Any, monkeypatch: Any
) -> None:
    """Markup in labels, messages, names of folders, environments and titles is shown, and runs
    nothing."""
    from placecell.report.page import build as module

    assert page.summary is not None
    names = evil_summary(page.summary)
    real = module.label
    monkeypatch.setattr(module, "label", lambda config, keys: names[real(config, keys)])
    monkeypatch.setattr(
        "placecell.study.summary.label", lambda config, keys: names[real(config, keys)]
    )
    for path in sorted(copy.glob("*/status.json"))[:1]:
        files.write_json(
            path,
            files.read_json(path)
            | {"status": "failed", "message": EVIL[0] + " </td> javascript:alert(2)"},
        )
    for path in copy.glob("*/environment.json"):
        files.write_json(
            path,
            files.read_json(path)
            | {"processor": EVIL[2], "link": '<a href="javascript:window.evil=5">x</a>'},
        )
    made = build_page(Store(copy).run_set(), title=EVIL[1], known=known)
    target = tmp_path / "<img src=x onerror=alert(1)>.html"
    one = tab()
    opened = one.open(made.write(target))
    one.see_all()
    for select in ("#tables-a", "#training-label", "#attention-label"):
        for index in range(opened.locator(f"{select} option").count()):
            opened.locator(select).select_option(index=index)
    for plot in ("headline-plot", "training-plot", "agreement-plot"):
        box = opened.locator(f"#{plot}").bounding_box()
        opened.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    opened.wait_for_timeout(300)
    assert opened.evaluate("window.evil") is None
    assert opened.locator("h1").inner_text() == EVIL[1]
    assert opened.title() == EVIL[1]
    assert opened.locator("#training-label option").nth(1).inner_text() in EVIL
    assert EVIL[0] + " </td> javascript:alert(2)" in opened.locator("#runs").inner_text()
    assert EVIL[2] in opened.locator("#repeat").inner_text()
    assert (
        opened.locator(
            "main script, main img, main [onerror], main [onload], main [href^='javascript']"
        ).count()
        == 0
    )
    assert {t.text_content() for t in opened.locator("#headline-legend button").all()} & set(EVIL)
    rows = saved(opened, '[data-csv="headline"]')
    assert {row["configuration"] for row in rows} == set(EVIL)
    assert one.errors == []
    assert len(one.requests) == 1


def test_scripts_that_are_not_the_pages_own_do_not_run(
    tab: New, page: Page, tmp_path: Path
) -> None:
    """The policy holds: a script put into the page by hand is refused."""
    path = tmp_path / "changed.html"
    path.write_text(
        page.html.replace(
            "</main>", "</main><script>window.evil = 1</script><img src='https://example.org/x'>"
        )
    )
    one = tab()
    opened = one.open(path)
    assert opened.evaluate("window.evil") is None
    assert any("Content Security Policy" in error for error in one.errors)
    assert one.refused == ["https://example.org/x csp"]


def test_a_page_of_unfinished_runs_draws_too(tab: New, copy: Path, tmp_path: Path) -> None:
    for path in copy.glob("*/status.json"):
        files.write_json(path, files.read_json(path) | {"status": "running"})
    one = tab()
    opened = one.open(build_page(Store(copy).run_set()).write(tmp_path / "running.html"))
    one.see_all()
    assert opened.locator(".js-plotly-plot").count() == 1
    assert "nothing to compare yet" in opened.locator(".lead").inner_text()
    assert one.errors == []


def test_a_page_without_sigma_draws_too(tab: New, store: Path, tmp_path: Path, known: Any) -> None:
    run_set = Store(store).run_set()
    fixed = replace(
        run_set, results=[r for r in run_set.results if r.config.encoding.name == "sinusoidal"]
    )
    one = tab()
    opened = one.open(build_page(fixed, known=known).write(tmp_path / "fixed.html"))
    one.see_all()
    assert plotted(opened, "headline-plot", "layout")["yaxis"]["type"] == "category"
    assert one.errors == []
